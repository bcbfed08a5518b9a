r"""Search spaces as columns of the unit cube.

Every parameter is a column in [0, 1]; densities are taken against the uniform measure there, so
that a density of one means "nothing known".

    continuous    x = (t(v) - t(low)) / (t(high) - t(low)),  t = log where the distribution says so
    stepped       K cells; a linear grid has equal cells, an integer v on a log scale has the cell
                  [log(v - 1/2), log(v + 1/2)]; x is the position of v inside its cell
    categorical   K equal cells; x is the middle of the cell of the choice. Choices that are
                  sorted numbers, as 16, 32, 64, are stepped: their neighbours are alike

A grid (not a categorical) of more than `MAX_CELLS` values is a continuous column that is rounded
when it is decoded. Missing is NaN: the parameter was not used, or its value does not fit this
space.

Shapes: X is (n, d), one row per configuration, one column per parameter, in the order of
`Space.names`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from metatpe.distributions import Positions, are_same, is_hashable, require_range

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

MAX_CELLS = 256
FEW_CELLS = 16  # above this, densities look cells up instead of multiplying with them
MAX_LISTED = 4096  # configurations of a finite space that are worth listing one by one


@dataclass(frozen=True, eq=False)
class Columns:
    """The kind of each column, which is all that the densities need to know of a space."""

    edges: tuple[Floats | None, ...]  # the K + 1 borders of the cells; None: continuous
    points: tuple[Floats | None, ...]  # the K positions that values of a cell are encoded to
    is_categorical: Mask  # (d,)
    repeats: Mapping[int, Ints] = field(default_factory=dict)  # column -> (K,), see `cells`

    @cached_property
    def n_cells(self) -> Ints:  # (d,), 0: continuous
        return np.array([0 if p is None else len(p) for p in self.points], dtype=np.int64)

    @cached_property
    def layout(self) -> tuple[list[int], list[int], list[int]]:
        """The columns that are continuous, of few cells, and of many."""
        k = self.n_cells
        few = (k > 0) & (k <= FEW_CELLS)
        return _indices(k == 0), _indices(few), _indices(k > FEW_CELLS)

    @cached_property
    def categorical(self) -> list[int]:
        """The columns whose cells have no order."""
        return _indices(self.is_categorical)

    @property
    def is_finite(self) -> bool:
        """Whether there are only finitely many configurations."""
        return bool((self.n_cells > 0).all())

    @property
    def is_listable(self) -> bool:
        """Whether there are so few configurations that all of them can be listed."""
        return self.is_finite and self.n_cells.prod(dtype=np.float64) <= MAX_LISTED

    def list_all(self) -> tuple[Floats, Floats]:  # (S, d), (S,)
        """Return all configurations of a finite space, and the volumes of their cells."""
        points = [p for p in self.points if p is not None]
        widths = [np.diff(e) for e in self.edges if e is not None]
        X = np.stack([g.ravel() for g in np.meshgrid(*points, indexing="ij")], axis=1)
        W = np.stack([g.ravel() for g in np.meshgrid(*widths, indexing="ij")], axis=1)
        return X, W.prod(axis=1)

    def __len__(self) -> int:
        return len(self.edges)

    def take(self, kept: Sequence[int]) -> Columns:
        """Return the columns with the indices `kept`, in that order."""
        key = tuple(kept)
        if key not in self._taken:
            self._taken.clear()  # the last ones asked for are asked for again
            self._taken[key] = Columns(
                edges=tuple(self.edges[j] for j in key),
                points=tuple(self.points[j] for j in key),
                is_categorical=self.is_categorical[list(key)],
                repeats={i: self.repeats[j] for i, j in enumerate(key) if j in self.repeats},
            )
        return self._taken[key]

    @cached_property
    def _taken(self) -> dict[tuple[int, ...], Columns]:
        return {}

    def cells(self, x: Floats, j: int) -> Ints:
        """Return the cell of each coordinate `x` of the discrete column `j`; -1 where missing.

        Of a choice that is listed twice, the first cell.
        """
        edges = self.edges[j]
        assert edges is not None
        found = np.searchsorted(edges[1:-1], x, side="right")  # NaN sorts last
        if j in self.repeats:
            found = self.repeats[j][found]
        return np.where(np.isnan(x), -1, found)

    def snap(self, X: Floats) -> Floats:  # (n, d) -> (n, d)
        """Return `X` with every discrete coordinate moved to the position of its cell."""
        snapped = X.copy()
        for j, points in enumerate(self.points):
            if points is not None:
                cell = self.cells(X[:, j], j)
                snapped[:, j] = np.where(cell < 0, np.nan, points[cell])
        return snapped


def _indices(mask: Mask) -> list[int]:
    return [int(j) for j in np.flatnonzero(mask)]


class _Column:
    """One parameter: between Optuna's values, numbers, and [0, 1].

    A value's *number* is the value itself, or the index of a choice.
    """

    def __init__(self, name: str, distribution: BaseDistribution) -> None:
        self.distribution = distribution
        self.is_log = False
        self.step: float | None = None
        if isinstance(distribution, CategoricalDistribution):
            self.low, self.high, self.step = 0.0, len(distribution.choices) - 1.0, 1.0
            self.choices: tuple[Any, ...] | None = distribution.choices
        elif isinstance(distribution, FloatDistribution | IntDistribution):
            require_range(name, distribution)
            self.low, self.high = float(distribution.low), float(distribution.high)
            self.is_log = distribution.log
            self.step = None if distribution.step is None else float(distribution.step)
            self.choices = None
        else:
            raise ValueError(
                f"{distribution!r} is not a distribution that metatpe knows; "
                "use a float, int or categorical one."
            )
        self.n_values = self._count_values()
        # Half a step on both sides, so that the ends of a grid have full cells.
        half = 0.0 if self.step is None else self.step / 2
        self.start, self.end = self._scale(self.low - half), self._scale(self.high + half)

    def _count_values(self) -> int:
        """Return the number of values, 0 for infinitely many."""
        if self.distribution.single():
            return 1
        return 0 if self.step is None else round((self.high - self.low) / self.step) + 1

    def _scale(self, number: float) -> float:
        return math.log(number) if self.is_log else number

    @property
    def is_discrete(self) -> bool:
        return self.choices is not None or 0 < self.n_values <= MAX_CELLS

    @cached_property
    def is_ordered(self) -> bool:
        """Whether neighbouring values are alike: not for choices, unless they are sorted numbers.

        People write sizes such as 16, 32, 64 as choices. Each is a cell of the same width, as in
        an integer parameter, whatever the numbers are.
        """
        choices = self.choices
        if choices is None:
            return True
        if not 2 < len(choices) <= MAX_CELLS or not all(map(_is_number, choices)):
            return False
        pairs = list(pairwise(choices))
        return all(a < b for a, b in pairs) or all(a > b for a, b in pairs)

    def edges(self) -> Floats | None:
        """Return the borders of the cells, None for a continuous column."""
        if not self.is_discrete:
            return None
        if self.n_values == 1:
            return np.array([0.0, 1.0])
        step = self.step or 1.0
        borders = self.low + step * (np.arange(self.n_values + 1, dtype=np.float64) - 0.5)
        scaled: Floats = np.log(borders) if self.is_log else borders
        edges: Floats = (scaled - self.start) / (self.end - self.start)
        edges[0], edges[-1] = 0.0, 1.0
        return edges

    def middles(self) -> Floats | None:
        """Return the middles of the cells of many choices, None for a continuous column."""
        if self.choices is None:
            return None
        return (np.arange(self.n_values) + 0.5) / self.n_values

    def number(self, value: Any) -> float:
        """Return the number of a value, NaN where this distribution has no such value."""
        if self.choices is not None:
            return self.positions.get(value) if is_hashable(value) else self._search(value)
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            return math.nan
        return float(value)

    @cached_property
    def positions(self) -> Positions:
        """Choice -> position."""
        return Positions(self.choices or ())

    def _search(self, value: Any) -> float:
        return next((float(i) for i, c in enumerate(self.choices or ()) if c == value), math.nan)

    def value(self, number: float) -> Any:
        """Return Optuna's value of a number."""
        if self.choices is not None:
            return self.choices[int(number)]
        if isinstance(self.distribution, IntDistribution):
            return self._whole(int(number))
        return float(number)

    def _whole(self, number: int) -> int:
        """Return the nearest integer of the range that Optuna can store, which it does as a float.

        Beyond 2**53 numbers are rounded, and those near a bound may be rounded out of the range.
        """
        assert isinstance(self.distribution, IntDistribution)
        low, high = self.distribution.low, self.distribution.high
        inside = min(max(number, low), high)
        if low <= float(inside) <= high:
            return inside
        stored = int(math.nextafter(float(inside), low if inside == high else high))
        return stored if low <= stored <= high else inside

    def holds(self, value: Any) -> bool:
        """Return whether `value` is exactly one of this distribution's values."""
        number = self.number(value)
        if math.isnan(number) or not self.low <= number <= self.high:
            return False
        if isinstance(self.distribution, IntDistribution) and number != int(number):
            return False
        if self.step is None or self.n_values == 1:
            return True
        steps = (number - self.low) / self.step
        return abs(steps - round(steps)) < 1e-8  # Optuna's own tolerance


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, eq=False)
class _Scales:
    """The numbers of all columns side by side, to encode and decode them at once; each (d,)."""

    low: Floats
    high: Floats
    start: Floats  # of the unit interval, after log
    length: Floats
    step: Floats  # 1 where there is none
    has_step: Mask
    is_single: Mask
    logs: list[int]  # the columns on a log scale

    @classmethod
    def of(cls, columns: Sequence[_Column]) -> _Scales:
        start = np.array([c.start for c in columns], dtype=np.float64)
        length = np.array([c.end for c in columns], dtype=np.float64) - start
        return cls(
            low=np.array([c.low for c in columns], dtype=np.float64),
            high=np.array([c.high for c in columns], dtype=np.float64),
            start=start,
            length=np.where(length > 0, length, 1.0),  # a single value without a step
            step=np.array([c.step or 1.0 for c in columns], dtype=np.float64),
            has_step=np.array([c.step is not None for c in columns], dtype=np.bool_),
            is_single=np.array([c.n_values == 1 for c in columns], dtype=np.bool_),
            logs=[j for j, c in enumerate(columns) if c.is_log],
        )

    def slack(self, end: Floats) -> Floats:  # (d,)
        """Return what rounding may add to low + k * step at one end of the range."""
        rounding = 4.0 * np.finfo(np.float64).eps * abs(end)
        return np.where(self.has_step, 1e-8 * self.step + rounding, 0.0)

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """What is still inside, give or take rounding."""
        return self.low - self.slack(self.low), self.high + self.slack(self.high)

    def snap(self, numbers: Floats) -> Floats:  # (n, d) -> (n, d), a copy
        """Return the nearest numbers on the grid, where there is one."""
        on_grid = self.low + self.step * np.round((numbers - self.low) / self.step)
        return np.where(self.has_step, on_grid, numbers)


class Space:
    """Named Optuna distributions and the columns they are encoded to.

    Args:
        distributions: Parameter -> Optuna distribution, in the order of the columns.

    Example:
        >>> from optuna.distributions import FloatDistribution, IntDistribution
        >>> lr, depth = FloatDistribution(1e-4, 1e-2, log=True), IntDistribution(1, 4)
        >>> space = Space({"lr": lr, "depth": depth})
        >>> space.encode([{"lr": 1e-3, "depth": 1}])
        array([[0.5  , 0.125]])
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution]) -> None:
        self._distributions = dict(distributions)
        self._columns = {name: _Column(name, d) for name, d in self._distributions.items()}

    def __reduce__(self) -> tuple[type[Space], tuple[dict[str, BaseDistribution]]]:
        return Space, (self._distributions,)  # the rest follows from them

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in the order of the columns."""
        return tuple(self._distributions)

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """Name to distribution, a copy."""
        return dict(self._distributions)

    @cached_property
    def columns(self) -> Columns:
        """The kind of each column."""
        columns = list(self._columns.values())
        sizes = [c.n_values if 0 < c.n_values <= MAX_CELLS else 0 for c in columns]
        grid = np.full((max(sizes, default=0), len(self)), np.nan)
        for j, (column, size) in enumerate(zip(columns, sizes, strict=True)):
            grid[:size, j] = column.low + (column.step or 1.0) * np.arange(size)
        points = self.encode_numbers(grid)
        return Columns(
            edges=tuple(column.edges() for column in columns),
            points=tuple(
                points[: sizes[j], j] if sizes[j] else column.middles()
                for j, column in enumerate(columns)
            ),
            is_categorical=np.array(
                [c.choices is not None and not c.is_ordered for c in columns], dtype=np.bool_
            ),
            repeats={
                j: c.positions.first
                for j, c in enumerate(columns)
                if c.choices is not None and c.positions.has_repeats
            },
        )

    @cached_property
    def _scales(self) -> _Scales:
        return _Scales.of(list(self._columns.values()))

    def __len__(self) -> int:
        return len(self._distributions)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Space):
            return NotImplemented
        return self.names == other.names and are_same(self._distributions, other._distributions)

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"Space({self._distributions!r})"

    def numbers(self, params: Sequence[Mapping[str, Any]]) -> Floats:  # (n, d)
        """Return the values as numbers; NaN where one is absent or not a choice."""
        found = np.full((len(params), len(self)), np.nan)
        for j, (name, column) in enumerate(self._columns.items()):
            found[:, j] = [column.number(p[name]) if name in p else math.nan for p in params]
        return found

    def may_have(self, numbers: Floats) -> Mask:  # (n, d) -> (n,)
        """Return in which rows all numbers are finite or missing, and choices those there are."""
        a, is_missing = self._scales, np.isnan(numbers)
        is_choice = (numbers >= 0.0) & (numbers <= a.high) & (numbers == np.round(numbers))
        has_choices = [c.choices is not None for c in self._columns.values()]
        is_fine = np.where(has_choices, is_choice, np.isfinite(numbers))
        return np.asarray((is_fine | is_missing).all(axis=1))

    def encode_numbers(self, numbers: Floats) -> Floats:  # (n, d) -> (n, d)
        """Return the points of the unit cube of numbers made by `numbers`.

        NaN outside the range; off a grid, the nearest value on it.
        """
        a = self._scales
        least, most = a.bounds
        is_inside = (numbers >= least) & (numbers <= most)
        snapped = a.snap(np.where(is_inside, numbers, np.nan))
        snapped[:, a.logs] = np.log(snapped[:, a.logs])
        X = (snapped - a.start) / a.length
        return np.where(a.is_single & ~np.isnan(X), 0.5, X)

    def encode(self, params: Sequence[Mapping[str, Any]]) -> Floats:  # (n, d)
        """Return configurations as points of the unit cube.

        A value off the grid becomes its nearest neighbour on it; one outside the range, of
        another kind, or not among the choices becomes NaN, as does an absent one.
        """
        return self.encode_numbers(self.numbers(params))

    def decode_numbers(self, X: Floats) -> Floats:  # (n, d) -> (n, d)
        """Return the numbers of points of the unit cube (the inverse of `encode_numbers`)."""
        a = self._scales
        numbers = a.start + X * a.length
        numbers[:, a.logs] = np.exp(numbers[:, a.logs])
        clipped: Floats = np.clip(a.snap(numbers), a.low, a.high)
        return clipped

    def values(self, numbers: Floats) -> list[dict[str, Any]]:
        """Return numbers as configurations; a missing coordinate is left out."""
        columns = list(self._columns.items())
        return [
            {
                name: column.value(number)
                for (name, column), number in zip(columns, row, strict=True)
                if not math.isnan(number)
            }
            for row in numbers.tolist()
        ]

    def decode(self, X: Floats) -> list[dict[str, Any]]:
        """Return points of the unit cube as configurations; a missing coordinate is left out."""
        return self.values(self.decode_numbers(X))

    def fit(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return what of a configuration has a place here, unchanged where it fits exactly.

        A value off the grid is moved to the nearest one; a value outside is left out.
        """
        if not params:
            return {}
        fitted = self.decode(self.encode([params]))[0]
        for name in fitted:
            if self._columns[name].holds(params[name]):
                column = self._columns[name]
                fitted[name] = column.value(column.number(params[name]))
        return fitted


def shown(distribution: BaseDistribution) -> str:
    """Return a distribution in a few words."""
    if isinstance(distribution, CategoricalDistribution):
        return " | ".join(map(str, distribution.choices))
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    kind = "int" if isinstance(distribution, IntDistribution) else "float"
    step = f", step {distribution.step:g}" if distribution.step not in (None, 1) else ""
    log = ", log" if distribution.log else ""
    return f"{kind} {distribution.low:g} to {distribution.high:g}{step}{log}"
