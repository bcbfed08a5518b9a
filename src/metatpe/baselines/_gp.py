r"""A Gaussian process of one objective in a mixed space.

    k(x, x') = (1 + r + r^2 / 3) exp(-r),   r^2 = 5 sum_j delta_j(x, x') / l_j^2     Matern 5/2
    delta_j  = (x_j - x'_j)^2  of an ordered column;  0 or 1 of a categorical one
    f ~ GP(0, a^2 k),   y = f(x) + noise of variance a^2 s^2,   y standardised
    log l_j ~ N(log(sqrt(d) / 2), 1),   log s^2 ~ N(-4, 1), s^2 >= 1e-4,   a^2 ~ InvGamma(2, 3)
    mean(x) = k(x, X) C^-1 y,   variance(x) = a^2 (1 - k(x, X) C^-1 k(X, x)),   C = K + s^2 I

The settings maximise the posterior density, and depend on the data alone, not on an earlier fit.
That of a^2 has its maximum at a^2 = (q + 6) / (n + 6), q = y^T C^-1 y, for any l and s, and what
remains to be minimised is (n / 2 + 3) log a^2 + log det(C) / 2 and the priors of l and s. Length
scales grow with sqrt(d), as distances do.

A missing coordinate stands in the middle of its column: 1/2 in an ordered one, at the same
distance from every choice in a categorical one. A column that a task never used has no part in its
kernel.

Shapes: X (n, d) points of the unit cube, NaN where missing; features (n, p), a categorical column
of K choices has K of them; y (n,).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import fmin_l_bfgs_b

from metatpe.space import Columns, Floats, Ints, Mask

if TYPE_CHECKING:
    import torch  # loaded where a model is fitted: without the extra `gp` nothing else breaks

_LEAST_NOISE = 1e-4
_JITTER = 1e-6
_LOG_BOUNDS = ((math.log(0.01), math.log(100.0)), (math.log(_LEAST_NOISE), 0.0))  # l, s^2


class Encoder:
    """Points of the unit cube as features between which distances are Euclidean."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        sizes = np.where(columns.is_categorical, columns.n_cells, 1)
        self.owner: Ints = np.repeat(np.arange(len(columns)), sizes)  # (p,), feature -> column

    def __call__(self, X: Floats) -> Floats:  # (n, d) -> (n, p)
        """Return the features of points."""
        parts = [np.where(np.isnan(x), 0.5, x)[:, None] for x in X.T]
        for j in self._columns.categorical:
            k, cell = int(self._columns.n_cells[j]), self._columns.cells(X[:, j], j)
            is_cell = np.where(cell[:, None] < 0, 1.0 / k, cell[:, None] == np.arange(k))
            parts[j] = is_cell * math.sqrt(0.5)
        return np.hstack(parts)


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """A fitted process: what is needed to predict."""

    scale: Floats  # (p,), 1 / length scale of each feature, 0 where it has no part
    noise: float  # s^2
    points: Floats  # (n, p), scaled features of the observations
    factor: Floats  # (n, n), lower Cholesky factor of C
    alpha: Floats  # (n,), C^-1 y
    amplitude: float  # a^2

    @classmethod
    def of(cls, features: Floats, y: Floats, scale: Floats, noise: float) -> GaussianProcess:
        """Return the process with these observations and settings."""
        points = features * scale
        K = _matern(_squared_distances(points, points))
        factor = _cholesky(K, noise)
        alpha = cho_solve((factor, True), y)
        amplitude = (float(y @ alpha) + 6.0) / (len(y) + 6.0)
        return cls(scale, noise, points, factor, alpha, amplitude)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:  # (C, p) -> (C,), (C,)
        """Return the mean and the variance at some points."""
        cross, root = self._cross(features)
        variance = np.maximum(1.0 - (root * root).sum(axis=0), 1e-12)
        return cross @ self.alpha, self.amplitude * variance

    def joint(self, features: Floats) -> tuple[Floats, Floats]:  # (C, p) -> (C,), (C, C)
        """Return the mean at some points and a factor of their covariance."""
        cross, root = self._cross(features)
        points = features * self.scale
        covariance = _matern(_squared_distances(points, points)) - root.T @ root
        return cross @ self.alpha, math.sqrt(self.amplitude) * _cholesky(covariance, _JITTER)

    def _cross(self, features: Floats) -> tuple[Floats, Floats]:  # (C, n), (n, C)
        cross = _matern(_squared_distances(features * self.scale, self.points))
        if not len(self.points):
            return cross, cross.T
        return cross, solve_triangular(self.factor, cross.T, lower=True, check_finite=False)

    def left_out(self) -> tuple[Floats, Floats]:  # (n,), (n,)
        """Return the mean and the variance of f at each observation, given the others alone."""
        inverse = cho_solve((self.factor, True), np.eye(len(self.alpha)))
        precision = np.diag(inverse)
        observed = self.factor @ (self.factor.T @ self.alpha)
        variance = self.amplitude * np.maximum(1.0 / precision - self.noise, 1e-12)
        return observed - self.alpha / precision, variance

    def believing(self, features: Floats) -> GaussianProcess:  # (r, p)
        """Return the process with its own mean at some points for an observation there."""
        observed = self.factor @ (self.factor.T @ self.alpha)
        y = np.concatenate([observed, self.predict(features)[0]])
        scale = np.where(self.scale > 0, self.scale, 1.0)  # of a feature without a part: any
        points = np.vstack([self.points / scale, features])
        return GaussianProcess.of(points, y, self.scale, self.noise)


def fit(features: Floats, y: Floats, owner: Ints, is_used: Mask) -> GaussianProcess:
    """Return the process whose settings are most probable given the observations.

    Args:
        features: (n, p), of the observations.
        y: (n,), standardised.
        owner: (p,), the column of each feature.
        is_used: (d,), which columns have a part.
    """
    columns = np.flatnonzero(is_used)
    scale = np.zeros(len(owner))
    if not len(y):
        return GaussianProcess.of(features, y, scale, _LEAST_NOISE)
    by_column = [features[:, owner == j] for j in columns]
    deltas = np.stack([_squared_distances(part, part) for part in by_column])
    log_lengths, log_noise = _most_probable(deltas, y)
    for j, log_length in zip(columns, log_lengths, strict=True):
        scale[owner == j] = math.exp(-log_length)
    return GaussianProcess.of(features, y, scale, math.exp(log_noise))


def _most_probable(deltas: Floats, y: Floats) -> tuple[Floats, float]:  # (d, n, n), (n,)
    """Return the logarithms of the length scales (d,) and of the noise."""
    import torch

    d = len(deltas)
    middle = math.log(math.sqrt(d) / 2)
    tensors = torch.from_numpy(deltas), torch.from_numpy(y)

    def loss(theta: Floats) -> tuple[float, Floats]:
        leaf = torch.tensor(theta, requires_grad=True)
        value = _negative_log_posterior(leaf, *tensors, middle)
        (gradient,) = torch.autograd.grad(value, leaf)
        return value.item(), gradient.numpy()

    start = np.append(np.full(d, middle), -4.0)
    bounds = [_LOG_BOUNDS[0]] * d + [_LOG_BOUNDS[1]]
    with _one_thread():
        found, _, _ = fmin_l_bfgs_b(loss, start, bounds=bounds, factr=1e11, maxiter=50)
    return found[:-1], float(found[-1])


def _negative_log_posterior(
    theta: torch.Tensor,  # (d + 1,), log length scales and log noise
    deltas: torch.Tensor,  # (d, n, n)
    y: torch.Tensor,  # (n,)
    middle: float,
) -> torch.Tensor:
    import torch

    log_lengths, log_noise = theta[:-1], theta[-1]
    squared = torch.tensordot(torch.exp(-2.0 * log_lengths), deltas, 1)
    r = torch.sqrt(5.0 * squared + 1e-20)  # the gradient of a root at 0 is infinite
    K = (1.0 + r + r * r / 3.0) * torch.exp(-r)
    factor = torch.linalg.cholesky(K + torch.exp(log_noise) * torch.eye(len(y), dtype=y.dtype))
    alpha = torch.cholesky_solve(y[:, None], factor)[:, 0]
    log_amplitude = torch.log((y @ alpha + 6.0) / (len(y) + 6.0))
    fit_to_data = (len(y) / 2 + 3) * log_amplitude + torch.log(torch.diagonal(factor)).sum()
    prior = ((log_lengths - middle) ** 2).sum() + (log_noise + 4.0) ** 2
    return fit_to_data + prior / 2.0


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch to one thread: with matrices this small, more of them only wait."""
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def _squared_distances(a: Floats, b: Floats) -> Floats:  # (n, p), (k, p) -> (n, k)
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2.0 * (a @ b.T)
    return np.asarray(np.maximum(squares, 0.0))


def _matern(squared: Floats) -> Floats:
    r = np.sqrt(5.0 * squared)
    k: Floats = (1.0 + r + r * r / 3.0) * np.exp(-r)
    return k


def _cholesky(covariance: Floats, added: float) -> Floats:  # (n, n)
    """Return the lower factor of a covariance with something added to its diagonal."""
    factor = np.linalg.cholesky(covariance + added * np.eye(len(covariance)))
    return np.asarray(factor, dtype=np.float64)
