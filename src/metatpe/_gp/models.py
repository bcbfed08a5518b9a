"""The Gaussian processes of the past tasks and of the study, one for each objective.

The models of the past depend on the sources and the space alone, and are fitted once. A task of
more than `MAX_OBSERVATIONS` is modelled by as many: the best half of them by its order, and the
rest evenly from what follows, so that a suggestion does not become slow.

Objectives are matched by name where the study and a source name the same ones, otherwise by order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from metatpe._gp.branches import Branches
from metatpe._gp.process import Encoder, GaussianProcess, fit
from metatpe._gp.transform import all_scores, scores
from metatpe._history import Moment
from metatpe._pareto import order, ranks
from metatpe.space import Floats, Ints, Mask, Space
from metatpe.tasks import Encoded, Task

Models = Sequence[GaussianProcess]  # of one task, one an objective
MAX_OBSERVATIONS = 300
_N_BEST = 20  # of each past task, to start a search from


class PastModels:
    """The models of the past tasks in one space, each fitted when it is first asked for."""

    def __init__(
        self, tasks: Sequence[Task], space: Space, objective_names: tuple[str, ...]
    ) -> None:
        encoded = [(task, task.encode_in(space)) for task in tasks]
        self._usable = [(task, in_space) for task, in_space in encoded if in_space.says.any()]
        self._columns = space.columns
        self._objective_names = objective_names
        self._fitted: dict[int, tuple[Models, Floats]] = {}
        self.encoder = Encoder(space.columns)
        self.names = [task.name for task, _ in self._usable]

    def models(self, chosen: Iterable[int]) -> list[Models]:
        """Return the models of some of the tasks."""
        return [self._of(m)[0] for m in chosen]

    def best(self, chosen: Iterable[int]) -> Floats:  # (k, d)
        """Return the best configurations of some of the tasks, what is missing in the middle."""
        X = np.vstack([np.empty((0, len(self._columns))), *(self._of(m)[1] for m in chosen)])
        return self._columns.snap(np.where(np.isnan(X), 0.5, X))

    def _of(self, m: int) -> tuple[Models, Floats]:
        """Return the models of one task and its best configurations."""
        if m not in self._fitted:
            task, in_space = self._usable[m]
            y = scores(task.losses, task.violation)[:, _matching(task, self._objective_names)]
            rows = _ordered(y, in_space)
            kept = thinned(rows)
            models = fit_all(self.encoder, in_space.X[kept], y[kept])
            self._fitted[m] = models, in_space.X[rows[:_N_BEST]]
        return self._fitted[m]


@dataclass(frozen=True, eq=False)
class Observed:
    """The study's own observations as its models see them."""

    X: Floats  # (n, d)
    y: Floats  # (n, m)
    features: Floats  # (n, p)
    running: Floats  # (r, p), features of what others are evaluating
    is_good: Mask  # (n,), feasible and finished
    scales: list[list[Floats]]  # of each objective, its column of y on this scale and on others
    branches: Branches

    @classmethod
    def of(cls, moment: Moment, encoder: Encoder) -> Observed:
        """Return the observations of a study that say something, the best first."""
        done = moment.observations
        scales = all_scores(done.losses, done.violation)
        y = np.stack([first for first, *_ in scales], axis=1)
        rows = order(y, np.zeros(len(y)))
        rows = thinned(rows[~np.isnan(done.X[rows]).all(axis=1)])
        is_good = _is_finished(done.losses[rows], done.violation[rows])
        scales = [[z[rows] for z in own] for own in scales]
        branches = Branches.of(moment.space.columns, done.X, moment.running)
        running, features = encoder(branches(moment.running)), encoder(done.X[rows])
        return cls(done.X[rows], y[rows], features, running, is_good, scales, branches)

    @property
    def front(self) -> Floats:  # (k, d)
        """The configurations of the first front."""
        return self.X[ranks(self.y) == 0] if len(self.y) else self.X

    @property
    def reached(self) -> Floats:  # (k, p)
        """Features of the good observations, and of what is being evaluated."""
        return np.vstack([self.features[self.is_good], self.running])

    @property
    def is_used(self) -> Mask:  # (d,)
        """Which columns some observation has."""
        return ~np.asarray(np.isnan(self.X).all(axis=0))


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


def fit_all(encoder: Encoder, X: Floats, y: Floats) -> Models:
    """Return the models of a task with observations X (n, d) and scores y (n, m)."""
    is_used, features = ~np.asarray(np.isnan(X).all(axis=0)), encoder(X)
    return [fit(features, own, encoder.owner, is_used) for own in y.T]
