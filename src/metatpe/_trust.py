r"""Trust: whether the past deserves what the task kernel gives it. None of this is in the paper.

Each past task: does it put the current one's observations in the right order?

    r_m(x) = log p(x | good_m) - log p(x | bad_m)       what past task m thinks of x
    rho_m  = rank correlation of r_m(x_i) with the place of x_i in the current task's order
    z_m    = -rho_m * sqrt(n - 1)                       standard normal if the two have no relation
    t_m    = min(1, 2 * Phi(z_m))                       s_m * t_m takes the place of s_m

The places are non-domination ranks, 0 for the best, so that a past task that is right has rho < 0.
The similarity cannot warn of a past task that is upside down while all evaluations are spent where
the past was good: the best of observations that all lie in a past task's best region lie there as
well. Their order can: where the past task's opinion gets worse while the results get better, it is
wrong. No past task gets more than its similarity: t = 1 as soon as its order is no worse than
chance.

All of them together: do they pay? An evaluation is either the past's turn, chosen with the task
weights, or the current task's own, chosen as if there were no past. Of the last turns:

    z = (mean place of own turns - mean place of the past's) / its standard deviation by chance
    the next turn is the past's with probability Phi(z + b)                        Phi(b) = 3/4

that is, in proportion to the chance that the past's turns are the better ones (a Thompson draw),
with the benefit b of the doubt: three of four turns while nothing is known, and nearly always or
hardly ever once the results say so. (With b = 0 what fits helps less: NMT-Bench at 50 evaluations
0.972 against 0.975, 40 seeds; what does not fit does the same harm within its noise.)

The past upside down: where its order is worse than chance on the average over all past tasks,

    1/M sum_m z_m < -1.645                                                         Phi^-1(0.05)

soon after the start, warm starts are given out once more, of the past tasks turned round (their
losses negated), as long as those do better than other trials. Tasks that are wrong in ways of
their own cancel out in the mean; a single one is often wrong by chance, and costs a trial.
(HPOlib's slice localization and protein structure, NMT-Bench's tl-en, past tasks upside down, 40
seeds: after 25 evaluations +0.06, +0.03 and +0.16 of the hypervolume; nothing changes beyond the
noise where the past is noise.)

The first configurations: warm starts that turn out bad say nothing of how wide the kernels of bad
observations are (`sampler._bad_density`). Where the past is wrong they lie far from everything
else, and the few bad observations there are at first would blur over the whole space. (4-D
ellipsoid, past tasks upside down, 100 seeds: after 25, 50 and 100 evaluations better by 0.32, 0.17
and 0.13 orders of magnitude, t = 5.5, 2.6 and 1.8.)

Shapes: scores (M, n) of M past tasks for n observations, levels (n,), turns (n,): 1 the past's,
-1 the current task's own.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri

from metatpe.space import Floats, Ints

N_JUDGED = 100  # the first observations of a study; what is right of them stays right
N_TURNS = 40  # the last ones: what paid at first need not pay later
AT_FIRST = 0.75  # the past's share of the turns while nothing is known
_WORSE_THAN_CHANCE = -1.645


def trust(scores: Floats, levels: Ints) -> Floats:  # (M, n), (n,) -> (M,)
    """Return how far each past task may be believed, from 0 to 1."""
    believed: Floats = np.minimum(1.0, 2.0 * ndtr(_agreement(scores, levels)))
    return believed


def is_upside_down(scores: Floats, levels: Ints) -> bool:  # (M, n), (n,)
    """Return whether the past tasks, all in all, put the observations in the wrong order."""
    return float(_agreement(scores, levels).mean()) < _WORSE_THAN_CHANCE


def _agreement(scores: Floats, levels: Ints) -> Floats:  # (M, n), (n,) -> (M,)
    """Return z_m of each past task: positive where its order is right."""
    if len(levels) < 2:
        return np.zeros(len(scores))
    z: Floats = -rank_correlation(scores, levels.astype(np.float64)) * math.sqrt(len(levels) - 1)
    return z


def chance_of_the_past(levels: Ints, turns: Floats) -> float:  # (n,), (n,)
    """Return the probability with which the next turn is the past's."""
    n, n_past = len(turns), int(np.count_nonzero(turns > 0))
    if n_past in (0, n):
        return AT_FIRST
    places = mid_ranks(levels.astype(np.float64))
    ahead = places[turns < 0].mean() - places[turns > 0].mean()
    spread = places.std(ddof=1) * math.sqrt(n / (n_past * (n - n_past)))
    return float(ndtr(ahead / spread + ndtri(AT_FIRST))) if spread > 0.0 else AT_FIRST


def rank_correlation(A: Floats, b: Floats) -> Floats:  # (M, n), (n,) -> (M,)
    """Return Spearman's rank correlation of each row with b, 0 where either is constant."""
    ranked = mid_ranks(np.vstack([A, b]))
    centred = ranked - ranked.mean(axis=1, keepdims=True)
    norms = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    both = norms[:-1] * norms[-1]
    correlation: Floats = centred[:-1] @ centred[-1] / np.where(both > 0.0, both, 1.0)
    return correlation


def mid_ranks(values: Floats) -> Floats:  # (..., n) -> (..., n)
    """Return the place of each value in its row; equal ones share the middle of their places."""
    n = values.shape[-1]
    order = np.argsort(values, axis=-1)
    line = np.take_along_axis(values, order, axis=-1)
    is_next = line[..., 1:] != line[..., :-1]  # than the one before
    place = np.arange(1, n)
    first, last = np.zeros((2, *values.shape))
    first[..., 1:] = np.maximum.accumulate(np.where(is_next, place, 0), axis=-1)
    last[..., -1:] = n
    behind = np.where(is_next, place, n)[..., ::-1]
    last[..., :-1] = np.minimum.accumulate(behind, axis=-1)[..., ::-1]
    places = np.empty(values.shape)
    np.put_along_axis(places, order, (first + last) / 2.0, axis=-1)
    return places
