"""Optuna's own contract for samplers, for every sampler and every kind of past."""

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

from metatpe import Task
from samplers.five import (
    EVERY,
    LEARNING,
    META_TPE,
    MODELLING,
    RGPE,
    TRANSFER,
    TSTR,
    WARM_START,
    Make,
)

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


Case = tuple[Make, str, bool]  # who, with which past, with a start

WITH_START = dict.fromkeys((META_TPE, WARM_START), tuple(PASTS)) | dict.fromkeys(
    MODELLING, ("other ranges", "other choices")
)
WITHOUT_START = {META_TPE: tuple(PASTS)} | dict.fromkeys(
    MODELLING, ("no sources", "same names", "nothing in common")
)
EVERYTHING: list[Case] = [
    (make, past, has_start)
    for has_start, pasts in ((True, WITH_START), (False, WITHOUT_START))
    for make in pasts
    for past in pasts[make]
]
SAME_NAMES: list[Case] = [(make, "same names", make not in LEARNING) for make in EVERY]
# Optuna's tests ask for hundreds of trials that nobody finishes, each of which a model counts as
# an observation: most of them are slow. TestRelative has all samplers with a past.
QUICK: list[Case] = [
    (META_TPE, "same names", False),
    (META_TPE, "other choices", True),
    (TRANSFER, "no sources", False),
    (RGPE, "no sources", False),
    (TSTR, "no sources", False),
    (WARM_START, "same names", True),
]
# With several objectives a suggestion takes twice as long: two pasts have to do.
QUICK_OF_SEVERAL = [case for case in QUICK if case[1] != "other choices"]
OF_SEVERAL = [
    (make, past, has_start)
    for make, past, has_start in EVERYTHING
    if make not in MODELLING or past in ("no sources", "same names")
]


def cases(quick: list[Case], everything: list[Case] = EVERYTHING) -> list[object]:
    """Return cases for pytest; all but the quick ones are marked as slow."""
    return [
        pytest.param(
            (make, past, has_start),
            id=f"{make}, {past}, {'start' if has_start else 'no start'}",
            marks=[] if (make, past, has_start) in quick else pytest.mark.slow,
        )
        for make, past, has_start in everything
    ]


def factory(case: Case, n_objectives: int) -> Callable[[], BaseSampler]:
    make, past, has_start = case
    sources = past_tasks(PASTS[past], n_objectives)
    settings = {} if has_start else {"n_startup_trials": 0}
    return lambda: make.kind(sources, **settings)  # without a seed


class TestBasic(BasicSamplerTestCase):
    @pytest.fixture(params=cases(QUICK))
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        return factory(request.param, 1)


class TestRelative(RelativeSamplerTestCase):
    @pytest.fixture(params=cases(SAME_NAMES))
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        return factory(request.param, 1)


class TestMultiObjective(MultiObjectiveSamplerTestCase):
    @pytest.fixture(params=cases(QUICK_OF_SEVERAL, OF_SEVERAL))
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        return factory(request.param, 2)
