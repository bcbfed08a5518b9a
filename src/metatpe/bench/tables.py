r"""Tabular problems: every configuration of a grid has been evaluated r times, once and for all.

Rows are the configurations in row-major order of the parameters, with K_j levels of parameter j:

    row(x) = (...(x_1 * K_2 + x_2) * K_3 + ...) * K_d + x_d          x_j the index of the level
    evaluate(x, seed) = table[row(x), repeat(seed, row(x))]

The repeat is the row-th output of the generator SplitMix64 started at a hash of the seed, scaled
to r (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014). Integer
arithmetic modulo 2^64 alone: the same on every platform, in every process and for every method.

Shapes: table is (n, r, m) with n = K_1 * ... * K_d.

`Branches` are several such tables, one per value of a parameter that decides which of them a
configuration belongs to; its rows are theirs, one table after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, TypeVar

import moocore
import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from metatpe.bench.problems import Direction, Floats, Params, Problem, read_only
from metatpe.study.trials import signs_of

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
T = TypeVar("T")

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Grid:
    """The values of all configurations of a grid."""

    levels: dict[str, tuple[Any, ...]]  # of every parameter, in the order of the rows
    unordered: frozenset[str]  # the parameters whose levels have no order
    values: Floats  # (n, r, m)
    conditions: ClassVar[dict[str, tuple[str, Any]]] = {}  # every parameter is always used

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))
        shape = tuple(map(len, self.levels.values()))
        n = math.prod(shape)
        if self.values.ndim != 3 or len(self.values) != n:
            raise ValueError(
                f"a grid of {shape} levels needs a table of shape ({n}, repeats, "
                f"objectives), but got {self.values.shape}."
            )
        if not np.isfinite(self.values).all():
            rows = np.unique(np.nonzero(~np.isfinite(self.values))[0])
            raise ValueError(
                f"a table must be finite, but rows {rows[:5].tolist()} are not; "
                "pad failed evaluations with the worst values."
            )

    @property
    def space(self) -> dict[str, BaseDistribution]:
        """The search space: indices where the levels have an order, otherwise the levels."""
        return {
            name: CategoricalDistribution(values)
            if name in self.unordered
            else IntDistribution(0, len(values) - 1)
            for name, values in self.levels.items()
        }

    @property
    def ordered(self) -> dict[str, tuple[Any, ...]]:
        """The levels of the ordered parameters."""
        return {name: v for name, v in self.levels.items() if name not in self.unordered}

    def row(self, params: Params) -> int:
        """Return the row of a configuration of `space`."""
        row = 0
        for name, values in self.levels.items():
            value = params[name]
            level = values.index(value) if name in self.unordered else int(value)
            row = row * len(values) + level
        return row


@dataclass(frozen=True, eq=False)
class Branches:
    """The values of all configurations of a space whose branches are grids."""

    parameter: str  # the one that decides on the branch
    tables: dict[str, Grid]  # of each of its values; no parameter is in two of them

    @property
    def space(self) -> dict[str, BaseDistribution]:
        """The search space: the branch, then the parameters of each."""
        branch = CategoricalDistribution(tuple(self.tables))
        return {self.parameter: branch, **_joined(t.space for t in self.tables.values())}

    @property
    def conditions(self) -> dict[str, tuple[str, Any]]:
        """Where a parameter is used: in its own branch."""
        branches = self.tables.items()
        return {n: (self.parameter, branch) for branch, table in branches for n in table.levels}

    @property
    def ordered(self) -> dict[str, tuple[Any, ...]]:
        """The levels of the ordered parameters."""
        return _joined(table.ordered for table in self.tables.values())

    @cached_property
    def values(self) -> Floats:  # (n, r, m)
        """The values of all tables, one after the other."""
        return read_only(np.concatenate([table.values for table in self.tables.values()]))

    @cached_property
    def _first_rows(self) -> dict[str, int]:
        lengths = [len(table.values) for table in self.tables.values()]
        return dict(zip(self.tables, np.cumsum([0, *lengths]).tolist(), strict=False))

    def row(self, params: Params) -> int:
        """Return the row of a configuration of `space`."""
        branch = params[self.parameter]
        return self._first_rows[branch] + self.tables[branch].row(params)


def _joined(parts: Iterable[dict[str, T]]) -> dict[str, T]:
    return {name: value for part in parts for name, value in part.items()}


def _evaluate(table: Grid | Branches, params: Params, seed: int) -> tuple[float, ...]:
    row = table.row(params)
    repeat = repeats(seed, np.array([row]), table.values.shape[1])[0]
    return tuple(table.values[row, repeat].tolist())


def repeats(seed: int, rows: Ints, n_repeats: int) -> Ints:  # (k,) -> (k,)
    """Return which repeat a run with this seed gets for each row, in 0, ..., n_repeats - 1."""
    start = _mix(np.array([seed % 2**64], dtype=np.uint64) + _GOLDEN)
    words = _mix(start + (rows.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
    high = words >> np.uint64(32)  # scaled by multiplication: no repeat is favoured by a modulus
    return ((high * np.uint64(n_repeats)) >> np.uint64(32)).astype(np.int64)


def _mix(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def tabular_problem(
    name: str,
    table: Grid | Branches,
    *,
    objective_names: Sequence[str],
    directions: Sequence[Direction],
    log_objectives: Sequence[bool],
) -> Problem:
    """Return the problem of a table, with its extremes and its true front."""
    values = table.values.reshape(-1, len(directions))
    losses = values * signs_of(directions)
    front = values[moocore.is_nondominated(losses)]
    return Problem(
        name=name,
        space=table.space,
        directions=tuple(directions),
        objective_names=tuple(objective_names),
        function=partial(_evaluate, table),
        best=losses.min(axis=0) * signs_of(directions),
        worst=losses.max(axis=0) * signs_of(directions),
        log_objectives=tuple(log_objectives),
        front=front[np.lexsort(front.T[::-1])],
        levels=table.ordered,
        table=table.values,
        conditions=table.conditions,
    )
