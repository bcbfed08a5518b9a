"""Control characters become visible, wherever text leaves the package."""

import io
import sys
import unicodedata

import pytest

from metatpe.html import table
from metatpe.report.html import element
from metatpe.report.markdown import plain
from metatpe.text import on_one_line, tolerate_any_text, visible, visible_json
from metatpe.viz.style import as_html, as_mpl

EVERY = "".join(map(chr, [*range(0x2100), *range(0xD7F0, 0xE010)]))
SEEN = "red\\x1b]52;c;aGk=\\x07"


def hidden(text: str) -> set[str]:
    """Return the characters that a terminal carries out, or that change how others are shown."""
    is_hidden = {"Cc", "Cs", "Zl", "Zp"}
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return {
        c
        for c in text
        if unicodedata.category(c) in is_hidden or unicodedata.bidirectional(c) in bidi
    }


def test_no_control_character_is_left_but_line_feed_and_tab() -> None:
    assert hidden(visible(EVERY)) == {"\n", "\t"}
    assert hidden(on_one_line(EVERY)) == set()
    assert hidden(visible_json(EVERY)) == {"\n", "\t"}


def test_other_text_is_left_alone() -> None:
    text = "größe = 3 µs → «日本語» \\x1b 🙂"
    assert visible(text) == on_one_line(text) == text
    assert visible(visible(EVERY)) == visible(EVERY)


@pytest.mark.parametrize(
    "way_out",
    [visible, plain, as_html, as_mpl, lambda t: element("p", t), lambda t: table(t, [[t]], [t])],
    ids=["text", "Markdown", "plotly", "matplotlib", "report", "notebook"],
)
def test_escape_sequences_are_shown_and_not_carried_out(way_out: object) -> None:
    assert callable(way_out)
    shown = way_out("red\x1b]52;c;aGk=\x07")
    assert hidden(shown) == set()
    assert "x1b" in shown
    assert "x07" in shown


@pytest.mark.parametrize(
    ("errors", "then"),
    [
        ("strict", "backslashreplace"),
        ("surrogateescape", "backslashreplace"),
        ("replace", "replace"),  # as its owner wants it
    ],
)
def test_a_terminal_that_cannot_show_a_character_shows_its_escape(
    errors: str, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors=errors)
    monkeypatch.setattr(sys, "stdout", object())  # a notebook's stream may be anything
    monkeypatch.setattr(sys, "stderr", terminal)
    tolerate_any_text()
    assert terminal.errors == then
