r"""Expected hypervolume improvement of independent Gaussian predictions.

The part of the objective space that the front leaves undominated, within the reference point, is
cut into boxes (l, u]; losses are minimised, so that l may be -inf. With psi the expected amount by
which Y ~ N(mean, sd^2) stays below a, h(z) = phi(z) + z Phi(z):

    psi(a) = E[max(0, a - Y)] = sd h((a - mean) / sd)
    EHVI   = sum over boxes of prod_j (psi_j(u_j) - psi_j(l_j))

One objective: one box (-inf, best], and EHVI is the expected improvement. Two: one strip between
each two neighbours of the front (Emmerich et al. 2011, Yang et al. 2019). In general a box hangs
on each local upper bound of the front (Klamroth, Lacour and Vanderpooten 2015, 2017): a point u
that no point of the front is below, and that could not be larger in any coordinate. It is defined
by m points of the front or of the reference's sides: the j-th has u's coordinate j and is below u
in the others. With z_k its k-th defining point, the box of u begins at

    l_1 = -inf,   l_j = max_{k < j} (z_k)_j

and all boxes together are the undominated part, without overlap.

Where the volume is wanted on another scale than the predictions have, V = T(Y) with T growing and
linear between knots t_0 < t_1 < ..., T(t_k) = a, slopes s_0 below t_0 and s_i from t_{i-1} to t_i,

    psi_V(a) = s_0 psi(t_0) + sum_{i <= k} s_i (psi(t_i) - psi(t_{i-1}))

takes the place of psi, the integral of P(V < v) up to a, and is exact too.

All in logarithms, because far from the front the improvement is smaller than any positive number,
and still tells candidates apart.

Shapes: front (k, m); means and sds (C, m); boxes' corners (B, m); defining points (B, m, m); knots
and slopes (K,).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, logsumexp, ndtr

from metatpe._pareto import ranks
from metatpe.space import Floats

_MAX_TERMS = 2_000_000  # candidates times boxes that are in memory at once
_MAX_BETWEEN = 24  # knots of a scale that are looked at besides the front's


@dataclass(frozen=True, eq=False)
class Scale:
    """A growing map from the scale of predictions to the one on which the volume is wanted.

    Linear between knots; beyond them it goes on as over the first and the last tenth of them.
    """

    knots: Floats  # (K,), growing, at least two
    values: Floats  # (K,), growing

    @classmethod
    def of(cls, predicted: Floats, wanted: Floats) -> Scale:  # (n,), (n,)
        """Return the map through observations that are known on both scales."""
        knots, first = np.unique(predicted, return_index=True)
        values = wanted[first]
        # What differs by rounding alone on one of the scales is the same.
        is_next = np.diff(values, prepend=-np.inf) > 1e-12
        knots, values = knots[is_next], values[is_next]
        if len(knots) < 2:  # nothing is known of the slope
            a, b = (float(x[0]) if len(x) else 0.0 for x in (knots, values))
            return cls(np.array([a, a + 1.0]), np.array([b, b + 1.0]))
        return cls(knots, values)

    def __call__(self, x: Floats) -> Floats:
        """Return the wanted values of predicted ones."""
        return _interpolated(x, self.knots, self.values)

    def log_psi(self, a: Floats, mean: Floats, sd: Floats) -> Floats:  # (B,), (C, 1) each
        """Return log E[max(0, a - T(Y))], (C, B), for growing a, of which -inf may be one."""
        is_finite = np.isfinite(a)
        corners = _interpolated(a[is_finite], self.values, self.knots)
        inner = self.knots[(self.knots > corners[0]) & (self.knots < corners[-1])]
        some = np.linspace(0, len(inner) - 1, min(len(inner), _MAX_BETWEEN)).astype(np.int64)
        knots = np.union1d(corners, inner[some])
        log_pieces = _log_differences(_log_psi(knots, mean, sd))
        with np.errstate(divide="ignore"):
            log_slopes = np.log(np.diff(self(knots)) / np.diff(knots))
        log_pieces += np.append(math.log(_slope(self.knots, self.values)), log_slopes)
        found = np.full((len(mean), len(a)), -np.inf)
        total = np.logaddexp.accumulate(log_pieces, axis=1)
        found[:, is_finite] = total[:, np.searchsorted(knots, corners)]
        return found


def _interpolated(x: Floats, knots: Floats, values: Floats) -> Floats:
    """Return the piecewise linear map through knots, which goes on beyond them."""
    below, above = np.minimum(x - knots[0], 0.0), np.maximum(x - knots[-1], 0.0)
    found: Floats = np.interp(x, knots, values) + _slope(knots, values) * below
    found += _slope(knots[::-1], values[::-1]) * above
    return found


def _slope(knots: Floats, values: Floats) -> float:
    """Return the slope over the first tenth of the knots, two pieces at least."""
    k = min(len(knots) - 1, max(2, len(knots) // 10))
    return float((values[k] - values[0]) / (knots[k] - knots[0]))


@dataclass(frozen=True, eq=False)
class Boxes:
    """The undominated part of the objective space."""

    lower: Floats  # (B, m), -inf where open
    upper: Floats  # (B, m)
    scales: Sequence[Scale] = ()  # m of them; none where predictions are on the same scale

    @classmethod
    def of(
        cls, points: Floats, reference: Floats, scales: Sequence[Scale] = ()
    ) -> Boxes:  # (n, m), (m,)
        """Return the boxes that are left by the front of some points."""
        inside = points[(points < reference).all(axis=1)]
        front = np.unique(inside[ranks(inside) == 0], axis=0) if len(inside) else inside
        upper, defining = _local_upper_bounds(front, reference)
        lower = np.full(upper.shape, -np.inf)
        for j in range(1, len(reference)):
            lower[:, j] = defining[:, :j, j].max(axis=1)
        is_box = (lower < upper).all(axis=1)  # equal coordinates make empty ones
        return cls(lower[is_box], upper[is_box], scales)

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
            psi = self.scales[j].log_psi if self.scales else _log_psi
            log_psi = psi(corners, mean[:, j, None], sd[:, j, None])
            lower, upper = log_psi[:, index.reshape(2, -1)].transpose(1, 0, 2)
            total += _log_difference(upper, lower)
        with np.errstate(divide="ignore"):
            found: Floats = logsumexp(total, axis=1)
        return found


def _local_upper_bounds(front: Floats, reference: Floats) -> tuple[Floats, Floats]:
    """Return the bounds (B, m) and their defining points (B, m, m), one point after the other."""
    m = len(reference)
    upper, defining = reference[None], np.full((1, m, m), -np.inf)
    defining[0, np.arange(m), np.arange(m)] = reference
    for point in front:
        is_above = (point < upper).all(axis=1)
        bounds, points = [upper[~is_above]], [defining[~is_above]]
        for j in range(m):
            others = np.delete(defining[:, :, j], j, axis=1).max(axis=1, initial=-np.inf)
            moved = is_above & (others <= point[j])
            bounds.append(_replaced(upper[moved], j, point[j]))
            points.append(_replaced(defining[moved], j, point))
        upper, defining = np.concatenate(bounds), np.concatenate(points)
    return upper, defining


def _replaced(array: Floats, j: int, value: Floats | float) -> Floats:
    array[:, j] = value
    return array


def _log_difference(larger: Floats, smaller: Floats) -> Floats:
    """Return log(exp(larger) - exp(smaller)); -inf where nothing is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(larger > -np.inf, np.minimum(smaller - larger, 0.0), -np.inf)
        found: Floats = larger + np.log1p(-np.exp(ratio))
    return found


def _log_differences(log: Floats) -> Floats:  # (C, K)
    """Return the logarithms of the first column and of what each of the others adds."""
    added = _log_difference(log[:, 1:], log[:, :-1])
    return np.concatenate([log[:, :1], added], axis=1)


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
