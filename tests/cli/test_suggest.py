"""`metatpe suggest`, on real storages."""

import csv
import io
import json
import math
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from commands import metatpe, refusal
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    json_to_distribution,
)
from optuna.trial import FixedTrial, Trial, TrialState
from rich.console import Console
from studies import GRID, ONE, evaluate, past_study, random_sampler

from metatpe import TransferSampler, load_tasks, portfolio
from metatpe.cli.suggest import snippet
from metatpe.past.ranges import GoodRange

NAMES = ["accuracy", "seconds"]
DIRECTIONS = ["maximize", "minimize"]
UNIT = FloatDistribution(0.0, 1.0)


def train(trial: Trial, best: float = -3.0) -> tuple[float, float]:
    """A conditional objective: only sgd has a momentum."""
    optimizer = trial.suggest_categorical("optimizer", ["adam", "sgd"])
    lr = math.log10(trial.suggest_float("lr", 1e-5, 1e-1, log=True))
    layers = trial.suggest_int("layers", 1, 8)
    loss = 0.05 * (lr - best) ** 2 + 0.01 * abs(layers - 4)
    if optimizer == "sgd":
        loss += 0.1 * (trial.suggest_float("momentum", 0.0, 0.99) - 0.9) ** 2
    return 0.95 - loss, 1.5 * layers


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One of a hundred columns; and Optuna, which the command makes quiet, is loud afterwards."""
    monkeypatch.setattr("metatpe.cli.suggest.console", Console(width=100))
    with warnings.catch_warnings():
        yield
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that no test changes."""
    memory = optuna.storages.InMemoryStorage()  # to write each trial once
    for i, name in enumerate(["resnet-18", "resnet-34", "running"]):
        study = optuna.create_study(
            study_name=name, storage=memory, directions=DIRECTIONS, sampler=random_sampler(i)
        )
        study.set_metric_names(NAMES)
        study.optimize(lambda trial, best=-3.0 + 0.3 * i: train(trial, best), n_trials=30)
    past_study(n=15, name="grid a", storage=memory, space=GRID, seed=1, directions=ONE)
    past_study(n=15, name="grid b", storage=memory, space=GRID, seed=2, directions=ONE)
    past_study(n=3, name="square", storage=memory, space={"x": UNIT}, directions=ONE)
    past_study(n=1, name="short", storage=memory, space=GRID, directions=ONE)
    optuna.create_study(study_name="fresh", storage=memory, directions=["minimize"])
    path = tmp_path_factory.mktemp("suggest") / "studies.db"
    for name in optuna.get_all_study_names(memory):
        optuna.copy_study(
            from_study_name=name, from_storage=memory, to_storage=f"sqlite:///{path}"
        )
    return path


@pytest.fixture
def url(stored: Path) -> str:
    return f"sqlite:///{stored}"


@pytest.fixture
def own(stored: Path, tmp_path: Path) -> str:
    """A copy of the database that a test may change."""
    return f"sqlite:///{shutil.copy(stored, tmp_path)}"


RESNETS = ("--from", "resnet-*")
GRIDS = ("--from", "grid *")


def answer(*arguments: object) -> Any:
    """Return the JSON that `metatpe suggest` prints."""
    found = metatpe("suggest", *arguments, "--json")
    assert found.code == 0, found.err
    return json.loads(found.out)


# Configurations that serve the past studies


def test_configurations_are_those_of_the_library_with_values_in_their_own_direction(
    url: str,
) -> None:
    found = answer("--storage", url, *RESNETS, "--k", 3)
    members = portfolio(load_tasks(url, "resnet-*"), 3)
    assert found["past"] == [
        {"study": name, "objectives": NAMES, "directions": DIRECTIONS}
        for name in ("resnet-18", "resnet-34")
    ]
    assert [each["params"] for each in found["configurations"]] == [m.params for m in members]
    assert [each["serves"] for each in found["configurations"]] == [[*m.serves] for m in members]
    for each, member in zip(found["configurations"], members, strict=True):
        for study, values in each["expected"].items():
            loss, seconds = member.expected[study]
            assert values == {"accuracy": -loss, "seconds": seconds}
            assert 0.0 < values["accuracy"] < 1.0


def test_a_table_shows_the_expected_values_of_a_few_past_studies(url: str) -> None:
    out = metatpe("suggest", "--storage", url, *RESNETS, "--k", 2).out
    assert "2 configurations for 2 past studies" in out
    (first, _) = answer("--storage", url, *RESNETS, "--k", 2)["configurations"]
    assert f"accuracy {first['expected']['resnet-18']['accuracy']:.4g}" in out
    assert f"lr={first['params']['lr']:.5g}" in out


def test_the_table_of_many_past_studies_fits_a_hundred_columns(tmp_path: Path) -> None:
    journal = tmp_path / "studies.log"
    storage = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(journal))
    )
    for i in range(9):
        name = f"a past study with a long name, number {i}, and [bold]brackets"
        past_study(n=5, name=name, storage=storage, seed=i, space=GRID)
    out = metatpe("suggest", "--storage", journal, "--k", 2).out
    assert "2 configurations for 9 past studies" in out
    assert max(map(len, out.splitlines())) <= 100
    assert "[bold]brackets" in out
    assert "more" in out  # one of two configurations is there for five or more
    assert " to " in out  # the smallest and the largest value that is expected


def test_a_configuration_has_what_its_branch_uses(url: str) -> None:
    found = answer("--storage", url, *RESNETS, "--k", 12)["configurations"]
    optimizers = {each["params"]["optimizer"] for each in found}
    assert optimizers == {"adam", "sgd"}
    for each in found:
        assert ("momentum" in each["params"]) == (each["params"]["optimizer"] == "sgd")


def test_configurations_are_written_as_csv(url: str, tmp_path: Path) -> None:
    arguments = ("suggest", "--storage", url, *RESNETS, "--k", 12, "--csv")
    printed = metatpe(*arguments, "-").out
    file = tmp_path / "defaults.csv"
    written = metatpe(*arguments, file)
    assert file.read_text() == printed
    rows = list(csv.DictReader(io.StringIO(printed)))
    found = answer("--storage", url, *RESNETS, "--k", 12)["configurations"]
    assert 1 < len(found) < 12  # another one would add nothing
    assert f"{file}, {len(found)} configurations" in written.err
    assert f"{len(found)} configurations instead of 12: another one would add" in written.err
    assert f"{len(found)} configurations for 2 past studies" in written.out
    assert [int(row["number"]) for row in rows] == [*range(1, len(found) + 1)]
    names = {f"params_{name}" for each in found for name in each["params"]}
    assert {*[*rows[0]][1:5]} == names
    for row, each in zip(rows, found, strict=True):
        assert float(row["params_lr"]) == each["params"]["lr"]
        assert row["params_momentum"] == str(each["params"].get("momentum", ""))
        assert row["serves"] == "; ".join(each["serves"])
        expected = each["expected"]["resnet-34"]["accuracy"]
        assert float(row["expected_resnet-34_accuracy"]) == expected


def test_expected_values_are_those_of_feasible_and_finished_trials(tmp_path: Path) -> None:
    def limited(trial: Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        if x > 0.7:
            raise optuna.TrialPruned
        trial.set_constraint("at least 0.3", 0.3 - x)
        return x

    url = f"sqlite:///{tmp_path / 'studies.db'}"
    study = optuna.create_study(study_name="target", storage=url, sampler=random_sampler(0))
    study.optimize(limited, n_trials=30)
    (found,) = answer("--storage", url, "--k", 1)["configurations"]
    x = found["params"]["x"]
    assert 0.3 <= x < 0.45
    assert found["expected"] == {"target": {"0": pytest.approx(x, abs=0.05)}}
    assert found["serves"] == ["target"]


# Enqueueing


def test_a_new_study_gets_the_objectives_of_the_past_and_begins_with_the_configurations(
    own: str,
) -> None:
    said = metatpe("suggest", "--storage", own, *RESNETS, "--k", 3, "--enqueue", "new").err
    assert "study 'new' was created: maximize accuracy, minimize seconds" in said
    assert f"3 configurations enqueued in study 'new' of {own}" in said
    study = optuna.load_study(study_name="new", storage=own)
    assert [direction.name.lower() for direction in study.directions] == DIRECTIONS
    assert study.metric_names == NAMES
    study.optimize(train, n_trials=3)
    expected = answer("--storage", own, *RESNETS, "--k", 3)["configurations"]
    assert [t.params for t in study.trials] == [each["params"] for each in expected]


def test_what_is_enqueued_is_not_enqueued_again(own: str) -> None:
    arguments = ("suggest", "--storage", own, *RESNETS, "--enqueue", "new", "--k")
    metatpe(*arguments, 2)
    said = metatpe(*arguments, 3).err
    assert "1 configuration enqueued" in said
    assert "2 existed already" in said
    study = optuna.load_study(study_name="new", storage=own)
    assert [t.state for t in study.trials] == [TrialState.WAITING] * 3
    study.optimize(train, n_trials=3)
    metatpe(*arguments, 3)
    assert len(study.trials) == 3


def test_configurations_lie_in_the_space_of_a_study_that_is_there(own: str) -> None:
    study = optuna.create_study(study_name="narrow", storage=own, directions=["minimize"])
    evaluate(study, 3, space={"i": IntDistribution(2, 3), "new": UNIT})
    found = answer("--storage", own, *GRIDS, "--k", 4, "--enqueue", "narrow")["configurations"]
    assert found
    assert {each["params"].get("i", 2) for each in found} <= {2, 3}
    waiting = study.get_trials(states=[TrialState.WAITING])
    fixed = [t.system_attrs["fixed_params"] for t in waiting]
    assert fixed == [each["params"] for each in found]


# Ranges


def test_ranges_hold_the_good_region_and_the_snippet_asks_for_them(url: str) -> None:
    found = answer("--storage", url, *RESNETS, "--ranges")
    good = {
        name: json_to_distribution(json.dumps(each["good"]))
        for name, each in found["parameters"].items()
    }
    assert found["past"] == ["resnet-18", "resnet-34"]
    assert isinstance(good["lr"], FloatDistribution)
    assert good["lr"].log
    assert 1e-5 < good["lr"].low < 1e-3 < good["lr"].high < 1e-1
    volumes = [each["volume"] for each in found["parameters"].values()]
    assert found["volume"] == pytest.approx(math.prod(volumes))
    assert found["volume"] < 0.7
    assert 0.0 < found["parameters"]["momentum"]["usage"] < 1.0
    assert asked_by(found["snippet"]) == good


def test_the_table_of_ranges_has_the_volume_and_the_snippet(url: str) -> None:
    out = metatpe("suggest", "--storage", url, *RESNETS, "--ranges", "--mass", 0.5).out
    found = answer("--storage", url, *RESNETS, "--ranges", "--mass", 0.5)
    assert out.startswith("50 % of the good regions of 2 past studies")
    assert f"{100 * found['volume']:.2g} % of the volume of the searched space." in out
    assert out.endswith(found["snippet"] + "\n")
    wider = answer("--storage", url, *RESNETS, "--ranges")
    assert found["volume"] < wider["volume"]


def asked_by(code: str) -> dict[str, BaseDistribution]:
    """Return the distributions that lines of Python ask a trial for."""
    trial = optuna.create_study().ask()
    exec(code, {"trial": trial})
    return trial.distributions


def test_a_snippet_is_python_whatever_parameters_are_called() -> None:
    good: dict[str, BaseDistribution] = {
        "learning-rate": FloatDistribution(1e-4, 0.5, log=True),
        "learning_rate": FloatDistribution(0.0, 1.0, step=0.25),
        "lambda": IntDistribution(2, 8, step=2),
        "trial": IntDistribution(1, 64, log=True),
        '2x "it\'s"\n': CategoricalDistribution((None, True, 1, 2.5, "a'b\n", math.inf)),
        "größe": CategoricalDistribution(("one",)),
    }
    code = snippet({name: GoodRange(d, 1.0, 1.0) for name, d in good.items()})
    assert asked_by(code) == good
    assert len(code.splitlines()) == len(good)


def test_a_snippet_says_what_only_some_configurations_use() -> None:
    code = snippet({"a": GoodRange(UNIT, 1.0, 0.4), "b": GoodRange(UNIT, 1.0, 0.0)})
    assert code.splitlines() == [
        'a = trial.suggest_float("a", 0.0, 1.0)  # used by 40 % of the good configurations',
        '# b = trial.suggest_float("b", 0.0, 1.0)  # no good configuration uses it',
    ]
    assert asked_by(code) == {"a": UNIT}


# The next configurations of a study


@pytest.mark.parametrize("sampler", ["transfer", "meta-tpe"])
def test_the_next_configurations_are_different_and_nothing_is_written(
    own: str, sampler: str
) -> None:
    file = Path(own.removeprefix("sqlite:///"))
    before = file.read_bytes()
    arguments = ("--storage", own, *RESNETS, "--study", "running", "--sampler", sampler)
    found = answer(*arguments, "-n", 3, "--seed", 1)
    assert file.read_bytes() == before
    assert (found["study"], found["sampler"]) == ("running", sampler)
    assert found["past"] == ["resnet-18", "resnet-34"]
    assert len({json.dumps(each["params"]) for each in found["configurations"]}) == 3
    assert found == answer(*arguments, "-n", 3, "--seed", 1)
    for each in found["configurations"]:
        assert each["reason"] in ("weighed", "own", "epsilon", "silent", "densities")
        FixedTrial(each["params"]).suggest_int("layers", 1, 8)
        assert ("momentum" in each["params"]) == (each["params"]["optimizer"] == "sgd")


def test_the_next_configurations_are_those_that_a_study_would_evaluate(own: str) -> None:
    study = optuna.create_study(study_name="new", storage=own, directions=["minimize"])
    evaluate(study, 8, space=GRID)
    found = answer("--storage", own, *GRIDS, "--study", "new", "-n", 3, "--seed", 5)[
        "configurations"
    ]
    study.sampler = TransferSampler(load_tasks(own, "grid *"), seed=5)
    assert [each["params"] for each in found] == [study.ask(GRID).params for _ in range(3)]


def test_before_its_first_trial_a_study_has_the_parameters_of_the_past(own: str) -> None:
    found = answer("--storage", own, *GRIDS, "--study", "fresh", "-n", 7, "--seed", 0)
    reasons = [each["reason"] for each in found["configurations"][:3]]
    assert reasons == ["portfolio", "best", "best"]  # one serves the past studies, which agree
    configurations = [each["params"] for each in found["configurations"]]
    assert all(params.keys() == GRID.keys() for params in configurations)
    assert len({json.dumps(params) for params in configurations}) == 7


def test_enqueued_trials_that_wait_are_not_suggested_again(own: str) -> None:
    space = {"i": IntDistribution(0, 3), "c": GRID["c"]}  # 12 configurations
    study = optuna.create_study(study_name="new", storage=own, directions=["minimize"])
    evaluate(study, 1, space=space)
    taken = {tuple(t.params.values()) for t in study.trials}
    for i in range(4):
        study.enqueue_trial({"c": "p", "i": i}, skip_if_exists=True)
        taken.add(("p", i))
    n = 12 - len(taken)
    found = answer("--storage", own, *GRIDS, "--study", "new", "-n", n, "--sampler", "meta-tpe")
    suggested = {(each["params"]["c"], each["params"]["i"]) for each in found["configurations"]}
    assert len(suggested) == n
    assert not suggested & taken


def test_a_branch_that_only_the_past_has_reached_is_complete(own: str) -> None:
    study = optuna.create_study(study_name="new", storage=own, directions=DIRECTIONS)
    study.set_metric_names(NAMES)
    study.enqueue_trial({"optimizer": "adam"})
    study.optimize(train, n_trials=1)
    arguments = ("--storage", own, *RESNETS, "--study", "new", "-n", 6, "--seed", 0)
    found = answer(*arguments)["configurations"]
    by_sgd = [each["params"] for each in found if each["params"]["optimizer"] == "sgd"]
    assert by_sgd
    assert all("momentum" in params for params in by_sgd)


def test_without_past_studies_a_study_goes_on_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    past_study(n=12, name="alone", storage=url, space=GRID)
    found = answer("--storage", url, "--study", "alone", "-n", 2)
    assert found["past"] == []
    assert [each["reason"] for each in found["configurations"]] == ["no_past"] * 2


def test_the_table_and_the_csv_of_the_next_configurations_have_the_reason(url: str) -> None:
    arguments = ("suggest", "--storage", url, *GRIDS, "--study", "fresh", "-n", 2, "--seed", 0)
    out = metatpe(*arguments).out
    assert "The next 2 configurations of fresh" in out
    assert "portfolio of grid" in out
    rows = list(csv.DictReader(io.StringIO(metatpe(*arguments, "--csv", "-").out)))
    assert [*rows[0]] == ["number", "params_c", "params_f", "params_i", "chosen"]
    assert rows[0]["chosen"].startswith("portfolio of grid")


# Errors


def test_what_cannot_help_a_study_is_said(url: str) -> None:
    err = metatpe("suggest", "--storage", url, "--study", "running", "-n", 1).err
    assert "left out: grid a: it has 1 objective, but the new study has 2." in err
    assert "left out: 1 more" not in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--from", "resnet-81"], "no study is called 'resnet-81'; similar names are ["),
        (
            ["--from", "short"],
            "the past study cannot be used; 'short' is left out because it has 1 finished trial "
            "with a parameter.",
        ),
        (
            ["--from", "fresh", "--from", "short", "--ranges"],
            "none of the 2 past studies can be used; 'fresh' is left out because it has 0 ",
        ),
        (
            ["--from", "grid *", "--from", "running"],
            "the past studies have 1 (such as 'grid a') and 2 (such as 'running') objectives; "
            "choose those that agree with --from.",
        ),
        (
            ["--from", "grid *", "--study", "square"],
            "none of the 2 past studies can be used; 'grid a' is left out because it has no "
            "parameter in common with the new study.",
        ),
        (
            ["--from", "resnet-*", "--enqueue", "fresh"],
            "none of the 2 past studies can be used; 'resnet-18' is left out because it has 2 "
            "objectives, but the new study has 1.",
        ),
        (["--study", "runing"], "no study is called 'runing'; similar names are ['running']."),
        (["--from", "grid *", "--ranges", "--mass", "1.5"], "the mass must be more than 0 and at"),
        (
            ["--study", "running", "--ranges"],
            "--study cannot be combined with --ranges or --enqueue",
        ),
        (["--ranges", "--csv", "-"], "--ranges cannot be combined with --enqueue or --csv"),
        (["--csv", "-", "--json"], "--json and --csv - both print; choose one of them."),
        (["--csv", "/no/such/folder/x.csv"], "there is no folder /no/such/folder."),
        (["--default", "depth"], "--default 'depth' is not NAME=VALUE."),
    ],
)
def test_bad_input_is_refused_with_a_sentence(
    url: str, arguments: list[str], sentence: str
) -> None:
    assert refusal("suggest", "--storage", url, *arguments).startswith(sentence)


def test_a_study_of_unknown_parameters_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    optuna.create_study(study_name="new", storage=url)
    sentence = refusal("suggest", "--storage", url, "--study", "new")
    assert sentence.startswith("the parameters of study 'new' are not known: ")
    assert refusal("suggest", "--storage", url, "--enqueue", "new") == "there is no past study."


def test_past_studies_of_different_directions_cannot_create_a_study(own: str) -> None:
    past_study(n=5, name="reversed", storage=own, space=GRID, directions=["maximize"])
    arguments = ("suggest", "--storage", own, "--from", "grid a", "--from", "reversed")
    sentence = refusal(*arguments, "--enqueue", "new")
    assert sentence.startswith("the past studies have the directions ['")
    assert "create the study 'new' with those" in sentence
    assert "new" not in optuna.get_all_study_names(own)
    optuna.create_study(study_name="new", storage=own, directions=["maximize"])
    assert metatpe(*arguments, "--enqueue", "new", "--k", 1).code == 0


def test_a_storage_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    missing = tmp_path / "studies.db"
    arguments = ("suggest", "--storage", f"sqlite:///{missing}", "--enqueue", "new")
    assert refusal(*arguments) == f"there is no file {missing}."
    assert not missing.exists()
