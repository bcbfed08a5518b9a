r"""Which parameters a configuration will use, in a space with branches.

An objective that asks for `momentum` only where `optimizer` is sgd leaves it out elsewhere, and an
observation has no value there. A candidate has one in every column. Unless those that it will not
use are left out too, the model takes it for something new, however often it was evaluated.

One discrete column c decides whether column t is used: it is if most observations with the same
value of c use it. A missing value is a value like any other, which covers branches within
branches. Of the columns before t, c is the one that is wrong for the fewest observations,

    wrong(c) = observations i whose use of t is not that of most others with x_jc = x_ic

not counting observations that are alone with their value: the first trial of a branch is evidence
neither for nor against a column. Before t are the columns that nearly all observations use, and
those that are used more often and have a rule. A candidate keeps its value if no column is right
for 95 % of the observations and better than a constant guess, or if no observation has its value
of c.

Shapes: X (n, d), NaN where a parameter was not used; candidates (C, d).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from metatpe.space import Columns, Floats, Ints, Mask

_MAX_OBSERVATIONS = 300  # as many of each branch: one that was left long ago is still known
_SURE = 0.95


class _Rule(NamedTuple):
    """Where a column is not used."""

    column: int
    decider: int  # the column that decides
    without: Ints  # its cells in which the column is not used


@dataclass(frozen=True, eq=False)
class Branches:
    """Which parameters a configuration uses, as learned from observations."""

    columns: Columns
    rules: list[_Rule]
    taken: set[bytes] = field(default_factory=set)  # what was evaluated, or is being evaluated

    @classmethod
    def of(cls, columns: Columns, X: Floats, running: Floats) -> Branches:  # (n, d), (r, d)
        """Return what observations tell, and which configurations are taken."""
        branches = cls(columns, _rules(columns, _some_of_each(X[~np.isnan(X).all(axis=1)])))
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
        for t, c, without in self.rules:  # a decider that is left out itself is missing by now
            used[np.isin(self.columns.cells(used[:, c], c), without), t] = np.nan
        return used


def _rules(columns: Columns, X: Floats) -> list[_Rule]:  # (n, d)
    """Return the rules that can be learned, those of columns that are used more often first."""
    is_used: Mask = ~np.isnan(X)
    n, n_used = len(X), is_used.sum(axis=0)
    deciders = [int(c) for c in np.flatnonzero((columns.n_cells > 0) & (n_used >= _SURE * n))]
    rules = []
    for t in np.argsort(-n_used, kind="stable").tolist():
        if not 0 < n_used[t] < n:
            continue
        others = [c for c in deciders if c != t]
        rule = _rule(t, is_used[:, t], {c: columns.cells(X[:, c], c) for c in others})
        if rule is not None:
            rules.append(rule)
            deciders += [t] if columns.n_cells[t] > 0 and t not in deciders else []
    return rules


def _rule(column: int, is_used: Mask, cells: dict[int, Ints]) -> _Rule | None:  # (n,), (n,) each
    """Return the rule of one column; None if no other column predicts its use."""
    usual = min(np.count_nonzero(is_used), np.count_nonzero(~is_used))
    found: list[tuple[int, int, _Rule]] = []
    for c, own in cells.items():
        values, group = np.unique(own, return_inverse=True)
        size, n_using = np.bincount(group), np.bincount(group, weights=is_used)
        # How many more of the others with the same value use the column than do not.
        lead = 2.0 * (n_using[group] - is_used) - (size[group] - 1)
        is_alone = size[group] == 1
        n_wrong = np.count_nonzero(~is_alone & np.where(is_used, lead <= 0.0, lead >= 0.0))
        n_alone = np.count_nonzero(is_alone)
        n_told = len(own) - n_alone
        if 2 * n_told >= len(own) and n_wrong < usual and n_wrong <= (1.0 - _SURE) * n_told:
            rule = _Rule(column, c, values[2.0 * n_using < size])
            found.append((int(n_wrong), int(n_alone), rule))
    return min(found, key=lambda one: one[:2])[2] if found else None


def _some_of_each(X: Floats) -> Floats:  # (n, d) -> (k, d)
    """Return the last observations of each branch."""
    kinds, kind = np.unique(np.isnan(X), axis=0, return_inverse=True)
    n = max(5, _MAX_OBSERVATIONS // max(len(kinds), 1))
    rows = [np.flatnonzero(kind == k)[-n:] for k in range(len(kinds))]
    return X[np.sort(np.concatenate(rows))[-_MAX_OBSERVATIONS:]] if rows else X


def _key(row: Floats) -> bytes:
    return np.where(np.isnan(row), np.nan, row).tobytes()  # one of the many that are not a number
