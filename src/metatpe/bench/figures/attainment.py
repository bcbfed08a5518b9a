r"""Attainment surfaces: which objective values half of the runs have reached, and the true front.

The q % surface borders what q % of the runs dominate; 50 % is drawn as a line, 25 to 75 % as a
band. Axes are the paper's: time to the right, the other objective upwards, in their own units,
and in log scale where the hypervolume takes it in log scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from metatpe.bench.figures import style
from metatpe.bench.figures.curves import grouped, labelled
from metatpe.bench.figures.figure import SUITES, Figure, Measure, Table
from metatpe.bench.metrics import attainment_surfaces
from metatpe.bench.plan import Run, plan
from metatpe.bench.problems import Floats, Problem, get_problem, problem_names
from metatpe.bench.records import Trace
from metatpe.tpe.hypervolume import staircase as border_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_PERCENTAGES = (25, 50, 75)
_FRONT = "true front"
_METHODS = (
    "meta-tpe",
    "transfer",
    "mo-tpe",
    "only-warm-start",
    "random",
    "optuna-tpe-multivariate+warm",
    "optuna-gp-log+warm",
    "rgpe-ehvi",
    "tstr-ehvi",
)
_QUICK = ("meta-tpe", "mo-tpe", "only-warm-start", "random")
_SHOWN = 0.92  # of the corners of the 50 % surfaces, in each objective
_UNITS = {"train_time": "training time / s", "val_loss": "validation error"}
_UNITS |= {"decoding_time": "decoding time / s", "bleu": "BLEU"}


def _plan(suite: str, seeds: Iterable[int], quick: bool) -> tuple[Run, ...]:
    return plan([suite], _QUICK if quick else _METHODS, seeds)


def _table_of_surfaces(traces: Sequence[Trace], measure: Measure) -> Table:
    """Return the corners of all surfaces; the true front is the one without a percentage."""
    import pandas as pd

    groups = grouped(traces, lambda run: (run.problem, run.method))
    parts = []
    for name in problem_names():
        here = {method: groups[name, method] for method in _METHODS if (name, method) in groups}
        if not here:
            continue
        problem = get_problem(name)
        for method, members in here.items():
            surfaces = attainment_surfaces(problem, [t.values for t in members], _PERCENTAGES)
            for percentage, corners in surfaces.items():
                parts.append(_part(problem, method, percentage, len(members), corners))
        assert problem.front is not None
        parts.append(_part(problem, _FRONT, None, 0, problem.front))
    return pd.concat(parts, ignore_index=True).astype({"percentage": "Int64"})


def _part(
    problem: Problem, method: str, percentage: float | None, n_seeds: int, corners: Floats
) -> Table:
    import pandas as pd

    part = pd.DataFrame(corners, columns=list(problem.objective_names))
    return labelled(
        part, problem=problem.name, method=method, percentage=percentage, seeds=n_seeds
    )


def _draw(table: Table) -> Picture:
    problems = table["problem"].unique()
    methods = [name for name in table["method"].unique() if name != _FRONT]
    lines = style.method_lines(methods)
    n_rows = 2 if len(problems) > 3 else 1
    picture, axes = style.panels(n_rows, -(-len(problems) // n_rows), 2.2 * n_rows + 0.4)
    for axis, name in zip(axes.flat, problems, strict=True):
        problem, here = get_problem(name), table[table["problem"] == name]
        worst = problem.losses(_values(problem, here)).max(axis=0)
        for method in [name for name in methods if (here["method"] == name).any()]:
            own = here[here["method"] == method]
            surfaces = {
                q: staircase(problem, _values(problem, own[own["percentage"] == q]), worst)
                for q in _PERCENTAGES
            }
            _draw_surfaces(axis, surfaces, lines[method], method)
        front = _values(problem, here[here["method"] == _FRONT])
        border = staircase(problem, front, worst)
        axis.plot(*border.T[::-1], **style.FRONT._replace(colour="black").look, label=_FRONT)
        axis.set_title(style.title_of(name))
        _finish(axis, problem, front, _values(problem, here[here["percentage"] == 50]))
    style.legend_below(picture, 5 if len(methods) < 5 else 4, [*methods, _FRONT])
    return picture


def _values(problem: Problem, table: Table) -> Floats:  # (k, 2)
    values: Floats = table[list(problem.objective_names)].to_numpy(np.float64)
    return values


def staircase(problem: Problem, corners: Floats, worst: Floats) -> Floats:  # (2 k + 1, 2)
    """Return the border of what the corners (k, 2) dominate.

    Args:
        problem: Its directions say what dominates what.
        corners: In the problem's own units, none dominating another.
        worst: The losses (2,) up to which the border goes.
    """
    return problem.losses(border_of(problem.losses(corners), worst))


def _draw_surfaces(axis: Any, surfaces: dict[int, Floats], line: style.Line, method: str) -> None:
    low, middle, high = (surfaces[q] for q in _PERCENTAGES)
    band = np.concatenate([low, high[::-1]])
    axis.fill(*band.T[::-1], color=line.colour, alpha=0.13, linewidth=0)
    axis.plot(*middle.T[::-1], **line.look, markevery=slice(1, None, 6), label=method)


def _finish(axis: Any, problem: Problem, front: Floats, middle: Floats) -> None:
    """Name and scale the axes; show where most corners are, not the long way to the worst ones."""
    quality, time = problem.objective_names
    axis.set(xlabel=_UNITS.get(time, time), ylabel=_UNITS.get(quality, quality))
    is_log = problem.log_objectives
    axis.set(xscale="log" if is_log[1] else "linear", yscale="log" if is_log[0] else "linear")
    best = problem.losses(front).min(axis=0)
    most = np.quantile(problem.losses(middle), _SHOWN, axis=0)
    limits = problem.losses(np.stack([best, most]))  # (2, m)
    axis.set_xlim(style.padded(limits[:, 1], is_log[1]))
    axis.set_ylim(style.padded(limits[:, 0], is_log[0]))
    if is_log[0]:
        style.log_ticks(axis.yaxis, limits[:, 0])


FIGURES = tuple(
    Figure(
        name=f"eaf-{suite}",
        about=f"objective values that half of the runs reach (25 to 75 % as bands) on {title}",
        numbers=_table_of_surfaces,
        draw=_draw,
        problems=problem_names(suite),
        plan=partial(_plan, suite),
    )
    for suite, title in SUITES.items()
)
