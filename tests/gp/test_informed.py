"""The process of a study that past tasks inform: its posterior, and what it makes of a past."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from helpers import MIXED, locked, random_points
from processes import DEGENERATE, ENCODE, fitted
from scipy.linalg import block_diag
from scipy.optimize import approx_fprime
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal, norm

from metatpe.gp.informed import InformedProcess, Settings, _Loss, inform, means
from metatpe.gp.process import GaussianProcess, Pairs
from metatpe.space import Floats

ALL = np.ones(len(MIXED), dtype=np.bool_)
JITTER = 1e-6  # that the code adds to the noise
Past = Sequence[GaussianProcess]


def wave(X: Floats) -> Floats:  # (n, d) -> (n,)
    """Return a function of points of the mixed space."""
    return np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * X[:, 2] - 0.3 * (X[:, 4] > 0.5)


def other(X: Floats) -> Floats:
    """Return a function that has nothing to do with the wave."""
    return np.cos(5.0 * X[:, 0]) * np.sin(4.0 * X[:, 3]) + (X[:, 1] - 0.5) ** 2


def standardised(y: Floats) -> Floats:
    return (y - y.mean()) / y.std()


def past_model(values: Floats, X: Floats) -> GaussianProcess:
    return fitted(X, standardised(values))


def some_past(n_tasks: int, rng: np.random.Generator) -> Past:
    """Return models of tasks that are all a bit of both functions."""
    tasks = [random_points(MIXED.columns, 30, rng) for _ in range(n_tasks)]
    return [past_model(wave(X) + m * other(X), X) for m, X in enumerate(tasks)]


def informed(past: Past, X: Floats, y: Floats, variance: Floats | None = None) -> InformedProcess:
    variances = [] if variance is None else [variance]
    (process,) = inform(past, ENCODE(X), [y], ENCODE.owner, ALL, variances)
    return process


def plain_matern(a: Floats, b: Floats) -> Floats:  # (n, p), (k, p) -> (n, k)
    r = np.sqrt(5.0) * cdist(a, b)
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


# The posterior -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_tasks", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 12])
def test_the_posterior_is_the_dense_conditioning_of_all_unknowns(
    n_tasks: int, n: int, rng: np.random.Generator
) -> None:
    past = some_past(n_tasks, rng)
    X, Z = (ENCODE(random_points(MIXED.columns, k, rng)) for k in (n, 7))
    y, scale = rng.normal(size=n), rng.uniform(0.3, 2.0, size=X.shape[1])
    noise, a2, r, b = 0.02, 0.7, 0.4, 1.3
    settings, variance = Settings(scale, noise, a2, r, b), rng.exponential(0.1, size=n)
    process = InformedProcess.of(past, X, means(past, X), y, settings, variance)

    # The unknowns are c, b_1, ..., b_M, g and h_1, ..., h_M at all points; what is observed is a
    # linear map of them.
    both, m = np.vstack([X, Z]), max(n_tasks, 1)
    explained, k = means(past, both), plain_matern(both * scale, both * scale)
    local = [np.diag(explained[:, j]) for j in range(n_tasks)]
    linear = np.column_stack([np.ones(n + 7), explained, np.eye(n + 7), *local])
    mean = np.concatenate([[0.0], np.full(n_tasks, b / m), np.zeros((1 + n_tasks) * (n + 7))])
    cov = block_diag(25.0, r * b**2 / m * np.eye(n_tasks), a2 * k, *[0.3 * b**2 / m * k] * n_tasks)
    observed, wanted = linear[:n], linear[n:]
    gain = (
        cov
        @ observed.T
        @ np.linalg.inv(observed @ cov @ observed.T + np.diag(a2 * noise + JITTER + variance))
    )
    posterior_mean = mean + gain @ (y - observed @ mean)
    posterior_cov = cov - gain @ observed @ cov

    found_mean, found_variance = process.predict(Z)
    np.testing.assert_allclose(found_mean, wanted @ posterior_mean, atol=1e-8)
    expected = np.diag(wanted @ posterior_cov @ wanted.T)
    np.testing.assert_allclose(found_variance, expected, atol=1e-8)
    everywhere = posterior_mean[1 : 1 + n_tasks]
    by_place = posterior_mean[1 + n_tasks + n + 7 :].reshape(n_tasks, n + 7)[:, :n]
    coefficients = everywhere + (by_place.mean(axis=1) if n else 0.0)
    np.testing.assert_allclose(process.coefficients, coefficients, atol=1e-8)


@pytest.mark.parametrize("n_tasks", [0, 2])
@pytest.mark.parametrize("n", [1, 2, 20])
def test_the_gradient_of_the_fit_is_that_of_finite_differences(
    n_tasks: int, n: int, rng: np.random.Generator
) -> None:
    features = ENCODE(random_points(MIXED.columns, n, rng))
    explained = means(some_past(n_tasks, rng), features)
    pairs, variance = Pairs.of(features, ENCODE.owner, ALL), rng.exponential(0.1, size=n)
    loss = _Loss(pairs, rng.normal(size=n), explained, 1.2, variance)
    for _ in range(3):
        theta = locked([*rng.normal(size=5), rng.uniform(-6.0, -1.0), *rng.normal(size=2)])
        by_difference = approx_fprime(theta, lambda t: loss(t)[0], 1e-6)
        np.testing.assert_allclose(loss(theta)[1], by_difference, rtol=1e-4, atol=1e-4)


def test_what_a_fit_minimises_is_the_posterior_density_of_its_settings(
    rng: np.random.Generator,
) -> None:
    features = ENCODE(random_points(MIXED.columns, 15, rng))
    explained, rest = means(some_past(2, rng), features), rng.normal(size=15)
    pairs, b = Pairs.of(features, ENCODE.owner, ALL), 1.2
    loss = _Loss(pairs, rest, explained, b)

    def brute_force(theta: Floats) -> float:
        *log_lengths, log_noise, log_a2, log_r = theta
        points = features * pairs.scale(log_lengths)
        k, past = plain_matern(points, points), b**2 / 2 * explained @ explained.T
        C = np.exp(log_a2) * (k + np.exp(log_noise) * np.eye(15))
        C += 25.0 + (np.exp(log_r) + 0.3 * k) * past + JITTER * np.eye(15)
        density = multivariate_normal.logpdf(rest, cov=C)
        density += norm.logpdf(log_lengths, np.log(np.sqrt(5) / 2), 1.0).sum()
        density += norm.logpdf(log_noise, -6.0, 2.0) + norm.logpdf(log_a2, 0.0, 1.0)
        density += norm.logpdf(log_r, 0.0, 2.0)
        return float(-density)

    found = [loss(theta)[0] - brute_force(theta) for theta in rng.normal(size=(4, 8)) - 0.5]
    np.testing.assert_allclose(found, found[0])  # up to a constant


def test_the_settings_of_a_fit_are_the_most_probable_ones(rng: np.random.Generator) -> None:
    X, past = random_points(MIXED.columns, 25, rng), some_past(2, rng)
    y = standardised(wave(X) + 0.3 * rng.normal(size=25))
    process = informed(past, X, y)
    pairs = Pairs.of(ENCODE(X), ENCODE.owner, ALL)
    explained = means(past, ENCODE(X))
    scale, noise, amplitude, moves, believed = process.settings
    rest = y - believed * explained.mean(axis=1)
    loss = _Loss(pairs, rest, explained, believed)
    first = [int(np.flatnonzero(ENCODE.owner == j)[0]) for j in range(len(MIXED))]
    log_lengths = -np.log(scale[first])
    best = np.array([*log_lengths, *np.log([noise, amplitude, moves])])
    for j in range(len(best)):
        for step in (-0.5, 0.5):
            assert loss(best + step * np.eye(len(best))[j])[0] > loss(best)[0]


def test_settings_are_those_of_evenly_chosen_observations_and_all_enter_the_prediction(
    rng: np.random.Generator,
) -> None:
    past, n = some_past(2, rng), 300
    X, Z = random_points(MIXED.columns, n, rng), ENCODE(random_points(MIXED.columns, 9, rng))
    y, variance = standardised(wave(X) + other(X)), rng.exponential(0.1, size=n)
    process, explained = informed(past, X, y, variance), means(past, ENCODE(X))
    some = np.round(np.linspace(0, n - 1, 150)).astype(int)
    pairs, believed = Pairs.of(ENCODE(X[some]), ENCODE.owner, ALL), process.settings.believed
    assert believed == pytest.approx((explained.mean(axis=1).var() + 0.3) ** -0.5)
    rest = y - believed * explained.mean(axis=1)
    best = _Loss(pairs, rest[some], explained[some], believed, variance[some]).minimum()
    np.testing.assert_allclose(np.log(process.settings[1:4]), best[-3:])
    np.testing.assert_allclose(process.settings.scale, pairs.scale(best[:-3]))
    expected = InformedProcess.of(past, ENCODE(X), explained, y, process.settings, variance)
    np.testing.assert_allclose(process.predict(Z), expected.predict(Z))


@pytest.mark.parametrize("n_tasks", [0, 2])
def test_losses_a_thousand_times_too_large_leave_the_settings_within_their_bounds(
    n_tasks: int, rng: np.random.Generator
) -> None:
    X = random_points(MIXED.columns, 30, rng)
    process = informed(some_past(n_tasks, rng), X, 1000.0 * rng.normal(size=30))
    moves = 100.0 if n_tasks else 1.0  # which means nothing without a past
    np.testing.assert_allclose(process.settings[1:4], [1.0, 100.0, moves])


def test_leaving_one_out_is_the_same_as_a_process_without_it(rng: np.random.Generator) -> None:
    past, X, y = some_past(2, rng), random_points(MIXED.columns, 12, rng), rng.normal(size=12)
    process = informed(past, X, y, rng.exponential(0.1, size=12))
    for i in range(12):
        rest = np.arange(12) != i
        known = (a[rest] for a in (process.features, process.explained, y))
        without = InformedProcess.of(past, *known, process.settings, process.variance[rest])
        expected = without.predict(process.features[[i]])[0]
        np.testing.assert_allclose(process.left_out_mean[i], expected[0], atol=1e-8)


# What becomes of the past ------------------------------------------------------------------------


def test_before_the_study_has_said_anything_the_past_is_believed_as_a_whole(
    rng: np.random.Generator,
) -> None:
    past, Z = some_past(3, rng), ENCODE(random_points(MIXED.columns, 5, rng))
    process = informed(past, np.empty((0, len(MIXED))), np.empty(0))
    np.testing.assert_allclose(process.coefficients, [1 / 3] * 3)
    np.testing.assert_allclose(process.predict(Z)[0], means(past, Z).mean(axis=1))
    spread = 26.0 + 1.3 * (means(past, Z) ** 2).mean(axis=1)  # of c, g, and all b_m and h_m
    np.testing.assert_allclose(process.predict(Z)[1], spread)


def test_without_a_past_and_without_observations_nothing_is_known(
    rng: np.random.Generator,
) -> None:
    process = informed([], np.empty((0, len(MIXED))), np.empty(0))
    mean, variance = process.predict(ENCODE(random_points(MIXED.columns, 5, rng)))
    np.testing.assert_array_equal(mean, np.zeros(5))
    np.testing.assert_allclose(variance, 26.0)
    np.testing.assert_array_equal(process.shares, [1.0])


def test_before_the_first_observation_a_point_is_believed_to_tell_of_all_others(
    rng: np.random.Generator,
) -> None:
    # As long as nothing has been observed, no parameter has a part.
    Z = ENCODE(random_points(MIXED.columns, 5, rng))
    process = informed([], np.empty((0, len(MIXED))), np.empty(0)).believing(Z[:1])
    np.testing.assert_allclose(process.predict(Z)[1], 1e-6, rtol=1e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["same", "reversed"])
@pytest.mark.parametrize("repeat", range(3))
def test_the_same_task_is_followed_and_a_reversed_one_is_inverted(
    sign: float, repeat: int, rng: np.random.Generator
) -> None:
    of_past, X = random_points(MIXED.columns, 80, rng), random_points(MIXED.columns, 12, rng)
    process = informed([past_model(sign * wave(of_past), of_past)], X, standardised(wave(X)))
    # What was standardised by its own spread there is standardised by another one here.
    scale = wave(of_past).std() / wave(X).std()
    np.testing.assert_allclose(process.coefficients, [sign * scale], rtol=0.1)
    assert process.shares[1] > 0.9


@pytest.mark.parametrize("repeat", range(3))
def test_beside_the_same_task_an_unrelated_one_is_left_alone(
    repeat: int, rng: np.random.Generator
) -> None:
    tasks = [random_points(MIXED.columns, 80, rng) for _ in range(2)]
    past = [past_model(wave(tasks[0]), tasks[0]), past_model(other(tasks[1]), tasks[1])]
    X = random_points(MIXED.columns, 12, rng)
    process = informed(past, X, standardised(wave(X)))
    assert abs(process.coefficients[1]) < 0.1
    assert process.shares[1] > 0.9
    assert process.shares[2] < 0.05


def test_what_no_past_task_explains_is_learned_by_the_study(rng: np.random.Generator) -> None:
    of_past, X = random_points(MIXED.columns, 80, rng), random_points(MIXED.columns, 60, rng)
    Z = random_points(MIXED.columns, 100, rng)
    process = informed([past_model(other(of_past), of_past)], X, standardised(wave(X)))
    assert abs(process.coefficients[0]) < 0.3
    assert process.shares[0] > 0.6
    assert np.corrcoef(process.predict(ENCODE(Z))[0], wave(Z))[0, 1] > 0.9


def test_a_past_that_fits_predicts_better_than_few_observations_alone(
    rng: np.random.Generator,
) -> None:
    of_past, X = random_points(MIXED.columns, 80, rng), random_points(MIXED.columns, 6, rng)
    Z = random_points(MIXED.columns, 200, rng)
    y = (wave(X) - wave(X).mean()) / wave(X).std()
    expected = (wave(Z) - wave(X).mean()) / wave(X).std()

    def error(past: Past) -> float:
        return float(np.abs(informed(past, X, y).predict(ENCODE(Z))[0] - expected).mean())

    assert error([past_model(wave(of_past), of_past)]) < 0.3 * error([])


def test_the_order_of_past_tasks_does_not_matter(rng: np.random.Generator) -> None:
    past, X = some_past(4, rng), random_points(MIXED.columns, 10, rng)
    y, Z = standardised(wave(X)), ENCODE(random_points(MIXED.columns, 5, rng))
    one, two = informed(past, X, y), informed(past[::-1], X, y)
    np.testing.assert_allclose(two.coefficients[::-1], one.coefficients, atol=1e-3)
    np.testing.assert_allclose(two.predict(Z)[0], one.predict(Z)[0], atol=1e-3)


@pytest.mark.parametrize("n_tasks", [0, 1, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 15])
def test_shares_are_positive_and_sum_to_one(
    n_tasks: int, n: int, rng: np.random.Generator
) -> None:
    process = informed(
        some_past(n_tasks, rng), random_points(MIXED.columns, n, rng), rng.normal(size=n)
    )
    assert process.shares.shape == (1 + n_tasks,)
    assert process.shares.sum() == pytest.approx(1.0)
    assert (process.shares >= 0.0).all()


def test_without_an_observation_the_past_alone_has_a_share(rng: np.random.Generator) -> None:
    process = informed(some_past(4, rng), random_points(MIXED.columns, 0, rng), np.empty(0))
    np.testing.assert_allclose(process.shares, [0.0, 0.25, 0.25, 0.25, 0.25])


def test_with_one_observation_nothing_varies_and_the_study_has_the_whole_share(
    rng: np.random.Generator,
) -> None:
    process = informed(some_past(2, rng), random_points(MIXED.columns, 1, rng), np.ones(1))
    np.testing.assert_array_equal(process.shares, [1.0, 0.0, 0.0])


# Points that are being evaluated -----------------------------------------------------------------


@pytest.mark.parametrize("n_tasks", [0, 2])
@pytest.mark.parametrize("n", [0, 15])
def test_a_believed_point_leaves_the_mean_as_it_is_and_is_certain(
    n_tasks: int, n: int, rng: np.random.Generator
) -> None:
    X, Z = random_points(MIXED.columns, n, rng), ENCODE(random_points(MIXED.columns, 3, rng))
    y, variance = standardised(wave(X)) if n else np.empty(0), rng.exponential(0.1, size=n)
    process = informed(some_past(n_tasks, rng), X, y, variance)
    believing = process.believing(Z)
    everywhere = np.vstack([Z, ENCODE(X), ENCODE(random_points(MIXED.columns, 20, rng))])
    (mean, variance), (mean_after, variance_after) = (
        p.predict(everywhere) for p in (process, believing)
    )
    np.testing.assert_allclose(mean_after, mean, atol=1e-6)
    assert (variance_after <= variance + 1e-9).all()
    assert (variance_after[:3] <= 2.0 * JITTER).all()


@pytest.mark.parametrize(("rows", "y"), DEGENERATE.values(), ids=DEGENERATE)
def test_a_degenerate_study_gives_finite_predictions(
    rows: list[int], y: list[float], rng: np.random.Generator
) -> None:
    X, constant = random_points(MIXED.columns, 3, rng), random_points(MIXED.columns, 9, rng)
    past = [*some_past(1, rng), fitted(constant, np.zeros(9))] * 2  # each of them twice
    process = informed(past, X[rows], np.array(y)).believing(ENCODE(X[[0, 0, 1]]))
    mean, variance = process.predict(ENCODE(X))
    assert np.isfinite(mean).all()
    assert (variance > 0.0).all()
    assert np.isfinite(process.shares).all()
