r"""What a run is given beforehand: past tasks and first configurations, the same for every method.

With a seed and a stream s, a number of its own for each past task, and n observations:

    X_s = n different random configurations, by the generator of (seed, s);   s >= 1 a past task
    X_0 = the first configurations of the methods without a past
    past task s = X_s and what its problem answers there, with the noise of this seed

Neither the method nor the number of past tasks enters, so that runs with one seed can be paired.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from metatpe.bench.problems import Problem
from metatpe.past.curves import table_of
from metatpe.past.task import Task
from metatpe.space import Space

_N_DRAWS = 3  # for each configuration that is wanted, since some are drawn twice


def random_configurations(
    problem: Problem, n: int, key: tuple[int, int]
) -> tuple[dict[str, Any], ...]:
    """Return n different random configurations.

    Args:
        problem: Its space is drawn from, uniformly; in a conditional one, the parameter that
            decides is drawn first, and then what its branch uses.
        n: How many.
        key: The seed and the stream that they follow from.

    Raises:
        ValueError: If the space is so small that there are not as many.
    """
    space = Space(problem.space)
    rng = np.random.default_rng(np.random.SeedSequence(key))
    drawn = space.decode(space.columns.snap(rng.random((_N_DRAWS * n, len(space)))))
    # In a conditional space many points are the same configuration, as all of a branch that has
    # no parameters are.
    distinct = {json.dumps(c, sort_keys=True): c for c in map(problem.used, drawn)}
    if len(distinct) < n:
        raise ValueError(
            f"problem {problem.name!r}: {n} different configurations are wanted, but only "
            f"{len(distinct)} were found; ask for fewer."
        )
    return tuple(distinct.values())[:n]


def past_task(problem: Problem, n: int, seed: int, stream: int) -> Task:
    """Return a past task: n random configurations of a problem, evaluated."""
    configurations = random_configurations(problem, n, (seed, stream))
    space = Space(problem.space)
    values = np.array([problem.evaluate(c, seed) for c in configurations])
    X, losses = space.encode(configurations), problem.losses(values)
    if problem.curve is None:
        return Task(problem.name, space, X, losses)
    curves = [problem.losses(problem.curve(c)[:, None]).tolist() for c in configurations]
    table = table_of([dict(enumerate(curve)) for curve in curves], problem.directions)
    return Task(problem.name, space, X, losses, curves=table)
