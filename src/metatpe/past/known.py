"""Past tasks in the space of a study, encoded once."""

from __future__ import annotations

from collections.abc import Sequence

from metatpe.past.densities import PastDensities
from metatpe.past.models import PastModels
from metatpe.past.task import Task
from metatpe.recent import Recent
from metatpe.space import Space


class Past:
    """Past tasks in one space: their names, their rows, and two views of the same rows.

    A task that has nothing in common with the space is left out. `remarks` has a sentence for each
    task of which something was lost on the way into the space.

    Args:
        tasks: The past tasks.
        space: The space of the study.
    """

    def __init__(self, tasks: Sequence[Task], space: Space) -> None:
        encoded = [(task, task.encode_in(space)) for task in tasks]
        self.remarks = [
            f"source {task.name!r}{'' if rows.is_usable.any() else ' is skipped'}: {lost}"
            for task, rows in encoded
            if (lost := rows.describe())
        ]
        self.rows = [(task, rows) for task, rows in encoded if rows.is_usable.any()]
        self.names = tuple(task.name for task, _ in self.rows)
        self.space = space
        self._densities: Recent[tuple[float, bool], PastDensities] = Recent(1)
        self._models: Recent[tuple[str, ...], PastModels] = Recent(2)

    def densities(self, gamma: float, *, keeps_front: bool = True) -> PastDensities:
        """Return the densities, made when they are first asked for."""
        return self._densities.get(
            (gamma, keeps_front),
            lambda: PastDensities(self.space.columns, self.rows, gamma, keeps_front=keeps_front),
        )

    def models(self, objective_names: tuple[str, ...]) -> PastModels:
        """Return the Gaussian processes, each fitted when it is first asked for.

        Args:
            objective_names: Those of the study, empty where it has none.
        """
        return self._models.get(
            objective_names,
            lambda: PastModels(self.space.columns, self.rows, objective_names),
        )
