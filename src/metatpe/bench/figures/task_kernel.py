"""How long an update of the task weights takes: over observations of each past task, and tasks.

Ten dimensions, two objectives, 200 observations of the current task, S = 1,000 points. Timed is
all that has to be done after a new observation of the current task that is a good one: ranking,
split, the density of its good observations, importances and similarities. After a bad one next to
nothing has to be done; the first time the models of the past tasks are made. One core, the median.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from optuna.distributions import FloatDistribution

from metatpe.bench.figures.figure import Figure, Measure, Table
from metatpe.bench.figures.style import FRONT, METHODS, count_axis, legend_below, panels
from metatpe.bench.problems import Floats
from metatpe.bench.records import Trace
from metatpe.bench.run import in_one_thread
from metatpe.bench.tables import Ints
from metatpe.past.densities import PastDensities
from metatpe.past.known import Past
from metatpe.past.task import Task
from metatpe.samplers.guards import N_JUDGED, trust
from metatpe.space import Space
from metatpe.tpe.importance import ETA
from metatpe.tpe.kde import Parzen
from metatpe.tpe.kernel import N_MC_SAMPLES, task_weights
from metatpe.tpe.pareto import GAMMA, split

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_DIM, _N_TARGET = 10, 200
_SPACE = Space({f"x{d}": FloatDistribution(0.0, 1.0) for d in range(_DIM)})
_TASKS, _OBSERVATIONS = 5, 200  # the paper's setting
SIZES = {
    "observations": [(_TASKS, n) for n in (50, 100, 200, 500, 1000, 2000, 5000, 10_000)],
    "tasks": [(k, _OBSERVATIONS) for k in (1, 2, 5, 10, 20, 50)],
}
_WIDTH = 1.1  # of all lines
_PAPER = 1e-4  # seconds, for 5 past tasks with 200 observations


class Seconds(NamedTuple):
    """How long it took."""

    first: float  # with the past tasks' models
    update: float
    n_kept: int  # dimensions


def measure_update(n_tasks: int, n_past: int, n_repeats: int = 50) -> Seconds:
    """Return how long the task weights take with `n_past` observations of each past task."""
    X, losses = _observations(_N_TARGET, 0.0, 0)
    tasks = [
        Task(f"past {m}", _SPACE, *_observations(n_past, 0.1 * m / n_tasks, m))
        for m in range(1, n_tasks + 1)
    ]
    begin = time.perf_counter()
    past = Past(tasks, _SPACE).densities(GAMMA)
    _weigh(X, losses, past)
    first = time.perf_counter() - begin
    updates = [_time_of_new(row, X, losses, past) for row in _new_rows(losses, n_repeats)]
    return Seconds(first, float(np.median(updates)), len(_weigh(X, losses, past)))


def _new_rows(losses: Floats, n: int) -> Ints:
    """Return good observations that may be the newest, one after the other, n in all."""
    good = np.flatnonzero(split(losses, np.zeros(len(losses)), GAMMA))
    return np.resize(good[good >= N_JUDGED], n)  # the past is judged by the first ones


def _time_of_new(row: int, X: Floats, losses: Floats, past: PastDensities) -> float:
    """Return how long an update takes after this observation, which was not there before."""
    others = np.delete(np.arange(len(X)), row)
    _weigh(X[others], losses[others], past)
    newest = np.append(others, row)
    begin = time.perf_counter()
    _weigh(X[newest], losses[newest], past)
    return time.perf_counter() - begin


def _observations(n: int, shift: float, seed: int) -> tuple[Floats, Floats]:
    """Return n points and their two losses."""
    X = np.random.default_rng(seed).random((n, _DIM))
    slope = np.linspace(0.1, 1.0, _DIM)
    centres = (0.4 + shift, 0.6 + shift)
    return X, np.stack([(slope * (X - c) ** 2).sum(axis=1) for c in centres], axis=1)


def _weigh(X: Floats, losses: Floats, past: PastDensities) -> tuple[int, ...]:
    """Weigh the past tasks by the current task's observations; return the kept columns."""
    violation = np.zeros(len(X))
    judged = slice(N_JUDGED)
    good = Parzen(_SPACE.columns, X[split(losses, violation, GAMMA)])
    s, kept = past.similarities(good, eta=ETA, n_mc_samples=N_MC_SAMPLES)
    level = past.levels(losses[judged], violation[judged], np.zeros((len(losses[judged]), 1)))
    agreement = past.agreement(X[judged], level)
    task_weights(s * trust(agreement))
    return kept


def _measure_all() -> list[tuple[Any, ...]]:
    measure_update(2, 50, 5)  # what is loaded and compiled once is not timed
    return [
        (varied, *sizes, *measure_update(*sizes))
        for varied, settings in SIZES.items()
        for sizes in settings
    ]


def _table_of_times(traces: Sequence[Trace], measure: Measure) -> Table:
    import pandas as pd

    columns = ["varied", "tasks", "observations", "first_seconds", "update_seconds", "kept"]
    return pd.DataFrame(in_one_thread(_measure_all), columns=columns)


def _draw(table: Table) -> Picture:
    picture, axes = panels(1, 2, 2.5, sharey=True)
    curves = (
        ("update_seconds", "an update", METHODS["meta-tpe"]),
        ("first_seconds", "the first, with the past tasks' models", METHODS["mo-tpe"]),
    )
    xlabels = {
        "observations": "observations of each of 5 past tasks",
        "tasks": "past tasks with 200 observations each",
    }
    for axis, (varied, xlabel) in zip(axes[0], xlabels.items(), strict=True):
        rows = table[table["varied"] == varied]
        for column, label, line in curves:
            look = line._replace(width=_WIDTH).look
            axis.plot(rows[varied], 1e3 * rows[column], **look, label=label)
        look = FRONT._replace(width=_WIDTH).look
        axis.axhline(1e3 * _PAPER, **look, label="an update in the paper: 5 tasks × 200")
        axis.set(xlabel=xlabel, yscale="log")
        count_axis(axis, rows[varied].tolist())
    axes[0, 0].set_ylabel("milliseconds")
    legend_below(picture, 3)
    return picture


FIGURES = (
    Figure(
        name="task-kernel-time",
        about="time of an update of the task weights over observations and past tasks",
        numbers=_table_of_times,
        draw=_draw,
        is_measured=True,
    ),
)
