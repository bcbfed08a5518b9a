"""`metatpe report`, on a journal."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest
from commands import metatpe
from studies import past_study
from transferred import OLD_RECORDS, OLD_TURN, recorded_study, transferred

from metatpe.past.read.storage import open_storage


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Optuna, which the command makes quiet, is loud again afterwards."""
    with warnings.catch_warnings():
        yield
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("report") / "studies.log")
    opened = open_storage(path, create=True)
    transferred(12, storage=opened)
    past_study(name="other", storage=opened, seed=5)
    past_study(name="new, alone", storage=opened, seed=6)
    past_study(name="target", n=2, storage=opened)
    return path


def report(*arguments: object, code: int = 0) -> tuple[str, str]:
    """Return what the command prints, and what it says beside."""
    answer = metatpe("report", *arguments)
    assert answer.code == code, answer
    return answer.out, answer.err.strip()


def test_the_page_is_written_to_the_file(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, said = report("new", "--storage", storage, "--out", "page.html")
    assert said.startswith("page.html, ")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "<title>new</title>" in page
    report("new", "--storage", storage)
    assert (tmp_path / "report.html").read_text("utf-8") == page


def test_the_past_of_the_records_is_found_in_the_storage(storage: str) -> None:
    text, _ = report("new", "--storage", storage, "--format", "md")
    assert "| past | 30 | trials 0, 1, 2, 3, 4 |" in text
    assert "| other |" not in text
    assert "| target |" not in text  # the study itself is called so in the records


def test_the_past_of_warm_starts_is_found_before_there_are_weights(tmp_path: Path) -> None:
    path = str(tmp_path / "studies.log")
    transferred(2, storage=open_storage(path, create=True))
    text, _ = report("new", "--storage", path, "--format", "md")
    assert "| past | 30 | trials 0, 1 |" in text


def test_a_study_recorded_before_there_were_reasons_is_reported_on(tmp_path: Path) -> None:
    path = str(tmp_path / "studies.log")
    storage = open_storage(path, create=True)
    past_study(n=30, storage=storage)
    recorded_study(*OLD_RECORDS, OLD_TURN, storage=storage, name="old")
    text, _ = report("old", "--storage", path, "--format", "md")
    assert "| past | 30 | unknown | at least 1 trial | 1 of 1 influenced | 0.400 (trial" in text
    report("old", "--storage", path, "--out", tmp_path / "old.html")


def test_other_past_studies_can_be_named(storage: str, tmp_path: Path) -> None:
    out = tmp_path / "new.md"
    printed, _ = report(
        "new", "--storage", storage, "--format", "md", "--from", "o*", "--out", out
    )
    assert not printed
    assert "| other | in any trial | it was not among the sampler's sources" in out.read_text(
        "utf-8"
    )


def test_runs_without_the_past_are_compared_and_are_no_past(storage: str) -> None:
    text, _ = report(
        *("new", "--storage", storage, "--format", "md", "--from", "*", "--without", "new, alone")
    )
    assert "Measured against 1 run of the same problem without past studies (new, alone)." in text
    assert "| new, alone | in any trial" not in text
    assert "| new | in any trial" not in text


def test_bad_input_is_one_sentence(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, sentence in [
        (("nwe", "--storage", storage), "no study is called 'nwe'; similar names are ['new']."),
        (("old", "--storage", storage), "no study is called 'old'; the storage has ['new',"),
        (("new", "--storage", storage, "--from", "x*"), "no study is called 'x*'"),
        (("new", "--storage", storage, "--out", tmp_path / "no" / "r.html"), "there is no folder"),
        (("new", "--storage", storage, "--format", "md", "--pdf"), "--pdf prints the page"),
        (
            ("new, alone", "--storage", storage, "--without", "new"),
            "study 'new' was tuned with past studies; --without needs studies of the same",
        ),
        (("new", "--storage", "sqlite:///no.db"), "there is no file no.db."),
    ]:
        printed, said = report(*arguments, code=2)
        assert said.startswith(f"metatpe: {sentence}")
        assert not printed
    monkeypatch.setenv("PATH", str(tmp_path))
    _, said = report("new", "--storage", storage, "--out", tmp_path / "r.html", "--pdf", code=2)
    assert "there is no Chromium, Chrome or Edge here" in said
    assert not (tmp_path / "r.html").exists()


def test_no_password_is_printed(tmp_path: Path) -> None:
    out = report("new", "--storage", "mysql+pymysql://me:geheim@127.0.0.1:1/x", code=2)
    assert "geheim" not in "".join(out)
