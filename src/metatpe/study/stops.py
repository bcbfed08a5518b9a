"""What a pruner wrote down about a trial that it stopped.

user attribute   metatpe:pruned   reason, step, chance, base, influence, expected, deviation
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from optuna.study import Study
from optuna.trial import FrozenTrial

_KEY = "metatpe:pruned"

StopReason = Literal["curve", "diverged"]


@dataclass(frozen=True)
class PruningRecord:
    """Why and when a trial was stopped.

    Attributes:
        number: The number of the trial.
        step: The step of its last report.
        reason: "curve" (trials with such a curve seldom end among the best) or "diverged" (NaN or
            an infinite value after a finite one).
        chance: The probability of ending among the best five per cent, None for "diverged".
        base: The same probability for a new trial, None for "diverged".
        influence: How much past studies influenced it, from 0 (the study's own curves alone) to 1.
        expected: The final value that was expected; None for "diverged" and where a study has
            several objectives.
        deviation: The standard deviation of that expectation.

    Example:
        >>> PruningRecord(7, 4, "curve", chance=0.01, base=0.05, influence=1.0, expected=0.4)
        PruningRecord(number=7, step=4, reason='curve', chance=0.01, base=0.05, ...)
    """

    number: int
    step: int
    reason: StopReason
    chance: float | None = None
    base: float | None = None
    influence: float | None = None
    expected: float | None = None
    deviation: float | None = None


def pruning_history(study: Study) -> list[PruningRecord]:
    """Return why and when each trial was stopped that `TransferPruner` has stopped.

    Example:
        >>> for record in pruning_history(study):
        ...     print(record.number, record.step, record.reason, record.expected)
    """
    records = map(stop_of, trials_of(study))
    return [record for record in records if record is not None]


def trials_of(study: Study) -> list[FrozenTrial]:
    """Return the trials of a study, and refuse what is none, such as its name."""
    if not isinstance(study, Study):
        raise TypeError(
            f"study must be an Optuna study, but is {study!r}; "
            "optuna.load_study(study_name=..., storage=...) opens one."
        )
    return study.get_trials(deepcopy=False)


def stop_of(trial: FrozenTrial) -> PruningRecord | None:
    """Return why a trial was stopped, None where no record was written."""
    stored = trial.user_attrs.get(_KEY)
    return None if stored is None else PruningRecord(trial.number, **stored)


def stop_attributes(record: PruningRecord) -> dict[str, Any]:
    """Return the attribute that holds a record."""
    names = ("chance", "base", "influence", "expected", "deviation")
    numbers = {name: getattr(record, name) for name in names}
    kept = {k: float(f"{v:.6g}") for k, v in numbers.items() if v is not None and math.isfinite(v)}
    return {_KEY: {"step": record.step, "reason": record.reason, **kept}}
