"""Optuna's own contract for samplers, with the sampler as OptunaHub loads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import optuna
import optunahub
import pytest
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

module = optunahub.load_local_module(
    package="samplers/metatpe", registry_root=str(Path(__file__).parents[3])
)


def past_study(n_objectives: int) -> optuna.Study:
    """Return a study of a problem in two parameters."""
    study = optuna.create_study(
        directions=["minimize"] * n_objectives, sampler=optuna.samplers.RandomSampler(seed=0)
    )
    for _ in range(20):
        trial = study.ask()
        x, y = trial.suggest_float("x", 0, 10), trial.suggest_float("y", 0, 10)
        study.tell(trial, [x**2 + y, (x - 2) ** 2 + y**2][:n_objectives])
    return study


class _Sampler:
    n_objectives = 1

    @pytest.fixture(params=["TransferSampler", "MetaTPESampler"])
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], optuna.samplers.BaseSampler]:
        sources = [past_study(self.n_objectives)]
        return lambda: getattr(module, request.param)(sources, n_startup_trials=0)


class TestBasic(_Sampler, BasicSamplerTestCase):
    pass


class TestRelative(_Sampler, RelativeSamplerTestCase):
    pass


class TestMultiObjective(_Sampler, MultiObjectiveSamplerTestCase):
    n_objectives = 2
