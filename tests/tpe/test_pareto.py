"""Ranks, crowding and the split, against plain loops and in the cases that have gone wrong."""

import math

import numpy as np
import pytest
from helpers import INF, locked
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import reference

from metatpe.space import Floats, Ints
from metatpe.tpe.pareto import crowding_distance, levels, n_good, order, ranks, split

# Few different values: ties, duplicates and infinities are the normal case.
loss = st.sampled_from([-INF, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 1e300, -1e300, INF])
vectors = st.integers(1, 4).flatmap(
    lambda m: st.lists(st.lists(loss, min_size=m, max_size=m), min_size=1, max_size=20)
)
a_few = settings(max_examples=100, derandomize=True)


def feasible(losses: Floats) -> Floats:
    return np.zeros(len(losses))


def brute_force_ranks(losses: Floats) -> list[int]:
    fronts = reference.fronts(losses.tolist(), list(range(len(losses))))
    return [next(r for r, front in enumerate(fronts) if i in front) for i in range(len(losses))]


@given(vectors)
@a_few
def test_ranks_are_those_of_peeling_off_the_fronts(rows: list[list[float]]) -> None:
    losses = locked(np.array(rows))
    assert ranks(losses).tolist() == brute_force_ranks(losses)


@given(vectors)
@a_few
def test_crowding_is_the_gap_between_the_neighbours(rows: list[list[float]]) -> None:
    losses = locked(np.array(rows))
    for front in reference.fronts(rows, list(range(len(rows)))):
        crowding = [reference.crowding(rows, front, i) for i in front]
        np.testing.assert_allclose(crowding_distance(losses[front]), crowding, rtol=1e-12)


@given(vectors, st.data())
@a_few
def test_crowding_in_several_fronts_at_once_is_that_of_each_alone(
    rows: list[list[float]], data: st.DataObject
) -> None:
    losses = locked(np.array(rows))
    front = np.array([data.draw(st.integers(0, 3)) for _ in rows])
    expected = np.empty(len(rows))
    for number in set(front.tolist()):
        expected[front == number] = crowding_distance(losses[front == number])
    np.testing.assert_array_equal(crowding_distance(losses, locked(front)), expected)


@given(vectors, st.data())
@a_few
def test_the_good_are_those_of_the_plain_loops(
    rows: list[list[float]], data: st.DataObject
) -> None:
    violation = [data.draw(st.sampled_from([0.0, 0.0, 0.0, 1e-9, 2.0, INF])) for _ in rows]
    gamma = data.draw(st.sampled_from([0.05, 0.1, 0.3, 0.9]))
    is_good = split(locked(np.array(rows)), locked(np.array(violation)), gamma)
    good = reference.split(rows, violation, gamma)[0] if len(rows) > 1 else [0]
    assert sorted(np.flatnonzero(is_good).tolist()) == sorted(good)


@given(vectors, st.data())
@a_few
def test_the_split_takes_the_first_of_the_order(
    rows: list[list[float]], data: st.DataObject
) -> None:
    n, losses = len(rows), np.array(rows)
    violation = np.array([data.draw(st.sampled_from([0.0, 0.0, 1e-9, 2.0])) for _ in rows])
    is_pruned = np.array([data.draw(st.booleans()) for _ in rows])
    late = [[1.0, -data.draw(st.integers(0, 3)), data.draw(loss)] for _ in rows]
    lateness = np.where(is_pruned[:, None], late, 0.0)
    gamma = data.draw(st.floats(0.01, 0.99))
    ranked = order(losses, violation, locked(lateness))
    assert sorted(ranked.tolist()) == list(range(n))
    is_good = split(losses, violation, gamma, locked(lateness))
    assert is_good[ranked[: is_good.sum()]].all()
    is_ranked = (violation <= 0) & ~is_pruned
    n_front = brute_force_ranks(losses[is_ranked]).count(0)
    assert is_good.sum() == n_good(n, gamma, n_front, losses.shape[1])


def test_completed_come_before_pruned_and_pruned_before_infeasible() -> None:
    losses = np.array([[5.0], [INF], [1.0], [INF], [3.0], [0.0], [INF]])
    violation = np.array([0.0, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0])
    pruned = [1.0, -10.0, 0.7], [1.0, -20.0, 0.9], [1.0, -10.0, 0.5]  # by last step, then value
    lateness = np.zeros((7, 3))
    lateness[[1, 3, 6]] = pruned
    assert order(losses, violation, lateness).tolist() == [4, 0, 3, 6, 1, 5, 2]


def test_one_objective_is_sorted_by_value_then_by_number() -> None:
    losses = np.array([2.0, INF, 1.0, -INF, 2.0, 1.0, INF])[:, None]
    assert order(losses, feasible(losses)).tolist() == [3, 2, 5, 0, 4, 1, 6]


def test_the_ends_of_a_front_come_first_and_the_most_crowded_last() -> None:
    losses = np.array([[0.0, 1.0], [0.5, 0.5], [0.9, 0.1], [1.0, 0.0], [0.95, 0.05]])
    assert order(losses, feasible(losses)).tolist() == [0, 3, 1, 2, 4]


@pytest.mark.parametrize("m", [1, 2, 3])
def test_ranks_do_not_depend_on_the_scale_of_an_objective(
    m: int, rng: np.random.Generator
) -> None:
    losses = rng.normal(size=(50, m)).round(1)
    rescaled = np.exp(losses) * 10.0 ** np.arange(m) - 7.0
    np.testing.assert_array_equal(ranks(rescaled), ranks(losses))


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_good_do_not_depend_on_the_order_of_the_observations(
    m: int, rng: np.random.Generator
) -> None:
    losses, violation = rng.normal(size=(60, m)), np.maximum(0, rng.normal(size=60) - 0.5)

    def places_of_the_good(rows: Ints) -> list[tuple[int, float]]:
        is_feasible = violation[rows] == 0
        is_good = split(losses[rows], violation[rows], 0.1)
        assert is_feasible[is_good].all()
        rank = ranks(losses[rows][is_feasible])
        crowding = crowding_distance(losses[rows][is_feasible], rank)
        own = is_good[is_feasible]
        return sorted(zip(rank[own].tolist(), crowding[own].tolist(), strict=True))

    # Not the rows: the ends of a front are all equally far from others, and go by number.
    in_order, shuffled = places_of_the_good(np.arange(60)), places_of_the_good(rng.permutation(60))
    np.testing.assert_allclose(shuffled, in_order)


def test_shifting_an_objective_does_not_change_the_order(rng: np.random.Generator) -> None:
    losses = rng.integers(-50, 50, size=(40, 2)).astype(float)
    shifted = losses * [4.0, 0.5] + [64.0, -8.0]
    np.testing.assert_array_equal(
        order(shifted, feasible(losses)), order(losses, feasible(losses))
    )


@pytest.mark.parametrize(
    ("n", "gamma", "wanted"),
    [
        (0, 0.1, 0),
        (1, 0.1, 1),
        (2, 0.1, 1),
        (2, 0.9, 1),
        (5, 0.1, 1),
        (10, 0.1, 1),
        (11, 0.1, 2),
        (30, 0.1, 3),
        (70, 0.1, 7),
        (100, 0.07, 7),
        (4, 0.99, 3),
    ],
)
@pytest.mark.parametrize("n_front", [0, 1, 20])
def test_with_one_objective_a_fraction_is_good_but_never_all(
    n: int, gamma: float, n_front: int, wanted: int
) -> None:
    assert n_good(n, gamma, n_front, 1) == wanted


@pytest.mark.parametrize(
    ("n", "n_front", "m", "wanted"),
    [
        (1, 1, 2, 1),
        (2, 2, 2, 1),
        (3, 3, 2, 2),
        (5, 1, 2, 1),
        (5, 2, 2, 2),
        (5, 4, 2, 3),
        (5, 5, 4, 1),
        (10, 0, 2, 1),
        (20, 20, 2, 3),
        (20, 20, 4, 2),
        (21, 2, 2, 3),
        (100, 25, 2, 10),
        (100, 100, 4, 10),
    ],
)
def test_with_two_objectives_a_few_of_the_first_front_are_good_at_least(
    n: int, n_front: int, m: int, wanted: int
) -> None:
    assert n_good(n, 0.1, n_front, m) == wanted


@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("gamma", [0.1, 0.15, 0.5])
def test_as_published_the_good_are_a_fraction_whatever_the_first_front_is(
    m: int, gamma: float, rng: np.random.Generator
) -> None:
    for n in (2, 5, 10, 11, 30):
        losses = locked(rng.random((n, m)))
        is_good = split(losses, feasible(losses), gamma, keeps_front=False)
        assert is_good.sum() == n_good(n, gamma, n, m, keeps_front=False)
        assert is_good.sum() == min(n - 1, math.ceil(round(gamma * n, 9)))
        assert is_good[order(losses, feasible(losses))[: is_good.sum()]].all()


def test_at_first_the_best_of_each_objective_and_one_between_them_are_good() -> None:
    losses = np.array([[0.1, 0.8], [0.0, 1.0], [0.4, 0.5], [1.0, 0.0], [0.5, 0.4], [1.0, 1.0]])
    assert np.flatnonzero(split(losses, feasible(losses), 0.1)).tolist() == [1, 3, 4]


@pytest.mark.parametrize("m", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("value", [0.0, 1e308, INF, -INF])
def test_identical_observations_go_by_number(m: int, value: float) -> None:
    losses = np.full((10, m), value)
    np.testing.assert_array_equal(crowding_distance(losses), np.zeros(10))
    assert order(losses, feasible(losses)).tolist() == list(range(10))
    assert np.flatnonzero(split(losses, feasible(losses), 0.1)).tolist() == (
        [0, 1, 2] if m == 2 and value != INF else [0]  # what is all inf makes no front
    )


@pytest.mark.parametrize("n_failed", [2, 3, 10])
@pytest.mark.parametrize("worst", [1500.0, INF])
def test_failed_runs_padded_with_the_worst_values_are_never_the_best(
    n_failed: int, worst: float, rng: np.random.Generator
) -> None:
    trained = rng.random((20, 2))
    losses = np.vstack([np.full((n_failed, 2), worst), trained])
    ranked = order(losses, feasible(losses))
    assert sorted(ranked[-n_failed:].tolist()) == list(range(n_failed))
    assert not split(losses, feasible(losses), 0.1)[:n_failed].any()
    assert not np.isnan(crowding_distance(losses[:n_failed])).any()


def test_a_duplicate_in_a_front_stands_behind_the_others() -> None:
    losses = np.array([[0.2, 0.8], [0.5, 0.5], [0.2, 0.8], [0.0, 1.0], [1.0, 0.0]])
    assert crowding_distance(losses).tolist() == [0.0, pytest.approx(1.6), 0.0, INF, INF]
    assert order(losses, feasible(losses)).tolist() == [3, 4, 1, 0, 2]


def test_infinities_do_not_enter_the_arithmetic_of_crowding() -> None:
    losses = np.array([[-INF, INF], [0.0, 1.0], [0.4, 0.5], [1.0, 0.0], [INF, -INF]])
    assert crowding_distance(losses).tolist() == [0.0, INF, pytest.approx(2.0), INF, 0.0]


def test_values_of_opposite_sign_and_great_size_do_not_overflow() -> None:
    losses = np.array([[-1.7e308, 1.7e308], [0.0, 0.0], [1.7e308, -1.7e308]])
    assert crowding_distance(losses).tolist() == [INF, pytest.approx(2.0), INF]


def test_zero_has_no_sign() -> None:
    losses = np.array([[0.0, 1.0], [-0.0, 1.0]])
    assert ranks(losses).tolist() == [0, 0]
    assert crowding_distance(losses).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("m", [1, 2])
def test_without_a_feasible_observation_the_least_violation_counts(m: int) -> None:
    losses, violation = np.zeros((4, m)), np.array([3.0, 1.0, 2.0, 1.0])
    assert order(losses, violation).tolist() == [1, 3, 2, 0]
    assert np.flatnonzero(split(losses, violation, 0.3)).tolist() == [1, 3]


@pytest.mark.parametrize("m", [1, 2])
def test_nothing_has_no_order(m: int) -> None:
    nothing = np.empty((0, m))
    assert order(nothing, np.empty(0)).tolist() == []
    assert split(nothing, np.empty(0), 0.1).tolist() == []


def test_levels_are_ranks_and_then_the_order_of_those_without_one(
    rng: np.random.Generator,
) -> None:
    losses = rng.integers(0, 4, (40, 2)).astype(float)
    violation = np.maximum(0.0, rng.normal(-1.0, size=40))
    losses[3] = INF
    level = levels(locked(losses), locked(violation))
    assert (np.diff(level[order(losses, violation)]) >= 0).all()
    is_ranked = (violation == 0) & np.isfinite(losses).all(axis=1)
    assert level[is_ranked].tolist() == brute_force_ranks(losses[is_ranked])
    assert len(set(level[~is_ranked].tolist())) == np.count_nonzero(~is_ranked)
    assert level[~is_ranked].min() > level[is_ranked].max()
