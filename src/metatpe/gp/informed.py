r"""A Gaussian process of one objective of a study that past tasks inform. Not in the paper.

The models of M past tasks, fitted once, predict mu_1(x), ..., mu_M(x). How far each of them holds
in the study is a coefficient among the unknowns, like the study's own part g. A coefficient has a
part b_m that is the same everywhere and a smaller part h_m that varies in the space:

    y_i = c + sum_m (b_m + h_m(x_i)) mu_m(x_i) + g(x_i) + noise of variance a^2 s^2 + v_i
    b_m ~ N(b / M, r b^2 / M),   h_m ~ GP(0, 0.3 b^2 / M k),   g ~ GP(0, a^2 k),   c ~ N(0, 25)
    b^-2 = var_i(mean_m mu_m(x_i)) + 0.3                   y standardised, k as in `process`

Before the first observation all past tasks have the same coefficient, so that together they
explain the spread of the study. b is larger than 1 where the study's observations are all good in
the past tasks: there they spread less than in the study, where they are standardised (0.3 is the
part of the spread that the past does not explain). For the same reason the prior of c is wide:
the mean of such observations is far from the mean of the space. Then every observation enters one
posterior: a task that fits keeps its coefficient, that of an unrelated task moves towards 0, a
reversed task gets a negative one, and g learns what no past task explains. r is learned: it says
how far the coefficients are from b / M.

v_i is the variance of an observation that is an expectation (a trial that was pruned), else 0.

Everything but the settings is Gaussian. With Phi the past's predictions at the observations, o the
product entry by entry, and P = b^2 / M Phi Phi^T,

    y ~ N(Phi b_0, C),   b_0 = b / M,   C = 25 + r P + (a^2 + 0.3 P) o K + a^2 s^2 I + V
    mean(x) = phi(x) b_0 + C(x, X) alpha,   alpha = C^-1 (y - Phi b_0)
    E[b_m | y] = b_0 + r b^2 / M Phi_m^T alpha
    E[h_m(x) | y] = 0.3 b^2 / M k(x, X) (Phi_m o alpha)

and the settings l, s^2, a^2 and r maximise the posterior density: priors of l and s^2 as in
`process`, log a^2 ~ N(0, 1), log r ~ N(0, 2^2). With W = C^-1 - alpha alpha^T, the derivative of
its negative logarithm by a setting t is 1/2 sum(W o dC / dt).

Shapes: features (n, p), y (n,), Phi (n, M).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from metatpe.gp.kernels import matern, matern_with_slope
from metatpe.gp.process import (
    LEAST_NOISE,
    LENGTHS,
    NOISE,
    NOISE_SPREAD,
    NOISES,
    GaussianProcess,
    Pairs,
    fitted_to,
    inverse,
    minimum,
    squared_distances,
)
from metatpe.space import Floats, Ints, Mask

_UNEXPLAINED = 0.3  # part of the spread that the past does not explain
_OFFSET = 25.0  # the variance of c
_LOCAL = 0.3  # the variance of h_m, relative to that of b_m at r = 1
_AMPLITUDE, _AMPLITUDE_SPREAD = 0.0, 1.0  # the prior of log a^2
_MOVES, _MOVES_SPREAD = 0.0, 2.0  # the prior of log r
_BOUNDS = (math.log(1e-3), math.log(1e2))  # of log a^2 and of log r
_JITTER = 1e-6


class Settings(NamedTuple):
    """What is fitted, and what is known before."""

    scale: Floats  # (p,), 1 / length scale of each feature
    noise: float  # s^2
    amplitude: float  # a^2
    moves: float  # r
    believed: float  # b

    def covariance(self, k: Floats, explained: Floats, others: Floats) -> Floats:
        """Return that of y, without its noise.

        Args:
            k: (n, q), the correlation of g at some points and at some others.
            explained: (n, M), what the past tasks predict at the points.
            others: (q, M), at the others.
        """
        past = _of_the_past(explained, others, self.believed)
        return _OFFSET + self.moves * past + (self.amplitude + _LOCAL * past) * k


@dataclass(frozen=True, eq=False)
class InformedProcess:
    """A fitted process: what is needed to predict."""

    past: Sequence[GaussianProcess]  # M
    settings: Settings
    features: Floats  # (n, p)
    y: Floats  # (n,)
    explained: Floats  # (n, M), Phi
    variance: Floats  # (n,), of observations that are expectations, besides the noise
    factor: Floats  # (n, n), lower Cholesky factor of C
    alpha: Floats  # (n,), C^-1 (y - Phi b_0)

    @classmethod
    def of(
        cls,
        past: Sequence[GaussianProcess],
        features: Floats,
        explained: Floats,  # what `means` returns for them
        y: Floats,
        settings: Settings,
        variance: Floats | None = None,  # besides the noise, of what is only expected
        n_sure: int = 0,
    ) -> InformedProcess:
        """Return the process with these observations, the last `n_sure` without noise."""
        variance = np.zeros(len(y)) if variance is None else variance
        scale, noise, amplitude, _, believed = settings
        points = features * scale
        k = matern(squared_distances(points, points))
        C = settings.covariance(k, explained, explained)
        is_noisy = np.arange(len(y)) < len(y) - n_sure
        C[np.diag_indices(len(y))] += amplitude * noise * is_noisy + variance + _JITTER
        factor = np.asarray(np.linalg.cholesky(C))
        rest = y - believed * _mean_over_tasks(explained)
        alpha = cho_solve((factor, True), rest, check_finite=False) if len(y) else rest
        return cls(past, settings, features, y, explained, variance, factor, alpha)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:  # (C, p) -> (C,), (C,)
        """Return the mean and the variance at some points."""
        scale, _, amplitude, moves, believed = self.settings
        explained = means(self.past, features)
        mean = believed * _mean_over_tasks(explained)
        past = believed**2 * _mean_over_tasks(explained**2)
        variance = _OFFSET + amplitude + (moves + _LOCAL) * past
        if not len(self.y):
            return mean, variance
        k = matern(squared_distances(features * scale, self.features * scale))
        cross = self.settings.covariance(k, explained, self.explained)
        root = solve_triangular(self.factor, cross.T, lower=True, check_finite=False)
        variance = np.maximum(variance - np.einsum("ij,ij->j", root, root), 1e-12)
        return mean + cross @ self.alpha, variance

    def believing(self, features: Floats) -> InformedProcess:  # (r, p)
        """Return the process with its own mean at some points for the truth there.

        Without noise: another worker that evaluates the same once more would gain nothing.
        """
        return InformedProcess.of(
            self.past,
            np.vstack([self.features, features]),
            np.vstack([self.explained, means(self.past, features)]),
            np.concatenate([self.y, self.predict(features)[0]]),
            self.settings,
            np.append(self.variance, np.zeros(len(features))),
            n_sure=len(features),
        )

    @property
    def left_out_mean(self) -> Floats:  # (n,)
        """The mean at each observation, given the others alone."""
        return self.y - self.alpha / np.diagonal(inverse(self.factor))

    @property
    def coefficients(self) -> Floats:  # (M,)
        """How far each past task holds: the posterior mean of b_m + h_m, over the observations."""
        if not len(self.y):
            return np.full(len(self.past), self.settings.believed / max(len(self.past), 1))
        return np.asarray(self._own_and_coefficients[1].mean(axis=0))

    @property
    def shares(self) -> Floats:  # (1 + M,)
        """How much of the prediction comes from the study's own part, and from each past task.

        The spreads over the observations of g and of (b_m + h_m) mu_m; the study alone where there
        is no spread. Without an observation the past tasks alone, to the same extent.
        """
        if self.past and not len(self.y):
            return np.append(0.0, np.full(len(self.past), 1.0 / len(self.past)))
        own, coefficients = self._own_and_coefficients
        parts = np.column_stack([own, coefficients * self.explained])
        spread = parts.std(axis=0) if len(parts) else np.zeros(1)
        return np.asarray(spread / spread.sum()) if spread.any() else np.eye(1, len(spread))[0]

    @property
    def _own_and_coefficients(self) -> tuple[Floats, Floats]:  # (n,), (n, M)
        """The posterior means of g and of b_m + h_m at the observations."""
        m, (scale, _, amplitude, moves, believed) = max(len(self.past), 1), self.settings
        points = self.features * scale
        k = matern(squared_distances(points, points))
        by_point = self.explained * self.alpha[:, None]  # (n, M)
        moved = moves * by_point.sum(axis=0) + _LOCAL * (k @ by_point)
        return amplitude * (k @ self.alpha), believed / m + believed**2 / m * moved


def inform(
    past: Sequence[GaussianProcess],
    features: Floats,
    scales: Sequence[Floats],
    owner: Ints,
    is_used: Mask,
    variances: Sequence[Floats] = (),
) -> list[InformedProcess]:
    """Return the process whose settings are most probable, one for each scale of the losses.

    Args:
        past: The models of the past tasks.
        features: (n, p), of the observations.
        scales: (n,) each, what was observed, standardised.
        owner: (p,), the column of each feature.
        is_used: (d,), which columns have a part.
        variances: (n,) each, of what is only expected, on the scales; left out, all was seen.
    """
    explained = means(past, features)
    variances = variances or [np.zeros(len(features))] * len(scales)
    spread = float(np.var(_mean_over_tasks(explained))) if len(features) else 1.0 - _UNEXPLAINED
    believed = 1.0 / math.sqrt(spread + _UNEXPLAINED)
    if not len(features):
        amplitude, moves = math.exp(_AMPLITUDE), math.exp(_MOVES)
        settings = Settings(np.zeros(len(owner)), LEAST_NOISE, amplitude, moves, believed)
        return [InformedProcess.of(past, features, explained, y, settings) for y in scales]
    some = fitted_to(len(features))
    pairs = Pairs.of(features[some], owner, is_used)
    found, theta = [], None
    for y, variance in zip(scales, variances, strict=True):
        rest = y - believed * _mean_over_tasks(explained)
        loss = _Loss(pairs, rest[some], explained[some], believed, variance[some])
        theta = loss.minimum(theta)  # from the last one, which is near on another scale
        *log_lengths, log_noise, log_amplitude, log_moves = theta
        settings = Settings(
            pairs.scale(log_lengths),
            math.exp(log_noise),
            math.exp(log_amplitude),
            math.exp(log_moves),
            believed,
        )
        found.append(InformedProcess.of(past, features, explained, y, settings, variance))
    return found


class _Loss:
    """The negative log posterior density of log l, log s^2, log a^2 and log r."""

    def __init__(
        self,
        pairs: Pairs,
        rest: Floats,
        explained: Floats,
        believed: float,
        variance: Floats | float = 0.0,
    ) -> None:
        self._pairs, self._rest = pairs, rest  # rest: y - Phi b_0
        past = _of_the_past(explained, explained, believed)
        self._between, self._same = past[pairs.first, pairs.second], np.diagonal(past)
        self._known = _OFFSET + variance + _JITTER
        lengths = np.full(len(pairs.columns), pairs.middle)
        self._middle = np.append(lengths, [NOISE, _AMPLITUDE, _MOVES])
        spreads = [NOISE_SPREAD, _AMPLITUDE_SPREAD, _MOVES_SPREAD]
        self._spread = np.append(np.ones(len(lengths)), spreads)

    def minimum(self, start: Floats | None = None) -> Floats:  # (d + 3,)
        """Return the most probable settings; the search begins in the middle of their priors."""
        bounds = [LENGTHS] * len(self._pairs.columns) + [NOISES, _BOUNDS, _BOUNDS]
        return minimum(self, self._middle if start is None else start, bounds)

    def __call__(self, theta: Floats) -> tuple[float, Floats]:  # (d + 3,)
        """Return the loss and its gradient."""
        pairs, log_lengths = self._pairs, theta[:-3]
        noise, amplitude, moves = np.exp(theta[-3:])
        k, slope = matern_with_slope(pairs.squared_distances(log_lengths))
        local = amplitude + _LOCAL * self._between
        own = amplitude * (1.0 + noise) + (moves + _LOCAL) * self._same
        factor = pairs.factor(_OFFSET + moves * self._between + local * k, own + self._known)
        alpha = cho_solve((factor, True), self._rest, check_finite=False)
        W = inverse(factor) - np.outer(alpha, alpha)  # the lower half
        between, same = W[pairs.first, pairs.second], np.diagonal(W)
        by_lengths = pairs.by_log_lengths(log_lengths, local * between * slope)
        by_noise = amplitude * noise * same.sum() / 2
        by_amplitude = amplitude * (between @ k + (1.0 + noise) * same.sum() / 2)
        by_moves = moves * (between @ self._between + same @ self._same / 2)
        off = theta - self._middle
        from_prior = off / self._spread**2
        log_root = float(np.log(np.diagonal(factor)).sum())
        value = float(self._rest @ alpha) / 2 + log_root + float(off @ from_prior) / 2
        return value, np.append(by_lengths, [by_noise, by_amplitude, by_moves]) + from_prior


def means(past: Sequence[GaussianProcess], features: Floats) -> Floats:  # (C, p) -> (C, M)
    """Return what each past task predicts."""
    explained = np.empty((len(features), len(past)))
    for m, model in enumerate(past):
        explained[:, m] = model.mean(features)
    return explained


def _of_the_past(A: Floats, B: Floats, believed: float) -> Floats:  # (n, M), (k, M) -> (n, k)
    """Return P at points with these predictions."""
    covariance: Floats = believed**2 / max(A.shape[1], 1) * (A @ B.T)
    return covariance


def _mean_over_tasks(explained: Floats) -> Floats:  # (n, M) -> (n,)
    """Return the mean over the past tasks, 0 where there is none."""
    n_tasks = max(explained.shape[1], 1)
    return np.asarray(explained.sum(axis=1) / n_tasks)
