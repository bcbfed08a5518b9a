"""The figures of a report: those of `metatpe.viz`, and the front with its configurations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from metatpe import viz
from metatpe.past.task import Task
from metatpe.report.facts import Facts
from metatpe.study.trials import is_counted
from metatpe.viz.runs import spans_decades
from metatpe.viz.style import GREY, as_html, shortened
from metatpe.viz.weights import LANES, LOOKS, NO_RECORD, reason_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_N_OBJECTIVES = 4  # more of them would be too many panels
_N_HOVER = 12  # parameters in the text of a point


def progress(facts: Facts) -> Figure:
    """Draw the running hypervolume or best value, beside runs without the past."""
    if not facts.without:
        return viz.plot_hypervolume(facts.study)
    return viz.plot_hypervolume({facts.name: facts.study, "without the past": facts.without})


def weights(facts: Facts) -> Figure:
    """Draw the weights of the past studies."""
    return viz.plot_task_weights(facts.study)


def importances(facts: Facts) -> Figure:
    """Draw the importance of each parameter."""
    used = [facts.tasks[s.name] for s in facts.used if s.name in facts.tasks]
    return viz.plot_importances(facts.study, used)


def similarity(facts: Facts, tasks: Sequence[Task]) -> Figure:
    """Draw the similarities of the study and past ones."""
    return viz.plot_similarity([facts.study, *tasks])


def overlap(facts: Facts, task: Task) -> Figure | None:
    """Draw where the best regions of the study and a past one overlap; None where none do."""
    try:
        return viz.plot_gamma_sets(facts.study, task)
    except ValueError:  # their best configurations have no two parameters in common
        return None


def front(facts: Facts) -> Figure:
    """Draw the front and all trials, a panel for each two of the objectives."""
    from plotly.subplots import make_subplots

    from metatpe.viz.plotly import template

    names = [name for name, _ in facts.objectives][:_N_OBJECTIVES]
    pairs = list(itertools.combinations(range(len(names)), 2))
    n_rows = -(-len(pairs) // 3)
    figure = make_subplots(cols=min(len(pairs), 3), rows=n_rows)
    for i, (a, b) in enumerate(pairs):
        row, col = i // 3 + 1, i % 3 + 1
        for trace in _traces(facts, a, b, is_first=i == 0):
            figure.add_trace(trace, row=row, col=col)
        figure.update_xaxes(_axis(facts, a), row=row, col=col)
        figure.update_yaxes(_axis(facts, b), row=row, col=col)
    return figure.update_layout(
        template=template(), title={"text": "Values reached"}, height=200 + 300 * n_rows
    )


def _axis(facts: Facts, i: int) -> dict[str, Any]:
    """Return the axis of an objective, on a log scale where its values span decades."""
    values = np.array([t.values[i] for trials in _by_lane(facts).values() for t in trials])
    return {
        "title": {"text": as_html(shortened(facts.objectives[i][0]))},
        "type": "log" if len(values) and spans_decades(values) else "linear",
    }


def _traces(facts: Facts, a: int, b: int, *, is_first: bool) -> list[Any]:
    """Return the front as a line, and the trials as points, one trace for each lane."""
    from plotly import graph_objects as go

    finite = [trial for trial in facts.front if np.isfinite(trial.values).all()]
    best = sorted(finite, key=lambda t: (t.values[a], t.values[b]))
    is_line = len(facts.objectives) == 2
    # At a value of the first objective the front is where the next better trial is.
    shape = "hv" if facts.objectives[a][1] == "minimize" else "vh"
    line = go.Scatter(
        x=[t.values[a] for t in best],
        y=[t.values[b] for t in best],
        mode="lines" if is_line else "markers",
        name="front",
        legendgroup="front",
        showlegend=is_first,
        hoverinfo="skip",
        line={"color": GREY, "width": 2, "shape": shape},
        marker={"color": "rgba(0,0,0,0)", "size": 14, "line": {"color": GREY, "width": 2}},
    )
    return [line, *_points(facts, a, b, is_first=is_first)]


def _points(facts: Facts, a: int, b: int, *, is_first: bool) -> list[Any]:
    from plotly import graph_objects as go

    on_front = {trial.number for trial in facts.front}
    traces = []
    for lane, trials in _by_lane(facts).items():
        style = LOOKS[lane]
        is_best = [trial.number in on_front for trial in trials]
        traces.append(
            go.Scatter(
                x=np.array([t.values[a] for t in trials]),
                y=np.array([t.values[b] for t in trials]),
                mode="markers",
                name=lane,
                legendgroup=lane,
                showlegend=is_first,
                hovertext=[_hover(facts, t) for t in trials],
                hoverinfo="text",
                marker={
                    "color": style.colour,
                    "symbol": style.marker,
                    "size": [11 if best else 7 for best in is_best],
                    "opacity": [1.0 if best else 0.5 for best in is_best],
                },
            )
        )
    return traces


def _by_lane(facts: Facts) -> dict[str, list[FrozenTrial]]:
    """Return the finished trials with finite values, by how they were chosen."""
    lanes = {record.number: LANES[reason_of(record)] for record in facts.records}
    found: dict[str, list[FrozenTrial]] = {}
    for trial in facts.trials:
        is_done = trial.state == TrialState.COMPLETE and is_counted(trial)
        if is_done and np.isfinite(trial.values).all():
            found.setdefault(lanes.get(trial.number, NO_RECORD), []).append(trial)
    return found


def _hover(facts: Facts, trial: FrozenTrial) -> str:
    """Return the text of a point; plotly takes it for HTML, so names and values are escaped."""
    values = zip((name for name, _ in facts.objectives), trial.values, strict=True)
    lines = [f"{name}: {value:.5g}" for name, value in values]
    if trial.number in {t.number for t in facts.front}:
        given = list(trial.params.items())
        lines += [f"{name} = {_short(value)}" for name, value in given[:_N_HOVER]]
        lines += [f"and {len(given) - _N_HOVER} more"] if len(given) > _N_HOVER else []
    return "<br>".join([f"<b>trial {trial.number}</b>", *map(as_html, lines)])


def _short(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
