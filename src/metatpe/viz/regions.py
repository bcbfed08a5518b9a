r"""What is drawn of two tasks' best regions: densities, where both are high, and ticks.

With p and q the densities of the good observations of two tasks on the drawn parameters, against
the uniform measure of the unit cube:

    similarity = integral min(p, q) / integral max(p, q) = (1 - d_tv) / (1 + d_tv)
    region of p = the smallest set with 80 % of p's mass

which is the method's similarity (`_kernel`) on exactly these parameters, as a sum over a grid.
Coordinates are those of the unit cube, so that logs, steps and choices are drawn alike; the ticks
have the parameters' own values.

Shapes: a grid of K cells has K + 1 edges; densities are (K,), or (Ky, Kx) for two parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study

from metatpe.past.read.studies import as_tasks
from metatpe.past.similarity import importance
from metatpe.past.task import Task
from metatpe.space import Columns, Floats, Ints, Mask, Space
from metatpe.tpe.kde import Parzen, Points
from metatpe.tpe.pareto import GAMMA, split
from metatpe.viz.style import Look, Shown, look, shortened
from metatpe.viz.ticks import MAX_TICKS, linear_ticks, log_ticks

MASS = 0.8
_N_CELLS = {1: 256, 2: 192}  # of a continuous column, by the number of parameters
_GOLDEN = 0.6180339887498949


class Axis(NamedTuple):
    """One parameter as an axis from 0 to 1."""

    name: str
    edges: Floats  # (K + 1,)
    is_discrete: bool
    ticks: Floats  # (t,)
    labels: list[str]  # (t,)


@dataclass(frozen=True, eq=False)
class Good:
    """The good observations of one task."""

    name: str
    X: Floats  # (n, d) as they are drawn: those in one cell are spread over it
    values: list[dict[str, object]]  # (n,) the parameters' own values
    density: Floats  # (K,) or (Ky, Kx)
    region: Mask  # the same shape


@dataclass(frozen=True, eq=False)
class GammaSets(Shown):
    """Two tasks on one parameter or two."""

    axes: tuple[Axis, ...]
    a: Good
    b: Good
    similarity: float

    @property
    def pair(self) -> tuple[tuple[Good, Look], ...]:
        """Both tasks, and how each is drawn."""
        return (self.a, look(0)), (self.b, look(1))

    @property
    def top(self) -> float:
        """The largest density."""
        return float(max(self.a.density.max(), self.b.density.max()))

    @property
    def codes(self) -> Ints:
        """Which regions a cell belongs to: 0 none, 1 that of a, 2 that of b, 3 both."""
        return self.a.region.astype(np.int64) + 2 * self.b.region


def gamma_sets(a: Study | Task, b: Study | Task, params: str | Sequence[str] | None) -> GammaSets:
    """Return the densities and regions of two tasks on some parameters.

    Raises:
        ValueError: A task has no (good) value of a parameter in the space of `a`.
    """
    tasks = as_tasks([a, b])
    if len(tasks) < 2:
        raise ValueError("both tasks need a finished trial with a parameter.")
    names = _chosen(tasks[0], tasks[1], params)
    space = Space({name: tasks[0].space.distributions[name] for name in names})
    axes = tuple(_axis(name, space, len(names)) for name in names)
    cells, volumes = _grid(axes)
    good = [_good(task, tasks[0].space, space, cells, volumes) for task in tasks]
    p, q = good[0].density, good[1].density
    s = np.sum(volumes * np.minimum(p, q)) / np.sum(volumes * np.maximum(p, q))
    about = f"intersection over union: {s:.2f}"
    if len(axes) == 2:
        about += f"; regions contain {MASS:.0%} of a density"
    title = "Where the best configurations are"
    return GammaSets(axes, good[0], good[1], float(s), title=title, about=about)


def _chosen(a: Task, b: Task, params: str | Sequence[str] | None) -> list[str]:
    """Return the parameters to draw: those given, or the two that matter most in both."""
    shared = [name for name in a.space.names if name in b.space.names]
    if not shared:
        raise ValueError(f"tasks {a.name!r} and {b.name!r} have no parameter in common.")
    if params is None:
        V = [importance(task) for task in (a, b)]
        mean = {name: sum(v.get(name, 0.0) for v in V) for name in shared}
        return sorted(shared, key=lambda name: -mean[name])[:2]
    names = list(dict.fromkeys([params] if isinstance(params, str) else params))
    if len(names) not in (1, 2):
        raise ValueError(f"params must be one parameter or two, but are {params!r}.")
    for name in names:
        if name not in shared:
            raise ValueError(f"{name!r} is not a parameter of both tasks; they share {shared}.")
    return names


# Densities ------------------------------------------------------------------------------------


def _good(task: Task, whole: Space, space: Space, cells: Floats, volumes: Floats) -> Good:
    """Return the good observations of a task in a space, and their density in the cells.

    Args:
        task: The task.
        whole: The space that decides which observations are usable.
        space: The drawn part of it.
        cells: A point in each cell, (..., d).
        volumes: Of the cells, (...).
    """
    is_good = split(task.losses, task.violation, GAMMA)
    encoded = task.encode_in(whole)
    rows = np.flatnonzero(is_good & encoded.is_usable)
    X = encoded.X[rows][:, [whole.names.index(name) for name in space.names]]
    if np.isnan(X).all(axis=0).any() or not len(X):
        raise ValueError(
            f"no good observation of task {task.name!r} has a value of "
            f"{' and '.join(map(repr, space.names))} that fits; choose other parameters."
        )
    points = Points.of(space.columns, cells.reshape(-1, len(space)))
    log_density = Parzen(space.columns, X).log_pdf(points, uniform=False)
    density = np.exp(log_density).reshape(volumes.shape)
    density /= np.sum(density * volumes)  # on the grid, a sum is not quite an integral
    is_whole = ~np.isnan(X).any(axis=1)
    return Good(
        name=task.name,
        X=_spread(space.columns, X[is_whole]),
        values=space.decode(X[is_whole]),
        density=density,
        region=_region(density, volumes),
    )


def _region(density: Floats, volumes: Floats) -> Mask:
    """Return the smallest set of cells that holds most of the mass."""
    order = np.argsort(-density, axis=None, kind="stable")
    mass = np.cumsum((density * volumes).ravel()[order])
    region = np.zeros(density.size, dtype=np.bool_)
    # 1e-9: cells that fill it exactly must not be one too many.
    region[order[: np.searchsorted(mass, MASS - 1e-9) + 1]] = True
    return region.reshape(density.shape)


def _spread(columns: Columns, X: Floats) -> Floats:
    """Return the points with those that share a cell of a discrete column set side by side."""
    spread = X.copy()
    for j in np.flatnonzero(columns.n_cells):
        edges, cells = columns.edges[j], columns.cells(X[:, j], int(j))
        assert edges is not None
        for cell in np.unique(cells):
            rows = np.flatnonzero(cells == cell)
            # Evenly in the first column, in another order in the second one: not on a diagonal.
            pace = 1.0 / len(rows) if j == 0 else _GOLDEN
            place = 0.15 + 0.7 * ((np.arange(len(rows)) + 0.5) * pace % 1.0)
            spread[rows, j] = edges[cell] + place * (edges[cell + 1] - edges[cell])
    return spread


def line_of(axis: Axis, density: Floats) -> tuple[Floats, Floats]:
    """Return the line of a density (K,): through the middles of the cells, or around them."""
    if axis.is_discrete:
        return np.repeat(axis.edges, 2)[1:-1], np.repeat(density, 2)
    return (axis.edges[1:] + axis.edges[:-1]) / 2, density


# Axes -----------------------------------------------------------------------------------------


def _grid(axes: Sequence[Axis]) -> tuple[Floats, Floats]:  # (..., d), (...)
    """Return the middles of all cells and their volumes; the last axis is the first index."""
    middles = [(axis.edges[1:] + axis.edges[:-1]) / 2 for axis in axes]
    widths = [np.diff(axis.edges) for axis in axes]
    cells = np.stack(np.meshgrid(*middles), axis=-1)
    volumes = np.prod(np.stack(np.meshgrid(*widths), axis=-1), axis=-1)
    return cells, volumes


def _axis(name: str, space: Space, n_parameters: int) -> Axis:
    alone = Space({name: space.distributions[name]})
    edges = alone.columns.edges[0]
    borders = np.linspace(0.0, 1.0, _N_CELLS[n_parameters] + 1) if edges is None else edges
    numbers = np.array(_ticks(alone.distributions[name]), dtype=np.float64)
    ticks = np.unique(alone.encode_numbers(numbers[:, None])[:, 0])  # on the grid
    values = [row[name] for row in alone.decode(ticks[:, None])]
    return Axis(name, borders, edges is not None, ticks, [_label(value) for value in values])


def _label(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else shortened(str(value), 16)


def _ticks(distribution: BaseDistribution) -> Sequence[float]:
    """Return the numbers (see `Space.numbers`) of a parameter's range to be named."""
    if isinstance(distribution, CategoricalDistribution):
        n = len(distribution.choices)
        return range(0, n, math.ceil(n / (2 * MAX_TICKS)))
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high, step = float(distribution.low), float(distribution.high), distribution.step
    if step is not None and (high - low) / step < MAX_TICKS:
        return [low + k * step for k in range(round((high - low) / step) + 1)]
    return log_ticks(low, high) if distribution.log else linear_ticks(low, high)
