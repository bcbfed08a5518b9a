"""The documentation: its Python runs, it builds without a warning, it needs no network."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from documents import ROOT, build_site, python_blocks, run

from metatpe.cli import command_names

DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if python_blocks(page))
PUBLIC = ("metatpe", "metatpe.baselines", "metatpe.viz", "metatpe.bench")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_the_python_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page)


def test_every_guide_has_python_that_runs() -> None:
    guides = set((DOCS / "guides").glob("*.md")) - {DOCS / "guides" / "examples.md"}
    assert guides <= set(PAGES)


# The pages as they are built -----------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    build_site(folder)
    return folder


class Loaded(HTMLParser):
    """Collects what a browser would fetch for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "img", "iframe", "source") and values.get("src"):
            self.addresses.append(str(values["src"]))
        if tag == "link" and values.get("rel") != "canonical":
            self.addresses.append(str(values.get("href")))


def test_no_page_fetches_anything_from_a_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text())
        assert loaded.addresses
        assert [a for a in loaded.addresses if re.match(r"(https?:)?//", a)] == [], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text()), sheet


def test_equations_are_mathml(site: Path) -> None:
    page = (site / "method" / "similarity.html").read_text()
    assert page.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') == 3
    assert not any("arithmatex" in p.read_text() for p in site.rglob("*.html"))


def test_search_works_without_a_server(site: Path) -> None:
    # A page that was opened as a file needs the index as a script, and a stand-in for a worker.
    assert (site / "search" / "search_index.js").read_text().startswith("var __index = {")
    assert (site / "assets" / "iframe-worker.js").is_file()
    assert '<script src="assets/iframe-worker.js">' in (site / "index.html").read_text()


# What has to be there ------------------------------------------------------------------------


def public_names() -> list[str]:
    return [
        f"{module}.{name}"
        for module in PUBLIC
        for name in importlib.import_module(module).__all__
        if not inspect.ismodule(public_object(f"{module}.{name}"))
    ]


def public_object(path: str) -> object:
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("path", public_names())
def test_a_public_name_is_documented_with_its_arguments_and_an_example(path: str) -> None:
    thing = public_object(path)
    text = inspect.getdoc(thing) or ""
    assert ">>>" in text, f"{path} has no example"
    for parameter in inspect.signature(thing).parameters.values():  # type: ignore[arg-type]
        assert parameter.annotation is not parameter.empty, f"{path}: {parameter} has no type"
        assert re.search(rf"\b{parameter.name}\b", text), f"{path} does not explain {parameter}"


@pytest.mark.parametrize("path", public_names())
def test_the_example_of_a_public_name_is_right(path: str) -> None:
    thing = public_object(path)
    module = importlib.import_module(thing.__module__)  # type: ignore[attr-defined]
    finder = doctest.DocTestFinder(recurse=inspect.isclass(thing))
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in finder.find(thing, path, module=module, globs=dict(vars(module))):
        runner.run(example)
    assert not runner.failures


def test_the_api_pages_have_every_public_name(site: Path) -> None:
    pages = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    assert [name for name in public_names() if f'id="{name}"' not in pages] == []


def test_the_page_of_the_command_has_every_command() -> None:
    page = (DOCS / "api" / "command.md").read_text()
    assert len(command_names()) > 10
    assert [name for name in command_names() if f"`{name}`" not in page] == []


def test_the_method_pages_name_modules_and_tests_that_exist() -> None:
    for page in (DOCS / "method").glob("*.md"):
        for name in re.findall(r"`([\w/]+\.py)`", page.read_text()):
            places = [ROOT / "src" / "metatpe" / name, ROOT / "tests" / name, ROOT / name]
            assert any(place.is_file() for place in places), f"{page.name}: {name}"
