"""How plots look in both backends: colours, dashes, markers, and names of any length.

The colours are those of Okabe and Ito that can be seen on white and on black; no two lines differ
in colour alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from metatpe.text import visible

MAX_SHOWN = 8  # tasks; of more, the others are summed up
MAX_NAMED = 12  # tasks that are named on both axes
MAX_NUMBERS = 10  # tasks whose similarities are written out
WIDTH = 60  # characters of a line below the title: a phone's width
TARGET, REST = "the study itself", "all other past tasks"
GREY = "#808080"  # what is not a task: text, the rest, the front of all
HEAT = "cividis"  # from dark blue to yellow, both with matplotlib and plotly
ALL_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
BOTH = ALL_COLOURS[2]  # where the regions of two tasks overlap
MARKED = ALL_COLOURS[5]  # around a cell of a heat map


@dataclass(frozen=True, eq=False, kw_only=True)
class Shown:
    """What both backends write around the data of a plot."""

    title: str
    about: str = ""  # below the title
    note: str = ""  # in the middle, where there is nothing to see


class Look(NamedTuple):
    """How one line is drawn; dash and marker as plotly calls them and as matplotlib does."""

    colour: str
    dash: str
    marker: str
    mpl_dash: str | tuple[int, tuple[float, ...]]
    mpl_marker: str


_DASHES: tuple[tuple[str, str | tuple[int, tuple[float, ...]]], ...] = (
    ("solid", "-"),
    ("dash", (0, (5.0, 2.0))),
    ("dot", (0, (1.0, 1.3))),
    ("dashdot", (0, (5.0, 1.5, 1.0, 1.5))),
    ("longdash", (0, (9.0, 3.0))),
)
_MARKERS = (
    ("circle", "o"),
    ("diamond", "D"),
    ("square", "s"),
    ("triangle-up", "^"),
    ("cross", "P"),
    ("x", "X"),
    ("triangle-down", "v"),
)


def look(i: int) -> Look:
    """Return how the i-th line is drawn; colour, dash and marker repeat at different paces."""
    dash, mpl_dash = _DASHES[i % len(_DASHES)]
    marker, mpl_marker = _MARKERS[i % len(_MARKERS)]
    return Look(ALL_COLOURS[i % len(ALL_COLOURS)], dash, marker, mpl_dash, mpl_marker)


def shortened(text: str, n: int = 44) -> str:
    """Return a name on one line, with its middle left out where it is longer than Optuna's own."""
    line = " ".join(str(text).split()) or "(no name)"
    return line if len(line) <= n else f"{line[: n - n // 3 - 1]}…{line[-(n // 3) :]}"


def as_html(text: str) -> str:
    """Return text for plotly, which knows tags, $…$ for a formula, and %{…} for a value."""
    # Not `html.escape` with its quotes: plotly does not know &quot;.
    escaped = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("$", "&#36;").replace("%{", "%&#123;")


def as_mpl(text: str) -> str:
    """Return text for matplotlib, which takes $…$ for a formula."""
    return visible(text).replace("$", r"\$")


def value_text(value: object) -> str:
    """Return a value of a parameter or an objective, a float in five digits."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """Return a number in four digits."""
    return "?" if math.isnan(value) else f"{value:.4g}"
