r"""The acquisition: where all tasks together expect a good configuration (Eqs. 6 and 10).

    p(x, t | good) ~ sum_m N_m^good * w_m * p(x | good_m)             m = 0 is the current task
    p(x, t | bad)  ~ sum_m N_m^bad  * w_m * p(x | bad_m)
    x* = argmax over candidates of p(x, t | good) / p(x, t | bad)

w is the task kernel, N_m the number of observations of task m on that side. Candidates are drawn
from the good densities and scored with the joint densities.

Departures from the paper:

- Candidates are drawn column by column from the marginals (rule `marginals`), as in the authors'
  code. On continuous spaces this is better than joint draws.
- They are drawn from each task in proportion to its weight (rule `proportion`), not the same
  number from each. Far from the observations of the current task the ratio is near 1 whatever a
  task weighs, and often the largest. With as many candidates there, a past task of hardly any
  weight goes on drawing evaluations to its own best region.

Shapes: log_good, log_bad (T, C); weights (T,); the log ratio (C,).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metatpe.space import Columns, Floats, Ints, Mask
from metatpe.tpe.kde import Parzen, Points, sample
from metatpe.tpe.pool import Pool

MAX_KERNELS = 2048  # of the past on one side that are looked at each, as ten tasks of 200 have
MAX_OWN = 4096  # bad observations of the target that its density is made from
_N_FIRST = 512  # kernels of the past, and of the target, on one side for a first look
_N_SECOND = 8192  # kernels of the past on one side for a second look, and all of the target
_N_BEST = 128  # candidates that get a second look
MAX_TASKS = 10  # that candidates are drawn for; each task's share of them is still its weight


@dataclass(frozen=True, eq=False)
class Densities:
    """The two densities of one task."""

    good: Parzen
    bad: Parzen

    @classmethod
    def of(cls, columns: Columns, X: Floats, is_good: Mask) -> Densities:
        """Fit both sides of the split of observations."""
        return cls(Parzen(columns, X[is_good]), Parzen(columns, X[~is_good]))

    def reduced(self, kept: Sequence[int]) -> tuple[Parzen, Parzen]:
        """Return both densities of the columns `kept` alone."""
        return self.good.reduced(kept), self.bad.reduced(kept)


def log_density_ratio(
    log_good: Floats,  # (T, C)
    log_bad: Floats,  # (T, C)
    good_weights: Floats,  # (T,)  N_t^good * w_t
    bad_weights: Floats,  # (T,)  N_t^bad * w_t
) -> Floats:  # (C,)
    """Return log p(x, t | good) - log p(x, t | bad), up to a constant."""
    return _log_mixture(log_good, good_weights) - _log_mixture(log_bad, bad_weights)


def _log_mixture(log_densities: Floats, weights: Floats) -> Floats:  # (T, C), (T,) -> (C,)
    """Return the log of a weighted sum (scipy's logsumexp costs a millisecond of checks)."""
    with np.errstate(divide="ignore"):  # a weight of zero
        parts = log_densities + np.log(weights)[:, None]
    if len(parts) == 1:
        return np.asarray(parts[0])
    top = parts.max(axis=0)
    mixture: Floats = top + np.log(np.exp(parts - top).sum(axis=0))
    return mixture


def draw_candidates(
    tasks: Sequence[Densities],
    weights: Floats,
    n: int,
    *,
    rng: np.random.Generator,
    in_proportion: bool = True,
    jointly: bool = False,
) -> Floats:  # (n * tasks that count, d)
    """Return n candidates for every task that counts, from each in proportion to its weight.

    1/sum(w^2) tasks count, at most `MAX_TASKS`: all of them if their weights are equal, one if it
    has all the weight.
    Algorithm 2 of the paper draws n from every task, jointly.

    Args:
        tasks: The densities, the current task first.
        weights: Of each task, (T,).
        n: The candidates of one task.
        rng: Random numbers.
        in_proportion: False for n from every task.
        jointly: See `kde.sample`.
    """
    if not in_proportion:
        return sample([t.good for t in tasks], [n] * len(tasks), rng=rng, jointly=jointly)
    weighty = np.flatnonzero(weights > 0)
    n_tasks = min(1.0 / float(np.sum(weights**2)), MAX_TASKS)
    counts = _shares(weights[weighty], round(n * n_tasks), rng=rng)
    goods = [tasks[int(m)].good for m in weighty[counts > 0]]
    return sample(goods, counts[counts > 0], rng=rng, jointly=jointly)


def _shares(weights: Floats, n: int, *, rng: np.random.Generator) -> Ints:  # (T,) -> (T,)
    """Return n split by weight into whole numbers, each right on average and within one."""
    ends = np.floor(np.cumsum(weights / weights.sum()) * n + rng.random()).astype(np.int64)
    ends[-1] = n
    return np.diff(ends, prepend=0)


def score(tasks: Sequence[Densities], weights: Floats, X: Floats) -> Floats:  # (C,)
    """Return the acquisition at complete points; tasks without a weight are not looked at."""
    weighty = [m for m in range(len(tasks)) if weights[m] > 0]
    points = Points.of(tasks[0].good.columns, X, is_coarse=True)
    goods, bads = [tasks[m].good for m in weighty], [tasks[m].bad for m in weighty]
    return log_density_ratio(
        np.stack([good.log_pdf(points) for good in goods]),
        np.stack([bad.log_pdf(points) for bad in bads]),
        _counted(goods, weights[weighty]),
        _counted(bads, weights[weighty]),
    )


def score_some(
    target: Densities,
    past: tuple[Pool, Pool],
    weights: Floats,
    X: Floats,
    *,
    rng: np.random.Generator,
) -> Floats:  # (C,)
    """Return the acquisition by all kernels of the target and a sample of the past tasks'.

    A first look, by few kernels, rules most of many candidates out; they get -inf. Without the
    second look, by many, the best would be one that is close to a bad kernel left out.

    Args:
        target: The densities of the current task.
        past: The good and the bad kernels of the past tasks.
        weights: Of the target and the past tasks, (1 + M,).
        X: Complete points, (C, d).
        rng: Decides which kernels are taken; `pool` has the error of the estimate.
    """
    best = np.arange(len(X))
    if len(X) > _N_BEST:
        thinned = Densities(target.good.thinned(_N_FIRST), target.bad.thinned(_N_FIRST))
        first = _ratio_of_some(thinned, past, weights, X, _N_FIRST, rng=rng)
        best = np.sort(np.argpartition(-first, _N_BEST)[:_N_BEST])
    scores = np.full(len(X), -np.inf)
    scores[best] = _ratio_of_some(target, past, weights, X[best], _N_SECOND, rng=rng)
    return scores


def _ratio_of_some(
    target: Densities,
    past: tuple[Pool, Pool],
    weights: Floats,
    X: Floats,
    n: int,
    *,
    rng: np.random.Generator,
) -> Floats:  # (C,)
    """Return the log density ratio by the target and n kernels of the past on either side."""
    points = Points.of(target.good.columns, X, is_coarse=True)
    good, bad = (
        _log_mixture_of_some(own, pool, weights, points, n, rng=rng)
        for own, pool in zip((target.good, target.bad), past, strict=True)
    )
    return good - bad


def _log_mixture_of_some(
    own: Parzen, pool: Pool, weights: Floats, points: Points, n: int, *, rng: np.random.Generator
) -> Floats:  # (C,)
    """Return the log of the sum of N_m * w_m * p_m at each point, 0 where all are uniform."""
    own_weight = weights[0] * len(own)
    v = weights[1:] * pool.sizes / (pool.sizes + 1.0)
    parts = []
    if own_weight:
        parts.append(np.log(own_weight) + own.log_pdf(points))
    if v.any():
        parts.append(np.full(len(points), np.log(v.sum())))
        parts.append(pool.some(v, n, rng=rng).log_sum(points))
    return np.logaddexp.reduce(parts) if parts else np.zeros(len(points))


def _counted(side: Sequence[Parzen], weights: Floats) -> Floats:
    """Return N_m * w_m; where no task has an observation on this side, w_m (all are uniform)."""
    counted = weights * np.array([len(density) for density in side])
    return counted if counted.any() else weights
