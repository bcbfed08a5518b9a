"""What is used of Optuna beyond its documented interface: each of it, against a real study.

A test here fails on the day Optuna moves what `study.access` uses. The last one reads the source,
so that no other module uses such a thing.
"""

from __future__ import annotations

import ast
from pathlib import Path

import optuna
import pytest
from optuna.storages import InMemoryStorage, RDBStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial
from studies import ONE, SQUARE, evaluate, new_study, random_sampler

import metatpe
from metatpe.study.access import (
    all_trials,
    as_storage,
    fixed_params,
    is_enqueued,
    set_system_attributes,
    set_user_attributes,
    storage_of,
    study_id,
    trial_id,
)

PACKAGE = Path(metatpe.__file__).parent
PRIVATE = {"_storage", "_study_id", "_stub", "_trial_id", "fixed_params", "get_storage"}


class Peeking(optuna.samplers.RandomSampler):
    """A sampler that remembers the study and the trial that Optuna showed it last."""

    study: Study
    trial: FrozenTrial

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self.study, self.trial = study, trial


def test_a_study_lives_in_the_storage_that_it_was_created_in() -> None:
    storage = InMemoryStorage()
    study = new_study(random_sampler(0), storage=storage, name="new")
    assert storage_of(study) is storage
    assert storage.get_study_name_from_id(study_id(study)) == "new"
    assert study_id(study) != study_id(new_study(random_sampler(0), storage=storage))


def test_a_trial_is_known_to_its_storage_by_its_id() -> None:
    storage = InMemoryStorage()
    new_study(random_sampler(0), storage=storage).ask()
    study = new_study(random_sampler(0), storage=storage)
    study.ask()
    (trial,) = study.trials
    assert storage.get_trial(trial_id(trial)) == trial
    assert trial_id(trial) != trial.number


def test_a_relational_storage_gets_the_cache_that_studies_put_in_front_of_it() -> None:
    plain, memory = RDBStorage("sqlite:///:memory:"), InMemoryStorage()
    cached = as_storage(plain)
    study = optuna.create_study(storage=plain, study_name="new")
    assert type(cached) is type(storage_of(study)) is not RDBStorage
    assert cached.get_study_id_from_name("new") == study_id(study)
    assert as_storage(cached) is cached
    assert as_storage(memory) is memory


def test_all_trials_are_found_behind_hyperband() -> None:
    sampler = Peeking(seed=0)
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=20, reduction_factor=3)
    study = optuna.create_study(sampler=sampler, pruner=pruner, study_name="hyperband")

    def objective(trial: Trial) -> float:
        trial.report(0.5, 1)
        trial.should_prune()
        return trial.suggest_float("x", 0, 1)

    study.optimize(objective, n_trials=12)
    assert len(sampler.study.get_trials()) < 12
    assert [t.number for t in all_trials(sampler.study)] == list(range(12))
    assert [t.params for t in all_trials(study)] == [t.params for t in study.trials]


def test_attributes_of_a_trial_can_be_written_with_what_a_sampler_sees() -> None:
    sampler = Peeking(seed=0)
    study = new_study(sampler, ONE)
    trial = study.ask()
    set_system_attributes(sampler.study, sampler.trial, {"a": 1, "b": {"c": [2.0, None]}})
    set_user_attributes(sampler.study, sampler.trial, {"d": "text", "e": 0})
    (stored,) = study.trials
    assert stored.number == trial.number
    assert {"a": 1, "b": {"c": [2.0, None]}}.items() <= stored.system_attrs.items()
    assert stored.user_attrs == {"d": "text", "e": 0}


@pytest.mark.parametrize("params", [{"x": 0.25}, {"x": 0.25, "other": "text"}, {}])
def test_a_trial_that_was_enqueued_is_known_by_its_parameters(params: dict[str, object]) -> None:
    study = new_study(random_sampler(0), ONE)
    study.enqueue_trial(params)
    evaluate(study, 2, space=SQUARE)
    by_hand, own = study.trials
    assert (is_enqueued(by_hand), fixed_params(by_hand)) == (True, params)
    assert (is_enqueued(own), fixed_params(own)) == (False, {})


def private_names(path: Path) -> set[str]:
    """Return what a module uses of Optuna that Optuna does not promise."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(attr="_storage" | "_study_id" | "_stub" | "_trial_id" as name):
                names.add(name)
            case ast.Attribute(attr="get_storage") | ast.alias(name="get_storage"):
                names.add("get_storage")
            case ast.Constant(value="fixed_params"):
                names.add("fixed_params")
    return names


def test_no_other_module_uses_what_optuna_does_not_promise() -> None:
    used = {
        path.relative_to(PACKAGE).as_posix(): names
        for path in PACKAGE.rglob("*.py")
        if (names := private_names(path))
    }
    assert used == {"study/access.py": PRIVATE}
