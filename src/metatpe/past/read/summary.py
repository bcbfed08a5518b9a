"""Studies of a storage seen as past tasks, and a task written back as a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import optuna
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.trial import create_trial

from metatpe.past.read.storage import StorageError, plain_errors, study_errors
from metatpe.past.read.studies import space_of, study_names, why_not, why_not_task
from metatpe.past.task import Task
from metatpe.space import Space
from metatpe.study.trials import n_usable, signs_of, used_distributions


@dataclass(frozen=True)
class Left:
    """What of a past task is left in the space of a new study."""

    shared: list[str]  # the parameters of both
    dropped: list[str]  # those that only the past task has
    lacking: list[str]  # those that only the new study has
    outside: dict[str, int]  # shared parameter -> values that the new study does not have
    observations: int  # that still say something

    @classmethod
    def of(cls, task: Task, space: Space) -> Left:
        """Compare a task with the space of a study."""
        encoded = task.encode_in(space)
        return cls(
            shared=list(encoded.lost),
            dropped=[name for name in task.space.names if name not in space.names],
            lacking=[name for name in space.names if name not in task.space.names],
            outside={name: n for name, n in encoded.lost.items() if n},
            observations=int(encoded.is_usable.sum()),
        )


@dataclass(frozen=True)
class Summary:
    """What a study holds."""

    study: str
    trials: int
    observations: int  # finished trials with a parameter
    objectives: list[str]  # their names, or numbers
    directions: list[str]
    parameters: dict[str, BaseDistribution]
    left_out: str  # why it cannot be a past task (of the new study); empty where it can
    left: Left | None  # None where it is left out, or nothing is known of the new study's space


def summarise(
    storage: BaseStorage,
    names: Sequence[str],
    *,
    like: Study | Space | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> list[Summary]:
    """Return what the studies of a storage hold, and what `load_tasks` would make of them.

    Raises:
        ValueError: As `load_tasks` does.
    """
    space = space_of(like)
    found = []
    for name in study_names(storage, names):
        with study_errors(storage, name):
            study = optuna.load_study(study_name=name, storage=storage)
            found.append(_summary(study, like, space, defaults or {}))
    return found


def _summary(
    study: Study, like: Study | Space | None, space: Space, defaults: Mapping[str, Any]
) -> Summary:
    trials = study.get_trials(deepcopy=False)
    reason, left = why_not(study, like), None
    if not reason and like is not None:
        task = Task.from_study(study).with_defaults(defaults)
        reason = why_not_task(task, like)
        left = Left.of(task, space) if len(space) and not reason else None
    return Summary(
        study=study.study_name,
        trials=len(trials),
        observations=n_usable(study),
        objectives=study.metric_names or [str(i) for i in range(len(study.directions))],
        directions=[direction.name.lower() for direction in study.directions],
        parameters=used_distributions(trials),
        left_out=reason,
        left=left,
    )


def nothing_left(left_out: Sequence[Summary]) -> str:
    """Return a sentence about past studies of which none can be used."""
    if not left_out:
        return "there is no past study."
    first = left_out[0]
    number = f"none of the {len(left_out)} past studies" if left_out[1:] else "the past study"
    negation = "can" if left_out[1:] else "cannot"
    return f"{number} {negation} be used; {first.study!r} is left out because {first.left_out}"


class Objectives(NamedTuple):
    """The objectives of a study."""

    directions: tuple[str, ...]
    names: tuple[str, ...]  # empty where they have none

    @classmethod
    def of(cls, summary: Summary) -> Objectives:
        """Return those of a stored study, whose summary numbers objectives without a name."""
        names = tuple(summary.objectives)
        is_named = names != tuple(map(str, range(len(names))))
        return cls(tuple(summary.directions), names if is_named else ())


def agreed_objectives(past: Mapping[str, Objectives], advice: str) -> Objectives:
    """Return the objectives that past studies share; no names where these differ.

    Raises:
        ValueError: Their directions differ; the message ends with the advice.
    """
    examples = {found.directions: name for name, found in [*past.items()][::-1]}
    if len(examples) > 1:
        listed = " and ".join(f"{[*d]} (such as {n!r})" for d, n in [*examples.items()][::-1])
        raise ValueError(f"the past studies have the directions {listed}; {advice}")
    names = {found.names for found in past.values() if found.names}
    (directions,) = examples
    return Objectives(directions, names.pop() if len(names) == 1 else ())


def store_task(
    task: Task,
    storage: BaseStorage,
    name: str,
    directions: Sequence[str],
    *,
    rows: Sequence[int],
    step: Callable[[int], None] = lambda n: None,
) -> None:
    """Write observations of a task as a study of its own; all of it, or nothing.

    Args:
        task: What to write.
        storage: Where to.
        name: The study's name.
        directions: Which objectives get their sign back: "minimize" or "maximize" each.
        rows: The observations to write.
        step: Told how many were written.

    Raises:
        ValueError: There is a study with this name, or the storage cannot be used.
    """
    try:
        with plain_errors(storage):
            ways = [StudyDirection[direction.upper()] for direction in directions]
            study = optuna.create_study(study_name=name, storage=storage, directions=ways)
    except optuna.exceptions.DuplicatedStudyError:
        raise StorageError(f"study {name!r} already exists; choose another name.") from None
    try:
        with plain_errors(storage):
            if task.objective_names:
                study.set_metric_names(list(task.objective_names))
            _add_trials(study, task, rows, step)
    except BaseException:
        optuna.delete_study(study_name=name, storage=storage)
        raise


def _add_trials(
    study: Study, task: Task, rows: Sequence[int], step: Callable[[int], None]
) -> None:
    values = (task.losses[list(rows)] * signs_of(study.directions) + 0.0).tolist()  # no -0.0
    distributions = task.space.distributions
    for n, (params, row) in enumerate(zip(task.configurations(rows), values, strict=True), 1):
        used = {name: distributions[name] for name in params}
        study.add_trial(create_trial(values=row, params=params, distributions=used))
        step(n)
