"""Compare studies with and without past studies, trial by trial; used by the examples.

With one objective the measure is the best value so far. With several it is the hypervolume, in
[0, 1]: the part of a box that the trials of a study dominate. For each objective, the box goes
from the best value over all compared studies to the value that one in ten trials exceeds.
Infeasible trials do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import moocore
import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.study import StudyDirection

Floats = NDArray[np.float64]


def print_gain(with_past: Sequence[optuna.Study], without: Sequence[optuna.Study]) -> None:
    """Print both means over the studies, and how many trials the past saved."""
    curves = reached([*with_past, *without])
    past = curves[: len(with_past)].mean(axis=0)
    alone = curves[len(with_past) :].mean(axis=0)
    n = len(past)
    has_one = len(with_past[0].directions) == 1
    sign = -1.0 if has_one and with_past[0].direction == StudyDirection.MINIMIZE else 1.0
    what = "best value" if has_one else "hypervolume"
    n_with, n_without = len(with_past), len(without)
    print(f"\n{what}, mean of {n_with} studies with and {n_without} without past studies")
    print("trials  with past studies  without")
    for i in sorted({min(k, n) for k in (1, 5, 10, 20, 30, 50)} | {n}):
        print(f"{i:6d}  {sign * past[i - 1]:17.3f}  {sign * alone[i - 1]:7.3f}")
    as_good = np.flatnonzero(alone >= past[min(10, n) - 1])
    needed = f"{as_good[0] + 1} trials" if len(as_good) else f"more than {n} trials"
    print(f"What {min(10, n)} trials reach with past studies takes {needed} without them.")


def reached(studies: Sequence[optuna.Study]) -> Floats:  # (studies, n), larger is better
    """Return what each study has reached after 1, 2, ..., n trials."""
    runs = [losses_of(study) for study in studies]
    n = min(map(len, runs))
    losses = np.array([run[:n] for run in runs])  # (studies, n, m)
    if losses.shape[2] == 1:
        return -np.minimum.accumulate(losses[:, :, 0], axis=1)
    found = losses[np.isfinite(losses).all(axis=2)]
    best, worst = found.min(axis=0), np.quantile(found, 0.9, axis=0)
    width = np.where(worst > best, worst - best, 1.0)
    return np.array([hypervolumes(np.minimum((run - best) / width, 1.0)) for run in losses])


def hypervolumes(losses: Floats) -> list[float]:  # (n, m) in the unit box -> n
    corner = np.ones(losses.shape[1])
    return [moocore.hypervolume(losses[: i + 1], ref=corner) for i in range(len(losses))]


def losses_of(study: optuna.Study) -> Floats:  # (n, m)
    """Return the values of all trials, to be minimised; inf where a trial found nothing."""
    signs = [-1.0 if d == StudyDirection.MAXIMIZE else 1.0 for d in study.directions]
    nothing = [np.inf] * len(signs)
    return np.array(
        [np.multiply(t.values, signs) if is_feasible(t) else nothing for t in study.trials]
    )


def is_feasible(trial: optuna.trial.FrozenTrial) -> bool:
    is_complete = trial.state == optuna.trial.TrialState.COMPLETE
    return is_complete and max(trial.constraints.values(), default=0.0) <= 0.0
