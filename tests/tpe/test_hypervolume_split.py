"""From three objectives on: which members of a front are good is decided by their hypervolume."""

import itertools
import math

import moocore
import numpy as np
import pytest
from helpers import INF, locked
from hypothesis import given, settings
from hypothesis import strategies as st

from metatpe.space import Floats, Ints
from metatpe.tpe import pareto, subset
from metatpe.tpe.pareto import crowding_distance, order, ranks, split
from metatpe.tpe.subset import greedy_subset

objectives = pytest.mark.parametrize("m", [3, 4, 5], ids="objectives={}".format)


def sphere(n: int, m: int, rng: np.random.Generator) -> Floats:
    """Return n points of a concave front, write-protected."""
    points = np.abs(rng.normal(size=(n, m)))
    return locked(points / np.linalg.norm(points, axis=1)[:, None])


def feasible(losses: Floats) -> Floats:
    return np.zeros(len(losses))


def reference_point(front: Floats, ranked: Floats) -> Floats:
    """The reference point of the module, in the units of the losses."""
    (a, b), (v, w) = ((x.min(axis=0), x.max(axis=0)) for x in (front, ranked))
    return np.minimum(w + (w - v) / 10, b + (b - a))


def slow_greedy(points: Floats, reference: Floats, n: int) -> list[int]:
    """Return the greedy subset by whole hypervolumes."""
    volume, chosen = moocore.Hypervolume(ref=reference), list[int]()
    for _ in range(n):
        others = [i for i in range(len(points)) if i not in chosen]
        chosen.append(max(others, key=lambda i: volume(points[[*chosen, i]])))
    return chosen


# The greedy subset ------------------------------------------------------------------------------


@objectives
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_greedy_reaches_1_minus_1_over_e_of_the_best_subset(
    m: int, k: int, rng: np.random.Generator
) -> None:
    volume = moocore.Hypervolume(ref=np.full(m, 1.1))
    for points in (sphere(9, m, rng), 1.0 - sphere(9, m, rng), rng.random((9, m))):
        found = volume(points[greedy_subset(points, np.full(m, 1.1), k)])
        best = max(volume(points[list(rows)]) for rows in itertools.combinations(range(9), k))
        assert (1 - 1 / math.e) * best <= found <= best * (1 + 1e-12)


@objectives
def test_each_choice_adds_the_most_to_those_before_it(m: int, rng: np.random.Generator) -> None:
    points, reference = sphere(60, m, rng), locked(1.0 + rng.random(m))
    chosen = greedy_subset(points, reference, 12)
    assert chosen.tolist() == slow_greedy(points, reference, 12)


@objectives
def test_the_first_choice_is_the_largest_box(m: int, rng: np.random.Generator) -> None:
    points, reference = sphere(30, m, rng), np.full(m, 1.1)
    boxes = np.prod(reference - points, axis=1)
    assert greedy_subset(points, reference, 1).tolist() == [np.argmax(boxes)]


@objectives
def test_a_smaller_subset_is_the_beginning_of_a_larger_one(
    m: int, rng: np.random.Generator
) -> None:
    points, reference = sphere(40, m, rng), np.full(m, 1.1)
    assert greedy_subset(points, reference, 20)[:7].tolist() == (
        greedy_subset(points, reference, 7).tolist()
    )


def test_the_first_of_equal_points_is_chosen_and_the_others_add_nothing() -> None:
    points = np.array([[0.5, 0.5, 0.5], [0.1, 0.9, 0.9], [0.5, 0.5, 0.5], [0.1, 0.9, 0.9]])
    assert greedy_subset(points, np.ones(3), 4).tolist() == [0, 1]


def test_equal_contributions_go_by_number() -> None:
    points, reference = np.array([[2, 3, 4], [3, 4, 2], [4, 2, 3]]) / 10, np.full(3, 1.1)
    assert len(set(np.prod(reference - points, axis=1))) > 1  # equal but for rounding errors
    for shuffle in itertools.permutations(range(3)):
        assert greedy_subset(points[list(shuffle)], reference, 3).tolist() == [0, 1, 2]


def test_what_is_level_with_the_reference_point_adds_nothing() -> None:
    points = np.array([[0.0, 0.0, 1.0], [0.5, 0.5, 0.5], [0.0, 1.0, 0.0]])
    assert greedy_subset(points, np.ones(3), 3).tolist() == [1]


@objectives
def test_when_there_are_too_many_boxes_the_subset_ends(
    m: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    points, reference = sphere(50, m, rng), np.full(m, 1.1)
    whole = greedy_subset(points, reference, 20).tolist()
    monkeypatch.setattr(subset, "_MAX_BOXES", 2 * m)
    few = greedy_subset(points, reference, 20).tolist()
    assert 1 < len(few) < 20
    assert few == whole[: len(few)]


# The split --------------------------------------------------------------------------------------


@objectives
def test_the_good_of_the_first_front_are_its_greedy_subset(
    m: int, rng: np.random.Generator
) -> None:
    losses = locked(rng.normal(size=(80, m)))
    first = np.flatnonzero(ranks(losses) == 0)
    reference = reference_point(losses[first], losses)
    expected = first[slow_greedy(losses[first], reference, 8)]
    assert set(np.flatnonzero(split(losses, feasible(losses), 0.1))) == set(expected)
    assert order(losses, feasible(losses), n=8).tolist() == expected.tolist()


@objectives
def test_members_of_better_fronts_do_not_count(m: int, rng: np.random.Generator) -> None:
    """Beside a point that dominates all of a front, no member of it would add anything."""
    front = sphere(39, m, rng)
    losses = np.vstack([np.full(m, -1.0), front])
    expected = slow_greedy(front, reference_point(front, losses), 7)
    found = order(losses, feasible(losses), n=8)
    assert found.tolist() == [0, *(1 + np.array(expected))]
    assert set(np.flatnonzero(split(losses, feasible(losses), 0.2))) == set(found)


@objectives
def test_only_ranked_observations_move_the_reference_point(
    m: int, rng: np.random.Generator
) -> None:
    losses = np.vstack([sphere(40, m, rng), np.full((2, m), 1.4)])
    is_good = split(losses, np.array([0.0] * 40 + [1.0, 2.0]), 0.1)
    losses[40:] = 1e6
    np.testing.assert_array_equal(split(losses, np.array([0.0] * 40 + [1.0, 2.0]), 0.1), is_good)
    first = slow_greedy(losses[:40], reference_point(losses[:40], losses[:40]), int(is_good.sum()))
    assert set(np.flatnonzero(is_good)) == set(first)


@objectives
@pytest.mark.parametrize("factor", [1000.0, 1e-9, 2.0**40])
def test_the_unit_of_an_objective_does_not_matter(
    m: int, factor: float, rng: np.random.Generator
) -> None:
    losses = rng.normal(size=(60, m))
    ranked = order(losses, feasible(losses), n=10)
    for j in range(m):
        rescaled = losses.copy()
        rescaled[:, j] = (rescaled[:, j] - 3.0) * factor
        np.testing.assert_array_equal(order(rescaled, feasible(losses), n=10), ranked)


@objectives
def test_the_good_do_not_depend_on_the_order_of_the_observations(
    m: int, rng: np.random.Generator
) -> None:
    losses, shuffle = rng.normal(size=(60, m)), rng.permutation(60)
    is_good = split(losses, feasible(losses), 0.2)
    np.testing.assert_array_equal(split(losses[shuffle], feasible(losses), 0.2), is_good[shuffle])


@objectives
def test_how_far_a_diverged_run_is_off_does_not_matter(m: int, rng: np.random.Generator) -> None:
    """An uncapped reference point would make all members alike in the objective that diverged."""
    front = sphere(60, m, rng)
    dominated = np.full(m, 1.5)

    def good(worst: float) -> list[int]:
        dominated[0] = worst
        losses = np.vstack([front, dominated])
        return order(losses, feasible(losses), n=6).tolist()

    assert good(3.0) == good(1e4) == good(1e300)
    uncapped = slow_greedy(front, np.array([1e4, *[1.6] * (m - 1)]), 6)
    assert good(1e4) != uncapped


@objectives
def test_a_duplicate_is_good_only_when_nothing_else_is_left(
    m: int, rng: np.random.Generator
) -> None:
    front = sphere(6, m, rng)
    losses = np.vstack([front, front])
    ranked = order(losses, feasible(losses))
    assert sorted(ranked[:6].tolist()) == list(range(6))
    assert ranked[6:].tolist() == list(range(6, 12))  # all at crowding distance 0, by number


@objectives
def test_members_that_are_infinite_in_an_objective_come_last(
    m: int, rng: np.random.Generator
) -> None:
    front = sphere(8, m, rng).copy()
    failed = front[:2].copy()
    failed[:, 0], failed[:, 1] = INF, [-0.2, -0.1]
    losses = np.vstack([failed, front])
    assert (ranks(losses) == 0).sum() > 8
    assert set(order(losses, feasible(losses))[-2:]) == {0, 1}


def test_minus_infinity_is_as_good_as_the_best_finite_value() -> None:
    losses = np.array([[-INF, 0.5, 0.9], [0.0, 0.6, 0.5], [0.2, 0.2, 0.8], [0.9, 0.1, 0.1]])
    finite = losses.copy()
    finite[0, 0] = 0.0
    assert (ranks(losses) == 0).all()
    np.testing.assert_array_equal(order(losses, feasible(losses)), order(finite, feasible(losses)))


extreme = st.sampled_from([-INF, -1.7e308, -1.0, -0.0, 0.0, 5e-324, 0.5, 1.0, 1.7e308, INF])
vectors = st.integers(3, 5).flatmap(
    lambda m: st.lists(st.lists(extreme, min_size=m, max_size=m), min_size=2, max_size=30)
)


@given(vectors, st.sampled_from([0.1, 0.3, 0.9]))
@settings(max_examples=200, derandomize=True)
def test_extreme_values_make_no_nan_and_lose_no_observation(
    rows: list[list[float]], gamma: float
) -> None:
    losses = locked(np.array(rows))
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        is_good = split(losses, feasible(losses), gamma)
        ranked = order(losses, feasible(losses))
    assert sorted(ranked.tolist()) == list(range(len(rows)))
    assert is_good[ranked[: is_good.sum()]].all()


@objectives
def test_behind_the_subset_members_follow_by_crowding_distance(
    m: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    front = sphere(40, m, rng)
    whole = order(front, feasible(front)).tolist()
    monkeypatch.setattr(subset, "_MAX_BOXES", 2 * m)
    found = order(front, feasible(front)).tolist()
    n_first = sum(itertools.takewhile(bool, (a == b for a, b in zip(found, whole, strict=True))))
    assert n_first > 1
    crowding = crowding_distance(front)[found[n_first:]]
    assert (crowding[:-1] >= crowding[1:]).all()


@pytest.mark.parametrize("m", [1, 2])
def test_with_one_or_two_objectives_no_volume_is_asked_for(
    m: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    asked: list[int] = []

    def count(points: Floats, reference: Floats, n: int) -> Ints:
        asked.append(n)
        return np.arange(min(n, len(points)))

    monkeypatch.setattr(pareto, "greedy_subset", count)
    for columns in (3, m):
        asked.clear()
        losses = rng.normal(size=(40, columns))
        order(losses, feasible(losses))
        split(losses, feasible(losses), 0.1)
        assert bool(asked) == (columns > 2)


def test_a_front_of_many_objectives_is_ordered_completely(rng: np.random.Generator) -> None:
    losses = sphere(200, 10, rng)
    assert sorted(order(losses, feasible(losses)).tolist()) == list(range(200))
