"""How all figures look: as wide as a page and half as high, and readable in grey.

No two curves of a panel differ in colour alone: each has a dash pattern and a marker too. The
colours are those of Okabe and Ito, which the colour-blind tell apart, in an order of brightness
that grey keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metatpe.bench.problems import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_WIDTH = 7.2  # inches
_SETTINGS: Any = {
    **dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize", "legend.fontsize"), 7.5),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "legend.columnspacing": 1.4,
}


class Line(NamedTuple):
    """How one curve is drawn."""

    colour: str
    dashes: Any
    marker: str
    width: float = 1.1

    @property
    def look(self) -> dict[str, Any]:
        """The arguments of matplotlib's `plot`."""
        stroke = {"color": self.colour, "linestyle": self.dashes, "linewidth": self.width}
        return {**stroke, "marker": self.marker or None}


_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)), (0, (7, 2)))
FRONT = Line("0.35", (0, (1, 1)), "", 0.9)  # the true front
METHODS = {
    "meta-tpe": Line("#A63600", _DASHES[0], "o", 2.0),
    "transfer": Line("#7B0F5B", _DASHES[0], "d", 1.7),
    "transfer-alone": Line("#7B0F5B", _DASHES[4], "d", 1.4),
    "naive-meta-tpe": Line("#E69F00", _DASHES[1], "v"),
    "only-warm-start": Line("0.45", _DASHES[2], "x"),
    "mo-tpe": Line("#0072B2", _DASHES[0], "s", 1.4),
    "random": Line("0.62", _DASHES[0], ""),
    "optuna-tpe": Line("#56B4E9", _DASHES[3], "D"),
    "optuna-tpe-multivariate": Line("#009E73", _DASHES[1], "^"),
    "optuna-gp": Line("#CC79A7", _DASHES[1], "P"),
    "optuna-gp-log": Line("#000000", _DASHES[3], "*"),
    "optuna-nsga2": Line("#8C6D1F", _DASHES[2], "+"),
}
_FURTHER = tuple(map(Line, ("#7A3E9D", "#A0522D", "#3B7A57", "#5B5B9E"), _DASHES[1:], "<>ph"))
_DARK_TO_LIGHT = ("#440154", "#31688E", "#21918C", "#5DB04B", "#D9A400")
ORDERED = tuple(map(Line, _DARK_TO_LIGHT, _DASHES, "osD^v"))  # of values that have an order


def style() -> AbstractContextManager[None]:
    """Return the context that figures are made and saved in."""
    from matplotlib import rc_context

    context: AbstractContextManager[None] = rc_context(_SETTINGS)
    return context


def method_lines(methods: Sequence[str]) -> dict[str, Line]:
    """Return how each method is drawn: the same in every figure, with a warm start or without."""
    unknown = [name for name in dict.fromkeys(map(base, methods)) if name not in METHODS]
    further = {name: _FURTHER[i % len(_FURTHER)] for i, name in enumerate(unknown)}
    return {method: {**METHODS, **further}[base(method)] for method in methods}


def base(method: str) -> str:
    """Return the name of a method without what it starts from."""
    return method.removesuffix("+warm")


def panels(n_rows: int, n_columns: int, height: float, **options: Any) -> tuple[Picture, Any]:
    """Return a picture and its axes (n_rows, n_columns)."""
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=(_WIDTH, height), layout="constrained")
    return picture, picture.subplots(n_rows, n_columns, squeeze=False, **options)


def draw_curve(
    axis: Any, x: Floats, mean: Floats, se: Floats, line: Line, *, label: str, nth: int = 0
) -> None:
    """Draw a mean with the band of its standard error.

    Args:
        axis: To draw on.
        x: Evaluations, (n,).
        mean: (n,).
        se: (n,), NaN where there is none.
        line: How it looks.
        label: For the legend; one label is in it once, however many panels have it.
        nth: Which curve of the panel: markers of different curves are set at different places.
    """
    places = (0.02 + 0.012 * nth, 0.16)
    order = 2 + line.width  # the thick ones above
    axis.plot(x, mean, **line.look, markevery=places, label=label, zorder=order)
    axis.fill_between(x, mean - se, mean + se, color=line.colour, alpha=0.12, linewidth=0)


def count_axis(axis: Any, ticks: Sequence[int]) -> None:
    """Give numbers of evaluations, observations or tasks a log scale with these ticks."""
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    axis.set_xscale("log")
    axis.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axis.xaxis.set_major_formatter(ScalarFormatter())
    axis.xaxis.set_minor_locator(NullLocator())


def padded(limits: Floats, is_log: bool) -> Floats:  # (2,) -> (2,)
    """Return limits, the lower one first, with a little room beyond them."""
    ends = np.sort(np.log(limits) if is_log else limits)
    ends += 0.04 * np.ptp(ends) * np.array([-1.0, 1.0])
    return np.exp(ends) if is_log else ends


def log_ticks(axis: Any, limits: Floats) -> None:
    """Give a log scale plain numbers, also where it has no power of ten."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    is_short = limits.max() < 4 * limits.min()
    axis.set_major_locator(MaxNLocator(5) if is_short else LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def legend_below(picture: Picture, n_columns: int, order: Sequence[str] = ()) -> None:
    """Put one legend for all panels below them, in the given order where there is one."""
    handles: dict[str, Any] = {}
    for axis in picture.axes:
        handles |= {label: h for h, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    labels = [name for name in order if name in handles] or list(handles)
    picture.legend(
        [handles[name] for name in labels], labels, loc="outside lower center", ncols=n_columns
    )


def legend_under(axis: Any) -> None:
    """Put the legend of one panel below it."""
    axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2))


def title_of(problem: str) -> str:
    """Return the name of a problem as a title."""
    return problem.partition("/")[2].replace("_", " ") or problem
