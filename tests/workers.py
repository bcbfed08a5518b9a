"""Worker processes that tune one study together, and what they leave behind.

A launcher loads the libraries once and forks the workers; each opens the storage and unpickles the
sampler for itself, as workers on other machines do, and writes down every result that it has told.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import subprocess
import time
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial
from studies import Params, start_python, two_losses

from metatpe.past.read.storage import open_storage

STUDY = "shared"
N_BEFORE = 1  # evaluations that a victim finishes
N_START = 5  # trials that get a configuration of the past to start with
KILLED = "killed"  # a file that says that the victims are dead; the others wait for it
BLOCKS: dict[str, BaseDistribution] = {  # 5 * 5 * 4 = 100 configurations
    "i": IntDistribution(0, 4),
    "j": IntDistribution(0, 4),
    "c": CategoricalDistribution(("p", "q", "r", "s")),
}


@dataclass(frozen=True)
class Job:
    """What each of the workers is to do."""

    storage: str  # as `open_storage` takes it
    folder: str  # with the pickled sampler; each worker writes its results here
    n_workers: int
    n_trials: int  # of each worker
    seconds: float = 0.02  # that an evaluation takes
    n_victims: int = 0  # workers that never come back from an evaluation


def start(sampler: BaseSampler, job: Job) -> subprocess.Popen[str]:
    """Start the workers; the process returned ends with the last of them."""
    Path(job.folder).mkdir(exist_ok=True)
    Path(job.folder, "sampler").write_bytes(pickle.dumps(sampler))
    return start_python(f"import workers; workers.launch({json.dumps(asdict(job))!r})")


def launch(job: str) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    fork = multiprocessing.get_context("fork")
    described = Job(**json.loads(job))
    workers = [fork.Process(target=_work, args=(i, described)) for i in range(described.n_workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(json.dumps([worker.exitcode for worker in workers]))


def _work(i: int, job: Job) -> None:
    sampler = pickle.loads(Path(job.folder, "sampler").read_bytes())
    storage = open_storage(job.storage)
    study = optuna.load_study(study_name=STUDY, storage=storage, sampler=sampler)
    # The start of a dead worker is given out again, that of a failed trial is not: victims begin
    # after the start, so that the two can be compared.
    while i < job.n_victims and len(study.get_trials(deepcopy=False)) < N_START:
        time.sleep(0.02)
    with Path(job.folder, f"{i}.jsonl").open("a") as told:
        for k in range(job.n_trials):
            while job.n_victims and k > N_BEFORE and not Path(job.folder, KILLED).exists():
                time.sleep(0.02)
            began = time.time()
            trial = study.ask(BLOCKS)
            trial.set_user_attr("asked", [began, time.time()])
            trial.set_user_attr("pid", os.getpid())
            is_stuck = i < job.n_victims and k == N_BEFORE
            trial.set_user_attr("is_stuck", is_stuck)
            time.sleep(3600 if is_stuck else job.seconds)
            losses = two_losses(trial.params)
            study.tell(trial, losses)
            told.write(json.dumps([trial.number, trial.params, losses]) + "\n")
            told.flush()


def told(job: Job) -> dict[int, tuple[Params, list[float]]]:
    """Return what the workers have told, by trial number."""
    lines = [line for path in Path(job.folder).glob("*.jsonl") for line in path.open()]
    return {number: (params, losses) for number, params, losses in map(json.loads, lines)}


def is_complete(study: Study, job: Job) -> bool:
    """Return whether the storage has every result that a worker has told, and no other."""
    complete = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
    return {t.number: (t.params, t.values) for t in complete} == told(job)


def repeats(study: Study) -> tuple[int, int]:
    """Return how many trials repeat another one: while both were suggested, and later on."""
    by_configuration: dict[tuple[object, ...], list[FrozenTrial]] = {}
    for trial in study.get_trials(deepcopy=False):
        by_configuration.setdefault(tuple(sorted(trial.params.items())), []).append(trial)
    overlapping = later = 0
    for alike in by_configuration.values():
        pairs = [_overlap(a, b) for a, b in combinations(alike, 2)]
        later += sum(not overlap for overlap in pairs)
        overlapping += len(alike) - 1
    return overlapping - later, later


def _overlap(a: FrozenTrial, b: FrozenTrial) -> bool:
    (a_began, a_ended), (b_began, b_ended) = a.user_attrs["asked"], b.user_attrs["asked"]
    return bool(a_began <= b_ended and b_began <= a_ended)
