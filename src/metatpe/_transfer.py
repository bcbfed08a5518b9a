"""The whole method on arrays: from the current task's observations and the past tasks to a pick.

Ties the modules of the method together; knows neither trials nor studies. See `_pareto` for the
split, `_kde` for the densities, `_importance`, `_kernel` and `_trust` for the task weights,
`_acquisition` for the score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from metatpe._acquisition import MAX_KERNELS, MAX_OWN, Densities, score, score_some
from metatpe._importance import importances, kept_columns, mean_importances
from metatpe._kde import Parzen, Points
from metatpe._kernel import Nodes, make_nodes, similarities, task_weights
from metatpe._pareto import levels, split
from metatpe._pool import Pool
from metatpe._trust import is_upside_down, rank_correlation, trust
from metatpe.space import Columns, Floats, Ints, Space
from metatpe.tasks import Encoded, Task

_MAX_NODES = 8  # sets of kept columns whose nodes are remembered
_MAX_POOLS = 2  # sets of columns whose kernels are kept side by side
_N_COMPARED = 25  # past tasks that get all of `n_mc_samples` points; more share as many
_MAX_PAIRS = 1 << 21  # of points and kernels of the current task, as far as that leaves
_MIN_POINTS = 16  # for each past task


@dataclass(frozen=True)
class Settings:
    """The control parameters of the paper (see `MetaTPESampler`)."""

    gamma: float
    eta: float
    n_mc_samples: int
    is_naive: bool
    min_good: int = 0  # good observations that the current task needs to be compared


class Past:
    """The past tasks in one space: densities, importances, and where to compare them.

    What depends on the past tasks and the space alone is computed once; of what depends on the
    current task too, the last is remembered. `remarks` says what was lost on the way into the
    space.
    """

    def __init__(self, tasks: Sequence[Task], space: Space, settings: Settings) -> None:
        self._settings = settings
        encoded = [(task, task.encode_in(space)) for task in tasks]
        usable = [(task, in_space) for task, in_space in encoded if in_space.says.any()]
        self.names = tuple(task.name for task, _ in usable)
        self.densities = [
            _past_densities(space.columns, task, in_space, settings.gamma)
            for task, in_space in usable
        ]
        self.remarks = [
            f"source {task.name!r}{'' if in_space.says.any() else ' is skipped'}: {lost}"
            for task, in_space in encoded
            if (lost := in_space.describe())
        ]
        self._columns = space.columns
        self._last: tuple[Parzen, Floats, tuple[int, ...]] | None = None
        self._pools: dict[tuple[int, ...], tuple[Pool, Pool]] = {}
        self._judged = _Judged(np.empty((0, len(space))), np.empty((len(usable), 0)))
        self._levels: tuple[bytes, Ints] | None = None
        self._nodes: dict[tuple[tuple[int, ...], int], list[Nodes]] = {}

    @cached_property
    def importances(self) -> Floats:  # (M, d)
        """The importance of each column in each past task."""
        return np.stack([importances(task.good, self._settings.gamma) for task in self.densities])

    @cached_property
    def shared(self) -> tuple[Ints, Floats, Ints]:  # (c,) each
        """The columns that a past task has, and the sum of their importances over how many tasks.

        A column that no past task has cannot tell them apart.
        """
        n_having = np.count_nonzero(~np.isnan(self.importances), axis=0)
        shared = np.flatnonzero(n_having)
        return shared, np.nansum(self.importances[:, shared], axis=0), n_having[shared]

    def nodes(self, kept: tuple[int, ...], n_good: int) -> list[Nodes]:
        """Return where to compare densities on the kept columns with one of `n_good` kernels."""
        key = (kept, self.n_points(n_good))
        if key not in self._nodes:
            if len(self._nodes) >= _MAX_NODES:
                del self._nodes[next(iter(self._nodes))]
            self._nodes[key] = make_nodes([task.good for task in self.densities], *key)
        return self._nodes[key]

    def n_points(self, n_good: int) -> int:
        """Return at how many points each past task is compared: fewer where there are many.

        Half as many, and half again, so that new points are needed now and then only.
        """
        n, n_past = self._settings.n_mc_samples, len(self.densities)
        most = min(_N_COMPARED * n // n_past, _MAX_PAIRS // (n_past * max(n_good, 1)))
        while n > max(most, _MIN_POINTS):
            n = max(n // 2, _MIN_POINTS)
        return n

    def levels(self, losses: Floats, violation: Floats, lateness: Floats) -> Ints:  # (n,)
        """Return `_pareto.levels` of the observations that the past tasks are judged by.

        The last ones are remembered: after a while it is always the same observations.
        """
        key = losses.tobytes() + violation.tobytes() + lateness.tobytes()
        if self._levels is None or self._levels[0] != key:
            self._levels = (key, levels(losses, violation, lateness))
        return self._levels[1]

    def weigh(
        self, X_good: Floats, X: Floats, levels: Ints
    ) -> tuple[Parzen, Floats, tuple[int, ...]]:
        """Return the good density of the current task, the task weights, and the kept columns.

        Args:
            X_good: The good observations of the current task, (n_good, d).
            X: Those by which the past tasks are judged, (n, d).
            levels: And how far behind each of them is, (n,).
        """
        if 0 < len(X_good) < self._settings.min_good:
            return Parzen(self._columns, X_good), task_weights(np.zeros(len(self.names))), ()
        good, s, kept = self._compared(X_good)
        if self.densities and not self._settings.is_naive:
            s = s * self._judge(X, levels).trust
        return good, task_weights(s), kept

    def agreement(self, X: Floats, levels: Ints) -> Floats:  # (n, d), (n,) -> (M,)
        """Return how well each past task orders observations: 1 if as they are, -1 if reversed."""
        if len(levels) < 2:
            return np.zeros(len(self.names))
        return -rank_correlation(self._judge(X, levels).scores, levels.astype(np.float64))

    def is_upside_down(self, X: Floats, levels: Ints) -> bool:  # (n, d), (n,)
        """Return whether the past tasks, all in all, order observations worse than chance."""
        return bool(self.names) and is_upside_down(self._judge(X, levels).scores, levels)

    def _judge(self, X: Floats, levels: Ints) -> _Judged:  # (n, d), (n,)
        """Return what the past tasks think of observations, and remember it."""
        self._judged = self._judged.updated(self._opinions, X, levels)
        return self._judged

    def _compared(self, X: Floats) -> tuple[Parzen, Floats, tuple[int, ...]]:
        """Return the current task's good density, the similarities (M,) and the kept columns.

        The good observations stay the same whenever a new one is bad.
        """
        if self._last is None or not _are_same(self._last[0].centers, X):
            good = Parzen(self._columns, X)
            self._last = (good, *similarities_to(good, self, self._settings))
        return self._last

    def score(
        self, target: Densities, weights: Floats, X: Floats, *, rng: np.random.Generator
    ) -> Floats:  # (1 + M,), (C, d) -> (C,)
        """Return the acquisition, by a sample of the past tasks' kernels where there are many."""
        if (self.is_large or len(target.bad) > MAX_OWN) and weights[1:].any():
            everything = tuple(range(len(self._columns)))
            return score_some(target, self._pool(everything), weights, X, rng=rng)
        return score([target, *self.densities], weights, X)

    @cached_property
    def is_large(self) -> bool:
        """Whether the kernels are too many to look at each for every candidate."""
        good, bad = (sum(map(len, side)) for side in self._sides(range(len(self._columns))))
        return max(good, bad) > MAX_KERNELS

    def _sides(self, own: Sequence[int]) -> tuple[list[Parzen], list[Parzen]]:
        """Return the good and the bad densities of the columns `own`."""
        if len(own) == len(self._columns):
            return [task.good for task in self.densities], [task.bad for task in self.densities]
        reduced = [task.reduced(own) for task in self.densities]
        return [good for good, _ in reduced], [bad for _, bad in reduced]

    def _pool(self, own: tuple[int, ...]) -> tuple[Pool, Pool]:
        """Return the kernels of all tasks in the columns `own`, side by side."""
        if own not in self._pools:
            if len(self._pools) >= _MAX_POOLS:
                del self._pools[next(iter(self._pools))]
            good, bad = self._sides(own)
            self._pools[own] = Pool(good), Pool(bad)
        return self._pools[own]

    def _opinions(self, X: Floats) -> Floats:  # (n, d) -> (M, n)
        """Return the log density ratio of each task, on the coordinates that an observation has.

        Rounded, so that mathematically equal ones have equal ranks on every machine.
        """
        opinions = np.empty((len(self.densities), len(X)))
        is_present = ~np.isnan(X)
        for pattern in np.unique(is_present, axis=0):
            rows = np.flatnonzero((is_present == pattern).all(axis=1))
            own = tuple(int(j) for j in np.flatnonzero(pattern))
            good, bad = self._log_densities(own, X[rows][:, own])
            opinions[:, rows] = good - bad
        return opinions.round(6)

    def _log_densities(self, own: tuple[int, ...], X: Floats) -> tuple[Floats, Floats]:
        """Return the log densities (M, n) of both sides at points of the columns `own`, (n, c)."""
        if self.is_large and own:
            good, bad = self._pool(own)
            return good.log_pdf(X), bad.log_pdf(X)
        points = Points.of(self._columns.take(own), X)
        good_side, bad_side = self._sides(own)
        return (
            np.stack([p.log_pdf(points) for p in good_side]),
            np.stack([p.log_pdf(points) for p in bad_side]),
        )


class _Judged(NamedTuple):
    """What the past tasks think of the current one's observations, and what that says of them."""

    X: Floats  # (n, d)
    scores: Floats  # (M, n)
    levels: Ints | None = None  # (n,)
    trust: Floats = np.empty(0)  # (M,)

    def updated(self, opinions: Callable[[Floats], Floats], X: Floats, levels: Ints) -> _Judged:
        """Return the same for other observations: mostly these and a new one, or just these.

        Args:
            opinions: Returns what each task thinks of observations, (n, d) -> (M, n).
            X: The observations, (n, d).
            levels: How far behind each of them is, (n,).
        """
        n = len(self.X) if _are_same(self.X, X[: len(self.X)]) else 0
        if n == len(X) and self.levels is not None and np.array_equal(self.levels, levels):
            return self
        scores = np.hstack([self.scores[:, :n], opinions(X[n:])])
        return _Judged(X, scores, levels, trust(scores, levels))


def _are_same(A: Floats, B: Floats) -> bool:
    """Return whether two arrays are equal, missing entries included (faster than array_equal)."""
    return A.shape == B.shape and A.tobytes() == B.tobytes()


def _past_densities(columns: Columns, task: Task, encoded: Encoded, gamma: float) -> Densities:
    """Return the densities of a past task; the split is that of all of its observations."""
    is_good = split(task.losses, task.violation, gamma)
    return Densities.of(columns, encoded.X[encoded.says], is_good[encoded.says])


def similarities_to(
    target: Parzen, past: Past, settings: Settings
) -> tuple[Floats, tuple[int, ...]]:
    """Return the similarity of each past task (M,), and the kept columns.

    Args:
        target: The good density of the current task.
        past: The past tasks.
        settings: eta and whether the weights are the naive ones.
    """
    n_past = len(past.densities)
    if settings.is_naive or n_past == 0 or not len(target):
        return np.ones(n_past), ()
    shared, total, counts = past.shared
    own = importances(target, settings.gamma)[shared]
    top = kept_columns(mean_importances(own, total, counts), len(target), settings.eta)
    kept = tuple(int(shared[j]) for j in top)
    return similarities(target, past.nodes(kept, len(target)), n_past), kept
