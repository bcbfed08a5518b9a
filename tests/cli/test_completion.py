"""Completion in a real shell: what the Tab key offers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import optuna
import pytest
import typer

from metatpe.cli import app
from metatpe.cli.completion import complete_study, mend_words

METATPE = Path(sys.executable).with_name("metatpe")
pytestmark = pytest.mark.skipif(not METATPE.exists(), reason="metatpe is not installed here")

PRESS_TAB = """
eval "$(_METATPE_COMPLETE=source_bash metatpe)"
COMP_WORDS=({words}); COMP_CWORD={at}
$(complete -p metatpe | sed 's/.*-F \\([^ ]*\\).*/\\1/') metatpe
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def offered(line: str, folder: Path | None = None) -> list[str]:
    """Return what bash offers after this line, whose last word is not finished.

    Words are separated by single spaces; `sqlite : ///a.db` is how bash has `sqlite:///a.db`.
    """
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    script = PRESS_TAB.format(words=quoted, at=len(words) - 1)
    path = f"{METATPE.parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        [bash, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
    )
    assert run.stderr == ""
    return run.stdout.splitlines() if run.stdout.strip() else []


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("metatpe t", ["tune", "tasks"]),
        ("metatpe bench re", ["reproduce"]),
        ("metatpe tune --samp", ["--sampler"]),
        ("metatpe tune --sampler m", ["meta-tpe"]),
    ],
)
def test_bash_completes_commands_options_and_choices(line: str, wanted: list[str]) -> None:
    assert offered(line) == wanted


STORAGE = "--storage sqlite : ///studies.db"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a storage of four studies."""
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)
    for name in ("resnet-18", "resnet-50", "a study", "two\nlines"):
        optuna.create_study(storage=f"sqlite:///{tmp_path / 'studies.db'}", study_name=name)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        f"metatpe tune train.py : objective {STORAGE} --study = re",
        f"metatpe report {STORAGE} re",
    ],
)
def test_bash_completes_the_studies_of_the_storage(line: str, folder: Path) -> None:
    assert offered(line, folder) == ["resnet-18", "resnet-50"]


def test_every_parameter_that_is_a_study_completes() -> None:
    group = typer.main.get_command(app)
    context = group.make_context("metatpe", [], resilient_parsing=True)
    for name in ("tune", "suggest", "tasks", "similarity", "report"):
        params = group.get_command(context, name).params  # type: ignore[attr-defined]
        found = [p for p in params if p.name in ("study", "names", "past", "like", "enqueue")]
        assert found
        assert all(p._custom_shell_complete is not None for p in found)


def names(storage: str | None, incomplete: str) -> list[str]:
    context = SimpleNamespace(params={"storage": storage})
    return complete_study(context, incomplete)  # type: ignore[arg-type]


def test_a_name_with_a_space_is_escaped_for_bash_and_one_of_two_lines_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{folder / 'studies.db'}"
    assert names(url, "") == ["resnet-18", "resnet-50", "a study"]
    monkeypatch.setenv("_METATPE_COMPLETE", "complete_bash")
    assert names(url, "a s") == [r"a\ study"]


def test_the_storage_of_the_environment_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTUNA_STORAGE", "sqlite:///studies.db")
    assert offered("metatpe report resnet-5", folder) == ["resnet-50"]


def test_without_a_storage_bash_offers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)
    assert offered("metatpe tune --study re", tmp_path) == []


@pytest.mark.parametrize(
    "storage",
    [
        None,
        "sqlite:///nowhere.db",
        "sqlite:///file:new.db?uri=true",
        "nowhere.log",
        "nonsense://x",
        "text.db",
        "sqlite:///text.db",
    ],
)
def test_a_storage_that_cannot_be_read_offers_nothing_and_creates_nothing(
    storage: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.db").write_text("no database")
    assert names(storage, "") == []
    assert [path.name for path in tmp_path.iterdir()] == ["text.db"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "at", "mended"),
    [
        (
            ["m", "--storage", "sqlite", ":", "///a.db", "n"],
            5,
            ["m", "--storage", "sqlite:///a.db", "n"],
        ),
        (["m", "a", ":", "b", ":", "c", "n"], 6, ["m", "a:b:c", "n"]),
        (["m", "--study", "=", "n"], 3, ["m", "--study", "n"]),
        (["m", "n", "later"], 1, ["m", "n"]),
    ],
)
def test_words_that_bash_has_split_are_joined(
    words: list[str], at: int, mended: list[str]
) -> None:
    environment = {
        "_METATPE_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(at),
    }
    mend_words(environment)
    assert environment["COMP_WORDS"].split("\n") == mended
    assert environment["COMP_CWORD"] == str(len(mended) - 1)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell: str) -> None:
    environment = {**os.environ, "_METATPE_COMPLETE": f"source_{shell}"}
    run = subprocess.run([METATPE], capture_output=True, text=True, check=False, env=environment)
    assert "_METATPE_COMPLETE=complete_" in run.stdout
