"""The Gaussian processes of one task, one per objective, and what they are fitted to.

A task of more than `MAX_OBSERVATIONS` is modelled by as many: the best half of them by its order,
and the rest evenly from what follows, so that a suggestion does not become slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metatpe.gp.branches import Branches
from metatpe.gp.process import Encoder, GaussianProcess, fit
from metatpe.gp.transform import all_scores, deviation_on
from metatpe.space import Columns, Floats, Ints, Mask
from metatpe.tpe.pareto import order, ranks

Models = Sequence[GaussianProcess]  # of one task, one per objective
MAX_OBSERVATIONS = 300


def fit_all(encoder: Encoder, X: Floats, y: Floats) -> Models:
    """Return the models of a task with observations X (n, d) and scores y (n, m)."""
    is_used, features = ~np.asarray(np.isnan(X).all(axis=0)), encoder(X)
    return [fit(features, own, encoder.owner, is_used) for own in y.T]


def thinned(rows: Ints) -> Ints:
    """Return at most `MAX_OBSERVATIONS` of a task's rows, which are sorted, the best first."""
    n_best = MAX_OBSERVATIONS // 2
    if len(rows) <= MAX_OBSERVATIONS:
        return rows
    others = np.linspace(n_best, len(rows) - 1, MAX_OBSERVATIONS - n_best).round()
    return np.concatenate([rows[:n_best], rows[others.astype(np.int64)]])


@dataclass(frozen=True, eq=False)
class Observed:
    """The study's own observations as its models see them, the best first."""

    X: Floats  # (n, d)
    y: Floats  # (n, m)
    losses: Floats  # (n, m), not scaled
    features: Floats  # (n, p)
    running: Floats  # (r, p), features of what others are evaluating
    is_valid: Mask  # (n,), feasible and finished
    is_seen: Mask  # (n,), whether the losses were told, not expected
    scales: list[list[Floats]]  # of each objective, its column of y on this scale and on others
    variances: list[list[Floats]]  # the same shapes: of scores that are expectations, else 0
    branches: Branches

    @classmethod
    def of(
        cls,
        columns: Columns,
        encoder: Encoder,
        X: Floats,
        losses: Floats,
        violation: Floats,
        running: Floats,
        deviation: Floats | None = None,
    ) -> Observed:
        """Return the observations that have a parameter.

        Args:
            columns: The space.
            encoder: Makes features of configurations.
            X: All observations, (n, d).
            losses: Their losses, (n, m).
            violation: By how much each violates its constraints, (n,).
            running: What others are evaluating, (r, d).
            deviation: Standard deviations of losses that are expectations, (n,), else 0. Left
                out, all were seen.
        """
        deviation = np.zeros(len(X)) if deviation is None else deviation
        scales = all_scores(losses, violation)
        y = np.stack([first for first, *_ in scales], axis=1)
        rows = order(y, np.zeros(len(y)))
        rows = thinned(rows[~np.isnan(X[rows]).all(axis=1)])
        branches = Branches.of(columns, X, running)
        return cls(
            X=X[rows],
            y=y[rows],
            losses=losses[rows],
            features=encoder(X[rows]),
            running=encoder(branches(running)),
            is_valid=_is_finished(losses[rows], violation[rows]),
            is_seen=deviation[rows] == 0.0,
            scales=[[z[rows] for z in own] for own in scales],
            variances=[
                [deviation_on(z, y, deviation)[rows] ** 2 for z in own]
                for own, y in zip(scales, losses.T, strict=True)
            ],
            branches=branches,
        )

    @property
    def key(self) -> bytes:
        """Identifies what models are fitted to: configurations, losses and their deviations."""
        arrays = [self.X, *(z for own in (*self.scales, *self.variances) for z in own)]
        return b"".join(array.tobytes() for array in arrays)

    @property
    def front(self) -> Floats:  # (k, d)
        """The configurations of the first front."""
        return self.X[ranks(self.y) == 0] if len(self.y) else self.X

    @property
    def reached_features(self) -> Floats:  # (k, p)
        """Features of the valid observations, and of what is being evaluated."""
        return np.vstack([self.features[self.is_valid], self.running])

    @property
    def is_used(self) -> Mask:  # (d,)
        """Which columns some observation has."""
        return ~np.asarray(np.isnan(self.X).all(axis=0))


def _is_finished(losses: Floats, violation: Floats) -> Mask:  # (n,)
    """Return which observations are feasible and were not pruned; all where none is."""
    is_finished: Mask = (violation <= 0.0) & (losses < np.inf).all(axis=1)
    return is_finished if is_finished.any() else ~is_finished
