"""Learning curves with plotly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from plotly import graph_objects as go
from plotly.subplots import make_subplots

from metatpe.viz.curves import (
    BEST,
    COMPLETE,
    EXPECTED,
    PAST,
    PRUNED,
    RUNNING,
    STOP,
    Drawn,
    LearningCurves,
    Panel,
    Stop,
    joined,
)
from metatpe.viz.plotly import faded, finish, log_axis
from metatpe.viz.style import ALL_COLOURS, GREY, as_html, shortened

_STOPPED = ALL_COLOURS[5]
_LINES: dict[str, dict[str, Any]] = {  # in the order in which they are drawn
    PAST: {"color": faded(GREY, 0.3), "width": 0.7},
    PRUNED: {"color": faded(ALL_COLOURS[1], 0.8), "width": 1},
    COMPLETE: {"color": faded(ALL_COLOURS[0], 0.7), "width": 1.2},
    RUNNING: {"color": ALL_COLOURS[4], "width": 1.2, "dash": "dash"},
    BEST: {"color": ALL_COLOURS[2], "width": 3},
}


def draw_learning_curves(data: LearningCurves) -> Any:
    """Draw learning curves, a panel per objective."""
    n = len(data.panels)
    figure = make_subplots(rows=n, shared_xaxes=True, vertical_spacing=0.2 / n)
    for row, panel in enumerate(data.panels, 1):
        for trace in _traces(panel):
            trace.update(legendgroup=trace.name, showlegend=row == 1)
            figure.add_trace(trace, row=row, col=1)
        figure.update_yaxes(title=as_html(shortened(panel.name)), row=row)
        if panel.limits and panel.is_log:
            figure.update_yaxes(log_axis(*panel.limits), row=row)
        elif panel.limits:
            figure.update_yaxes(range=list(panel.limits), row=row)
    figure.update_xaxes(title="step", row=n)
    return finish(figure, data, height=170 + 300 * n, showlegend=True)


def _traces(panel: Panel) -> list[Any]:
    traces = []
    for name, line in _LINES.items():
        curves = panel.groups.get(name, ())
        if curves:
            traces.append(_lines(name, curves, line))
    if panel.stops:
        traces.append(_stops(panel.stops))
    expected = [stop for stop in panel.stops if stop.expected is not None]
    if expected:
        traces.append(_expected(expected))
    return traces


def _lines(name: str, curves: Sequence[Drawn], line: dict[str, Any]) -> Any:
    x, y = joined(curves)
    labels = [as_html(curve.label) for curve in curves for _ in range(len(curve.steps) + 1)]
    hover = "%{customdata}<br>step %{x:.0f}: %{y:.5g}<extra></extra>"
    options: Any = {"customdata": labels, "hovertemplate": hover}
    return go.Scatter(x=x, y=y, mode="lines", name=name, line=line, **options)


def _stops(stops: Sequence[Stop]) -> Any:
    return go.Scatter(
        x=[stop.step for stop in stops],
        y=[stop.value for stop in stops],
        mode="markers",
        name=STOP,
        marker={"symbol": "x", "size": 7, "color": _STOPPED},
        customdata=[as_html(stop.text) for stop in stops],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _expected(stops: Sequence[Stop]) -> Any:
    """Return dotted lines from where trials were pruned to what they were expected to reach."""
    x = np.array([[stop.step, stop.end, np.nan] for stop in stops]).ravel()
    y = [v for stop in stops for v in (stop.value, stop.expected, np.nan)]
    sizes = [size for _ in stops for size in (0, 6, 0)]
    return go.Scatter(
        x=x,
        y=y,
        mode="lines+markers",
        name=EXPECTED,
        line={"color": faded(_STOPPED, 0.45), "width": 1, "dash": "dot"},
        marker={"symbol": "diamond-open", "size": sizes, "color": _STOPPED},
        customdata=[as_html(stop.text) for stop in stops for _ in range(3)],
        hovertemplate="%{customdata}<extra></extra>",
    )
