"""Trials that a pruner stopped are what their curves were expected to reach."""

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from metatpe import MetaTPESampler, Space, TransferSampler
from metatpe.study.history import History
from metatpe.study.stops import PruningRecord, stop_attributes

X = {"x": FloatDistribution(0.0, 1.0)}


def finished(x: float, value: float) -> optuna.trial.FrozenTrial:
    return create_trial(params={"x": x}, distributions=X, value=value)


def stopped(x: float, expected: float | None) -> optuna.trial.FrozenTrial:
    record = PruningRecord(0, 2, "curve", 0.01, 0.05, 1.0, expected, 0.1)
    attributes = {} if expected is None else stop_attributes(record)
    return create_trial(
        state=TrialState.PRUNED,
        params={"x": x},
        distributions=X,
        user_attrs=attributes,
        intermediate_values={2: 9.0},
    )


def losses(direction: str, trials: list[optuna.trial.FrozenTrial]) -> list[float]:
    study = optuna.create_study(direction=direction)
    study.add_trials(trials)
    history = History(study.directions)
    found = study.get_trials(deepcopy=False)
    history.update(found)
    return history.observations(Space(X), found).losses[:, 0].tolist()


def test_a_stopped_trial_has_the_loss_that_was_expected() -> None:
    assert losses("minimize", [finished(0.1, 1.0), stopped(0.2, 3.0)]) == [1.0, 3.0]
    assert losses("maximize", [finished(0.1, 5.0), stopped(0.2, 3.0)]) == [-5.0, -3.0]


def test_what_was_not_seen_is_no_better_than_the_best_that_was() -> None:
    assert losses("minimize", [finished(0.1, 1.0), stopped(0.2, 0.5)]) == [1.0, 1.0]


def test_without_an_expectation_a_pruned_trial_stays_behind_all_others() -> None:
    assert losses("minimize", [finished(0.1, 1.0), stopped(0.2, None)]) == [1.0, np.inf]


@pytest.mark.parametrize("sampler", [MetaTPESampler, TransferSampler])
def test_samplers_learn_from_stopped_trials(
    sampler: type[MetaTPESampler] | type[TransferSampler],
) -> None:
    study = optuna.create_study(sampler=sampler(seed=0))
    study.add_trials([finished(x, x) for x in (0.1, 0.4, 0.9)])
    study.add_trials([stopped(x, 1.0 + x) for x in (0.5, 0.6, 0.7)])
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)
    assert study.best_value < 0.2
