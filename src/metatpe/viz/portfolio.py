"""What is drawn of a portfolio: what each of its configurations reaches on the past studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study

from metatpe.past.portfolio import Member, portfolio
from metatpe.past.task import Task
from metatpe.space import Floats, Mask, Space
from metatpe.viz.style import MAX_NUMBERS, Shown, value_text
from metatpe.words import counted

MAX_ROWS = 20  # past studies; of more, some are shown, and the mean of the others
MAX_VALUES = 12  # parameters whose values are written out
NONE = "–"  # a parameter that a configuration does not have
SERVES = "chosen for this study"
_ABOUT = (
    "Colour: what each configuration is expected to reach of what a past study has reached. 1: as "
    "much, 0: no more than its worst trial. Top: mean of what the configurations up to there "
    "reach together."
)


@dataclass(frozen=True, eq=False)
class Coverage(Shown):
    """What the k configurations of a portfolio reach on n past studies."""

    names: list[str]  # (n,) of the past studies, last the mean of the others
    alone: Floats  # (n, k)
    serves: Mask  # (n, k)
    together: Floats  # (k,) the mean over all past studies
    members: list[Member]
    values: dict[str, list[str]]  # parameter -> its value in each configuration; may be empty


def coverage_of(
    tasks: Sequence[Study | Task],
    k: int,
    space: Mapping[str, BaseDistribution] | Space | None,
) -> Coverage:
    """Return what the configurations of the portfolio of past studies reach.

    Raises:
        ValueError: There is no portfolio, see `metatpe.portfolio`.
    """
    members = portfolio(tasks, k, space=space)
    names = list(members[0].alone)
    alone = np.array([list(member.alone.values()) for member in members]).T
    serves = np.array([[name in member.serves for member in members] for name in names])
    shown, others = _shown_rows(alone, serves)
    means = alone[others].mean(axis=0, keepdims=True) if len(others) else alone[:0]
    values, about = _values_of(members)
    return Coverage(
        title="What the portfolio covers",
        about=f"{_ABOUT}{about}",
        names=[names[i] for i in shown]
        + [f"mean of {counted(len(others), 'other')}"] * len(means),
        alone=np.vstack([alone[shown], means]),
        serves=np.vstack([serves[shown], np.zeros(means.shape, dtype=np.bool_)]),
        together=np.array([np.mean(list(member.together.values())) for member in members]),
        members=members,
        values=values,
    )


def _shown_rows(alone: Floats, serves: Mask) -> tuple[list[int], list[int]]:
    """Return the past studies that are shown, sorted by their configurations, and the others."""
    first = np.where(serves.any(axis=1), serves.argmax(axis=1), alone.argmax(axis=1))
    order = np.lexsort((-alone.max(axis=1), first))
    n_shown = len(order) if len(order) <= MAX_ROWS else MAX_ROWS - 1
    # Evenly, so that each configuration has its part of the rows.
    shown = np.linspace(0, len(order) - 1, n_shown).astype(int)
    return order[shown].tolist(), np.delete(order, shown).tolist()


def _values_of(members: Sequence[Member]) -> tuple[dict[str, list[str]], str]:
    """Return the values of the parameters, at most those that differ, and what is left out."""
    if len(members) > MAX_NUMBERS:
        return {}, ""
    rows = {name: [_value(member, name) for member in members] for name in _parameters(members)}
    # Stable: of the parameters that differ, and of the others, the order stays.
    kept = sorted(rows, key=lambda name: len(set(rows[name])) == 1)[:MAX_VALUES]
    left_out = f" {MAX_VALUES} of {len(rows)} parameters." if len(rows) > MAX_VALUES else ""
    return {name: rows[name] for name in rows if name in kept}, left_out


def _parameters(members: Sequence[Member]) -> dict[str, None]:
    return {name: None for member in members for name in member.params}


def _value(member: Member, name: str) -> str:
    return _short(member.params[name]) if name in member.params else NONE


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else value_text(value)
