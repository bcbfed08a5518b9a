r"""Search spaces as columns of the unit cube.

Every parameter is a column in [0, 1]; densities are taken against the uniform measure there, so that
a density of one means "nothing known".

    continuous    x = (t(v) - t(low)) / (t(high) - t(low)),  t = log where the distribution says so
    stepped       K cells; a linear grid has equal cells, an integer v on a log scale has the cell
                  [log(v - 1/2), log(v + 1/2)]; x is the position of v inside its cell
    categorical   K equal cells; x is the middle of the cell of the choice

A grid of more than `MAX_CELLS` values is a continuous column that is rounded when it is decoded.
Missing is NaN: the parameter was not used, or its value does not fit this space.

Shapes: X is (n, d), one row a configuration, one column a parameter, in the order of `Space.names`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

MAX_CELLS = 256
_MISSING = object()


@dataclass(frozen=True, eq=False)
class Columns:
    """The kind of each column, which is all that the densities need to know of a space."""

    edges: tuple[Floats | None, ...]  # the K + 1 borders of the cells; None: continuous
    points: tuple[Floats | None, ...]  # the K positions that values of a cell are encoded to
    is_categorical: Mask  # (d,)

    @cached_property
    def n_cells(self) -> Ints:  # (d,), 0: continuous
        return np.array([0 if p is None else len(p) for p in self.points], dtype=np.int64)

    @property
    def is_finite(self) -> bool:
        """Whether there are only finitely many configurations."""
        return bool((self.n_cells > 0).all())

    def __len__(self) -> int:
        return len(self.edges)

    def take(self, kept: Sequence[int]) -> Columns:
        """Return the columns with the indices `kept`, in that order."""
        return Columns(
            edges=tuple(self.edges[j] for j in kept),
            points=tuple(self.points[j] for j in kept),
            is_categorical=self.is_categorical[list(kept)],
        )

    def cells(self, x: Floats, j: int) -> Ints:
        """Return the cell of each coordinate `x` of the discrete column `j`; -1 where missing."""
        edges = self.edges[j]
        assert edges is not None
        found = np.searchsorted(edges[1:-1], x, side="right")  # NaN sorts last
        return np.where(np.isnan(x), -1, found)

    def snap(self, X: Floats) -> Floats:  # (n, d) -> (n, d)
        """Return `X` with every discrete coordinate moved to the position of its cell."""
        snapped = X.copy()
        for j, points in enumerate(self.points):
            if points is not None:
                cell = self.cells(X[:, j], j)
                snapped[:, j] = np.where(cell < 0, np.nan, points[cell])
        return snapped


class _Column:
    """One parameter: between Optuna's values, numbers, and [0, 1].

    A value's *number* is the value itself, or the index of a choice.
    """

    def __init__(self, distribution: BaseDistribution) -> None:
        self.distribution = distribution
        self.is_log = False
        self.step: float | None = None
        if isinstance(distribution, CategoricalDistribution):
            self.low, self.high, self.step = 0.0, len(distribution.choices) - 1.0, 1.0
            self.choices: tuple[Any, ...] | None = distribution.choices
        elif isinstance(distribution, FloatDistribution | IntDistribution):
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
        # Half a step on both sides, so that the first and the last value of a grid have full cells.
        half = 0.0 if self.step is None else self.step / 2
        self.start, self.end = self._scale(self.low - half), self._scale(self.high + half)

    def _count_values(self) -> int:
        """Return the number of values, 0 for infinitely many."""
        if self.distribution.single():
            self.step = self.step or 1.0
            return 1
        return 0 if self.step is None else round((self.high - self.low) / self.step) + 1

    def _scale(self, number: float) -> float:
        return math.log(number) if self.is_log else number

    @property
    def is_discrete(self) -> bool:
        return 0 < self.n_values <= MAX_CELLS

    def cells(self) -> tuple[Floats | None, Floats | None]:
        """Return the borders of the cells and the position of the value inside each."""
        if not self.is_discrete:
            return None, None
        if self.n_values == 1:
            return np.array([0.0, 1.0]), np.array([0.5])
        step = self.step or 1.0
        numbers = self.low + step * np.arange(self.n_values)
        borders = self.low + step * (np.arange(self.n_values + 1) - 0.5)
        edges = self._to_unit(borders)
        edges[0], edges[-1] = 0.0, 1.0
        return edges, self._to_unit(numbers)

    def _to_unit(self, numbers: Floats) -> Floats:
        scaled = np.log(numbers) if self.is_log else numbers
        unit: Floats = (scaled - self.start) / (self.end - self.start)
        return unit

    def number(self, value: Any) -> float:
        """Return the number of a value, NaN where this distribution has no such value."""
        if self.choices is not None:
            return self._choice_index.get(value) if _is_hashable(value) else self._search(value)
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            return math.nan
        return float(value)

    @cached_property
    def _choice_index(self) -> _Index:
        return _Index(self.choices or ())

    def _search(self, value: Any) -> float:
        return next((float(i) for i, c in enumerate(self.choices or ()) if c == value), math.nan)

    def encode(self, numbers: Floats) -> Floats:
        """Return the coordinates of numbers; NaN outside the range, the nearest value off a grid."""
        slack = 1e-8 * (self.step or 0.0)  # rounding of low + k * step must not push a value out
        inside = (numbers >= self.low - slack) & (numbers <= self.high + slack)
        kept = np.where(inside, numbers, np.nan)
        if self.n_values == 1:
            return np.where(np.isnan(kept), np.nan, 0.5)
        if self.step is not None:
            kept = self.low + self.step * np.round((kept - self.low) / self.step)
        return self._to_unit(kept)

    def decode(self, x: Floats) -> Floats:
        """Return the numbers at coordinates (the inverse of `encode`)."""
        if self.n_values == 1:
            return np.where(np.isnan(x), np.nan, self.low)
        scaled = self.start + x * (self.end - self.start)
        numbers = np.exp(scaled) if self.is_log else scaled
        if self.step is not None:
            numbers = self.low + self.step * np.round((numbers - self.low) / self.step)
        clipped: Floats = np.clip(numbers, self.low, self.high)
        return clipped

    def value(self, number: float) -> Any:
        """Return Optuna's value of a number."""
        if self.choices is not None:
            return self.choices[int(number)]
        return int(number) if isinstance(self.distribution, IntDistribution) else float(number)

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

    def fit(self, value: Any) -> Any:
        """Return `value`, or the nearest value of the grid, or `_MISSING` where none is near."""
        if self.holds(value):
            number = self.number(value)
            return value if self.choices is not None else self.value(number)
        x = self.encode(np.array([self.number(value)]))
        return _MISSING if np.isnan(x[0]) else self.value(float(self.decode(x)[0]))


class _Index(dict[Any, float]):
    """Choice -> index. The first of equal choices counts, and NaN is a choice like any other."""

    def __init__(self, choices: Iterable[Any]) -> None:
        super().__init__()
        self._nan = math.nan
        for i, choice in enumerate(choices):
            if _is_nan(choice):
                self._nan = float(i)
            elif _is_hashable(choice):
                self.setdefault(choice, float(i))

    def get(self, value: Any, default: Any = None) -> float:
        return self._nan if _is_nan(value) else super().get(value, math.nan)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


class Space:
    """Named Optuna distributions and the columns they are encoded to.

    >>> from optuna.distributions import FloatDistribution, IntDistribution
    >>> space = Space({"lr": FloatDistribution(1e-4, 1e-2, log=True), "depth": IntDistribution(1, 4)})
    >>> space.encode([{"lr": 1e-3, "depth": 1}])
    array([[0.5  , 0.125]])
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution]) -> None:
        self._distributions = dict(distributions)
        self._columns = {name: _Column(dist) for name, dist in self._distributions.items()}

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
        cells = [column.cells() for column in self._columns.values()]
        choices = [column.choices is not None for column in self._columns.values()]
        return Columns(
            edges=tuple(edges for edges, _ in cells),
            points=tuple(points for _, points in cells),
            is_categorical=np.array(choices, dtype=np.bool_),
        )

    def __len__(self) -> int:
        return len(self._distributions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return self.names == other.names and self._distributions == other._distributions

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"Space({self._distributions!r})"

    def numbers(self, params: Sequence[Mapping[str, Any]]) -> Floats:  # (n, d)
        """Return each configuration's values as numbers; NaN where one is absent or not a choice."""
        found = np.full((len(params), len(self)), np.nan)
        for j, (name, column) in enumerate(self._columns.items()):
            found[:, j] = [column.number(p[name]) if name in p else math.nan for p in params]
        return found

    def encode_numbers(self, numbers: Floats) -> Floats:  # (n, d) -> (n, d)
        """Return the points of the unit cube of numbers made by `numbers`."""
        X = np.empty_like(numbers)
        for j, column in enumerate(self._columns.values()):
            X[:, j] = column.encode(numbers[:, j])
        return X

    def encode(self, params: Sequence[Mapping[str, Any]]) -> Floats:  # (n, d)
        """Return configurations as points of the unit cube.

        A value off the grid becomes its nearest neighbour on it; one outside the range, of
        another kind, or not among the choices becomes NaN, as does an absent one.
        """
        return self.encode_numbers(self.numbers(params))

    def decode_numbers(self, X: Floats) -> Floats:  # (n, d) -> (n, d)
        """Return the numbers of points of the unit cube."""
        numbers = np.empty_like(X)
        for j, column in enumerate(self._columns.values()):
            numbers[:, j] = column.decode(X[:, j])
        return numbers

    def values(self, numbers: Floats) -> list[dict[str, Any]]:
        """Return configurations of numbers as Optuna has them; a missing coordinate is left out."""
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
        fitted = {n: c.fit(params[n]) for n, c in self._columns.items() if n in params}
        return {name: value for name, value in fitted.items() if value is not _MISSING}
