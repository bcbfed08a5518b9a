"""Constraints, set by objectives in the new study and in past ones: infeasible is never good."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.study import Study
from optuna.trial import FrozenTrial
from studies import TWO, Params, asked, frozen, new_study, random_sampler, spread, two_losses

from metatpe import transfer_history
from samplers.five import META_TPE, TRANSFER, Make, learning


def objective(trial: optuna.Trial) -> tuple[float, float]:
    """Best at small x, which is forbidden below 0.6."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    trial.set_constraint("x is large", 0.6 - x)
    trial.set_constraint("y is small", y - 2.0)
    return x + y, x - y


def constrained(sampler: optuna.samplers.BaseSampler, n: int, name: str = "new") -> Study:
    study = optuna.create_study(study_name=name, directions=TWO, sampler=sampler)
    study.optimize(objective, n_trials=n)
    return study


def every_third_infeasible(points: list[Params], values: list[float]) -> list[FrozenTrial]:
    return [
        frozen(p, two_losses(p) if i % 3 else values, constraint=-1.0 if i % 3 else 1.0 + i)
        for i, p in enumerate(points)
    ]


@learning
@pytest.mark.parametrize("n_sources", [0, 1])
def test_how_good_the_values_of_infeasible_trials_are_changes_nothing(
    make: Make, n_sources: int
) -> None:
    def suggested(values: list[float], of_past: list[float]) -> list[Params]:
        trials = every_third_infeasible(spread(30, 0.1), of_past)
        past = new_study(random_sampler(0), trials=trials, name="past")
        sampler = make.at_once([past] * n_sources)
        return asked(new_study(sampler, trials=every_third_infeasible(spread(12), values)), 2)

    good, bad = [-100.0, -100.0], [100.0, 100.0]
    assert suggested(good, bad) == suggested(bad, good) == suggested(bad, bad)


@learning
@pytest.mark.parametrize("n_sources", [0, 1])
def test_constraints_that_an_objective_sets_are_learned(make: Make, n_sources: int) -> None:
    past = constrained(random_sampler(1), 40, "past")
    study = constrained(make([past] * n_sources), 25)
    later = [t.params["x"] for t in study.trials[10:]]
    assert np.mean([x >= 0.55 for x in later]) > 0.6


def test_the_past_starts_a_study_with_feasible_configurations(make: Make) -> None:
    study = constrained(make([constrained(random_sampler(1), 40, "past")]), 6)
    starts = [r.number for r in transfer_history(study) if r.origin == "warm_start"]
    assert len(starts) == 5
    assert all(study.trials[number].params["x"] >= 0.6 for number in starts)


@pytest.mark.parametrize("make", [META_TPE, TRANSFER], ids=str)
@pytest.mark.parametrize("n_objectives", [1, 2])
def test_while_no_trial_is_feasible_the_search_goes_to_where_less_is_violated(
    make: Make, n_objectives: int
) -> None:
    def never_feasible(trial: optuna.Trial) -> list[float]:
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        trial.set_constraint("c", abs(x - 0.3) + abs(y - 0.6) + 0.1)
        return [x, y][:n_objectives]

    study = new_study(make(), ["minimize"] * n_objectives)
    study.optimize(never_feasible, n_trials=40)  # type: ignore[arg-type]
    off = np.abs([[t.params["x"] - 0.3, t.params["y"] - 0.6] for t in study.trials]).sum(axis=1)
    assert len({*off.round(6)}) == 40
    assert np.median(off[20:]) < 0.7 * np.median(off[:10])
