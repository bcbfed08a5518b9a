"""Tables for notebooks, in which names of any kind are text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from metatpe.text import visible


def table(title: str, rows: Iterable[Sequence[str]], header: Sequence[str] = ()) -> str:
    """Return a small HTML table with a caption."""
    lines = [_row(header, "th")] if header else []
    lines += [_row(row, "td") for row in rows]
    caption = f'<caption style="text-align:left">{html.escape(visible(title))}</caption>'
    return f"<table>{caption}{''.join(lines)}</table>"


def _row(cells: Iterable[str], tag: str) -> str:
    style = ' style="text-align:left"'
    inner = "".join(f"<{tag}{style}>{html.escape(visible(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"
