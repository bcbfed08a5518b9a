"""The work of `metatpe tune`: one study, tuned by several processes of this machine.

The parent knows the study and tells workers when to ask for their next trial, one at a time, so
that no two of them are suggested the same; a worker asks, evaluates and tells (see `worker`).

Nothing is written before an objective was imported. When it is stopped, the parent ends the
workers, marks what they were evaluating as failed, and enqueues those configurations again: the
study goes on with them. A worker that dies costs the trial that it was evaluating.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from metatpe.past.read.storage import StorageError, open_storage, plain_errors, study_errors
from metatpe.past.read.summary import Objectives
from metatpe.past.task import Task
from metatpe.samplers.meta_tpe import MetaTPESampler
from metatpe.samplers.transfer import TransferSampler
from metatpe.tuning.objective import Command, Function, ending
from metatpe.tuning.past import complete_objectives, load_past
from metatpe.tuning.worker import ERROR, Asked, Broken, Finished, Idle, Open, Ready, Remark, work
from metatpe.words import counted

SamplerName = Literal["meta-tpe", "transfer"]
SAMPLERS: dict[SamplerName, type[MetaTPESampler] | type[TransferSampler]] = {
    "meta-tpe": MetaTPESampler,
    "transfer": TransferSampler,
}
STOPPED = "metatpe:stopped"  # a user attribute
_SECONDS = 10.0  # that a worker has to end after it was told to


@dataclass(frozen=True)
class Tuning:
    """What is to be tuned, and for how long."""

    objective: Function | Command
    storage: str
    study: str
    sampler: SamplerName = "meta-tpe"
    past: tuple[str, ...] = ()  # names or patterns of past studies
    directions: tuple[str, ...] = ()  # none: those of the study, of past studies, or minimize
    names: tuple[str, ...] = ()  # of the objectives
    n_trials: int = 100  # that the study is to have, those of earlier runs among them
    n_jobs: int = 1
    timeout: float | None = None  # seconds after which no trial is begun
    seed: int | None = None
    defaults: dict[str, Any] = field(default_factory=dict)
    logs: Path | None = None  # a folder for what the evaluations print


class Tuner:
    """Tunes one study; calls `finished` and `remark` while it does.

    Args:
        tuning: What is to be done.
        finished: Called with each trial that has ended.
        remark: Called with each warning of the sampler, once.
    """

    def __init__(
        self,
        tuning: Tuning,
        finished: Callable[[FrozenTrial, Study], None],
        remark: Callable[[str], None],
    ) -> None:
        self._tuning = tuning
        self._finished = finished
        self._remark = remark
        self._remarks: set[str] = set()
        self._workers: list[_Worker] = []
        self._asking: _Worker | None = None
        self.is_stopped = False
        known = self._known_study()
        if known is None and tuning.past:
            self._tuning = _like_the_past(tuning)
        self._sampler = self._make_sampler(known)

    def _known_study(self) -> Study | None:
        """Return the study if it is there, and nothing speaks against going on with it."""
        tuning = self._tuning
        try:
            storage = open_storage(tuning.storage)
        except StorageError:
            if tuning.past:
                raise
            return None  # it is made, or found to be unusable, when the objective was imported
        with plain_errors(tuning.storage):
            if tuning.study not in optuna.get_all_study_names(storage):
                return None
            study = optuna.load_study(study_name=tuning.study, storage=storage)
            _check_same(study, tuning)
            return study

    def _make_sampler(self, known: Study | None) -> BaseSampler:
        tuning = self._tuning
        like = known or _open_study(tuning, None, None)
        space = tuning.objective.space
        sources: list[Task] = []
        self.left_out: list[str] = []  # a sentence per past study that is not used
        if tuning.past:
            opened = open_storage(tuning.storage)
            past = load_past(opened, tuning.past, like, space, tuning.defaults)
            sources, self.left_out = past
        self.sources = [task.name for task in sources]
        self.objectives = Objectives(
            tuple(direction.name.lower() for direction in like.directions),
            tuple(like.metric_names or ()),
        )
        return SAMPLERS[tuning.sampler](sources, search_space=space, seed=tuning.seed)

    def run(self) -> Study:
        """Tune the study until it has its trials, the time is over, or Ctrl-C; return it.

        Raises:
            ValueError: The objective does not import, or the storage or the study is gone.
        """
        # The signal to terminate is taken as Ctrl-C.
        terminating = _handling(signal.SIGTERM, signal.default_int_handler)
        with tempfile.TemporaryDirectory() as folder, terminating:
            try:
                self._workers.append(_Worker(self._tuning.objective))
                self._workers[0].wait_until_ready()
                with plain_errors(self._tuning.storage):
                    storage = open_storage(self._tuning.storage, create=True)
                    study = _open_study(self._tuning, storage, self._sampler)
            except BaseException:
                self._end_workers()
                raise
            with study_errors(self._tuning.storage, self._tuning.study, doing="tuned"):
                self._run(study, self._tuning.logs or Path(folder))
        return study

    def _run(self, study: Study, folder: Path) -> None:
        tuning = self._tuning
        folder.mkdir(parents=True, exist_ok=True)
        given = Open(
            tuning.storage, tuning.study, self._sampler, tuple(study.metric_names or ()), folder
        )
        self._workers[0].connection.send(given)
        until = None if tuning.timeout is None else time.monotonic() + tuning.timeout
        try:
            for _ in range(min(tuning.n_jobs, self._n_left(study)) - 1):
                self._workers.append(_Worker(tuning.objective))
            while self._workers:
                self._let_one_ask(study, until)
                ready = wait([worker.connection for worker in self._workers])
                for worker in [w for w in self._workers if w.connection in ready]:
                    self._hear(worker, study, given)
        except KeyboardInterrupt:
            self.is_stopped = True
        finally:
            self._end_workers()
            self._give_back(study)

    def _n_left(self, study: Study) -> int:
        """Return how many trials are to be begun, if those that run here come to an end."""
        trials = study.get_trials(deepcopy=False)
        done = sum(t.state.is_finished() and STOPPED not in t.user_attrs for t in trials)
        own = sum(worker.number is not None for worker in self._workers)
        return max(0, self._tuning.n_trials - done - own)

    def _let_one_ask(self, study: Study, until: float | None) -> None:
        """Let an idle worker ask, unless another one does; send all home when all is done."""
        idle = [worker for worker in self._workers if worker.is_idle]
        if not idle or self._asking is not None:
            return
        is_over = until is not None and time.monotonic() > until
        if is_over or not self._n_left(study):
            for worker in idle:
                worker.is_idle = False
                worker.connection.send(False)
            return
        self._asking = idle[0]
        self._asking.is_idle = False
        self._asking.connection.send(True)

    def _hear(self, worker: _Worker, study: Study, given: Open) -> None:
        try:
            message = worker.receive()
        except (EOFError, OSError):
            self._bury(worker, study)
            return
        match message:
            case Broken(text):
                raise StorageError(text)
            case Remark(text) if text not in self._remarks:
                self._remarks.add(text)
                self._remark(text)
            case Ready():
                worker.connection.send(given)
            case Asked():
                self._asking = None
            case Finished(number):
                self._finished(study.get_trials(deepcopy=False)[number], study)
                _check_values(study)

    def _bury(self, worker: _Worker, study: Study) -> None:
        """Take note that a worker is no more, and replace it if it died in an evaluation."""
        self._workers.remove(worker)
        worker.process.join()
        ended = f"the process ended with {ending(worker.process.exitcode)}"
        if self._asking is worker:
            raise ValueError(f"{ended} before its trial began.")
        if worker.number is None:
            return
        self._mark(study, worker.number, ERROR, f"{ended}.")
        self._finished(study.get_trials(deepcopy=False)[worker.number], study)
        self._workers.append(_Worker(self._tuning.objective))

    def _mark(self, study: Study, number: int, key: str, value: Any) -> bool:
        """Fail a trial that nobody evaluates any more; return whether it had not ended anyway."""
        storage = open_storage(self._tuning.storage)
        of_study = storage.get_study_id_from_name(self._tuning.study)
        trial = storage.get_trial_id_from_study_id_trial_number(of_study, number)
        if storage.get_trial(trial).state.is_finished():
            return False
        storage.set_trial_user_attr(trial, key, value)
        study.tell(number, state=TrialState.FAIL)
        return True

    def _end_workers(self) -> None:
        for worker in self._workers:
            worker.process.terminate()
        deadline = time.monotonic() + _SECONDS
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _give_back(self, study: Study) -> None:
        """Fail what was being evaluated, and enqueue it for the next time."""
        for worker in self._workers:
            with contextlib.suppress(EOFError, OSError):
                while worker.connection.poll():
                    worker.receive()
            if worker.number is not None:
                params = study.get_trials(deepcopy=False)[worker.number].params
                if self._mark(study, worker.number, STOPPED, True) and params:
                    study.enqueue_trial(params)


class _Worker:
    """A process that evaluates trials, as the parent sees it."""

    def __init__(self, objective: Function | Command) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.connection, theirs = spawn.Pipe()
        self.process: BaseProcess = spawn.Process(target=work, args=(theirs, objective))
        self.number: int | None = None  # of the trial that it evaluates
        self.is_idle = False
        with _handling(signal.SIGINT, signal.SIG_IGN):  # not for it: the parent ends it
            self.process.start()
        theirs.close()

    def wait_until_ready(self) -> None:
        """Wait until the objective was imported.

        Raises:
            ValueError: It does not import.
        """
        try:
            message = self.connection.recv()
        except EOFError:
            self.process.join()
            raise ValueError(
                f"importing the objective ended the process with {ending(self.process.exitcode)}."
            ) from None
        if isinstance(message, Broken):
            raise ValueError(message.text)

    def receive(self) -> Any:
        """Return its next message, and take note of what it is doing."""
        message = self.connection.recv()
        match message:
            case Idle():
                self.is_idle = True
            case Asked(number):
                self.number = number
            case Finished():
                self.number = None
        return message


@contextlib.contextmanager
def _handling(number: int, handler: Any) -> Iterator[None]:
    """Handle a signal in another way; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def _like_the_past(tuning: Tuning) -> Tuning:
    """Return what is to be tuned, with the objectives of past studies where none were given."""
    given = Objectives(tuning.directions, tuning.names)
    found = complete_objectives(open_storage(tuning.storage), tuning.past, given)
    return replace(tuning, directions=found.directions, names=found.names)


def _open_study(tuning: Tuning, storage: BaseStorage | None, sampler: BaseSampler | None) -> Study:
    """Return the study, made if it is not there; without a storage one in memory."""
    directions = tuning.directions or ["minimize"] * max(1, len(tuning.names))
    study = optuna.create_study(
        study_name=tuning.study,
        storage=storage,
        sampler=sampler,
        directions=[StudyDirection[direction.upper()] for direction in directions],
        load_if_exists=True,
    )
    if tuning.names and not study.metric_names:
        study.set_metric_names(list(tuning.names))
    return study


def _check_values(study: Study) -> None:
    """Stop where every trial so far has returned another number of values than the study has.

    Raises:
        ValueError: They have.
    """
    ended = [t for t in study.get_trials(deepcopy=False) if t.state.is_finished()]
    errors = [trial.user_attrs.get(ERROR, "") for trial in ended]
    if errors and all("number of the values" in error for error in errors):  # Optuna's words
        n = counted(len(study.directions), "objective")
        raise ValueError(
            f"{errors[-1].rstrip('.')}. Study {study.study_name!r} has {n}; give --direction once "
            "per value that the objective returns, and another name with --study."
        )


def _check_same(study: Study, tuning: Tuning) -> None:
    """Refuse to go on with a study that has other objectives."""
    directions = [direction.name.lower() for direction in study.directions]
    if tuning.directions and directions != list(tuning.directions):
        raise ValueError(
            f"study {study.study_name!r} is there, and its directions are {directions}, not "
            f"{list(tuning.directions)}; leave them out to go on with it, or choose another name."
        )
    if tuning.names and len(tuning.names) != len(directions):
        raise ValueError(
            f"study {study.study_name!r} has {counted(len(directions), 'objective')}, but "
            f"{len(tuning.names)} are named."
        )
    if tuning.names and study.metric_names and study.metric_names != list(tuning.names):
        raise ValueError(
            f"study {study.study_name!r} is there, and its objectives are {study.metric_names}, "
            f"not {list(tuning.names)}."
        )
