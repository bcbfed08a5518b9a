"""Text stays text in Markdown and in HTML, whatever it contains."""

from html.parser import HTMLParser

import numpy as np
import pytest
from markdown_it import MarkdownIt
from transferred import ODD, large_study, odd_study, transferred

from metatpe.report import html_report, markdown_report, note
from metatpe.report.blocks import Section, Table
from metatpe.report.html import Html, element, page
from metatpe.report.markdown import plain


@pytest.mark.parametrize(
    "text",
    [
        ODD,
        "*a* _b_ **c** __d__ ~~e~~ `f`",
        "[link](http://x) ![image](y) <http://z>",
        "# no heading",
        "- no list",
        "1. no number",
        "> no quotation",
        "a | b",
        "&lt; &amp; \\* \\",
        "snake_case_name",
    ],
)
def test_markdown_shows_text_as_it_is(text: str) -> None:
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(f"x {plain(text)}")
    assert text_of(rendered).strip() == f"x {text}"
    rendered = MarkdownIt("commonmark").enable("table").render(f"| a |\n|---|\n| {plain(text)} |")
    assert text_of(rendered).split(maxsplit=1)[1].strip() == text


def test_lines_of_a_name_become_one() -> None:
    assert plain("a\n\n# b\r\nc") == "a # b c"


def test_elements_escape_what_is_not_html() -> None:
    assert element("p", "<b>", Html("<i>x</i>"), title='"') == (
        '<p title="&quot;">&lt;b&gt;<i>x</i></p>'
    )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    return reader


def text_of(html: str) -> str:
    return "".join(read(html).text)


def test_the_page_has_nothing_but_its_own_elements() -> None:
    study, past = odd_study()
    page = read(html_report(study, [past]))
    assert "".join(page.text).count(ODD) > 10  # name, objective, parameter, choices, attributes
    assert {tag for tag, _ in page.tags} <= {
        *("html", "head", "meta", "title", "style", "body", "header", "main", "section", "script"),
        *("h1", "h2", "h3", "small", "p", "ul", "li", "div", "figure", "figcaption"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {name for name in names if name.startswith("on") or name in ("src", "href")}


def test_passwords_appear_nowhere() -> None:
    study, past = transferred(8)
    study.set_user_attr("storage", "mysql://me:geheim@host/studies")
    trial = study.ask()
    trial.set_user_attr("where", "postgresql://me:geheim@host/x")
    study.tell(trial, [-1.0, -1.0])
    assert "where = postgresql" in markdown_report(study)
    for text in (markdown_report(study, [past]), html_report(study, [past]), note(study)):
        assert "geheim" not in text
    assert "mysql://me:\\*\\*\\*@host/studies" in markdown_report(study)


def test_the_page_is_small_enough_to_be_mailed(rng: np.random.Generator) -> None:
    study, past = large_study(1000, 50, rng)
    page = html_report(study, past)
    assert len(page.encode()) < 3_000_000


def test_a_column_of_long_texts_is_not_squeezed() -> None:
    rows = [["a", "2 of 3 starts, 19 of 45 influenced", "1.5"], ["b", "", "2"]]
    text = page("x", [Section("s", [Table(["name", "progress", "weight"], rows)])])
    assert [f'class="{kind}"' in text for kind in ("text", "text long", "number")] == [True] * 3
    assert ".long div { min-width:" in text
