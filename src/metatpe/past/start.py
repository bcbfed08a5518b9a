r"""Warm starts: the first configurations of a study, from past tasks.

The portfolio: configurations that serve the past tasks together (`past.portfolio`).

The draw, the paper's warm start: the best of each past task.

    pool = the top ceil(N_init / (T - 1)) of each of the T - 1 past tasks
    the first N_init trials = N_init of the pool at random, without replacement

Behind the pool stands a reserve, the next best of each past task in turn, for a configuration that
the study has evaluated already or that does not fit its space; behind a portfolio, the pool and
the reserve. The order depends on the past tasks and N_init alone, not on the seed: workers that
have the same sources agree on it without talking to each other.

A search by nothing but first configurations has a larger pool: the top ceil(fraction * n) of each
past task of n observations, all of them in random order.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metatpe.past.portfolio import Member
from metatpe.past.task import Task
from metatpe.study.record import Reason
from metatpe.tpe.pareto import order

_RESERVE = 64  # per past task; with more than ten, 640 in total


@dataclass(frozen=True)
class First:
    """A configuration to start with, the past tasks that it comes from or serves, and why."""

    params: Mapping[str, Any]
    sources: tuple[str, ...] = ()
    reason: Reason = "best"


@dataclass(frozen=True)
class Start:
    """The first configurations of a study: one for each of n trials, and a reserve behind them."""

    n: int
    configurations: Sequence[First] = ()
    n_drawn: int = 0  # configurations before the reserve
    n_served: int = 0  # trials that need no reserve

    def order_for(self, index: int, *, has_collided: bool = False) -> list[int]:
        """Return the configurations that trial `index` of the start tries, by their index.

        Its own, then the reserve, one entry of its own first, so that parallel trials try
        different ones; last those that belong to later trials.

        Args:
            index: Which of the n trials.
            has_collided: Whether another trial has chosen the same at the same time. Two such
                trials would go on choosing the same of the reserve, so each has a part of its own.
        """
        n, n_all = self.n, len(self.configurations)
        own = [n + max(0, index - self.n_served)]
        if has_collided:
            own = [*range(n + (index - self.n_served) % n, n_all, n)]
        candidates = [index, *own, *range(n, n_all), *range(index + 1, n)]
        return [i for i in candidates if i < n_all and self.configurations[i].params]


def draw(tasks: Sequence[Task], n: int) -> Start:
    """Return the start of the paper: n at random of the best of each past task."""
    n_best = n + _RESERVE
    if len(tasks) > 10:
        n_best = math.ceil(n / len(tasks)) + math.ceil(10 * _RESERVE / len(tasks))
    best = [_best_of(task, n_best) for task in tasks]
    pool, reserve = pool_and_reserve(best, n, rng=_rng_of(tasks))
    return Start(n, pool + reserve, len(pool))


def portfolio_start(
    members: Mapping[int, Member], drawn: Start, portfolio: Sequence[Member]
) -> Start:
    """Return the start with a portfolio, and what would be drawn as its reserve.

    Args:
        members: By the trial of the start that gets it.
        drawn: The start without a portfolio.
        portfolio: The portfolio before any result. It is not in the reserve: a trial that began
            at the same time may have chosen from it.
    """
    firsts = {i: First(m.params, m.serves, "portfolio") for i, m in members.items()}
    # The reserve has the same place in every start: workers know its entries by their index.
    placed = [firsts.get(i, First({})) for i in range(drawn.n)]
    reserve = _distinct(drawn.configurations, {_key(First(m.params)) for m in portfolio})
    return Start(drawn.n, [*placed, *reserve], drawn.n, len(portfolio))


def reversed_start(tasks: Sequence[Task], n: int) -> Start:
    """Return the same with the losses negated; what failed stays the worst."""
    negated = [replace(t, losses=np.where(t.losses == np.inf, np.inf, -t.losses)) for t in tasks]
    start = draw(negated, n)
    return replace(
        start, configurations=[replace(f, reason="reversed") for f in start.configurations]
    )


def top(tasks: Sequence[Task], fraction: float) -> Start:
    """Return the best fraction of each past task, different ones only, in random order."""
    # 1e-9: as in `pareto.n_good`, a product that is a whole number is not rounded up.
    best = [_best_of(task, math.ceil(fraction * len(task) - 1e-9)) for task in tasks]
    found = _distinct(_round_robin(best), set())
    shuffled = [found[i] for i in _rng_of(tasks).permutation(len(found))]
    return Start(len(shuffled), shuffled, len(shuffled))


def pool_and_reserve(
    best: Sequence[Sequence[First]],  # best[m]: configurations of past task m, best first
    n: int,
    *,
    rng: np.random.Generator,
) -> tuple[list[First], list[First]]:
    """Return the pool of the paper in random order, and the reserve behind it."""
    per_task = -(-n // max(len(best), 1))
    seen: set[str] = set()
    pool = _distinct(_round_robin([ranked[:per_task] for ranked in best]), seen)
    shuffled = [pool[i] for i in rng.permutation(len(pool))]
    return shuffled, _distinct(_round_robin([ranked[per_task:] for ranked in best]), seen)


def _best_of(task: Task, n: int) -> list[First]:
    ranked = order(task.losses, task.violation, n=n)
    found = task.configurations([int(row) for row in ranked])
    return [First(params, (task.name,)) for params in found]


def _rng_of(tasks: Sequence[Task]) -> np.random.Generator:
    """Return random numbers that depend on the past tasks alone."""
    content = hashlib.sha256()
    for task in tasks:
        content.update(task.X.tobytes())
        content.update(task.losses.tobytes())
    return np.random.default_rng(int.from_bytes(content.digest()[:8], "big"))


def _round_robin(best: Sequence[Sequence[First]]) -> Iterator[First]:
    """Yield the best of each task, then the second best of each, and so on."""
    for i in range(max((len(ranked) for ranked in best), default=0)):
        yield from (ranked[i] for ranked in best if i < len(ranked))


def _distinct(picks: Iterable[First], seen: set[str]) -> list[First]:
    """Return different configurations, none of those seen before, with all of their sources."""
    found: dict[str, First] = {}
    for pick in picks:
        key = _key(pick)
        if key in found:
            # Each task once: one that has evaluated the same twice is still one.
            sources = dict.fromkeys(found[key].sources + pick.sources)
            found[key] = replace(found[key], sources=tuple(sources))
        elif key not in seen:
            found[key] = pick
    seen.update(found)
    return list(found.values())


def _key(first: First) -> str:
    return repr(sorted(first.params.items()))
