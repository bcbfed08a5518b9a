"""A worker of `metatpe tune`: it asks for trials, evaluates them and tells the results.

worker                       parent
Ready | Broken       ──▶     the objective was imported, or not
                     ◀──     Open: the storage, the study and the sampler
Idle                 ──▶
                     ◀──     True for another trial, or False
Asked(number)        ──▶     (the next one may ask)
Finished(...)        ──▶
Remark(text)         ──▶     a warning of the sampler
Broken(text)         ──▶     the storage or the study is gone
"""

from __future__ import annotations

import contextlib
import logging
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import optuna
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import Trial, TrialState

from metatpe.past.read.storage import open_storage, study_errors
from metatpe.study.record import MAX_CHARACTERS
from metatpe.tuning.objective import Command, EvaluationError, Function, Output

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
    names: tuple[str, ...]
    folder: Path


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
    raise SystemExit(1)


def work(connection: Connection, objective: Function | Command) -> None:
    """Evaluate trials until the parent tells it to stop, or has died."""
    signal.signal(signal.SIGTERM, _end)
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
    with study_errors(given.storage, given.study, doing="tuned"):
        storage = open_storage(given.storage)
        study = optuna.load_study(study_name=given.study, storage=storage, sampler=given.sampler)
    while True:
        connection.send(Idle())
        if not connection.recv():
            return
        with study_errors(given.storage, given.study, doing="tuned"):
            trial = study.ask()
        connection.send(Asked(trial.number))
        output = Output(*(given.folder / f"{trial.number}.{end}" for end in ("out", "err")))
        with study_errors(given.storage, given.study, doing="tuned"):
            _evaluate(study, trial, objective, output, given.names)
        connection.send(Finished(trial.number))


def _evaluate(
    study: Study,
    trial: Trial,
    objective: Function | Command,
    output: Output,
    names: tuple[str, ...],
) -> None:
    """Evaluate and tell a trial."""
    try:
        values = objective.evaluate(trial, output, names or None)
    except optuna.TrialPruned:
        study.tell(trial, state=TrialState.PRUNED)
    except EvaluationError as failure:
        _fail(study, trial, output, str(failure))
    except Exception as error:
        _fail(study, trial, output, f"{type(error).__name__}: {error}")
    else:
        try:
            study.tell(trial, values, state=TrialState.COMPLETE)
        except (ValueError, TypeError) as error:
            _fail(study, trial, output, str(error))


def _fail(study: Study, trial: Trial, output: Output, error: str) -> None:
    first_line = (error.strip().splitlines() or [""])[0]
    trial.set_user_attr(ERROR, first_line[: MAX_CHARACTERS // 8])
    trial.set_user_attr(OUTPUT, output.tail(MAX_CHARACTERS))
    study.tell(trial, state=TrialState.FAIL)
