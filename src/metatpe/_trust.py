r"""Trust: whether a past task puts the current one's observations in the right order.

    r_m(x) = log p(x | good_m) - log p(x | bad_m)       what past task m thinks of x
    rho_m  = rank correlation of r_m(x_i) with the place of x_i in the current task's order
    z_m    = -rho_m * sqrt(n - 1)                       standard normal if the two have no relation
    t_m    = min(1, 2 * Phi(z_m))                       s_m * t_m takes the place of s_m

The places are non-domination ranks, 0 for the best, so that a past task that is right has rho < 0.

This is not in the paper. There every past task has the similarity 1 until the current one has some
good observations (n = 21 with the defaults), and until then all evaluations are spent where the
past was good. Its measure cannot warn either: the best of observations that all lie in a past
task's best region lie there as well. Their order can: where the past task's opinion gets worse
while the results get better, it is wrong. A past task is never trusted more than the paper would:
t = 1 as soon as its order is no worse than chance.

Shapes: scores (M, n) of M past tasks for n observations, levels (n,).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from metatpe.space import Floats, Ints

N_JUDGED = 100  # the first observations of a study; what is right of them stays right


def trust(scores: Floats, levels: Ints) -> Floats:  # (M, n), (n,) -> (M,)
    """Return how far each past task may be believed, from 0 to 1."""
    n = len(levels)
    if n < 2:
        return np.ones(len(scores))
    z = -rank_correlation(scores, levels.astype(np.float64)) * math.sqrt(n - 1)
    believed: Floats = np.minimum(1.0, 2.0 * ndtr(z))
    return believed


def rank_correlation(A: Floats, b: Floats) -> Floats:  # (M, n), (n,) -> (M,)
    """Return Spearman's rank correlation of each row with b, 0 where either is constant."""
    ranked = np.stack([mid_ranks(values) for values in (*A, b)])
    centred = ranked - ranked.mean(axis=1, keepdims=True)
    norms = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    both = norms[:-1] * norms[-1]
    correlation: Floats = centred[:-1] @ centred[-1] / np.where(both > 0.0, both, 1.0)
    return correlation


def mid_ranks(values: Floats) -> Floats:  # (n,) -> (n,)
    """Return the place of each value in line; equal ones share the middle of their places."""
    line = np.sort(values)
    places = np.searchsorted(line, values) + np.searchsorted(line, values, side="right")
    return places.astype(np.float64) / 2.0
