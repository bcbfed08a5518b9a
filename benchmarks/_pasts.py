"""Kinds of past for a problem: one that fits, and three that do not. `_runs.py` runs with them.

A past task has 100 random configurations of the target's own space. They are

    like       the problems that the suite has as the past of the target (for an ellipsoid, others
               with a shifted centre), as `metatpe bench run` gives them
    noise      random numbers as results
    reverse    the target with its losses negated: worst where the target is best
    other      a bowl around a random point, another one for each objective and task
    renamed    as `like`, but all tasks except the first have other names for their parameters
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metatpe import Space, Task
from metatpe.bench import Problem, get_problem, problem_names
from metatpe.bench.past import past_task, random_configurations
from metatpe.bench.plan import N_PAST, past_of
from metatpe.bench.problems import past_names, suite_of

HARMFUL = ("noise", "reverse", "other")
KINDS = ("like", *HARMFUL)  # `renamed` has to be asked for


def past_tasks(kind: str, name: str, seed: int, n_tasks: int | None = None) -> list[Task]:
    """Return the past tasks of a problem.

    Args:
        kind: One of `KINDS`.
        name: The problem that is searched.
        seed: Of the run; runs with one seed have the same past.
        n_tasks: How many tasks, as far as there are as many; left out, as many as the suite has.
    """
    names = like_names(name)[: len(past_names(name)) if n_tasks is None else n_tasks]
    if kind in ("like", "renamed"):
        past = past_of(name, names)
        tasks = [past_task(get_problem(p.problem), N_PAST, seed, p.stream) for p in past]
        return tasks if kind == "like" else [tasks[0], *map(_renamed, tasks[1:])]
    n = len(names) if n_tasks is None else n_tasks
    return [_misleading_task(kind, get_problem(name), seed, 1 + i) for i in range(n)]


def like_names(name: str) -> list[str]:
    """Return problems that resemble one: first its past in the suite, then the others there."""
    suite = suite_of(name)
    if suite == "ellipsoid":
        return [f"{name}-c{shift}" for shift in (0.25, 0.5, 1)]
    others = [other for other in problem_names(suite) if other != name]
    return list(dict.fromkeys([*past_names(name), *others]))


def _renamed(task: Task) -> Task:
    named = {f"other {name}": d for name, d in task.space.distributions.items()}
    return replace(task, space=Space(named))


def _misleading_task(kind: str, problem: Problem, seed: int, stream: int) -> Task:
    configurations = random_configurations(problem, N_PAST, (seed, stream))
    space, rng = Space(problem.space), np.random.default_rng([seed, stream, 4])
    X, m = space.encode(configurations), problem.n_objectives
    if kind == "noise":
        losses = rng.normal(size=(len(X), m))
    elif kind == "reverse":
        losses = -problem.losses(np.array([problem.evaluate(c, seed) for c in configurations]))
    else:
        # The mean and not the sum: a branch with few parameters is no better for it.
        losses = np.nanmean((X[:, None] - rng.random((m, len(space)))) ** 2, axis=2)
    return Task(f"{kind} {stream}", space, X, losses)
