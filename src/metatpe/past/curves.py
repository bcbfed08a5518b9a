"""Learning curves of past trials as one table.

Shape: (r, 2 + m), one row per report: the row of the observation, the step, and the losses, which
may be NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metatpe.space import Floats, Mask


def table_of(curves: Sequence[Mapping[int, Sequence[float]]], directions: Sequence[Any]) -> Floats:
    """Return the curves of observations, in their order."""
    rows = [[i, step, *losses] for i, curve in enumerate(curves) for step, losses in curve.items()]
    return np.array(rows, dtype=np.float64).reshape(-1, 2 + len(directions))


def curves_in(table: Floats) -> dict[int, dict[int, list[float]]]:
    """Return the curves of a table: row of the observation -> step -> losses."""
    curves: dict[int, dict[int, list[float]]] = {}
    for i, step, *losses in table.tolist():
        curves.setdefault(int(i), {})[int(step)] = losses
    return curves


def taken(table: Floats, is_kept: Mask) -> Floats:
    """Return the curves of the observations that are kept, with their new rows."""
    rows = table[:, 0].astype(np.int64)
    new = np.cumsum(is_kept) - 1
    kept = table[is_kept[rows]].copy()
    kept[:, 0] = new[rows[is_kept[rows]]]
    return kept


def check_table(name: str, table: Floats, n: int, m: int) -> None:
    """Refuse a table that does not fit n observations of m losses."""
    if table.ndim != 2 or table.shape[1] != 2 + m:
        raise ValueError(
            f"task {name!r}: curves must have the columns row, step and {m} losses, but have the "
            f"shape {table.shape}."
        )
    row, step = table[:, 0], table[:, 1]
    if not ((row >= 0) & (row < n) & (row % 1 == 0) & (step % 1 == 0)).all():
        raise ValueError(
            f"task {name!r}: curves must name rows from 0 to {n - 1} and whole steps; "
            "correct or drop the others."
        )
