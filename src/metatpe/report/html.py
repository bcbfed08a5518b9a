"""Sections as one HTML file that needs nothing else: no network, no other file.

plotly.js travels inside the page, compressed, and is unpacked by the browser. Text becomes HTML in
one place, `element`, which escapes whatever is not HTML already; and the page's own policy lets
only its two scripts run, by their checksums, and asks for nothing over the network.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import re
from collections.abc import Sequence
from importlib import resources

from metatpe.report.blocks import Block, Items, Plot, Section, Table, Text
from metatpe.text import visible

_LONG = 24  # letters of a cell, which would be broken into a narrow column


class Html(str):
    """Text that is HTML."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: str) -> Html:
    """Return an HTML element; children and attributes that are plain text are escaped."""
    inner = "".join(c if isinstance(c, Html) else html.escape(visible(c)) for c in children)
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(visible(value))}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{inner}</{name}>")


def page(title: str, sections: Sequence[Section]) -> str:
    """Return the whole file."""
    script, style = _file("page.js"), _file("page.css")
    figures: list[str] = []
    body = [
        element("header", element("p", "metatpe report"), element("h1", title)),
        element("main", *(_section(section, figures) for section in sections)),
    ]
    library, digest = _plotly()
    data = {"figures": _packed(f"[{','.join(figures)}]"), "plotly": library}
    scripts = [
        element("script", Html(packed), id=name, type="text/plain")
        for name, packed in data.items()
    ]
    policy = _policy(digest, _digest(script))
    head = [
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Html('<meta name="color-scheme" content="light dark">'),
        element("title", title),
        element("style", Html(style)),
    ]
    scripts.append(element("script", Html(script)))
    whole = element("html", element("head", *head), element("body", *body, *scripts), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _file(name: str) -> str:
    return resources.files("metatpe.report").joinpath(name).read_text("utf-8")


@functools.cache
def _plotly() -> tuple[str, str]:
    """Return plotly.js, packed, which takes longer than all else in a page, and its checksum."""
    from plotly.offline import get_plotlyjs

    library = get_plotlyjs()
    return _packed(library), _digest(library)


def _packed(text: str) -> str:
    """Return text as base64 of gzip, the same for the same text at any time."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _policy(*digests: str) -> str:
    """Return what the page may do: run the scripts with these checksums, and draw."""
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _section(section: Section, figures: list[str]) -> Html:
    blocks = [_block(block, figures) for block in section.blocks]
    return element("section", element("h2", section.title), *blocks)


def _block(block: Block, figures: list[str]) -> Html:
    """Return a block; the figure of a plot is added to the others."""
    if isinstance(block, Text):
        return element("p", block.text, class_=block.kind)
    if isinstance(block, Items):
        return element("ul", *(element("li", text) for text in block.texts))
    if isinstance(block, Plot):
        return _plot(block, figures)
    return _table(block)


def _plot(block: Plot, figures: list[str]) -> Html:
    """Return the place of a plot, with the figure's title as text, which finds room anywhere."""
    figure = block.make()
    if figure is None:
        return Html()
    title = figure.layout.title.text
    about = figure.layout.title.subtitle.text or ""
    figure.update_layout(title=None, margin={"t": 20})
    figures.append(figure.to_json())
    heading = element("h3", _as_text(title), " ", element("small", _as_text(about)))
    drawn = element("div", "This plot needs JavaScript.", class_="plot", id=block.name)
    return element("figure", heading, drawn, element("figcaption", block.caption))


def _as_text(markup: str) -> str:
    """Return what plotly shows for a text with its markup."""
    return html.unescape(re.sub("<[^>]*>", "", markup.replace("<br>", " ")))


def _table(table: Table) -> Html:
    kinds = [_kind(column) for column in zip(*table.rows, strict=True)]
    columns = zip(table.head, kinds, strict=True)
    head = [element("th", name, scope="col", class_=kind) for name, kind in columns]
    rows = [
        [element("td", element("div", text), class_=k) for text, k in zip(row, kinds, strict=True)]
        for row in table.rows
    ]
    body = element("tbody", *(element("tr", *cells) for cells in rows))
    whole = element("table", element("thead", element("tr", *head)), body)
    return element("div", whole, class_="table", tabindex="0", role="region")


def _kind(cells: Sequence[str]) -> str:
    """Return the class of a column: numbers stand to the right, long texts need some width."""
    try:
        for cell in filter(None, cells):
            float(cell.replace(",", "").rstrip("%"))
    except ValueError:
        return "text long" if max(map(len, cells)) > _LONG else "text"
    return "number"
