"""WarmStartSampler: the best tenth of every source once each, then random, by Optuna's rules."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)
from studies import GRID, ONE, SPACE, Params, asked, evaluate, new_study, past_study, suggestions
from test_contract import PASTS, past_tasks

from metatpe import transfer_history
from metatpe.baselines import WarmStartSampler


def by_x(params: Params) -> list[float]:
    return [params["x"]]


def best(study: optuna.Study, n: int) -> list[Params]:
    return [t.params for t in sorted(study.trials, key=lambda t: t.values[0])[:n]]


def in_any_order(configurations: list[Params]) -> list[str]:
    return sorted(repr(sorted(c.items())) for c in configurations)


@pytest.fixture
def sources() -> list[optuna.Study]:
    return [past_study(by_x, directions=ONE, n=n, seed=n, name=str(n)) for n in (20, 30)]


class _Sampler:
    n_objectives = 1

    @pytest.fixture(params=list(PASTS))
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        past = past_tasks(PASTS[request.param], self.n_objectives)
        return lambda: WarmStartSampler(past)


class TestBasic(_Sampler, BasicSamplerTestCase):
    pass


class TestRelative(_Sampler, RelativeSamplerTestCase):
    pass


class TestMultiObjective(_Sampler, MultiObjectiveSamplerTestCase):
    n_objectives = 2


def test_the_best_tenth_of_each_source_comes_first_to_the_last_digit(
    sources: list[optuna.Study],
) -> None:
    first = suggestions(WarmStartSampler(sources, seed=0), 5, losses=by_x, directions=ONE)
    assert in_any_order(first) == in_any_order(best(sources[0], 2) + best(sources[1], 3))


def test_the_order_is_random_and_not_that_of_the_ranks() -> None:
    orders = set()
    for seed in range(10):
        past = past_study(by_x, directions=ONE, n=40, seed=seed)
        first = suggestions(WarmStartSampler([past]), 4, losses=by_x, directions=ONE)
        orders.add(tuple(best(past, 4).index(params) for params in first))
    assert len(orders) > 3


def test_the_fraction_is_how_much_of_each_source_is_tried(sources: list[optuna.Study]) -> None:
    sampler = WarmStartSampler(sources, fraction=0.5, seed=0)
    first = suggestions(sampler, 25, losses=by_x, directions=ONE)
    assert in_any_order(first) == in_any_order(best(sources[0], 10) + best(sources[1], 15))


def test_after_the_warm_starts_the_configurations_are_random_and_the_records_say_so(
    sources: list[optuna.Study],
) -> None:
    study = new_study(WarmStartSampler(sources, seed=0), ONE)
    evaluate(study, 9, losses=by_x)
    records = transfer_history(study)
    assert [r.origin for r in records] == ["warm_start"] * 5 + ["random"] * 4
    assert all(not r.weights and not r.kept for r in records)


def test_a_source_given_twice_is_tried_once(sources: list[optuna.Study]) -> None:
    study = new_study(WarmStartSampler([sources[0], sources[0]], seed=0), ONE)
    evaluate(study, 4, losses=by_x)
    origins = [r.origin for r in transfer_history(study)]
    assert origins == ["warm_start"] * 2 + ["random"] * 2


def test_without_sources_all_is_random() -> None:
    study = new_study(WarmStartSampler(seed=0))
    evaluate(study, 3)
    assert {r.origin for r in transfer_history(study)} == {"random"}


def test_trials_that_run_at_the_same_time_get_each_warm_start_once(
    sources: list[optuna.Study],
) -> None:
    given = asked(new_study(WarmStartSampler(sources, seed=0), ONE), 5, SPACE)
    assert in_any_order(given) == in_any_order(best(sources[0], 2) + best(sources[1], 3))


def test_a_finite_space_is_explored_without_a_repeat() -> None:
    past = past_study(space=GRID, n=24)
    tried = suggestions(WarmStartSampler([past], seed=0), 24, space=GRID)
    assert len(set(in_any_order(tried))) == 24


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_the_same_seed_gives_the_same_suggestions_to_copies_too(
    copied: Callable[[BaseSampler], BaseSampler], sources: list[optuna.Study]
) -> None:
    sampler = WarmStartSampler(sources, seed=3)
    first = suggestions(sampler, 12, losses=by_x, directions=ONE)
    for other in (copied(sampler), WarmStartSampler(sources, seed=3)):
        assert suggestions(other, 12, losses=by_x, directions=ONE) == first
    other_seed = WarmStartSampler(sources, seed=4)
    others = suggestions(other_seed, 12, losses=by_x, directions=ONE)
    assert others[:5] == first[:5]
    assert others[5:] != first[5:]


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.1, float("nan")])
def test_a_fraction_that_is_none_is_refused(fraction: Any) -> None:
    with pytest.raises(ValueError, match="fraction must be more than 0 and at most 1, but is"):
        WarmStartSampler(fraction=fraction)


def test_a_sampler_says_what_it_is(sources: list[optuna.Study]) -> None:
    assert str(WarmStartSampler(sources, seed=1)) == "WarmStartSampler(2 sources, seed=1)"
