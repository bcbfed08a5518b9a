"""Sections as Markdown: the same text and tables, without the plots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from metatpe.report.blocks import Block, Items, Plot, Section, Table, Text
from metatpe.text import visible

_SPECIAL = re.compile(r"([\\`*\[\]<|~&$]|(?<![^\W_])_|_(?![^\W_]))")  # not snake_case
_LINES = re.compile(r"\s*[\r\n\x0b\x0c\x85\u2028\u2029]+\s*")


def plain(text: str) -> str:
    """Return text such that Markdown shows it as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", visible(_LINES.sub(" ", text)))


def as_markdown(title: str, sections: Sequence[Section], *, level: int = 1) -> str:
    """Return sections as Markdown, below a heading of this level."""
    parts = [f"{'#' * level} {plain(title)}"]
    for section in sections:
        parts.append(f"{'#' * (level + 1)} {plain(section.title)}")
        parts.extend(filter(None, map(_block, section.blocks)))
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Plot):
        return ""
    if isinstance(block, Text):
        return _at_the_start(plain(block.text))
    if isinstance(block, Items):
        return "\n".join(f"- {_at_the_start(plain(text))}" for text in block.texts)
    return _table(block)


def _at_the_start(text: str) -> str:
    """Return a line that is no list, heading, quotation or rule by how it begins."""
    return re.sub(r"^(\s*\d*)([-+=#>.)])", r"\1\\\2", text)


def _table(table: Table) -> str:
    lines = [_row(map(plain, table.head)), _row("---" for _ in table.head)]
    return "\n".join([*lines, *(_row(map(plain, row)) for row in table.rows)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
