"""WarmStartSampler: the best tenth of every source once each, then random."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from studies import ONE, SPACE, Params, asked, evaluate, new_study, past_study, suggestions

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


def test_the_best_tenth_of_each_source_comes_first_to_the_last_digit(
    sources: list[optuna.Study],
) -> None:
    expected = in_any_order(best(sources[0], 2) + best(sources[1], 3))
    told = suggestions(WarmStartSampler(sources, seed=0), 5, losses=by_x, directions=ONE)
    at_once = asked(new_study(WarmStartSampler(sources, seed=0), ONE), 5, SPACE)
    assert in_any_order(told) == in_any_order(at_once) == expected


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


def test_after_the_warm_starts_the_configurations_are_random(sources: list[optuna.Study]) -> None:
    study = new_study(WarmStartSampler(sources, seed=0), ONE)
    evaluate(study, 9, losses=by_x)
    told = [(r.origin, r.reason) for r in transfer_history(study)]
    assert told == [("warm_start", "best")] * 5 + [("random", "no_start_left")] * 4


def test_a_source_given_twice_is_tried_once(sources: list[optuna.Study]) -> None:
    study = new_study(WarmStartSampler([sources[0], sources[0]], seed=0), ONE)
    evaluate(study, 4, losses=by_x)
    origins = [r.origin for r in transfer_history(study)]
    assert origins == ["warm_start"] * 2 + ["random"] * 2


def test_without_sources_all_is_random_once_the_space_is_known() -> None:
    study = new_study(WarmStartSampler(seed=0))
    evaluate(study, 3)
    assert [r.origin for r in transfer_history(study)] == ["independent", "random", "random"]


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.1, float("nan")])
def test_a_fraction_out_of_its_range_is_refused(fraction: Any) -> None:
    with pytest.raises(ValueError, match="fraction must be more than 0 and at most 1, but is"):
        WarmStartSampler(fraction=fraction)
