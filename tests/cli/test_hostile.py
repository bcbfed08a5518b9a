"""What names, choices and messages may hold must not reach the terminal, nor passwords."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest
from commands import Answer, metatpe, refusal
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from studies import past_study

ESCAPE = "\x1b]52;c;aGVsbG8=\x07\x9b31m\u202e"  # writes the clipboard, in red, from right to left
NAME = f"old{ESCAPE}"
SPACE: dict[str, BaseDistribution] = {
    f"x{ESCAPE}": FloatDistribution(0.0, 1.0),
    "kind": CategoricalDistribution((f"a{ESCAPE}", "b")),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    yield
    optuna.logging.set_verbosity(level)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('hostile') / 'studies.db'}"
    for i in range(2):
        study = past_study(space=SPACE, n=12, seed=i, name=f"{NAME} {i}", storage=url)
        study.set_metric_names([f"loss{ESCAPE}", "cost"])
        study.set_user_attr(f"note{ESCAPE}", ESCAPE)
    return url


def is_plain(text: str) -> bool:
    return not {*text} & {*"\x1b\x07\x9b\u202e"}


def assert_plain(answer: Answer) -> str:
    assert answer.code == 0, answer
    assert is_plain(answer.out + answer.err)
    return answer.out + answer.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["tasks"],
        ["tasks", "--like", f"{NAME} 0"],
        ["tasks", "--json"],
        ["similarity"],
        ["similarity", "--json"],
        ["suggest"],
        ["suggest", "--ranges"],
        ["suggest", "--json"],
    ],
    ids=" ".join,
)
def test_no_command_writes_control_characters(storage: str, arguments: list[str]) -> None:
    text = assert_plain(metatpe(*arguments, "--storage", storage))
    assert "x1b" in text or "u001b" in text


def test_json_keeps_names_as_they_are(storage: str) -> None:
    answer = metatpe("tasks", "--storage", storage, "--json")
    assert [study["study"] for study in json.loads(answer.out)] == [f"{NAME} 0", f"{NAME} 1"]


def test_json_has_choices_that_are_no_numbers_as_text(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    choices = CategoricalDistribution((float("nan"), float("-inf"), 1.0))
    past_study(space={"c": choices}, n=4, seed=0, name="old", storage=url)
    answer = metatpe("tasks", "--storage", url, "--json")
    (study,) = json.loads(answer.out, parse_constant=pytest.fail)
    assert study["parameters"]["c"]["attributes"]["choices"] == ["nan", "-inf", 1.0]


@pytest.mark.parametrize("form", ["md", "html"])
def test_reports_have_no_control_characters(storage: str, form: str, tmp_path: Path) -> None:
    if form == "html":
        pytest.importorskip("plotly")
    out = tmp_path / f"report.{form}"
    answer = metatpe("report", f"{NAME} 0", "--storage", storage, "--out", out)
    assert_plain(answer)
    text = out.read_text("utf-8")
    assert is_plain(text)
    assert "x1b" in text


def test_an_error_shows_what_it_names(storage: str) -> None:
    said = refusal("tasks", "--storage", storage, f"no{ESCAPE}")
    assert is_plain(said)
    assert "no\\x1b]52" in said


def test_what_an_objective_raises_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "objective.py"
    path.write_text(
        "def objective(trial):\n"
        "    x = trial.suggest_float('x', 0, 1)\n"
        "    if trial.number == 1:\n"
        f"        raise RuntimeError({ESCAPE!r})\n"
        "    return x\n"
    )
    arguments = ["--study", NAME, "--storage", f"sqlite:///{tmp_path / 's.db'}", "--trials", 3]
    text = assert_plain(metatpe("tune", f"{path}:objective", *arguments))
    assert "\\x1b]52" in text


# Passwords ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "grpc://me:s3cr3t@localhost",
        "postgresql+psycopg:/me:s3cr3t@host/x",
        "postgresql:me:s3cr3t@host/x",
        "mysql//me:s3cr3t@host/x",
        "me:s3cr3t@host",
    ],
)
def test_a_mistyped_url_is_said_without_its_password(url: str) -> None:
    said = refusal("tasks", "--storage", url)
    assert "s3cr3t" not in said
    assert "me:***@" in said


def test_suggest_has_nothing_to_choose_where_each_parameter_has_one_value(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    past_study(space={"x": FloatDistribution(1.0, 1.0)}, n=2, seed=0, name="new", storage=url)
    said = refusal("suggest", "--storage", url, "--study", "new")
    assert "nothing to choose in study 'new': each of its parameters has a single value" in said


# Before any trial runs -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--study", "n", "--", "echo", "{n:int:1:inf}"], "n: a range needs two finite numbers"),
        (["--study", "n", "--", "echo", "{n:float:nan:1}"], "n: a range needs two finite numbers"),
        (["--study", "n", "--", "echo", "{n:float:-1.7e308:1.7e308}"], "too wide to compute with"),
        (["--study", " ", "--", "echo", "{n:float:0:1}"], "--study is empty; give the study"),
    ],
)
def test_tune_refuses_what_cannot_work(
    arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "s.db"
    assert sentence in refusal("tune", "--storage", f"sqlite:///{path}", *arguments)
    assert not path.exists()


def test_import_refuses_what_cannot_work(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("x,error\n1,2\n3,4\n")
    path = tmp_path / "s.db"
    arguments = ["import", tmp_path / "runs.csv", "--storage", path, "--objective", "error"]
    said = refusal(*arguments, "--study", "old", "--param", "x:int:0:inf")
    assert "x: a range needs two finite numbers, not 0 and inf" in said
    assert "--study is empty" in refusal(*arguments, "--study", "")
    assert not path.exists()


def test_a_worker_that_dies_while_it_asks_for_a_trial_ends_the_run(tmp_path: Path) -> None:
    path = tmp_path / "objective.py"
    path.write_text(
        "import os, optuna\n"
        "optuna.study.Study.ask = lambda *_, **__: os._exit(3)\n"
        "def objective(trial):\n"
        "    return trial.suggest_float('x', 0, 1)\n"
    )
    arguments = ["--study", "new", "--storage", f"sqlite:///{tmp_path / 's.db'}", "--trials", 3]
    said = refusal("tune", f"{path}:objective", *arguments)
    assert said == "the process ended with exit code 3 before its trial began."
