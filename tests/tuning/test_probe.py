"""The parameters of an objective, found by calling it in a process of its own."""

from pathlib import Path

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from metatpe.tuning.objective import Function
from metatpe.tuning.probe import parameters_of

OBJECTIVES = """
import os, sys, time
print("imported")
def branches(trial):
    print("called", file=sys.stderr)
    trial.suggest_int("fixed", 3, 3)
    if trial.suggest_categorical("model", ["tree", "net"]) == "net":
        return trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    return trial.suggest_int("depth", 1, 8), 0.0
def slow(trial):
    trial.suggest_float("lr", 0, 1)
    time.sleep(1000)
def fails(trial):
    trial.suggest_float("lr", 0, 1)
    raise RuntimeError("no GPU")
def nothing(trial):
    raise RuntimeError("no data")
def waits(trial):
    time.sleep(1000)
def dies(trial):
    os._exit(3)
"""


@pytest.fixture
def train(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(OBJECTIVES)
    return str(path)


def test_all_branches_of_a_fast_objective_are_seen(
    train: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert parameters_of(Function(train, "branches")) == {
        "fixed": IntDistribution(3, 3),
        "model": CategoricalDistribution(["tree", "net"]),
        "lr": FloatDistribution(1e-5, 1e-1, log=True),
        "depth": IntDistribution(1, 8),
    }
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["slow", "fails"])
def test_an_objective_need_not_finish(train: str, name: str) -> None:
    assert parameters_of(Function(train, name), 0.5) == {"lr": FloatDistribution(0, 1)}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nothing", ":nothing asked for no parameter: RuntimeError: no data."),
        ("waits", ":waits asked for no parameter: it did not within 0.5 s."),
        ("dies", ":dies asked for no parameter: it did not within 0.5 s."),
        ("missing", "has no function 'missing'."),
    ],
)
def test_an_objective_without_parameters_is_refused(train: str, name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        parameters_of(Function(train, name), 0.5)
    assert str(error.value).endswith(sentence)
