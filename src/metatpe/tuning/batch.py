"""The next configurations of a study, chosen in a copy of it: the study itself stays as it is.

The objective is not known, so the parameters are those that the trials of the study have used, and
the conditional ones of the past whose branch the study may not have reached. Before the first
trial, they are all parameters of the past. Of a configuration only that is returned which its
branch uses, as far as the trials of the study and the past tell (`gp.branches`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from metatpe.gp.branches import Branches
from metatpe.past.portfolio import joined_space
from metatpe.past.task import Task
from metatpe.space import Floats, Space
from metatpe.study.access import fixed_params
from metatpe.study.history import History
from metatpe.study.record import TransferRecord, record_of
from metatpe.study.trials import is_counted
from metatpe.tuning.setup import SAMPLERS, SamplerName


@dataclass(frozen=True)
class Choice:
    """A configuration to evaluate next, and why it was chosen."""

    params: dict[str, Any]
    record: TransferRecord


def next_batch(
    study: Study,
    tasks: Sequence[Task],
    n: int,
    *,
    sampler: SamplerName = "transfer",
    seed: int | None = None,
) -> list[Choice]:
    """Return the next n configurations of a study, each chosen as if those before were running.

    Nothing is written to the study. Trials that are enqueued and wait count as running, too.

    Args:
        study: The study.
        tasks: The past tasks, with as many objectives.
        n: How many configurations.
        sampler: Which sampler chooses.
        seed: Makes the choice reproducible.

    Raises:
        ValueError: Neither the study nor the past has a parameter, or none has two values.
    """
    trials = study.get_trials(deepcopy=False)
    used = _used_distributions(study, trials)
    space = Space({**used, **_unreached(tasks, used)})
    if not len(space):
        raise ValueError(
            f"the parameters of study {study.study_name!r} are not known: it has no trial with a "
            "parameter yet, and there is no past study that can be used."
        )
    if all(distribution.single() for distribution in space.distributions.values()):
        raise ValueError(
            f"there is nothing to choose in study {study.study_name!r}: each of its parameters "
            "has a single value."
        )
    search_space = None if used else space.distributions
    copy = _copy(study, SAMPLERS[sampler](tasks, search_space=search_space, seed=seed), space)
    branches = Branches.of(space.columns, _observed(space, trials, tasks), _no_rows(space))
    return [_choose(copy, space, branches) for _ in range(n)]


def _choose(copy: Study, space: Space, branches: Branches) -> Choice:
    trial = copy.ask(space.distributions)
    record = record_of(copy.get_trials(deepcopy=False)[trial.number])
    assert record is not None  # every sampler of the past leaves one
    (x,) = branches(space.encode([trial.params]))
    is_used = dict(zip(space.names, ~np.isnan(x), strict=True))
    return Choice({name: v for name, v in trial.params.items() if is_used[name]}, record)


def _used_distributions(
    study: Study, trials: Sequence[FrozenTrial]
) -> dict[str, BaseDistribution]:
    """Return what trials have asked for, the newest of each name, as the samplers have it."""
    history = History(study.directions)
    history.update(trials)
    return history.distributions(history.running(trials))


def _unreached(
    tasks: Sequence[Task], used: Mapping[str, BaseDistribution]
) -> dict[str, BaseDistribution]:
    """Return the parameters of branches that only the past has reached; all, before any trial."""
    conditional = {
        name
        for task in tasks
        for name, x in zip(task.space.names, task.X.T, strict=True)
        if np.isnan(x).any() or not used
    }
    past = joined_space(tasks).distributions
    return {name: past[name] for name in past if name in conditional and name not in used}


def _copy(study: Study, sampler: BaseSampler, space: Space) -> Study:
    """Return the study in memory, with all of its trials under their numbers."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # a copy is no study of the user's
    try:
        copy = optuna.create_study(
            study_name=study.study_name, directions=study.directions, sampler=sampler
        )
    finally:
        optuna.logging.set_verbosity(verbosity)
    if study.metric_names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            copy.set_metric_names(study.metric_names)
    for key, value in study.user_attrs.items():
        copy.set_user_attr(key, value)
    for trial in study.get_trials(deepcopy=False):
        is_waiting = trial.state == TrialState.WAITING
        copy.add_trial(_started(trial, space) if is_waiting else trial)
    return copy


def _started(trial: FrozenTrial, space: Space) -> FrozenTrial:
    """Return an enqueued trial as it will be when it runs; `ask` would hand it out otherwise."""
    params = space.fit(fixed_params(trial))
    return create_trial(
        state=TrialState.RUNNING,
        params=params,
        distributions={name: space.distributions[name] for name in params},
        user_attrs=trial.user_attrs,
        system_attrs=trial.system_attrs,
    )


def _observed(space: Space, trials: Sequence[FrozenTrial], tasks: Sequence[Task]) -> Floats:
    """Return the observations (n, d) that tell what a branch uses, those of the study last.

    A past task that lacks a parameter cannot tell when it is used.
    """
    past = [task.encode_in(space) for task in tasks if {*space.names} <= {*task.space.names}]
    own = space.encode([trial.params for trial in trials if is_counted(trial)])
    return np.vstack([*(encoded.X[encoded.is_usable] for encoded in past), own])


def _no_rows(space: Space) -> Floats:
    return np.empty((0, len(space)))
