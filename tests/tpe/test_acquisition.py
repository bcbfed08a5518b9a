"""The acquisition: a ratio of mixtures, in log space."""

from typing import cast

import numpy as np
import pytest
from helpers import MIXED, NAN, locked, pdf, random_points
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from metatpe.tpe.acquisition import Densities, draw_candidates, log_density_ratio, score
from metatpe.tpe.kde import Parzen

COLUMNS = MIXED.columns
ONE = np.ones(1)


def random_tasks(rng: np.random.Generator, n: int) -> list[Densities]:
    return [
        Densities.of(COLUMNS, random_points(COLUMNS, 20, rng, 0.2), np.arange(20) < 2 + i)
        for i in range(n)
    ]


@given(
    arrays(np.float64, (2, 3, 4), elements=st.floats(-30, 30)),
    arrays(np.float64, (2, 3), elements=st.floats(1e-3, 1e3)),
)
@settings(derandomize=True)
def test_the_ratio_is_that_of_the_naive_sums(logs: np.ndarray, weights: np.ndarray) -> None:
    naive = np.log(weights[0] @ np.exp(logs[0])) - np.log(weights[1] @ np.exp(logs[1]))
    ratio = log_density_ratio(*locked(logs), *locked(weights))
    np.testing.assert_allclose(ratio, naive, atol=1e-9)


@pytest.mark.parametrize("far", [-1e4, 0.0, 1e4])
def test_scores_stay_finite_far_from_every_observation(far: float) -> None:
    log_good, log_bad = np.full((2, 2, 1), far)
    ratio = log_density_ratio(log_good, log_bad, np.ones(2), np.full(2, 2.0))
    assert ratio == pytest.approx(-np.log(2.0))


def test_a_task_of_weight_zero_does_not_hide_the_others() -> None:
    log_good, log_bad = np.array([[0.0], [-2000.0]]), np.array([[0.0], [-2003.0]])
    only_second = np.array([0.0, 1.0])
    assert log_density_ratio(log_good, log_bad, only_second, only_second) == pytest.approx(3.0)


def test_the_score_is_the_ratio_of_the_weighted_sums_of_kernels(rng: np.random.Generator) -> None:
    tasks, weights = random_tasks(rng, 3), locked(np.array([0.5, 0.2, 0.3]))
    X = random_points(COLUMNS, 50, rng)
    weighted = list(zip(weights, tasks, strict=True))
    good = sum(w * len(task.good) * pdf(task.good, X) for w, task in weighted)
    bad = sum(w * len(task.bad) * pdf(task.bad, X) for w, task in weighted)
    np.testing.assert_allclose(score(tasks, weights, X), np.log(good / bad), atol=2e-3)


def test_one_task_is_scored_by_its_density_ratio(rng: np.random.Generator) -> None:
    (task,) = random_tasks(rng, 1)
    X = random_points(COLUMNS, 50, rng)
    shift = score([task], np.ones(1), X) - np.log(pdf(task.good, X) / pdf(task.bad, X))
    np.testing.assert_allclose(shift, shift[0], atol=2e-3)


def test_tasks_of_weight_zero_change_neither_candidates_nor_scores(
    rng: np.random.Generator,
) -> None:
    tasks, X = random_tasks(rng, 5), random_points(COLUMNS, 30, rng)
    weights = locked(np.array([0.6, 0.0, 0.4, 0.0, 0.0]))
    weighty = [tasks[0], tasks[2]]
    np.testing.assert_array_equal(
        draw_candidates(tasks, weights, 10, rng=np.random.default_rng(1)),
        draw_candidates(weighty, weights[[0, 2]], 10, rng=np.random.default_rng(1)),
    )
    np.testing.assert_array_equal(score(tasks, weights, X), score(weighty, weights[[0, 2]], X))


def test_tasks_of_weight_zero_are_not_even_looked_at(rng: np.random.Generator) -> None:
    task, X = random_tasks(rng, 1)[0], random_points(COLUMNS, 5, rng)
    with_nothing = [task, cast(Densities, None)]
    first_alone = np.array([1.0, 0.0])
    np.testing.assert_array_equal(score(with_nothing, first_alone, X), score([task], ONE, X))
    assert len(draw_candidates(with_nothing, first_alone, 10, rng=rng)) == 10


def test_candidates_come_from_the_good_density_of_each_task_in_proportion_to_its_weight() -> None:
    h = np.full(5, 1e-3)
    X = COLUMNS.snap(np.array([[0.2] * 5, [0.7] * 5]))
    tasks = [Densities(Parzen(COLUMNS, X[[i] * 50], h), Parzen(COLUMNS, X)) for i in (0, 1)]
    candidates = draw_candidates(tasks, np.array([0.75, 0.25]), 40, rng=np.random.default_rng(0))
    assert candidates.shape == (64, 5)  # 40 / (0.75^2 + 0.25^2)
    for i, own in enumerate((candidates[:48], candidates[48:])):
        assert np.mean(np.abs(own[:, 0] - X[i, 0]) < 0.01) > 0.9
    np.testing.assert_array_equal(COLUMNS.snap(candidates), candidates)


def test_a_thousand_tasks_of_one_weight_share_the_candidates_of_ten(
    rng: np.random.Generator,
) -> None:
    tasks = random_tasks(rng, 1) * 1000
    assert len(draw_candidates(tasks, np.full(1000, 1e-3), 20, rng=rng)) == 200


def test_a_task_of_hardly_any_weight_hardly_ever_makes_a_candidate(
    rng: np.random.Generator,
) -> None:
    h, X = np.full(5, 1e-3), COLUMNS.snap(np.array([[0.2] * 5, [0.7] * 5]))
    tasks = [Densities(Parzen(COLUMNS, X[[i] * 50], h), Parzen(COLUMNS, X)) for i in (0, 1)]
    drawn = [draw_candidates(tasks, np.array([0.999, 0.001]), 40, rng=rng) for _ in range(100)]
    assert {len(candidates) for candidates in drawn} == {40}
    own = np.mean([np.abs(candidates[:, 0] - X[1, 0]) < 0.01 for candidates in drawn])
    assert own < 0.005


def test_out_of_proportion_every_task_makes_as_many_candidates(rng: np.random.Generator) -> None:
    h, middles = np.full(5, 1e-3), np.array([0.1, 0.5, 0.9])
    X = COLUMNS.snap(np.repeat(middles[:, None], 5, axis=1))
    tasks = [Densities(Parzen(COLUMNS, X[[i] * 50], h), Parzen(COLUMNS, X)) for i in range(3)]
    weights = locked(np.array([0.9, 0.1, 0.0]))
    candidates = draw_candidates(tasks, weights, 40, rng=rng, in_proportion=False)
    assert candidates.shape == (120, 5)
    for i, own in enumerate(np.split(candidates, 3)):
        assert np.mean(np.abs(own[:, 0] - X[i, 0]) < 0.01) > 0.9


@pytest.mark.parametrize("in_proportion", [True, False])
def test_candidates_that_are_drawn_jointly_lie_around_one_centre_each(
    in_proportion: bool, rng: np.random.Generator
) -> None:
    X = rng.random((4, 5))
    X[:, :2] = np.array([[0.1], [0.3], [0.6], [0.9]])
    X = locked(COLUMNS.snap(X))
    task = Densities(Parzen(COLUMNS, X[[0, 1, 2, 3] * 20], np.full(5, 1e-3)), Parzen(COLUMNS, X))

    def part_around_one_centre(*, jointly: bool) -> float:
        drawn = draw_candidates(
            [task], np.ones(1), 500, rng=rng, in_proportion=in_proportion, jointly=jointly
        )
        off = np.abs(drawn[:, None, :2] - X[None, :, :2]).max(axis=2)  # both continuous columns
        return float(np.mean(off.min(axis=1) < 0.01))

    assert part_around_one_centre(jointly=True) > 0.95  # the rest is uniform
    assert part_around_one_centre(jointly=False) == pytest.approx(1 / 4, abs=0.1)


@pytest.mark.parametrize("n_good", [0, 3])
def test_without_observations_on_one_side_the_score_is_still_finite(
    n_good: int, rng: np.random.Generator
) -> None:
    X = random_points(COLUMNS, n_good, rng)
    task = Densities.of(COLUMNS, X, np.ones(n_good, dtype=np.bool_))
    assert np.isfinite(score([task, task], np.array([0.5, 0.5]), rng.random((9, 5)))).all()


def test_scores_are_finite_wherever_the_candidates_are(rng: np.random.Generator) -> None:
    X = np.vstack([np.full((5, 5), 0.5), np.full((5, 5), NAN)])
    task = Densities(Parzen(COLUMNS, X, np.full(5, 1e-3)), Parzen(COLUMNS, X, np.full(5, 0.5)))
    assert np.isfinite(score([task], np.ones(1), rng.random((100, 5)))).all()


def test_a_split_is_fitted_side_by_side(rng: np.random.Generator) -> None:
    X, is_good = random_points(COLUMNS, 10, rng), np.arange(10) % 3 == 0
    task = Densities.of(COLUMNS, X, locked(is_good))
    np.testing.assert_array_equal(task.good.centers, X[is_good])
    np.testing.assert_array_equal(task.bad.centers, X[~is_good])
