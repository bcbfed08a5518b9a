"""How good searches with pruned trials are for the epochs that they have spent.

One full training is as long as the longest trial of a run. After t trainings' worth of
epochs,

    regret(t) = min(1, (best final loss of a completed trial so far - best of the problem)
                       / (median final loss of random configurations - best))

and 1 before a trial has completed. A run that has ended keeps its last regret; a mean over runs is
drawn until half of them have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from metatpe.bench.problems import get_problem
from metatpe.bench.records import Record
from metatpe.space import Floats, Space

_STEP = 0.25  # trainings between two points of a curve
_N_RANDOM = 200  # configurations that give the median loss of a problem


@dataclass(frozen=True, eq=False)
class Spending:
    """The mean regret of a pruner with a method, by what was spent."""

    pruner: str
    method: str
    trainings: Floats  # (n,)
    regret: Floats  # (n,)
    se: Floats  # (n,), standard errors over runs
    n_runs: int
    until: float  # trainings after which half of the runs have ended

    @property
    def name(self) -> str:
        """The method and its pruner."""
        return f"{self.method}, {self.pruner}"

    def at(self, trainings: float) -> float | None:
        """Return the mean regret after so many trainings; None where runs ended before."""
        if trainings > self.until:
            return None
        return float(self.regret[self.trainings <= trainings][-1])

    def needed(self, regret: float) -> float | None:
        """Return how many trainings it takes to a mean regret; None where it is not reached."""
        reached = np.flatnonzero((self.regret <= regret) & (self.trainings <= self.until))
        return float(self.trainings[reached[0]]) if len(reached) else None


def spending(records: Iterable[Record]) -> list[Spending]:
    """Return the mean regrets of each pruner and method.

    Raises:
        ValueError: If no run has learning curves.
    """
    groups: dict[tuple[str, str], list[tuple[Floats, Floats]]] = {}
    for record in records:
        if record.run.pruner and not record.error:
            key = (record.run.pruner, record.run.method)
            groups.setdefault(key, []).append(_progress(record))
    if not groups:
        raise ValueError("no run has learning curves; run one with --pruner.")
    return [_mean(*key, runs) for key, runs in groups.items()]


def regret_at(record: Record, trainings: float) -> float:
    """Return the regret of one run after so many trainings, or at its end."""
    spent, regret = _progress(record)
    last = int(np.searchsorted(spent, trainings, side="right")) - 1
    return float(regret[last]) if last >= 0 else 1.0


def _progress(record: Record) -> tuple[Floats, Floats]:  # (n,), (n,)
    """Return the trainings spent and the regret after each trial of a run."""
    problem = get_problem(record.run.problem)
    epochs = np.array([e.epochs or 0 for e in record.evaluations])
    losses = problem.losses(np.array([e.values for e in record.evaluations]))[:, 0]
    # A trial that was pruned has the worst value of the problem.
    is_found = losses < problem.losses(problem.worst)[0]
    found = np.minimum.accumulate(np.where(is_found, losses, np.inf))
    best, middle = _scale(record.run.problem)
    return np.cumsum(epochs) / epochs.max(), np.minimum((found - best) / (middle - best), 1.0)


@cache
def _scale(name: str) -> tuple[float, float]:
    """Return the best loss of a problem, and the median one of random configurations."""
    problem = get_problem(name)
    assert problem.curve is not None
    space = Space(problem.space)
    X = np.random.default_rng(0).random((_N_RANDOM, len(space)))
    ends = np.array([problem.curve(params)[-1:] for params in space.decode(X)])
    losses = problem.losses(ends)[:, 0]
    middle = np.median(np.where(np.isfinite(losses), losses, np.inf))
    return float(problem.losses(problem.best)[0]), float(middle)


def _mean(pruner: str, method: str, runs: Sequence[tuple[Floats, Floats]]) -> Spending:
    until = float(np.median([spent[-1] for spent, _ in runs]))
    grid = np.arange(_STEP, until + _STEP, _STEP)
    rows = []
    for spent, regret in runs:
        last = np.searchsorted(spent, grid, side="right") - 1
        rows.append(np.where(last >= 0, regret[np.maximum(last, 0)], 1.0))
    found = np.array(rows)
    se = found.std(axis=0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0 * grid
    return Spending(pruner, method, grid, found.mean(axis=0), se, len(found), until)
