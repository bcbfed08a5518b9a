"""What samplers rely on in Optuna although Optuna does not promise it."""

from __future__ import annotations

import weakref
from typing import Any

import optuna
import pytest
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage
from studies import SQUARE, evaluate

storages = pytest.mark.parametrize(
    "storage",
    [InMemoryStorage(), RDBStorage("sqlite:///:memory:")],
    ids=["in memory", "relational"],
)


@storages
def test_a_storage_can_be_the_key_of_what_is_remembered_of_it(storage: BaseStorage) -> None:
    study = optuna.create_study(storage=storage)
    remembered = weakref.WeakKeyDictionary({study._storage: "history"})
    assert remembered[study._storage] == "history"


@storages
def test_a_sampler_sees_the_attributes_that_it_has_just_written(storage: BaseStorage) -> None:
    class Writing(optuna.samplers.RandomSampler):
        seen: Any = None

        def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
            study._storage.set_trial_system_attr(trial._trial_id, "metatpe:plan:0", 7)
            return {}

        def sample_independent(self, study: Any, trial: Any, *args: Any) -> Any:
            self.seen = trial.system_attrs.get("metatpe:plan:0")
            return super().sample_independent(study, trial, *args)

    sampler = Writing()
    optuna.create_study(storage=storage, sampler=sampler).ask(SQUARE)
    assert sampler.seen == 7, "PastSampler.sample_independent reads the plan from the trial"


@storages
def test_the_trials_of_a_study_are_sorted_by_number(storage: BaseStorage) -> None:
    study = optuna.create_study(storage=storage)
    evaluate(study, 12, space={}, losses=lambda _: [0.0])
    numbers = [t.number for t in study.get_trials(deepcopy=False)]
    assert numbers == list(range(12)), "study.history takes a trial's position for its number"
