r"""Ranks of numbers, and how well two rankings agree.

    mid-rank     place of a value in its row, counted in intervals: the smallest of n different
                 values has 1/2, the largest n - 1/2, and equal values share the mean of their
                 places; 3, 1, 1 have the mid-ranks 2.5, 1, 1
    correlation  Spearman's: that of the mid-ranks

Shapes: rows (..., n).
"""

from __future__ import annotations

import numpy as np

from metatpe.space import Floats, Ints


def rank_correlation(A: Floats, b: Floats) -> Floats:  # (M, n), (n,) -> (M,)
    """Return the rank correlation of each row with b, 0 where either is constant."""
    ranked = mid_ranks(np.vstack([A, b]))
    centred = ranked - ranked.mean(axis=1, keepdims=True)
    norms = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    both = norms[:-1] * norms[-1]
    correlation: Floats = centred[:-1] @ centred[-1] / np.where(both > 0.0, both, 1.0)
    return correlation


def mid_ranks(values: Floats) -> Floats:  # (..., n) -> (..., n)
    """Return the mid-rank of each value in its row."""
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


def dense_ranks(values: Floats) -> Ints:  # (..., n) -> (..., n)
    """Return how many smaller values there are in each value's row, equal ones counted once."""
    order = np.argsort(values, axis=-1)
    line = np.take_along_axis(values, order, axis=-1)
    place = np.zeros(values.shape, dtype=np.int64)
    place[..., 1:] = np.cumsum(line[..., 1:] != line[..., :-1], axis=-1)
    ranks = np.empty(values.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, place, axis=-1)
    return ranks
