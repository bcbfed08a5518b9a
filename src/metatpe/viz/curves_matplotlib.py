"""Learning curves with matplotlib."""

from __future__ import annotations

from typing import Any

from metatpe.viz.curves import (
    BEST,
    COMPLETE,
    EXPECTED,
    PAST,
    PRUNED,
    RUNNING,
    STOP,
    LearningCurves,
    Panel,
    joined,
)
from metatpe.viz.matplotlib import GRID, Handles, finish, label_logs, subplots, whole_numbers
from metatpe.viz.style import ALL_COLOURS, GREY, as_mpl, shortened

_STOPPED = ALL_COLOURS[5]
_LINES: dict[str, dict[str, Any]] = {  # in the order in which they are drawn
    PAST: {"color": GREY, "alpha": 0.3, "linewidth": 0.5},
    PRUNED: {"color": ALL_COLOURS[1], "alpha": 0.8, "linewidth": 0.8},
    COMPLETE: {"color": ALL_COLOURS[0], "alpha": 0.7, "linewidth": 0.9},
    RUNNING: {"color": ALL_COLOURS[4], "linestyle": "--", "linewidth": 0.9},
    BEST: {"color": ALL_COLOURS[2], "linewidth": 2.2},
}


def draw_learning_curves(data: LearningCurves) -> Any:
    """Draw learning curves, a panel per objective."""
    n = len(data.panels)
    figure, grid = subplots(n, 1, (7, 1.4 + 3.2 * n), sharex=True)
    named: Handles = []
    for axis, panel in zip(grid[:, 0], data.panels, strict=True):
        found = dict(_draw(axis, panel))
        named += [pair for pair in found.items() if pair[0] not in dict(named)]
        axis.set_ylabel(as_mpl(shortened(panel.name)))
        axis.grid(**GRID)
        if panel.limits:
            axis.set(yscale="log" if panel.is_log else "linear", ylim=panel.limits)
        if panel.limits and panel.is_log:
            label_logs(axis.yaxis, *panel.limits)
    grid[-1, 0].set_xlabel("step")
    whole_numbers(grid[-1, 0].xaxis)
    finish(grid[0, 0], data, named)
    return figure


def _draw(axis: Any, panel: Panel) -> Handles:
    """Draw the curves of one objective; return what the legend has."""
    named: Handles = []
    for name, style in _LINES.items():
        if panel.groups.get(name):
            named.append((name, axis.plot(*joined(panel.groups[name]), **style)[0]))
    if panel.stops:
        x, y = zip(*((stop.step, stop.value) for stop in panel.stops), strict=True)
        cross = axis.plot(x, y, "x", color=_STOPPED, markersize=5)[0]
        named.append((STOP, cross))
    dotted = {"color": _STOPPED, "linestyle": ":", "linewidth": 0.8, "alpha": 0.7}
    end = {"marker": "D", "markevery": [1], "markersize": 3.5, "markerfacecolor": "none"}
    lines = [
        axis.plot([stop.step, stop.end], [stop.value, stop.expected], **dotted, **end)[0]
        for stop in panel.stops
        if stop.expected is not None
    ]
    return [*named, (EXPECTED, lines[0])] if lines else named
