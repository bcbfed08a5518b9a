"""Trials that a pruner stopped are what their curves were expected to reach."""

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from metatpe import MetaTPESampler, Space, TransferSampler
from metatpe.gp.informed import inform
from metatpe.gp.models import Observed
from metatpe.gp.process import Encoder
from metatpe.study.history import History, Observations
from metatpe.study.stops import PruningRecord, stop_attributes

X = {"x": FloatDistribution(0.0, 1.0)}


def finished(x: float, value: float) -> optuna.trial.FrozenTrial:
    return create_trial(params={"x": x}, distributions=X, value=value)


def stopped(x: float, expected: float | None, deviation: float = 0.1) -> optuna.trial.FrozenTrial:
    record = PruningRecord(0, 2, "curve", 0.01, 0.05, 1.0, expected, deviation)
    attributes = {} if expected is None else stop_attributes(record)
    return create_trial(
        state=TrialState.PRUNED,
        params={"x": x},
        distributions=X,
        user_attrs=attributes,
        intermediate_values={2: 9.0},
    )


def observations(direction: str, trials: list[optuna.trial.FrozenTrial]) -> Observations:
    study = optuna.create_study(direction=direction)
    study.add_trials(trials)
    history = History(study.directions)
    found = study.get_trials(deepcopy=False)
    history.update(found)
    return history.observations(Space(X), found)


def losses(direction: str, trials: list[optuna.trial.FrozenTrial]) -> list[float]:
    return observations(direction, trials).losses[:, 0].tolist()


def test_a_stopped_trial_has_the_loss_that_was_expected() -> None:
    assert losses("minimize", [finished(0.1, 1.0), stopped(0.2, 3.0)]) == [1.0, 3.0]
    assert losses("maximize", [finished(0.1, 5.0), stopped(0.2, 3.0)]) == [-5.0, -3.0]


def test_what_was_not_seen_is_no_better_than_the_best_that_was() -> None:
    assert losses("minimize", [finished(0.1, 1.0), stopped(0.2, 0.5)]) == [1.0, 1.0]


def test_an_infeasible_loss_is_no_bound_for_what_was_not_seen() -> None:
    infeasible = create_trial(
        params={"x": 0.3}, distributions=X, value=0.1, constraints={"c": 1.0}
    )
    trials = [infeasible, finished(0.1, 1.0), stopped(0.2, 0.5)]
    assert losses("minimize", trials) == [0.1, 1.0, 1.0]


def test_a_history_that_grew_has_the_same_losses_as_one_that_was_read_at_once() -> None:
    trials = [finished(0.1, 2.0), stopped(0.2, 0.5), stopped(0.3, 3.0), finished(0.4, 1.0)]
    study = optuna.create_study()
    study.add_trials(trials)
    found = study.get_trials(deepcopy=False)
    grown = History(study.directions)
    running = [*found]
    for i in (3, 0):  # these two end last
        running[i] = create_trial(state=TrialState.RUNNING)
        running[i].number = i
    for i in (0, 3):
        grown.update(running)
        running[i] = found[i]
    grown.update(running)
    assert grown.observations(Space(X), found).losses[:, 0].tolist() == [2.0, 1.0, 3.0, 1.0]
    assert losses("minimize", trials) == [2.0, 1.0, 3.0, 1.0]


def test_without_an_expectation_a_pruned_trial_stays_behind_all_others() -> None:
    assert losses("minimize", [finished(0.1, 1.0), stopped(0.2, None)]) == [1.0, np.inf]


def test_a_trial_that_diverged_stays_behind_all_others() -> None:
    diverged = create_trial(
        state=TrialState.PRUNED,
        params={"x": 0.2},
        distributions=X,
        user_attrs=stop_attributes(PruningRecord(1, 2, "diverged")),
        intermediate_values={2: np.nan},
    )
    assert losses("minimize", [finished(0.1, 1.0), diverged]) == [1.0, np.inf]


def test_an_expectation_has_its_deviation_and_what_was_seen_has_none() -> None:
    trials = [finished(0.1, 1.0), stopped(0.2, 3.0, 0.25), stopped(0.3, None)]
    done = observations("minimize", trials)
    assert done.deviation.tolist() == [0.0, 0.25, 0.0]
    # It stands among those that were seen, and not behind them.
    assert done.lateness.any(axis=1).tolist() == [False, False, True]


def test_the_model_trusts_an_expectation_as_far_as_its_deviation() -> None:
    def predicted(deviation: float) -> tuple[float, float]:
        seen = [finished(x, 2.0 * x) for x in (0.1, 0.5, 0.6, 0.9)]
        done = observations("minimize", [*seen, stopped(0.3, 1.8, deviation)])
        space = Space(X)
        encoder = Encoder(space.columns)
        none = np.empty((0, 1))
        study = Observed.of(
            space.columns, encoder, done.X, done.losses, done.violation, none, done.deviation
        )
        (y,), (variance,) = study.scales[0][:1], study.variances[0][:1]
        used = np.ones(1, dtype=np.bool_)
        (model,) = inform([], study.features, [y], encoder.owner, used, variances=[variance])
        mean, spread = model.predict(encoder(np.array([[0.3]])))
        return float(mean[0]), float(spread[0])

    (sure, narrow), (unsure, wide) = predicted(0.001), predicted(1.0)
    assert unsure < sure  # the seen trials around it say that it is better
    assert wide > narrow


@pytest.mark.parametrize("sampler", [MetaTPESampler, TransferSampler])
def test_samplers_learn_from_stopped_trials(
    sampler: type[MetaTPESampler] | type[TransferSampler],
) -> None:
    study = optuna.create_study(sampler=sampler(seed=0))
    study.add_trials([finished(x, x) for x in (0.1, 0.4, 0.9)])
    study.add_trials([stopped(x, 1.0 + x) for x in (0.5, 0.6, 0.7)])
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)
    assert study.best_value < 0.2
