"""The plots of `metatpe.viz` with matplotlib, for print: the same names and arguments.

Each returns the Axes, or the Figure where there are several. Text and background follow the style
in use: ``plt.style.use("dark_background")`` makes them dark.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study

from metatpe.extras import install_command
from metatpe.past.task import Task
from metatpe.space import Floats, Space
from metatpe.viz.curves import learning_curves_of
from metatpe.viz.portfolio import SERVES, Coverage, coverage_of
from metatpe.viz.regions import GammaSets, gamma_sets, line_of
from metatpe.viz.runs import Curve, Runs, Surface, attainment_of, progress_of
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
    as_mpl,
    look,
    shortened,
)
from metatpe.viz.tasks import Importances, importances_of, similarities_of
from metatpe.viz.ticks import linear_ticks, log_labels
from metatpe.viz.weights import LOOKS, Weights, weights_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "plot_attainment",
    "plot_curves",
    "plot_gamma_sets",
    "plot_hypervolume",
    "plot_importances",
    "plot_portfolio",
    "plot_similarity",
    "plot_task_weights",
]

Handles = list[tuple[str, Any]]  # labels, which may be alike when shortened, and artists
GRID: Any = {"color": GREY, "alpha": 0.25, "linewidth": 0.6}
_STYLE: Any = {
    "font.size": 9,
    "figure.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
}


def subplots(
    n_rows: int, n_columns: int, size: tuple[float, float], **options: Any
) -> tuple[Figure, Any]:
    """Return a new figure and its axes (n_rows, n_columns)."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError(f"these plots need matplotlib: {install_command('viz')}") from None
    with plt.rc_context(_STYLE):
        figure = plt.figure(figsize=size, layout="constrained")
        return figure, figure.subplots(n_rows, n_columns, squeeze=False, **options)


def _one(width: float, height: float) -> Any:
    """Return the only axes of a new figure."""
    return subplots(1, 1, (width, height))[1][0, 0]


def _label(text: str, n: int = 44) -> str:
    return as_mpl(shortened(text, n))


def whole_numbers(axis: Any) -> None:
    """Let an axis of trials have no halves."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def label_logs(axis: Any, low: float, high: float) -> None:
    """Give a log axis labels that can be read alone."""
    ticks, labels = log_labels(low, high)
    axis.set_ticks(ticks, labels)
    axis.set_ticks([], minor=True)


def finish(axis: Any, data: Shown, named: Handles) -> None:
    """Give the topmost axis a title, the figure a legend below, and a note where it is empty.

    What the legend has is given by hand, since matplotlib leaves out names like "_x".
    """
    axis.figure.suptitle(data.title, x=0.01, ha="left")
    axis.set_title(as_mpl(textwrap.fill(data.about, WIDTH)), loc="left", fontsize=8, color=GREY)
    if named:
        labels, artists = zip(*named, strict=True)
        n_columns = min(len(labels), 2 if max(map(len, labels)) > 24 else 3)
        options = {"loc": "outside lower left", "ncols": n_columns, "frameon": False}
        axis.figure.legend(artists, labels, fontsize=8, **options)
    if data.note:
        middle = {"transform": axis.transAxes, "ha": "center", "va": "center"}
        axis.text(0.5, 0.5, data.note, color=GREY, **middle)


# Weights --------------------------------------------------------------------------------------


def plot_task_weights(study: Study) -> Figure:
    """Plot the weight of each past task over the trials; see `metatpe.viz`.

    Example:
        >>> plot_task_weights(study).savefig("weights.png")
    """
    data = weights_of(study)
    n_lanes = max(len(data.lanes), 4)  # each needs room for its name
    size, heights = (7, 5.2 + 0.2 * n_lanes), [10, 5, n_lanes]
    figure, grid = subplots(3, 1, size, sharex=True, height_ratios=heights)
    axes = grid[:, 0]
    named: Handles = []
    for i, (name, weights) in enumerate(data.past.items()):
        named.append((_label(name), _line(axes[0], look(i), data.trials, weights)))
    named += _stack_shares(axes[1], data)
    _draw_lanes(axes[2], data.lanes)
    axes[0].set_ylim(bottom=0)
    axes[0].set_ylabel("weight")
    axes[1].set(ylabel="share", ylim=(0, 1))
    axes[2].set_xlabel("trial")
    whole_numbers(axes[2].xaxis)
    for axis in axes:
        axis.grid(**GRID)
    finish(axes[0], data, named)
    return figure


def _line(axis: Any, style: Look, x: Any, y: Any, **options: Any) -> Any:
    options = {"linewidth": 1.6, "color": style.colour, "linestyle": style.mpl_dash, **options}
    (line,) = axis.plot(x, y, **options)
    return line


def _stack_shares(axis: Any, data: Weights) -> Handles:
    """Draw how the whole weight is divided; return what is not a line above."""
    if not data.shares:
        return []
    names, weights, colours = zip(*data.shares, strict=True)
    areas = axis.stackplot(data.trials, *weights, colors=colours, linewidth=0)
    return list(zip(names, areas, strict=True))[len(data.past) :]


def _draw_lanes(axis: Any, lanes: dict[str, list[int]]) -> None:
    for row, (name, numbers) in enumerate(lanes.items()):
        marker, colour = LOOKS[name].mpl_marker, LOOKS[name].colour
        axis.plot(numbers, [row] * len(numbers), marker, color=colour, markersize=4)
    axis.set_yticks(range(len(lanes)), list(lanes))
    axis.set_ylim(max(len(lanes), 1) - 0.5, -0.5)


# Runs -----------------------------------------------------------------------------------------


def plot_hypervolume(studies: Runs, *, reference_point: Sequence[float] | None = None) -> Axes:
    """Plot the hypervolume, or the best value, over finished trials; see `metatpe.viz`.

    Example:
        >>> axes = plot_hypervolume({"with past studies": study, "without": alone})
        >>> axes.figure.savefig("progress.png")
    """
    data = progress_of(studies, reference_point)
    axis: Axes = _one(7, 4.2)
    named = [(_runs(c), _draw_curve(axis, c, look(i))) for i, c in enumerate(data.curves)]
    axis.grid(**GRID)
    axis.set(xlabel="finished trials", ylabel=as_mpl(data.y_name))
    whole_numbers(axis.xaxis)
    if data.limits:
        axis.set(yscale="log", ylim=data.limits)
        label_logs(axis.yaxis, *data.limits)
    finish(axis, data, named)
    return axis


def _draw_curve(axis: Any, curve: Curve, style: Look) -> Any:
    if curve.n_runs > 1:
        ends = (curve.mean - curve.se, curve.mean + curve.se)
        fill = {"color": style.colour, "alpha": 0.2, "linewidth": 0, "step": "post"}
        axis.fill_between(curve.finished, *ends, **fill)
    return _line(axis, style, curve.finished, curve.mean, drawstyle="steps-post")


def _runs(of: Curve | Surface) -> str:
    return _label(of.label) if of.n_runs == 1 else f"{_label(of.label)} ({of.n_runs} runs)"


def plot_attainment(studies: Runs) -> Axes:
    """Plot the median attainment surface and the front of all; see `metatpe.viz`.

    Example:
        >>> axes = plot_attainment({"with past studies": study, "without": alone})
    """
    data = attainment_of(studies)
    axis: Axes = _one(7, 4.6)
    named = [(_runs(s), _draw_surface(axis, s, look(i))) for i, s in enumerate(data.surfaces)]
    if len(data.front):
        style = Look(GREY, "", "", (0, (1.0, 1.3)), "")
        named.append(("front of all", _line(axis, style, *data.front.T)))
    axis.set(xlabel=as_mpl(data.names[0]), ylabel=as_mpl(data.names[1]))
    if len(data.limits):
        scales = ["log" if is_log else "linear" for is_log in data.is_log]
        axis.set(xscale=scales[0], yscale=scales[1], xlim=data.limits[0], ylim=data.limits[1])
        for i, side in enumerate((axis.xaxis, axis.yaxis)):
            if data.is_log[i]:
                label_logs(side, *data.limits[i])
    axis.grid(**GRID)
    finish(axis, data, named)
    return axis


def _draw_surface(axis: Any, surface: Surface, style: Look) -> Any:
    if len(surface.band):
        axis.fill(*surface.band.T, color=style.colour, alpha=0.15, linewidth=0)
    line = _line(axis, style, *surface.border.T)
    if len(surface.points):
        axis.plot(*surface.points.T, style.mpl_marker, color=style.colour, markersize=5)
    return line


# Learning curves ------------------------------------------------------------------------------


def plot_curves(study: Study, sources: Sequence[Study | Task] = ()) -> Figure:
    """Plot learning curves, and where trials were pruned; see `metatpe.viz`.

    Example:
        >>> figure = plot_curves(study, sources)
    """
    from metatpe.viz.curves_matplotlib import draw_learning_curves

    figure: Figure = draw_learning_curves(learning_curves_of(study, sources))
    return figure


# Tasks ----------------------------------------------------------------------------------------


def plot_importances(study: Study, sources: Sequence[Study | Task] = ()) -> Figure:
    """Plot how important each parameter is, in a study and its sources; see `metatpe.viz`.

    Example:
        >>> figure = plot_importances(study, sources)
    """
    data = importances_of(study, sources)
    widths, height = [3, 2] if data.n_compared else [1], 1.8 + 0.3 * max(len(data.parameters), 3)
    figure, axes = subplots(1, len(widths), (7, height), sharey=True, width_ratios=widths)
    left = axes[0, 0]
    named = _draw_importances(left, data)
    if data.n_compared:
        for row, name in enumerate(data.parameters):
            rows = [row] * len(data.kept[name])
            axes[0, 1].plot(data.kept[name], rows, "|", color=ALL_COLOURS[0], markersize=9)
        axes[0, 1].set_xlabel("trial")
        whole_numbers(axes[0, 1].xaxis)
        axes[0, 1].grid(**GRID)
    left.set_yticks(range(len(data.parameters)), [_label(name, 28) for name in data.parameters])
    left.set_ylim(max(len(data.parameters), 1) - 0.5, -0.5)
    left.set_xlabel("importance")
    left.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    left.locator_params(axis="x", nbins=5)
    left.grid(axis="x", **GRID)
    finish(left, data, named)
    return figure


def _draw_importances(axis: Any, data: Importances) -> Handles:
    rows = np.arange(len(data.parameters))
    named: Handles = []
    if len(rows):
        bars = {"color": GREY, "alpha": 0.35, "height": 0.7}
        named.append((TARGET, axis.barh(rows, np.nan_to_num(data.target), **bars)))
    for i, (name, values) in enumerate(data.sources.items()):
        style = look(i)
        (dots,) = axis.plot(values, rows, style.mpl_marker, color=style.colour, markersize=5)
        named.append((_label(name), dots))
    if data.n_others:
        (stars,) = axis.plot(data.others, rows, "*", color=GREY, markersize=8)
        named.append((data.others_name, stars))
    return named


def plot_similarity(tasks: Sequence[Study | Task]) -> Axes:
    """Plot the similarity of each pair of tasks; see `metatpe.viz`.

    Example:
        >>> axes = plot_similarity([study, *sources])
    """
    data = similarities_of(tasks)
    n, side = len(data.names), 3.4 + 0.16 * len(data.names)
    figure, axes = subplots(1, 1, (side + 1, side))
    axis: Axes = axes[0, 0]
    image = axis.imshow(data.matrix, cmap=HEAT, vmin=0, vmax=1, aspect="auto")
    bar: Any = figure.colorbar(image, ax=axis, shrink=0.8)
    bar.outline.set_visible(False)
    names = [_label(name, 24) for name in data.names]
    axis.set_yticks(range(n), names)
    axis.set_xticks(range(n), names if n <= MAX_NAMED else [""] * n, rotation=30, ha="right")
    axis.spines[:].set_visible(False)
    if n <= MAX_NUMBERS:
        _draw_numbers(axis, data.matrix)
    finish(axis, data, [])
    return axis


def _draw_numbers(axis: Any, matrix: Floats) -> None:
    for (i, j), s in np.ndenumerate(matrix):
        colour = "black" if s > 0.5 else "white"
        axis.text(j, i, f"{s:.2f}", ha="center", va="center", color=colour)


# Portfolio ------------------------------------------------------------------------------------


def plot_portfolio(
    tasks: Sequence[Study | Task],
    k: int = 5,
    *,
    space: Mapping[str, BaseDistribution] | Space | None = None,
) -> Figure:
    """Plot what each configuration of a portfolio covers; see `metatpe.viz`.

    Example:
        >>> figure = plot_portfolio(sources, k=3)
    """
    data = coverage_of(tasks, k, space)
    n, n_members = data.alone.shape
    heights = [0.9, 0.26 * n, *([0.19 * len(data.values)] if data.values else [])]  # inches
    size = (3.2 + 0.76 * max(n_members, 5), 1.6 + sum(heights))
    figure, grid = subplots(len(heights), 1, size, sharex=True, height_ratios=heights)
    axes = grid[:, 0]
    _draw_together(axes[0], data)
    named = _draw_alone(axes[1], data)
    if n_members > MAX_NUMBERS:  # otherwise numbers are in the cells
        bar: Any = figure.colorbar(axes[1].images[0], ax=axes, fraction=0.04, pad=0.02)
        bar.outline.set_visible(False)
    if data.values:
        _draw_values(axes[2], data)
    axes[-1].set_xticks(range(n_members), [str(i + 1) for i in range(n_members)])
    axes[-1].set_xlabel("configuration")
    for axis in axes:
        axis.tick_params(length=0)
    finish(axes[0], data, named)
    return figure


def _draw_together(axis: Any, data: Coverage) -> None:
    bars = axis.bar(range(len(data.together)), data.together, width=0.6, color=ALL_COLOURS[0])
    if len(data.together) <= MAX_NUMBERS:
        axis.bar_label(bars, fmt="%.2f", padding=1)
    axis.set(ylabel="together", ylim=(0, 1.25), yticks=[0, 0.5, 1])
    axis.grid(axis="y", **GRID)


def _draw_alone(axis: Any, data: Coverage) -> Handles:
    """Draw what each configuration reaches on each past study; return what the outlines mean."""
    from matplotlib.patches import Rectangle

    axis.imshow(data.alone, cmap=HEAT, vmin=0, vmax=1, aspect="auto")
    outline: Any = {"fill": False, "edgecolor": MARKED, "linewidth": 2}
    for row, column in np.argwhere(data.serves).tolist():
        axis.add_patch(Rectangle((column - 0.47, row - 0.45), 0.94, 0.9, **outline))
    if len(data.together) <= MAX_NUMBERS:
        _draw_numbers(axis, data.alone)
    axis.set_yticks(range(len(data.names)), [_label(name, 28) for name in data.names])
    axis.spines[:].set_visible(False)
    return [(SERVES, Rectangle((0, 0), 1, 1, **outline))]


def _draw_values(axis: Any, data: Coverage) -> None:
    """Draw the values of the parameters, as a table."""
    for row, texts in enumerate(data.values.values()):
        for column, text in enumerate(texts):
            axis.text(column, row, _label(text, 12), ha="center", va="center", fontsize=8)
    axis.set_yticks(range(len(data.values)), [_label(name, 28) for name in data.values])
    axis.set_ylim(len(data.values) - 0.5, -0.5)
    axis.spines[:].set_visible(False)


# Regions --------------------------------------------------------------------------------------


def plot_gamma_sets(
    a: Study | Task, b: Study | Task, params: str | Sequence[str] | None = None
) -> Axes:
    """Plot the regions of the best configurations of two tasks; see `metatpe.viz`.

    Example:
        >>> axes = plot_gamma_sets(study, sources[0], ["lr", "depth"])
    """
    data = gamma_sets(a, b, params)
    axis: Axes = _one(7, 4.6)
    axis.grid(**GRID)
    named = _draw_densities(axis, data) if len(data.axes) == 1 else _draw_areas(axis, data)
    for along, which in zip(data.axes, "xy", strict=False):
        axis.set(**{f"{which}label": _label(along.name), f"{which}lim": (0, 1)})
        getattr(axis, f"set_{which}ticks")(along.ticks, [as_mpl(label) for label in along.labels])
    finish(axis, data, named)
    return axis


def _draw_densities(axis: Any, data: GammaSets) -> Handles:
    along, top = data.axes[0], data.top
    x, both = line_of(along, np.minimum(data.a.density, data.b.density))
    overlap = axis.fill_between(x, both, color=BOTH, alpha=0.35, linewidth=0)
    named: Handles = [("both", overlap)]
    for i, (good, style) in enumerate(data.pair, 1):
        line = _line(axis, style, *line_of(along, good.density))
        named.append((_label(good.name), line))
        below = np.full(len(good.X), -0.05 * i * top)
        _draw_points(axis, np.column_stack([good.X, below]), style)
    axis.set(ylabel="density of the best configurations", ylim=(-0.14 * top, 1.05 * top))
    axis.set_yticks(linear_ticks(0.0, top))
    return named


def _draw_areas(axis: Any, data: GammaSets) -> Handles:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = [*((style.colour, 0.4) for _, style in data.pair), (BOTH, 0.75)]
    cells = (data.axes[0].edges, data.axes[1].edges, data.codes)
    axis.pcolormesh(*cells, cmap=ListedColormap([(GREY, 0.0), *colours]), vmin=0, vmax=3)
    for good, style in data.pair:
        _draw_points(axis, good.X, style)
    names = [_label(data.a.name), _label(data.b.name), "both"]
    return [(name, Patch(color=colour)) for name, colour in zip(names, colours, strict=True)]


def _draw_points(axis: Any, at: Floats, style: Look) -> None:
    """Draw the good observations; those at the border in full."""
    options = {"color": style.colour, "markersize": 5, "markeredgecolor": "white"}
    axis.plot(*at.T, style.mpl_marker, **options, markeredgewidth=0.6, clip_on=False, zorder=3)
