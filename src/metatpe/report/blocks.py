"""What a report is made of, before it becomes HTML or Markdown: sections of blocks of plain text.

Nothing in here is markup: names and values are shown as they are, whatever they contain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    kind: Literal["plain", "lead"] = "plain"


@dataclass(frozen=True)
class Items:
    """A list."""

    texts: Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table of plain cells."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Plot:
    """A plotly figure, which text versions leave out."""

    name: str  # of the element in the page
    make: Callable[[], Any]  # None where there is nothing to draw
    caption: str


Block = Text | Items | Table | Plot


@dataclass(frozen=True)
class Section:
    """A heading and what stands below."""

    title: str
    blocks: Sequence[Block]
