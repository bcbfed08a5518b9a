r"""A Gaussian process of one objective in a mixed space.

    k(x, x') = Matern 5/2 of sum_j delta_j(x, x') / l_j^2                  see `kernels`
    delta_j  = (x_j - x'_j)^2  of an ordered column;  0 or 1 of a categorical one
    f ~ GP(0, a^2 k),   y = f(x) + noise of variance a^2 s^2,   y standardised
    log l_j ~ N(log(sqrt(d) / 2), 1),   log s^2 ~ N(-6, 2^2), s^2 >= 1e-6,   a^2 ~ InvGamma(2, 3)
    mean(x) = k(x, X) C^-1 y,   variance(x) = a^2 (1 - k(x, X) C^-1 k(X, x)),   C = K + s^2 I

The settings maximise the posterior density, and depend on the data alone, not on an earlier fit.
That of a^2 has its maximum at a^2 = (q + 6) / (n + 6), q = y^T C^-1 y, for any l and s, and what
remains to be minimised is (n / 2 + 3) log a^2 + log det(C) / 2 and the priors of l and s. Its
gradient is, with alpha = C^-1 y and W = C^-1 - alpha alpha^T / a^2,

    d / d log l_j   = 1/2 sum(W o dK / d log l_j)
    dK / d log l_j  = slope delta_j / l_j^2                  see `kernels`
    d / d log s^2   = s^2 / 2 trace(W)

and that of the priors. Length scales grow with sqrt(d), as distances do.

A missing coordinate stands in the middle of its column: 1/2 in an ordered one, at the same
distance from every choice in a categorical one. A column that a task never used has no part in its
kernel.

Shapes: X (n, d) points of the unit cube, NaN where missing; features (n, p), a categorical column
of K choices has K of them, or two where K is large; y (n,).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpotri

from metatpe.gp.kernels import matern, matern_with_slope
from metatpe.space import Columns, Floats, Ints, Mask

LEAST_NOISE = 1e-6
_JITTER = 1e-6
_MAX_CACHED = 1 << 14  # pairs of points that are looked at together
MAX_FITTED = 150  # observations that settings are fitted to; all of them enter the prediction
_MAX_ONE_HOT = 64  # choices; of more, numbers are compared, which needs no feature per choice
LENGTHS = (math.log(0.01), math.log(100.0))  # bounds of log l
NOISES = (math.log(LEAST_NOISE), 0.0)  # and of log s^2
NOISE, NOISE_SPREAD = -6.0, 2.0  # the prior of log s^2


class Encoder:
    """Points of the unit cube as features between which `squared_distances` are taken.

    All features are at least 0, but for one kind: a categorical column of many choices has two
    features, 1 plus the number of the choice (0: missing) and -1. The negative one tells
    `squared_distances` that the one before it is compared, not subtracted.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        sizes = np.where(columns.is_categorical, columns.n_cells, 1)
        sizes = np.where(sizes > _MAX_ONE_HOT, 2, sizes)
        self.owner: Ints = np.repeat(np.arange(len(columns)), sizes)  # (p,), feature -> column

    def __call__(self, X: Floats) -> Floats:  # (n, d) -> (n, p)
        """Return the features of points."""
        parts = [np.where(np.isnan(x), 0.5, x)[:, None] for x in X.T]
        for j in self._columns.categorical:
            parts[j] = self._choices(
                self._columns.cells(X[:, j], j), int(self._columns.n_cells[j])
            )
        return np.hstack(parts)

    @staticmethod
    def _choices(cell: Ints, k: int) -> Floats:  # (n,) -> (n, k) or (n, 2)
        if k > _MAX_ONE_HOT:
            return np.column_stack([cell + 1.0, np.full(len(cell), -1.0)])
        is_cell = np.where(cell[:, None] < 0, 1.0 / k, cell[:, None] == np.arange(k))
        return is_cell * math.sqrt(0.5)


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
        K = matern(squared_distances(points, points))
        factor = _cholesky(K, noise)
        alpha = solved(factor, y)
        amplitude = (float(y @ alpha) + 6.0) / (len(y) + 6.0)
        return cls(scale, noise, points, factor, alpha, amplitude)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:  # (C, p) -> (C,), (C,)
        """Return the mean and the variance at some points."""
        cross, root = self._cross(features)
        variance = np.maximum(1.0 - (root * root).sum(axis=0), 1e-12)
        return cross @ self.alpha, self.amplitude * variance

    def mean(self, features: Floats) -> Floats:  # (C, p) -> (C,)
        """Return the mean alone, in parts that stay in the processor's cache."""
        points, size = features * self.scale, max(1, _MAX_CACHED // max(len(self.points), 1))
        parts = _squared_distances_in_parts(points, self.points, size)
        return np.concatenate([matern(squares) @ self.alpha for squares in parts])

    def joint(self, features: Floats) -> tuple[Floats, Floats]:  # (C, p) -> (C,), (C, C)
        """Return the mean at some points and a factor of their covariance."""
        cross, root = self._cross(features)
        points = features * self.scale
        covariance = matern(squared_distances(points, points)) - root.T @ root
        return cross @ self.alpha, math.sqrt(self.amplitude) * _cholesky(covariance, _JITTER)

    def _cross(self, features: Floats) -> tuple[Floats, Floats]:  # (C, n), (n, C)
        cross = matern(squared_distances(features * self.scale, self.points))
        if not len(self.points):
            return cross, cross.T
        return cross, solve_triangular(self.factor, cross.T, lower=True, check_finite=False)

    def left_out(self) -> tuple[Floats, Floats]:  # (n,), (n,)
        """Return the mean and the variance of f at each observation, given the others alone."""
        inverse = solved(self.factor, np.eye(len(self.alpha)))
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
    if not len(y):
        return GaussianProcess.of(features, y, np.zeros(len(owner)), LEAST_NOISE)
    some = fitted_to(len(y))
    pairs = Pairs.of(features[some], owner, is_used)
    *log_lengths, log_noise = _most_probable(pairs, y[some])
    return GaussianProcess.of(features, y, pairs.scale(log_lengths), math.exp(log_noise))


def fitted_to(n: int) -> Ints:
    """Return the observations, of n, that the settings are fitted to: all, or some evenly."""
    return np.linspace(0, n - 1, min(n, MAX_FITTED)).round().astype(np.int64)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of a task's observations, and how far apart they are in each column."""

    first: Ints  # (P,)
    second: Ints  # (P,), before the first
    deltas: Floats  # (d, P)
    owner: Ints  # (p,), the column of each feature
    columns: Ints  # (d,), those that have a part

    @classmethod
    def of(cls, features: Floats, owner: Ints, is_used: Mask) -> Pairs:
        """Return the pairs of observations with these features, (n, p)."""
        first, second = np.tril_indices(len(features), -1)
        columns = np.flatnonzero(is_used)
        deltas = np.empty((len(columns), len(first)))
        for delta, j in zip(deltas, columns, strict=True):
            part = features[:, owner == j]
            delta[:] = squared_distances(part, part)[first, second]
        return cls(first, second, deltas, owner, columns)

    @property
    def middle(self) -> float:
        """The middle of the prior of the log length scales."""
        return math.log(math.sqrt(max(len(self.columns), 1)) / 2)

    def scale(self, log_lengths: Sequence[float]) -> Floats:  # (d,) -> (p,)
        """Return 1 / length scale of each feature, 0 where its column has no part."""
        scale = np.zeros(len(self.owner))
        for j, log_length in zip(self.columns, log_lengths, strict=True):
            scale[self.owner == j] = math.exp(-log_length)
        return scale

    def squared_distances(self, log_lengths: Floats) -> Floats:  # (d,) -> (P,)
        """Return the squared distance of each pair."""
        squares: Floats = np.exp(-2.0 * log_lengths) @ self.deltas
        return squares

    def factor(self, off_diagonal: Floats, diagonal: Floats | float) -> Floats:  # (n, n)
        """Return the lower Cholesky factor of a covariance."""
        n = int(self.first[-1]) + 1 if len(self.first) else 1
        covariance = np.zeros((n, n))
        covariance[self.first, self.second] = off_diagonal
        np.fill_diagonal(covariance, diagonal)
        return np.asarray(np.linalg.cholesky(covariance))  # which looks at the lower half alone

    def by_log_lengths(self, log_lengths: Floats, weighted: Floats) -> Floats:  # (d,), (P,)
        """Return the sums over all pairs of what is to be multiplied by delta_j / l_j^2."""
        return np.asarray(np.exp(-2.0 * log_lengths) * (self.deltas @ weighted))


def minimum(
    loss: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    bounds: Sequence[tuple[float, float]],
) -> Floats:
    """Return where a loss with a gradient is smallest, near enough for a model's settings."""
    from scipy.optimize import fmin_l_bfgs_b  # here: it takes half as long to import as Optuna

    found, _, _ = fmin_l_bfgs_b(loss, start, bounds=bounds, factr=1e11, maxiter=50)
    return np.asarray(found)


def _most_probable(pairs: Pairs, y: Floats) -> Floats:  # (d + 1,)
    """Return the logarithms of the length scales and of the noise."""
    d, middle = len(pairs.columns), pairs.middle
    start = np.append(np.full(d, middle), NOISE)
    bounds = [LENGTHS] * d + [NOISES]
    return minimum(lambda theta: _negative_log_posterior(theta, pairs, y), start, bounds)


def _negative_log_posterior(theta: Floats, pairs: Pairs, y: Floats) -> tuple[float, Floats]:
    """Return what is to be minimised, and its gradient."""
    n, log_lengths, noise = len(y), theta[:-1], math.exp(theta[-1])
    k, slope = matern_with_slope(pairs.squared_distances(log_lengths))
    factor = pairs.factor(k, 1.0 + noise)
    alpha = cho_solve((factor, True), y, check_finite=False)
    amplitude = (float(y @ alpha) + 6.0) / (n + 6.0)
    W = inverse(factor) - np.outer(alpha, alpha) / amplitude
    off = theta - np.append(np.full(len(log_lengths), pairs.middle), NOISE)
    from_prior = off / np.append(np.ones(len(log_lengths)), NOISE_SPREAD**2)
    value = (n / 2 + 3) * math.log(amplitude) + float(np.log(np.diagonal(factor)).sum())
    gradient = pairs.by_log_lengths(log_lengths, W[pairs.first, pairs.second] * slope)
    gradient = np.append(gradient, noise / 2 * np.trace(W)) + from_prior
    return value + float(off @ from_prior) / 2, gradient


def solved(factor: Floats, right: Floats) -> Floats:  # (n, n), (n, ...) -> (n, ...)
    """Return C^-1 times something, from the lower Cholesky factor of C."""
    if not len(right):
        return right  # older versions of SciPy refuse it
    return np.asarray(cho_solve((factor, True), right, check_finite=False))


def inverse(factor: Floats) -> Floats:  # (n, n)
    """Return the lower half of the inverse of a covariance, from its lower Cholesky factor."""
    found, _ = dpotri(factor, lower=True)
    return np.asarray(found)


def squared_distances(a: Floats, b: Floats) -> Floats:  # (n, p), (k, p) -> (n, k)
    """Return the squared distance of each of a and each of b, scaled features (see `Encoder`)."""
    return next(_squared_distances_in_parts(a, b, len(a)))


def _squared_distances_in_parts(
    a: Floats, b: Floats, size: int
) -> Iterator[Floats]:  # (n, p), (k, p) -> (size, k) each
    """Yield the squared distances of `size` of a at a time, at least once."""
    marks = np.flatnonzero((a[:1] < 0.0).any(axis=0))
    rest = np.delete(np.arange(a.shape[1]), [marks, marks - 1]) if len(marks) else slice(None)
    left, right = _factors(a[:, rest], b[:, rest])
    for i in range(0, max(len(a), 1), max(size, 1)):
        part = slice(i, i + size)
        squares = left[part] @ right
        # Rounding may leave less than 0. The absolute value takes a third of the time of maximum.
        np.abs(squares, out=squares)
        for j in marks:
            squares += _between_choices(a[part, j - 1], b[:, j - 1], -float(a[0, j]))
        yield squares


def _between_choices(a: Floats, b: Floats, scale: float) -> Floats:  # (n,), (k,) -> (n, k)
    """Return 1 for two choices, 0 for the same, 1/2 where one of them is missing; all scaled."""
    differ = np.abs(a[:, None] - b) > scale / 2  # what was scaled and back is not quite a number
    differ_by_half = differ & ((a[:, None] < scale / 2) | (b < scale / 2))
    return np.asarray((differ - 0.5 * differ_by_half) * scale**2)


def _factors(a: Floats, b: Floats) -> tuple[Floats, Floats]:  # (n, p + 2), (p + 2, k)
    """Return two matrices with the product |a|^2 - 2 ab + |b|^2, for each of a and each of b."""
    p = a.shape[1]
    left, right = np.ones((len(a), p + 2)), np.ones((p + 2, len(b)))
    left[:, :p] = a
    np.einsum("ij,ij->i", a, a, out=left[:, p])
    np.multiply(b.T, -2.0, out=right[:p])
    np.einsum("ij,ij->i", b, b, out=right[p + 1])
    return left, right


def _cholesky(covariance: Floats, added: float) -> Floats:  # (n, n)
    """Return the lower factor of a covariance with something added to its diagonal."""
    factor = np.linalg.cholesky(covariance + added * np.eye(len(covariance)))
    return np.asarray(factor, dtype=np.float64)
