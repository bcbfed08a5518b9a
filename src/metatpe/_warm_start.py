r"""First configurations out of the past: the best of each past task.

    pool = the top ceil(N_init / (T - 1)) of each of the T - 1 past tasks
    the first N_init trials = N_init of the pool at random, without replacement

Where equal configurations leave too few, the next best of each past task follow in turn, and go on
as a reserve for a configuration that the study has already evaluated. The order depends on the
past tasks alone: workers that have the same sources agree on it without talking to each other.

A past that has turned out upside down gives warm starts once more, in the same way, out of its
tasks turned round: with -losses, where +inf stays the worst.

A search by nothing but warm starts has a larger pool: the top ceil(fraction * n) of each past task
of n observations, all of them in random order.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metatpe._pareto import order
from metatpe.tasks import Task

Configuration = Mapping[str, Any]
_RESERVE = 64  # of each past task, and of more than ten as many as of ten


def first_configurations(tasks: Sequence[Task], n_init: int) -> list[Configuration]:
    """Return the warm starts that past tasks give: `n_init` of them, and a reserve behind."""
    n = n_init + _RESERVE
    if len(tasks) > 10:
        n = math.ceil(n_init / len(tasks)) + math.ceil(10 * _RESERVE / len(tasks))
    best = [_best_of(task, n) for task in tasks]
    return warm_starts(best, n_init, rng=_rng_of(tasks))


def turned_round(task: Task) -> Task:
    """Return a task whose worst configurations are the best ones; what failed stays failed."""
    return replace(task, losses=np.where(task.losses == np.inf, np.inf, -task.losses))


def top_configurations(tasks: Sequence[Task], fraction: float) -> list[Configuration]:
    """Return the best fraction of each past task, different ones only, in random order."""
    # 1e-9: as in `_pareto.n_good`, a product that is a whole number is not rounded up.
    best = [_best_of(task, math.ceil(fraction * len(task) - 1e-9)) for task in tasks]
    top = _distinct(_in_turn(best), set())
    return [top[i] for i in _rng_of(tasks).permutation(len(top))]


def _best_of(task: Task, n: int) -> list[dict[str, Any]]:
    ranked = order(task.losses, task.violation, n=n)
    return task.configurations([int(row) for row in ranked])


def _rng_of(tasks: Sequence[Task]) -> np.random.Generator:
    """Return random numbers that depend on the past tasks alone."""
    content = hashlib.sha256()
    for task in tasks:
        content.update(task.X.tobytes())
        content.update(task.losses.tobytes())
    return np.random.default_rng(int.from_bytes(content.digest()[:8], "big"))


def warm_starts(
    best: Sequence[Sequence[Configuration]],  # best[m]: configurations of past task m, best first
    n_init: int,
    *,
    rng: np.random.Generator,
) -> list[Configuration]:
    """Return the warm starts in the order they are given out, and the reserve behind them."""
    per_task = -(-n_init // max(len(best), 1))
    seen: set[str] = set()
    top = _distinct(_in_turn([ranked[:per_task] for ranked in best]), seen)
    pool = [top[i] for i in rng.permutation(len(top))]
    return pool + _distinct(_in_turn([ranked[per_task:] for ranked in best]), seen)


def _in_turn(best: Sequence[Sequence[Configuration]]) -> Iterator[Configuration]:
    """Yield the best of each task, then the second best of each, and so on."""
    for i in range(max((len(ranked) for ranked in best), default=0)):
        yield from (ranked[i] for ranked in best if i < len(ranked))


def _distinct(picks: Iterable[Configuration], seen: set[str]) -> list[Configuration]:
    """Return the picks that were not seen before, and remember them."""
    fresh = []
    for configuration in picks:
        key = repr(sorted(configuration.items()))
        if key not in seen:
            seen.add(key)
            fresh.append(configuration)
    return fresh
