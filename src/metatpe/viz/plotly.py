"""The plots with plotly. What is drawn is computed elsewhere; here it gets its form."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from metatpe.space import Floats, Ints
from metatpe.viz.regions import GammaSets, Good, line_of, linear_ticks
from metatpe.viz.runs import Attainment, Curve, Progress, Surface
from metatpe.viz.style import (
    ALL_COLOURS,
    GREY,
    HEAT,
    REST,
    TARGET,
    Look,
    as_html,
    look,
    number,
    shortened,
)
from metatpe.viz.tasks import Importances, Similarities
from metatpe.viz.weights import LOOKS, Weights

try:
    from plotly import graph_objects as go
    from plotly.subplots import make_subplots
except ImportError:
    raise ImportError("metatpe.viz needs plotly: pip install 'metatpe[viz]'") from None

_A, _B, _BOTH = look(0), look(1), ALL_COLOURS[2]
_WIDTH = 60  # characters of a line below the title: a phone's width
_MAX_NAMED = 12  # tasks that are named on both axes
_MAX_NUMBERS = 10  # tasks whose similarities are written out
_LINE = "rgba(128,128,128,0.25)"  # of grids


def template() -> Any:
    """Return the look of all figures: transparent, and readable on light and on dark pages."""
    axis = {
        "gridcolor": _LINE,
        "linecolor": GREY,
        "zerolinecolor": _LINE,
        "ticks": "outside",
        "tickcolor": _LINE,
        "automargin": True,
        "title": {"standoff": 8},
    }
    return go.layout.Template(
        layout={
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": GREY, "size": 13},
            "title": {
                "x": 0.0,
                "y": 1.0,
                "yanchor": "top",
                "pad": {"l": 12, "t": 16},
                "font": {"size": 17},
                "subtitle": {"font": {"size": 12}},
            },
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"align": "left"},
            "legend": {
                "orientation": "h",
                "x": 0.0,
                "y": 0.0,
                "yref": "container",
                "yanchor": "bottom",
            },
            "margin": {"l": 60, "r": 20, "t": 50, "b": 50},
            "colorway": list(ALL_COLOURS),
        }
    )


def _finish(figure: Any, title: str, *, about: str = "", note: str = "", **layout: Any) -> Any:
    """Give a figure its title, a line below it, and a note where there is nothing to see."""
    lines = [as_html(line) for line in textwrap.wrap(about, _WIDTH)]
    figure.update_layout(
        template=template(),
        title={"text": as_html(title), "subtitle": {"text": "<br>".join(lines)}},
        margin={"t": 56 + 16 * len(lines)},
        **layout,
    )
    if note:
        figure.add_annotation(
            text=as_html(note), x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False
        )
    return figure


def _faded(colour: str, alpha: float) -> str:
    """Return a colour #rrggbb that lets through what is behind."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def _line(name: str, x: Any, y: Any, style: Look, **options: Any) -> Any:
    """Return a line that the legend shortens and the hover text has in full."""
    return go.Scatter(
        x=x,
        y=y,
        name=as_html(shortened(name)),
        line={"color": style.colour, "dash": style.dash, "width": 2},
        meta=as_html(name),
        **{"mode": "lines", **options},
    )


# Weights --------------------------------------------------------------------------------------


def draw_task_weights(data: Weights) -> Any:
    n_lanes = max(len(data.lanes), 4)
    row_heights = [10, 5, n_lanes]  # each lane needs room for its name, also in a small figure
    figure = make_subplots(
        rows=3, shared_xaxes=True, row_heights=row_heights, vertical_spacing=0.05
    )
    for i, (name, weights) in enumerate(data.past.items()):
        hover = "%{meta}<br>trial %{x}: weight %{y:.4f}<extra></extra>"
        trace = _line(name, data.trials, weights, look(i), hovertemplate=hover, connectgaps=True)
        figure.add_trace(trace, row=1, col=1)
    for name, weights, colour in _shares(data):
        trace = _share(name, data.trials, weights, colour, showlegend=name not in data.past)
        figure.add_trace(trace, row=2, col=1)
    for name, numbers in data.lanes.items():
        figure.add_trace(_lane(name, numbers), row=3, col=1)
    figure.update_yaxes(title="weight", rangemode="tozero", row=1)
    figure.update_yaxes(title="share", range=[0, 1], row=2)
    lanes = list(data.lanes)[::-1]
    axis = {"type": "category", "categoryarray": lanes, "tickvals": lanes}
    figure.update_yaxes(row=3, tickfont={"size": 11}, **axis)
    figure.update_xaxes(title="trial", row=3)
    height = 480 + 20 * n_lanes + 10 * len(data.past)
    about, legend = shortened(data.study), {"traceorder": "normal"}
    return _finish(
        figure,
        "Weights of the past studies",
        about=about,
        note=data.note,
        height=height,
        legend=legend,
    )


def _shares(data: Weights) -> list[tuple[str, Floats, str]]:
    """Return how the whole weight is divided: name, weights, colour."""
    if not len(data.trials):
        return []
    shares = [
        (name, np.nan_to_num(weights), _faded(look(i).colour, 0.8))
        for i, (name, weights) in enumerate(data.past.items())
    ]
    if data.has_rest:
        shares.append((REST, data.rest, _faded(GREY, 0.7)))
    return [*shares, (TARGET, data.target, _faded(GREY, 0.25))]


def _share(name: str, trials: Ints, weights: Floats, colour: str, *, showlegend: bool) -> Any:
    return go.Scatter(
        x=trials,
        y=weights,
        name=as_html(shortened(name)),
        meta=as_html(name),
        mode="lines",
        line={"width": 0},
        fillcolor=colour,
        stackgroup="all",
        hovertemplate="%{meta}<br>trial %{x}: %{y:.4f} of the whole weight<extra></extra>",
        showlegend=showlegend,
    )


def _lane(name: str, numbers: Sequence[int]) -> Any:
    style = LOOKS[name]
    return go.Scatter(
        x=np.array(numbers),
        y=[name] * len(numbers),
        name=name,
        mode="markers",
        marker={"symbol": style.marker, "size": 7, "color": style.colour},
        showlegend=False,
        hovertemplate=f"trial %{{x}}: {name}<extra></extra>",
    )


# Runs -----------------------------------------------------------------------------------------


def draw_progress(data: Progress) -> Any:
    figure = go.Figure()
    for i, curve in enumerate(data.curves):
        style = look(i)
        if curve.n_runs > 1:
            figure.add_trace(_band(curve, style))
        figure.add_trace(_curve(curve, style))
    figure.update_xaxes(title="finished trials", rangemode="tozero")
    figure.update_yaxes(title=as_html(data.y_name))
    title = "Hypervolume" if data.y_name == "hypervolume" else "Best value"
    return _finish(figure, title, about=data.about, note=data.note, height=430, showlegend=True)


def _runs(label: str, n_runs: int) -> str:
    return label if n_runs == 1 else f"{shortened(label)} ({n_runs} runs)"


def _curve(curve: Curve, style: Look) -> Any:
    at = "after %{x} trials: %{y:.5g}"
    if curve.n_runs == 1:
        at += "<br>trial %{customdata}"
    else:
        at += " ± %{customdata:.2g}"
    return _line(
        _runs(curve.label, curve.n_runs),
        curve.finished,
        curve.mean,
        style,
        customdata=curve.numbers if curve.n_runs == 1 else curve.se,
        hovertemplate=f"%{{meta}}<br>{at}<extra></extra>",
        line_shape="hv",
    )


def _band(curve: Curve, style: Look) -> Any:
    upper, lower = curve.mean + curve.se, curve.mean - curve.se
    x = np.repeat(curve.finished, 2)[1:]  # as steps
    y = (np.repeat(upper, 2)[:-1], np.repeat(lower, 2)[:-1])
    return go.Scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([y[0], y[1][::-1]]),
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=_faded(style.colour, 0.2),
        hoverinfo="skip",
        showlegend=False,
    )


def draw_attainment(data: Attainment) -> Any:
    figure = go.Figure()
    for i, surface in enumerate(data.surfaces):
        for trace in _surface(surface, look(i)):
            figure.add_trace(trace)
    if len(data.front):
        style = Look(GREY, "dot", "circle", "", "")
        figure.add_trace(
            _line("front of all", data.front[:, 0], data.front[:, 1], style, hoverinfo="skip")
        )
    for axis, i in ((figure.update_xaxes, 0), (figure.update_yaxes, 1)):
        axis(title=as_html(data.names[i] if len(data.names) > i else ""))
        if data.is_log[i]:
            axis(type="log", range=np.log10(data.limits[i]).tolist())
        elif len(data.limits):
            axis(range=data.limits[i].tolist())
    is_many = any(surface.n_runs > 1 for surface in data.surfaces)
    title = "What half of the runs have reached" if is_many else "Pareto fronts"
    return _finish(figure, title, note=data.note, height=480, showlegend=True)


def _surface(surface: Surface, style: Look) -> list[Any]:
    traces = []
    if len(surface.band):
        band = {"mode": "lines", "line": {"width": 0}, "fill": "toself", "hoverinfo": "skip"}
        fill = _faded(style.colour, 0.15)
        x, y = surface.band.T
        traces.append(go.Scatter(x=x, y=y, **band, fillcolor=fill, showlegend=False))
    name = _runs(surface.label, surface.n_runs)
    x, y = surface.border.T
    traces.append(_line(name, x, y, style, hoverinfo="skip"))
    if len(surface.points):
        traces.append(
            go.Scatter(
                x=surface.points[:, 0],
                y=surface.points[:, 1],
                mode="markers",
                marker={"symbol": style.marker, "color": style.colour, "size": 8},
                customdata=surface.numbers,
                meta=as_html(surface.label),
                hovertemplate="%{meta}<br>trial %{customdata}: %{x:.5g}, %{y:.5g}<extra></extra>",
                showlegend=False,
            )
        )
    return traces


# Tasks ----------------------------------------------------------------------------------------


def draw_importances(data: Importances) -> Any:
    has_history = data.n_compared > 0
    figure = make_subplots(
        cols=2 if has_history else 1,
        shared_yaxes=True,
        column_widths=[0.6, 0.4] if has_history else None,
        horizontal_spacing=0.03,
    )
    for trace in _importance_traces(data):
        figure.add_trace(trace, row=1, col=1)
    figure.update_xaxes(title="importance", rangemode="tozero", col=1)
    if has_history:
        figure.add_trace(_kept(data), row=1, col=2)
        figure.update_xaxes(title="kept in trial", col=2)
    figure.update_yaxes(
        tickvals=np.arange(len(data.parameters)),
        ticktext=[as_html(shortened(name, 28)) for name in data.parameters],
        range=[len(data.parameters) - 0.5, -0.5],
        showgrid=False,
    )
    height = 190 + 32 * max(len(data.parameters), 3)
    return _finish(
        figure, "Which parameters matter", about=data.about, note=data.note, height=height
    )


def _importance_traces(data: Importances) -> list[Any]:
    rows = np.arange(len(data.parameters))
    names = [as_html(name) for name in data.parameters]
    hover = "%{meta}<br>%{customdata}: %{x:.4g}<extra></extra>"
    traces = [
        go.Bar(
            x=data.target,
            y=rows,
            name=TARGET,
            meta=TARGET,
            orientation="h",
            marker={"color": _faded(GREY, 0.35)},
            width=0.7,
            customdata=names,
            hovertemplate=hover,
        )
    ]
    sources = {**data.sources}
    if data.n_others:
        sources[f"mean of {data.n_others} others"] = data.others
    for i, (name, values) in enumerate(sources.items()):
        is_mean = i == len(data.sources)
        style = look(i)._replace(colour=GREY, marker="star") if is_mean else look(i)
        marker = {"symbol": style.marker, "size": 9, "color": style.colour}
        trace = _line(name, values, rows, style, mode="markers", marker=marker, customdata=names)
        trace.hovertemplate = hover
        traces.append(trace)
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
    figure = go.Figure(
        go.Heatmap(
            x=names,
            y=names,
            z=data.matrix,
            zmin=0.0,
            zmax=1.0,
            colorscale=HEAT,
            xgap=1,
            ygap=1,
            colorbar={"outlinewidth": 0, "thickness": 12},
            hovertemplate="%{y}<br>compared with %{x}: %{z:.3f}<extra></extra>",
        )
    )
    if n <= _MAX_NUMBERS:
        figure.add_trace(_similarity_labels(names, data.matrix))
    ticks = {"type": "category", "tickvals": names, "showgrid": False}
    short = [as_html(shortened(name, 24)) for name in data.names]
    figure.update_xaxes(ticktext=short, showticklabels=n <= _MAX_NAMED, **ticks)
    figure.update_yaxes(ticktext=short, autorange="reversed", **ticks)
    side = 320 + 16 * min(n, 50)
    return _finish(figure, "Similarity of the tasks", about=data.about, height=side)


def _similarity_labels(names: Sequence[str], matrix: Floats) -> Any:
    """Return the similarities as text, white where the cell is dark."""
    return go.Scatter(
        x=[name for _ in names for name in names],
        y=[name for name in names for _ in names],
        mode="text",
        text=[f"{s:.2f}" for s in matrix.ravel()],
        textfont={"color": ["black" if s > 0.5 else "white" for s in matrix.ravel()]},
        hoverinfo="skip",
        showlegend=False,
    )


# Regions --------------------------------------------------------------------------------------


def draw_gamma_sets(data: GammaSets) -> Any:
    figure = go.Figure(_densities(data) if len(data.axes) == 1 else _areas(data))
    for axis, update in zip(data.axes, (figure.update_xaxes, figure.update_yaxes), strict=False):
        update(
            title=as_html(shortened(axis.name)),
            tickvals=axis.ticks,
            ticktext=[as_html(label) for label in axis.labels],
            range=[0, 1],
            showgrid=not axis.is_discrete,
            zeroline=False,
        )
    if len(data.axes) == 1:
        top = max(data.a.density.max(), data.b.density.max())
        figure.update_yaxes(
            title="density of the best configurations",
            tickvals=linear_ticks(0.0, top),
            range=[-0.14 * top, 1.05 * top],
        )
    return _finish(
        figure,
        "Where the best configurations are",
        about=data.about,
        height=480,
        showlegend=True,
    )


def _densities(data: GammaSets) -> list[Any]:
    axis, top = data.axes[0], max(data.a.density.max(), data.b.density.max())
    x, both = line_of(axis, np.minimum(data.a.density, data.b.density))
    overlap = go.Scatter(
        x=x,
        y=both,
        name="both",
        mode="lines",
        line={"width": 0},
        fill="tozeroy",
        fillcolor=_faded(_BOTH, 0.35),
        hoverinfo="skip",
    )
    traces = [overlap]
    for i, (good, style) in enumerate(((data.a, _A), (data.b, _B)), 1):
        traces.append(_line(good.name, *line_of(axis, good.density), style, hoverinfo="skip"))
        traces.append(_points(good, good.X[:, 0], np.full(len(good.X), -0.05 * i * top), style))
    return traces


def _areas(data: GammaSets) -> list[Any]:
    codes = data.codes.astype(np.uint8)
    colours = ["rgba(0,0,0,0)"] + [
        _faded(c, a) for c, a in ((_A.colour, 0.4), (_B.colour, 0.4), (_BOTH, 0.75))
    ]
    scale = [[(i + end) / 4, colour] for i, colour in enumerate(colours) for end in (0, 1)]
    heat = go.Heatmap(
        x=data.axes[0].edges,
        y=data.axes[1].edges,
        z=codes,
        zmin=-0.5,
        zmax=3.5,
        colorscale=scale,
        showscale=False,
        hoverinfo="skip",
    )
    names = [shortened(good.name) for good in (data.a, data.b)]
    keys = [
        go.Scatter(
            x=[None],
            y=[None],
            mode="markers",
            name=as_html(name),
            marker={"symbol": "square", "size": 14, "color": colour},
        )
        for name, colour in zip([*names, "both"], colours[1:], strict=True)
    ]
    points = [_points(g, g.X[:, 0], g.X[:, 1], s) for g, s in ((data.a, _A), (data.b, _B))]
    return [heat, *keys, *points]


def _points(good: Good, x: Floats, y: Floats, style: Look) -> Any:
    """Return the good observations as markers."""
    texts = [
        "<br>".join(as_html(f"{name} = {_value(value)}") for name, value in values.items())
        for values in good.values
    ]
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        marker={
            "symbol": style.marker,
            "size": 8,
            "color": style.colour,
            "line": {"width": 1, "color": "white"},
        },
        customdata=texts,
        meta=as_html(good.name),
        hovertemplate="%{meta}<br>%{customdata}<extra></extra>",
        showlegend=False,
    )


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)
