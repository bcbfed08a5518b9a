"""The paper's two measures on their own: how alike tasks are, and which parameters matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from metatpe.past.densities import PastDensities
from metatpe.past.known import Past
from metatpe.past.task import Task
from metatpe.space import Floats, Space
from metatpe.tpe.importance import ETA, importances
from metatpe.tpe.kernel import N_MC_SAMPLES
from metatpe.tpe.pareto import GAMMA


def gamma_similarity(
    a: Task, b: Task, *, gamma: float = GAMMA, eta: float = ETA, n_mc_samples: int = N_MC_SAMPLES
) -> float:
    """Return how much the best regions of two tasks overlap: intersection over union, in [0, 1].

    Measured in the space of `a`, on the floor(log_eta n) parameters, but at least one, that are
    most important on average over both tasks, among those that `b` uses; n is the number of good
    observations of `a`. 0 if the tasks have no parameter in common.

    Args:
        a: The task to compare with.
        b: Another task; its space may differ.
        gamma: The fraction of observations that count as good.
        eta: The larger, the fewer parameters are compared.
        n_mc_samples: Number of points at which densities are compared, if it is not exact.

    Example:
        >>> rows = {"x": [i / 10 for i in range(10)], "loss": list(range(10))}
        >>> task = Task.from_dataframe(rows, objectives="loss")
        >>> round(gamma_similarity(task, task), 3)
        1.0
    """
    own, other = (Past([task], a.space).densities(gamma) for task in (a, b))
    return _similarity(own, other, eta, n_mc_samples)


def similarity_matrix(
    tasks: Sequence[Task], *, step: Callable[[int], None] = lambda n: None
) -> Floats:  # (n, n)
    """Return `gamma_similarity` of each task to each; densities are made once per space.

    `step` is called with the number of rows that are done.
    """
    matrix = np.empty((len(tasks), len(tasks)))
    space: Space | None = None
    densities: list[PastDensities] = []
    for i, a in enumerate(tasks):
        if a.space != space:
            space, densities = a.space, [Past([b], a.space).densities(GAMMA) for b in tasks]
        matrix[i] = [_similarity(densities[i], other, ETA, N_MC_SAMPLES) for other in densities]
        step(i + 1)
    return matrix


def _similarity(own: PastDensities, other: PastDensities, eta: float, n_mc_samples: int) -> float:
    """Return the similarity of two tasks in the space of the first; 0 where nothing is shared."""
    if not other.tasks:
        return 0.0
    s, _ = other.similarities(own.tasks[0].good, eta=eta, n_mc_samples=n_mc_samples)
    return float(s[0])


def importance(task: Task, *, gamma: float = GAMMA) -> dict[str, float]:
    """Return PED-ANOVA's importance of each parameter for being among the best, the largest first.

    Args:
        task: The task.
        gamma: The fraction of observations that count as good; the paper's default.

    Example:
        >>> rows = {"x": [i / 20 for i in range(20)], "y": [7 * i % 20 / 20 for i in range(20)]}
        >>> rows["loss"] = list(range(20))  # the smaller x, the better
        >>> list(importance(Task.from_dataframe(rows, objectives="loss")))
        ['x', 'y']
    """
    (densities,) = Past([task], task.space).densities(gamma).tasks
    V = importances(densities.good, gamma)
    named = {n: float(v) for n, v in zip(task.space.names, V, strict=True) if v == v}
    return dict(sorted(named.items(), key=lambda item: -item[1]))
