"""The figures of a report: those of `metatpe.viz`, and the front with its configurations."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from metatpe import viz
from metatpe.past.task import Task
from metatpe.report.facts import Facts
from metatpe.study.record import record_of
from metatpe.study.trials import is_counted
from metatpe.viz.style import GREY, as_html, shortened, value_text
from metatpe.viz.ticks import padded, spans_decades
from metatpe.viz.weights import LANES, LOOKS, NO_RECORD, reason_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Lanes = dict[str, list[FrozenTrial]]  # how trials were chosen -> those trials
_N_OBJECTIVES = 4  # more of them would be too many panels
_N_HOVER = 12  # parameters in the text of a point


def progress(facts: Facts) -> Figure:
    """Draw the running hypervolume or best value, beside runs without past studies."""
    if not facts.without:
        return viz.plot_hypervolume(facts.study)
    return viz.plot_hypervolume(
        {facts.study.study_name: facts.study, "without past studies": facts.without}
    )


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

    pairs = list(itertools.combinations(range(len(facts.objectives))[:_N_OBJECTIVES], 2))
    n_rows = -(-len(pairs) // 3)
    figure = make_subplots(cols=min(len(pairs), 3), rows=n_rows)
    lanes = _by_lane(facts)
    for i, (a, b) in enumerate(pairs):
        place = {"row": i // 3 + 1, "col": i % 3 + 1}
        for trace in (_line(facts, a, b), *_points(facts, lanes, a, b)):
            trace.update(legendgroup=trace.name, showlegend=i == 0)
            figure.add_trace(trace, **place)
        figure.update_xaxes(_axis(facts, lanes, a), **place)
        figure.update_yaxes(_axis(facts, lanes, b), **place)
    return figure.update_layout(
        template=template(), title={"text": "Values reached"}, height=200 + 300 * n_rows
    )


def _by_lane(facts: Facts) -> Lanes:
    """Return the finished trials with finite values, by how they were chosen."""
    found: Lanes = {}
    for trial in facts.trials:
        is_done = trial.state == TrialState.COMPLETE and is_counted(trial)
        if is_done and np.isfinite(trial.values).all():
            record = record_of(trial)
            lane = LANES[reason_of(record)] if record else NO_RECORD
            found.setdefault(lane, []).append(trial)
    return found


def _axis(facts: Facts, lanes: Lanes, i: int) -> dict[str, Any]:
    """Return the axis of an objective, on a log scale where its values span decades."""
    from metatpe.viz.plotly import log_axis

    title = {"title": {"text": as_html(shortened(facts.objectives[i][0]))}}
    values = np.array([t.values[i] for trials in lanes.values() for t in trials])
    if not len(values) or not spans_decades(values):
        return title
    return {**title, **log_axis(*padded(values, True))}


def _line(facts: Facts, a: int, b: int) -> Any:
    """Return the front: as a line, or of more than two objectives as circles."""
    from plotly import graph_objects as go

    finite = [trial for trial in facts.front if np.isfinite(trial.values).all()]
    best = sorted(finite, key=lambda t: (t.values[a], t.values[b]))
    # At a value of the first objective the front is where the next better trial is.
    shape = "hv" if facts.objectives[a][1] == "minimize" else "vh"
    return go.Scatter(
        x=[t.values[a] for t in best],
        y=[t.values[b] for t in best],
        mode="lines" if len(facts.objectives) == 2 else "markers",
        name="front",
        hoverinfo="skip",
        line={"color": GREY, "width": 2, "shape": shape},
        marker={"color": "rgba(0,0,0,0)", "size": 14, "line": {"color": GREY, "width": 2}},
    )


def _points(facts: Facts, lanes: Lanes, a: int, b: int) -> list[Any]:
    """Return the trials as points, one trace for each lane."""
    from plotly import graph_objects as go

    on_front = {trial.number for trial in facts.front}
    traces = []
    for lane, trials in lanes.items():
        x, y = np.array([(t.values[a], t.values[b]) for t in trials]).T
        is_best = [trial.number in on_front for trial in trials]
        texts = [_hover(facts, *pair) for pair in zip(trials, is_best, strict=True)]
        marker = {
            "color": LOOKS[lane].colour,
            "symbol": LOOKS[lane].marker,
            "size": [12 if best else 8 for best in is_best],
            "opacity": [1.0 if best else 0.6 for best in is_best],
        }
        points = go.Scatter(x=x, y=y, mode="markers", name=lane, marker=marker)
        traces.append(points.update(hovertext=texts, hoverinfo="text"))
    return traces


def _hover(facts: Facts, trial: FrozenTrial, is_best: bool) -> str:
    """Return the text of a point; plotly takes it for HTML, so names and values are escaped."""
    values = zip((name for name, _ in facts.objectives), trial.values, strict=True)
    lines = [f"{name}: {value:.5g}" for name, value in values]
    if is_best:
        given = list(trial.params.items())
        lines += [f"{name} = {value_text(value)}" for name, value in given[:_N_HOVER]]
        lines += [f"and {len(given) - _N_HOVER} more"] if len(given) > _N_HOVER else []
    return "<br>".join([f"<b>trial {trial.number}</b>", *map(as_html, lines)])
