"""Choices that compare equal, such as 1 and 1.0, are different configurations."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import Trial

from metatpe import Task
from metatpe.study.record import params_of
from samplers.five import Make, learning


def typed(values: list[Any]) -> list[tuple[str, Any]]:
    return [(type(v).__name__, v) for v in values]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> RDBStorage:
    return RDBStorage(f"sqlite:///{tmp_path_factory.mktemp('studies') / 'studies.db'}")


@learning
@pytest.mark.parametrize("choices", [[1, 1.0, "sqrt"], [0, False, "x"], [True, 1]], ids=str)
def test_every_choice_is_evaluated_once_in_a_finite_space(
    make: Make, choices: list[Any], storage: RDBStorage
) -> None:
    given = []

    def objective(trial: Trial) -> float:
        given.append((trial.suggest_categorical("a", choices), trial.suggest_int("b", 0, 1)))
        return float(len(given) % 3)

    study = optuna.create_study(storage=storage, sampler=make(n_startup_trials=1))
    study.optimize(objective, n_trials=2 * len(choices))
    assert len({(type(a), a, b) for a, b in given}) == 2 * len(choices)
    # Optuna stores the first of equal choices; what the objective got is known all the same.
    assert typed([params_of(t)["a"] for t in study.trials]) == typed([a for a, _ in given])
    past = Task.from_study(study)
    assert typed([c["a"] for c in past.configurations(range(len(past)))]) == typed(
        [a for a, _ in given]
    )


@learning
def test_a_choice_that_is_listed_twice_is_not_new_for_ever(make: Make) -> None:
    study = optuna.create_study(sampler=make(n_startup_trials=1))
    study.optimize(lambda t: float(t.suggest_categorical("a", ["x", "x", "y", "z"]) == "y"), 3)
    assert {t.params["a"] for t in study.trials} == {"x", "y", "z"}


def test_an_enqueued_choice_is_the_one_that_was_enqueued() -> None:
    study = optuna.create_study()
    study.enqueue_trial({"a": 1.0})
    trial = study.ask()
    assert typed([trial.suggest_categorical("a", [1, 1.0])]) == [("float", 1.0)]
    study.tell(trial, 0.0)
    assert typed([params_of(study.trials[0])["a"]]) == [("float", 1.0)]
