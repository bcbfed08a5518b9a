"""The documentation builds without a warning, needs no network, and has every public name."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import optuna
import pytest
from documents import ROOT, build_site, python_blocks

from metatpe import TransferSampler, load_tasks
from metatpe.bench import Run, run_all
from metatpe.cli import command_names

DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"
PAGES = sorted(page for page in DOCS.rglob("*.md") if python_blocks(page))
PUBLIC = (
    "metatpe",
    "metatpe.baselines",
    "metatpe.bench",
    "metatpe.report",
    "metatpe.viz",
    "metatpe.viz.matplotlib",
)


def test_every_guide_has_python_that_runs() -> None:
    guides = set((DOCS / "guides").glob("*.md")) - {DOCS / "guides" / "examples.md"}
    assert guides <= set(PAGES)


def test_no_page_has_a_place_where_something_is_still_to_be_written() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    assert [page.name for page in pages if re.search(r"@@\w+@@", page.read_text())] == []


@pytest.mark.slow
def test_the_tutorial_runs_in_an_empty_folder_and_prints_what_it_shows() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("plotly", reason="needs the extra viz")
    command = [sys.executable, str(DOCS / "tutorial_page.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_tutorial_shows_output_and_pictures_that_its_code_makes() -> None:
    page = TUTORIAL.read_text()
    made = {*re.findall(r'savefig\("([\w.]+)"', page), "report.png"}
    shown = set(re.findall(r"\(figures/tutorial/([\w.]+)\)", page))
    assert made == shown == {file.name for file in (DOCS / "figures" / "tutorial").iterdir()}
    printed = re.findall(r"^```text\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert len(printed) > 5
    assert all(printed)


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
    lines = re.findall(r">>> .*", text)
    assert any("+SKIP" not in line for line in lines), f"{path} has no example that runs"
    if path.startswith("metatpe.viz.matplotlib"):
        return  # the arguments are those of metatpe.viz
    for parameter in inspect.signature(thing).parameters.values():  # type: ignore[arg-type]
        assert parameter.annotation is not parameter.empty, f"{path}: {parameter} has no type"
        assert re.search(rf"\b{parameter.name}\b", text), f"{path} does not explain {parameter}"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """What the API pages say that the examples take for granted, and a folder with it."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "runs.csv").write_text("lr,depth,error,cost\n0.1,2,0.5,2\n0.001,4,0.3,4\n")
    run_all([Run("ellipsoid4", "random", 0, 5)], folder / "records")
    storage = f"sqlite:///{folder / 'studies.db'}"

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        return trial.suggest_float("lr", 1e-5, 1e-1, log=True), trial.suggest_int("depth", 1, 8)

    def tuned(sampler: optuna.samplers.BaseSampler, **settings: str) -> optuna.Study:
        directions = ["minimize", "minimize"]
        study = optuna.create_study(directions=directions, sampler=sampler, **settings)
        study.optimize(objective, n_trials=6)
        return study

    for name in ("resnet-18", "resnet-50"):
        tuned(optuna.samplers.RandomSampler(seed=0), study_name=name, storage=storage)
    sources = load_tasks(storage, "resnet-*")
    study, alone = tuned(TransferSampler(sources, seed=0)), tuned(TransferSampler(seed=0))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MPLBACKEND", "agg")
        yield {"objective": objective, "sources": sources, "study": study, "alone": alone}


@pytest.mark.parametrize("path", public_names())
def test_the_example_of_a_public_name_is_right(path: str, names: dict[str, object]) -> None:
    thing = public_object(path)
    module = importlib.import_module(thing.__module__)  # type: ignore[attr-defined]
    finder = doctest.DocTestFinder(recurse=inspect.isclass(thing))
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in finder.find(thing, path, module=module, globs={**vars(module), **names}):
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
