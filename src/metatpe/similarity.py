"""The paper's two measures on their own: how alike tasks are, and which parameters matter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metatpe._importance import importances
from metatpe._transfer import Past, Settings, similarities_to
from metatpe.space import Floats, Space
from metatpe.tasks import Task


def gamma_similarity(
    a: Task, b: Task, *, gamma: float = 0.1, eta: float = 2.5, n_mc_samples: int = 1000
) -> float:
    """Return how much the best regions of two tasks overlap: intersection over union, in [0, 1].

    Measured in the space of `a`, on its floor(log_eta n) most important parameters, n being the
    number of good observations of `a`. With too few observations for one parameter it is 1, and 0
    where `b` has none of the parameters.

    Args:
        a: The task to compare with.
        b: Another task; its space may differ.
        gamma: The fraction of observations that count as good.
        eta: The larger, the fewer parameters are compared.
        n_mc_samples: Points at which the densities are compared, where that is not exact anyway.

    Example:
        >>> rows = {"x": [i / 10 for i in range(10)], "loss": list(range(10))}
        >>> task = Task.from_dataframe(rows, objectives="loss")
        >>> round(gamma_similarity(task, task), 3)
        1.0
    """
    settings = Settings(gamma, eta, n_mc_samples, is_naive=False)
    return _compared(Past([a], a.space, settings), Past([b], a.space, settings), settings)


def similarity_matrix(tasks: Sequence[Task]) -> Floats:  # (n, n)
    """Return `gamma_similarity` of each task to each; models are made once for a space."""
    settings = Settings(0.1, 2.5, 1000, is_naive=False)
    matrix = np.empty((len(tasks), len(tasks)))
    space: Space | None = None
    models: list[Past] = []
    for i, a in enumerate(tasks):
        if a.space != space:
            space, models = a.space, [Past([b], a.space, settings) for b in tasks]
        matrix[i] = [_compared(models[i], other, settings) for other in models]
    return matrix


def _compared(own: Past, other: Past, settings: Settings) -> float:
    """Return the similarity of two tasks in the space of the first."""
    if not other.densities:
        return 0.0
    s, _ = similarities_to(own.densities[0].good, other, settings)
    return float(s[0])


def importance(task: Task, *, gamma: float = 0.1) -> dict[str, float]:
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
    past = Past([task], task.space, Settings(gamma, 2.0, 1, is_naive=False))
    V = importances(past.densities[0].good, gamma)
    named = {n: float(v) for n, v in zip(task.space.names, V, strict=True) if v == v}
    return dict(sorted(named.items(), key=lambda item: -item[1]))
