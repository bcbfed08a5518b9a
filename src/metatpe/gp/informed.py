r"""A Gaussian process of one objective of a study that past tasks inform. Not in the paper.

The models of M past tasks, fitted once, predict mu_1(x), ..., mu_M(x). How far each of them holds
in the study is a coefficient among the unknowns, like the study's own part g:

    y_i = c + sum_m b_m mu_m(x_i) + g(x_i) + noise of variance a^2 s^2 + v_i  y standardised
    b_m ~ N(b / M, b^2 / M),   c ~ N(0, 1),   g ~ GP(0, a^2 k)                k as in `process`
    b^-2 = var_i(mean_m mu_m(x_i)) + 0.3

Before the first observation all past tasks have the same coefficient, so that together they
explain the spread of the study. b is larger than 1 where the study's observations are all good in
the past tasks: there they spread less than in the study, where they are standardised (0.3 is the
part of the spread that the past does not explain). Then every observation enters one posterior: a
task that fits keeps its coefficient, that of an unrelated task moves towards 0, a reversed task
gets a negative one, and g learns what no past task explains.

v_i is the variance of an observation that is an expectation (a trial that was pruned), else 0.

Everything but g's settings is Gaussian. With Phi the past's predictions at the observations

    y ~ N(Phi b_0, C),   C = a^2 (K + s^2 I) + V + 1 1^T + Phi B Phi^T,   b_0 = b/M, B = b^2/M I
    mean(x)  = phi(x) b_0 + C(x, X) alpha,   alpha = C^-1 (y - Phi b_0)
    E[b | y] = b_0 + B Phi^T alpha

and the settings l, s^2 and a^2 maximise the posterior density: priors of l and s^2 as in
`process`, log a^2 ~ N(log 1/2, 1). With W = C^-1 - alpha alpha^T, the derivative of its negative
logarithm by a setting t is 1/2 sum(W o dC / dt).

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
_LOG_AMPLITUDE = math.log(0.5)  # the middle of its prior
_AMPLITUDES = (math.log(1e-3), math.log(1e2))  # bounds of log a^2
_JITTER = 1e-6


class Settings(NamedTuple):
    """What is fitted, and what is known before."""

    scale: Floats  # (p,), 1 / length scale of each feature
    noise: float  # s^2
    amplitude: float  # a^2
    believed: float  # b


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
        scale, noise, amplitude, believed = settings
        points = features * scale
        C = amplitude * matern(squared_distances(points, points))
        C += _of_the_past(explained, explained, believed)
        is_noisy = np.arange(len(y)) < len(y) - n_sure
        C[np.diag_indices(len(y))] += amplitude * noise * is_noisy + variance + _JITTER
        factor = np.asarray(np.linalg.cholesky(C))
        rest = y - believed * _mean_over_tasks(explained)
        alpha = cho_solve((factor, True), rest, check_finite=False) if len(y) else rest
        return cls(past, settings, features, y, explained, variance, factor, alpha)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:  # (C, p) -> (C,), (C,)
        """Return the mean and the variance at some points."""
        scale, _, amplitude, believed = self.settings
        explained = means(self.past, features)
        mean = believed * _mean_over_tasks(explained)
        variance = amplitude + 1.0 + believed**2 * _mean_over_tasks(explained**2)
        if not len(self.y):
            return mean, variance
        cross = matern(squared_distances(features * scale, self.features * scale))
        cross *= amplitude
        cross += _of_the_past(explained, self.explained, believed)
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
        """How far each past task holds: the posterior mean of b_m."""
        m, believed = max(len(self.past), 1), self.settings.believed
        by_data: Floats = self.explained.T @ self.alpha
        return believed / m + believed**2 / m * by_data

    @property
    def shares(self) -> Floats:  # (1 + M,)
        """How much of the prediction comes from the study's own part, and from each past task.

        The spreads over the observations of g and of b_m mu_m; the study alone where there is no
        spread. Without an observation the past tasks alone, to the same extent.
        """
        if self.past and not len(self.y):
            return np.append(0.0, np.full(len(self.past), 1.0 / len(self.past)))
        from_past = self.coefficients * self.explained  # (n, M)
        points = self.features * self.settings.scale
        own = matern(squared_distances(points, points)) @ self.alpha
        own *= self.settings.amplitude
        parts = np.column_stack([own, from_past])
        spread = parts.std(axis=0) if len(parts) else np.zeros(1)
        return np.asarray(spread / spread.sum()) if spread.any() else np.eye(1, len(spread))[0]


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
        settings = Settings(np.zeros(len(owner)), LEAST_NOISE, math.exp(_LOG_AMPLITUDE), believed)
        return [
            InformedProcess.of(past, features, explained, y, settings, variance)
            for y, variance in zip(scales, variances, strict=True)
        ]
    some = fitted_to(len(features))
    pairs = Pairs.of(features[some], owner, is_used)
    found, theta = [], None
    for y, variance in zip(scales, variances, strict=True):
        rest = y - believed * _mean_over_tasks(explained)
        loss = _Loss(pairs, rest[some], explained[some], believed, variance[some])
        theta = loss.minimum(theta)  # from the last one, which is near on another scale
        *log_lengths, log_noise, log_amplitude = theta
        scale, noise = pairs.scale(log_lengths), math.exp(log_noise)
        settings = Settings(scale, noise, math.exp(log_amplitude), believed)
        found.append(InformedProcess.of(past, features, explained, y, settings, variance))
    return found


class _Loss:
    """The negative log posterior density of log l, log s^2 and log a^2."""

    def __init__(
        self,
        pairs: Pairs,
        rest: Floats,
        explained: Floats,
        believed: float,
        variance: Floats | float = 0.0,
    ) -> None:
        self._pairs, self._rest = pairs, rest  # rest: y - Phi b_0
        fixed = _of_the_past(explained, explained, believed)
        self._between = fixed[pairs.first, pairs.second]
        self._diagonal = np.diagonal(fixed) + variance + _JITTER
        lengths = np.full(len(pairs.columns), pairs.middle)
        self._middle = np.append(lengths, [NOISE, _LOG_AMPLITUDE])
        self._spread = np.append(np.ones(len(lengths)), [NOISE_SPREAD, 1.0])

    def minimum(self, start: Floats | None = None) -> Floats:  # (d + 2,)
        """Return the most probable settings; the search begins in the middle of their priors."""
        bounds = [LENGTHS] * len(self._pairs.columns) + [NOISES, _AMPLITUDES]
        return minimum(self, self._middle if start is None else start, bounds)

    def __call__(self, theta: Floats) -> tuple[float, Floats]:  # (d + 2,)
        """Return the loss and its gradient."""
        pairs, log_lengths = self._pairs, theta[:-2]
        noise, amplitude = math.exp(theta[-2]), math.exp(theta[-1])
        k, slope = matern_with_slope(pairs.squared_distances(log_lengths))
        factor = pairs.factor(
            amplitude * k + self._between, amplitude * (1.0 + noise) + self._diagonal
        )
        alpha = cho_solve((factor, True), self._rest, check_finite=False)
        W = inverse(factor) - np.outer(alpha, alpha)  # the lower half
        between, trace = W[pairs.first, pairs.second], float(np.trace(W))
        by_lengths = pairs.by_log_lengths(log_lengths, amplitude * between * slope)
        by_noise = amplitude * noise * trace / 2
        by_amplitude = amplitude * (float(between @ k) + (1.0 + noise) * trace / 2)
        off = theta - self._middle
        from_prior = off / self._spread**2
        log_root = float(np.log(np.diagonal(factor)).sum())
        value = float(self._rest @ alpha) / 2 + log_root + float(off @ from_prior) / 2
        return value, np.append(by_lengths, [by_noise, by_amplitude]) + from_prior


def means(past: Sequence[GaussianProcess], features: Floats) -> Floats:  # (C, p) -> (C, M)
    """Return what each past task predicts."""
    explained = np.empty((len(features), len(past)))
    for m, model in enumerate(past):
        explained[:, m] = model.mean(features)
    return explained


def _of_the_past(A: Floats, B: Floats, believed: float) -> Floats:  # (n, M), (k, M) -> (n, k)
    """Return the covariance of c + sum_m b_m mu_m at points with these predictions."""
    covariance: Floats = 1.0 + believed**2 / max(A.shape[1], 1) * (A @ B.T)
    return covariance


def _mean_over_tasks(explained: Floats) -> Floats:  # (n, M) -> (n,)
    """Return the mean over the past tasks, 0 where there is none."""
    n_tasks = max(explained.shape[1], 1)
    return np.asarray(explained.sum(axis=1) / n_tasks)
