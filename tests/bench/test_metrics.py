"""Hypervolume, best value, attainment and standard error against closed forms and slow twins."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from metatpe.bench import (
    Problem,
    attainment_surfaces,
    best_curve,
    ellipsoid,
    hypervolume_curve,
    problem_names,
    standard_error,
)

Floats = NDArray[np.float64]

TABULAR = problem_names("hpolib") + problem_names("nmt")
SUITES = ["hpolib/slice_localization", "nmt/so-en"]


def box(**change: Any) -> Problem:
    """Two losses between 0 and 1, of which (0, 0) can be reached."""
    problem = Problem(
        name="box",
        space={},
        directions=("minimize", "minimize"),
        objective_names=("a", "b"),
        function=lambda params, seed: (0.0, 0.0),
        best=np.zeros(2),
        worst=np.ones(2),
        log_objectives=(False, False),
        front=np.zeros((1, 2)),
    )
    return replace(problem, **change)


def staircase(k: int) -> Floats:
    """k points (i / k, (k - 1 - i) / k); below them and within (1, 1) lies (k + 1) / (2 k)."""
    steps = np.arange(k) / k
    return np.stack([steps, steps[::-1]], axis=1)


def swept_area(losses: Floats, reference: Floats) -> float:
    """The hypervolume of two objectives by a sweep over the first one."""
    area, ceiling = 0.0, reference[1]
    for x, y in sorted(losses.tolist()):
        area += max(reference[0] - x, 0.0) * max(ceiling - y, 0.0)
        ceiling = min(ceiling, y)
    return float(area)


def random_run(problem: Problem, n: int, rng: np.random.Generator) -> Floats:
    assert problem.table is not None
    values: Floats = problem.table[rng.integers(len(problem.table), size=n), 0]
    return values


@pytest.mark.parametrize("k", [1, 2, 3, 10, 50])
def test_a_staircase_has_the_area_of_its_steps(k: int, rng: np.random.Generator) -> None:
    curve = hypervolume_curve(box(), rng.permutation(staircase(k)))
    assert curve[-1] == pytest.approx((k + 1) / (2 * k), abs=1e-15)


def test_a_curve_is_the_volume_so_far() -> None:
    values = np.array([[0.5, 0.5], [0.6, 0.6], [0.0, 0.75], [0.5, 0.5], [0.25, 0.25]])
    np.testing.assert_allclose(hypervolume_curve(box(), values), [0.25, 0.25, 0.375, 0.375, 0.625])


@pytest.mark.parametrize("name", TABULAR)
@pytest.mark.parametrize("scale", ["paper", "log"])
def test_the_hypervolume_of_the_true_front_is_one(
    name: str,
    scale: Literal["paper", "log"],
    load: Callable[[str], Problem],
    rng: np.random.Generator,
) -> None:
    problem = load(name)
    assert problem.front is not None
    curve = hypervolume_curve(problem, rng.permutation(problem.front), scale=scale)
    assert curve[-1] == pytest.approx(1.0, abs=1e-12)
    assert (curve[:-1] < 1.0).all()


@pytest.mark.parametrize("name", SUITES)
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("scale", ["paper", "log"])
def test_curves_rise_and_stay_between_zero_and_one(
    name: str,
    raw: bool,
    scale: Literal["paper", "log"],
    load: Callable[[str], Problem],
    rng: np.random.Generator,
) -> None:
    problem = load(name)
    for _ in range(10):
        curve = hypervolume_curve(problem, random_run(problem, 100, rng), scale=scale, raw=raw)
        assert curve.shape == (100,)
        assert (np.diff(curve) >= 0.0).all()
        assert 0.0 <= curve[0] <= curve[-1] < 1.0


@pytest.mark.parametrize("name", SUITES)
def test_a_curve_is_what_a_sweep_over_each_prefix_gives(
    name: str, load: Callable[[str], Problem], rng: np.random.Generator
) -> None:
    problem = load(name)
    assert problem.front is not None

    def as_the_authors_do(values: Floats) -> Floats:
        return np.stack(
            [
                np.log(values[..., 0]) if name.startswith("hpolib") else -values[..., 0],
                values[..., 1],
            ],
            axis=-1,
        )

    values = random_run(problem, 60, rng)
    reference = as_the_authors_do(problem.worst)
    volumes = [swept_area(as_the_authors_do(values[: i + 1]), reference) for i in range(60)]
    whole = swept_area(as_the_authors_do(problem.front), reference)
    np.testing.assert_allclose(hypervolume_curve(problem, values), np.array(volumes) / whole)


def test_more_than_two_objectives_are_measured_too() -> None:
    cube = box(
        directions=("minimize", "maximize", "minimize"),
        objective_names=("a", "b", "c"),
        best=np.array([0.0, 1.0, 0.0]),
        worst=np.array([1.0, 0.0, 1.0]),
        log_objectives=(False, False, False),
        front=np.array([[0.0, 1.0, 0.0]]),
    )
    values = np.array([[0.5, 0.5, 0.5], [0.0, 0.5, 0.5], [0.5, 1.0, 0.5]])
    np.testing.assert_allclose(hypervolume_curve(cube, values), [0.125, 0.25, 0.375])


def test_raw_is_the_product_that_the_paper_prints() -> None:
    problem = box(best=np.array([0.0, -1.0]), front=np.array([[0.0, 0.5], [0.5, -1.0]]))
    values = np.array([[0.25, 0.5]])
    expected = (1.0 - 0.25) / (1.0 - 0.0) * (1.0 - 0.5) / (1.0 - -1.0)
    assert hypervolume_curve(problem, values, raw=True)[0] == pytest.approx(expected)


@pytest.mark.parametrize("name", TABULAR)
def test_raw_differs_by_what_the_true_front_leaves_free(
    name: str, load: Callable[[str], Problem], rng: np.random.Generator
) -> None:
    problem = load(name)
    assert problem.front is not None
    values = random_run(problem, 30, rng)
    of_front = hypervolume_curve(problem, problem.front, raw=True)[-1]
    assert 0.0 < of_front < 1.0
    np.testing.assert_allclose(
        hypervolume_curve(problem, values, raw=True), hypervolume_curve(problem, values) * of_front
    )


def test_a_log_objective_has_no_unit(rng: np.random.Generator) -> None:
    metres = box(
        best=np.array([0.1, 0.0]),
        front=np.array([[0.1, 0.5], [0.2, 0.0]]),
        log_objectives=(True, False),
    )
    unit = np.array([1000.0, 1.0])
    assert metres.front is not None
    millimetres = replace(
        metres, best=metres.best * unit, worst=metres.worst * unit, front=metres.front * unit
    )
    values = rng.uniform([0.2, 0.0], 1.0, size=(20, 2))
    np.testing.assert_allclose(
        hypervolume_curve(metres, values), hypervolume_curve(millimetres, values * unit)
    )


def test_log_scale_takes_the_log_of_all_positive_objectives(rng: np.random.Generator) -> None:
    positive = box(best=np.full(2, 0.1), front=np.full((1, 2), 0.1))
    both = replace(positive, log_objectives=(True, True))
    values = rng.uniform(0.1, 1.0, size=(20, 2))
    np.testing.assert_array_equal(
        hypervolume_curve(positive, values, scale="log"), hypervolume_curve(both, values)
    )
    reaches_zero = box(best=np.array([0.0, 0.1]), front=np.array([[0.0, 0.1]]))
    second = replace(reaches_zero, log_objectives=(False, True))
    np.testing.assert_array_equal(
        hypervolume_curve(reaches_zero, values, scale="log"), hypervolume_curve(second, values)
    )


def test_negating_a_maximised_objective_changes_nothing(rng: np.random.Generator) -> None:
    values = rng.random((30, 2))
    sign = np.array([-1.0, 1.0])
    flipped = box(
        directions=("maximize", "minimize"), best=np.zeros(2) * sign, worst=np.ones(2) * sign
    )
    np.testing.assert_array_equal(
        hypervolume_curve(flipped, values * sign), hypervolume_curve(box(), values)
    )


@pytest.mark.parametrize("point", [(1.0, 0.0), (1.5, 0.0), (np.inf, 0.0), (np.inf, np.inf)])
def test_a_value_no_better_than_the_worst_adds_nothing(point: tuple[float, float]) -> None:
    values = np.array([point, (0.5, 0.5), point])
    np.testing.assert_array_equal(hypervolume_curve(box(), values), [0.0, 0.25, 0.25])


def test_a_run_without_evaluations_has_an_empty_curve() -> None:
    assert hypervolume_curve(box(), np.empty((0, 2))).shape == (0,)
    assert best_curve(ellipsoid(4), np.empty((0, 1))).shape == (0,)


def test_arguments_are_left_untouched(rng: np.random.Generator) -> None:
    problem = box(best=np.full(2, 0.1), front=np.full((1, 2), 0.1), log_objectives=(True, False))
    values = rng.uniform(0.1, 1.0, size=(20, 2))
    before = values.copy()
    hypervolume_curve(problem, values)
    attainment_surfaces(problem, [values, values])
    best_curve(ellipsoid(2), values[:, :1])
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (np.zeros(2), r"shape \(n, 2\), but got \(2,\)"),
        (np.zeros((4, 3)), r"shape \(n, 2\), but got \(4, 3\)"),
        (np.array([[0.5, 0.5], [0.5, np.nan]]), "evaluation 1 has .0.5, nan"),
        (np.array([[0.5, 0.5], [-0.5, 0.5]]), "evaluation 1 has .-0.5, 0.5.; check the problem"),
    ],
)
def test_impossible_values_are_refused(values: Floats, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"problem 'box': values must .*{complaint}"):
        hypervolume_curve(box(), values)
    with pytest.raises(ValueError, match=f"problem 'box': values must .*{complaint}"):
        attainment_surfaces(box(), [values])


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\('paper', 'log'\), but got 'linear'"):
        hypervolume_curve(box(), np.ones((1, 2)), scale="linear")  # type: ignore[arg-type]


def test_each_measure_names_the_other_where_it_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"'ellipsoid4' has one objective.*use best_curve"):
        hypervolume_curve(ellipsoid(4), np.ones((3, 1)))
    with pytest.raises(ValueError, match=r"'box' has 2 objectives.*use hypervolume_curve"):
        best_curve(box(), np.ones((3, 2)))


def test_without_a_true_front_only_the_raw_hypervolume_is_known() -> None:
    problem = box(front=None)
    with pytest.raises(ValueError, match="true front of problem 'box' is not known; use raw=True"):
        hypervolume_curve(problem, np.ones((1, 2)))
    assert hypervolume_curve(problem, np.full((1, 2), 0.5), raw=True).tolist() == [0.25]


def test_the_best_value_so_far_is_in_the_direction_of_the_problem() -> None:
    values = np.array([[3.0], [5.0], [2.0], [4.0], [np.inf]])
    assert best_curve(ellipsoid(4), values).tolist() == [3.0, 3.0, 2.0, 2.0, 2.0]
    accuracy = replace(ellipsoid(4), directions=("maximize",), best=np.ones(1), worst=np.zeros(1))
    values = np.array([[0.3], [0.5], [0.2], [0.6], [-np.inf]])
    assert best_curve(accuracy, values).tolist() == [0.3, 0.5, 0.5, 0.6, 0.6]


def test_one_run_attains_its_own_front() -> None:
    values = np.array([[0.5, 0.5], [0.6, 0.6], [0.2, 0.8], [0.5, 0.5]])
    surfaces = attainment_surfaces(box(), [values])
    assert surfaces.keys() == {25, 50, 75}
    for corners in surfaces.values():
        assert corners.tolist() == [[0.2, 0.8], [0.5, 0.5]]


def test_the_median_of_nested_runs_is_the_middle_one() -> None:
    runs = [staircase(3) / 2 + offset for offset in (0.0, 0.1, 0.2)]
    surfaces = attainment_surfaces(box(), runs, [10, 50, 100])
    for percentile, run in zip([10, 50, 100], runs, strict=True):
        np.testing.assert_allclose(surfaces[percentile], run)


def test_surfaces_are_in_the_direction_of_the_problem() -> None:
    problem = box(
        directions=("maximize", "minimize"), best=np.array([1.0, 0.0]), worst=np.array([0.0, 1.0])
    )
    runs = [np.array([[0.8, 0.2]]), np.array([[0.6, 0.4]])]
    surfaces = attainment_surfaces(problem, runs, [50, 100])
    assert surfaces[50].tolist() == [[0.8, 0.2]]
    assert surfaces[100].tolist() == [[0.6, 0.4]]


def test_runs_of_different_length_can_be_compared() -> None:
    runs = [np.array([[0.5, 0.5]]), np.array([[0.9, 0.9], [0.5, 0.5], [0.7, 0.1]])]
    assert attainment_surfaces(box(), runs, [100])[100].tolist() == [[0.5, 0.5]]


def test_the_standard_error_is_the_deviation_over_the_root_of_the_number_of_runs() -> None:
    curves = np.array([[1.0, 0.0], [3.0, 0.0], [5.0, 0.0], [7.0, 0.0]])
    np.testing.assert_allclose(standard_error(curves), [np.sqrt(20 / 3) / 2, 0.0])


def test_one_run_has_no_standard_error() -> None:
    np.testing.assert_array_equal(standard_error(np.ones((1, 3))), [np.nan] * 3)
