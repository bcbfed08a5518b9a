"""Runs are executed here: one in this process, many in processes of their own or on Ray.

A `Run` goes in and a `Record` comes out, whatever happens; a failure is a record with its error.
The loop over evaluations belongs to this module and not to the methods, and it counts every call
of the problem: a method that evaluates more or less than its budget has failed.

Every worker computes with one thread, so that a run gives the same result and takes the same time
wherever it is executed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import logging
import multiprocessing
import os
import platform
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import TrialState

from metatpe import __version__
from metatpe.bench.methods import Method, Setup, get_method
from metatpe.bench.past import past_task
from metatpe.bench.plan import Run
from metatpe.bench.problems import Floats, Params, Problem, get_problem
from metatpe.bench.pruners import make_pruner
from metatpe.bench.records import Corrupt, Evaluation, Record, prepare, read_finished, write_record
from metatpe.study.access import is_enqueued
from metatpe.study.record import transfer_history

_PACKAGES = ("numpy", "scipy", "optuna", "moocore")
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_SPAWN = multiprocessing.get_context("spawn")
T = TypeVar("T")
OnProgress = Callable[[int, int, Record | None], None]  # how many are done, of how many; the last


@dataclass(frozen=True)
class Outcome:
    """The outcome of the requested runs."""

    n_finished: int  # now
    n_skipped: int  # finished before
    failed: tuple[Record, ...]
    corrupt: tuple[Corrupt, ...]  # files that were there and could not be read; run again


def run_all(
    runs: Sequence[Run],
    folder: Path,
    *,
    jobs: int = 1,
    ray: str | None = None,
    on_progress: OnProgress | None = None,
) -> Outcome:
    """Execute runs and write a record of each; what is finished already is skipped.

    Args:
        runs: As `plan` makes them.
        folder: Folder of the records. It may hold other records.
        jobs: Processes on this machine.
        ray: The address of a Ray cluster to use instead, "local" for one on this machine.
        on_progress: Is told how many runs are done, of how many: first those that were done
            before, without a record, and then with each new one.

    Raises:
        VersionError: If the folder holds results of another version.
        RuntimeError: If a worker process died.

    Example:
        >>> runs = [Run("ellipsoid4", "random", seed=0, n_evaluations=5)]
        >>> run_all(runs, Path("results"))
        Outcome(n_finished=1, n_skipped=0, failed=(), corrupt=())
    """
    prepare(folder)
    tell = on_progress or (lambda n_done, n_runs, record: None)
    found = list(read_finished(folder, runs))
    done = {entry.run for entry in found if isinstance(entry, Record)}
    left = [run for run in runs if run not in done]
    tell(len(done), len(runs), None)
    new: list[Record] = []
    with closing(_results(left, jobs, ray)) as results:
        for record in results:
            write_record(folder, record)
            new.append(replace(record, evaluations=()))  # they are in the file, and may be many
            tell(len(done) + len(new), len(runs), record)
    failed = tuple(record for record in new if record.error)
    corrupt = tuple(entry for entry in found if isinstance(entry, Corrupt))
    return Outcome(len(new) - len(failed), len(done), failed, corrupt)


def _results(runs: Sequence[Run], jobs: int, ray: str | None) -> Generator[Record, None, None]:
    if runs:
        yield from _in_processes(runs, jobs) if ray is None else _on_ray(runs, ray)


# One run ----------------------------------------------------------------------------------------


def execute(run: Run) -> Record:
    """Execute one run in this process; an exception becomes part of the record.

    Example:
        >>> record = execute(Run("ellipsoid4", "random", seed=0, n_evaluations=10))
        >>> len(record.evaluations), record.error
        (10, None)
    """
    record = Record(run, versions=_versions(get_method(run.method)))
    try:
        problem = get_problem(run.problem)
        record = replace(record, directions=problem.directions, data=_checksum(run.problem))
        with _quiet():
            evaluations, n_evaluated = _search(run, problem)
    except Exception as error:
        return replace(record, error=f"{type(error).__name__}: {error}")
    record = replace(record, evaluations=evaluations, n_evaluated=n_evaluated)
    if n_evaluated == run.n_evaluations:
        return record
    wrong = f"the budget is {run.n_evaluations} evaluations, but {n_evaluated} were made"
    return replace(record, error=f"BudgetError: {wrong}")


def _search(run: Run, problem: Problem) -> tuple[tuple[Evaluation, ...], int]:
    """Return the evaluations of a run, and how often its problem was called."""
    method, n_calls = get_method(run.method), 0

    def metered_function(params: Params, seed: int) -> tuple[float, ...]:
        nonlocal n_calls
        n_calls += 1
        return problem.function(params, seed)

    past = tuple(
        past_task(get_problem(past.problem), run.n_past, run.seed, past.stream)
        for past in run.past
    )
    metered = replace(problem, function=metered_function)
    start = Setup(metered, past, run.seed, run.n_start, dict(run.settings))
    study = optuna.create_study(
        directions=problem.directions,
        sampler=method.make(start),
        pruner=make_pruner(run.pruner or "none", past),
    )
    first = method.first_configurations(start)
    for configuration in first:
        study.enqueue_trial(configuration)
    is_log = method.is_log(problem)
    evaluated: list[Evaluation] = []
    while len(evaluated) < run.n_evaluations:
        n = min(run.batch, run.n_evaluations - len(evaluated))
        asked = [_ask(study, metered) for _ in range(n)]
        evaluated += [_evaluate(study, metered, *one, run.seed, is_log) for one in asked]
    return _with_origins(evaluated, study, method, len(first) if run.past else 0), n_calls


def _ask(study: optuna.Study, problem: Problem) -> tuple[optuna.Trial, float]:
    """Return a new trial and the seconds that its configuration took."""
    begin = time.perf_counter()
    trial = problem.ask(study)
    return trial, time.perf_counter() - begin


def _evaluate(
    study: optuna.Study,
    problem: Problem,
    trial: optuna.Trial,
    seconds: float,
    seed: int,
    is_log: NDArray[np.bool_],
) -> Evaluation:
    """Evaluate a trial and tell the result."""
    values = problem.evaluate(trial.params, seed)
    epochs = None if problem.curve is None else _train(trial, problem.curve(trial.params))
    if epochs is not None and epochs < 0:
        study.tell(trial, state=TrialState.PRUNED)
        worst = tuple(problem.worst.tolist())
        return Evaluation(trial.params, worst, "sampler", {}, round(seconds, 6), -epochs)
    told = np.array(values)
    told[is_log] = np.log(told[is_log])
    study.tell(trial, told.tolist())
    return Evaluation(trial.params, values, "sampler", {}, round(seconds, 6), epochs)


def _train(trial: optuna.Trial, curve: Floats) -> int:
    """Report a curve until the trial is pruned; return the epochs spent, negative if it was."""
    for step, value in enumerate(curve.tolist()):
        trial.report(value, step)
        if step + 1 < len(curve) and trial.should_prune():
            return -(step + 1)
    return len(curve)


def _with_origins(
    evaluations: Sequence[Evaluation], study: optuna.Study, method: Method, n_warm: int
) -> tuple[Evaluation, ...]:
    """Return the evaluations with what the sampler and the enqueued trials say about them."""
    found = list(evaluations)
    records = {record.number: record for record in transfer_history(study)}
    for trial in study.get_trials(deepcopy=False):
        i = trial.number
        if is_enqueued(trial) and i < len(found):
            origin = "warm_start" if method.first == "warm" and i < n_warm else "random"
            found[i] = replace(found[i], origin=origin)
        elif record := records.get(i):
            found[i] = replace(found[i], origin=record.origin, weights=record.weights)
    return tuple(found)


@cache
def _checksum(problem: str) -> str:
    """Return a checksum of a problem's table; empty where there is none."""
    table = get_problem(problem).table
    return "" if table is None else hashlib.sha256(table.tobytes()).hexdigest()[:16]


def _versions(method: Method) -> dict[str, str]:
    packages = _PACKAGES + ((method.needs[0],) if method.needs else ())
    versions = {"python": platform.python_version(), "metatpe": __version__}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


@contextmanager
def _quiet() -> Iterator[None]:
    """Let Optuna say nothing about its trials and what is experimental in it."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)


# Many runs --------------------------------------------------------------------------------------


def _in_processes(runs: Sequence[Run], jobs: int) -> Iterator[Record]:
    """Yield the records of runs in the order in which they finish."""
    lifeline, held = _SPAWN.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, _SPAWN, initializer=_begin_worker, initargs=(lifeline,))
    with held, lifeline:
        try:
            with _environment(_ONE_THREAD):  # read by the workers when they load numpy
                futures = [pool.submit(execute, run) for run in runs]
            for future in as_completed(futures):
                yield future.result()
            pool.shutdown()
        except BrokenProcessPool as error:
            raise RuntimeError(
                "a worker process died, possibly because it ran out of memory; finished runs are "
                "kept, so the same command with fewer jobs continues from there."
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def in_one_thread(function: Callable[[], T]) -> T:
    """Return what a function returns in a process of its own that computes with one thread."""
    with ProcessPoolExecutor(1, mp_context=_SPAWN) as pool, _environment(_ONE_THREAD):
        return pool.submit(function).result()


def _begin_worker(lifeline: Connection) -> None:
    """Leave Ctrl-C to the parent, and end at once when the parent lets go or is no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_without, args=(lifeline,), daemon=True).start()


def _end_without(lifeline: Connection) -> None:
    lifeline.poll(None)  # nothing is ever sent: this waits until the other end is closed
    os._exit(1)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _on_ray(runs: Sequence[Run], address: str) -> Iterator[Record]:
    """Yield the records of runs on a Ray cluster in the order in which they finish."""
    import ray

    is_mine = not ray.is_initialized()
    if is_mine:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    # A task of one CPU gets OMP_NUM_THREADS=1 from Ray.
    remote = ray.remote(num_cpus=1)(execute)
    pending = [remote.remote(run) for run in runs]
    try:
        while pending:
            done, pending = ray.wait(pending)
            yield from ray.get(done)
    finally:
        for reference in pending:
            ray.cancel(reference, force=True)
        if is_mine:
            ray.shutdown()
