"""What metatpe uses of Optuna beyond its documented interface. No other module does.

Each function has a test that fails on the day Optuna moves what it uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.storages import BaseStorage, get_storage
from optuna.study import Study
from optuna.trial import FrozenTrial

_FIXED = "fixed_params"  # the system attribute in which `enqueue_trial` keeps parameters


def storage_of(study: Study) -> BaseStorage:
    """Return the storage that a study lives in."""
    return study._storage


def study_id(study: Study) -> int:
    """Return the number of a study in its storage."""
    return study._study_id


def trial_id(trial: FrozenTrial) -> int:
    """Return the number of a trial in its storage."""
    return trial._trial_id


def as_storage(storage: BaseStorage) -> BaseStorage:
    """Return a storage as studies use it: a relational one with a cache in front of it."""
    return get_storage(storage)


def all_trials(study: Study) -> list[FrozenTrial]:
    """Return all trials, also those that Hyperband hides from the trials of another bracket."""
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


def set_system_attributes(study: Study, trial: FrozenTrial, values: Mapping[str, Any]) -> None:
    """Write system attributes of a trial, which `Trial` itself does not offer."""
    for key, value in values.items():
        study._storage.set_trial_system_attr(trial._trial_id, key, value)


def set_user_attributes(study: Study, trial: FrozenTrial, values: Mapping[str, Any]) -> None:
    """Write user attributes of a trial that a sampler sees as a `FrozenTrial`."""
    for key, value in values.items():
        study._storage.set_trial_user_attr(trial._trial_id, key, value)


def fixed_params(trial: FrozenTrial) -> dict[str, Any]:
    """Return the parameters that were enqueued with a trial."""
    return dict(trial.system_attrs.get(_FIXED, {}))


def is_enqueued(trial: FrozenTrial) -> bool:
    """Return whether a trial was enqueued by hand."""
    return _FIXED in trial.system_attrs
