"""The Gaussian processes of past tasks in one space.

They depend on the tasks, the space and the names of the objectives. Each is fitted once, when it
is first asked for. Objectives are matched by name where the study and a task name the same ones,
otherwise by order. Where all of many tasks are asked for, ten are fitted, and the others take the
geometric means of their length scales and of their noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from metatpe.gp.models import Models, fit_all, thinned
from metatpe.gp.process import Encoder, GaussianProcess
from metatpe.gp.transform import scores
from metatpe.past.task import Encoded, Task
from metatpe.space import Columns, Floats, Ints
from metatpe.tpe.pareto import order

_N_BEST = 20  # of each past task, to start a search from
_N_FITTED = 10  # of all past tasks; the others get the settings of these
_MIN_WHOLE = 5  # observations that have lost nothing on the way into the space
_MAX_UNFITTED = 100  # observations of each of the others


class _Scored(NamedTuple):
    """The observations of a task that fit the space."""

    X: Floats  # (n, d)
    y: Floats  # (n, m), scores
    losses: Floats  # (n, m), in the order of the scores


class PastModels:
    """The models of past tasks, by their index in `Past.names`.

    Args:
        columns: The space.
        rows: The tasks, and their observations in the space.
        objective_names: Those of the study, empty where it has none.
    """

    def __init__(
        self,
        columns: Columns,
        rows: Sequence[tuple[Task, Encoded]],
        objective_names: tuple[str, ...],
    ) -> None:
        self._columns = columns
        self._rows = rows
        self._objective_names = objective_names
        self._fitted: dict[int, Models] = {}
        self._best: dict[int, Floats] = {}
        self.encoder = Encoder(columns)

    def of(self, chosen: Iterable[int]) -> list[Models]:
        """Return the models of some of the tasks."""
        for m in chosen:
            if m not in self._fitted:
                self._fitted[m] = self._fit(m)
        return [self._fitted[m] for m in chosen]

    def best(self, chosen: Iterable[int]) -> Floats:  # (k, d)
        """Return the best configurations of some tasks, missing values set to the middle."""
        for m in chosen:
            if m not in self._best:
                self._best[m] = self._best_of(m)
        X = np.vstack([np.empty((0, len(self._columns))), *(self._best[m] for m in chosen)])
        return self._columns.snap(np.where(np.isnan(X), 0.5, X))

    def of_all(self) -> Iterator[tuple[Models, Floats, Floats]]:
        """Yield of each task its models, and scores and losses (n, m) of its observations."""
        fitted = self.of(_evenly(len(self._rows), _N_FITTED))
        settings = [_mean_settings(own) for own in zip(*fitted, strict=True)]
        for m in range(len(self._rows)):
            scored = self._scored(m)
            models = self._fitted[m] if m in self._fitted else self._unfitted(scored, settings)
            yield models, scored.y, scored.losses

    def _unfitted(self, scored: _Scored, settings: Sequence[tuple[Floats, float]]) -> Models:
        """Return models with given settings, by some of a task's observations."""
        some = _some(scored.y)
        features = self.encoder(scored.X[some])
        return [
            GaussianProcess.of(features, y[some], scale, noise)
            for y, (scale, noise) in zip(scored.y.T, settings, strict=True)
        ]

    def _fit(self, m: int) -> Models:
        """Return the models of one task."""
        scored = self._scored(m)
        kept = thinned(order(scored.y, np.zeros(len(scored.y))))
        return fit_all(self.encoder, scored.X[kept], scored.y[kept])

    def _best_of(self, m: int) -> Floats:  # (k, d)
        """Return the best configurations of one task."""
        scored = self._scored(m)
        return scored.X[order(scored.y, np.zeros(len(scored.y)), n=_N_BEST)]

    def _scored(self, m: int) -> _Scored:
        task, encoded = self._rows[m]
        own = _matching(task, self._objective_names)
        y = scores(task.losses, task.violation)[:, own]
        # A model treats a missing value as one in the middle. So what has lost one is left out, as
        # long as enough is left.
        is_usable = encoded.is_usable
        if np.count_nonzero(encoded.is_whole) >= _MIN_WHOLE:
            is_usable = encoded.is_whole
        losses = _ranked_losses(task)[is_usable][:, own]
        return _Scored(encoded.X[is_usable], y[is_usable], losses)


def _evenly(n: int, n_wanted: int) -> list[int]:
    """Return the indices of some of n tasks, evenly spaced."""
    spaced: list[int] = np.linspace(0, n - 1, min(n, n_wanted)).astype(np.int64).tolist()
    return spaced


def _ranked_losses(task: Task) -> Floats:  # (n, m)
    """Return losses in the order of their scores: the worst where one must not count as good."""
    is_feasible = (task.violation <= 0.0)[:, None]
    is_known = is_feasible & np.isfinite(task.losses)
    best = np.where(is_known, task.losses, np.inf).min(axis=0)
    worst = np.where(is_known, task.losses, -np.inf).max(axis=0)
    return np.where(is_feasible, np.clip(task.losses, best, worst), worst)


def _some(y: Floats) -> Ints:  # (n, m)
    """Return which of many observations are taken: the best, and others evenly."""
    if len(y) <= _MAX_UNFITTED:
        return np.arange(len(y))
    best = order(y, np.zeros(len(y)), n=_MAX_UNFITTED // 2)
    others = np.setdiff1d(np.arange(len(y)), best)
    evenly = np.linspace(0, len(others) - 1, _MAX_UNFITTED - len(best)).astype(np.int64)
    return np.concatenate([best, others[evenly]])


def _mean_settings(models: Sequence[GaussianProcess]) -> tuple[Floats, float]:  # (p,)
    """Return the geometric means of the scales and of the noise of some models."""
    scales = np.stack([model.scale for model in models])
    n_used = np.count_nonzero(scales, axis=0)
    logs = np.log(np.where(scales > 0.0, scales, 1.0)).sum(axis=0) / np.maximum(n_used, 1)
    noises = np.log([model.noise for model in models])
    return np.exp(logs), float(np.exp(noises.mean()))


def _matching(task: Task, names: tuple[str, ...]) -> list[int]:
    """Return which objective of the task belongs to each of the study's."""
    if set(names) == set(task.objective_names):
        return [task.objective_names.index(name) for name in names] or [*range(task.n_objectives)]
    return [*range(task.n_objectives)]
