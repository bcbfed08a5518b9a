"""PED-ANOVA against numeric integration, and how many columns are kept."""

import numpy as np
import pytest
from helpers import MIXED, NAN, locked, pdf, plain_columns, random_points, whole_space
from optuna.distributions import FloatDistribution
from oracle import reference

from metatpe import Space
from metatpe.tpe.importance import importances, kept_columns, mean_importances
from metatpe.tpe.kde import Parzen

TWO = Space({"narrow": FloatDistribution(0, 1), "wide": FloatDistribution(0, 1)}).columns


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n", [1, 4, 30])
def test_importance_is_the_mean_squared_distance_of_the_marginal_from_uniform(
    n: int, missing: float, rng: np.random.Generator
) -> None:
    good = Parzen(MIXED.columns, random_points(MIXED.columns, n, rng, missing))
    V = importances(good, 0.2)
    for j in np.flatnonzero(~np.isnan(V)):
        own = good.reduced([j])
        X, volumes = whole_space(own.columns, 5000)
        assert V[j] == pytest.approx(0.2**2 * volumes @ (pdf(own, X) - 1) ** 2, rel=1e-2, abs=1e-4)


def test_importance_is_that_of_plain_loops(rng: np.random.Generator) -> None:
    centers = random_points(MIXED.columns, 10, rng)
    plain = reference.fit(plain_columns(MIXED.columns), centers.tolist())
    expected = [reference.importance(plain, j, 0.1) for j in range(len(MIXED))]
    np.testing.assert_allclose(
        importances(Parzen(MIXED.columns, centers), 0.1), expected, rtol=1e-2
    )


def test_a_column_matters_the_more_the_narrower_its_good_region(rng: np.random.Generator) -> None:
    X = rng.random((50, 2)) * [0.1, 1.0]
    narrow, wide = importances(Parzen(TWO, locked(X)), 0.1)
    assert narrow > 50 * wide


def test_a_flat_marginal_has_no_importance() -> None:
    X = np.linspace(0, 1, 2000)[:, None] * [1.0, 1.0]
    np.testing.assert_allclose(importances(Parzen(TWO, X), 0.1), 0.0, atol=1e-4)


def test_of_very_many_good_observations_256_say_what_matters(rng: np.random.Generator) -> None:
    good = Parzen(TWO, rng.random((700, 2)) * [0.3, 1.0])
    expected = importances(good.thinned(256), 0.1)
    np.testing.assert_array_equal(importances(good, 0.1), expected)


def test_a_column_that_no_good_observation_has_is_nan() -> None:
    X = np.array([[0.2, NAN], [0.4, NAN]])
    assert np.isnan(importances(Parzen(TWO, locked(X)), 0.1)).tolist() == [False, True]
    assert np.isnan(importances(Parzen(TWO, np.empty((0, 2))), 0.1)).all()


def test_the_mean_is_over_the_tasks_that_have_the_column() -> None:
    own = locked(np.array([1.0, NAN, 1.0]))
    total, counts = locked(np.array([3.0, 5.0, 8.0])), np.array([1, 1, 2])
    assert mean_importances(own, total, counts).tolist() == [2.0, 5.0, 3.0]


@pytest.mark.parametrize(
    ("n_good", "eta", "k"),
    [
        *[(0, 2.5, 0), (1, 2.5, 1), (2, 2.5, 1), (3, 2.5, 1), (6, 2.5, 1), (7, 2.5, 2)],
        *[(15, 2.5, 2), (16, 2.5, 3), (39, 2.5, 3), (40, 2.5, 4), (97, 2.5, 4), (98, 2.5, 5)],
        *[(2, 2.0, 1), (8, 2.0, 3), (1024, 2.0, 10), (7, 2.0, 2)],  # exact powers
        *[(125, 5.0, 3), (124, 5.0, 2), (243, 3.0, 5), (1000, 10.0, 3), (10**6, 10.0, 6)],
    ],
)
def test_the_logarithm_of_the_good_observations_many_columns_are_kept_and_at_least_one(
    n_good: int, eta: float, k: int
) -> None:
    V = locked(np.arange(20.0))
    assert kept_columns(V, n_good, eta) == tuple(range(20 - k, 20))


@pytest.mark.parametrize(("n_good", "k"), [(0, 0), (1, 0), (2, 0), (3, 1), (6, 1), (7, 2)])
def test_as_published_no_column_is_kept_below_eta_good_observations(n_good: int, k: int) -> None:
    V = locked(np.arange(20.0))
    assert kept_columns(V, n_good, 2.5, keeps_one=False) == tuple(range(20 - k, 20))


def test_the_most_important_columns_are_kept_in_the_order_of_the_space() -> None:
    V = np.array([0.1, 0.5, 0.0, 0.9, 0.3])
    assert kept_columns(V, 2, 2.0) == (3,)
    assert kept_columns(V, 4, 2.0) == (1, 3)
    assert kept_columns(V, 8, 2.0) == (1, 3, 4)
    assert kept_columns(V, 10**9, 2.0) == (0, 1, 2, 3, 4)


def test_of_equally_important_columns_the_first_are_kept() -> None:
    assert kept_columns(np.array([0.5, 0.7, 0.5, 0.5]), 8, 2.0) == (0, 1, 2)
