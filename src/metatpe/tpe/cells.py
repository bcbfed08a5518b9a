r"""The kernels of discrete columns (see `kde`).

    stepped      the truncated Gaussian's mass in the cell of x / width of the cell
    categorical  K * 0.9 if x and c are the same choice, else K * 0.1/(K - 1)

A column of at most `MAX_CELLS` cells has a table (K, n) of them. A categorical one of more choices
has none (`Choices`): what it needs does not grow with K.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from metatpe.space import MAX_CELLS, Columns, Floats, Ints

OWN_CHOICE = 0.9  # the categorical kernel's mass on its own choice, as in the authors' code
MAX_LOG = 600.0  # exp of more than this is near the end of float64
LOG2_E = math.log2(math.e)
Real = TypeVar("Real", np.float32, np.float64)


def cell_mass(columns: Columns, j: int, cells: Ints, own: Ints, h: Floats | float) -> Floats:
    """Return the mass in some cells of discrete column j of kernels around the values `own`.

    The arguments broadcast. A stepped kernel is not yet cut off at the ends of the column.
    """
    edges, points = columns.edges[j], columns.points[j]
    assert edges is not None
    assert points is not None
    if columns.is_categorical[j]:
        others = (1.0 - OWN_CHOICE) / max(len(points) - 1, 1)
        return np.where(cells == own, OWN_CHOICE, others)
    around = points[own]
    low, high = (edges[cells] - around) / h, (edges[cells + 1] - around) / h
    # On the right of the centre as a difference of right tails: both tails are small numbers.
    return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def has_many_choices(columns: Columns, j: int) -> bool:
    """Return whether a column has so many choices that a row for each of them is too much."""
    return bool(columns.is_categorical[j]) and int(columns.n_cells[j]) > MAX_CELLS


def kernel_mass(columns: Columns, j: int, h: float) -> Floats:  # (K, K)
    """Return the mass in each cell (rows) of the kernel around each value (columns)."""
    each = np.arange(columns.n_cells[j])
    mass = cell_mass(columns, j, each[:, None], each, h)
    normalised: Floats = mass / mass.sum(axis=0)
    return normalised


def log2_in_cells(
    columns: Columns, j: int, cells: Ints, own: Ints, h: Floats
) -> Floats:  # all that fit each other -> the same
    """Return the log2 density in cells of kernels around the values `own`, each with its own h.

    A value of -1 is missing: a factor of one. The same as `kernel_mass` has for one h.
    """
    edges, points = columns.edges[j], columns.points[j]
    assert edges is not None
    assert points is not None
    mass = cell_mass(columns, j, cells, own, h)
    if columns.is_categorical[j]:
        others = (1.0 - OWN_CHOICE) / max(len(points) - 1, 1)
        mass = mass / (OWN_CHOICE + others * (len(points) - 1))
    else:
        around = points[own]
        mass = mass / (ndtr((1.0 - around) / h) - ndtr(-around / h))
    with np.errstate(divide="ignore"):  # many bandwidths away
        log_density = np.maximum(np.log(mass / np.diff(edges)[cells]), -MAX_LOG)
    return np.where(own < 0, 0.0, LOG2_E * log_density)


@dataclass(frozen=True, eq=False)
class Choices:
    """The log2 of the kernels of a categorical column of many choices, without a table of them."""

    own: Ints  # (n,), the choice of each centre, -1 where it is missing
    at_own: float
    elsewhere: float

    @classmethod
    def of(cls, columns: Columns, j: int, own: Ints) -> Choices:
        """Return the kernels around some choices of column j."""
        same, other = log2_in_cells(columns, j, np.array([0, 1]), np.array(0), np.array(1.0))
        return cls(own, float(same), float(other))

    def log2(self, cells: Ints, block: slice, dtype: np.dtype[Real]) -> NDArray[Real]:
        """Return the logs (block, C) of some of the kernels in some cells."""
        own = self.own[block, None]
        values = np.array([self.elsewhere, self.at_own, 0.0], dtype=dtype)
        return values[np.where(own < 0, 2, own == cells)]


Table: TypeAlias = NDArray[Real] | Choices  # log2 of kernels (n) in the cells (K) of a column


def coarse_tables(tables: Mapping[int, Table[np.float64]]) -> dict[int, Table[np.float32]]:
    """Return tables in single precision."""
    return {
        j: table if isinstance(table, Choices) else table.astype(np.float32)
        for j, table in tables.items()
    }
