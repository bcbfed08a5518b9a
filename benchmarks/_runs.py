"""Runs of a sampler with a past, with all of its rules and without some, for scripts to compare.

A rule is a field of `metatpe.samplers.guards.Rules`. What is switched off at once is an arm, named
by a rule, or

    guards     all guards of the sampler
    every      every rule there is: what is left of MetaTPESampler is the paper's text
    all        stands for several arms, one for each rule of the sampler

The densities that sometimes choose for TransferSampler have rules of MetaTPESampler. They can be
named, but `all` leaves them out.

With n workers, n trials are asked for at the same time and told together. None of them sees what
the others are choosing until all have chosen; those that collide choose again, at the same time.
That is deterministic, and the worst case of n processes.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import optuna
from _pasts import KINDS, past_tasks
from optuna.storages import InMemoryStorage
from optuna.trial import Trial

from metatpe import MetaTPESampler, TransferSampler
from metatpe.bench import Problem, best_curve, get_problem, hypervolume_curve
from metatpe.cli.bench import seeds_of
from metatpe.samplers.guards import Rules

SAMPLERS = {"meta-tpe": MetaTPESampler, "transfer": TransferSampler}
GUARDS = {
    "meta-tpe": ("silence", "trust", "turns", "restart", "widths"),
    "transfer": ("alternate", "densities", "ten"),
}
_DENSITIES = ("front", "column", "marginals", "proportion", "silence", "trust", "widths")
_WORKERS = ("fewer",)  # rules that one worker alone has no use for
RULES = {  # the rules that `all` stands for
    "meta-tpe": (
        *("front", "column", "marginals", "proportion", "new"),
        *GUARDS["meta-tpe"],
        *("listen", "contradicted", "reserve", "fewer"),
    ),
    "transfer": (
        "new",
        *GUARDS["transfer"],
        "plateaus",
        "listen",
        "contradicted",
        "reserve",
        "fewer",
    ),
}
_EVERY = tuple(field.name for field in fields(Rules))
Arms = dict[str, tuple[str, ...]]  # name -> the rules that are switched off


@dataclass(frozen=True)
class Case:
    """One run: everything that its result depends on."""

    sampler: str
    problem: str
    kind: str | None  # of the past; None for no past
    seed: int
    off: tuple[str, ...] = ()  # rules that are switched off
    n_tasks: int | None = None
    n_workers: int = 1
    n_evaluations: int = 100
    start: str = "draw"


# Arms -------------------------------------------------------------------------------------------


def arms_of(sampler: str, names: Sequence[str], n_workers: int = 1) -> Arms:
    """Return the arms that names stand for.

    Raises:
        ValueError: If the sampler has no such rule.
    """
    arms: Arms = {}
    for name in names:
        if name == "all":
            own = [r for r in RULES[sampler] if n_workers > 1 or r not in _WORKERS]
            arms.update({rule: (rule,) for rule in own})
        else:
            arms[name] = _arm(sampler, name)
    return arms


def _arm(sampler: str, name: str) -> tuple[str, ...]:
    if name == "guards":
        return GUARDS[sampler]
    if name == "every":
        return _EVERY
    known = dict.fromkeys([*RULES[sampler], *_DENSITIES])
    if name not in known:
        raise ValueError(
            f"{sampler} has no rule {name!r}; its rules: {', '.join(known)}. Names of several: "
            "guards, every, all."
        )
    return (name,)


# One run ----------------------------------------------------------------------------------------


def run(case: Case) -> np.ndarray:
    """Return how good a run is after each evaluation; the more the better.

    That is the normalised hypervolume, or for one objective the orders of magnitude by which the
    best value is below 1.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    problem = get_problem(case.problem)
    past = past_tasks(case.kind, case.problem, case.seed, case.n_tasks) if case.kind else ()
    sampler = SAMPLERS[case.sampler](past, start=case.start, seed=case.seed)
    sampler.rules = replace(sampler.rules, **dict.fromkeys(case.off, False))
    storage = Simultaneous()
    study = optuna.create_study(storage=storage, directions=problem.directions, sampler=sampler)
    values: list[tuple[float, ...]] = []
    while len(values) < case.n_evaluations:
        n = min(case.n_workers, case.n_evaluations - len(values))
        for trial in _asked(study, storage, problem, n):
            values.append(problem.evaluate(trial.params, case.seed))
            study.tell(trial, values[-1])
    if problem.n_objectives > 1:
        return hypervolume_curve(problem, np.array(values))
    return -np.log10(best_curve(problem, np.array(values)))


def _asked(study: optuna.Study, storage: Simultaneous, problem: Problem, n: int) -> list[Trial]:
    """Return n trials that were asked for at the same time, sorted by number."""
    if n == 1:
        return [problem.ask(study)]
    storage.meeting = Meeting(n)

    def ask(_: int) -> Trial:
        try:
            return problem.ask(study)
        finally:
            storage.meeting.leave()

    with ThreadPoolExecutor(n) as pool:
        trials = list(pool.map(ask, range(n)))
    storage.meeting = Meeting(1)
    return sorted(trials, key=lambda trial: trial.number)


class Meeting:
    """A barrier for workers, of whom one after the other leaves."""

    def __init__(self, n: int) -> None:
        self._n, self._n_waiting, self._round = n, 0, 0
        self._changed = threading.Condition()

    def wait(self) -> None:
        """Wait until all that are still there wait."""
        with self._changed:
            this = self._round
            self._n_waiting += 1
            self._go_on_if_all_wait()
            self._changed.wait_for(lambda: self._round != this)

    def leave(self) -> None:
        """Let the others go on without this one."""
        with self._changed:
            self._n -= 1
            self._go_on_if_all_wait()

    def _go_on_if_all_wait(self) -> None:
        if self._n_waiting >= self._n:
            self._n_waiting = 0
            self._round += 1
            self._changed.notify_all()


class Simultaneous(InMemoryStorage):
    """A storage whose workers do the same at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.meeting = Meeting(1)

    def create_new_trial(self, *args: Any, **kwargs: Any) -> int:
        """Make a trial; go on when all workers have one."""
        trial_id = super().create_new_trial(*args, **kwargs)
        self.meeting.wait()
        return trial_id

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Write what a worker has chosen, when all have chosen; go on when all have written."""
        self.meeting.wait()
        super().set_trial_system_attr(trial_id, key, value)
        self.meeting.wait()


# Many runs --------------------------------------------------------------------------------------


def run_all(cases: Sequence[Case], jobs: int) -> dict[Case, np.ndarray]:
    """Return the curves of all cases; how far it is goes to stderr."""
    curves, begin = {}, time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        futures = {pool.submit(run, case): case for case in dict.fromkeys(cases)}
        for n_done, future in enumerate(as_completed(futures), start=1):
            curves[futures[future]] = future.result()
            _show_progress(n_done, len(futures), time.monotonic() - begin)
    return curves


def _show_progress(n_done: int, n: int, seconds: float) -> None:
    is_terminal = sys.stderr.isatty()
    if not is_terminal and n_done * 20 // n == (n_done - 1) * 20 // n:
        return  # a file gets twenty lines
    left = seconds / n_done * (n - n_done)
    end = "\r" if is_terminal and n_done < n else "\n"
    print(f"{n_done} of {n} runs, {left / 60:.0f} minutes left ", end=end, file=sys.stderr)


# What scripts share -----------------------------------------------------------------------------


def parser_of(document: str, kinds: Sequence[str], without: str) -> argparse.ArgumentParser:
    """Return the options of both scripts."""
    parser = argparse.ArgumentParser(description=document.split("\n")[0])
    add = parser.add_argument
    add("--sampler", choices=SAMPLERS, default="meta-tpe")
    add("--without", type=names_of, default=names_of(without), metavar="NAME,...", help="arms")
    add("--kinds", type=_kinds, default=list(kinds), metavar="NAME,...", help="of past")
    add("--seeds", type=seeds_of, default=range(20), metavar="N", help="how many, or 20-39")
    add("--evaluations", type=int, default=100, metavar="N", help="of each run")
    add("--jobs", type=int, default=2, metavar="N", help="processes")
    add("--out", metavar="FILE", help="write the means to this JSON file")
    add("--json", action="store_true", help="print JSON instead of the table")
    return parser


def names_of(text: str) -> list[str]:
    """Return the names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _kinds(text: str) -> list[str]:
    kinds = names_of(text)
    known = (*KINDS, "renamed")
    if unknown := [kind for kind in kinds if kind not in known]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
    return kinds


def in_errors(differences: np.ndarray) -> np.ndarray:  # (s, n) -> (n,)
    """Return means over seeds in units of their standard errors; 0 where nothing differs."""
    mean, error = differences.mean(axis=0), standard_errors(differences)
    return np.divide(mean, error, out=np.zeros_like(mean), where=error != 0.0)


def standard_errors(differences: np.ndarray) -> np.ndarray:  # (s, n) -> (n,)
    """Return the standard errors of means over seeds; NaN of a single one."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return differences.std(axis=0, ddof=1) / len(differences) ** 0.5
