r"""The part of the objective space that a set of points leaves undominated, as boxes.

Below a reference point r, one box hangs on each local upper bound of the points (Klamroth, Lacour
and Vanderpooten 2015, 2017): a point u that no point of the set is below, and that could not be
larger in any coordinate. It is defined by m points of the set or of the reference's sides: the
j-th has u's coordinate j and is below u in the others. With z_k its k-th defining point, the box
of u begins at

    l_1 = -inf,   l_j = max_{k < j} (z_k)_j

and all boxes together are the undominated part, without overlap. Losses are minimised.

Shapes: a point (m,); corners of boxes (B, m); defining points (B, m, m), z_k in row k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metatpe.space import Floats, Ints, Mask


@dataclass(frozen=True, eq=False)
class Bounds:
    """The local upper bounds of a set of points."""

    upper: Floats  # (B, m)
    defining: Floats  # (B, m, m)

    @classmethod
    def of(cls, reference: Floats) -> Bounds:  # (m,)
        """Return the bounds of the empty set: the reference point alone."""
        m = len(reference)
        return cls(reference[None], np.where(np.eye(m) > 0, reference, -np.inf)[None])

    def __len__(self) -> int:
        return len(self.upper)

    @property
    def lower(self) -> Floats:  # (B, m)
        """Where the boxes begin; -inf where they are open."""
        is_earlier = ~np.tri(self.upper.shape[1], dtype=np.bool_)  # k < j
        lower: Floats = np.where(is_earlier, self.defining, -np.inf).max(axis=1)
        return lower

    def add(self, point: Floats) -> tuple[Bounds, Bounds]:  # (m,)
        """Return the bounds of the set with one more point, and those that it is below.

        The point dominates a part of the boxes of the latter, and of no other.
        """
        is_above = np.all(point < self.upper, axis=1)
        above, kept = self._take(is_above), self._take(~is_above)
        is_other = ~np.eye(len(point), dtype=np.bool_)
        others = np.where(is_other, above.defining, -np.inf).max(axis=1)
        # Coordinate j of a bound moves to the point where its other defining points allow that.
        j, rows = np.nonzero((others <= point).T)
        moved, each = above._take(rows), np.arange(len(rows))
        moved.upper[each, j] = point[j]
        moved.defining[each, j] = point
        upper = np.concatenate([kept.upper, moved.upper])
        return Bounds(upper, np.concatenate([kept.defining, moved.defining])), above

    def _take(self, rows: Ints | Mask) -> Bounds:
        return Bounds(self.upper[rows], self.defining[rows])
