"""The guards: silence, trust and turns, and what the weights are with and without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import optuna
import pytest
from helpers import MIXED, locked, random_points, task_of
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial, create_trial
from scipy.stats import mannwhitneyu, norm
from studies import ONE, new_study, random_sampler

from metatpe import MetaTPESampler, Task, transfer_history
from metatpe.past.known import Past
from metatpe.samplers import meta_tpe
from metatpe.samplers.densities import TPESteps, judged
from metatpe.samplers.guards import (
    MIN_GOOD,
    Rules,
    chance_of_the_past,
    fewer,
    trust,
)
from metatpe.space import Floats, Ints
from metatpe.study.history import History
from metatpe.study.moment import Moment
from metatpe.study.record import Plan, system_attributes
from metatpe.tpe.kde import bandwidths
from metatpe.tpe.kernel import task_weights
from metatpe.tpe.pareto import split
from metatpe.tpe.ranking import rank_correlation


def test_the_paper_has_none_of_the_rules() -> None:
    assert {getattr(Rules.none(), rule.name) for rule in fields(Rules)} == {False}
    assert {getattr(Rules(), rule.name) for rule in fields(Rules)} == {True}


def test_each_collision_leaves_a_quarter_of_the_candidates_and_at_least_one() -> None:
    assert [fewer(100, attempt) for attempt in range(5)] == [100, 25, 6, 1, 1]


# Trust -------------------------------------------------------------------------------------------


def test_a_past_task_whose_order_is_no_worse_than_chance_is_trusted_in_full() -> None:
    assert trust(locked(np.array([0.0, 0.1, 3.0, 100.0]))).tolist() == [1.0] * 4


def test_a_reversed_past_task_is_trusted_the_less_the_more_was_observed() -> None:
    z = -np.sqrt(np.array([2, 5, 10, 20, 50]) - 1.0)  # of a rank correlation of one
    found = trust(z)
    np.testing.assert_allclose(found, 2 * norm.cdf(z))
    assert (np.diff(found) < 0).all()
    assert found[-1] < 1e-10


def test_a_past_task_without_a_relation_is_trusted_in_full_half_of_the_time(
    rng: np.random.Generator,
) -> None:
    rho = rank_correlation(rng.normal(size=(2000, 30)), np.arange(30.0))
    found = trust(-rho * np.sqrt(29))
    assert np.mean(found == 1.0) == pytest.approx(0.5, abs=0.05)
    assert np.mean(found < 0.05) == pytest.approx(0.025, abs=0.01)


# Turns -------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30))
@settings(derandomize=True)
def test_the_chance_of_a_weighed_choice_is_that_of_a_rank_sum_test(
    turns: list[tuple[int, bool]],
) -> None:
    level = np.array([place for place, _ in turns])
    is_weighed = np.array([weighed for _, weighed in turns])
    chance = chance_of_the_past(locked(level), locked(np.where(is_weighed, 1.0, -1.0)))
    if is_weighed.all() or not is_weighed.any() or np.ptp(level) == 0:
        assert chance == 0.75
    else:
        test = mannwhitneyu(
            level[is_weighed], level[~is_weighed], alternative="greater", use_continuity=False,
            method="asymptotic",
        )  # fmt: skip
        z = norm.ppf(test.pvalue) + norm.ppf(0.75)
        assert chance == pytest.approx(norm.cdf(z), abs=1e-9)


def test_choices_are_weighed_where_that_helps_and_not_where_it_harms() -> None:
    turns = np.tile([1.0, -1.0], 10)
    chances = [chance_of_the_past(np.where(turns > 0, a, 1 - a), turns) for a in (0, 1)]
    assert chances == pytest.approx([1.0, 0.0], abs=1e-3)


def test_turns_compare_the_last_forty_choices(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[list[float], list[float]]] = []

    def recorded(levels: Ints, turns: Floats) -> float:
        compared.append((levels.tolist(), turns.tolist()))
        return chance_of_the_past(levels, turns)

    monkeypatch.setattr(meta_tpe, "chance_of_the_past", recorded)
    X = random_points(MIXED.columns, 60, rng)
    trials, weighed = trials_of(X, bowl(X)), rng.random(60) < 0.5
    for trial, is_weighed in zip(trials, weighed, strict=True):
        plan = Plan("acquisition", "weighed" if is_weighed else "own")
        trial.system_attrs = system_attributes(plan)
    past = task_of("t", MIXED, 50, bowl, rng)
    study = new_study(MetaTPESampler([past], epsilon=0.0, seed=0), ONE, trials=trials)
    study.ask(MIXED.distributions)
    places = np.argsort(np.argsort(bowl(X[-40:])))
    assert compared == [(places.tolist(), np.where(weighed[-40:], 1.0, -1.0).tolist())]


# The weights of a study --------------------------------------------------------------------------


def bowl(X: Floats) -> Floats:
    return np.sum((X - 0.3) ** 2, axis=1)


def reversed_task(task: Task) -> Task:
    return Task("reversed", task.space, task.X, -task.losses)


def trials_of(X: Floats, losses: Floats) -> list[FrozenTrial]:
    """Return trials of the mixed space; a parameter that is missing was not used."""
    return [
        create_trial(
            value=float(loss),
            params=params,
            distributions={name: MIXED.distributions[name] for name in params},
        )
        for params, loss in zip(MIXED.decode(X), losses, strict=True)
    ]


def moment_of(trials: Sequence[FrozenTrial]) -> Moment:
    """Return the moment at which a trial after these asks."""
    study = new_study(random_sampler(0), ONE, trials=trials)
    study.ask()
    history = History(study.directions)
    history.update(study.trials)
    return Moment(study, history, study.trials, study.trials[-1], MIXED)


def weights_of(
    moment: Moment, past: Past, *, has_start: bool = False, **given: Any
) -> tuple[Floats, tuple[int, ...]]:
    tpe = TPESteps(n_mc_samples=100, **given)
    densities = tpe.of_past(past)
    good = tpe.of_study(moment, densities).good
    return tpe.weigh(moment, good, densities, has_start=has_start)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_task_that_orders_the_trials_in_reverse_loses_its_weight_and_a_like_one_keeps_it(
    missing: float, rng: np.random.Generator
) -> None:
    # All trials lie between the best regions of the two, where the smaller value is the better.
    X = np.array(random_points(MIXED.columns, 25, rng))
    X[:, 0] = 0.4 + 0.2 * X[:, 0]
    losses = X[:, 0].copy()
    X[:, 1:][rng.random((25, len(MIXED) - 1)) < missing] = np.nan
    moment = moment_of(trials_of(X, losses))
    like, reverse = (
        task_of("t", MIXED, 100, lambda X, m=middle: np.abs(X[:, 0] - m), rng)
        for middle in (0.4, 0.6)
    )
    past = Past([like, reverse, reverse], MIXED)
    weights, kept = weights_of(moment, past)
    by_similarity, _ = weights_of(moment, past, rules=replace(Rules(), trust=False))
    assert kept == (0,)
    assert weights[1] == by_similarity[1] > 0.0
    assert weights[2] == weights[3] < 0.05 * by_similarity[2]
    assert weights.sum() == pytest.approx(1.0)


def test_trust_is_measured_on_the_first_observations(rng: np.random.Generator) -> None:
    X = random_points(MIXED.columns, 130, rng)
    moment = moment_of(trials_of(X, bowl(X)))
    judged_X, levels = judged(moment, Past([], MIXED).densities(0.1))
    np.testing.assert_allclose(judged_X, X[:100], atol=1e-9)
    np.testing.assert_array_equal(np.argsort(levels), np.argsort(bowl(X[:100])))


def test_uniform_weights_trust_every_task(rng: np.random.Generator) -> None:
    like = task_of("like", MIXED, 50, bowl, rng)
    X = random_points(MIXED.columns, 15, rng)
    past = Past([reversed_task(like)], MIXED)
    weights, kept = weights_of(moment_of(trials_of(X, bowl(X))), past, is_naive=True)
    assert (weights.tolist(), kept) == ([0.5, 0.5], ())


@pytest.mark.parametrize("n", [5, 10, 20, 21, 30])
def test_after_a_start_the_past_is_silent_until_three_observations_are_good(
    n: int, rng: np.random.Generator
) -> None:
    X = random_points(MIXED.columns, n, rng)
    moment = moment_of(trials_of(X, bowl(X)))
    past = Past([task_of("t", MIXED, 50, bowl, rng)], MIXED)
    own, silent = (weights_of(moment, past, has_start=has_start) for has_start in (False, True))
    if -(-n // 10) >= MIN_GOOD:
        np.testing.assert_array_equal(silent[0], own[0])
        assert silent[1] == own[1] != ()
    else:
        assert (silent[0].tolist(), silent[1]) == ([1.0, 0.0], ())
        assert own[0][1] > 0.0
    no_silence = replace(Rules(), silence=False)
    heard = weights_of(moment, past, has_start=True, rules=no_silence)
    np.testing.assert_array_equal(heard[0], own[0])


def test_by_the_rules_of_the_paper_the_weights_are_the_similarities(
    rng: np.random.Generator,
) -> None:
    like = task_of("like", MIXED, 100, bowl, rng)
    past = Past([like, reversed_task(like)], MIXED)
    X = random_points(MIXED.columns, 30, rng)
    moment = moment_of(trials_of(X, bowl(X)))
    weights, kept = weights_of(moment, past, has_start=True, rules=Rules.none())
    densities = past.densities(0.1, keeps_front=False)
    good = TPESteps(rules=Rules.none()).of_study(moment, densities).good
    s, expected_kept = densities.similarities(good, eta=2.5, n_mc_samples=100, keeps_one=False)
    np.testing.assert_allclose(weights, task_weights(s))
    assert kept == expected_kept


# Widths ------------------------------------------------------------------------------------------


def test_first_configurations_that_turn_out_bad_do_not_widen_the_kernels_of_bad_observations(
    rng: np.random.Generator,
) -> None:
    X = random_points(MIXED.columns, 20, rng)
    trials = trials_of(X, np.arange(20.0))
    plan = Plan("warm_start", "best", start=0)
    for trial in trials[10:]:  # the bad half are first configurations
        trial.system_attrs = system_attributes(plan)
    moment = moment_of(trials)
    is_good = split(moment.observations.losses, moment.observations.violation, 0.1)
    own = moment.observations.X[:10][~is_good[:10]]
    densities = Past([], MIXED).densities(0.1)
    with_rule = TPESteps().of_study(moment, densities)
    without = TPESteps(rules=replace(Rules(), widths=False)).of_study(moment, densities)
    np.testing.assert_array_equal(with_rule.bad.bandwidth, bandwidths(MIXED.columns, own))
    bad = moment.observations.X[~is_good]
    np.testing.assert_array_equal(without.bad.bandwidth, bandwidths(MIXED.columns, bad))
    np.testing.assert_array_equal(with_rule.bad.centers, without.bad.centers)
    np.testing.assert_array_equal(with_rule.good.bandwidth, without.good.bandwidth)


def test_a_past_that_has_nothing_in_common_has_no_weight() -> None:
    def around(best: float, n: int) -> list[FrozenTrial]:
        near = [best + 1e-4 * i for i in range(10)]
        values = [*near, *np.linspace(0.0, 1.0, n - 10).tolist()]
        x = FloatDistribution(0.0, 1.0)
        return [
            create_trial(value=abs(v - best), params={"x": v}, distributions={"x": x})
            for v in values
        ]

    past, study = optuna.create_study(study_name="past"), optuna.create_study()
    past.add_trials(around(0.9, 100))
    study.add_trials(around(0.1, 60))
    study.sampler = MetaTPESampler([past], start="random", epsilon=0.0, seed=0)
    study.ask({"x": FloatDistribution(0.0, 1.0)})
    record = transfer_history(study)[-1]
    assert record.reason == "no_weight"
    assert record.weights == {"target": 1.0, "past": 0.0}
