"""The documentation in a real browser, opened as a file: it is searched without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Open
from documents import build_site

pytest.importorskip("material", reason="needs the extra docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build_site(folder)
    return folder


def test_the_search_finds_a_page_and_nothing_comes_from_a_network(site: Path, visit: Open) -> None:
    with visit((site / "guides" / "import.html").as_uri(), width=1300) as seen:
        seen.page.click(".md-search__input")
        seen.page.keyboard.type("intersection over union")
        seen.page.wait_for_selector(".md-search-result__link")
        found = seen.page.inner_text(".md-search-result__list")
        assert "Similarity and task weights" in found
        assert seen.complaints == []
        assert {url.split(":")[0] for url in seen.requests} <= {"file", "data", "blob"}


def test_an_equation_is_drawn_by_the_browser_itself(site: Path, visit: Open) -> None:
    with visit((site / "method" / "similarity.html").as_uri()) as seen:
        box = seen.page.locator("math[display=block] mfrac").first.bounding_box()
        assert box is not None
        assert box["height"] > 10
        assert seen.complaints == []


# The width of the content, and for each table what sticks out of it or needs scrolling.
MEASURE = """() => {
    const room = document.querySelector(".md-content__inner").getBoundingClientRect();
    const tables = [...document.querySelectorAll("article table")];
    return tables.filter(table => !table.closest(".highlight")).map(table => {
        const around = table.closest(".md-typeset__scrollwrap") || table.parentElement;
        const beyond = table.getBoundingClientRect().right - room.right;
        return [table.innerText.slice(0, 40),
                Math.max(beyond, around.scrollWidth - around.clientWidth)];
    });
}"""


def test_every_table_fits_a_screen_of_1280_pixels(site: Path, visit: Open) -> None:
    pages = [page for page in site.rglob("*.html") if "<table>" in page.read_text()]
    assert len(pages) > 10
    n_tables, wide = 0, []
    with visit(pages[0].as_uri(), width=1280) as seen:
        for page in pages:
            seen.page.goto(page.as_uri(), wait_until="domcontentloaded")
            seen.page.wait_for_selector("article table")
            tables = seen.do(MEASURE)
            n_tables += len(tables)
            wide += [(page.name, text, beyond) for text, beyond in tables if beyond > 1]
    assert n_tables > 20
    assert wide == []
