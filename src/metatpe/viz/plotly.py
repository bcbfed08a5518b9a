"""The plots with plotly. What is drawn is computed elsewhere; here it gets its form."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from metatpe.extras import install_command
from metatpe.space import Floats
from metatpe.viz.portfolio import SERVES, Coverage
from metatpe.viz.regions import GammaSets, Good, line_of
from metatpe.viz.runs import Attainment, Curve, Progress, Surface
from metatpe.viz.style import (
    ALL_COLOURS,
    BOTH,
    GREY,
    HEAT,
    MARKED,
    MAX_NAMED,
    MAX_NUMBERS,
    TARGET,
    WIDTH,
    Look,
    Shown,
    as_html,
    look,
    number,
    shortened,
)
from metatpe.viz.tasks import Importances, Similarities
from metatpe.viz.ticks import linear_ticks, log_labels, trial_step
from metatpe.viz.weights import LOOKS, Weights

try:
    from plotly import graph_objects as go
    from plotly.subplots import make_subplots
except ImportError:
    raise ImportError(f"metatpe.viz needs plotly: {install_command('viz')}") from None

_LINE, _NOTHING = "rgba(128,128,128,0.25)", "rgba(0,0,0,0)"  # of grids; of what is not there
_BAND: Any = {"fill": "toself", "hoverinfo": "skip", "showlegend": False}


def template() -> Any:
    """Return the look of all figures: transparent, and readable on light and on dark pages."""
    lines = {"gridcolor": _LINE, "linecolor": GREY, "zerolinecolor": _LINE, "tickcolor": _LINE}
    axis = {**lines, "ticks": "outside", "automargin": True, "title": {"standoff": 8}}
    fonts = {"font": {"size": 17}, "subtitle": {"font": {"size": 12}}}
    legend = {"orientation": "h", "x": 0.0, "y": 0.0, "yref": "container", "yanchor": "bottom"}
    return go.layout.Template(
        layout={
            "paper_bgcolor": _NOTHING,
            "plot_bgcolor": _NOTHING,
            "font": {"color": GREY, "size": 13},
            "title": {"x": 0.0, "y": 1.0, "yanchor": "top", "pad": {"l": 12, "t": 16}, **fonts},
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"align": "left"},
            "legend": legend,
            "margin": {"l": 60, "r": 20, "t": 50, "b": 50},
            "colorway": list(ALL_COLOURS),
        }
    )


def finish(figure: Any, data: Shown, **layout: Any) -> Any:
    """Give a figure its title, a line below it, and a note where there is nothing to see."""
    lines = [as_html(line) for line in textwrap.wrap(data.about, WIDTH)]
    figure.update_layout(
        template=template(),
        title={"text": as_html(data.title), "subtitle": {"text": "<br>".join(lines)}},
        margin={"t": 56 + 16 * len(lines)},
        **layout,
    )
    if data.note:
        place = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
        figure.add_annotation(text=as_html(data.note), showarrow=False, **place)
    return figure


def log_axis(low: float, high: float) -> dict[str, Any]:
    """Return a log axis between two values."""
    ticks, labels = log_labels(low, high)
    ends = np.log10([low, high]).tolist()
    return {"type": "log", "range": ends, "tickvals": ticks, "ticktext": labels}


def faded(colour: str, alpha: float) -> str:
    """Return a colour #rrggbb that lets through what is behind."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def _line(name: str, style: Look, x: Any, y: Any, **options: Any) -> Any:
    """Return a line that the legend shortens and the hover text has in full."""
    line = {"color": style.colour, "dash": style.dash, "width": 2}
    options = {"mode": "lines", "line": line, "meta": as_html(name), **options}
    return go.Scatter(x=x, y=y, name=as_html(shortened(name)), **options)


def _area(colour: str, x: Any, y: Any, **options: Any) -> Any:
    """Return an area without a border."""
    return go.Scatter(x=x, y=y, mode="lines", line={"width": 0}, fillcolor=colour, **options)


def _markers(style: Look, size: int, x: Any, y: Any, **options: Any) -> Any:
    """Return markers, which the legend does not have."""
    marker = {"symbol": style.marker, "size": size, "color": style.colour}
    return go.Scatter(x=x, y=y, mode="markers", marker=marker, showlegend=False, **options)


# Weights --------------------------------------------------------------------------------------


def draw_task_weights(data: Weights) -> Any:
    n_lanes = max(len(data.lanes), 4)
    heights = [10, 5, n_lanes]  # each lane needs room for its name, also in a small figure
    figure = make_subplots(rows=3, shared_xaxes=True, row_heights=heights, vertical_spacing=0.05)
    hover = "%{meta}<br>trial %{x}: weight %{y:.4f}<extra></extra>"
    for i, (name, weights) in enumerate(data.past.items()):
        trace = _line(name, look(i), data.trials, weights, hovertemplate=hover, connectgaps=True)
        figure.add_trace(trace, row=1, col=1)
    figure.add_traces(_shares(data), rows=2, cols=1)
    for name, numbers in data.lanes.items():
        at, hover = [name] * len(numbers), f"trial %{{x}}: {name}<extra></extra>"
        lane = _markers(LOOKS[name], 7, np.array(numbers), at, name=name, hovertemplate=hover)
        figure.add_trace(lane, row=3, col=1)
    figure.update_yaxes(title="weight", rangemode="tozero", row=1)
    figure.update_yaxes(title="share", range=[0, 1], row=2)
    lanes = list(data.lanes)[::-1]
    axis = {"type": "category", "categoryarray": lanes, "tickvals": lanes}
    figure.update_yaxes(row=3, tickfont={"size": 11}, **axis)
    n_trials = 1 + max((n for numbers in data.lanes.values() for n in numbers), default=0)
    figure.update_xaxes(dtick=trial_step(n_trials))
    figure.update_xaxes(title="trial", row=3)
    height = 480 + 20 * n_lanes + 10 * len(data.past)
    return finish(figure, data, height=height, legend={"traceorder": "normal"})


def _shares(data: Weights) -> list[Any]:
    """Return how the whole weight is divided, as areas on top of each other."""
    hover = "%{meta}<br>trial %{x}: %{y:.4f} of the whole weight<extra></extra>"
    traces = []
    for name, weights, colour in data.shares:
        names = {"name": as_html(shortened(name)), "meta": as_html(name), "hovertemplate": hover}
        options = {"stackgroup": "all", "showlegend": name not in data.past, **names}
        traces.append(_area(faded(*colour), data.trials, weights, **options))
    return traces


# Runs -----------------------------------------------------------------------------------------


def draw_progress(data: Progress) -> Any:
    figure = go.Figure()
    for i, curve in enumerate(data.curves):
        if curve.n_runs > 1:
            figure.add_trace(_band(curve, look(i)))
        figure.add_trace(_curve(curve, look(i)))
    n_trials = max((len(curve.finished) for curve in data.curves), default=0)
    step = trial_step(n_trials)
    figure.update_xaxes(title="finished trials", rangemode="tozero", dtick=step)
    figure.update_yaxes(title=as_html(data.y_name))
    if data.limits:
        figure.update_yaxes(log_axis(*data.limits))
    return finish(figure, data, height=430, showlegend=True)


def _runs(of: Curve | Surface) -> str:
    return of.label if of.n_runs == 1 else f"{shortened(of.label)} ({of.n_runs} runs)"


def _curve(curve: Curve, style: Look) -> Any:
    is_one = curve.n_runs == 1
    beside = "<br>trial %{customdata}" if is_one else " ± %{customdata:.2g}"
    hover = f"%{{meta}}<br>after %{{x}} trials: %{{y:.5g}}{beside}<extra></extra>"
    options = {"customdata": curve.numbers if is_one else curve.se, "hovertemplate": hover}
    return _line(_runs(curve), style, curve.finished, curve.mean, line_shape="hv", **options)


def _band(curve: Curve, style: Look) -> Any:
    x = np.repeat(curve.finished, 2)[1:]  # as steps
    upper, lower = (np.repeat(curve.mean + d, 2)[:-1] for d in (curve.se, -curve.se))
    y = np.concatenate([upper, lower[::-1]])
    return _area(faded(style.colour, 0.2), np.concatenate([x, x[::-1]]), y, **_BAND)


def draw_attainment(data: Attainment) -> Any:
    figure = go.Figure()
    for i, surface in enumerate(data.surfaces):
        figure.add_traces(_surface(surface, look(i)))
    if len(data.front):
        style = Look(GREY, "dot", "circle", "", "")
        figure.add_trace(_line("front of all", style, *data.front.T, hoverinfo="skip"))
    for i, axis in enumerate((figure.update_xaxes, figure.update_yaxes)):
        axis(title=as_html(data.names[i]))
        if data.is_log[i]:
            axis(log_axis(*data.limits[i].tolist()))
        elif len(data.limits):
            axis(range=data.limits[i].tolist())
    return finish(figure, data, height=480, showlegend=True)


def _surface(surface: Surface, style: Look) -> list[Any]:
    traces = [_line(_runs(surface), style, *surface.border.T, hoverinfo="skip")]
    if len(surface.band):
        traces.insert(0, _area(faded(style.colour, 0.15), *surface.band.T, **_BAND))
    if len(surface.points):
        hover = "%{meta}<br>trial %{customdata}: %{x:.5g}, %{y:.5g}<extra></extra>"
        names: Any = {"customdata": surface.numbers, "meta": as_html(surface.label)}
        traces.append(_markers(style, 8, *surface.points.T, **names, hovertemplate=hover))
    return traces


# Tasks ----------------------------------------------------------------------------------------


def draw_importances(data: Importances) -> Any:
    widths = [0.6, 0.4] if data.n_compared else [1.0]
    layout = {"cols": len(widths), "column_widths": widths, "horizontal_spacing": 0.03}
    figure = make_subplots(shared_yaxes=True, **layout)
    figure.add_traces(_importance_traces(data), rows=1, cols=1)
    figure.update_xaxes(title="importance", rangemode="tozero", col=1)
    figure.update_xaxes(tickformat=".0%", col=1)
    if data.n_compared:
        figure.add_trace(_kept(data), row=1, col=2)
        n_trials = 1 + max((n for kept in data.kept.values() for n in kept), default=0)
        figure.update_xaxes(title="trial", dtick=trial_step(n_trials), col=2)
    figure.update_yaxes(
        tickvals=np.arange(len(data.parameters)),
        ticktext=[as_html(shortened(name, 28)) for name in data.parameters],
        range=[len(data.parameters) - 0.5, -0.5],
        showgrid=False,
    )
    return finish(figure, data, height=190 + 32 * max(len(data.parameters), 3))


def _importance_traces(data: Importances) -> list[Any]:
    rows = np.arange(len(data.parameters))
    hover = "%{meta}<br>%{customdata}: %{x:.1%}<extra></extra>"
    options: Any = {
        "customdata": [as_html(name) for name in data.parameters],
        "hovertemplate": hover,
    }
    bar = {"name": TARGET, "meta": TARGET, "marker": {"color": faded(GREY, 0.35)}, "width": 0.7}
    traces = [go.Bar(x=data.target, y=rows, orientation="h", **bar, **options)]
    sources = {**data.sources}
    if data.n_others:
        sources[data.others_name] = data.others
    for i, (name, values) in enumerate(sources.items()):
        is_mean = i == len(data.sources)
        style = look(i)._replace(colour=GREY, marker="star") if is_mean else look(i)
        options["marker"] = {"symbol": style.marker, "size": 9, "color": style.colour}
        traces.append(_line(name, style, values, rows, mode="markers", **options))
    return traces


def _kept(data: Importances) -> Any:
    points = [(n, i) for i, name in enumerate(data.parameters) for n in data.kept[name]]
    shares = [
        f"{as_html(name)}: in {len(data.kept[name])} of {data.n_compared} trials"
        for name in data.parameters
    ]
    return go.Scatter(
        x=[n for n, _ in points],
        y=[i for _, i in points],
        customdata=[shares[i] for _, i in points],
        mode="markers",
        marker={"symbol": "line-ns", "size": 13, "line": {"width": 2, "color": ALL_COLOURS[0]}},
        showlegend=False,
        hovertemplate="trial %{x}<br>%{customdata}<extra></extra>",
    )


def draw_similarity(data: Similarities) -> Any:
    n = len(data.names)
    names = [as_html(name) for name in data.names]
    hover = "%{y}<br>compared with %{x}: %{z:.3f}<extra></extra>"
    heat = go.Heatmap(x=names, y=names, z=data.matrix, zmin=0.0, zmax=1.0, hovertemplate=hover)
    heat.update(colorscale=HEAT, xgap=1, ygap=1, colorbar={"outlinewidth": 0, "thickness": 12})
    figure = go.Figure(heat)
    if n <= MAX_NUMBERS:
        figure.add_trace(_cell_labels(names, names, data.matrix))
    ticks = {"type": "category", "tickvals": names, "showgrid": False}
    short = [as_html(shortened(name, 24)) for name in data.names]
    figure.update_xaxes(ticktext=short, showticklabels=n <= MAX_NAMED, **ticks)
    figure.update_yaxes(ticktext=short, autorange="reversed", **ticks)
    return finish(figure, data, height=320 + 16 * min(n, 50))


def _cell_labels(columns: Sequence[Any], rows: Sequence[Any], matrix: Floats) -> Any:
    """Return the numbers of a heat map as text, white where the cell is dark."""
    return go.Scatter(
        x=[column for _ in rows for column in columns],
        y=[row for row in rows for _ in columns],
        mode="text",
        text=[f"{s:.2f}" for s in matrix.ravel()],
        textfont={"color": ["black" if s > 0.5 else "white" for s in matrix.ravel()]},
        hoverinfo="skip",
        showlegend=False,
    )


# Portfolio ------------------------------------------------------------------------------------


def draw_coverage(data: Coverage) -> Any:
    n, k = data.alone.shape
    heights = [90, 24 * n, *([18 * len(data.values)] if data.values else [])]  # pixels
    gap = 14 / (sum(heights) + 14 * len(heights))
    layout = {"row_heights": heights, "vertical_spacing": gap}
    figure = make_subplots(rows=len(heights), shared_xaxes=True, **layout)
    numbers = list(range(1, k + 1))
    figure.add_trace(_together(numbers, data.together), row=1, col=1)
    figure.add_traces(_alone(numbers, data), rows=2, cols=1)
    for row, column in np.argwhere(data.serves).tolist():
        ends = {"x0": column + 0.53, "x1": column + 1.47, "y0": row - 0.45, "y1": row + 0.45}
        figure.add_shape(type="rect", line={"color": MARKED, "width": 3}, row=2, col=1, **ends)
    if data.values:
        figure.add_trace(_values(numbers, data), row=3, col=1)
    _label_rows(figure, 2, data.names)
    _label_rows(figure, 3, list(data.values))
    bar = {"outlinewidth": 0, "thickness": 12}
    figure.update_coloraxes(colorscale=HEAT, cmin=0.0, cmax=1.0, colorbar=bar)
    figure.update_coloraxes(showscale=k > MAX_NUMBERS)  # otherwise numbers are in the cells
    figure.update_yaxes(title="together", range=[0, 1.25], tickvals=[0, 0.5, 1], row=1)
    figure.update_xaxes(tickvals=numbers, range=[0.5, k + 0.5], showgrid=False, ticks="")
    figure.update_xaxes(title="configuration", row=len(heights))
    return finish(figure, data, height=190 + sum(heights), bargap=0.3, showlegend=True)


def _label_rows(figure: Any, row: int, names: Sequence[str]) -> None:
    labels = [as_html(shortened(name, 28)) for name in names]
    ends = {"range": [len(names) - 0.5, -0.5], "showgrid": False, "zeroline": False, "ticks": ""}
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=labels, row=row, **ends)


def _together(numbers: Sequence[int], together: Floats) -> Any:
    """Return what the first, the first two, ... configurations reach, as bars."""
    texts = [f"{share:.2f}" for share in together] if len(numbers) <= MAX_NUMBERS else None
    return go.Bar(
        x=numbers,
        y=together,
        text=texts,
        textposition="outside",
        marker={"color": ALL_COLOURS[0]},
        showlegend=False,
        hovertemplate="the first %{x} together: %{y:.3f}<extra></extra>",
    )


def _alone(numbers: Sequence[int], data: Coverage) -> list[Any]:
    """Return what each configuration reaches on each past study, and what the outlines mean."""
    rows = list(range(len(data.names)))
    texts = [[_cell(data, row, column - 1) for column in numbers] for row in rows]
    hover = {"customdata": texts, "hovertemplate": "%{customdata}<extra></extra>"}
    heat = go.Heatmap(x=numbers, y=rows, z=data.alone, coloraxis="coloraxis", **hover)
    key = {"symbol": "square-open", "size": 13, "color": MARKED, "line": {"width": 3}}
    outline = go.Scatter(x=[None], y=[None], mode="markers", marker=key, name=SERVES)
    labels = [_cell_labels(numbers, rows, data.alone)] if len(numbers) <= MAX_NUMBERS else []
    return [heat.update(xgap=1, ygap=1), outline, *labels]


def _cell(data: Coverage, row: int, column: int) -> str:
    """Return what is known of a configuration on a past study."""
    member, name = data.members[column], data.names[row]
    lines = [name, f"configuration {column + 1}: {data.alone[row, column]:.3f}"]
    if name in member.expected:
        losses = ", ".join(map(number, member.expected[name]))
        lines.append(f"expected losses {losses}")
    lines += [f"{parameter} = {_value(value)}" for parameter, value in member.params.items()]
    return "<br>".join(map(as_html, lines))


def _values(numbers: Sequence[int], data: Coverage) -> Any:
    """Return the values of the parameters, as a table."""
    return go.Scatter(
        x=[column for _ in data.values for column in numbers],
        y=[row for row in range(len(data.values)) for _ in numbers],
        mode="text",
        text=[as_html(shortened(text, 12)) for texts in data.values.values() for text in texts],
        textfont={"size": 11},
        hoverinfo="skip",
        showlegend=False,
    )


# Regions --------------------------------------------------------------------------------------


def draw_gamma_sets(data: GammaSets) -> Any:
    figure = go.Figure(_densities(data) if len(data.axes) == 1 else _areas(data))
    for axis, update in zip(data.axes, (figure.update_xaxes, figure.update_yaxes), strict=False):
        labels = [as_html(label) for label in axis.labels]
        update(title=as_html(shortened(axis.name)), tickvals=axis.ticks, ticktext=labels)
        update(range=[0, 1], showgrid=not axis.is_discrete, zeroline=False)
    if len(data.axes) == 1:
        ticks, ends = linear_ticks(0.0, data.top), [-0.14 * data.top, 1.05 * data.top]
        figure.update_yaxes(title="density of the best configurations", tickvals=ticks, range=ends)
    return finish(figure, data, height=480, showlegend=True)


def _densities(data: GammaSets) -> list[Any]:
    axis = data.axes[0]
    x, both = line_of(axis, np.minimum(data.a.density, data.b.density))
    options = {"name": "both", "fill": "tozeroy", "hoverinfo": "skip"}
    traces = [_area(faded(BOTH, 0.35), x, both, **options)]
    for i, (good, style) in enumerate(data.pair, 1):
        traces.append(_line(good.name, style, *line_of(axis, good.density), hoverinfo="skip"))
        below = np.full(len(good.X), -0.05 * i * data.top)
        traces.append(_points(good, style, good.X[:, 0], below))
    return traces


def _areas(data: GammaSets) -> list[Any]:
    colours = [_NOTHING, *(faded(s.colour, 0.4) for _, s in data.pair), faded(BOTH, 0.75)]
    scale = [[(i + end) / 4, colour] for i, colour in enumerate(colours) for end in (0, 1)]
    x, y = (axis.edges for axis in data.axes)
    heat = go.Heatmap(x=x, y=y, z=data.codes.astype(np.uint8), zmin=-0.5, zmax=3.5)
    heat.update(colorscale=scale, showscale=False, hoverinfo="skip")
    traces = [heat]
    for name, colour in zip([data.a.name, data.b.name, "both"], colours[1:], strict=True):
        key = {"name": as_html(shortened(name)), "marker": {"symbol": "square", "size": 14}}
        traces.append(go.Scatter(x=[None], y=[None], mode="markers", marker_color=colour, **key))
    return [*traces, *(_points(good, style, *good.X.T) for good, style in data.pair)]


def _points(good: Good, style: Look, x: Floats, y: Floats) -> Any:
    """Return the good observations as markers."""
    texts = [
        "<br>".join(as_html(f"{name} = {_value(value)}") for name, value in values.items())
        for values in good.values
    ]
    hover = {"customdata": texts, "hovertemplate": "%{meta}<br>%{customdata}<extra></extra>"}
    edge = {"width": 1, "color": "white"}
    return _markers(style, 8, x, y, marker_line=edge, meta=as_html(good.name), **hover)


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)
