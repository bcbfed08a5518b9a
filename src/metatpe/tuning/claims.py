"""Which trials count, which have lost their worker, and whose turn it is to begin one.

Several runs of `metatpe tune` may share a study. Together they begin as many trials as the study
is to have: on one machine a file lock lets one of them count and begin at a time; of runs on
several machines, the trial that turns out to be one too many is withdrawn before its evaluation.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from metatpe.past.read.storage import StorageError
from metatpe.study.access import (
    fixed_params,
    is_enqueued,
    set_system_attributes,
    set_user_attributes,
)
from metatpe.tuning.owner import ALIVE, is_abandoned, owners_of

STOPPED = "metatpe:stopped"  # a user attribute of a trial that was not evaluated to its end


def is_done(trial: FrozenTrial) -> bool:
    """Return whether a trial has ended and counts; one that was stopped does not."""
    return trial.state.is_finished() and STOPPED not in trial.user_attrs


def trials_that_count(
    trials: Sequence[FrozenTrial], run: str, own: Collection[int]
) -> list[FrozenTrial]:
    """Return the trials that have ended or will, those of other runs among them.

    Args:
        trials: All trials of the study.
        run: This run.
        own: The numbers of the trials that workers of this run evaluate.
    """

    def is_running(trial: FrozenTrial) -> bool:
        owners = owners_of(trial)
        if trial.number in own or not owners:
            return trial.number in own
        return all(owner.run != run for owner in owners) and not is_abandoned(trial)

    is_begun = (t.state == TrialState.RUNNING and is_running(t) for t in trials)
    return [t for t, begun in zip(trials, is_begun, strict=True) if begun or is_done(t)]


def is_surplus(number: int, begun: Sequence[FrozenTrial], n_trials: int) -> bool:
    """Return whether a trial that has just begun is one too many.

    Of trials that begin at the same time the one with the smaller number stays. An enqueued trial
    had its number before it began, so that it gives way to all others.
    """
    before = sum(trial.number < number for trial in begun)
    was_enqueued = any(trial.number == number and is_enqueued(trial) for trial in begun)
    return before >= n_trials or (was_enqueued and len(begun) > n_trials)


def abandoned(study: Study, run: str) -> list[FrozenTrial]:
    """Return the running trials of other runs whose workers are gone."""
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return [t for t in running if is_abandoned(t) and all(o.run != run for o in owners_of(t))]


def unfinished(study: Study, run: str) -> list[FrozenTrial]:
    """Return the trials of a run that are not finished; without workers, they never will be."""
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return [t for t in running if any(owner.run == run for owner in owners_of(t))]


def give_sign_of_life(study: Study, run: str) -> None:
    """Tell runs on other machines that the trials of a run are being evaluated."""
    for trial in unfinished(study, run):
        with contextlib.suppress(UpdateFinishedTrialError):
            set_system_attributes(study, trial, {ALIVE: time.time()})


def end(
    study: Study,
    trial: FrozenTrial,
    state: TrialState,
    values: Any = None,
    attributes: Mapping[str, Any] | None = None,
) -> bool:
    """End a trial that runs, with user attributes; return whether it had not ended before.

    Raises:
        ValueError: The study does not take these values.
        StorageError: The storage is unavailable for too long.
    """
    if trial.state.is_finished():
        return False
    try:
        set_user_attributes(study, trial, attributes or {})
        study.tell(trial.number, values, state=state)
    except StorageError:
        raise
    except (UpdateFinishedTrialError, ValueError):
        if study.get_trials(deepcopy=False)[trial.number].state.is_finished():
            return False
        raise
    return True


def withdraw(study: Study, trial: FrozenTrial) -> bool:
    """Fail a trial that nobody evaluates and enqueue its configuration; it does not count.

    Returns:
        Whether it had not ended before; otherwise somebody else has done the same.
    """
    if not end(study, trial, TrialState.FAIL, attributes={STOPPED: True}):
        return False
    params = {**fixed_params(trial), **trial.params}
    if params:
        study.enqueue_trial(params)
    return True


class Turn:
    """The right to begin a trial of a study, which one run on this machine has at a time.

    Args:
        storage: The name of the storage.
        study: The name of the study.
    """

    def __init__(self, storage: str, study: str) -> None:
        where = storage if "://" in storage else str(Path(storage).resolve())
        key = hashlib.sha256(f"{where}\n{study}".encode("utf-8", "surrogatepass")).hexdigest()
        self._path = Path(tempfile.gettempdir()) / f"metatpe-{key[:24]}.lock"
        self._file: IO[str] | None = None

    def take(self) -> bool:
        """Return whether it is this run's turn; the turn lasts until it is given back."""
        if self._file is not None:
            return True
        try:
            import fcntl
        except ImportError:
            return True  # Windows: surplus trials are withdrawn
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            file = os.fdopen(os.open(self._path, flags, 0o666), "r+")
        except OSError:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._file = file
        return True

    def give_back(self) -> None:
        """Let other runs begin a trial."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
