"""What metatpe uses of Optuna beyond its documented interface. No other module does.

Each function has a test that fails on the day Optuna moves what it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from optuna.storages import BaseStorage, GrpcStorageProxy, get_storage
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


class PunctualProxy(GrpcStorageProxy):
    """A gRPC proxy each of whose calls has a deadline.

    A host that vanishes without a word, or a process that is stopped, answers no call and closes
    no connection; without a deadline the call would never return.
    """

    seconds = 60.0  # also for all trials of a long study

    def _setup(self) -> None:
        super()._setup()
        for name, call in vars(self._stub).items():
            setattr(self._stub, name, partial(self._call, call))

    def _call(self, call: Callable[..., Any], request: Any) -> Any:
        return call(request, timeout=self.seconds)

    def answers(self, seconds: float) -> bool:
        """Return whether the server answers a small question within so many seconds.

        That it is connected does not tell: a new channel shares the connection of an earlier one.
        """
        self.seconds, usual = seconds, self.seconds
        try:
            self.get_study_id_from_name("")
        except KeyError:
            pass  # an answer, too
        except Exception as error:
            code = getattr(error, "code", None)
            if not callable(code) or code().name != "DEADLINE_EXCEEDED":
                raise
            return False
        finally:
            self.seconds = usual
        return True


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
