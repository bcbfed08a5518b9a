r"""Which parameters a configuration will use, in a space with branches.

An objective that asks for `momentum` only where `optimizer` is sgd leaves it out elsewhere, and an
observation has no value there. A candidate has one in every column. Unless those that it will not
use are left out too, the model takes it for something new, however often it was evaluated.

Whether column t will be used is learned from the observations: as in most of the nearest ones,

    nearest = those with the largest sum_j w_j [x_j = x_ij]         j the discrete columns before t
    w_j     = how often column j alone tells whether an observation uses t, beyond what is usual

each observation judged by the others; two missing values are equal. Before t are the columns that
all observations use, and those that are used more often and were learned. Of a column that the
nearest observations do not tell for 95 % of the others the candidates keep their values.

Shapes: X (n, d), NaN where a parameter was not used; candidates (C, d).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metatpe.space import Columns, Floats, Ints, Mask

_MAX_OBSERVATIONS = 100  # the last ones; a rule needs no more
_SURE = 0.95


@dataclass(frozen=True, eq=False)
class Branches:
    """What the observations of a study tell about the parameters that are used."""

    columns: Columns
    discrete: Ints  # (c,), which columns can tell
    cells: Ints  # (n, c), of the observations
    is_used: Mask  # (n, d)
    seen: frozenset[bytes]  # all observations
    rules: list[tuple[int, Floats]]  # a column, and the weights (c,) of those that tell its use

    @classmethod
    def of(cls, columns: Columns, X: Floats) -> Branches:  # (n, d)
        """Return what observations tell."""
        seen = frozenset(row.tobytes() for row in np.where(np.isnan(X), np.nan, X))
        X = X[-_MAX_OBSERVATIONS:]
        is_used: Mask = ~np.isnan(X)
        n_used = is_used.sum(axis=0)
        doubtful = [t for t in np.argsort(-n_used, kind="stable") if 0 < n_used[t] < len(X)]
        discrete = np.flatnonzero(columns.n_cells > 0)
        if not doubtful or not len(discrete):
            return cls(columns, discrete, np.empty((0, 0), np.int64), is_used, seen, [])
        cells = _cells(columns, X, discrete)
        agree = (cells.T[:, :, None] == cells.T[:, None]).astype(np.float64)  # (c, n, n)
        agree[:, np.arange(len(X)), np.arange(len(X))] = 0.0  # each judged by the others
        rules, is_before = [], n_used[discrete] == len(X)
        for t in doubtful:
            weights = _weights(agree, is_used[:, t], is_before)
            if weights is not None:
                rules.append((int(t), weights))
                is_before = is_before | (discrete == t)
        return cls(columns, discrete, cells, is_used, seen, rules)

    def is_new(self, X: Floats) -> Mask:  # (C, d) -> (C,)
        """Return which candidates differ from every observation in something that they use.

        A finite branch of an infinite space would otherwise be evaluated over and over.
        """
        if not self.rules:
            return np.ones(len(X), dtype=np.bool_)
        return np.array([row.tobytes() not in self.seen for row in self(X)], dtype=np.bool_)

    def __call__(self, X: Floats) -> Floats:  # (C, d) -> (C, d)
        """Return candidates without the values that they will not use."""
        if not self.rules or not len(X):
            return X
        left = X.copy()
        cells = _cells(self.columns, X, self.discrete)
        for t, weights in self.rules:
            near = np.zeros((len(X), len(self.cells)))
            for k in np.flatnonzero(weights):
                near += weights[k] * (cells[:, [k]] == self.cells[:, k])
            is_unused = ~_is_used_nearby(near, self.is_used[:, t])
            left[is_unused, t] = np.nan
            cells[np.ix_(is_unused, self.discrete == t)] = -1
        return left


def _weights(agree: Floats, is_used: Mask, is_before: Mask) -> Floats | None:  # (c, n, n), (n,)
    """Return how much each column tells about the use of one, None where they do not tell it."""
    usual = max(is_used.mean(), 1.0 - is_used.mean())
    says_used, says_not = agree @ is_used, agree @ ~is_used  # (c, n)
    is_told = np.where(is_used, says_used > says_not, says_not > says_used)
    weights: Floats = is_before * np.maximum(is_told.mean(axis=1) - usual, 0.0)
    near = np.einsum("c,cij->ij", weights, agree)
    np.fill_diagonal(near, -1.0)
    is_right = _is_used_nearby(near, is_used) == is_used
    return weights if weights.any() and is_right.mean() >= _SURE else None


def _is_used_nearby(near: Floats, is_used: Mask) -> Mask:  # (C, n), (n,) -> (C,)
    """Return whether most of the nearest observations of each candidate use a column."""
    is_nearest = near >= near.max(axis=1, keepdims=True) - 1e-9
    is_most: Mask = is_nearest @ np.where(is_used, 1.0, -1.0) > 0.0
    return is_most


def _cells(columns: Columns, X: Floats, which: Ints) -> Ints:  # (n, d) -> (n, c), -1 where missing
    return np.stack([columns.cells(X[:, j], int(j)) for j in which], axis=1)
