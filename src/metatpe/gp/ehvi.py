r"""Expected hypervolume improvement of independent Gaussian predictions.

The part of the objective space that the front leaves undominated, within the reference point, is
cut into boxes (l, u]; losses are minimised, so that l may be -inf. With psi the expected amount by
which Y ~ N(mean, sd^2) stays below a, h(z) = phi(z) + z Phi(z):

    psi(a) = E[max(0, a - Y)] = sd h((a - mean) / sd)
    EHVI   = sum over boxes of prod_j (psi_j(u_j) - psi_j(l_j))

One objective: one box (-inf, best], and EHVI is the expected improvement. Two: one strip between
each two neighbours of the front (Emmerich et al. 2011, Yang et al. 2019). In general there is one
box per local upper bound of the front (`tpe.boxes`). All in logarithms, because far from the front
the improvement is smaller than any positive number, and still tells candidates apart.

A Gaussian has tails beyond what an objective can be. Where an objective has a hard limit, as the
number of layers has, the search would go to that end of the front again and again. Several
configurations that have the same best value are the sign of a limit: with q_j of them besides the
first, what lies beyond the best value b_j of objective j counts as much as it would be likely if
one of q_j + 1 broke the limit,

    psi_j(-inf) = (1 - 1 / (1 + q_j)) psi_j(b_j)        in place of 0, which it is for q_j = 0

Shapes: front (k, m); means and sds (C, m); boxes' corners (B, m); best and beyond (m,).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, logsumexp, ndtr

from metatpe.space import Floats
from metatpe.tpe.boxes import Bounds
from metatpe.tpe.pareto import ranks

_MAX_TERMS = 2_000_000  # candidates times boxes that are in memory at once


@dataclass(frozen=True, eq=False)
class Boxes:
    """The undominated part of the objective space."""

    lower: Floats  # (B, m), -inf where open
    upper: Floats  # (B, m)
    best: Floats  # (m,), b
    log_beyond: Floats  # (m,), log(1 - 1 / (1 + q))

    @classmethod
    def of(cls, points: Floats, reference: Floats) -> Boxes:  # (n, m), (m,)
        """Return the boxes that are left by the front of some points."""
        inside = points[(points < reference).all(axis=1)]
        front = np.unique(inside[ranks(inside) == 0], axis=0) if len(inside) else inside
        bounds = Bounds.of(reference)
        for point in front:
            bounds, _ = bounds.add(point)
        lower, upper = bounds.lower, bounds.upper
        is_box = (lower < upper).all(axis=1)  # equal coordinates make empty ones
        best = points.min(axis=0, initial=np.inf)
        q = np.maximum(np.count_nonzero(points == best, axis=0) - 1, 0)
        with np.errstate(divide="ignore"):
            return cls(lower[is_box], upper[is_box], best, np.log(q / (1.0 + q)))

    def log_improvement(self, mean: Floats, sd: Floats) -> Floats:  # (C, m), (C, m) -> (C,)
        """Return log EHVI of some predictions."""
        n = max(1, _MAX_TERMS // len(self.lower))
        parts = [slice(i, i + n) for i in range(0, len(mean), n)]
        return np.concatenate([self._log_improvement(mean[part], sd[part]) for part in parts])

    def _log_improvement(self, mean: Floats, sd: Floats) -> Floats:
        total = np.zeros((len(mean), len(self.lower)))
        for j in range(mean.shape[1]):
            # The corners of boxes are few different numbers.
            corners, index = np.unique([self.lower[:, j], self.upper[:, j]], return_inverse=True)
            log_psi = _log_psi(corners, mean[:, j, None], sd[:, j, None])
            if np.isfinite(self.log_beyond[j]) and corners[0] == -np.inf:
                at_best = _log_psi(self.best[j], mean[:, j], sd[:, j])
                log_psi[:, 0] = at_best + self.log_beyond[j]
            lower, upper = log_psi[:, index.reshape(2, -1)].transpose(1, 0, 2)
            with np.errstate(divide="ignore"):
                total += upper + np.log1p(-np.exp(np.minimum(lower - upper, 0.0)))
        with np.errstate(divide="ignore"):
            found: Floats = logsumexp(total, axis=1)
        return found


def _log_psi(a: Floats, mean: Floats, sd: Floats) -> Floats:
    """Return log E[max(0, a - Y)]."""
    z = (a - mean) / sd
    found: Floats = np.log(sd) + log_h(z)
    return found


def log_h(z: Floats) -> Floats:
    """Return log(phi(z) + z Phi(z)), also where that is smaller than any number."""
    near, far = np.maximum(z, -1.0), np.minimum(z, -1.0)
    log_near = np.log(np.exp(_log_phi(near)) + near * ndtr(near))
    # phi + z Phi = phi (1 - |z| Phi / phi), and Phi / phi = sqrt(pi / 2) erfcx(|z| / sqrt(2)).
    mills = np.sqrt(np.pi / 2) * erfcx(-far / np.sqrt(2))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Beyond -1e4 the difference is all rounding; there it is 1 / z^2.
        log_part = np.where(far > -1e4, np.log1p(far * mills), -2.0 * np.log(-far))
        found: Floats = np.where(z < -1.0, _log_phi(far) + log_part, log_near)
    return found


def _log_phi(z: Floats) -> Floats:
    log_phi: Floats = -0.5 * (z * z + np.log(2 * np.pi))
    return log_phi
