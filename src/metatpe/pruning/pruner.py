r"""`TransferPruner`: Optuna's side of pruning with past learning curves.

At a share s of its length, a trial is stopped if its probability p of ending among the best has

    p / b < threshold * min(1, s / 0.2)        b the probability of a new trial

Grid columns are evenly spaced in log s, so what it costs to wait for the next one grows with s. At
first that is next to nothing, and the first reports say the least.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from optuna.pruners import BasePruner
from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from metatpe.past.curves import curves_in
from metatpe.past.read.studies import as_tasks
from metatpe.past.task import Task
from metatpe.pruning.curves import completed, length_of, pruned, stacked
from metatpe.pruning.forecast import Forecaster
from metatpe.pruning.judge import Judge, Verdict
from metatpe.pruning.positions import Positions, replayed
from metatpe.pruning.standard import standard_positions
from metatpe.recent import Recent
from metatpe.study.access import set_system_attributes, set_user_attributes, storage_of, study_id
from metatpe.study.stops import PruningRecord, stop_attributes
from metatpe.study.trials import REPORT, curve_of, signs_of

_logger = logging.getLogger(__name__)
_MAX_CACHED = 4  # studies of one storage
_PATIENT_UNTIL = 0.2  # of the length: before, the threshold is smaller
# Whole curves are what the study's own forecasts are made of. Each costs as much as five or ten
# trials that are stopped, so there are few, and none among the first.
_FIRST_CHECK, _CHECK_GROWTH = 10, 10


class TransferPruner(BasePruner):
    """Stops trials whose learning curve is unlikely to end among the best.

    A trial is stopped if past trials in a similar position ended among the best five per cent much
    less often than a new trial does. The position of a trial is its rank among the study's trials
    at the same share of the length, the rank of its best value so far, its recent progress, and
    the number of trials. Past trials are those of past studies and, the worse these predict the
    study's curves, the study's own.

    The first trial always completes, and so do trials 10, 100, 1000, ..., which show whether
    others are stopped too early. If there are fewer than 500 past curves, synthetic ones that
    cross often are added, so that a study without past curves starts cautiously.

    Args:
        sources: Past studies or tasks; those whose trials reported no values are not used.
        threshold: A trial is stopped if its probability of ending among the best, divided by that
            of a new trial, is less than this; in the first fifth of its length, less than a part
            of this. A smaller value prunes less.
        n_startup_trials: How many trials at the start always complete.

    Example:
        >>> import optuna
        >>> def objective(trial):
        ...     x = trial.suggest_float("x", 0, 1)
        ...     for epoch in range(10):  # your training
        ...         trial.report(x + 1 / (epoch + 1), epoch)
        ...         if trial.should_prune():
        ...             raise optuna.TrialPruned
        ...     return x
        >>> past = optuna.create_study()
        >>> past.optimize(objective, n_trials=10)
        >>> study = optuna.create_study(pruner=TransferPruner([past]))
        >>> study.optimize(objective, n_trials=10)
    """

    def __init__(
        self,
        sources: Sequence[Study | Task] = (),
        *,
        threshold: float = 0.9,
        n_startup_trials: int = 1,
    ) -> None:
        if not 0.0 <= threshold <= 1.0:
            raise ValueError(f"threshold must be between 0 and 1, but is {threshold!r}.")
        if not isinstance(n_startup_trials, int) or n_startup_trials < 1:
            raise ValueError(
                "n_startup_trials must be a whole number of 1 or more, "
                f"but is {n_startup_trials!r}; the length of a trial comes from a finished one."
            )
        self._threshold = float(threshold)
        self._n_startup_trials = n_startup_trials
        self._tasks = [task for task in as_tasks(sources) if len(task.curves)]
        self._cache = _Cache()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._cache = _Cache()

    def __repr__(self) -> str:
        return f"TransferPruner({len(self._tasks)} sources, threshold={self._threshold})"

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether a trial should be stopped now, and write down why."""
        curve = curve_of(trial, study.directions)
        if not curve:
            return False
        record = self._record(study, trial, curve)
        if record is not None:
            set_user_attributes(study, trial, stop_attributes(record))
        return record is not None

    def _record(
        self, study: Study, trial: FrozenTrial, curve: dict[int, list[float]]
    ) -> PruningRecord | None:
        trials = study.get_trials(deepcopy=False)
        step = max(curve)
        with self._cache.lock:
            judge = self._judge(study, trials)
            judge.update(trials)
            if not judge.is_ready:
                return None
            if _has_diverged(curve):
                return PruningRecord(trial.number, step, "diverged")
            if self._always_completes(trial.number):
                return None
            verdict = judge.verdict(trial, trials)
        if verdict is None or verdict.ratio >= self._threshold * _patience(verdict.share):
            return None
        return _record_of(trial.number, step, verdict, study.directions)

    def _always_completes(self, number: int) -> bool:
        """Return whether a trial is one of the first, or of those that check the others."""
        check = _FIRST_CHECK
        while check < number:
            check *= _CHECK_GROWTH
        return number < self._n_startup_trials or number == check

    def _judge(self, study: Study, trials: Sequence[FrozenTrial]) -> Judge:
        """Return the judge of a study, a new one where the trials are others than before."""
        judges = self._cache.judges.setdefault(storage_of(study), Recent(_MAX_CACHED))
        started = trials[0].datetime_start if trials else None
        key = (study_id(study), started)  # a database may give the id of a deleted study again
        m = len(study.directions)
        return judges.get(key, lambda: Judge(self._past(m), study.directions))

    def _past(self, m: int) -> Forecaster:
        """Return the forecaster of the sources with so many objectives, or of made-up ones."""
        if m not in self._cache.pasts:
            tasks = [task for task in self._tasks if task.n_objectives == m]
            if len(tasks) < len(self._tasks):
                _logger.warning(
                    "%d past studies with another number of objectives are not used for pruning.",
                    len(self._tasks) - len(tasks),
                )
            found = [own for task in tasks for own in _positions_of(task)]
            made_up = standard_positions(sum(map(_n_curves, tasks)))
            self._cache.pasts[m] = Forecaster([*found, *made_up])
        return self._cache.pasts[m]


class _Cache:
    """What a pruner remembers between calls; a pickle or a copy starts without it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.pasts: dict[int, Forecaster] = {}
        self.judges: WeakKeyDictionary[BaseStorage, Recent[Any, Judge]] = WeakKeyDictionary()


def _positions_of(task: Task) -> list[Positions]:
    """Return the replayed positions of a past study; none where no trial has completed a curve."""
    curves = curves_in(task.curves)
    is_complete = [bool(np.isfinite(losses).all()) for losses in task.losses]
    length = length_of([curve for i, curve in curves.items() if is_complete[i]])
    if length is None:
        return []
    rows = [
        completed(curve, task.losses[i].tolist(), length)
        if is_complete[i]
        else pruned(curve, length)
        for i, curve in curves.items()
    ]
    return replayed(stacked(rows), np.ones(len(rows), dtype=np.bool_))


def _n_curves(task: Task) -> int:
    """Return how many trials of a past study have a whole curve; one report is none."""
    is_complete = [bool(np.isfinite(losses).all()) for losses in task.losses]
    return sum(len(curve) > 1 and is_complete[i] for i, curve in curves_in(task.curves).items())


def _patience(share: float) -> float:
    """Return what part of the threshold holds at a share of the length."""
    return min(1.0, share / _PATIENT_UNTIL)


def _has_diverged(curve: dict[int, list[float]]) -> bool:
    """Return whether the last report is not finite and an earlier one was."""
    *earlier, last = (curve[step] for step in sorted(curve))
    return not all(map(math.isfinite, last)) and any(all(map(math.isfinite, e)) for e in earlier)


def _record_of(
    number: int, step: int, verdict: Verdict, directions: Sequence[StudyDirection]
) -> PruningRecord:
    record = {
        "chance": verdict.ratio * verdict.base,
        "base": verdict.base,
        "influence": verdict.influence,
    }
    if len(directions) == 1:
        middle, spread = verdict.forecast.mean, verdict.forecast.deviation
        low, expected, high = (verdict.frame.loss(middle + k * spread) for k in (-1, 0, 1))
        (sign,) = signs_of(directions).tolist()
        record |= {"expected": sign * expected, "deviation": high / 2.0 - low / 2.0}
    return PruningRecord(number, step, "curve", **record)


def report_values(trial: Trial, values: Sequence[float], step: int) -> bool:
    """Report intermediate values of several objectives; return whether to stop the trial.

    Optuna's ``trial.report`` and ``trial.should_prune`` support only one objective. With
    `TransferPruner`, a trial is stopped if it is unlikely to improve the front. Other pruners
    never stop a trial here.

    Args:
        trial: The running trial.
        values: One value per objective.
        step: The step; what was reported for it before is kept.

    Raises:
        ValueError: There is another number of values than of objectives, or the step is negative.

    Example:
        >>> import optuna
        >>> def objective(trial):
        ...     x = trial.suggest_float("x", 0, 1)
        ...     for epoch in range(10):  # your training: an error and a time
        ...         if report_values(trial, [x + 1 / (epoch + 1), epoch], step=epoch):
        ...             raise optuna.TrialPruned
        ...     return x, 10.0
        >>> directions = ["minimize", "minimize"]
        >>> study = optuna.create_study(directions=directions, pruner=TransferPruner())
        >>> study.optimize(objective, n_trials=3)
    """
    record_values(trial, values, step)
    return should_stop(trial)


def record_values(trial: Trial, values: Sequence[float], step: int) -> None:
    """Report intermediate values as `report_values` does, without asking whether to stop."""
    study = trial.study
    numbers = [float(value) for value in values]
    if len(numbers) != len(study.directions):
        raise ValueError(
            f"the study has {len(study.directions)} objectives, but {len(numbers)} values were "
            f"reported at step {step}; report one per objective."
        )
    if step < 0:
        raise ValueError(f"step must be 0 or more, but is {step}.")
    if len(numbers) == 1:
        trial.report(numbers[0], step)
        return
    frozen = _frozen(study, trial)
    if f"{REPORT}{step}" not in frozen.system_attrs:
        set_system_attributes(study, frozen, {f"{REPORT}{step}": numbers})


def should_stop(trial: Trial) -> bool:
    """Return whether the study's pruner stops a trial, with any number of objectives."""
    study = trial.study
    if len(study.directions) == 1:
        return trial.should_prune()
    pruner = study.pruner
    return isinstance(pruner, TransferPruner) and pruner.prune(study, _frozen(study, trial))


def _frozen(study: Study, trial: Trial) -> FrozenTrial:
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return next(t for t in running if t.number == trial.number)
