"""Storages that go away for a while: every call is repeated until it succeeds or time is up.

What passes by itself is a server that restarts, a gRPC proxy that is gone, a locked SQLite file, a
shared disk that does not answer. All other errors are raised at once.

A call whose answer was lost may have been carried out. Attributes, parameters and intermediate
values can be written twice. A new trial carries an attribute of the call that made it, and a
second attempt looks for that attribute first; a state that the trial already has is not set again.
"""

from __future__ import annotations

import copy
import time
import uuid
from collections.abc import Callable, Container, Sequence
from typing import Any, TypeVar

from optuna.distributions import BaseDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from metatpe.past.read.storage import StorageError, open_storage, plain_errors
from metatpe.study.access import trial_id
from metatpe.tuning.owner import Owner, claim, owners_of

DEFAULT_PATIENCE = 300.0  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0  # seconds between two attempts
_CALL = "metatpe:call"  # a system attribute: which call made this trial
_SQL = {
    "DisconnectionError",
    "InterfaceError",
    "InternalError",
    "OperationalError",
    "PendingRollbackError",  # the connection broke in the middle of a transaction
    "TimeoutError",
}
# Codes of gRPC that another attempt would get again. UNKNOWN is not one of them: it is what the
# proxy answers while its own database is down.
_FINAL = {
    "ALREADY_EXISTS",
    "FAILED_PRECONDITION",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "OUT_OF_RANGE",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
    "UNIMPLEMENTED",
}

T = TypeVar("T")


def is_passing(error: BaseException) -> bool:
    """Return whether an error of a storage may be gone a moment later."""
    # By name: importing SQLAlchemy and gRPC only to ask takes as long as importing Optuna.
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__}
    if kinds & {("sqlalchemy", name) for name in _SQL}:
        return "no such table" not in str(error)  # SQLite's word for a database that was replaced
    if ("grpc", "RpcError") in kinds:
        code = getattr(error, "code", None)
        return not callable(code) or code().name not in _FINAL
    if isinstance(error, StorageError | OSError):
        return True
    if isinstance(error, RuntimeError) and "did not possess lock" in str(error):
        return True  # of a journal: the process was stopped for longer than a lock lives
    return error.__cause__ is not None and is_passing(error.__cause__)


class Patience:
    """Repeats calls of a storage that fail for a reason that passes.

    Args:
        seconds: How long one call is repeated.
        waiting: Called with the reason when an outage begins.
        back: Called when it is over.
    """

    def __init__(
        self, seconds: float, waiting: Callable[[str], None], back: Callable[[], None]
    ) -> None:
        self.seconds = seconds
        self._waiting = waiting
        self._back = back

    def insist(
        self, storage: str, call: Callable[[], T], again: Callable[[], T] | None = None
    ) -> T:
        """Return what a call returns, at last.

        Args:
            storage: The name of the storage.
            call: The first attempt.
            again: All others; the same if there is none.

        Raises:
            StorageError: It failed for longer than `seconds`.
        """
        pause = _FIRST_PAUSE
        began: float | None = None
        while True:
            try:
                result = call() if began is None or again is None else again()
            except Exception as error:
                if not is_passing(error):
                    raise
                sentence = _sentence(storage, error)
                is_new, began = began is None, began or time.monotonic()
                if time.monotonic() - began + pause > self.seconds:
                    raise StorageError(sentence) from None
                if is_new:
                    self._waiting(sentence)
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                if began is not None:
                    self._back()
                return result


def _sentence(storage: str, error: Exception) -> str:
    try:
        with plain_errors(storage):
            raise error
    except StorageError as plain:
        return str(plain)


def _patient(name: str) -> Callable[..., Any]:
    """Return a method that calls that of the storage behind, with patience."""

    def method(self: PatientStorage, *args: Any, **kwargs: Any) -> Any:
        return self.insist(lambda: getattr(self.behind, name)(*args, **kwargs))

    return method


class PatientStorage(BaseStorage):
    """A storage in front of another one that may be away for a while.

    Args:
        name: The name of the storage, as `open_storage` takes it.
        patience: How long calls are repeated.
        owner: Who evaluates the trials that are asked for here; written to them when they begin.
        create: Whether a file or tables that do not exist are made.
    """

    def __init__(
        self, name: str, patience: Patience, owner: Owner | None = None, *, create: bool = False
    ) -> None:
        self._name = name
        self._patience = patience
        self._owner = owner
        self._is_away = False
        self._read: int | None = None  # the id of the study whose trials were read last
        self.behind = patience.insist(name, lambda: open_storage(name, create=create))

    def insist(self, call: Callable[[], T], again: Callable[[], T] | None = None) -> T:
        """Return what a call of the storage returns, with patience."""
        # One that has fallen silent is asked whether it is there before the next call: a call
        # would wait for its deadline, one after the other when a run ends.
        first = self._reconnected(call) if self._is_away else call
        try:
            found = self._patience.insist(self._name, first, self._reconnected(again or call))
        except StorageError:
            self._is_away = True
            raise
        self._is_away = False
        return found

    def _reconnected(self, call: Callable[[], T]) -> Callable[[], T]:
        def connect_and_call() -> T:
            if self._name.startswith("grpc://"):
                # A channel that has failed waits longer and longer before it connects again.
                self.behind = open_storage(self._name)
            self.behind.remove_session()
            return call()

        return connect_and_call

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        key = uuid.uuid4().hex
        template = copy.copy(template_trial) or create_trial(state=TrialState.RUNNING)
        template.system_attrs = {**template.system_attrs, _CALL: key}
        if template.state == TrialState.RUNNING and self._owner is not None:
            template.system_attrs |= claim(self._owner)

        def create() -> int:
            return self.behind.create_new_trial(study_id, template)

        def find_or_create() -> int:
            trials = self.behind.get_all_trials(study_id, deepcopy=False)
            found = [trial_id(t) for t in trials if t.system_attrs.get(_CALL) == key]
            return found[0] if found else create()

        return self.insist(create, find_or_create)

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        begins = state == TrialState.RUNNING and self._owner is not None
        if begins and not self._claim(trial_id):
            return False

        def set_state() -> bool:
            return self.behind.set_trial_state_values(trial_id, state, values)

        def check_or_set() -> bool:
            trial = self.behind.get_trial(trial_id)
            if state == TrialState.RUNNING:
                is_done = trial.state == state and owners_of(trial) == [self._owner]
            else:
                is_done = trial.state == state and list(values or []) == list(trial.values or [])
            return is_done or set_state()

        return self.insist(set_state, check_or_set)

    def _claim(self, trial_id: int) -> bool:
        """Write who will evaluate an enqueued trial, before others can see that it runs."""
        assert self._owner is not None
        if self.get_trial(trial_id).state != TrialState.WAITING:
            return False
        try:
            for key, value in claim(self._owner).items():
                self.set_trial_system_attr(trial_id, key, value)
        except UpdateFinishedTrialError:
            return False
        return True

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        self._read = study_id
        return self.insist(lambda: self.behind.get_all_trials(study_id, deepcopy, states))

    def set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
    ) -> None:
        def set_param() -> None:
            self.behind.set_trial_param(trial_id, param_name, param_value_internal, distribution)

        try:
            self.insist(set_param)
        except KeyError:
            # Optuna's cache takes parameters only of trials that it has made or read. The one of
            # a proxy that was restarted has read none.
            if self._read is None:
                raise
            self.get_all_trials(self._read, deepcopy=False)
            self.insist(set_param)

    create_new_study = _patient("create_new_study")
    delete_study = _patient("delete_study")
    set_study_user_attr = _patient("set_study_user_attr")
    set_study_system_attr = _patient("set_study_system_attr")
    get_study_id_from_name = _patient("get_study_id_from_name")
    get_study_name_from_id = _patient("get_study_name_from_id")
    get_study_directions = _patient("get_study_directions")
    get_study_user_attrs = _patient("get_study_user_attrs")
    get_study_system_attrs = _patient("get_study_system_attrs")
    get_all_studies = _patient("get_all_studies")
    get_trial_id_from_study_id_trial_number = _patient("get_trial_id_from_study_id_trial_number")
    set_trial_intermediate_value = _patient("set_trial_intermediate_value")
    set_trial_user_attr = _patient("set_trial_user_attr")
    set_trial_system_attr = _patient("set_trial_system_attr")
    get_trial = _patient("get_trial")
    get_n_trials = _patient("get_n_trials")
    get_best_trial = _patient("get_best_trial")
    get_trial_number_from_id = _patient("get_trial_number_from_id")
    get_trial_param = _patient("get_trial_param")
    remove_session = _patient("remove_session")
