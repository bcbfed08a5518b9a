"""Optuna's own contract for samplers, for every kind of past."""

from __future__ import annotations

from collections.abc import Callable

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

from metatpe import MetaTPESampler, Task

PASTS: dict[str, dict[str, BaseDistribution]] = {
    "no sources": {},
    "same names": {"x": FloatDistribution(0, 10), "y": FloatDistribution(0, 10)},
    "other ranges": {"x": FloatDistribution(5, 50), "y": IntDistribution(1, 1000, log=True)},
    "other choices": {
        "x": CategoricalDistribution((1, "a", None)),
        "y": CategoricalDistribution((-10, 2.5, True)),
    },
    "nothing in common": {"p": FloatDistribution(0, 1), "q": IntDistribution(0, 3)},
}


def past_tasks(space: dict[str, BaseDistribution], n_objectives: int) -> list[Task]:
    if not space:
        return []
    tasks = []
    for seed in range(2):
        sampler = optuna.samplers.RandomSampler(seed=seed)
        study = optuna.create_study(directions=["minimize"] * n_objectives, sampler=sampler)
        for i in range(20):
            trial = study.ask(space)
            study.tell(trial, [float(i * (k + 1) % 7) for k in range(n_objectives)])
        tasks.append(Task.from_study(study))
    return tasks


class _Sampler:
    n_objectives = 1

    @pytest.fixture(params=[f"{past}, {n}" for past in PASTS for n in ("defaults", "no start-up")])
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        past, start = request.param.split(", ")
        sources = past_tasks(PASTS[past], self.n_objectives)
        if start == "defaults":
            return lambda: MetaTPESampler(sources)
        return lambda: MetaTPESampler(sources, n_startup_trials=0)


class TestBasic(_Sampler, BasicSamplerTestCase):
    pass


class TestRelative(_Sampler, RelativeSamplerTestCase):
    pass


class TestMultiObjective(_Sampler, MultiObjectiveSamplerTestCase):
    n_objectives = 2
