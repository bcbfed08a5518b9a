"""One objective, and past tasks of known similarity: the same function around another centre.

`ellipsoid`: one past task around c*, and what it weighs. `n-tasks`: several past tasks around the
same c, each with observations of its own. The target has its centre at 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from metatpe.bench.figures.curves import grouped, labelled, mean_curve
from metatpe.bench.figures.figure import Figure, Measure, Table
from metatpe.bench.figures.style import METHODS, ORDERED, Line, draw_curve, legend_below, panels
from metatpe.bench.plan import N_START, Run, plan
from metatpe.bench.records import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_N_EVALUATIONS = 200
_TPE = "mo-tpe"  # with one objective it is TPE


def _around(target: str, c: int) -> str:
    return target if c == 0 else f"{target}-c{c}"


def _runs(
    target: str,
    with_past: Sequence[tuple[Sequence[str], Sequence[str]]],
    seeds: Iterable[int],
    n_start: int = N_START,
) -> tuple[Run, ...]:
    """Return the runs of TPE and those of methods with their past, seed by seed."""
    runs: list[Run] = []
    planned = partial(plan, [target], n_start=n_start, n_evaluations=_N_EVALUATIONS)
    for seed in seeds:
        for methods, past in [((_TPE,), None), *with_past]:
            runs += planned(methods, [seed], past=past)
    return tuple(runs)


def _columns(rows: Table) -> tuple[Any, Any, Any]:
    x, mean, se = (rows[name].to_numpy(np.float64) for name in ("evaluations", "mean", "se"))
    return x, mean, np.minimum(se, 0.9 * mean)  # a band that reaches 0 has no place on a log axis


# ellipsoid ------------------------------------------------------------------------------------

_TARGET = "ellipsoid4"
_PAST = {c: _around(_TARGET, c) for c in range(5)}
_WITH_PAST = ("meta-tpe", "naive-meta-tpe")


def _plan_centres(seeds: Iterable[int], quick: bool) -> tuple[Run, ...]:
    return _runs(_TARGET, [(_WITH_PAST, [name]) for name in _PAST.values()], seeds)


def _numbers_of_centres(traces: Sequence[Trace], measure: Measure) -> Table:
    import pandas as pd

    centres = {name: c for c, name in _PAST.items()}
    groups = grouped(
        traces, lambda run: (run.method, centres[run.past[0].problem] if run.past else None)
    )
    parts = []
    for (method, c), members in sorted(groups.items(), key=lambda g: (g[0][0], g[0][1] or 0)):
        part = mean_curve(members, measure).assign(weight=_median_weight(members))
        parts.append(labelled(part, method=method, c=c))
    return pd.concat(parts, ignore_index=True).astype({"c": "Int64", "weight": float})


def _median_weight(traces: Sequence[Trace]) -> Any:  # (n,), None without a past
    """Return the median weight of the past task over runs; NaN before it has one."""
    if not traces[0].run.past:
        return None
    name = traces[0].run.past[0].problem
    nothing = np.full(len(traces[0].values), np.nan)
    weights = np.stack([trace.weights.get(name, nothing) for trace in traces])
    median = nothing.copy()
    is_weighed = np.isfinite(weights).any(axis=0)  # not where all runs chose at random
    median[is_weighed] = np.nanmedian(weights[:, is_weighed], axis=0)
    return median


def _draw_centres(table: Table) -> Picture:
    picture, axes = panels(1, 3, 2.7)
    titles = {"meta-tpe": "meta-tpe", "naive-meta-tpe": "naive-meta-tpe: equal weights"}
    for axis, (method, title) in zip(axes[0], titles.items(), strict=False):
        curves = _by_centre(table[table["method"] == method])
        curves.append(("TPE, no past", table[table["method"] == _TPE], METHODS["optuna-gp-log"]))
        for nth, (label, rows, line) in enumerate(curves):
            draw_curve(axis, *_columns(rows), line, label=label, nth=nth)
        axis.set(title=title, xlabel="evaluations", ylabel="best value", yscale="log")
    low, high = zip(*(axis.get_ylim() for axis in axes[0, :2]), strict=True)
    for axis in axes[0, :2]:
        axis.set_ylim(min(low), max(high))
    for nth, (label, rows, line) in enumerate(_by_centre(table[table["method"] == "meta-tpe"])):
        x, weight = (rows[name].to_numpy(np.float64) for name in ("evaluations", "weight"))
        draw_curve(axes[0, 2], x, weight, np.nan * weight, line, label=label, nth=nth)
    axes[0, 2].set(title="what the past task weighs (median)", xlabel="evaluations")
    axes[0, 2].set(ylabel="weight", ylim=(0, 0.55))
    legend_below(picture, 6)
    return picture


def _by_centre(table: Table) -> list[tuple[str, Table, Line]]:
    """Return the label, the rows and the look of each centre."""
    groups = table.groupby("c")
    return [(f"c* = {c}", rows, line) for (c, rows), line in zip(groups, ORDERED, strict=False)]


# n-tasks --------------------------------------------------------------------------------------

_LARGE = "ellipsoid10"
_CENTRES = (0, 1, 2, 3)
_N_TASKS = (1, 2, 4, 8)


def _plan_numbers(seeds: Iterable[int], quick: bool) -> tuple[Run, ...]:
    pasts = [[_around(_LARGE, c)] * n_tasks for c in _CENTRES for n_tasks in _N_TASKS]
    return _runs(_LARGE, [(["meta-tpe"], past) for past in pasts], seeds, n_start=10)


def _numbers_of_tasks(traces: Sequence[Trace], measure: Measure) -> Table:
    """Return a curve for each centre and number of tasks; no task at all is the same in each."""
    import pandas as pd

    groups = grouped(traces, lambda run: (run.past[0].problem if run.past else "", len(run.past)))
    parts = []
    for c in _CENTRES:
        for n_tasks in (0, *_N_TASKS):
            key = (_around(_LARGE, c) if n_tasks else "", n_tasks)
            if key in groups:
                parts.append(labelled(mean_curve(groups[key], measure), c=c, tasks=n_tasks))
    return pd.concat(parts, ignore_index=True)


def _draw_numbers(table: Table) -> Picture:
    centres = table["c"].unique()
    picture, axes = panels(1, len(centres), 2.4, sharey=True)
    for axis, c in zip(axes[0], centres, strict=True):
        here = table[table["c"] == c]
        for nth, n_tasks in enumerate(here["tasks"].unique()):
            line = ORDERED[nth - 1] if n_tasks else METHODS["optuna-gp-log"]
            label = {0: "TPE, no past", 1: "1 past task"}.get(n_tasks, f"{n_tasks} past tasks")
            draw_curve(axis, *_columns(here[here["tasks"] == n_tasks]), line, label=label, nth=nth)
        axis.set(title=f"past tasks around c = {c}", xlabel="evaluations", yscale="log")
    axes[0, 0].set_ylabel("best value")
    legend_below(picture, 5)
    return picture


FIGURES = (
    Figure(
        name="ellipsoid",
        about="best value on the 4-D ellipsoid, and the weight of one past task, by similarity",
        numbers=_numbers_of_centres,
        draw=_draw_centres,
        plan=_plan_centres,
        n_seeds=50,
        n_quick_seeds=8,
    ),
    Figure(
        name="n-tasks",
        about="best value on the 10-D ellipsoid with 0, 1, 2, 4 and 8 past tasks, by similarity",
        numbers=_numbers_of_tasks,
        draw=_draw_numbers,
        plan=_plan_numbers,
        n_quick_seeds=3,
    ),
)
