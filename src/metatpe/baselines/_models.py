"""The Gaussian processes of the past tasks and of the study, one for each objective.

The models of the past depend on the sources and the space alone and are fitted once. A task of
more than `MAX_OBSERVATIONS` is modelled by as many: the best half of them by its order, and the
rest evenly from what follows, so that a suggestion does not become slow.

Objectives are matched by name where the study and a source name the same ones, otherwise by order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metatpe._history import Moment
from metatpe._pareto import order, ranks
from metatpe.baselines._gp import Encoder, GaussianProcess, fit
from metatpe.baselines._transform import scores
from metatpe.space import Floats, Ints, Mask, Space
from metatpe.tasks import Encoded, Task

Models = Sequence[GaussianProcess]  # of one task, one an objective
MAX_OBSERVATIONS = 300
_N_BEST = 20  # of each past task, to start a search from


class PastModels:
    """The models of the past tasks in one space."""

    def __init__(
        self, tasks: Sequence[Task], space: Space, objective_names: tuple[str, ...]
    ) -> None:
        encoded = [(task, task.encode_in(space)) for task in tasks]
        usable = [(task, in_space) for task, in_space in encoded if in_space.says.any()]
        self.encoder = Encoder(space.columns)
        self.names = [task.name for task, _ in usable]
        self.models: list[Models] = []
        best = [np.empty((0, len(space)))]
        for task, in_space in usable:
            y = scores(task.losses, task.violation)[:, _matching(task, objective_names)]
            rows = _ordered(y, in_space)
            self.models.append(_fit_all(self.encoder, in_space.X, y, thinned(rows)))
            best.append(in_space.X[rows[:_N_BEST]])
        X = np.vstack(best)
        self.best = space.columns.snap(np.where(np.isnan(X), 0.5, X))  # (k, d)


@dataclass(frozen=True, eq=False)
class Target:
    """The study's own observations and models."""

    y: Floats  # (n, m)
    features: Floats  # (n, p)
    models: Models
    believing: Models  # the same, where others are evaluating configurations
    reached: Floats  # (r, p), features of the feasible observations, and of those being evaluated
    best: Floats  # (k, d), the first front

    @classmethod
    def of(cls, moment: Moment, encoder: Encoder) -> Target:
        """Fit the models of a study."""
        done = moment.observations
        y = scores(done.losses, done.violation)
        rows = order(y, np.zeros(len(y)))
        rows = thinned(rows[~np.isnan(done.X[rows]).all(axis=1)])
        models = _fit_all(encoder, done.X, y, rows)
        X, features, running = done.X[rows], encoder(done.X[rows]), encoder(moment.running)
        is_good = _is_finished(done.losses[rows], done.violation[rows])
        return cls(
            y=y[rows],
            features=features,
            models=models,
            believing=[m.believing(running) for m in models] if len(running) else models,
            reached=np.vstack([features[is_good], running]),
            best=X[ranks(y[rows]) == 0] if len(rows) else X,
        )


def _is_finished(losses: Floats, violation: Floats) -> Mask:  # (n,)
    """Return which observations are feasible and were not pruned; all where none is."""
    is_finished: Mask = (violation <= 0.0) & (losses < np.inf).all(axis=1)
    return is_finished if is_finished.any() else ~is_finished


def thinned(rows: Ints) -> Ints:
    """Return at most `MAX_OBSERVATIONS` of a task's rows, which are sorted, the best first."""
    n_best = MAX_OBSERVATIONS // 2
    if len(rows) <= MAX_OBSERVATIONS:
        return rows
    others = np.linspace(n_best, len(rows) - 1, MAX_OBSERVATIONS - n_best).round()
    return np.concatenate([rows[:n_best], rows[others.astype(np.int64)]])


def _ordered(y: Floats, encoded: Encoded) -> Ints:
    """Return the rows of a past task that say something, the best first."""
    rows = order(y, np.zeros(len(y)))
    return rows[encoded.says[rows]]


def _matching(task: Task, names: tuple[str, ...]) -> list[int]:
    """Return which objective of the task belongs to each of the study's."""
    if set(names) == set(task.objective_names):
        return [task.objective_names.index(name) for name in names] or [*range(task.n_objectives)]
    return [*range(task.n_objectives)]


def _fit_all(encoder: Encoder, X: Floats, y: Floats, rows: Ints) -> Models:
    """Return the models of some rows of a task."""
    is_used = ~np.asarray(np.isnan(X[rows]).all(axis=0))
    features = encoder(X[rows])
    return [fit(features, y[rows, j], encoder.owner, is_used) for j in range(y.shape[1])]
