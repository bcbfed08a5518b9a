"""The past studies of a run of `metatpe tune`: which of them it uses, and their objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study

from metatpe.past.read.studies import load_tasks, why_not_task
from metatpe.past.read.summary import (
    Objectives,
    agreed_objectives,
    nothing_left,
    summarise,
)
from metatpe.past.task import Task
from metatpe.space import Space

_ADVICE = (
    "say with --direction, once per objective, what the new study is to have, or choose past "
    "studies that agree with --from."
)


def complete_objectives(
    storage: BaseStorage, names: Sequence[str], given: Objectives
) -> Objectives:
    """Return the objectives of a new study: what was given, the rest as past studies have it.

    Raises:
        ValueError: The past studies differ, and nothing was given.
    """
    found = summarise(storage, names)
    past = {s.study: Objectives.of(s) for s in found if not s.left_out}
    alike = {name: other for name, other in past.items() if _is_compatible(given, other)}
    if not alike:
        return given
    agreed = agreed_objectives(alike, _ADVICE)
    return Objectives(given.directions or agreed.directions, given.names or agreed.names)


def _is_compatible(given: Objectives, past: Objectives) -> bool:
    """Return whether nothing that was given contradicts a past study."""
    if given.directions and given.directions != past.directions:
        return False
    if given.names and len(given.names) != len(past.directions):
        return False
    return not (given.names and past.names) or given.names == past.names


def load_past(
    storage: BaseStorage,
    names: Sequence[str],
    like: Study,
    space: Mapping[str, BaseDistribution],
    defaults: Mapping[str, Any],
) -> tuple[list[Task], list[str]]:
    """Return the past studies that can help a study, and a sentence about each of the others.

    Args:
        storage: Where they are.
        names: Names or patterns.
        like: The study.
        space: The parameters of the objective, where they are known beforehand.
        defaults: As `load_tasks` takes them.

    Raises:
        ValueError: None of them can help.
    """
    found = summarise(storage, names, like=like, defaults=defaults)
    left_out = [summary for summary in found if summary.left_out]
    usable = [summary.study for summary in found if not summary.left_out]
    if not usable:
        raise ValueError(nothing_left(left_out))
    remarks = [f"left out: {summary.study}: {summary.left_out}" for summary in left_out]
    tasks = []
    for task in load_tasks(storage, usable, defaults=defaults):
        if reason := why_not_task(task, Space(space)):
            remarks.append(f"left out: {task.name}: {reason}")
        else:
            tasks.append(task)
    if not tasks:
        raise ValueError(f"no past study can be used; {remarks[0]}")
    return tasks, remarks
