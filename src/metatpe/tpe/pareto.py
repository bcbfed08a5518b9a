r"""The order of observations, and the split into good and bad.

    R(f) = (f, number)                                                one objective
    R(f) = (non-domination rank, -crowding distance, number)          two objectives
    R(f) = (non-domination rank, place in the greedy subset,          three objectives and more
            -crowding distance, number)
    n_good = min(n - 1, max(ceil(gamma * n), min(|first front|, 3)))      two, n >= 2 observations
    n_good = min(n - 1, ceil(gamma * n))                              any other number

With two objectives one or two observations are no picture of a front. So at first up to three of
its members are good: as a rule, the best in each objective and one between them. The paper's text
has ceil(gamma * n) alone, to which this comes from 21 observations on (gamma = 0.1). The authors'
code takes the whole first front, however large; that soon is a large part of all observations, and
the two densities hardly differ (docs/method/split.md has the figures).

With three objectives and more most observations of a study are in one front, and the choice among
its members decides. Crowding distance prefers the ends: they are many then, and seldom good
compromises. So here, as in MO-TPE before the paper, which avoids hypervolumes for their cost, the
greedy subset (`subset`) decides: one member after the other, each time the one that adds most to
the hypervolume of those taken before. With [a, b] the range of the front in an objective and
[v, w] that of all ranked observations, the reference point is

    r = min(w + (w - v) / 10, b + (b - a))

beyond the worst of all, but no further from the front than the front is wide: otherwise one
diverged run would make all members alike in that objective. Units do not matter: scaling an
objective scales all volumes alike. Only members of the same front count: better fronts dominate
all of it, and beside them no member adds anything. What adds nothing follows by crowding distance:
duplicates, members that are inf in an objective, and what is left when the subset has ended
(`subset`). `order` follows the same rule as `split`, because greedy choices are an order: the
first n of it are the good ones, and the warm start begins with the best compromises.

Feasible before pruned before infeasible: pruned ones follow their `lateness`, infeasible ones
their total violation. -inf sorts first and +inf last; neither enters the arithmetic of the
crowding distance, which is why equal or infinite vectors never make it NaN. For the hypervolume
-inf is as good as the best finite value of the front, and +inf is beyond the reference point.

Shapes: losses (n, m), always minimised; violation (n,), 0 where feasible; lateness (n, k), rows of
zeros where an observation was completed, otherwise sorted lexicographically, smaller is better.
"""

from __future__ import annotations

import math

import moocore
import numpy as np

from metatpe.space import Floats, Ints, Mask
from metatpe.tpe.subset import greedy_subset

GAMMA = 0.1  # the fraction of observations that count as good
BY_VOLUME = 3  # the number of objectives from which a front is ordered by hypervolume


def crowding_distance(losses: Floats, front: Ints | None = None) -> Floats:  # (n, m) -> (n,)
    """Return the crowding distance of each vector among those of its front.

    A vector that occurs more than once has a neighbour at distance zero, and gets zero.

    Args:
        losses: The vectors.
        front: The number of the front that each belongs to, (n,); left out, all are one front.
    """
    front = np.zeros(len(losses), dtype=np.int64) if front is None else front
    distance = np.zeros(len(losses))
    for values in losses.T:
        finite = np.flatnonzero(np.isfinite(values))
        order = finite[np.lexsort((values[finite], front[finite]))]
        # Halved: the spread of two huge values of opposite sign must not overflow.
        ranked, own = values[order] / 2, front[order]
        is_first, is_last = np.ones((2, len(order)), dtype=np.bool_)
        is_first[1:] = is_last[:-1] = own[1:] != own[:-1]
        spread = (ranked[is_last] - ranked[is_first])[np.cumsum(is_first) - 1]
        gap = np.full(len(order), np.inf)
        gap[1:-1] = ranked[2:] - ranked[:-2]
        gap[is_first | is_last] = np.inf
        is_spread = spread > 0.0
        distance[order[is_spread]] += gap[is_spread] / spread[is_spread]
    distance[_is_repeated(losses, front)] = 0.0
    return distance


def _is_repeated(losses: Floats, front: Ints) -> Mask:  # (n, m), (n,) -> (n,)
    """Return which vectors occur more than once in their front."""
    order = np.lexsort((*losses.T, front))
    is_like_next = (losses[order[1:]] == losses[order[:-1]]).all(axis=1)
    is_like_next &= front[order[1:]] == front[order[:-1]]
    repeated = np.zeros(len(losses), dtype=np.bool_)
    repeated[order[1:]] |= is_like_next
    repeated[order[:-1]] |= is_like_next
    return repeated


def ranks(losses: Floats) -> Ints:  # (n, m) -> (n,)
    """Return the non-domination rank of each observation, 0 for the first front."""
    if losses.shape[1] == 1:
        return np.unique(losses[:, 0], return_inverse=True)[1].astype(np.int64)
    if not np.all(np.abs(losses) < 1e300):
        # moocore 0.3 is wrong, or crashes, on infinities; places in line have the same dominance.
        losses = np.stack([np.unique(v, return_inverse=True)[1] for v in losses.T], axis=1)
    rank: Ints = moocore.pareto_rank(losses + 0.0).astype(np.int64)  # -0.0 is 0.0
    return rank


def _is_ranked(losses: Floats, violation: Floats, late: Floats) -> Mask:  # (n,)
    """Return which observations have a rank: feasible, complete, and not inf in everything."""
    is_ranked: Mask = ~(losses == np.inf).all(axis=1)
    if violation.any():
        is_ranked &= violation <= 0
    if late.any():
        is_ranked &= ~late.any(axis=1)
    return is_ranked


def _best_first(losses: Floats, members: Ints, ranked: Ints, n: int) -> Ints:
    """Return the members of one front, the n best first.

    Args:
        losses: Of all observations.
        members: The front.
        ranked: All observations that have a rank.
        n: How many of the front must be in their place.
    """
    if losses.shape[1] == 1 or len(members) < 2:
        return members
    front = losses[members]
    by_crowding = np.argsort(-crowding_distance(front), kind="stable")
    if losses.shape[1] < BY_VOLUME:
        return members[by_crowding]
    best = greedy_subset(*_in_units_of_the_front(front, losses[ranked]), n)
    places: Ints = np.concatenate([best, by_crowding[~np.isin(by_crowding, best)]])
    return members[places]


def _in_units_of_the_front(front: Floats, ranked: Floats) -> tuple[Floats, Floats]:
    """Return a front (k, m) with values from 0 to 1, and its reference point (m,).

    Args:
        front: Losses of a front, (k, m).
        ranked: Losses of all ranked observations, (n, m).
    """
    (a, b), (v, w) = _half_range(front), _half_range(ranked)
    unit = np.where(b > a, b - a, 1.0)
    with np.errstate(over="ignore"):  # a diverged run, in units of the front
        reference = 1.0 + np.minimum((w - b + 0.1 * (w - v)) / unit, 1.0)
        return np.clip((front / 2 - a) / unit, 0.0, reference), reference


def _half_range(values: Floats) -> tuple[Floats, Floats]:  # (n, m) -> (m,) each
    """Return half of the least and half of the largest finite value of each column, 0 for none.

    Halved: the spread of two huge values of opposite sign must not overflow.
    """
    is_finite = np.isfinite(values)
    least = np.where(is_finite, values / 2, np.inf).min(axis=0)
    largest = np.where(is_finite, values / 2, -np.inf).max(axis=0)
    has_none = ~is_finite.any(axis=0)
    return np.where(has_none, 0.0, least), np.where(has_none, 0.0, largest)


def _rest(violation: Floats, lateness: Floats, members: Ints) -> Ints:
    """Return those without a rank: all inf, then pruned, then infeasible ones."""
    keys = (*lateness[members].T[::-1], violation[members])
    return members[np.lexsort(keys)]


def order(
    losses: Floats, violation: Floats, lateness: Floats | None = None, n: int | None = None
) -> Ints:
    """Return the indices of all observations, or of the n best, the best first."""
    late = np.zeros((len(losses), 1)) if lateness is None else lateness
    is_ranked = _is_ranked(losses, violation, late)
    ranked = np.flatnonzero(is_ranked)
    rank = ranks(losses[ranked])
    by_rank = np.argsort(rank, kind="stable")
    fronts = np.split(ranked[by_rank], np.cumsum(np.bincount(rank))[:-1]) if len(ranked) else []
    before = np.cumsum([0, *map(len, fronts)])
    wanted = len(losses) if n is None else n
    best = [
        _best_first(losses, front, ranked, wanted - k)
        for front, k in zip(fronts, before[:-1], strict=True)
        if k < wanted
    ]
    return np.concatenate([*best, _rest(violation, late, np.flatnonzero(~is_ranked))])[:n]


def levels(losses: Floats, violation: Floats, lateness: Floats | None = None) -> Ints:  # (n,)
    """Return each observation's rank; unranked ones follow, one level each."""
    late = np.zeros((len(losses), 1)) if lateness is None else lateness
    is_ranked = _is_ranked(losses, violation, late)
    level = np.zeros(len(losses), dtype=np.int64)
    level[is_ranked] = ranks(losses[is_ranked])
    rest = _rest(violation, late, np.flatnonzero(~is_ranked))
    level[rest] = level.max(initial=0) + 1 + np.arange(len(rest))
    return level


def n_good(
    n: int, gamma: float, n_front: int, n_objectives: int, *, keeps_front: bool = True
) -> int:
    """Return how many of n observations are good, of which `n_front` are in the first front."""
    # 1e-9: ceil(0.1 * 30) is 3, although 0.1 * 30 is a little more than 3 in floating point.
    fraction = math.ceil(gamma * n - 1e-9)
    wanted = fraction
    if keeps_front and n_objectives == 2:
        wanted = max(fraction, min(n_front, 3))
    return min(n, wanted) if n < 2 else min(n - 1, wanted)


def split(
    losses: Floats,
    violation: Floats,
    gamma: float,
    lateness: Floats | None = None,
    *,
    keeps_front: bool = True,
) -> Mask:  # (n,)
    """Return which observations are good.

    The same as the first n_good of `order`, but only the front that the border runs through is
    sorted: this is called once per suggestion. `keeps_front` is whether, with two objectives, up
    to three of the first front are good whatever gamma is; the paper's text has gamma alone.
    """
    n, n_objectives = losses.shape
    late = np.zeros((n, 1)) if lateness is None else lateness
    is_ranked = _is_ranked(losses, violation, late)
    ranked = np.flatnonzero(is_ranked)
    rank = ranks(losses[ranked])
    counts = np.bincount(rank, minlength=1)
    wanted = n_good(n, gamma, int(counts[0]), n_objectives, keeps_front=keeps_front)
    is_good = np.zeros(n, dtype=np.bool_)
    if wanted >= len(ranked):
        is_good[ranked] = True
        rest = _rest(violation, late, np.flatnonzero(~is_ranked))
        is_good[rest[: wanted - len(ranked)]] = True
        return is_good
    before = np.cumsum(counts) - counts
    border = int(np.searchsorted(before, wanted, side="right")) - 1
    is_good[ranked[rank < border]] = True
    front, n_left = ranked[rank == border], int(wanted - before[border])
    if n_left < len(front):
        front = _best_first(losses, front, ranked, n_left)
    is_good[front[:n_left]] = True
    return is_good
