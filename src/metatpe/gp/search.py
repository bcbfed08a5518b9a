r"""The best configuration of a mixed space by a score.

A few thousand candidates are scored: random ones, neighbours of good observations, and what the
caller names. From the best of them a local search goes on, one coordinate at a time:

    categorical    every other choice; of many, random ones and those of the other starts
    stepped        one and two cells up and down, and one random cell
    continuous     Gaussian steps of width 0.2, 0.08, ..., 0.4 times as wide from round to round

A discrete coordinate is always in a cell, never between two; the point that is returned is one of
those that were scored. A finite space of at most `MAX_LISTED` configurations is scored as a whole.

Shapes: X (C, d) points of the unit cube.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from metatpe.space import MAX_CELLS, Columns, Floats, Ints, Mask

Score = Callable[[Floats], Floats]  # (C, d) -> (C,)
Allowed = Callable[[Floats], Mask]  # (C, d) -> (C,)

_N_STARTS = 5
_N_ROUNDS = 9
_N_STEPS = 4  # of a continuous coordinate in one round
_N_CHOICES = 16  # of a categorical coordinate with more than `MAX_CELLS`


def candidates(columns: Columns, good: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Return random points, and neighbours of good ones (k, d): 2 n at most, or all there are."""
    if columns.is_listable:
        return columns.list_all()[0]
    return np.vstack([columns.snap(rng.random((n, len(columns)))), _near(columns, good, n, rng)])


def _near(columns: Columns, good: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Return points that differ from a good one in a few coordinates."""
    if not len(good):
        return good
    d = len(columns)
    X = good[rng.integers(len(good), size=n)]
    is_moved = rng.random((n, d)) < np.minimum(1.0, rng.integers(1, 4, size=(n, 1)) / d)
    steps = np.where(
        rng.random((n, d)) < 0.5, rng.random((n, d)), X + 0.1 * rng.normal(size=(n, d))
    )
    moved = np.where(is_moved | np.isnan(X), np.clip(steps, 0.0, 1.0), X)
    return columns.snap(np.where(np.isnan(moved), rng.random((n, d)), moved))


def climb(
    X: Floats,
    values: Floats,
    columns: Columns,
    score: Score,
    is_allowed: Allowed,
    rng: np.random.Generator,
) -> Floats:  # (d,)
    """Return the best point that a local search from the best candidates finds.

    Args:
        X: The candidates, (C, d).
        values: Their scores, (C,).
        columns: The space.
        score: That of other points.
        is_allowed: Which points may be returned.
        rng: For random steps.
    """
    top = np.argsort(-values, kind="stable")[:_N_STARTS]
    X, values = X[top], values[top]
    for i in range(_N_ROUNDS):
        near, start = _neighbours(X, columns, 0.2 * 0.4**i, rng)
        is_open = is_allowed(near)
        before = values
        X, values = _best_of_each(X, values, near[is_open], start[is_open], score)
        if columns.is_finite and (values == before).all():
            break
    best: Floats = X[np.argmax(values)]
    return best


def _best_of_each(
    X: Floats, values: Floats, near: Floats, start: Ints, score: Score
) -> tuple[Floats, Floats]:  # (k, d), (k,)
    """Return the best of each start and its neighbours."""
    if not len(near):
        return X, values
    everything, found = np.vstack([X, near]), np.concatenate([values, score(near)])
    owner = np.concatenate([np.arange(len(X)), start])
    order = np.lexsort((-found, owner))
    best = order[np.unique(owner[order], return_index=True)[1]]
    return everything[best], found[best]


def _neighbours(
    X: Floats, columns: Columns, width: float, rng: np.random.Generator
) -> tuple[Floats, Ints]:  # (C, d), (C,)
    """Return points that differ from one of X in one coordinate, and from which."""
    found, starts = [], []
    for j in range(len(columns)):
        values = _moves(X[:, j], columns, j, width, rng)  # (k, moves)
        moved = np.repeat(X, values.shape[1], axis=0)
        moved[:, j] = values.ravel()
        is_moved = moved[:, j] != np.repeat(X[:, j], values.shape[1])
        found.append(moved[is_moved])
        starts.append(np.repeat(np.arange(len(X)), values.shape[1])[is_moved])
    return np.vstack(found), np.concatenate(starts)


def _moves(
    x: Floats, columns: Columns, j: int, width: float, rng: np.random.Generator
) -> Floats:  # (k,) -> (k, moves)
    """Return other values of one coordinate, some of them perhaps the same."""
    points = columns.points[j]
    if points is None:
        return np.clip(x[:, None] + width * rng.normal(size=(len(x), _N_STEPS)), 0.0, 1.0)
    if columns.is_categorical[j]:
        some = _some_choices(columns.cells(x, j), len(points), rng)
        return np.repeat(points[some][None], len(x), axis=0)
    steps = np.column_stack([np.tile([-2, -1, 1, 2], (len(x), 1)), _anywhere(len(points), x, rng)])
    moved: Floats = points[np.clip(columns.cells(x, j)[:, None] + steps, 0, len(points) - 1)]
    return moved


def _some_choices(cells: Ints, k: int, rng: np.random.Generator) -> Ints:
    """Return which of k choices are tried: all of them, or those in `cells` and random ones.

    A model knows nothing of a choice that was never evaluated, and so takes all of these for
    alike: a few are enough.
    """
    if k <= MAX_CELLS:
        return np.arange(k)
    return np.concatenate([cells, rng.integers(k, size=_N_CHOICES)])


def _anywhere(n: int, x: Floats, rng: np.random.Generator) -> Ints:  # (k,) -> (k,)
    """Return steps to anywhere among n cells, or to one of the ends."""
    return rng.integers(1 - n, n, size=len(x))
