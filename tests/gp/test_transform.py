"""Losses as scores that a Gaussian process can model."""

import numpy as np
import pytest
from helpers import INF
from scipy.stats import norm

from metatpe.gp.transform import _standardised, deviation_on, scores


def test_losses_that_are_close_to_normal_are_standardised(rng: np.random.Generator) -> None:
    y = rng.normal(5.0, 3.0, size=(200, 2))
    np.testing.assert_allclose(scores(y, np.zeros(200)), (y - y.mean(axis=0)) / y.std(axis=0))


def test_losses_over_orders_of_magnitude_become_logarithms(rng: np.random.Generator) -> None:
    log_y = rng.normal(-3.0, 2.0, size=(200, 1))
    expected = (log_y - log_y.mean()) / log_y.std()
    np.testing.assert_allclose(scores(np.exp(log_y), np.zeros(200)), expected)
    np.testing.assert_allclose(scores(-np.exp(-log_y), np.zeros(200)), expected)


def test_heavy_tails_of_both_signs_become_normal_quantiles(rng: np.random.Generator) -> None:
    y = rng.standard_cauchy(size=(101, 1))
    z = scores(y, np.zeros(101))[:, 0]
    assert (np.argsort(z) == np.argsort(y[:, 0])).all()
    np.testing.assert_allclose(np.sort(z), norm.ppf((np.arange(101) + 0.5) / 101), atol=1e-12)


@pytest.mark.parametrize(("straight", "is_kept"), [(0.8, False), (0.84, False), (0.86, True)])
def test_losses_of_both_signs_are_kept_where_their_probability_plot_is_straight(
    straight: float, is_kept: bool
) -> None:
    q = norm.ppf((np.arange(201) + 0.5) / 201)

    def tailed(power: float) -> np.ndarray:
        return np.sign(q) * np.abs(q) ** power

    powers = np.linspace(1.0, 4.0, 3001)
    found = [np.corrcoef(tailed(power), q)[0, 1] ** 2 for power in powers]
    y = tailed(powers[np.argmin(np.abs(np.array(found) - straight))])
    expected = (y - y.mean()) / y.std() if is_kept else q
    np.testing.assert_allclose(scores(y[:, None], np.zeros(201))[:, 0], expected, atol=1e-9)


def test_infeasible_pruned_and_infinite_losses_are_as_bad_as_the_worst() -> None:
    losses = np.array([[1.0], [2.0], [3.0], [-9.0], [INF], [-INF]])
    z = scores(losses, np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]))[:, 0]
    assert z[0] < z[1] < z[2] == z[3] == z[4]
    assert z[5] == z[0]


def test_without_a_feasible_number_minus_infinity_is_better_than_the_rest() -> None:
    losses = np.array([[-INF], [INF], [1.0], [-INF]])
    z = scores(losses, np.array([0.0, 0.0, 1.0, 1.0]))[:, 0]
    assert z[0] < z[1] == z[2] == z[3]


@pytest.mark.parametrize("losses", [[], [4.0], [2.0, 2.0, 2.0], [INF, INF], [1e308, 1e308]])
def test_a_constant_objective_is_zero_everywhere(losses: list[float]) -> None:
    y = np.array(losses).reshape(-1, 1)
    np.testing.assert_array_equal(scores(y, np.zeros(len(y))), np.zeros_like(y))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_loss_of_zero_has_no_logarithm_and_a_score(sign: float) -> None:
    y = sign * np.array([[0.0], [1e-3], [1.0], [1e3], [1e6]])
    with np.errstate(all="raise"):
        z = scores(y, np.zeros(5))[:, 0]
    assert np.isfinite(z).all()
    assert (np.argsort(z) == np.argsort(y[:, 0])).all()


def test_losses_of_the_size_of_the_largest_float_do_not_overflow() -> None:
    assert np.isfinite(scores(np.array([[-1.7e308], [1.7e308], [0.0]]), np.zeros(3))).all()


def test_huge_losses_of_both_signs_keep_their_scale() -> None:
    y = np.array([[-1.5], [-0.4], [0.1], [0.5], [1.5]])
    np.testing.assert_allclose(scores(y * 1e308, np.zeros(5)), scores(y, np.zeros(5)))


def test_losses_that_differ_in_their_last_digits_are_told_apart() -> None:
    y = np.array([0.0, 1.0, 30.0, 101.0])
    np.testing.assert_allclose(_standardised(3e15 + y), (y - y.mean()) / y.std(), rtol=1e-12)


def test_a_deviation_is_scaled_like_the_losses(rng: np.random.Generator) -> None:
    y = rng.normal(5.0, 3.0, size=200)
    deviation = np.where(np.arange(200) < 20, 0.1, 0.0)
    found = deviation_on(scores(y[:, None], np.zeros(200))[:, 0], y, deviation)
    inside = (y[:20] > y.min() + 0.1) & (y[:20] < y.max() - 0.1)
    np.testing.assert_allclose(found[:20][inside], 0.1 / y.std())
    assert not found[20:].any()


def test_a_deviation_beyond_the_last_loss_counts_on_the_other_side() -> None:
    y, z = np.array([1.0, 2.0, 3.0, INF]), np.array([-1.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(deviation_on(z, y, np.array([0.0, 0.5, 1.0, 0.0])), [0, 0.5, 1, 0])
    assert not deviation_on(z, np.full(4, INF), np.ones(4)).any()


def test_a_deviation_beside_an_infeasible_loss_counts_on_the_farther_side() -> None:
    # The best loss has the worst score, because it is infeasible: the scores fall, then they rise.
    y, z = np.array([0.0, 1.0, 2.0]), np.array([1.0, -1.0, 0.0])
    np.testing.assert_allclose(deviation_on(z, y, np.array([0.5, 0.5, 0.0])), [1.0, 1.0, 0.0])
    np.testing.assert_allclose(deviation_on(-z, y, np.array([0.5, 0.5, 0.0])), [1.0, 1.0, 0.0])


def test_the_deviation_of_a_huge_loss_does_not_overflow() -> None:
    y, z = np.array([-1.7e308, 0.0, 1.7e308]), np.array([-1.0, 0.0, 1.0])
    with np.errstate(over="raise"):
        found = deviation_on(z, y, np.array([0.0, 1.7e308, 1.7e308]))
    np.testing.assert_allclose(found, [0.0, 1.0, 1.0])
