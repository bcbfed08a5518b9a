"""Total variation and task weights: brute force, limits, and what must not matter."""

import numpy as np
import pytest
from helpers import MIXED, NAN, locked, pdf, random_points, whole_space, without
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution, IntDistribution

from metatpe import Space
from metatpe.space import Columns, Floats
from metatpe.tpe.kde import Parzen
from metatpe.tpe.kernel import (
    make_nodes,
    similarities,
    similarity,
    task_weights,
)

DISCRETE = MIXED.columns.take([2, 3, 4])


def total_variation(p: Parzen, *past: Parzen, n_points: int = 1000) -> Floats:
    everything = tuple(range(len(p.columns)))
    (nodes,) = make_nodes(past, everything, n_points)
    return nodes.total_variation(p)


def brute_force(p: Parzen, q: Parzen, n: int = 200) -> float:
    X, volumes = whole_space(p.columns, n)
    return float(0.5 * volumes @ np.abs(pdf(p, X, uniform=False) - pdf(q, X, uniform=False)))


def grid(*sizes: int) -> Columns:
    return Space({str(i): IntDistribution(1, k) for i, k in enumerate(sizes)}).columns


def cube(d: int) -> Columns:
    return Space({str(i): FloatDistribution(0, 1) for i in range(d)}).columns


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_total_variation_of_discrete_columns_is_exact(
    missing: float, rng: np.random.Generator
) -> None:
    p, *past = (Parzen(DISCRETE, random_points(DISCRETE, n, rng, missing)) for n in (5, 3, 20))
    expected = [brute_force(p, q) for q in past]
    np.testing.assert_allclose(total_variation(p, *past, n_points=1), expected, rtol=1e-9)


@pytest.mark.parametrize("n_pairs", [1, 2000])
def test_how_many_tasks_are_looked_at_together_changes_nothing(
    n_pairs: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, *past = (Parzen(cube(2), rng.random((n, 2))) for n in (5, 8, 8, 8, 3))
    expected = total_variation(p, *past, n_points=100)
    monkeypatch.setattr("metatpe.tpe.kernel._BLOCK", n_pairs)
    np.testing.assert_allclose(total_variation(p, *past, n_points=100), expected, rtol=1e-12)


@pytest.mark.parametrize(("n_points", "tolerance"), [(100, 0.15), (10_000, 0.015)])
@pytest.mark.parametrize("spread", [0.1, 0.4, 1.0])
def test_total_variation_is_estimated_with_an_error_like_half_of_one_over_the_root_of_the_points(
    n_points: int, tolerance: float, spread: float, rng: np.random.Generator
) -> None:
    columns = cube(2)
    p, q = (Parzen(columns, a + spread * rng.random((8, 2)) * (1 - a)) for a in (0.0, 0.3))
    estimate = total_variation(p, q, n_points=n_points)[0]
    assert estimate == pytest.approx(brute_force(p, q), abs=tolerance)  # three standard errors


def test_total_variation_lies_between_zero_and_one_and_is_zero_for_the_same_density(
    rng: np.random.Generator,
) -> None:
    for columns in (DISCRETE, MIXED.columns):
        p, q = (Parzen(columns, random_points(columns, 10, rng)) for _ in range(2))
        distance, same = total_variation(p, q, p)
        assert 0.0 < distance < 1.0
        assert same == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("columns", [DISCRETE, MIXED.columns], ids=["discrete", "mixed"])
def test_total_variation_is_symmetric(columns: Columns, rng: np.random.Generator) -> None:
    p, q = (Parzen(columns, random_points(columns, 10, rng)) for _ in range(2))
    there, back = total_variation(p, q, n_points=4000)[0], total_variation(q, p, n_points=4000)[0]
    assert there == pytest.approx(back, abs=1e-9 if columns.is_finite else 0.03)


@pytest.mark.parametrize(("n_tasks", "n_points"), [(50, 4096), (51, 7)])
def test_many_tasks_on_many_cells_are_compared_at_drawn_points(
    n_tasks: int, n_points: int
) -> None:
    q = Parzen(grid(64, 64), np.array([[0.5, 0.5]]))
    (nodes,) = make_nodes([q] * n_tasks, (0, 1), 7)
    assert nodes.log_q.shape == (n_tasks, n_points)


@pytest.mark.parametrize(("sizes", "n_points"), [((64, 64), 4096), ((65, 64), 7)])
def test_the_sum_is_exact_up_to_a_number_of_cells(sizes: tuple[int, int], n_points: int) -> None:
    q = Parzen(grid(*sizes), np.array([[0.5, 0.5]]))
    (nodes,) = make_nodes([q], (0, 1), 7)
    assert nodes.log_q.shape == (1, n_points)
    np.testing.assert_allclose(nodes.mass.sum(axis=1), 1.0)


@pytest.mark.parametrize("d", [1, 3, 6])
def test_disjoint_peaks_are_not_similar_however_narrow(d: int, rng: np.random.Generator) -> None:
    p, q = (
        Parzen(cube(d), np.clip(rng.normal(middle, 0.02, size=(50, d)), 0, 1))
        for middle in (0.3, 0.7)
    )
    assert similarity(total_variation(p, q))[0] < 0.05
    assert similarity(total_variation(p, p))[0] > 0.99


@pytest.mark.parametrize("columns", [grid(40, 40), cube(2)], ids=["grid", "continuous"])
@pytest.mark.parametrize("corner", [0.0, 1.0])
def test_peaks_in_the_same_corner_are_alike_and_peaks_in_opposite_ones_are_not(
    columns: Columns, corner: float
) -> None:
    # Far from both peaks both densities underflow; that must not count as a difference.
    here, there = (
        Parzen(columns, columns.snap(np.full((20, 2), x)), np.full(2, 0.02))
        for x in (corner, 1.0 - corner)
    )
    distances = total_variation(here, here, there)
    np.testing.assert_allclose(distances, [0.0, 1.0], atol=1e-3)


@pytest.mark.parametrize(("distance", "s"), [(0.0, 1.0), (0.5, 1 / 3), (1.0, 0.0)])
def test_similarity_is_the_intersection_over_union_of_sets_of_equal_size(
    distance: float, s: float
) -> None:
    np.testing.assert_allclose(similarity(np.array([distance])), [s])


def test_identical_tasks_share_the_weight_equally(rng: np.random.Generator) -> None:
    np.testing.assert_allclose(task_weights(np.ones(3)), [0.25] * 4)
    for columns in (DISCRETE, MIXED.columns):
        p = Parzen(columns, random_points(columns, 10, rng))
        s = similarities(p, make_nodes([p, p, p], (0, 1, 2), 100), 3)
        np.testing.assert_allclose(task_weights(s), [0.25] * 4, atol=1e-4)


def test_tasks_that_are_nothing_alike_get_no_weight() -> None:
    assert task_weights(np.zeros(3)).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert task_weights(np.empty(0)).tolist() == [1.0]


@given(st.lists(st.floats(0, 1), max_size=50))
@settings(derandomize=True)
def test_weights_are_not_negative_and_sum_to_one(s: list[float]) -> None:
    weights = task_weights(locked(np.array(s)))
    assert (weights >= 0.0).all()
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] >= 1 / (len(s) + 1) - 1e-12  # the target never has less than an equal share


def test_the_order_of_past_tasks_does_not_matter(rng: np.random.Generator) -> None:
    columns = MIXED.columns
    p, *past = (Parzen(columns, random_points(columns, 10, rng, 0.5)) for _ in range(7))
    for m in (1, 4):  # compared on other columns than the rest
        past[m] = Parzen(columns, without(past[m].centers, m))
    order = rng.permutation(6)
    straight, shuffled = (
        similarities(p, make_nodes(tasks, (0, 1, 4), 200), 6)
        for tasks in (past, [past[m] for m in order])
    )
    np.testing.assert_allclose(shuffled, straight[order], rtol=1e-6)


def test_a_task_is_compared_on_the_kept_columns_that_it_has(rng: np.random.Generator) -> None:
    p, *past = (Parzen(DISCRETE, random_points(DISCRETE, 8, rng)) for _ in range(4))
    missing: list[tuple[int, ...]] = [(2,), (1,), (0, 2)]
    partial = [
        Parzen(DISCRETE, without(q.centers, *js)) for q, js in zip(past, missing, strict=True)
    ]
    s = similarities(p, make_nodes(partial, (0, 2), 10), 3)
    distances = [
        brute_force(p.reduced([0]), partial[0].reduced([0])),
        brute_force(p.reduced([0, 2]), partial[1].reduced([0, 2])),
        1.0,  # has none of them
    ]
    np.testing.assert_allclose(s, similarity(np.array(distances)), rtol=1e-9)


def test_one_good_observation_that_has_a_column_is_enough() -> None:
    q = Parzen(DISCRETE, locked(np.array([[NAN, NAN, 0.5], [0.1, NAN, NAN]])))
    (nodes,) = make_nodes([q], (0, 1, 2), 10)
    assert nodes.kept == (0, 2)
    assert make_nodes([q], (1,), 10) == []


def test_a_task_without_good_observations_has_no_similarity(rng: np.random.Generator) -> None:
    p = Parzen(DISCRETE, random_points(DISCRETE, 8, rng))
    nothing = Parzen(DISCRETE, np.empty((0, 3)))
    s = similarities(p, make_nodes([nothing, p], (0, 1), 10), 2)
    assert s.tolist() == [0.0, pytest.approx(1.0)]
