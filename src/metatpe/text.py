r"""Text of unknown origin, such that it cannot control what shows it.

The names in a storage, the choices of a parameter and the message of an exception may hold any
character. An escape sequence would be carried out by a terminal, and a mark that reverses the
direction of writing hides what stands behind it. `visible` is the one place where these become
text; every way out of the package (console, JSON, Markdown, HTML, plots) uses it.
"""

from __future__ import annotations

import io
import re
import sys

# Control characters but line feed and tab, separators of lines and paragraphs, marks that change
# the direction of writing, and halves of characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: object) -> str:
    r"""Return text in which every control character is shown as its escape in Python.

    >>> print(visible("red\x1b[31m"))
    red\x1b[31m
    """
    return _UNSEEN.sub(lambda found: _escaped(found[0]), str(text))


def on_one_line(text: object) -> str:
    r"""Return the same with line feeds and tabs as escapes, too, for a name in a table.

    >>> print(on_one_line("two\nlines"))
    two\nlines
    """
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def visible_json(text: str) -> str:
    """Return JSON with an escape for each control character, which JSON knows in strings only."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def tolerate_any_text() -> None:
    """Write what the terminal cannot encode as escapes; it would end the process otherwise."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")
