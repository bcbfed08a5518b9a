"""The improvement that the Gaussian-process samplers look for, and what is new to them."""

from dataclasses import replace

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from studies import ONE, SQUARE, frozen, new_study, random_sampler, spread

from metatpe import Space, TransferSampler
from metatpe.gp.branches import Branches
from metatpe.gp.process import Encoder
from metatpe.samplers.surrogate import (
    Improvement,
    Surrogate,
    best_configuration,
    expected_improvement,
    is_new_in,
    observed,
)
from metatpe.space import Floats
from metatpe.study.history import History
from metatpe.study.moment import Moment
from metatpe.study.record import Plan, system_attributes

REACHED = np.array([[0.0, 1.0], [1.0, 0.0]])
BEYOND, CERTAIN = np.array([[-1.0, 3.0]]), np.full((1, 2), 1e-3)


def test_a_trade_off_that_candidates_are_expected_to_reach_is_not_out_of_bounds() -> None:
    # Worse in the second objective than all that was reached, and best in the first.
    without = expected_improvement(REACHED)(BEYOND, CERTAIN)
    with_it = expected_improvement(REACHED, BEYOND)(BEYOND, CERTAIN)
    assert without < -100.0
    # The reference point is a tenth of the spread beyond (1, 3): 0.3 high, up to (0, 1) 1 wide.
    assert np.exp(with_it) == pytest.approx(0.3, rel=0.02)


def test_with_one_objective_what_is_expected_changes_nothing(rng: np.random.Generator) -> None:
    reached, expected = rng.normal(size=(5, 1)), 9.0 + rng.random((3, 1))
    X, sd = rng.normal(size=(20, 1)), np.full((20, 1), 0.5)
    np.testing.assert_array_equal(
        expected_improvement(reached, expected)(X, sd), expected_improvement(reached)(X, sd)
    )


def test_before_anything_was_reached_what_is_average_in_the_past_is_to_be_improved(
    rng: np.random.Generator,
) -> None:
    X, sd = rng.normal(size=(20, 2)), np.full((20, 2), 0.5)
    found = expected_improvement(np.empty((0, 2)), X)(X, sd)
    np.testing.assert_array_equal(found, expected_improvement(np.zeros((1, 2)), X)(X, sd))


def test_a_constant_that_is_added_to_an_objective_changes_nothing(
    rng: np.random.Generator,
) -> None:
    X, sd, off = rng.normal(size=(20, 2)), np.full((20, 2), 0.5), np.array([-7.0, 30.0])
    np.testing.assert_allclose(
        expected_improvement(REACHED + off, BEYOND + off)(X + off, sd),
        expected_improvement(REACHED, BEYOND)(X, sd),
        rtol=1e-9,
    )


def test_new_is_what_differs_from_all_that_was_evaluated_and_that_runs_in_what_it_uses() -> None:
    space = {
        "depth": IntDistribution(1, 6),
        "kind": CategoricalDistribution(("net", "tree")),
        "width": FloatDistribution(0.0, 1.0),
    }
    trees = [{"depth": depth, "kind": "tree"} for depth in (1, 2, 3, 4)]
    nets = [{"kind": "net", "width": width} for width in (0.1, 0.2, 0.3, 0.4)]
    done = [frozen(params, 1.0, space=space) for params in (*trees, *nets)]
    # What runs was planned with a width, which it will not ask for.
    plan = Plan("acquisition", "no_past", {"depth": 5, "kind": "tree", "width": 0.7})
    runs = frozen({}, state=TrialState.RUNNING, **system_attributes(plan))
    asks = frozen({}, state=TrialState.RUNNING)
    study = new_study(random_sampler(0), ONE, trials=[*done, runs, asks])
    history, trials = History(study.directions), study.trials
    history.update(trials)
    moment = Moment(study, history, trials, trials[-1], Space(space))
    X = moment.space.encode([{"depth": d, "kind": "tree", "width": 0.9} for d in (4, 5, 6)])
    branches = Branches.of(moment.space.columns, moment.observations.X, moment.running)
    assert moment.is_new(X).tolist() == [False, True, True]
    assert is_new_in(moment, branches)(X).tolist() == [False, False, True]
    without = Branches.of(moment.space.columns, X[:0], moment.running)  # nothing learned yet
    assert is_new_in(moment, without)(X).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("attempt", "has_rule", "n"),
    [(0, True, 2001), (1, True, 250), (2, True, 62), (1, False, 2001)],
)
def test_candidates_are_random_near_good_ones_or_of_the_past_and_fewer_after_collisions(
    attempt: int, has_rule: bool, n: int, rng: np.random.Generator
) -> None:
    trials = [frozen(params, i) for i, params in enumerate(spread(5))]
    asks = frozen({}, state=TrialState.RUNNING, fixed_params={"x": 0.25})
    study = new_study(random_sampler(0), ONE, trials=[*trials, asks])
    history, stored = History(study.directions), study.trials
    history.update(stored)
    moment = Moment(study, history, stored, stored[-1], Space(SQUARE), attempt)
    encoder = Encoder(moment.space.columns)
    known, sizes = observed(moment, encoder), []

    def acquisition(mean: Floats) -> Improvement:
        sizes.append(len(mean))
        return expected_improvement(known.y)

    sampler = TransferSampler(seed=0)
    sampler.rules = replace(sampler.rules, fewer=has_rule)
    surrogate = Surrogate(
        predict=lambda X: (X.sum(axis=1, keepdims=True) - 3.0, np.ones((len(X), 1))),
        encoder=encoder,
        branches=known.branches,
        reached=known.y,
        front=known.front,
        past_best=np.array([[0.5, 0.5]]),
    )
    x, y = best_configuration(sampler, moment, surrogate, acquisition, rng)
    assert sizes == [n]
    assert x == 0.25  # was enqueued with the trial
    assert y < 0.1
