"""Which configurations were evaluated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from metatpe.space import Columns, Floats, Mask

CellRow = NDArray[np.int32]  # (d,), the cell of each parameter of a configuration, -1 if unused


_PER_RANGE = 1_000_000  # values of a continuous parameter that are told apart


class Seen:
    """The configurations that were evaluated.

    They are compared on the parameters that were used. A configuration that agrees with an earlier
    one on all that the earlier one used takes the same branches: it is the same evaluation. Values
    of a continuous parameter agree up to rounding: a search that ends at a bound would evaluate it
    over and over.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._discrete: list[int] = np.flatnonzero(columns.n_cells > 0).tolist()
        self._continuous: list[int] = np.flatnonzero(columns.n_cells == 0).tolist()
        self._by_active: dict[bytes, tuple[Mask, set[bytes]]] = {}

    def add(self, X: Floats) -> None:  # (n, d)
        """Remember complete or conditional configurations."""
        for row in self._cells(X):
            active = row >= 0
            key = active.tobytes()
            if not active.any():
                continue
            if self._by_active.keys() - {key}:  # no branches in most spaces: nothing to compare
                if self._is_aborted(row, active):
                    continue
                self._forget_outdated(row, active)
            _, rows = self._by_active.setdefault(key, (active, set()))
            rows.add(row[active].tobytes())

    def _is_aborted(self, row: CellRow, active: Mask) -> bool:
        """Return whether an earlier configuration agrees with this one and used more parameters.

        Then this is no branch of its own, but a trial that ended before it had asked for all.
        """
        for more, rows in self._by_active.values():
            if more.sum() > active.sum() and more[active].all():
                earlier = np.frombuffer(b"".join(rows), dtype=np.int32).reshape(len(rows), -1)
                if (earlier[:, active[more]] == row[active]).all(axis=1).any():
                    return True
        return False

    def _forget_outdated(self, row: CellRow, active: Mask) -> None:
        """Forget what was evaluated before a parameter was added to the objective.

        A configuration that agrees with an earlier one and yet uses more parameters shows that
        this is no branch: the earlier ones were evaluations of another objective.
        """
        for key, (fewer, rows) in list(self._by_active.items()):
            if fewer.sum() < active.sum() and active[fewer].all() and row[fewer].tobytes() in rows:
                del self._by_active[key]

    @property
    def has_complete(self) -> bool:
        """Whether some configuration used all parameters, so that they are no branches."""
        return any(active.all() for active, _ in self._by_active.values())

    def has(self, X: Floats, *, complete_only: bool = False) -> Mask:  # (C, d) -> (C,)
        """Return which of complete configurations repeat a remembered (complete) one."""
        found = np.zeros(len(X), dtype=np.bool_)
        if self._by_active:
            cells = self._cells(X)
            for active, rows in self._by_active.values():
                if active.all() or not complete_only:
                    found |= [row in rows for row in _as_bytes(cells[:, active])]
        return found

    def _cells(self, X: Floats) -> NDArray[np.int32]:  # (n, d)
        cells = np.empty(X.shape, dtype=np.int32)
        for j in self._discrete:
            cells[:, j] = self._columns.cells(X[:, j], j)
        rounded = np.rint(X[:, self._continuous] * _PER_RANGE)
        rounded[np.isnan(rounded)] = -1
        cells[:, self._continuous] = rounded
        return cells


def _as_bytes(cells: NDArray[np.int32]) -> Iterator[bytes]:  # (n, k)
    """Yield the bytes of each row: several times as fast as to ask NumPy for row after row."""
    together, size = cells.tobytes(), cells.shape[1] * cells.itemsize
    return (together[i : i + size] for i in range(0, len(together), size))
