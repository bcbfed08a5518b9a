"""Trust in past tasks: rank correlation with the current task's results, and its limits."""

import numpy as np
import pytest
from helpers import MIXED, NAN, locked, random_points
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import mannwhitneyu, norm, rankdata, spearmanr

from metatpe import Space, Task
from metatpe.past.densities import Past, Settings, similarities_to
from metatpe.samplers.guards import chance_of_the_past, is_upside_down, trust
from metatpe.space import Floats
from metatpe.tpe.kde import Parzen
from metatpe.tpe.pareto import levels, order
from metatpe.tpe.ranking import mid_ranks, rank_correlation

SETTINGS = Settings(gamma=0.1, eta=2.5, n_mc_samples=100, is_naive=False)
few = st.sampled_from([-1.0, 0.0, 0.5, 2.0])


@given(arrays(np.float64, (2, 9), elements=few))
@settings(derandomize=True)
def test_ranks_and_their_correlation_are_those_of_scipy(values: Floats) -> None:
    a, b = locked(values)
    np.testing.assert_array_equal(mid_ranks(a) + 0.5, rankdata(a))
    correlation = rank_correlation(a[None], b)[0]
    if np.ptp(a) > 0 and np.ptp(b) > 0:
        assert correlation == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)
    else:
        assert correlation == 0.0


def test_a_past_task_that_is_right_or_says_nothing_is_trusted_in_full() -> None:
    level = np.arange(10)
    scores = np.stack([-1.0 * level, -(level**3.0), np.zeros(10)])
    np.testing.assert_array_equal(trust(scores, level), 1.0)


def test_a_past_task_that_is_upside_down_is_trusted_the_less_the_more_was_observed() -> None:
    believed = [trust(np.arange(n)[None] * 1.0, np.arange(n))[0] for n in (2, 5, 10, 20, 50)]
    assert believed == pytest.approx([2 * norm.cdf(-np.sqrt(n - 1)) for n in (2, 5, 10, 20, 50)])
    assert believed == sorted(believed, reverse=True)
    assert believed[-1] < 1e-10


def test_one_observation_says_nothing() -> None:
    for n in (0, 1):
        np.testing.assert_array_equal(trust(np.zeros((3, n)), np.zeros(n, dtype=np.int64)), 1.0)


def test_a_past_task_without_a_relation_is_half_trusted_or_more_half_of_the_time(
    rng: np.random.Generator,
) -> None:
    believed = trust(rng.normal(size=(2000, 30)), np.arange(30))
    assert np.mean(believed == 1.0) == pytest.approx(0.5, abs=0.05)
    assert np.mean(believed < 0.05) == pytest.approx(0.025, abs=0.01)


def test_monotone_scores_and_the_order_of_tasks_do_not_matter(rng: np.random.Generator) -> None:
    scores, level = rng.normal(size=(4, 12)), rng.integers(0, 5, 12)
    np.testing.assert_allclose(trust(np.exp(scores), level), trust(scores, level))
    np.testing.assert_allclose(trust(scores[::-1], level), trust(scores, level)[::-1])


def test_the_past_is_upside_down_where_its_tasks_agree_that_good_is_bad() -> None:
    level = np.arange(10)
    right, wrong = -1.0 * level, 1.0 * level
    assert is_upside_down(np.stack([wrong, wrong, wrong]), level)
    assert not is_upside_down(np.stack([right, wrong, wrong]), level)  # 1/3 of a z of -3
    assert not is_upside_down(np.stack([right, right]), level)
    assert not is_upside_down(wrong[None, :3], level[:3])  # too few to say
    assert not is_upside_down(np.zeros((2, 10)), level)


def test_the_more_unrelated_tasks_the_less_often_the_past_seems_upside_down(
    rng: np.random.Generator,
) -> None:
    def alarms(n_tasks: int) -> float:
        scores = rng.normal(size=(1000, n_tasks, 20))
        return float(np.mean([is_upside_down(s, np.arange(20)) for s in scores]))

    assert alarms(1) == pytest.approx(0.05, abs=0.02)
    assert alarms(5) < 0.005


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30))
@settings(derandomize=True)
def test_the_chance_of_the_past_is_that_of_a_rank_sum_test(
    turns: list[tuple[int, bool]],
) -> None:
    level = np.array([place for place, _ in turns])
    is_past = np.array([past for _, past in turns])
    chance = chance_of_the_past(locked(level), locked(np.where(is_past, 1.0, -1.0)))
    if is_past.all() or not is_past.any() or np.ptp(level) == 0:
        assert chance == 0.75
    else:
        test = mannwhitneyu(
            level[is_past], level[~is_past], alternative="greater", use_continuity=False,
            method="asymptotic",
        )  # fmt: skip
        z = norm.ppf(test.pvalue) + norm.ppf(0.75)
        assert chance == pytest.approx(norm.cdf(z), abs=1e-9)


def test_where_the_past_pays_it_is_asked_and_where_it_costs_it_is_not() -> None:
    turns = np.tile([1.0, -1.0], 10)
    chances = [chance_of_the_past(np.where(turns > 0, a, 1 - a), turns) for a in (0, 1)]
    assert chances == pytest.approx([1.0, 0.0], abs=1e-3)


def test_levels_are_ranks_and_then_the_order_of_those_without_one(
    rng: np.random.Generator,
) -> None:
    losses = rng.integers(0, 4, (40, 2)).astype(float)
    violation = np.maximum(0.0, rng.normal(-1.0, size=40))
    losses[3] = np.inf
    level = levels(locked(losses), locked(violation))
    assert (np.diff(level[order(losses, violation)]) >= 0).all()
    feasible = (violation == 0) & np.isfinite(losses).all(axis=1)
    dominated = [
        (losses[feasible] <= row).all(1) & (losses[feasible] < row).any(1)
        for row in losses[feasible]
    ]
    assert [not d.any() for d in dominated] == (level[feasible] == 0).tolist()
    assert len(set(level[~feasible].tolist())) == np.count_nonzero(~feasible)
    assert level[~feasible].min() > level[feasible].max()


def bowl(space: Space, middle: float, n: int, rng: np.random.Generator) -> Task:
    X = random_points(space.columns, n, rng)
    return Task("bowl", space, X, np.sum((X - middle) ** 2, axis=1, keepdims=True))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_reversed_task_loses_its_weight_and_a_like_one_keeps_it(
    missing: float, rng: np.random.Generator
) -> None:
    like = bowl(MIXED, 0.3, 100, rng)
    reverse = Task("reverse", MIXED, like.X, -like.losses)
    again = Task("again", MIXED, like.X, -like.losses)
    past = Past([like, reverse, again], MIXED, SETTINGS)
    target = bowl(MIXED, 0.3, 15, rng)
    hidden = rng.random(target.X.shape) < missing
    hidden[:, 0] = False
    X = np.where(hidden, NAN, target.X)
    level = levels(target.losses, target.violation)
    _, weights, _ = past.weigh(X[:1], locked(X), locked(level))
    similar, _ = similarities_to(Parzen(MIXED.columns, X[:1]), past, SETTINGS)
    assert weights[1] == pytest.approx(similar[0] / 4)
    assert weights[2] == weights[3] < 0.05 * similar[1] / 4
    assert weights.sum() == pytest.approx(1.0)


def test_naive_weights_trust_everyone(rng: np.random.Generator) -> None:
    reverse = bowl(MIXED, 0.3, 50, rng)
    reverse = Task("reverse", MIXED, reverse.X, -reverse.losses)
    past = Past([reverse], MIXED, Settings(0.1, 2.5, 100, is_naive=True))
    target = bowl(MIXED, 0.3, 15, rng)
    _, weights, _ = past.weigh(target.X[:1], target.X, levels(target.losses, target.violation))
    np.testing.assert_array_equal(weights, 0.5)


def test_what_is_remembered_of_earlier_observations_changes_nothing(
    rng: np.random.Generator,
) -> None:
    sources = [bowl(MIXED, m, 30, rng) for m in (0.2, 0.5, 0.8)]
    used, target = Past(sources, MIXED, SETTINGS), bowl(MIXED, 0.4, 25, rng)
    for n in (5, 6, 6, 7, 20, 25, 3, 25):
        level = levels(target.losses[:n], target.violation[:n])
        args = (target.X[:1], target.X[:n], level)
        fresh = Past(sources, MIXED, SETTINGS)
        np.testing.assert_array_equal(used.weigh(*args)[1], fresh.weigh(*args)[1])
