"""A worker of `metatpe tune`: it asks for trials, evaluates them and tells the results.

worker                       parent
Ready | Broken       ──▶     the objective was imported, or not
                     ◀──     Open: the storage, the study, the sampler and the pruner
Idle                 ──▶
                     ◀──     True for another trial, or False
Asked(number)        ──▶     (the next one may ask)
                     ◀──     True to evaluate it, or False: the study has enough trials
Finished(...)        ──▶
Remark(text)         ──▶     a warning of the sampler
Waiting(text), Back  ──▶     the storage is unavailable, and answers again
Broken(text)         ──▶     the storage or the study is gone; the worker ends
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

import optuna
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import Trial, TrialState

from metatpe.past.read.storage import StorageError, study_errors
from metatpe.study.access import is_enqueued
from metatpe.study.record import MAX_CHARACTERS
from metatpe.text import tolerate_any_text
from metatpe.tuning.objective import (
    Command,
    EvaluationError,
    Function,
    Output,
    check_returned,
)
from metatpe.tuning.outcome import Outcome, forget, keep
from metatpe.tuning.owner import Owner, this_process
from metatpe.tuning.patience import Patience, PatientStorage

ERROR, OUTPUT = "metatpe:error", "metatpe:output"  # user attributes of a failed trial


@dataclass(frozen=True)
class Ready:
    pass


@dataclass(frozen=True)
class Broken:
    text: str


@dataclass(frozen=True)
class Open:
    storage: str
    study: str
    sampler: BaseSampler
    pruner: BasePruner
    names: tuple[str, ...]
    folder: Path
    run: str  # of `metatpe tune`, to which the worker belongs
    patience: float  # seconds that a storage may be away


@dataclass(frozen=True)
class Idle:
    pass


@dataclass(frozen=True)
class Asked:
    number: int


@dataclass(frozen=True)
class Remark:
    text: str


@dataclass(frozen=True)
class Waiting:
    text: str


@dataclass(frozen=True)
class Back:
    pass


@dataclass(frozen=True)
class Finished:
    number: int


class _Forward(logging.Handler):
    """Sends the warnings of the library to the parent."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(logging.WARNING)
        self._connection = connection

    def emit(self, record: logging.LogRecord) -> None:
        self._connection.send(Remark(record.getMessage()))


def _end(*_: object) -> None:
    # A terminal signals the whole group, and then the parent does: once is enough.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(1)


def work(connection: Connection, objective: Function | Command) -> None:
    """Evaluate trials until the parent tells it to stop, or has died."""
    signal.signal(signal.SIGTERM, _end)
    try:
        _work(connection, objective)
    finally:
        # Nothing is left to clean up, and an exception while Python shuts down is printed.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _work(connection: Connection, objective: Function | Command) -> None:
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # what an objective prints when it is imported is not our own output
    tolerate_any_text()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logger = logging.getLogger("metatpe")
    logger.propagate = False
    logger.addHandler(_Forward(connection))
    with contextlib.suppress(EOFError, BrokenPipeError):
        try:
            objective.load()
            connection.send(Ready())
            _serve(connection, objective, connection.recv())
        except ValueError as error:
            connection.send(Broken(str(error)))


def _serve(connection: Connection, objective: Function | Command, given: Open) -> None:
    owner = this_process(given.run)

    def send(message: Waiting | Back) -> None:
        with contextlib.suppress(OSError):  # without a parent the result is stored all the same
            connection.send(message)

    patience = Patience(given.patience, lambda text: send(Waiting(text)), lambda: send(Back()))
    with study_errors(given.storage, given.study, doing="tuned"):
        storage = PatientStorage(given.storage, patience, owner)
        study = optuna.load_study(
            study_name=given.study, storage=storage, sampler=given.sampler, pruner=given.pruner
        )
    while True:
        connection.send(Idle())
        if not connection.recv():
            return
        with study_errors(given.storage, given.study, doing="tuned"):
            trial = study.ask()
            _choose(trial)
        connection.send(Asked(trial.number))
        if not connection.recv():
            continue
        output = Output(*(given.folder / f"{trial.number}.{end}" for end in ("out", "err")))
        with study_errors(given.storage, given.study, doing="tuned"):
            outcome = _evaluate(trial, objective, output, given, owner)
            _store(study, outcome, output)
        connection.send(Finished(trial.number))


def _choose(trial: Trial) -> None:
    """Choose the configuration while it is this worker's turn, so that the next one knows it.

    Optuna itself waits until the objective asks for a parameter.
    """
    if not is_enqueued(trial.study.get_trials(deepcopy=False)[trial.number]):
        _ = trial.relative_params


def _evaluate(
    trial: Trial, objective: Function | Command, output: Output, given: Open, owner: Owner
) -> Outcome:
    """Evaluate a trial; return how that ended."""
    begun = Outcome(given.study, trial.number, owner, TrialState.COMPLETE.name)
    try:
        values = objective.evaluate(trial, output, given.names or None)
        check_returned(values)
        return replace(begun, values=values)
    except optuna.TrialPruned:
        return replace(begun, state=TrialState.PRUNED.name)
    except StorageError:
        raise  # of a parameter or a report: there is no result, and nowhere to say so
    except EvaluationError as failure:
        return _failed(begun, output, str(failure))
    except Exception as error:
        return _failed(begun, output, f"{type(error).__name__}: {error}")


def _failed(outcome: Outcome, output: Output, error: str) -> Outcome:
    first_line = (error.strip().splitlines() or [""])[0]
    attributes = {ERROR: first_line[: MAX_CHARACTERS // 8], OUTPUT: output.tail(MAX_CHARACTERS)}
    return replace(outcome, state=TrialState.FAIL.name, values=None, attributes=attributes)


def _store(study: Study, outcome: Outcome, output: Output) -> None:
    """Tell an outcome; it is in a file until the storage has it.

    Raises:
        StorageError: The storage was away for too long; the message says where the file is.
    """
    kept = keep(outcome)
    try:
        outcome.store(study)
    except StorageError as error:
        where = f" The result of trial {outcome.number} is in {kept}, for the next run to store."
        raise StorageError(f"{error}{where if kept else ''}") from None
    except (ValueError, TypeError) as error:  # the study does not take these values
        _store(study, _failed(outcome, output, str(error)), output)
    except KeyError:  # the study was deleted
        forget(kept)
        raise
    forget(kept)
