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
