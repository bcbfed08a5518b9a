"""The work of `metatpe tune`: one study, tuned by several processes of this machine.

The parent knows the study and tells workers when to ask for their next trial, one at a time, so
that no two of them are suggested the same; a worker asks, evaluates and tells (see `worker`).

Nothing is written before an objective was imported. When it is stopped, the parent ends the
workers, marks what they were evaluating as failed, and enqueues those configurations again: the
study goes on with them. The same is done for what earlier runs left behind, if their processes are
gone. A worker that dies costs the trial that it was evaluating; one that cannot reach the storage
any more ends, and the others go on.
"""

from __future__ import annotations

import contextlib
import signal
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path

import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from metatpe.past.read.storage import StorageError, open_storage, plain_errors, study_errors
from metatpe.study.trials import curve_of
from metatpe.tuning.claims import (
    Turn,
    end,
    give_sign_of_life,
    is_surplus,
    trials_that_count,
    withdraw,
)
from metatpe.tuning.hope import FirstTrials, HopelessError
from metatpe.tuning.objective import Command
from metatpe.tuning.outcome import restore
from metatpe.tuning.owner import SIGN_OF_LIFE, owners_of
from metatpe.tuning.patience import Patience, PatientStorage
from metatpe.tuning.process import WorkerProcess, end_workers, handling
from metatpe.tuning.recovery import clear, recover, say_stored
from metatpe.tuning.remarks import Remarks
from metatpe.tuning.reports import mismatch
from metatpe.tuning.running import ending
from metatpe.tuning.setup import Tuning, open_study, prepare
from metatpe.tuning.worker import (
    ERROR,
    Asked,
    Back,
    Finished,
    Open,
    Ready,
    Remark,
    Waiting,
)

_N_EARLY_DEATHS = 5  # processes that die one after the other before they have a trial end a run
_SECONDS_TO_STOP = 5.0  # that a storage may be away when a run is stopped
_UNTIL_NEXT_TURN = 0.1  # seconds, while another run begins a trial


class Tuner:
    """Tunes one study; calls `finished` and `remark` while it does.

    Args:
        tuning: What is to be done.
        finished: Called with each trial that has ended.
        remark: Called with each warning of the sampler, once, and with what befalls the storage.
    """

    def __init__(
        self,
        tuning: Tuning,
        finished: Callable[[FrozenTrial, Study], None],
        remark: Callable[[str], None],
    ) -> None:
        self.setup = prepare(tuning)
        self._tuning = self.setup.tuning
        self._finished = finished
        self._remarks = Remarks(remark, tuning.patience)
        self._workers: list[WorkerProcess] = []
        self._asking: WorkerProcess | None = None
        self._turn = Turn(tuning.storage, tuning.study)
        self._id = uuid.uuid4().hex[:12]
        self._patience = Patience(0.0, self._remarks.wait, self._remarks.resume)
        self._trouble: StorageError | None = None  # then no trial is begun any more
        self._n_early_deaths = 0
        self._first_trials = FirstTrials()
        self._is_report_checked = False
        self._next_sign = 0.0
        self.is_stopped = False

    def run(self) -> Study:
        """Tune the study until it has its trials, the time is over, or Ctrl-C; return it.

        Raises:
            ValueError: The objective does not import, or the storage or the study is gone.
            HopelessError: The first trials failed in the same way.
        """
        # The signal to terminate is taken as Ctrl-C.
        terminating = handling(signal.SIGTERM, signal.default_int_handler)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, terminating:
            try:
                self._workers.append(WorkerProcess(self._tuning.objective))
                self._workers[0].wait_until_ready()
                with plain_errors(self._tuning.storage):
                    storage = PatientStorage(self._tuning.storage, self._patience, create=True)
                    study = open_study(self._tuning, storage, self.setup.sampler)
            except BaseException:
                with _undisturbed():
                    end_workers(self._workers)
                raise
            self._patience.seconds = self._tuning.patience
            with study_errors(self._tuning.storage, self._tuning.study, doing="tuned"):
                self._run(study, self._tuning.logs or Path(folder))
        return study

    def _run(self, study: Study, folder: Path) -> None:
        tuning = self._tuning
        folder.mkdir(parents=True, exist_ok=True)
        names = tuple(study.metric_names or ())
        chosen = self.setup.sampler, self.setup.pruner
        of_run = self._id, tuning.patience
        given = Open(tuning.storage, tuning.study, *chosen, names, folder, *of_run)
        self._workers[0].send(given)
        until = None if tuning.timeout is None else time.monotonic() + tuning.timeout
        is_hopeless = False
        try:
            for _ in range(min(tuning.n_jobs, self._n_left(study)) - 1):
                self._workers.append(WorkerProcess(tuning.objective))
            while self._workers:
                self._attempt(partial(self._let_one_ask, study, until))
                for worker in self._wait_for_messages():
                    self._attempt(partial(self._hear, worker, study, given))
        except KeyboardInterrupt:
            self.is_stopped = True
            self._remarks.say("stopping the running trials ...")
        except HopelessError:
            is_hopeless = True
            raise
        finally:
            with _undisturbed():
                end_workers(self._workers)
                self._turn.give_back()
                self._attempt(partial(self._leave, study, is_hopeless=is_hopeless))
        if self._trouble is not None and not self.is_stopped:
            raise self._trouble

    def _attempt(self, step: Callable[[], None]) -> None:
        """Do something that needs the storage; without it, no trial is begun any more."""
        try:
            step()
        except StorageError as error:
            self._trouble = self._trouble or error
            self._patience.seconds = 0.0  # once is enough, while workers end what they do
            if self._asking is None:
                self._turn.give_back()

    def _wait_for_messages(self) -> list[WorkerProcess]:
        is_idle = any(worker.is_idle for worker in self._workers)
        is_blocked = is_idle and self._asking is None  # by another run, whose turn it is
        seconds = _UNTIL_NEXT_TURN if is_blocked else SIGN_OF_LIFE
        ready = wait([worker.connection for worker in self._workers], seconds)
        return [worker for worker in self._workers if worker.connection in ready]

    # Beginning trials

    def _counted(self, study: Study) -> list[FrozenTrial]:
        own = [worker.number for worker in self._workers if worker.number is not None]
        return trials_that_count(study.get_trials(deepcopy=False), self._id, own)

    def _n_left(self, study: Study) -> int:
        """Return how many trials are to be begun, if those that run come to an end."""
        return max(0, self._tuning.n_trials - len(self._counted(study)))

    def _let_one_ask(self, study: Study, until: float | None) -> None:
        """Let an idle worker ask, unless another one does; dismiss all when all is done."""
        if self._trouble is None and time.monotonic() > self._next_sign:
            self._next_sign = time.monotonic() + SIGN_OF_LIFE
            give_sign_of_life(study, self._id)
        idle = [worker for worker in self._workers if worker.is_idle]
        if not idle or self._asking is not None:
            return
        is_over = until is not None and time.monotonic() > until
        if self._trouble is not None or is_over:
            _dismiss(idle)
        elif self._turn.take():
            recover(study, self._id, self._remarks.say)
            if self._n_left(study):
                self._asking = min(idle, key=lambda worker: worker.idle_since)
                self._asking.answer(True)
            else:
                self._turn.give_back()
                _dismiss(idle)

    def _begin(self, worker: WorkerProcess, study: Study) -> None:
        """Let a worker evaluate the trial that it asked for, unless the study has enough."""
        assert worker.number is not None
        self._n_early_deaths = 0
        is_wanted = False
        try:
            begun = self._counted(study)
            is_wanted = not is_surplus(worker.number, begun, self._tuning.n_trials)
            if not is_wanted:
                withdraw(study, study.get_trials(deepcopy=False)[worker.number])
        finally:
            self._end_turn()
            worker.answer(is_wanted)

    def _end_turn(self) -> None:
        self._asking = None
        self._turn.give_back()

    # What workers say

    def _hear(self, worker: WorkerProcess, study: Study, given: Open) -> None:
        try:
            message = worker.receive()
        except EOFError:
            self._bury(worker, study)
            return
        match message:
            case Remark(text):
                self._remarks.once(text)
            case Waiting(text):
                self._remarks.wait(text, worker)
            case Back():
                self._remarks.resume(worker)
            case Ready():
                worker.send(given)
            case Asked():
                self._begin(worker, study)
            case Finished(number):
                self._end_trial(number, study)
                self._check_report(number, study, given.folder)

    def _end_trial(self, number: int, study: Study) -> None:
        """Show a trial that has ended; stop if the first ones fail in the same way."""
        trial = study.get_trials(deepcopy=False)[number]
        self._finished(trial, study)
        if not self._tuning.keep_going:
            self._first_trials.add(trial)

    def _check_report(self, number: int, study: Study, folder: Path) -> None:
        """Say so if the first command that has ended well printed no line as in --report."""
        objective = self._tuning.objective
        if self._is_report_checked or not isinstance(objective, Command) or not objective.report:
            return
        trial = study.get_trials(deepcopy=False)[number]
        if trial.state == TrialState.FAIL:
            return  # it may have ended before the first such line
        self._is_report_checked = True
        if not curve_of(trial, study.directions):
            files = (folder / f"{number}.{end}" for end in ("out", "err"))
            self._remarks.say(mismatch(objective.report, *files))

    def _bury(self, worker: WorkerProcess, study: Study) -> None:
        """Take note that a worker has ended, and replace it if it died."""
        self._workers.remove(worker)
        self._remarks.forget(worker)
        worker.process.join()
        if self._asking is worker:
            self._end_turn()
        if worker.trouble is not None:
            if self._workers or self._trouble is not None:
                self._remarks.once(worker.trouble)
            else:
                self._trouble = StorageError(worker.trouble)
        elif not worker.is_dismissed:
            self._replace(worker, study)

    def _replace(self, dead: WorkerProcess, study: Study) -> None:
        """Start another worker instead of one that died; its trial failed."""
        ended = f"the process ended with {ending(dead.process.exitcode)}"
        self._n_early_deaths += dead.number is None
        if self._n_early_deaths == _N_EARLY_DEATHS:
            raise ValueError(f"{ended} before its trial began.")
        if self._trouble is None:
            self._workers.append(WorkerProcess(self._tuning.objective))
        if dead.number is not None:
            restore(study)  # it may have had its result already
            trial = study.get_trials(deepcopy=False)[dead.number]
            end(study, trial, TrialState.FAIL, attributes={ERROR: f"{ended}."})
            self._end_trial(dead.number, study)
        clear(study, self._id, dead.process.pid)  # it may have asked for a trial, and not said so

    def _leave(self, study: Study, *, is_hopeless: bool) -> None:
        """Fail what was being evaluated, and enqueue it for the next time.

        A study that this run has made is deleted if its trials were hopeless, so that the
        corrected command can make it again, with other objectives for example.
        """
        self._patience.seconds = min(self._patience.seconds, _SECONDS_TO_STOP)
        trials = study.get_trials(deepcopy=False)
        is_own = all(any(o.run == self._id for o in owners_of(t)) for t in trials)
        if is_hopeless and self.setup.is_new and is_own:
            optuna.delete_study(
                study_name=study.study_name, storage=open_storage(self._tuning.storage)
            )
            return
        say_stored(clear(study, self._id), self._remarks.say)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore more signals to stop: a run that is stopped needs seconds to put trials in order."""
    with handling(signal.SIGINT, signal.SIG_IGN), handling(signal.SIGTERM, signal.SIG_IGN):
        yield


def _dismiss(workers: Sequence[WorkerProcess]) -> None:
    for worker in workers:
        worker.dismiss()
