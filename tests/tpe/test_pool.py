"""The kernels of many tasks side by side: against each task's own density, and in part."""

import numpy as np
import pytest
from helpers import MIXED, locked, random_points
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution

from metatpe import Space
from metatpe.space import Columns, Floats
from metatpe.tpe.kde import Parzen, Points
from metatpe.tpe.pool import Pool, take_some

SIZES = (5, 40, 0, 7, 100)  # one task has no observation on this side
CUBE = Space({f"x{j}": FloatDistribution(0, 1) for j in range(4)})


def parzens(columns: Columns, missing: float, rng: np.random.Generator) -> list[Parzen]:
    return [Parzen(columns, random_points(columns, n, rng, missing)) for n in SIZES]


def exact_sum(tasks: list[Parzen], weights: Floats, points: Points) -> Floats:  # (C,)
    """Return the weighted sum of all kernels at each point."""
    parts = [
        w * len(p) * np.exp(p.log_pdf(points, uniform=False))
        for w, p in zip(weights, tasks, strict=True)
        if len(p)
    ]
    return np.sum(parts, axis=0)


@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0], ids="missing={}".format)
def test_the_density_of_each_task_is_its_own(missing: float, rng: np.random.Generator) -> None:
    columns = MIXED.columns
    tasks, X = parzens(columns, missing, rng), random_points(columns, 30, rng)
    expected = [p.log_pdf(Points.of(columns, X)) for p in tasks]
    np.testing.assert_allclose(Pool(tasks).log_pdf(X), expected, atol=1e-9)
    assert Pool(tasks).log_pdf(X[:0]).shape == (len(tasks), 0)
    having = [p for p in tasks if len(p)]
    alone = [p.log_pdf(Points.of(columns, X), uniform=False) for p in having]
    np.testing.assert_allclose(Pool(having).log_pdf(X, uniform=False), alone, atol=1e-9)


@pytest.mark.parametrize("entries", [1, 500])
def test_how_many_points_are_looked_at_together_changes_nothing(
    entries: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, X = parzens(MIXED.columns, 0.3, rng), random_points(MIXED.columns, 7, rng)
    expected = Pool(tasks).log_pdf(X)
    monkeypatch.setattr("metatpe.tpe.pool._BLOCK", entries)
    np.testing.assert_allclose(Pool(tasks).log_pdf(X), expected, rtol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3], ids="missing={}".format)
def test_the_sum_of_all_kernels_is_exact_with_very_many_choices(
    missing: float, rng: np.random.Generator
) -> None:
    columns = Space({"c": CategoricalDistribution([f"c{i}" for i in range(300)])}).columns
    tasks, weights = parzens(columns, missing, rng), rng.random(len(SIZES))
    points = Points.of(columns, columns.list_all()[0])
    kernels = Pool(tasks).some(weights, sum(SIZES), rng=rng)
    expected = np.log(exact_sum(tasks, weights, points))
    np.testing.assert_allclose(kernels.log_sum(points), expected, atol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.3], ids="missing={}".format)
@pytest.mark.parametrize(("is_coarse", "tolerance"), [(False, 1e-9), (True, 2e-3)])
def test_the_sum_of_all_kernels_is_exact(
    missing: float, is_coarse: bool, tolerance: float, rng: np.random.Generator
) -> None:
    columns = MIXED.columns
    tasks, weights = parzens(columns, missing, rng), rng.random(len(SIZES))
    points = Points.of(columns, random_points(columns, 30, rng), is_coarse=is_coarse)
    kernels = Pool(tasks).some(weights, sum(SIZES), rng=rng)
    expected = np.log(exact_sum(tasks, weights, points))
    np.testing.assert_allclose(kernels.log_sum(points), expected, atol=tolerance)


@given(
    weights=st.lists(st.floats(0, 1), min_size=5, max_size=5).filter(lambda w: max(w) > 0.01),
    n=st.integers(10, 140),
    seed=st.integers(0, 1000),
)
@settings(derandomize=True, deadline=None, max_examples=25)
def test_a_part_of_the_kernels_is_right_on_average_and_off_by_no_more_than_stated(
    weights: list[float], n: int, seed: int
) -> None:
    rng, w = np.random.default_rng(seed), locked(np.array(weights))
    tasks = parzens(CUBE.columns, 0.0, rng)
    pool, points = Pool(tasks), Points.of(CUBE.columns, random_points(CUBE.columns, 50, rng))
    f = exact_sum(tasks, w, points)
    starts = 400
    estimates = np.stack([np.exp(pool.some(w, n, rng=rng).log_sum(points)) for _ in range(starts)])
    _, _, mass = take_some(w, pool.sizes, n, rng=rng)
    # Every kernel that is left to chance counts tau, and no kernel is larger than its peak.
    top = max(np.exp(p.log_pdf(points, uniform=False)).max() * len(p) for p in tasks if len(p))
    bound = mass.min() * top * f
    square_error = ((estimates - f) ** 2).mean(axis=0)
    assert (square_error <= 1.5 * bound + 1e-18).all()
    off = np.abs(estimates.mean(axis=0) - f)
    assert (off <= 5.0 * np.sqrt(bound / starts) + 1e-9 * f).mean() >= 0.95


def test_heavy_tasks_are_taken_whole_and_the_others_in_proportion(
    rng: np.random.Generator,
) -> None:
    weights, sizes = locked(np.array([0.002, 0.9, 0.004, 0.0])), np.array([1000, 10, 500, 50])
    rows, tasks, mass = take_some(weights, sizes, 50, rng=rng)
    assert len(rows) in (50, 51)
    assert len(set(rows.tolist())) == len(rows)
    assert sorted(rows[tasks == 1]) == list(range(1000, 1010))
    assert mass[tasks == 1] == pytest.approx(0.9)
    assert np.bincount(tasks, minlength=4)[[0, 2, 3]] == pytest.approx([20, 20, 0], abs=1)
    assert mass[tasks != 1] == pytest.approx(0.1)  # (0.002 * 1000 + 0.004 * 500) / 40


@pytest.mark.parametrize("n", [110, 1000])
def test_where_few_have_a_weight_all_of_their_kernels_are_taken(
    n: int, rng: np.random.Generator
) -> None:
    weights, sizes = np.array([0.5, 0.0, 1e-9]), np.array([10, 3000, 100])
    rows, _, mass = take_some(weights, sizes, n, rng=rng)
    assert sorted(rows) == [*range(10), *range(3010, 3110)]
    assert sorted(mass) == pytest.approx([1e-9] * 100 + [0.5] * 10)


@pytest.mark.parametrize("is_coarse", [False, True])
@pytest.mark.parametrize(
    "kind",
    [FloatDistribution(0, 1), CategoricalDistribution([f"c{i}" for i in range(30)])],
    ids=["x", "c"],
)
def test_hundreds_of_columns_do_not_overflow(
    kind: FloatDistribution, is_coarse: bool, rng: np.random.Generator
) -> None:
    columns = Space({f"x{j}": kind for j in range(300)}).columns
    tasks = [Parzen(columns, random_points(columns, 3, rng), np.full(300, 0.01)) for _ in range(2)]
    X = np.vstack([tasks[0].centers, tasks[1].centers])
    points, pool = Points.of(columns, X, is_coarse=is_coarse), Pool(tasks)
    expected = [p.log_pdf(points) for p in tasks]
    np.testing.assert_allclose(pool.log_pdf(X), expected, rtol=1e-9, atol=1e-9)
    log_sum = pool.some(np.array([1.0, 0.5]), 6, rng=rng).log_sum(points)
    whole = [expected[0][:3] + np.log(4), expected[1][3:] + np.log(4) + np.log(0.5)]
    np.testing.assert_allclose(log_sum, np.concatenate(whole), rtol=1e-6)


@pytest.mark.parametrize(("d", "h"), [(1, 1e-4), (60, 0.1)], ids=["cancels", "overflows"])
def test_what_single_precision_cannot_hold_is_computed_in_double(
    d: int, h: float, rng: np.random.Generator
) -> None:
    columns = Space({f"x{j}": FloatDistribution(0, 1) for j in range(d)}).columns
    tasks = [Parzen(columns, np.full((1, d), c), np.full(d, h)) for c in (0.48, 0.987)]
    X = np.vstack([tasks[0].centers + k * h for k in (0.0, 0.5, -2.0)])
    kernels = Pool(tasks).some(np.ones(2), 2, rng=rng)
    coarse, fine = (
        kernels.log_sum(Points.of(columns, X, is_coarse=is_coarse)) for is_coarse in (True, False)
    )
    np.testing.assert_allclose(coarse, fine, atol=1e-9)


def test_one_task_of_narrow_kernels_among_wide_ones_does_not_overflow(
    rng: np.random.Generator,
) -> None:
    columns = Space({f"x{j}": FloatDistribution(0, 1) for j in range(300)}).columns
    wide, narrow = (Parzen(columns, rng.random((1, 300)), np.full(300, h)) for h in (0.5, 1e-3))
    points = Points.of(columns, narrow.centers, is_coarse=True)
    for tasks in ([wide, narrow], [narrow, wide]):
        log_sum = Pool(tasks).some(np.ones(2), 2, rng=rng).log_sum(points)
        np.testing.assert_allclose(log_sum, narrow.log_pdf(points, uniform=False), rtol=1e-6)
