r"""Which parameters a configuration will use, in a space with branches.

An objective that asks for `momentum` only where `optimizer` is sgd leaves it out elsewhere, and an
observation has no value there. A candidate has one in every column. Unless those that it will not
use are left out too, the model takes it for something new, however often it was evaluated.

Whether column t will be used is learned from the observations: as in most of the nearest ones,

    nearest = those with the largest sum_j w_j [x_j = x_ij]         j the discrete columns before t
    w_j     = how often column j alone tells whether an observation uses t, beyond what is usual

each observation judged by the others, if one agrees with it; two missing values are equal. Before
t are the columns that nearly all observations use, and those that are used more often and were
learned. A candidate keeps its value where the nearest do not tell it for 95 % of the observations,
or where it agrees with none of them.

Shapes: X (n, d), NaN where a parameter was not used; candidates (C, d).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from metatpe.space import Columns, Floats, Ints, Mask

_MAX_OBSERVATIONS = 300  # as many of each branch: one that was left long ago is still known
_SURE = 0.95


@dataclass(frozen=True, eq=False)
class Branches:
    """What the observations of a study tell about the parameters that are used."""

    columns: Columns
    is_used: Mask  # (n, d)
    discrete: Ints  # (c,), which columns can tell
    cells: Ints  # (n, c), of the observations
    rules: list[tuple[int, Floats]]  # a column, and the weights (c,) of those that tell its use
    taken: set[bytes] = field(default_factory=set)  # what was evaluated, or is being evaluated

    @classmethod
    def of(cls, columns: Columns, X: Floats, running: Floats) -> Branches:  # (n, d), (r, d)
        """Return what observations tell, and which configurations are taken."""
        some = _some_of_each(X[~np.isnan(X).all(axis=1)])
        is_used: Mask = ~np.isnan(some)
        discrete = np.flatnonzero(columns.n_cells > 0)
        if is_used.all() or not len(discrete):
            return cls(columns, is_used, discrete, np.empty((0, 0), np.int64), [])
        cells = _discrete_cells(columns, some, discrete)
        branches = cls(columns, is_used, discrete, cells, _rules(cells, is_used, discrete))
        if branches.rules:
            branches.taken.update(map(_key, np.vstack([X, branches(running)])))
        return branches

    def is_new(self, X: Floats) -> Mask:  # (C, d) -> (C,)
        """Return which candidates differ from all others in something that they use.

        A finite branch of an infinite space would otherwise be evaluated over and over.
        """
        if not self.rules:
            return np.ones(len(X), dtype=np.bool_)
        return np.array([_key(row) not in self.taken for row in self(X)], dtype=np.bool_)

    def __call__(self, X: Floats) -> Floats:  # (C, d) -> (C, d)
        """Return candidates without the values that they will not use."""
        if not self.rules or not len(X):
            return X
        used = X.copy()
        cells = _discrete_cells(self.columns, X, self.discrete)
        for t, weights in self.rules:
            near = np.zeros((len(X), len(self.cells)))
            for k in np.flatnonzero(weights):
                near += weights[k] * (cells[:, [k]] == self.cells[:, k])
            is_unused = near.any(axis=1) & ~_is_used_nearby(near, self.is_used[:, t])
            used[is_unused, t] = np.nan
            cells[np.ix_(is_unused, self.discrete == t)] = -1
        return used


def _rules(cells: Ints, is_used: Mask, discrete: Ints) -> list[tuple[int, Floats]]:
    """Return the columns whose use can be told, those that are used more often first."""
    n, n_used = len(is_used), is_used.sum(axis=0)
    agree = (cells.T[:, :, None] == cells.T[:, None]).astype(np.float64)  # (c, n, n)
    agree[:, np.arange(n), np.arange(n)] = 0.0  # each judged by the others
    rules, is_before = [], n_used[discrete] >= _SURE * n
    for t in np.argsort(-n_used, kind="stable"):
        if 0 < n_used[t] < n:
            weights = _column_weights(agree, is_used[:, t], is_before & (discrete != t))
            if weights is not None:
                rules.append((int(t), weights))
                is_before = is_before | (discrete == t)
    return rules


def _column_weights(
    agree: Floats, is_used: Mask, is_before: Mask
) -> Floats | None:  # (c, n, n), (n,)
    """Return how much each column tells about the use of one, None where they do not tell it."""
    usual = max(is_used.mean(), 1.0 - is_used.mean())
    n_using, n_not = agree @ is_used, agree @ ~is_used  # (c, n), among those that agree
    is_told = np.where(is_used, n_using > n_not, n_not > n_using) * 1.0
    is_told[n_using + n_not == 0.0] = 0.5  # no other observation agrees
    weights: Floats = is_before * np.maximum(is_told.mean(axis=1) - usual, 0.0)
    near = np.einsum("c,cij->ij", weights, agree)
    is_right = (_is_used_nearby(near, is_used) == is_used)[near.any(axis=1)]
    return weights if len(is_right) and is_right.mean() >= _SURE else None


def _is_used_nearby(near: Floats, is_used: Mask) -> Mask:  # (C, n), (n,) -> (C,)
    """Return whether at least half of the nearest observations of each candidate use a column."""
    is_nearest = near >= near.max(axis=1, keepdims=True) - 1e-9
    is_half: Mask = is_nearest @ np.where(is_used, 1.0, -1.0) >= 0.0
    return is_half


def _some_of_each(X: Floats) -> Floats:  # (n, d) -> (k, d)
    """Return the last observations of each branch."""
    kinds, kind = np.unique(np.isnan(X), axis=0, return_inverse=True)
    n = max(5, _MAX_OBSERVATIONS // max(len(kinds), 1))
    rows = [np.flatnonzero(kind == k)[-n:] for k in range(len(kinds))]
    return X[np.sort(np.concatenate(rows))[-_MAX_OBSERVATIONS:]] if rows else X


def _discrete_cells(
    columns: Columns, X: Floats, which: Ints
) -> Ints:  # (n, d) -> (n, c), -1 where missing
    return np.stack([columns.cells(X[:, j], int(j)) for j in which], axis=1)


def _key(row: Floats) -> bytes:
    return np.where(np.isnan(row), np.nan, row).tobytes()  # one of the many that are not a number
