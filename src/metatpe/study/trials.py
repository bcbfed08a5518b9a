"""One trial, or the trials of one study, as the method sees them.

Losses are always minimised. `signs_of` is the one definition of the sign of a maximised objective:
it is applied where values become losses, here and in `past.read.tables`, and where losses are
shown as values again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from metatpe.distributions import is_same
from metatpe.space import Floats
from metatpe.study.stops import stop_of
from metatpe.tpe.pareto import ranks

REPORT = "metatpe:report:"  # and a step: a system attribute with one value per objective


def is_counted(trial: FrozenTrial) -> bool:
    """Return whether a trial is an observation: completed with numbers, or pruned."""
    if trial.state == TrialState.COMPLETE:
        return not any(np.isnan(trial.values))
    return trial.state == TrialState.PRUNED


def n_usable(study: Study) -> int:
    """Return how many of a study's trials are observations with a parameter."""
    return sum(is_counted(t) and bool(t.params) for t in study.get_trials(deepcopy=False))


def losses_of(trial: FrozenTrial, directions: Sequence[StudyDirection]) -> list[float]:
    """Return a trial's values as losses; inf for a pruned one."""
    if trial.state != TrialState.COMPLETE:
        return [float("inf")] * len(directions)
    return _signed(trial.values, directions)


def signs_of(directions: Sequence[StudyDirection | str]) -> Floats:  # (m,)
    """Return the factors that turn values into losses, and back: -1 for a maximised objective."""
    is_maximised = [d in (StudyDirection.MAXIMIZE, "maximize") for d in directions]
    return np.where(is_maximised, -1.0, 1.0)


def _signed(values: Sequence[float], directions: Sequence[StudyDirection]) -> list[float]:
    pairs = zip(values, signs_of(directions).tolist(), strict=True)
    return [sign * value for value, sign in pairs]


def expected_loss_of(
    trial: FrozenTrial, directions: Sequence[StudyDirection]
) -> tuple[float, float] | None:
    """Return the loss that a pruned trial was expected to reach, and its standard deviation.

    None without a record.
    """
    record = stop_of(trial) if trial.state == TrialState.PRUNED else None
    if record is None or record.expected is None or len(directions) > 1:
        return None
    return _signed([record.expected], directions)[0], record.deviation or 0.0


def curve_of(trial: FrozenTrial, directions: Sequence[StudyDirection]) -> dict[int, list[float]]:
    """Return the losses that a trial has reported, by step."""
    if len(directions) == 1:
        return {
            step: _signed([value], directions) for step, value in trial.intermediate_values.items()
        }
    reports = {
        int(key.removeprefix(REPORT)): values
        for key, values in trial.system_attrs.items()
        if key.startswith(REPORT) and len(values) == len(directions)
    }
    return {step: _signed(values, directions) for step, values in sorted(reports.items())}


def violation_of(trial: FrozenTrial) -> float:
    """Return the sum of a trial's violated constraints."""
    return float(sum(max(0.0, value) for value in trial.constraints.values()))


def lateness_of(
    trial: FrozenTrial, directions: Sequence[StudyDirection]
) -> tuple[float, float, float]:
    """Return zeros for a completed trial; pruned ones are sorted by it, the best first.

    One objective: the later the last report the better, then its value. Several: all alike.
    """
    if trial.state == TrialState.COMPLETE:
        return 0.0, 0.0, 0.0
    if len(directions) > 1 or trial.last_step is None:
        return 1.0, 1.0, 0.0
    (loss,) = _signed([trial.intermediate_values[trial.last_step]], directions)
    return 1.0, -float(trial.last_step), float("inf") if np.isnan(loss) else loss


def used_distributions(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return every parameter that trials have used; a range that changed covers all of them."""
    found: dict[str, list[BaseDistribution]] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            known = found.setdefault(name, [])
            if not known or not is_same(known[-1], distribution):
                known.append(distribution)
    return {name: joined(found[name]) for name in sorted(found)}


def joined(distributions: Sequence[BaseDistribution]) -> BaseDistribution:
    """Return one distribution with the values of all; if kinds differ, of the last one's kind."""
    last = distributions[-1]
    if all(is_same(d, last) for d in distributions):
        return last
    if isinstance(last, CategoricalDistribution):
        found = [d.choices for d in distributions if isinstance(d, CategoricalDistribution)]
        distinct = {repr(choice): choice for choices in found for choice in choices}
        return CategoricalDistribution([*distinct.values()])
    if isinstance(last, FloatDistribution):
        floats = [d for d in distributions if isinstance(d, FloatDistribution)]
        low, high = min(d.low for d in floats), max(d.high for d in floats)
        return FloatDistribution(low, high, log=last.log and low > 0)
    assert isinstance(last, IntDistribution)
    ints = [d for d in distributions if isinstance(d, IntDistribution)]
    lowest, highest = min(d.low for d in ints), max(d.high for d in ints)
    return IntDistribution(lowest, highest, log=last.log and lowest > 0)


def front_of(study: Study) -> list[FrozenTrial]:
    """Return the best trials, by number: not dominated and feasible; all that share the best."""
    trials = [
        t
        for t in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if is_counted(t) and violation_of(t) == 0.0
    ]
    if not trials:
        return []
    rank = ranks(np.array([losses_of(t, study.directions) for t in trials]))
    return [t for t, r in zip(trials, rank, strict=True) if r == 0]
