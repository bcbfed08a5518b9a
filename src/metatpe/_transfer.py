"""The whole method on arrays: from the current task's observations and the past tasks to a pick.

Ties the modules of the method together; knows neither trials nor studies. See `_pareto` for the
split, `_kde` for the densities, `_importance` and `_kernel` for the task weights, `_acquisition`
for the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metatpe._acquisition import Densities
from metatpe._importance import importances, kept_columns, mean_importances
from metatpe._kde import Parzen
from metatpe._kernel import Nodes, make_nodes, similarities, task_weights
from metatpe._pareto import split
from metatpe.space import Columns, Floats, Space
from metatpe.tasks import Encoded, Task

_MAX_NODES = 8  # sets of kept columns whose nodes are remembered


@dataclass(frozen=True)
class Settings:
    """The control parameters of the paper (see `MetaTPESampler`)."""

    gamma: float
    eta: float
    n_mc_samples: int
    is_naive: bool


class Past:
    """The past tasks in one space: densities, importances, and where to compare them.

    All but the last answer of `weigh` depends on the past tasks and the space alone, and is
    computed once. `remarks` says what was lost on the way into the space.
    """

    def __init__(self, tasks: Sequence[Task], space: Space, settings: Settings) -> None:
        self._settings = settings
        encoded = [(task, task.encode_in(space)) for task in tasks]
        usable = [(task, in_space) for task, in_space in encoded if in_space.says.any()]
        self.names = tuple(task.name for task, _ in usable)
        self.densities = [
            _past_densities(space.columns, task, in_space, settings.gamma)
            for task, in_space in usable
        ]
        self.remarks = [
            f"source {task.name!r}{'' if in_space.says.any() else ' is skipped'}: {lost}"
            for task, in_space in encoded
            if (lost := in_space.describe())
        ]
        self._last: tuple[Parzen, Floats, tuple[int, ...]] | None = None
        self._columns = space.columns
        self._nodes: dict[tuple[int, ...], list[Nodes]] = {}

    @cached_property
    def importances(self) -> Floats:  # (M, d)
        """The importance of each column in each past task."""
        return np.stack([importances(task.good, self._settings.gamma) for task in self.densities])

    def nodes(self, kept: tuple[int, ...]) -> list[Nodes]:
        """Return where to compare densities on the kept columns."""
        if kept not in self._nodes:
            if len(self._nodes) >= _MAX_NODES:
                del self._nodes[next(iter(self._nodes))]
            good = [task.good for task in self.densities]
            self._nodes[kept] = make_nodes(good, kept, self._settings.n_mc_samples)
        return self._nodes[kept]

    def weigh(self, X: Floats) -> tuple[Parzen, Floats, tuple[int, ...]]:
        """Return the good density of the current task, the task weights, and the kept columns.

        The good observations X (n, d) stay the same whenever a new one is bad; then nothing is
        computed anew.
        """
        if self._last is None or not np.array_equal(self._last[0].centers, X, equal_nan=True):
            good = Parzen(self._columns, X)
            self._last = (good, *weigh(good, self, self._settings))
        return self._last


def _past_densities(columns: Columns, task: Task, encoded: Encoded, gamma: float) -> Densities:
    """Return the densities of a past task; the split is that of all of its observations."""
    is_good = split(task.losses, task.violation, gamma)
    return Densities.of(columns, encoded.X[encoded.says], is_good[encoded.says])


def weigh(target: Parzen, past: Past, settings: Settings) -> tuple[Floats, tuple[int, ...]]:
    """Return the task weights (T,), the target's first, and the kept columns.

    Args:
        target: The good density of the current task.
        past: The past tasks.
        settings: eta and whether the weights are the naive ones.
    """
    n_past = len(past.densities)
    if settings.is_naive or n_past == 0:
        return np.full(n_past + 1, 1.0 / (n_past + 1)), ()
    V = np.vstack([importances(target, settings.gamma)[None], past.importances])
    kept = kept_columns(mean_importances(V), len(target), settings.eta)
    s = similarities(target, past.nodes(kept), n_past) if kept else np.ones(n_past)
    return task_weights(s), kept
