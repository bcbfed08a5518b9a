"""The kernels of many tasks side by side: against each task's own density, and in part."""

import numpy as np
import pytest
from helpers import MIXED, NAN, locked, random_points
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from metatpe import Space
from metatpe.tpe.acquisition import Densities, draw_candidates, score, score_some
from metatpe.tpe.kde import Parzen, Points
from metatpe.tpe.pool import Pool, take_some
from metatpe.past.densities import Past, Settings
from metatpe.space import Columns, Floats
from metatpe.past.task import Task

SIZES = (5, 40, 0, 7, 100)  # one task has no observation on this side
CUBE = Space({f"x{j}": FloatDistribution(0, 1) for j in range(4)})
SETTINGS = Settings(gamma=0.1, eta=2.5, n_mc_samples=100, is_naive=False)


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


def random_tasks(n_tasks: int, n: int, space: Space, rng: np.random.Generator) -> list[Task]:
    """Return past tasks with their optima in different places."""
    tasks = []
    for i in range(n_tasks):
        X = random_points(space.columns, n, rng)
        losses = ((X - 0.5 - 0.2 * rng.normal(size=len(space))) ** 2).sum(axis=1, keepdims=True)
        tasks.append(Task(f"past {i}", space, X, losses))
    return tasks


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
    "kind", [FloatDistribution(0, 1), CategoricalDistribution(tuple(range(30)))], ids=["x", "c"]
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


@pytest.mark.parametrize("space", [MIXED, CUBE], ids=["mixed", "continuous"])
def test_the_acquisition_of_many_tasks_is_that_of_each_where_all_kernels_are_used(
    space: Space, rng: np.random.Generator
) -> None:
    past = Past(random_tasks(12, 40, space, rng), space, SETTINGS)
    X, is_good = random_points(space.columns, 30, rng), np.arange(30) < 3
    target = Densities.of(space.columns, X, is_good)
    weights = np.full(13, 1 / 13)
    candidates = draw_candidates([target, *past.densities], weights, 20, rng=rng)
    exact = past.score(target, weights, candidates, rng=rng)
    past.__dict__["is_large"] = True
    scores = past.score(target, weights, candidates, rng=rng)
    seen = np.isfinite(scores)
    assert seen.sum() == 128
    assert seen[np.argmax(exact)]
    np.testing.assert_allclose(scores[seen], exact[seen], atol=5e-3)
    own = np.eye(1, 13)[0]
    np.testing.assert_array_equal(
        past.score(target, own, candidates, rng=rng), score([target], own[:1], candidates)
    )


@pytest.mark.parametrize("space", [MIXED, CUBE], ids=["mixed", "continuous"])
def test_a_target_without_bad_observations_is_scored(
    space: Space, rng: np.random.Generator
) -> None:
    past = Past(random_tasks(3, 40, space, rng), space, SETTINGS)
    target = Densities.of(space.columns, random_points(space.columns, 1, rng), np.array([True]))
    X, weights = random_points(space.columns, 20, rng), np.full(4, 0.25)
    exact = past.score(target, weights, X, rng=rng)
    past.__dict__["is_large"] = True
    np.testing.assert_allclose(past.score(target, weights, X, rng=rng), exact, atol=5e-3)


def test_a_pick_by_a_part_of_the_kernels_is_one_of_the_best_by_all(
    rng: np.random.Generator,
) -> None:
    past = Past(random_tasks(60, 100, CUBE, rng), CUBE, SETTINGS)
    assert past.is_large
    X = rng.random((50, 4))
    target = Densities.of(CUBE.columns, X, np.arange(50) < 5)
    places = []
    for _ in range(20):
        weights = rng.dirichlet(np.ones(61))
        candidates = draw_candidates([target, *past.densities], weights, 100, rng=rng)
        exact = score([target, *past.densities], weights, candidates)
        pick = np.argmax(past.score(target, weights, candidates, rng=rng))
        places.append(np.mean(exact > exact[pick]))
    assert np.median(places) <= 0.01
    assert max(places) <= 0.05


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("space", [MIXED, CUBE], ids=["mixed", "continuous"])
def test_many_tasks_are_judged_like_few(
    space: Space, missing: bool, rng: np.random.Generator
) -> None:
    tasks = random_tasks(12, 40, space, rng)
    small, large = (Past(tasks, space, SETTINGS) for _ in range(2))
    large.__dict__["is_large"] = True
    X = np.array(random_points(space.columns, 20, rng))
    if missing:
        X[::3, 1] = NAN
    for n in (5, 6, 20):
        args = X[:2], X[:n], np.arange(n)
        np.testing.assert_allclose(large.weigh(*args)[1], small.weigh(*args)[1], atol=1e-9)


@pytest.mark.parametrize(("n_tasks", "n_points"), [(60, 100), (200, 50), (2000, 16)])
def test_many_tasks_share_the_points_at_which_they_are_compared(
    n_tasks: int, n_points: int, rng: np.random.Generator
) -> None:
    some = random_tasks(10, 60, CUBE, rng)
    tasks = [some[i % 10] for i in range(n_tasks)]
    few = Past(some, CUBE, Settings(0.1, 2.5, 4000, is_naive=False))
    many = Past(tasks, CUBE, Settings(0.1, 2.5, 400, is_naive=False))
    (nodes,) = many.nodes((0, 2), 20)
    assert nodes.log_q.shape == (n_tasks, n_points)
    p = Parzen(CUBE.columns, 0.5 + 0.1 * rng.normal(size=(20, 4)))
    exact = few.nodes((0, 2), 20)[0].total_variation(p)
    off = nodes.total_variation(p) - exact[np.arange(n_tasks) % 10]
    assert np.abs(off).max() <= 3 * 0.5 / np.sqrt(n_points)


def test_a_long_grid_of_many_tasks_is_compared_at_points_too(rng: np.random.Generator) -> None:
    space = Space({name: IntDistribution(1, 60) for name in "ab"})  # 3,600 cells
    few, many = (Past(random_tasks(n, 20, space, rng), space, SETTINGS) for n in (50, 60))
    assert few.nodes((0, 1), 5)[0].log_q.shape == (50, 3600)
    assert many.nodes((0, 1), 5)[0].log_q.shape == (60, 25)


def test_a_long_history_is_compared_at_fewer_points(rng: np.random.Generator) -> None:
    past = Past(random_tasks(10, 20, CUBE, rng), CUBE, Settings(0.1, 2.5, 1000, is_naive=False))
    assert [past.n_points(n) for n in (0, 10, 200, 400, 1000, 10**6)] == [
        1000, 1000, 1000, 500, 125, 16
    ]  # fmt: skip


def test_arguments_are_left_untouched(rng: np.random.Generator) -> None:
    space = MIXED
    past = Past(random_tasks(3, 20, space, rng), space, SETTINGS)
    pools = tuple(
        Pool(side) for side in zip(*((t.good, t.bad) for t in past.densities), strict=True)
    )
    X = locked(random_points(space.columns, 5, rng))
    target = Densities.of(space.columns, X, np.arange(5) < 2)
    score_some(target, (pools[0], pools[1]), locked(np.full(4, 0.25)), X, rng=rng)
    pools[0].log_pdf(X)
