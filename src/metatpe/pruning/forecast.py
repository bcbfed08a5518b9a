r"""What becomes of a trial in a position: three regressions on the positions of past trials.

With f the rank, best, progress and size of a position at column g of the grid (see `positions`),
and its terms

    z = (f - middle) / spread, clipped to [-3, 3],   x = (1, z_i, z_i z_j for i <= j)

each column has a logistic regression for the probability p of ending among the best, and ridge
regressions for how the outcome differs from the level, and the rank two columns ahead from that:

    logit p = logit b + alpha^T x       b the probability of a new trial,  alpha ~ N(0, I / tau)
    outcome = level + gamma^T x + e,    rank ahead = rank + gamma'^T x + e'
    variance of e = max(v / 4, v + delta^T x),  of e' likewise        gamma, delta ~ N(0, I)

v is the mean of the squared residuals, and delta is fitted to these minus v. A position counts
with its weight in trials.

tau maximises the evidence: where curves say nothing about the end, it is large, p is b, and nobody
is stopped. With S the covariance of alpha given tau, it is found by repeating

    tau = (K - tau trace(S)) / |alpha|^2

A prediction is uncertain by s^2 = x^T S x, so alpha^T x is divided by sqrt(1 + pi s^2 / 8), as for
the mean of a logistic function. With few trials, p stays near b.

Shapes: features (n, G, 5), terms (n, K), alpha, gamma and delta (K,).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from metatpe.pruning.curves import SHARES
from metatpe.pruning.positions import LEVEL, N_FEATURES, SIZE, Positions
from metatpe.space import Floats, Mask

AHEAD = 2  # columns; how far a position is followed to see whether past studies predict it
# Of rank, best, progress and size, roughly, over the positions of a study of 100 trials.
_MIDDLE: Floats = np.array([-0.5, -0.5, 0.2, 3.5])
_SPREAD: Floats = np.array([1.5, 1.5, 0.3, 1.0])
_LARGEST_Z = 3.0
_PRODUCTS = np.triu_indices(len(_MIDDLE))
_UNKNOWN = 0.5  # the deviation of what nothing is known of
_TAU = 5.0  # where the search for it begins
_TAUS = (0.3, 1e4)
_N_ROUNDS = 10  # of that search
_N_STEPS = 30  # of Newton's method
_LARGEST_STEP = 4.0  # in log odds, so that it does not overshoot


@dataclass(frozen=True)
class Forecast:
    """What is expected of a trial."""

    ratio: float  # probability of ending among the best, divided by that of a new trial
    mean: float  # of the outcome
    deviation: float


class Forecaster:
    """The regressions of each column, fitted to positions with known outcomes when asked for."""

    def __init__(self, sources: Sequence[Positions]) -> None:
        nothing = Positions(np.empty((0, len(SHARES), N_FEATURES)), np.empty(0), np.empty(0))
        sources = [nothing, *sources]
        self._features = np.concatenate([s.features for s in sources])
        self._outcome = np.concatenate([s.outcome for s in sources])
        self._base = np.concatenate([s.base for s in sources])
        self._weight = np.concatenate([np.full(len(s.outcome), s.weight) for s in sources])
        sizes = self._features[..., SIZE]
        self._largest = float(sizes[~np.isnan(sizes)].max(initial=0.0))
        self._columns: dict[int, _Column] = {}

    def _column(self, g: int) -> _Column:
        """Return the regressions at a column of the grid."""
        if g not in self._columns:
            here = self._features[:, g]
            ahead = self._features[:, min(g + AHEAD, len(SHARES) - 1)]
            known = ~np.isnan(here).any(axis=1)
            seen = known & ~np.isnan(ahead[:, 0])
            terms, weight = _terms(here[known]), self._weight[known]
            self._columns[g] = _Column(
                _Logistic.of(terms, self._outcome[known] < 0.0, self._base[known], weight),
                _Ridge.of(terms, self._outcome[known] - here[known, LEVEL], weight),
                _Ridge.of(_terms(here[seen]), (ahead - here)[seen, 0], self._weight[seen]),
            )
        return self._columns[g]

    def forecast(self, features: Floats, column: int, base: float) -> Forecast:
        """Return what becomes of a trial with the features (5,) at a column of the grid."""
        terms, own = self._terms_of(features), self._column(column)
        change, variance = own.outcome.predict(terms)
        mean = float(features[LEVEL]) + change
        probability = own.chance.predict(terms, base)
        return Forecast(float(probability / base), mean, float(np.sqrt(variance)))

    def next_rank(self, features: Floats, column: int) -> tuple[float, float] | None:
        """Return mean and variance of the rank `AHEAD` columns later; None without positions."""
        own = self._column(column).change
        if own.n_trials < 1.0:
            return None
        mean, variance = own.predict(self._terms_of(features))
        return float(features[0]) + mean, variance

    def _terms_of(self, features: Floats) -> Floats:  # (5,) -> (K,)
        capped = features.copy()
        # A study that is longer than all past ones is compared with their largest sizes.
        capped[SIZE] = min(capped[SIZE], self._largest)
        return np.asarray(_terms(capped[None])[0])


class _Column(NamedTuple):
    """The regressions at one column of the grid."""

    chance: _Logistic
    outcome: _Ridge  # relative to the level
    change: _Ridge  # of the rank


@dataclass(frozen=True, eq=False)
class _Logistic:
    """A logistic regression and the uncertainty of its coefficients."""

    mean: Floats  # (K,), alpha
    covariance: Floats  # (K, K), of alpha
    tau: float

    @classmethod
    def of(cls, terms: Floats, is_best: Mask, base: Floats, weight: Floats) -> _Logistic:
        """Return the most probable one, with the precision that explains the positions best.

        Args:
            terms: (n, K).
            is_best: (n,), which ended among the best.
            base: (n,), the probability of a new trial.
            weight: (n,).
        """
        tau, mean = _TAU, np.zeros(terms.shape[1])
        for _ in range(_N_ROUNDS):
            mean, covariance = _most_probable(mean, tau, terms, is_best, logit(base), weight)
            n_determined = len(mean) - tau * float(np.trace(covariance))
            last, tau = tau, float(np.clip(n_determined / max(float(mean @ mean), 1e-12), *_TAUS))
            if abs(math.log(tau / last)) < 0.01:
                break
        return cls(mean, covariance, last)

    def predict(self, terms: Floats, base: float) -> float:  # (K,)
        """Return the probability; what is uncertain moves it less from that of a new trial."""
        variance = float(terms @ self.covariance @ terms)
        certainty = 1.0 / math.sqrt(1.0 + math.pi / 8.0 * variance)
        return float(expit(logit(base) + certainty * float(terms @ self.mean)))


def _most_probable(
    alpha: Floats, tau: float, terms: Floats, is_best: Mask, log_odds: Floats, weight: Floats
) -> tuple[Floats, Floats]:  # (K,), (K, K)
    """Return mean and covariance of alpha, by Newton's method from there."""
    prior = tau * np.eye(len(alpha))
    for _ in range(_N_STEPS):
        p = expit(log_odds + terms @ alpha)
        precision = (terms * (weight * p * (1.0 - p))[:, None]).T @ terms + prior
        gradient = terms.T @ (weight * (is_best - p)) - tau * alpha
        step = np.linalg.solve(precision, gradient)
        largest = float(np.abs(terms @ step).max(initial=0.0))
        alpha = alpha + step * min(1.0, _LARGEST_STEP / max(largest, _LARGEST_STEP))
        if largest < 1e-3:
            break
    return alpha, np.asarray(np.linalg.inv(precision), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Ridge:
    """A ridge regression, and one of its squared residuals."""

    mean: Floats  # (K,), gamma
    spread: Floats  # (K,), delta
    average: float  # v
    n_trials: float

    @classmethod
    def of(cls, terms: Floats, y: Floats, weight: Floats) -> _Ridge:  # (n, K), (n,), (n,)
        """Return the most probable one."""
        weighted = terms * weight[:, None]
        precision = weighted.T @ terms + np.eye(terms.shape[1])
        mean = np.asarray(np.linalg.solve(precision, weighted.T @ y), dtype=np.float64)
        squares = (y - terms @ mean) ** 2
        n_trials = float(weight.sum())
        average = float(weight @ squares + _UNKNOWN**2) / (n_trials + 1.0)  # one more, unknown
        spread = np.linalg.solve(precision, weighted.T @ (squares - average))
        return cls(mean, np.asarray(spread, dtype=np.float64), average, n_trials)

    def predict(self, terms: Floats) -> tuple[float, float]:  # (K,)
        """Return the mean and the variance."""
        variance = max(self.average / 4.0, self.average + float(terms @ self.spread))
        return float(terms @ self.mean), variance


def _terms(features: Floats) -> Floats:  # (n, 5) -> (n, K)
    z = np.clip((features[:, :LEVEL] - _MIDDLE) / _SPREAD, -_LARGEST_Z, _LARGEST_Z)
    products = z[:, _PRODUCTS[0]] * z[:, _PRODUCTS[1]]
    return np.hstack([np.ones((len(z), 1)), z, products])
