"""The Gaussian processes of past tasks in one space.

They depend on the tasks, the space and the names of the objectives. Each is fitted once, when it
is first asked for. Objectives are matched by name where the study and a task name the same ones,
otherwise by order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from metatpe.gp.models import Models, fit_all, thinned
from metatpe.gp.process import Encoder
from metatpe.gp.transform import scores
from metatpe.past.task import Encoded, Task
from metatpe.space import Columns, Floats
from metatpe.tpe.pareto import order

_N_BEST = 20  # of each past task, to start a search from


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
        self._fitted: dict[int, tuple[Models, Floats]] = {}
        self.encoder = Encoder(columns)

    def of(self, chosen: Iterable[int]) -> list[Models]:
        """Return the models of some of the tasks."""
        return [self._fit(m)[0] for m in chosen]

    def best(self, chosen: Iterable[int]) -> Floats:  # (k, d)
        """Return the best configurations of some of the tasks, what is missing in the middle."""
        X = np.vstack([np.empty((0, len(self._columns))), *(self._fit(m)[1] for m in chosen)])
        return self._columns.snap(np.where(np.isnan(X), 0.5, X))

    def _fit(self, m: int) -> tuple[Models, Floats]:
        """Return the models of one task and its best configurations."""
        if m not in self._fitted:
            task, encoded = self._rows[m]
            y = scores(task.losses, task.violation)[:, _matching(task, self._objective_names)]
            rows = order(y, np.zeros(len(y)))
            rows = rows[encoded.is_usable[rows]]
            kept = thinned(rows)
            models = fit_all(self.encoder, encoded.X[kept], y[kept])
            self._fitted[m] = models, encoded.X[rows[:_N_BEST]]
        return self._fitted[m]


def _matching(task: Task, names: tuple[str, ...]) -> list[int]:
    """Return which objective of the task belongs to each of the study's."""
    if set(names) == set(task.objective_names):
        return [task.objective_names.index(name) for name in names] or [*range(task.n_objectives)]
    return [*range(task.n_objectives)]
