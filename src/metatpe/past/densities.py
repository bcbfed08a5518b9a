r"""The densities of past tasks in one space: Algorithm 1 of the paper, and the acquisition.

What depends on the past tasks and the space alone is computed once: the densities, importances,
and the points at which tasks are compared. Of what depends on the study too, the last result is
kept. The mathematics is in `tpe`: `kde` for the densities, `importance` for the kept columns,
`kernel` for the similarities, `acquisition` for the score.

Shapes: M past tasks, d columns; X (n, d), good observations (n_good, d), candidates (C, d).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from metatpe.past.task import Encoded, Task
from metatpe.recent import Recent
from metatpe.space import Columns, Floats, Ints
from metatpe.tpe.acquisition import MAX_KERNELS, MAX_OWN, Densities, score, score_some
from metatpe.tpe.importance import importances, kept_columns, mean_importances
from metatpe.tpe.kde import Parzen, Points
from metatpe.tpe.kernel import Nodes, make_nodes, similarities
from metatpe.tpe.pareto import levels, split
from metatpe.tpe.pool import Pool
from metatpe.tpe.ranking import rank_correlation

_MAX_NODES = 8  # sets of kept columns whose nodes are remembered
_MAX_POOLS = 2  # sets of columns whose kernels are kept side by side
_N_COMPARED = 25  # beyond so many past tasks, the total number of points stays that of 25
_MAX_PAIRS = 1 << 21  # of points and kernels of the study, but never fewer than `_MIN_POINTS`
_MIN_POINTS = 16  # for each past task


class PastDensities:
    """The good and the bad density of each past task.

    Args:
        columns: The space.
        rows: The tasks, and their observations in the space.
        gamma: The fraction of a task's observations that count as good.
        keeps_front: See `tpe.pareto.split`.
    """

    def __init__(
        self,
        columns: Columns,
        rows: Sequence[tuple[Task, Encoded]],
        gamma: float,
        *,
        keeps_front: bool = True,
    ) -> None:
        self._columns = columns
        self._gamma = gamma
        self.tasks = [
            _densities(columns, task, encoded, gamma, keeps_front) for task, encoded in rows
        ]
        self._nodes: Recent[tuple[tuple[int, ...], int], list[Nodes]] = Recent(_MAX_NODES)
        self._pools: Recent[tuple[int, ...], tuple[Pool, Pool]] = Recent(_MAX_POOLS)
        self._targets: Recent[bytes, Parzen] = Recent(1)
        self._similarities: Recent[bytes, tuple[Floats, tuple[int, ...]]] = Recent(1)
        self._levels: Recent[bytes, Ints] = Recent(1)
        self._agreement: Recent[bytes, Floats] = Recent(1)
        self._ratios = (np.empty((0, len(columns))), np.empty((len(rows), 0)))

    def good_of_study(self, X: Floats) -> Parzen:  # (n_good, d)
        """Return the density of the study's good observations.

        They stay the same whenever a new observation is bad; so does the last result.
        """
        return self._targets.get(X.tobytes(), lambda: Parzen(self._columns, X))

    # Algorithm 1: the task kernel ----------------------------------------------------------------

    def similarities(
        self, good: Parzen, *, eta: float, n_mc_samples: int, keeps_one: bool = True
    ) -> tuple[Floats, tuple[int, ...]]:  # (M,), indices of columns
        """Return the similarity of each past task to the study, and the kept columns.

        As with `good_of_study`, the last result is kept.

        Args:
            good: The density of the study's good observations.
            eta: The larger, the fewer columns are kept.
            n_mc_samples: Points at which two densities are compared.
            keeps_one: Whether at least one column is kept; see `tpe.importance`.
        """
        if not self.tasks or not len(good):
            return np.ones(len(self.tasks)), ()
        key = good.centers.tobytes() + repr((eta, n_mc_samples, keeps_one)).encode()
        return self._similarities.get(
            key, lambda: self._compare(good, eta, n_mc_samples, keeps_one)
        )

    def _compare(
        self, good: Parzen, eta: float, n_mc_samples: int, keeps_one: bool
    ) -> tuple[Floats, tuple[int, ...]]:
        shared, total, counts = self._shared
        own = importances(good, self._gamma)[shared]
        V = mean_importances(own, total, counts)
        kept = tuple(int(shared[j]) for j in kept_columns(V, len(good), eta, keeps_one=keeps_one))
        if not kept and not keeps_one:
            return np.ones(len(self.tasks)), ()  # two densities of no column do not differ
        n_points = self._n_points(len(good), n_mc_samples)
        nodes = self._nodes.get(
            (kept, n_points),
            lambda: make_nodes([task.good for task in self.tasks], kept, n_points),
        )
        return similarities(good, nodes, len(self.tasks)), kept

    @cached_property
    def _shared(self) -> tuple[Ints, Floats, Ints]:  # (c,) each
        """The columns that some past task has, the sum of their importances, and how many have it.

        A column that no past task has cannot tell them apart.
        """
        V = np.stack([importances(task.good, self._gamma) for task in self.tasks])  # (M, d)
        n_having = np.count_nonzero(~np.isnan(V), axis=0)
        shared = np.flatnonzero(n_having)
        return shared, np.nansum(V[:, shared], axis=0), n_having[shared]

    def _n_points(self, n_good: int, n_mc_samples: int) -> int:
        """Return at how many points each past task is compared: fewer where there are many.

        Half as many, and half again, so that new points are seldom needed.
        """
        n, n_past = n_mc_samples, len(self.tasks)
        most = min(_N_COMPARED * n // n_past, _MAX_PAIRS // (n_past * max(n_good, 1)))
        while n > max(most, _MIN_POINTS):
            n = max(n // 2, _MIN_POINTS)
        return n

    # The acquisition -----------------------------------------------------------------------------

    def score(
        self, target: Densities, weights: Floats, X: Floats, *, rng: np.random.Generator
    ) -> Floats:  # (1 + M,), (C, d) -> (C,)
        """Return the acquisition, by a sample of the past tasks' kernels where there are many."""
        if (self._is_large or len(target.bad) > MAX_OWN) and weights[1:].any():
            everything = tuple(range(len(self._columns)))
            return score_some(target, self._pool(everything), weights, X, rng=rng)
        return score([target, *self.tasks], weights, X)

    @cached_property
    def _is_large(self) -> bool:
        """Whether the kernels are too many to look at each for every candidate."""
        good, bad = (sum(map(len, side)) for side in self._sides(range(len(self._columns))))
        return max(good, bad) > MAX_KERNELS

    def _sides(self, own: Sequence[int]) -> tuple[list[Parzen], list[Parzen]]:
        """Return the good and the bad densities of the columns `own`."""
        if len(own) == len(self._columns):
            return [task.good for task in self.tasks], [task.bad for task in self.tasks]
        reduced = [task.reduced(own) for task in self.tasks]
        return [good for good, _ in reduced], [bad for _, bad in reduced]

    def _pool(self, own: tuple[int, ...]) -> tuple[Pool, Pool]:
        """Return the kernels of all tasks in the columns `own`, side by side."""

        def make() -> tuple[Pool, Pool]:
            good, bad = self._sides(own)
            return Pool(good), Pool(bad)

        return self._pools.get(own, make)

    # What past tasks predict for observations ----------------------------------------------------

    def levels(self, losses: Floats, violation: Floats, lateness: Floats) -> Ints:  # (n,)
        """Return the level of each observation that tasks are judged by, see `pareto.levels`.

        The observations soon stay the same, so the last result is kept.
        """
        key = losses.tobytes() + violation.tobytes() + lateness.tobytes()
        return self._levels.get(key, lambda: levels(losses, violation, lateness))

    def agreement(self, X: Floats, levels: Ints) -> Floats:  # (n, d), (n,) -> (M,)
        """Return z_m: how well each past task orders observations.

        With r_m(x) = log p(x | good_m) - log p(x | bad_m) and rho_m its rank correlation with the
        levels, z_m = -rho_m sqrt(n - 1) is positive where the order is right, and standard normal
        where the two have no relation.

        Args:
            X: Observations of the study.
            levels: How far behind each of them is; see `tpe.pareto.levels`.
        """
        n = len(levels)
        if n < 2 or not self.tasks:
            return np.zeros(len(self.tasks))

        def compute() -> Floats:
            rho = rank_correlation(self._log_ratios(X), levels.astype(np.float64))
            return -rho * math.sqrt(n - 1)

        return self._agreement.get(X.tobytes() + levels.tobytes(), compute)

    def _log_ratios(self, X: Floats) -> Floats:  # (n, d) -> (M, n)
        """Return r_m of observations: mostly those of the last call, and a new one."""
        known, ratios = self._ratios
        n = len(known) if known.tobytes() == X[: len(known)].tobytes() else 0
        self._ratios = X, np.hstack([ratios[:, :n], self._log_ratios_of(X[n:])])
        return self._ratios[1]

    def _log_ratios_of(self, X: Floats) -> Floats:  # (n, d) -> (M, n)
        """Return r_m on the coordinates that each observation has.

        Rounded, so that mathematically equal ones have equal ranks on every machine.
        """
        ratios = np.empty((len(self.tasks), len(X)))
        is_present = ~np.isnan(X)
        for pattern in np.unique(is_present, axis=0):
            rows = np.flatnonzero((is_present == pattern).all(axis=1))
            own = tuple(int(j) for j in np.flatnonzero(pattern))
            good, bad = self._log_densities(own, X[rows][:, own])
            ratios[:, rows] = good - bad
        return ratios.round(6)

    def _log_densities(self, own: tuple[int, ...], X: Floats) -> tuple[Floats, Floats]:
        """Return the log densities (M, n) of both sides at points of the columns `own`, (n, c)."""
        if self._is_large and own:
            good, bad = self._pool(own)
            return good.log_pdf(X), bad.log_pdf(X)
        points = Points.of(self._columns.take(own), X)
        good_side, bad_side = self._sides(own)
        return (
            np.stack([p.log_pdf(points) for p in good_side]),
            np.stack([p.log_pdf(points) for p in bad_side]),
        )


def _densities(
    columns: Columns, task: Task, encoded: Encoded, gamma: float, keeps_front: bool
) -> Densities:
    """Return the densities of a past task; the split is that of all of its observations."""
    is_good = split(task.losses, task.violation, gamma, keeps_front=keeps_front)
    return Densities.of(columns, encoded.X[encoded.is_usable], is_good[encoded.is_usable])
