"""TransferSampler where an objective is the same in whole regions of the space."""

from dataclasses import replace

import numpy as np
import optuna
from optuna.distributions import FloatDistribution

from metatpe import Space, TransferSampler
from metatpe.gp.informed import inform
from metatpe.gp.models import Observed
from metatpe.gp.process import Encoder
from metatpe.samplers import transfer

SPACE = {name: FloatDistribution(0.0, 1.0) for name in "abc"}


def n_different(*, has_rule: bool, seed: int) -> int:
    """Return how many of 40 trials had losses of their own on a table of the nearest entry."""
    rng = np.random.default_rng(seed)
    entries = rng.random((60, 3))
    losses = ((entries - 0.3) ** 2).sum(axis=1) + 0.05 * rng.normal(size=60)

    def objective(trial: optuna.Trial) -> float:
        x = [trial.suggest_float(name, 0.0, 1.0) for name in SPACE]
        return float(losses[((entries - x) ** 2).sum(axis=1).argmin()])

    sampler = TransferSampler(search_space=SPACE, seed=seed)
    sampler.rules = replace(sampler.rules, plateaus=has_rule)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=40)
    return len({trial.value for trial in study.trials})


def test_a_plateau_is_left_after_a_few_trials() -> None:
    with_rule = [n_different(has_rule=True, seed=seed) for seed in range(3)]
    without = [n_different(has_rule=False, seed=seed) for seed in range(3)]
    assert np.mean(with_rule) > np.mean(without) + 3


def test_a_constant_objective_is_no_trap() -> None:
    study = optuna.create_study(sampler=TransferSampler(search_space=SPACE, seed=0))
    study.optimize(lambda trial: 0.0 * trial.suggest_float("a", 0.0, 1.0), n_trials=15)
    assert len({trial.params["a"] for trial in study.trials}) == 15


def test_two_equal_losses_do_not_close_a_small_finite_space() -> None:
    study = optuna.create_study(sampler=TransferSampler(seed=0))
    study.optimize(lambda trial: float(trial.suggest_int("n", 0, 9) > 2), n_trials=10)
    assert {trial.params["n"] for trial in study.trials} == set(range(10))


def test_expected_losses_make_no_plateau(rng: np.random.Generator) -> None:
    X, losses = rng.random((6, 3)), np.array([[1.0], [1.0], [1.0], [2.0], [3.0], [4.0]])
    columns = Space(SPACE).columns
    for deviation, is_flat in ((np.zeros(6), True), (np.array([0, 1, 1, 0, 0, 0.0]), False)):
        known = (X, losses, np.zeros(6), np.empty((0, 3)), deviation)
        study = Observed.of(columns, Encoder(columns), *known)
        models = inform([], study.features, study.scales[0], np.arange(3), study.is_used)
        plateaus = transfer._plateaus(study, models[:1])
        assert plateaus.squared_radii.any() == is_flat
