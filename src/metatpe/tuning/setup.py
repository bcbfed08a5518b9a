"""What a run of `metatpe tune` starts with: the study, its past studies, sampler and pruner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

import optuna
from optuna.pruners import (
    BasePruner,
    HyperbandPruner,
    MedianPruner,
    NopPruner,
    SuccessiveHalvingPruner,
)
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.trial import TrialState

from metatpe.past.read.storage import StorageError, open_storage, plain_errors
from metatpe.past.read.summary import Objectives
from metatpe.past.task import Task
from metatpe.pruning.pruner import TransferPruner
from metatpe.samplers.meta_tpe import MetaTPESampler
from metatpe.samplers.transfer import TransferSampler
from metatpe.tuning.objective import Command, Function
from metatpe.tuning.past import complete_objectives, load_past
from metatpe.tuning.patience import DEFAULT_PATIENCE
from metatpe.words import counted

SamplerName = Literal["meta-tpe", "transfer"]
SamplerChoice = Literal["auto", "meta-tpe", "transfer"]
SAMPLERS: dict[SamplerName, type[MetaTPESampler] | type[TransferSampler]] = {
    "meta-tpe": MetaTPESampler,
    "transfer": TransferSampler,
}
PrunerName = Literal["transfer", "median", "halving", "hyperband", "none"]
_PRUNERS: dict[PrunerName, Callable[[Sequence[Task]], BasePruner]] = {
    "transfer": TransferPruner,
    "median": lambda past: MedianPruner(),
    "halving": lambda past: SuccessiveHalvingPruner(),
    "hyperband": lambda past: HyperbandPruner(),
    "none": lambda past: NopPruner(),
}
_LONG = 1000  # trials, for which the suggestions of TransferSampler take too long
_FAST = 0.5  # seconds of an evaluation, which TransferSampler needs for a suggestion
_MIN_TIMED = 5  # finished trials whose durations say how long an evaluation takes


@dataclass(frozen=True)
class Tuning:
    """What is to be tuned, and for how long."""

    objective: Function | Command
    storage: str
    study: str
    sampler: SamplerChoice = "auto"
    pruner: PrunerName = "transfer"
    past: tuple[str, ...] = ()  # names or patterns of past studies
    directions: tuple[str, ...] = ()  # none: those of the study, of past studies, or minimize
    names: tuple[str, ...] = ()  # of the objectives
    n_trials: int = 100  # that the study is to have, those of earlier runs among them
    n_jobs: int = 1
    timeout: float | None = None  # seconds after which no trial is begun
    seed: int | None = None
    defaults: dict[str, Any] = field(default_factory=dict)
    logs: Path | None = None  # a folder for what the evaluations print
    patience: float = DEFAULT_PATIENCE  # seconds that the storage may be away
    keep_going: bool = False  # also if the first trials fail in the same way


@dataclass(frozen=True)
class Setup:
    """A run whose input was understood; nothing has been written yet."""

    tuning: Tuning  # with the objectives of past studies where none were given
    is_new: bool  # whether the study has to be created
    objectives: Objectives
    sources: Sequence[str]  # the past studies that are used
    left_out: Sequence[str]  # a sentence per past study that is not used
    sampler: BaseSampler
    sampler_name: SamplerName
    why: str  # it is this sampler
    pruner: BasePruner
    n_curves: int  # past studies with learning curves


def prepare(tuning: Tuning) -> Setup:
    """Read the study and its past studies, and choose sampler and pruner.

    Raises:
        ValueError: The study has other objectives, or no past study can be used.
        StorageError: The storage cannot be read.
    """
    known = _known_study(tuning)
    if known is None and tuning.past:
        tuning = _like_the_past(tuning)
    like = known or open_study(tuning)
    space = tuning.objective.space
    sources: list[Task] = []
    left_out: list[str] = []
    if tuning.past:
        opened = open_storage(tuning.storage)
        sources, left_out = load_past(opened, tuning.past, like, space, tuning.defaults)
    directions = tuple(direction.name.lower() for direction in like.directions)
    _check_report(tuning.objective, len(directions))
    name, why = choose_sampler(tuning, known)
    return Setup(
        tuning=tuning,
        is_new=known is None,
        objectives=Objectives(directions, tuple(like.metric_names or ())),
        sources=[task.name for task in sources],
        left_out=left_out,
        sampler=SAMPLERS[name](sources, search_space=space, seed=tuning.seed),
        sampler_name=name,
        why=why,
        pruner=_PRUNERS[tuning.pruner](sources),
        n_curves=sum(bool(len(task.curves)) for task in sources),
    )


def _known_study(tuning: Tuning) -> Study | None:
    """Return the study if it is there, and nothing speaks against going on with it."""
    try:
        storage = open_storage(tuning.storage)
    except StorageError:
        if tuning.past:
            raise
        return None  # it is made, or found to be unusable, when the objective was imported
    with plain_errors(tuning.storage):
        if tuning.study not in optuna.get_all_study_names(storage):
            return None
        study = optuna.load_study(study_name=tuning.study, storage=storage)
        _check_same(study, tuning)
        return study


def choose_sampler(tuning: Tuning, known: Study | None) -> tuple[SamplerName, str]:
    """Return the sampler of a run, and why it is this one."""
    if tuning.sampler != "auto":
        return tuning.sampler, "as asked for"
    if tuning.n_trials > _LONG:
        return "meta-tpe", f"because the study will have more than {_LONG} trials"
    trials = known.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)) if known else []
    seconds = [t.duration.total_seconds() for t in trials if t.duration is not None]
    if len(seconds) >= _MIN_TIMED and median(seconds) < _FAST:
        return "meta-tpe", f"because a trial takes only {median(seconds):.2g} s"
    return "transfer", "which gets the most out of each trial"


def _like_the_past(tuning: Tuning) -> Tuning:
    """Return what is to be tuned, with the objectives of past studies where none were given."""
    given = Objectives(tuning.directions, tuning.names)
    found = complete_objectives(open_storage(tuning.storage), tuning.past, given)
    return replace(tuning, directions=found.directions, names=found.names)


def open_study(
    tuning: Tuning, storage: BaseStorage | None = None, sampler: BaseSampler | None = None
) -> Study:
    """Return the study, made if it is not there; without a storage one in memory."""
    directions = tuning.directions or ["minimize"] * max(1, len(tuning.names))
    study = optuna.create_study(
        study_name=tuning.study,
        storage=storage,
        sampler=sampler,
        directions=[StudyDirection[direction.upper()] for direction in directions],
        load_if_exists=True,
    )
    if tuning.names and not study.metric_names:
        study.set_metric_names(list(tuning.names))
    return study


def _check_same(study: Study, tuning: Tuning) -> None:
    """Refuse to go on with a study that has other objectives."""
    directions = [direction.name.lower() for direction in study.directions]
    if tuning.directions and directions != list(tuning.directions):
        raise ValueError(
            f"study {study.study_name!r} already exists, and its directions are {directions}, not "
            f"{list(tuning.directions)}; leave them out to continue it, or choose another name."
        )
    if tuning.names and len(tuning.names) != len(directions):
        raise ValueError(
            f"study {study.study_name!r} has {counted(len(directions), 'objective')}, but "
            f"{len(tuning.names)} are named."
        )
    if tuning.names and study.metric_names and study.metric_names != list(tuning.names):
        raise ValueError(
            f"study {study.study_name!r} already exists, and its objectives are "
            f"{study.metric_names}, not {list(tuning.names)}."
        )


def _check_report(objective: Function | Command, n_objectives: int) -> None:
    """Refuse a pattern with another number of values than there are objectives."""
    report = objective.report if isinstance(objective, Command) else None
    if report is not None and report.n_values != n_objectives:
        raise ValueError(
            f"--report {report.text!r} has {counted(report.n_values, 'value')}, but the study has "
            f"{counted(n_objectives, 'objective')}; write {{value}} once per objective."
        )
