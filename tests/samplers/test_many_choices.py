"""Categorical parameters of very many choices need memory in proportion to them, no more."""

from __future__ import annotations

import tracemalloc

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.trial import Trial

from samplers.five import EVERY, Make

N_CHOICES = 10_000
DISTRIBUTIONS: dict[str, BaseDistribution] = {
    "choice": CategoricalDistribution(range(N_CHOICES)),
    "x": FloatDistribution(0, 1),
}


def objective(trial: Trial) -> float:
    choice = trial.params["choice"]
    return (choice / N_CHOICES - 0.3) ** 2 + trial.params["x"]


@pytest.mark.parametrize("make", EVERY, ids=str)
def test_memory_is_linear_in_the_number_of_choices(make: Make) -> None:
    past = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(8):
        trial = past.ask(DISTRIBUTIONS)
        past.tell(trial, objective(trial))
    study = optuna.create_study(sampler=make([past], n_startup_trials=2))
    tracemalloc.start()
    try:
        for _ in range(5):
            trial = study.ask(DISTRIBUTIONS)
            study.tell(trial, objective(trial))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4000 * N_CHOICES  # a table of all pairs has 80,000 bytes per choice
    assert all(0 <= t.params["choice"] < N_CHOICES for t in study.trials)
