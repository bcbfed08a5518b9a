"""Every block of every page, and every example of --help, runs as it is printed.

A page is read from top to bottom in a folder that is empty at first (documents.py). If it says
that it uses the studies of another page, that page is read first. The tables below list what is
not run, with the reason.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from documents import ROOT, Reader, assert_shows, blocks, commands

from metatpe.cli import app, command_names

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
PAGES = [page for page in PAGES if not page.name.endswith(".in.md") and blocks(page)]
GETTING_STARTED = "docs/getting-started.md"

# Pages that say that they use what another page has made.
PREPARED_BY = {
    "docs/api/command.md": GETTING_STARTED,
    "docs/guides/defaults.md": GETTING_STARTED,
    "docs/guides/see-the-transfer.md": GETTING_STARTED,
    "docs/will-it-help.md": GETTING_STARTED,
}
TUTORIAL = ROOT / "docs" / "tutorial.md"  # takes minutes; tests/test_docs.py runs it as a whole

HOURS = "takes hours; `metatpe bench` is tested in tests/cli/test_bench.py and test_reproduce.py"
INSTALLS = "changes the environment; tests/test_release.py installs the package into clean ones"
ADDED = "the problem or method of the page is not part of the package"

# (page, beginning of the command or block, why it is not run)
NOT_RUN = [
    ("README.md", "pip install", INSTALLS),
    ("README.md", "make demo", "sets up .venv; tests/cli/test_demo.py runs `metatpe demo`"),
    ("README.md", "make test", "it would run itself"),
    (GETTING_STARTED, "pip install", INSTALLS),
    ("docs/tutorial.md", "pip install", INSTALLS),
    ("docs/faq.md", "for n in 5 10 25", HOURS),
    ("docs/faq.md", "metatpe bench", HOURS),
    ("docs/results.md", "metatpe bench", HOURS),
    ("docs/results.md", "for past in ellipsoid4", HOURS),
    ("docs/results.md", "python docs/results_page.py", "tests/test_results.py runs it"),
    ("docs/method/pruning.md", "metatpe bench", HOURS),
    ("docs/method/pruning.md", "python benchmarks/joint.py", "reads the results of these runs"),
    (
        "docs/guides/prune.md",
        "python examples/pruning.py",
        "trains networks for a minute; tests/test_examples.py runs a smaller version",
    ),
    (
        "docs/guides/prune.md",
        "metatpe tune",
        "a command of the reader's; tests/cli/test_tune_pruning.py runs one",
    ),
    ("docs/develop/add-a-benchmark.md", "metatpe bench", ADDED),
    ("docs/develop/add-a-method.md", "metatpe bench", ADDED),
    (
        "docs/guides/import.md",
        "task = Task.from_mlflow(",
        "asks a server; tests/past/read/test_mlflow.py reads a real MLflow store",
    ),
    ("metatpe bench run", "metatpe bench run --problem hpolib", HOURS),
    ("metatpe bench run", "metatpe bench run --problem ellipsoid4 --past", HOURS),
    (
        "metatpe bench reproduce",
        "metatpe bench reproduce hv-hpolib --quick",
        "takes minutes; tests/cli/test_reproduce.py makes a figure with fewer runs",
    ),
    ("metatpe bench reproduce", "metatpe bench reproduce all", HOURS),
    ("metatpe bench pruning", "metatpe bench run", HOURS),
    ("metatpe bench pruning", "metatpe bench pruning", "needs the runs of the command above"),
]

# (page, beginning of the output, why it is not compared)
NOT_COMPARED = [
    ("docs/method/index.md", "past studies ──read──▶ Task", "a drawing"),
    (
        "docs/guides/examples.md",
        "hypervolume, mean of 3 studies",
        "prediction times vary; tests/test_examples.py runs the examples",
    ),
]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def reason(name: str, text: str) -> str | None:
    """Return why a command or block is not run."""
    found = [why for page, start, why in NOT_RUN if page == name and text.startswith(start)]
    return found[0] if found else None


def reader_of(folder: Path, name: str) -> Reader:
    return Reader(folder, lambda text: reason(name, text) is not None)


def needs(name: str) -> None:
    """Skip a page whose extra is not installed."""
    for extra, modules in {"viz": ("plotly", "optuna_dashboard"), "bench": ("pandas",)}.items():
        if any(importlib.util.find_spec(module) is None for module in modules):
            pytest.skip(f"{name} needs the extra {extra}")


# Pages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    fences = re.findall(r"^```.*$", page.read_text("utf-8"), flags=re.MULTILINE)
    assert len(fences) == 2 * len(blocks(page))
    assert {block.language for block in blocks(page)} <= {"python", "bash", "text"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_is_in_a_block(page: Path) -> None:
    outside = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^ {4,}(?:metatpe|python|pip|make) .*$", outside, re.MULTILINE) == []


def has_python(page: Path) -> bool:
    found = (block.language == "python" and not block.title for block in blocks(page))
    return page != TUTORIAL and any(found)


@pytest.mark.parametrize("page", list(filter(has_python, PAGES)), ids=name_of)
def test_the_python_of_a_page_runs_and_prints_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    n_run = reader_of(tmp_path, name_of(page)).read(page, languages=("python",))
    pasted = [b.text for b in blocks(page) if b.language == "python" and not b.title]
    assert n_run == sum(reason(name_of(page), text) is None for text in pasted)


def has_commands(page: Path) -> bool:
    found = [c for b in blocks(page) if b.language == "bash" for c in commands(b.text)]
    return page != TUTORIAL and any(reason(name_of(page), command) is None for command in found)


@pytest.mark.slow
@pytest.mark.parametrize("page", list(filter(has_commands, PAGES)), ids=name_of)
def test_a_page_runs_from_top_to_bottom_with_its_commands(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(name_of(page))
    monkeypatch.chdir(tmp_path)
    if name_of(page) in PREPARED_BY:
        assert Path(GETTING_STARTED).name in page.read_text()
        Reader(tmp_path).read(ROOT / PREPARED_BY[name_of(page)], languages=("python",))
    reader_of(tmp_path, name_of(page)).read(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_output_of_a_page_follows_what_prints_it(page: Path) -> None:
    exempt = [start for name, start, _ in NOT_COMPARED if name == name_of(page)]
    before = None
    for block in blocks(page):
        if block.language == "text" and not block.text.startswith(tuple(exempt)):
            assert before in ("python", "bash"), block.text
        before = block.language if not block.title else None


# The examples of --help -----------------------------------------------------------------------


def help_examples() -> Iterator[tuple[str, str]]:
    """Yield each command and each example of its help text."""
    root = typer.main.get_command(app)
    for name in command_names():
        found: Any = root
        for word in name.split()[1:]:
            found = found.get_command(None, word)
        text = inspect.getdoc(found.callback) or ""
        for example in re.findall(r"`(metatpe [^`]+)`", text[text.find("Example") :]):
            yield name, " ".join(example.split())


def test_every_command_has_an_example() -> None:
    assert {name for name, _ in help_examples()} == set(command_names())


@pytest.mark.slow
def test_the_examples_of_help_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # They use the studies and the train.py of Getting started, the table of the guide on imports,
    # and the stored results of the repository in the place of the reader's own.
    needs("metatpe --help")
    monkeypatch.chdir(tmp_path)
    for page in (GETTING_STARTED, "docs/guides/import.md"):
        reader_of(tmp_path, page).read(ROOT / page, languages=("python",))
    shutil.copytree(DOCS / "results", tmp_path / "results")
    printed = {
        example: Reader(tmp_path).run(example)
        for name, example in help_examples()
        if reason(name, example) is None
    }
    assert len(printed) > 10
    assert [example for example, output in printed.items() if "Traceback" in output] == []


# The tables -----------------------------------------------------------------------------------


def test_nothing_stands_in_the_tables_that_is_not_on_a_page() -> None:
    texts = {
        name: [example for n, example in help_examples() if n == name] for name, _, _ in NOT_RUN
    }
    for page in PAGES:
        texts[name_of(page)] = [
            text
            for block in blocks(page)
            for text in (commands(block.text) if block.language == "bash" else [block.text])
        ]
    for name, start, _ in [*NOT_RUN, *NOT_COMPARED]:
        assert any(text.startswith(start) for text in texts[name]), (name, start)
    assert set(PREPARED_BY) <= set(texts)


# Commands within a sentence -------------------------------------------------------------------


def test_commands_within_sentences_have_options_that_exist() -> None:
    root = typer.main.get_command(app)
    for page in [*PAGES, *DOCS.rglob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for text in re.findall(r"`(metatpe [^`]+)`", page.read_text("utf-8")):
            words = " ".join(text.split()).split(" -- ")[0].split()
            name = " ".join(words[: 3 if words[1] == "bench" else 2])
            if name not in command_names():
                assert name in (
                    "metatpe bench",
                    "metatpe --help",
                    "metatpe --version",
                    "metatpe --install-completion",
                ), f"{page.name}: {text}"
                continue
            found: Any = root
            for word in name.split()[1:]:
                found = found.get_command(None, word)
            known = {option for p in found.params for option in p.opts} | {"--help"}
            used = {word.split("=")[0] for word in words if word.startswith("--")}
            assert used <= known, f"{page.name}: {text}"


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=name_of)
def test_scripts_within_sentences_exist(page: Path) -> None:
    for script in re.findall(r"`(?:\.venv/bin/)?python ([\w/.-]+\.py)", page.read_text("utf-8")):
        assert (ROOT / script).is_file() or script == "train.py", script


# What counts as the same output ---------------------------------------------------------------


def test_an_output_may_differ_in_the_last_digits_of_numbers_only() -> None:
    assert_shows("0.064 of 1,000\n...\nend", "0.0641 of 1,001\na\nb\nend\n")
    for printed in ("0.084 of 1,000\nend", "0.064 of 1,000\nend\nmore", "0.064 off 1,000\nend"):
        with pytest.raises(AssertionError, match="the page shows"):
            assert_shows("0.064 of 1,000\n...\nend", printed)
