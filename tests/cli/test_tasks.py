"""`metatpe tasks`, `similarity` and `import`, on real storages."""

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from commands import metatpe, refusal
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from rich.console import Console
from studies import SPACE, past_study

from metatpe import Task, gamma_similarity, load_tasks

ODD = 'it\'s "odd" [bold]ü'
CSV = "lr,depth,act,error\n0.1,2,relu,3\n1e-5,4,tanh,1\n0.001,,relu,2\n0.01,3,relu,\n"


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A wide one; and Optuna, which the command makes quiet, is loud again afterwards."""
    monkeypatch.setattr("metatpe.cli.tasks.console", Console(width=200))
    with warnings.catch_warnings():
        yield
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('cli') / 'studies.db'}"
    past_study(n=30, name=ODD, storage=url, seed=1)
    space = {"x": FloatDistribution(0.5, 2), "z": IntDistribution(1, 3)}
    past_study(n=30, name="narrow", storage=url, seed=2, space=space)
    past_study(n=3, name="new", storage=url, seed=3)
    past_study(n=4, name="single", storage=url, seed=4, directions=["maximize"])
    optuna.create_study(study_name="empty", storage=url, directions=["minimize"] * 2)
    return url


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(CSV)
    return path


# tasks


def test_the_studies_of_a_storage_are_shown(url: str) -> None:
    answer = metatpe("tasks", "--storage", url)
    assert answer.code == 0
    assert all(name in answer.out for name in (ODD, "narrow", "new", "single", "empty"))
    assert "float 0.0001 to 1, log" in answer.out
    assert "maximize 0" in answer.out
    assert "30 of 30" in answer.out


def test_the_same_as_json(url: str) -> None:
    (found,) = json.loads(metatpe("tasks", "--storage", url, "--json", ODD).out)
    assert (found["study"], found["trials"], found["observations"]) == (ODD, 30, 30)
    assert found["directions"] == ["minimize", "minimize"]
    assert found["parameters"]["lr"]["name"] == "FloatDistribution"
    assert found["left"] is None


def test_what_is_left_in_another_study_is_shown(url: str) -> None:
    out = metatpe("tasks", "--storage", url, "--like", "new").out
    assert "left out: new: it is the new study itself." in out
    assert "left out: single: it has 1 objective, but the new study has 2." in out
    assert "left out: empty: it has 0 finished trials" in out
    found = json.loads(metatpe("tasks", "--storage", url, "--like", "new", "--json", "na*").out)
    task = load_tasks(url, "narrow")[0]
    n_outside = sum(task.configuration(i)["x"] > 1.0 for i in range(30))
    assert found[0]["left"] == {
        "shared": ["x"],
        "dropped": ["z"],
        "lacking": ["depth", "kind", "lr"],
        "outside": {"x": n_outside},
        "observations": 30 - n_outside,
    }
    row = next(line for line in out.splitlines() if "narrow" in line)
    assert f"{30 - n_outside} of 30" in row
    assert f"{n_outside} of x" in row


def test_a_study_that_does_not_exist_yet_is_compared_by_its_objective(
    url: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(
        "def objective(trial): return trial.suggest_float('x', 0, 1), 1.0"
    )
    out = metatpe("tasks", "--storage", url, "--like", tmp_path / "train.py:objective").out
    assert "left out: single" not in out  # the number of objectives is not known
    row = next(line for line in out.splitlines() if "narrow" in line)
    assert "of 30" in row
    assert "z" in row


def test_a_study_that_does_not_exist_yet_is_compared_by_a_file(url: str, tmp_path: Path) -> None:
    path = tmp_path / "space.txt"
    path.write_text("z:int:1:3\ny:float:0:1\n")
    found = json.loads(metatpe("tasks", "--storage", url, "--like", path, "--json").out)
    by_name = {entry["study"]: entry for entry in found}
    assert by_name["narrow"]["left"]["lacking"] == ["y"]
    assert by_name["narrow"]["left"]["observations"] == 30
    assert by_name["new"]["left_out"] == "it has no parameter in common with the new study."


def test_each_search_space_is_shown_once(tmp_path: Path) -> None:
    storage = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(tmp_path / "studies.log"))
    )
    for i in range(3):
        past_study(n=2, name=f"s{i}", storage=storage)
    out = metatpe("tasks", "--storage", tmp_path / "studies.log").out
    assert out.count("float 0.0001 to 1, log") == 1
    assert [line.split("│")[4].strip() for line in out.splitlines() if "│ s" in line] == ["A"] * 3


def test_defaults_are_shared_too(url: str) -> None:
    arguments = ("--like", "new", "--default", "depth=3", "--default", "kind=a", "--json")
    (found,) = json.loads(metatpe("tasks", "--storage", url, *arguments, "narrow").out)
    assert found["left"]["shared"] == ["depth", "kind", "x"]
    assert found["left"]["observations"] == 30  # one of three values may lie outside


def test_nothing_is_compared_with_a_study_without_trials(url: str) -> None:
    answer = metatpe("tasks", "--storage", url, "--like", "empty", "narrow")
    assert "unknown: empty has no trials yet" in answer.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--like", "n*"], "no study is called 'n*'; the storage has ["),
        (["--like", "nowhere.py:objective"], "there is no file nowhere.py."),
        (["narow"], "no study is called 'narow'; similar names are ['narrow']."),
        (["--like", "new", "--default", "depth"], "--default 'depth' is not NAME=VALUE."),
    ],
)
def test_bad_names_are_refused(url: str, arguments: list[str], sentence: str) -> None:
    assert refusal("tasks", "--storage", url, *arguments).startswith(sentence)


@pytest.mark.parametrize("command", ["tasks", "similarity"])
def test_a_storage_that_cannot_be_used_is_said(command: str, tmp_path: Path) -> None:
    missing = tmp_path / "studies.db"
    assert refusal(command, "--storage", f"sqlite:///{missing}") == f"there is no file {missing}."
    assert not list(tmp_path.iterdir())
    pytest.importorskip("psycopg")
    text = refusal(command, "--storage", "postgresql+psycopg://me:s3cr3t@127.0.0.1:1/x")
    assert text.startswith("postgresql+psycopg://me:***@127.0.0.1:1/x cannot be used: ")


# similarity


def test_similarities_are_those_of_the_library(url: str) -> None:
    found = json.loads(metatpe("similarity", "--storage", url, "--json", ODD, "narrow", "new").out)
    tasks = load_tasks(url, [ODD, "narrow", "new"])
    assert found["studies"] == [ODD, "narrow", "new"]
    assert found["similarity"] == [[gamma_similarity(a, b) for b in tasks] for a in tasks]
    assert found["too_few_observations"] == [False, False, True]
    assert found["shared"][0] == [sorted(SPACE), ["x"], sorted(SPACE)]
    table = metatpe("similarity", "--storage", url, ODD, "narrow").out
    assert f"{found['similarity'][0][1]:.3f}" in table
    assert ODD in table


def test_many_studies_are_shown_with_their_nearest(tmp_path: Path) -> None:
    storage = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(tmp_path / "studies.log"))
    )
    for i in range(11):
        past_study(n=4, name=f"s{i}", storage=storage, seed=i)
    answer = metatpe("similarity", "--storage", tmp_path / "studies.log")
    assert answer.code == 0, answer.err
    assert "most alike" in answer.out


def test_one_study_alone_is_like_nothing(url: str) -> None:
    text = refusal("similarity", "--storage", url, "narrow")
    assert text == "a comparison takes two studies, but there is 'narrow' alone."


# import


def test_a_csv_file_becomes_a_study(runs: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    answer = metatpe(
        "import", runs, "--storage", url, "--study", ODD, "--objective", "error",
        "--direction", "maximize", "--param", "depth:int:1:8",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert "int 1 to 8" in answer.out
    assert "float 1e-05 to 0.1, log" in answer.out
    assert "3 trials written to the study" in answer.err
    study = optuna.load_study(study_name=ODD, storage=url)
    assert study.direction == optuna.study.StudyDirection.MAXIMIZE
    assert study.metric_names == ["error"]
    assert [(t.params, t.value) for t in study.trials] == [
        ({"lr": 0.1, "depth": 2, "act": "relu"}, 3.0),
        ({"lr": 1e-5, "depth": 4, "act": "tanh"}, 1.0),
        ({"lr": 0.001, "act": "relu"}, 2.0),
    ]
    assert study.trials[0].distributions == {
        "lr": FloatDistribution(1e-5, 0.1, log=True),
        "depth": IntDistribution(1, 8),
        "act": CategoricalDistribution(("relu", "tanh")),
    }
    assert load_tasks(url)[0].losses.tolist() == [[-3.0], [-1.0], [-2.0]]


def test_import_says_what_it_took_for_what_before_it_writes(tmp_path: Path) -> None:
    lines = [f"{i},run {i},{i % 3},{i % 4},ok,{i / 7}" for i in range(20)]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["run_id,name,seed,depth,state,error", *lines]))
    arguments = ["import", path, "--storage", tmp_path / "new.db", "--study", "old"]
    arguments += ["--objective", "error", "--ignore", "state"]
    answer = metatpe(*arguments, "--dry-run")
    assert answer.code == 0, answer.err
    assert (
        "'run_id' looks like an identifier; if it is not a parameter, add --ignore" in answer.err
    )
    assert "'seed' looks like a seed" in answer.err
    assert "'depth'" not in answer.err
    text = " ".join(answer.out.split())
    for row in ("error │ objective │ minimize", "depth │ int 0 to 3 │ inferred"):
        assert row in text
    assert "name │ left out │ different in every row" in text
    assert "state │ left out │ ignored" in text
    found = json.loads(metatpe(*arguments, "--dry-run", "--json").out)
    assert found["left_out"] == {"name": "different in every row", "state": "ignored"}
    assert found["suspects"] == {"run_id": "an identifier", "seed": "a seed"}
    given = metatpe(*arguments, "--param", "seed:int:0:9", "--ignore", "run_id", "--dry-run")
    assert "looks like" not in given.err


def test_a_dry_run_writes_nothing(runs: Path, tmp_path: Path) -> None:
    answer = metatpe(
        "import", runs, "--storage", tmp_path / "new.db", "--study", "old",
        "--objective", "error", "--ignore", "act", "--dry-run", "--json",
    )  # fmt: skip
    found = json.loads(answer.out)
    assert (found["trials"], list(found["parameters"])) == (3, ["lr", "depth"])
    assert list(tmp_path.iterdir()) == [runs]


@pytest.mark.parametrize(
    ("text", "more", "sentence"),
    [
        ("lr,error\n", [], "runs.csv has a header but no rows."),
        ("", [], "runs.csv is empty; its first line must name the columns."),
        ("lr,error,lr\n1,2,3\n", [], "has more than one column 'lr'; rename or remove them."),
        ("lr,err\n1,2\n", [], "runs.csv has no column 'error'; similar names are ['err']."),
        ("lr,error\n1,2\nx,3\n", [], "'lr' has numbers, but row 2 has 'x'; correct it, or give"),
        ("lr,error\n1,2\n", ["--param", "lt:log"], "has no column 'lt'; it begins with ['lr', "),
        ("lr,error\n0,2\n", ["--param", "lr:log"], "needs positive values, but there is 0."),
        (
            "lr,error\n0,2\n",
            ["--param", "lr:what"],
            "'what' is not a type; the types are float, log,",
        ),
        ("lr,error\n0,2\n", ["--ignore", "x"], "--ignore x: there is no such column."),
        ("lr,error\n0,2\n", ["--direction", "up"], "is minimize or maximize, not 'up'."),
        ("lr,error\n" + "0,2\n" * 20_001, [], "has 20,001 rows, which takes long to write"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(
    text: str, more: list[str], sentence: str, runs: Path, tmp_path: Path
) -> None:
    runs.write_text(text)
    arguments = ("--storage", tmp_path / "new.db", "--study", "old", "--objective", "error")
    assert sentence in refusal("import", runs, *arguments, *more)
    assert list(tmp_path.iterdir()) == [runs]


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    arguments = ("--storage", tmp_path / "new.db", "--study", "old", "--objective", "error")
    assert refusal("import", tmp_path / "no.csv", *arguments).endswith("no.csv.")
    assert not list(tmp_path.iterdir())


def test_a_study_is_not_written_over(runs: Path, url: str) -> None:
    before = load_tasks(url, "narrow")[0]
    arguments = ("--storage", url, "--study", "narrow", "--objective", "error")
    text = refusal("import", runs, *arguments)
    assert text == "study 'narrow' already exists; choose another name."
    assert load_tasks(url, "narrow")[0].losses.tolist() == before.losses.tolist()


def test_a_study_that_could_not_be_finished_is_removed(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(optuna.Study, "add_trial", fails)
    arguments = ("--storage", tmp_path / "new.db", "--study", "old", "--objective", "error")
    assert metatpe("import", runs, *arguments).code != 0
    assert optuna.study.get_all_study_names(f"sqlite:///{tmp_path / 'new.db'}") == []


def test_long_files_can_be_thinned_out(runs: Path, tmp_path: Path) -> None:
    runs.write_text("x,error\n" + "".join(f"{i},{i}\n" for i in range(30_000)))
    arguments = ("--storage", tmp_path / "new.log", "--study", "old", "--objective", "error")
    assert metatpe("import", runs, *arguments, "--rows", 4).code == 0
    (task,) = load_tasks(tmp_path / "new.log")
    assert [c["x"] for c in task.configurations(range(4))] == [0, 10000, 19999, 29999]


def test_an_export_of_optuna_comes_back(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    study = past_study(n=8)
    study.trials_dataframe().to_csv(tmp_path / "trials.csv")
    answer = metatpe(
        "import", tmp_path / "trials.csv", "--storage", tmp_path / "new.db", "--study", "old",
        "--objective", "values_0", "--objective", "values_1", "--param", "lr:log:1e-4:1",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    (task,) = load_tasks(tmp_path / "new.db")
    own = Task.from_study(study)
    assert task.configurations(range(8)) == own.configurations(range(8))
    assert task.space.distributions["lr"] == SPACE["lr"]


def test_the_help_has_examples_and_the_command_starts() -> None:
    code = "from metatpe.cli import main; main()"
    for command in ("tasks", "similarity", "import"):
        assert f" metatpe {command} " in metatpe(command, "--help").out.partition("Example")[2]
    run = subprocess.run([sys.executable, "-c", code, "tasks"], capture_output=True, text=True)
    assert run.returncode == 2
    assert "--storage" in run.stderr
