"""A table of evaluations as a past task."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from metatpe.past.read.frames import Column
from metatpe.past.read.infer import Given, understand
from metatpe.past.task import Task
from metatpe.study.trials import signs_of
from metatpe.text import visible
from metatpe.words import counted

_logger = logging.getLogger(__name__)


def task_of(
    columns: Mapping[str, Column],
    objectives: str | Sequence[str],
    directions: str | Sequence[str],
    params: Sequence[str] | Mapping[str, Given] | None,
    name: str,
    source: str,  # what errors call the table
) -> Task:
    """Return the task of a table; see `Task.from_dataframe`."""
    names = [objectives] if isinstance(objectives, str) else list(objectives)
    signs = signs_of(directions_of(directions, len(names)))
    table = understand(columns, names, params, source)
    task = Task(
        name=name,
        space=table.space,
        X=table.space.encode_numbers(table.numbers),
        losses=table.values * signs,
        objective_names=tuple(names),
        numbers=table.numbers,
    )
    for remark in table.remarks:
        _logger.warning("%s: %s.", visible(source), visible(remark))
    _logger.info("%s was read as %s", visible(source), task.describe())
    return task


def directions_of(directions: str | Sequence[str], n: int) -> list[str]:
    """Return one direction per objective; a single one is that of all.

    Raises:
        ValueError: A direction is neither minimize nor maximize, or their number is wrong.
    """
    found = [directions] * n if isinstance(directions, str) else list(directions)
    for direction in found:
        if direction not in ("minimize", "maximize"):
            raise ValueError(f"a direction is minimize or maximize, not {direction!r}.")
    if len(found) != n or not n:
        raise ValueError(
            f"{counted(len(found), 'direction')} for {counted(n, 'objective')}: give one for each."
        )
    return found
