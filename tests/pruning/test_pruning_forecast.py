from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from metatpe.pruning.curves import SHARES, Curves
from metatpe.pruning.forecast import (
    AHEAD,
    Forecast,
    Forecaster,
    _Logistic,
    _most_probable,
    _Ridge,
    _terms,
)
from metatpe.pruning.positions import LEVEL, N_FEATURES, Positions, replayed

G = len(SHARES)
MANY = np.log(51.0)  # trials: a size


def study(levels: np.ndarray) -> Curves:
    """Return curves that keep their level, (n,), from 2 at the start."""
    n = len(levels)
    values = np.repeat(levels[:, None, None], G, axis=1)
    return Curves(values, values, np.full((n, 1), 2.0), levels[:, None], np.full(n, G - 1))


def positions_at(features: np.ndarray, outcome: np.ndarray, weight: float = 1.0) -> Positions:
    """Return positions that have the same features (n, 5) at all shares."""
    everywhere = np.repeat(features[:, None], G, axis=1)
    return Positions(everywhere, outcome, np.full(len(outcome), 0.08), weight)


def random_positions(n: int, rng: np.random.Generator) -> Positions:
    """Return positions whose rank decides how they end, but for chance."""
    features = usual(n, rng)
    outcome = features[:, LEVEL] + 0.9 + 0.3 * features[:, 0] + 0.3 * rng.normal(size=n)
    return positions_at(features, outcome)


def usual(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return features as they are in a study of 100 trials, (n, 5), the level always 0."""
    spread, middle = [1.5, 1.5, 0.3, 1.0, 0.0], [-0.5, -0.5, 0.2, 3.5, 0.0]
    return rng.normal(size=(n, N_FEATURES)) * spread + middle


def problem(
    n: int, rng: np.random.Generator, strength: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return terms, who ended among the best, base rates and weights of made-up positions."""
    terms = _terms(usual(n, rng))
    base = rng.uniform(0.03, 0.3, size=n)
    alpha = strength * rng.normal(size=terms.shape[1])
    is_best = rng.random(n) < expit(logit(base) + terms @ alpha)
    return terms, is_best, base, rng.uniform(0.3, 1.0, size=n)


def negative_log_posterior(
    alpha: np.ndarray,
    terms: np.ndarray,
    is_best: np.ndarray,
    base: np.ndarray,
    weight: np.ndarray,
    tau: float,
) -> float:
    eta = logit(base) + terms @ alpha
    return float(weight @ (np.logaddexp(0.0, eta) - is_best * eta) + tau * alpha @ alpha / 2)


def test_without_positions_a_trial_is_like_a_new_one() -> None:
    nothing = Forecaster([])
    position = np.array([2.0, 2.0, 0.0, 2.0, 0.7])
    assert nothing.forecast(position, 5, 0.1) == Forecast(pytest.approx(1.0), 0.7, 0.5)
    assert nothing.next_rank(position, 5) is None


def test_where_ranks_last_the_worst_has_no_chance_and_the_best_a_good_one() -> None:
    rng = np.random.default_rng(1)
    past = [study(rng.random(100)) for _ in range(12)]
    everything = np.ones(100, dtype=np.bool_)
    forecaster = Forecaster([p for one in past for p in replayed(one, everything)])
    worst = forecaster.forecast(np.array([2.0, 2.0, 0.0, MANY, 1.0]), 8, 0.05)
    best = forecaster.forecast(np.array([-4.5, -4.5, 0.0, MANY, 0.0]), 8, 0.05)
    assert worst.ratio < 0.1 < 10.0 < best.ratio
    assert best.mean < worst.mean


def test_where_ranks_say_nothing_nobody_is_judged() -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sources = []
        for _ in range(10):
            one, values = study(rng.random(100)), rng.random((100, G, 1))
            curves = Curves(values, values, one.first, one.final, one.reached)
            sources += replayed(curves, np.ones(100, dtype=np.bool_))
        forecaster = Forecaster(sources)
        for column in (2, 8, 13):
            for rank in (-2.0, 0.0, 2.0):
                position = np.array([rank, rank, 0.0, MANY, 0.5])
                assert forecaster.forecast(position, column, 0.05).ratio > 0.75


def test_the_chance_does_not_depend_on_the_size_of_a_step_or_where_it_begins(
    rng: np.random.Generator,
) -> None:
    terms, is_best, base, weight = problem(300, rng)
    loss = partial(
        negative_log_posterior, terms=terms, is_best=is_best, base=base, weight=weight, tau=2.0
    )
    oracle = minimize(loss, np.zeros(terms.shape[1]), method="BFGS", options={"gtol": 1e-8}).x
    for start in (np.zeros(len(oracle)), rng.normal(size=len(oracle))):
        found, _ = _most_probable(start, 2.0, terms, is_best, logit(base), weight)
        np.testing.assert_allclose(found, oracle, atol=2e-3)


def test_its_covariance_is_the_inverse_of_the_curvature(rng: np.random.Generator) -> None:
    terms, is_best, base, weight = problem(200, rng)
    alpha, covariance = _most_probable(
        np.zeros(terms.shape[1]), 2.0, terms, is_best, logit(base), weight
    )
    p = expit(logit(base) + terms @ alpha)
    curvature = np.einsum("n,nj,nk->jk", weight * p * (1.0 - p), terms, terms)
    expected = np.linalg.inv(curvature + 2.0 * np.eye(len(alpha)))
    np.testing.assert_allclose(covariance, expected, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("strength", [0.2, 1.0])
def test_the_precision_explains_the_positions_best(strength: float) -> None:
    terms, is_best, base, weight = problem(800, np.random.default_rng(0), strength)

    def log_evidence(tau: float) -> float:
        """Return that of Laplace's approximation."""
        zero = np.zeros(terms.shape[1])
        alpha, covariance = _most_probable(zero, tau, terms, is_best, logit(base), weight)
        log_det = np.linalg.slogdet(covariance)[1]
        fit = negative_log_posterior(alpha, terms, is_best, base, weight, tau)
        return -fit + 0.5 * log_det + 0.5 * len(alpha) * np.log(tau)

    found = _Logistic.of(terms, is_best, base, weight).tau
    grid = np.geomspace(0.3, 300.0, 40)
    best = grid[np.argmax([log_evidence(tau) for tau in grid])]
    assert np.log(found / best) == pytest.approx(0.0, abs=0.5)


def test_a_position_counts_with_its_weight(rng: np.random.Generator) -> None:
    whole = random_positions(60, rng)
    thirds = Positions(whole.features, whole.outcome, whole.base, 1 / 3)
    one, three = Forecaster([whole]), Forecaster([thirds] * 3)
    position = whole.features[7, 4]
    a, b = (each.forecast(position, 4, 0.05) for each in (one, three))
    assert (a.ratio, a.mean, a.deviation) == pytest.approx((b.ratio, b.mean, b.deviation))
    assert one.next_rank(position, 4) == pytest.approx(three.next_rank(position, 4))


def test_the_fewer_positions_the_nearer_a_trial_is_to_a_new_one() -> None:
    rng = np.random.default_rng(0)
    positions = random_positions(4000, rng)
    worst = np.array([2.0, 2.0, 0.0, MANY, 1.0])
    ratios = []
    for n in (40, 400, 4000):
        some = Positions(positions.features[:n], positions.outcome[:n], positions.base[:n])
        ratios.append(Forecaster([some]).forecast(worst, 8, 0.08).ratio)
    assert 1.0 > ratios[0] > ratios[1] > ratios[2]


def test_what_is_uncertain_moves_the_chance_less() -> None:
    terms, mean = np.array([1.0, 2.0]), np.array([-1.0, 0.0])
    sure = _Logistic(mean, np.zeros((2, 2)), 1.0).predict(terms, 0.1)
    unsure = _Logistic(mean, np.diag([4.0, 1.0]), 1.0).predict(terms, 0.1)
    assert logit(sure) == pytest.approx(logit(0.1) - 1.0)
    assert logit(unsure) == pytest.approx(logit(0.1) - 1.0 / np.sqrt(1.0 + np.pi))


def test_the_terms_are_all_products_of_at_most_two_features_that_are_cut_off() -> None:
    z = np.array([1.0, -2.0, 0.5, 3.0])
    features = np.append([-0.5, -0.5, 0.2, 3.5] + np.array([1.5, 1.5, 0.3, 1.0]) * z, 0.8)[None]
    products = [z[i] * z[j] for i in range(4) for j in range(i, 4)]
    np.testing.assert_allclose(_terms(features)[0], [1.0, *z, *products])
    further = features + np.array([0.0, 0.0, 0.0, 5.0, 9.0])
    np.testing.assert_array_equal(_terms(further), _terms(features))


def test_a_ridge_regression_is_least_squares_with_one_more_observation_for_each_coefficient(
    rng: np.random.Generator,
) -> None:
    terms, y, weight = rng.normal(size=(50, 6)), rng.normal(size=50), rng.uniform(0.3, 1.0, 50)
    ridge = _Ridge.of(terms, y, weight)
    root = np.sqrt(weight)

    def least_squares(of: np.ndarray) -> np.ndarray:
        rows = np.vstack([terms * root[:, None], np.eye(6)])
        return np.linalg.lstsq(rows, np.append(of * root, np.zeros(6)), rcond=None)[0]

    np.testing.assert_allclose(ridge.mean, least_squares(y))
    squares = (y - terms @ ridge.mean) ** 2
    average = (weight @ squares + 0.25) / (weight.sum() + 1.0)
    assert ridge.average == pytest.approx(average)
    np.testing.assert_allclose(ridge.spread, least_squares(squares - average))


def test_the_variance_follows_the_position_and_is_at_least_a_quarter_of_the_average(
    rng: np.random.Generator,
) -> None:
    x = rng.uniform(-1.0, 1.0, size=4000)
    terms = np.column_stack([np.ones_like(x), x])
    y = rng.normal(size=len(x)) * np.sqrt(1.0 + 0.9 * x)
    ridge = _Ridge.of(terms, y, np.ones(len(x)))
    for at in (-0.5, 0.0, 0.8):
        assert ridge.predict(np.array([1.0, at]))[1] == pytest.approx(1.0 + 0.9 * at, abs=0.15)
    assert ridge.predict(np.array([1.0, -5.0]))[1] == ridge.average / 4.0


def test_a_study_longer_than_the_past_is_compared_with_its_largest_sizes() -> None:
    rng = np.random.default_rng(3)
    forecaster = Forecaster(replayed(study(rng.random(50)), np.ones(50, dtype=np.bool_)))
    short, long = (
        forecaster.forecast(np.array([2.0, 2.0, 0.0, np.log(n), 0.5]), 8, 0.05) for n in (50, 5000)
    )
    assert long == short


def test_what_is_expected_lies_as_far_from_the_level_as_for_such_positions(
    rng: np.random.Generator,
) -> None:
    forecaster = Forecaster([random_positions(5000, rng)])
    for rank, level in ((-2.0, 0.0), (0.0, 0.3), (1.5, 1.0)):
        forecast = forecaster.forecast(np.array([rank, -0.5, 0.2, 3.5, level]), 8, 0.05)
        assert forecast.mean == pytest.approx(level + 0.9 + 0.3 * rank, abs=0.03)
        assert forecast.deviation == pytest.approx(0.3, abs=0.03)


def test_the_rank_that_follows_is_the_present_one_and_its_expected_change(
    rng: np.random.Generator,
) -> None:
    features = random_positions(3000, rng).features
    later = features[:, 8, 0] + 0.5 - 0.2 * features[:, 8, 0] + 0.1 * rng.normal(size=3000)
    features[:, 8 + AHEAD, 0] = later
    features[:1000, 8 + AHEAD, 0] = np.nan  # stopped before
    past = Positions(features, np.zeros(3000), np.full(3000, 0.05))
    for rank in (-1.5, 1.0):
        position = np.array([rank, -0.5, 0.2, 3.5, 0.0])
        mean, variance = Forecaster([past]).next_rank(position, 8) or (np.nan, np.nan)
        assert mean == pytest.approx(0.5 + 0.8 * rank, abs=0.03)
        assert variance == pytest.approx(0.01, abs=0.002)


def test_less_than_one_trial_does_not_say_which_rank_follows() -> None:
    position = np.zeros((2, N_FEATURES))
    part, whole = (positions_at(position, np.zeros(2), weight) for weight in (1 / 3, 1 / 2))
    assert Forecaster([part]).next_rank(position[0], 8) is None
    assert Forecaster([whole]).next_rank(position[0], 8) is not None


def test_towards_the_end_the_last_rank_is_the_one_that_follows(rng: np.random.Generator) -> None:
    features = np.zeros((2000, G, N_FEATURES))
    features[:, G - 1, 0], features[:, G - 2, 0] = 1.5, 0.5
    past = Forecaster([Positions(features, np.zeros(2000), np.full(2000, 0.05))])
    for column, rank in ((G - 4, 0.5), (G - 3, 1.5), (G - 2, 1.5), (G - 1, 1.5)):
        predicted = past.next_rank(features[0, column], column)
        assert predicted is not None
        assert predicted[0] == pytest.approx(rank, abs=0.01)
