"""The pruners that are compared, by name, and what they cost and save.

For the runs of a pruner and those without one, on the same problem with the same method and seed,
if the sampler does not react to pruning (method `random`) on the same configurations:

    epochs   reports made, as a share of those without pruning
    regret   (best value found - best value without pruning) / (median of the final values without
             pruning - best value of the problem), at most 1
    lost     share of the best five per cent of the trials, by their whole curves, that was pruned
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from optuna.pruners import (
    BasePruner,
    HyperbandPruner,
    MedianPruner,
    NopPruner,
    PercentilePruner,
    SuccessiveHalvingPruner,
)
from optuna.study import Study
from optuna.trial import FrozenTrial

from metatpe.bench.problems import Problem, get_problem, unknown_name
from metatpe.bench.records import Record
from metatpe.past.task import Task
from metatpe.pruning.positions import n_best
from metatpe.pruning.pruner import TransferPruner
from metatpe.space import Floats
from metatpe.study.access import set_user_attributes
from metatpe.study.stops import stop_attributes, stop_of
from metatpe.words import counted


class _Forgetful(TransferPruner):
    """Stops the same trials, and leaves parts of its records out: what are these worth?"""

    def __init__(self, sources: Sequence[Task], forgotten: Sequence[str]) -> None:
        super().__init__(sources)
        self._forgotten = tuple(forgotten)

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether a trial should be stopped now, and write down why, in part."""
        if not super().prune(study, trial):
            return False
        stored = study.get_trials(deepcopy=False)[trial.number]
        record = stop_of(stored)
        assert record is not None
        forgotten: dict[str, Any] = dict.fromkeys(self._forgotten)
        kept = replace(record, **forgotten)
        set_user_attributes(study, stored, stop_attributes(kept))
        return True


_Make = Callable[..., BasePruner]
# Each takes the past tasks, and the numbers that may follow the name.
_MAKERS: Mapping[str, _Make] = {
    "none": lambda past: NopPruner(),
    "transfer": lambda past, percent=90: TransferPruner(past, threshold=percent / 100),
    "transfer-alone": lambda past: TransferPruner(),
    # What samplers learn from unfinished curves: nothing, and expectations as if they were sure.
    "transfer-silent": lambda past: _Forgetful(past, ("expected", "deviation")),
    "transfer-sure": lambda past: _Forgetful(past, ("deviation",)),
    "median": lambda past, warm_up=0: MedianPruner(5, warm_up),
    "percentile": lambda past, percent, warm_up=0: PercentilePruner(percent, 5, warm_up),
    "halving": lambda past, first="auto", factor=4: SuccessiveHalvingPruner(first, factor),
    "hyperband": lambda past, first=1, factor=3: HyperbandPruner(first, "auto", factor),
}


def pruner_names() -> tuple[str, ...]:
    """Return the names of all pruners, without the numbers that may follow."""
    return tuple(_MAKERS)


def make_pruner(name: str, past: Sequence[Task]) -> BasePruner:
    """Return a new pruner.

    Numbers after the name are its settings: `transfer-75` has the threshold 0.75, `median-10` ten
    steps of warm-up, `percentile-25-10` a percentage as well; `halving-4-3` and `hyperband-4-3`
    have their first rung after four steps and keep a third.

    Raises:
        ValueError: If there is none of that name, or it does not have so many settings.
    """
    make, numbers = _parsed(name)
    return make(past, *numbers)


def check_pruner(name: str) -> None:
    """Refuse a name that no pruner has."""
    make_pruner(name, [])


def _parsed(name: str) -> tuple[_Make, list[int]]:
    """Return the maker that a name begins with, and the numbers that follow."""
    kind, numbers = name, list[int]()
    while kind not in _MAKERS:
        kind, _, number = kind.rpartition("-")
        if not number.isdecimal():
            raise ValueError(unknown_name("pruner", name, pruner_names()))
        numbers.insert(0, int(number))
    try:
        inspect.signature(_MAKERS[kind]).bind([], *numbers)
    except TypeError:
        (_, *settings) = inspect.signature(_MAKERS[kind]).parameters
        raise ValueError(
            f"pruner {name!r} has {counted(len(numbers), 'number')}, but {kind!r} takes "
            f"{' and '.join(settings) or 'none'}."
        ) from None
    return _MAKERS[kind], numbers


@dataclass(frozen=True)
class PrunerEntry:
    """One line of the table: means over problems and seeds."""

    pruner: str
    method: str
    n_runs: int
    epochs: float
    regret: float
    lost: float


def compare(records: Iterable[Record], *, required: bool = True) -> list[PrunerEntry]:
    """Return one entry per pruner and method, from runs that have one without pruning beside them.

    Args:
        records: The runs.
        required: Whether there has to be one.

    Raises:
        ValueError: If no run has.
    """
    finished = [r for r in records if r.run.pruner and not r.error]
    without = {_twin(r): r for r in finished if r.run.pruner == "none"}
    rows: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for record in finished:
        if _twin(record) in without:
            key = (record.run.pruner, record.run.method)
            rows.setdefault(key, []).append(_measure(record, without[_twin(record)]))
    if not rows and required:
        raise ValueError(
            "there is no run without pruning to compare with; run `--pruner none` as well."
        )
    return [
        PrunerEntry(*key, len(found), *np.mean(found, axis=0).tolist())
        for key, found in rows.items()
    ]


def _twin(record: Record) -> tuple[str, str, int, int]:
    run = record.run
    return run.problem, run.method, run.seed, run.n_evaluations


def _measure(record: Record, whole: Record) -> tuple[float, float, float]:
    problem = get_problem(record.run.problem)
    ends, lengths = _ends(record, problem)
    epochs = np.array([e.epochs or 0 for e in record.evaluations])
    is_pruned = epochs < lengths
    all_ends, all_lengths = _ends(whole, problem)
    best = all_ends.min()
    width = float(np.median(all_ends) - problem.losses(problem.best)[0]) or 1.0
    found = ends[~is_pruned].min(initial=np.inf)
    top = np.argsort(ends, kind="stable")[: n_best(len(ends))]
    regret = min((found - best) / width, 1.0)
    return epochs.sum() / all_lengths.sum(), float(regret), float(is_pruned[top].mean())


def _ends(record: Record, problem: Problem) -> tuple[Floats, Floats]:
    """Return the final losses of a run's whole curves, and their lengths."""
    assert problem.curve is not None
    curves = [problem.curve(e.params) for e in record.evaluations]
    ends = problem.losses(np.array([curve[-1:] for curve in curves]))[:, 0]
    return np.where(np.isfinite(ends), ends, np.inf), np.array([len(c) for c in curves], float)
