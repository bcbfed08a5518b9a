r"""A few points of a front that dominate much together: greedy hypervolume subset selection.

With V(S) the volume that the points of S dominate below a reference point r:

    s_k = argmax_x V({s_1, ..., s_{k-1}, x}) - V({s_1, ..., s_{k-1}})       the first of equal ones

V is submodular, so that the first k have at least 1 - 1/e of the largest volume that k points of
the front dominate. What x adds to S is the volume of the part of the undominated boxes (`boxes`)
that x dominates. A new point s takes from each x what both dominate:

    c(x | S + s) = c(x | S) - sum over boxes (l, u] above s of prod_j max(0, u_j - max(l, s, x)_j)

so that one step costs the points times the few boxes above s, not times all boxes.

Shapes: points (n, m), each below the reference point (m,) or level with it.
"""

from __future__ import annotations

import numpy as np

from metatpe.space import Floats, Ints
from metatpe.tpe.boxes import Bounds

# The boxes multiply with the points chosen, the faster the more objectives there are.
_MAX_BOXES = 500
_N_DECIMALS = 9  # so that contributions that are equal but for rounding errors are equal


def greedy_subset(points: Floats, reference: Floats, n: int) -> Ints:  # (n, m), (m,) -> (<= n,)
    """Return the indices of n points that together dominate much, in the order of the choice.

    Fewer, where no other point adds anything or where their boxes have become too many.

    Args:
        points: Of one front, in units in which the reference point is about 1.
        reference: The reference point.
        n: How many are wanted at most.
    """
    bounds, columns = Bounds.of(reference), np.ascontiguousarray(points.T)
    added = np.prod(reference - points, axis=1)
    chosen: list[int] = []
    while len(chosen) < n and len(bounds) <= _MAX_BOXES:
        rounded = added.round(_N_DECIMALS)
        i = int(rounded.argmax())
        if rounded[i] <= 0.0:
            break
        chosen.append(i)
        bounds, above = bounds.add(points[i])
        added -= _overlaps(columns, np.maximum(above.lower, points[i]), above.upper)
    return np.array(chosen, dtype=np.int64)


def _overlaps(columns: Floats, lower: Floats, upper: Floats) -> Floats:  # (m, n), (B, m) -> (n,)
    """Return the volume that each point dominates of boxes that do not overlap."""
    near = np.flatnonzero((columns < upper.max(axis=0)[:, None]).all(axis=0))
    volume = np.ones((len(upper), len(near)))
    for f, low, high in zip(columns[:, near], lower.T, upper.T, strict=True):
        side = np.maximum(low[:, None], f)
        np.subtract(high[:, None], side, out=side)
        volume *= np.maximum(side, 0.0, out=side)
    total = np.zeros(columns.shape[1])
    total[near] = volume.sum(axis=0)
    return total
