r"""ParEGO: expected improvement of a random scalarisation (Knowles 2006).

With random weights v, uniform on the simplex, losses scaled to [0, 1] by the range of the
observations, and rho = 0.05:

    g(f) = max_j v_j f_j + rho sum_j v_j f_j              augmented Chebyshev
    EI(x) = E[max(0, min_i g(f(x_i)) - g(f(x)))]          mean over joint samples of the objectives

The scalarisation is applied to samples of the predictions, so that models of past tasks, which
know nothing of v, are fitted once. All candidates share the normal numbers behind their samples.
max(0, t) is smoothed to tau log(1 + exp(t / tau)), tau = 1e-3, whose logarithm tells candidates
apart where no sample improves.

Shapes: points (n, m) of the observations; means and sds (C, m); normal numbers (S, m).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from metatpe.space import Floats

_RHO = 0.05
_TAU = 1e-3
_N_SAMPLES = 128


@dataclass(frozen=True, eq=False)
class Scalarisation:
    """One scalarisation, and the best that was reached in it."""

    weights: Floats  # (m,)
    low: Floats  # (m,)
    length: Floats  # (m,)
    normal: Floats  # (S, m)
    best: float

    @classmethod
    def of(cls, points: Floats, rng: np.random.Generator) -> Scalarisation:  # (n, m)
        """Return a random scalarisation for observations at `points` of the objective space."""
        m = points.shape[1]
        low, high = points.min(axis=0), points.max(axis=0)
        length = np.where(high > low, high - low, 1.0)
        half = rng.normal(size=(_N_SAMPLES // 2, m))
        weights = rng.dirichlet(np.ones(m))
        best = _chebyshev((points - low) / length, weights).min()
        return cls(weights, low, length, np.vstack([half, -half]), float(best))

    def log_improvement(self, mean: Floats, sd: Floats) -> Floats:  # (C, m), (C, m) -> (C,)
        """Return log EI of some predictions."""
        samples = mean[:, None] + sd[:, None] * self.normal  # (C, S, m)
        gain = self.best - _chebyshev((samples - self.low) / self.length, self.weights)
        found: Floats = logsumexp(_log_softplus(gain / _TAU), axis=1)
        return np.asarray(found + np.log(_TAU / len(self.normal)))


def _chebyshev(losses: Floats, weights: Floats) -> Floats:  # (..., m) -> (...)
    weighted = losses * weights
    scalar: Floats = weighted.max(axis=-1) + _RHO * weighted.sum(axis=-1)
    return scalar


def _log_softplus(t: Floats) -> Floats:
    """Return log log(1 + exp(t)); t itself where exp(t) is next to nothing."""
    softplus = np.logaddexp(0.0, np.maximum(t, -30.0))
    return np.where(t > -30.0, np.log(softplus), t)
