"""The Gaussian process of one task: its posterior, its fit, and what it was fitted to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import MIXED, NAN, locked, random_points
from optuna.distributions import CategoricalDistribution, FloatDistribution
from processes import DEGENERATE, ENCODE, botorch_model, fitted, needs_botorch, smooth
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal, norm

from metatpe import Space
from metatpe.gp.kernels import matern
from metatpe.gp.process import (
    Encoder,
    GaussianProcess,
    Pairs,
    _negative_log_posterior,
    fit,
    squared_distances,
)
from metatpe.space import Floats


@needs_botorch
def test_the_posterior_is_that_of_botorch(rng: np.random.Generator) -> None:
    import torch

    X, Z = random_points(MIXED.columns, 25, rng, 0.1), random_points(MIXED.columns, 9, rng)
    y = smooth(np.nan_to_num(X, nan=0.5))
    model = fitted(X, y)
    with torch.no_grad():
        posterior = botorch_model(model, ENCODE(X), y).posterior(torch.from_numpy(ENCODE(Z)))
        expected = posterior.mean.numpy()[:, 0]
        covariance = posterior.distribution.covariance_matrix.numpy()
    mean, variance = model.predict(ENCODE(Z))
    np.testing.assert_allclose(mean, expected, atol=1e-6)
    np.testing.assert_allclose(variance, np.diag(covariance), atol=1e-6)
    joint_mean, root = model.joint(ENCODE(Z))
    np.testing.assert_allclose(joint_mean, mean)
    np.testing.assert_allclose(root @ root.T, covariance, atol=1e-5)


@needs_botorch
def test_the_fit_is_the_most_probable_one_by_the_likelihood_of_gpytorch(
    rng: np.random.Generator,
) -> None:
    import torch

    X = random_points(MIXED.columns, 40, rng)[:, :2].copy()  # both continuous: one feature each
    y = np.sin(4.0 * X[:, 0]) + 0.1 * rng.normal(size=40)
    y = (y - y.mean()) / y.std()
    model = fit(X, y, np.arange(2), np.ones(2, dtype=np.bool_))

    def log_posterior(log_lengths: Floats, log_noise: float, log_amplitude: float) -> float:
        factor = GaussianProcess.of(X, y, np.exp(-log_lengths), np.exp(log_noise))
        theirs = botorch_model(replace(factor, amplitude=np.exp(log_amplitude)), X, y)
        theirs.train()
        with torch.no_grad():
            prior = theirs.likelihood(theirs(*theirs.train_inputs))
            likelihood = prior.log_prob(theirs.train_targets).item()
        likelihood += norm.logpdf(log_lengths, np.log(np.sqrt(2) / 2), 1.0).sum()
        likelihood += norm.logpdf(log_noise, -6.0, 2.0)
        return likelihood - 3.0 * log_amplitude - 3.0 * np.exp(-log_amplitude)

    best = (-np.log(model.scale), np.log(model.noise), np.log(model.amplitude))
    highest = log_posterior(*best)
    for step in (-0.2, 0.2):
        assert log_posterior(best[0] + [step, 0.0], *best[1:]) < highest
        assert log_posterior(best[0] + [0.0, step], *best[1:]) < highest
        assert log_posterior(best[0], best[1] + step, best[2]) < highest
        assert log_posterior(best[0], best[1], best[2] + step) < highest


def some_pairs(n: int, rng: np.random.Generator, *unused: int) -> tuple[Pairs, Floats]:
    """Return the pairs of random observations of the mixed space, and their features."""
    features = ENCODE(random_points(MIXED.columns, n, rng))
    is_used = ~np.isin(np.arange(len(MIXED)), unused)
    return Pairs.of(features, ENCODE.owner, is_used), features


@pytest.mark.parametrize("n", [1, 2, 20])
@pytest.mark.parametrize("unused", [(), (1, 4)])
def test_the_gradient_of_the_fit_is_that_of_finite_differences(
    n: int, unused: tuple[int, ...], rng: np.random.Generator
) -> None:
    pairs, _ = some_pairs(n, rng, *unused)
    y, d = locked(rng.normal(size=n)), len(MIXED) - len(unused)
    for _ in range(3):
        theta = locked(np.append(rng.normal(size=d), rng.uniform(-6.0, -1.0)))
        by_difference = approx_fprime(
            theta, lambda t: _negative_log_posterior(t, pairs, y)[0], 1e-6
        )
        found = _negative_log_posterior(theta, pairs, y)[1]
        np.testing.assert_allclose(found, by_difference, rtol=1e-4, atol=1e-4)


def test_what_a_fit_minimises_is_the_posterior_density_of_its_settings(
    rng: np.random.Generator,
) -> None:
    pairs, features = some_pairs(15, rng)
    y = rng.normal(size=15)

    def brute_force(theta: Floats) -> float:
        points = features * pairs.scale(theta[:-1])
        C = matern(squared_distances(points, points)) + np.exp(theta[-1]) * np.eye(15)
        a2 = (y @ np.linalg.solve(C, y) + 6.0) / (15 + 6.0)
        density = multivariate_normal.logpdf(y, cov=a2 * C) - 3.0 * np.log(a2) - 3.0 / a2
        density += norm.logpdf(theta[:-1], np.log(np.sqrt(5) / 2), 1.0).sum()
        return float(-density - norm.logpdf(theta[-1], -6.0, 2.0))

    thetas = rng.normal(size=(4, 6)) - 0.5
    found = [_negative_log_posterior(theta, pairs, y)[0] - brute_force(theta) for theta in thetas]
    np.testing.assert_allclose(found, found[0])  # up to a constant


def test_the_mean_alone_is_that_of_the_prediction(rng: np.random.Generator) -> None:
    X, Z = random_points(MIXED.columns, 30, rng), random_points(MIXED.columns, 2000, rng)
    model = fitted(X, smooth(X))
    np.testing.assert_allclose(model.mean(ENCODE(Z)), model.predict(ENCODE(Z))[0], atol=1e-9)
    assert model.mean(ENCODE(Z[:0])).shape == (0,)


def test_before_the_first_observation_no_parameter_has_a_part(rng: np.random.Generator) -> None:
    X = random_points(MIXED.columns, 5, rng)
    model = fitted(X[:0], np.empty(0)).believing(ENCODE(X[:1]))
    np.testing.assert_array_equal(model.scale, 0.0)
    assert (model.predict(ENCODE(X))[1] < 1e-6).all()


def test_leaving_one_out_is_the_same_as_a_model_without_it(rng: np.random.Generator) -> None:
    X = random_points(MIXED.columns, 12, rng)
    y = smooth(X)
    model = fitted(X, y)
    mean, variance = model.left_out()
    for i in range(12):
        rest = np.arange(12) != i
        without = GaussianProcess.of(ENCODE(X[rest]), y[rest], model.scale, model.noise)
        expected_mean, expected_variance = without.predict(ENCODE(X[i : i + 1]))
        np.testing.assert_allclose(mean[i], expected_mean[0], atol=1e-8)
        # The amplitude is that of all observations.
        expected = expected_variance[0] * model.amplitude / without.amplitude
        np.testing.assert_allclose(variance[i], expected, atol=1e-8)


def test_categories_are_all_equally_far_apart_and_a_missing_one_is_in_the_middle() -> None:
    X = np.full((4, len(MIXED)), 0.5)
    X[:, 4] = [1 / 6, 1 / 2, 5 / 6, NAN]
    F = ENCODE(X)
    squared = ((F[:, None] - F[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared[:3, :3], 1.0 - np.eye(3), atol=1e-15)
    np.testing.assert_allclose(squared[3, :3], 1 / 3)


def test_a_missing_number_stands_in_the_middle_of_its_column() -> None:
    X = np.full((2, len(MIXED)), 0.1)
    X[0, :4], X[1, :4] = NAN, 0.5
    np.testing.assert_array_equal(*ENCODE(X))


MANY = Space(
    {
        "choice": CategoricalDistribution([f"c{i}" for i in range(100)]),
        "x": FloatDistribution(0, 1),
    }
)


def test_many_categories_are_equally_far_apart_too_without_a_feature_for_each() -> None:
    encode, length = Encoder(MANY.columns), 0.7
    X = np.array([[0.005, 0.2], [0.015, 0.2], [0.995, 0.2], [NAN, 0.2], [0.005, 0.5]])
    features = encode(X)
    assert features.shape == (5, 3)
    squared = squared_distances(features / length, features[:4] / length) * length**2
    np.testing.assert_allclose(squared[:3, :3], 1.0 - np.eye(3))
    np.testing.assert_allclose(squared[3], [0.5, 0.5, 0.5, 0.0])
    np.testing.assert_allclose(squared[4], [0.09, 1.09, 1.09, 0.59])


def test_a_length_scale_is_a_hundred_times_the_range_at_most(rng: np.random.Generator) -> None:
    X = rng.random((150, 3))
    y = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()  # a straight line, as smooth as can be
    found = fit(X, y, np.arange(3), np.ones(3, dtype=np.bool_))
    assert (1.0 / found.scale).max() == pytest.approx(100.0)


def test_a_choice_of_many_is_the_same_after_it_was_scaled_and_back() -> None:
    scale, features = 0.1, np.array([[k, -1.0] for k in range(1, 101)])
    once = features * scale
    again = once / scale * scale / 3.0 * 3.0
    assert (again != once).any()
    expected = scale**2 * (1.0 - np.eye(100))
    np.testing.assert_allclose(squared_distances(once, again), expected, atol=1e-12)


@pytest.mark.parametrize(("k", "n_features"), [(64, 64), (65, 2)])
def test_up_to_64_choices_have_a_feature_each(k: int, n_features: int) -> None:
    encode = Encoder(Space({"c": CategoricalDistribution([f"c{i}" for i in range(k)])}).columns)
    x = (np.arange(k) + 0.5)[:, None] / k
    features = encode(x)
    assert features.shape == (k, n_features)
    np.testing.assert_allclose(squared_distances(features, features), 1.0 - np.eye(k), atol=1e-12)


def test_a_model_of_many_categories_is_that_of_one_hot_features(rng: np.random.Generator) -> None:
    X, Z = (locked(random_points(MANY.columns, n, rng)) for n in (40, 60))
    y = np.where(X[:, 0] < 0.3, 1.0, -1.0) + X[:, 1]
    y = (y - y.mean()) / y.std()
    encode, used = Encoder(MANY.columns), np.ones(2, dtype=np.bool_)
    one_hot = np.eye(100) * np.sqrt(0.5)

    def slow(X: Floats) -> Floats:
        return np.hstack([one_hot[MANY.columns.cells(X[:, 0], 0)], X[:, 1:]])

    model = fit(encode(X), y, encode.owner, used)
    plain = fit(slow(X), y, np.repeat([0, 1], [100, 1]), used)
    np.testing.assert_allclose(model.predict(encode(Z)), plain.predict(slow(Z)), atol=1e-9)
    believing, expected = model.believing(encode(Z[:3])), plain.believing(slow(Z[:3]))
    np.testing.assert_allclose(believing.predict(encode(Z)), expected.predict(slow(Z)), atol=1e-9)


def test_a_column_that_a_task_never_used_changes_no_prediction(rng: np.random.Generator) -> None:
    X = np.array(random_points(MIXED.columns, 20, rng))
    X[:, [1, 4]] = NAN
    model = fitted(X, smooth(np.nan_to_num(X, nan=0.5)))
    Z = np.array(random_points(MIXED.columns, 5, rng))
    before = model.predict(ENCODE(Z))
    Z[:, [1, 4]] = random_points(MIXED.columns, 5, rng)[:, [1, 4]]
    np.testing.assert_allclose(model.predict(ENCODE(Z)), before)
    believing = model.believing(ENCODE(Z[:2]))  # another worker evaluates these
    np.testing.assert_allclose(believing.predict(ENCODE(Z[:2]))[0], before[0][:2], atol=0.02)


def test_the_amplitude_is_the_most_probable_one(rng: np.random.Generator) -> None:
    X, y = random_points(MIXED.columns, 12, rng), locked(rng.normal(size=12))
    scale, noise = np.ones(len(ENCODE.owner)), 0.1
    C = matern(squared_distances(ENCODE(X), ENCODE(X))) + noise * np.eye(12)
    q = y @ np.linalg.solve(C, y)
    model = GaussianProcess.of(ENCODE(X), y, scale, noise)
    assert model.amplitude == pytest.approx((q + 6.0) / (12 + 6.0))


def test_settings_are_those_of_evenly_chosen_observations_and_all_enter_the_prediction(
    rng: np.random.Generator,
) -> None:
    X = random_points(MIXED.columns, 301, rng)
    y = smooth(X) + 0.1 * rng.normal(size=len(X))
    model, some = fitted(X, y), np.round(np.linspace(0, len(y) - 1, 150)).astype(int)
    of_some = fitted(X[some], y[some])
    np.testing.assert_array_equal(model.scale, of_some.scale)
    assert model.noise == of_some.noise
    features = ENCODE(random_points(MIXED.columns, 20, rng))
    expected = GaussianProcess.of(ENCODE(X), y, of_some.scale, of_some.noise)
    np.testing.assert_allclose(model.predict(features), expected.predict(features))


@pytest.mark.parametrize(("rows", "y"), DEGENERATE.values(), ids=DEGENERATE)
def test_a_degenerate_set_gives_finite_predictions(
    rows: list[int], y: list[float], rng: np.random.Generator
) -> None:
    X = random_points(MIXED.columns, 3, rng)
    model = fitted(X[rows], np.array(y))
    mean, variance = model.predict(ENCODE(X))
    assert np.isfinite(mean).all()
    assert (variance > 0.0).all()
    repeated = ENCODE(X[[0, 0, 1, 2]])
    assert np.isfinite(model.joint(repeated)[1]).all()
    assert np.isfinite(model.left_out()).all()


def test_a_believed_point_keeps_the_mean_and_loses_its_variance(rng: np.random.Generator) -> None:
    X, Z = random_points(MIXED.columns, 15, rng), random_points(MIXED.columns, 2, rng)
    model = fitted(X, smooth(X))
    believing = model.believing(ENCODE(Z))
    everywhere = ENCODE(np.vstack([X, Z, random_points(MIXED.columns, 20, rng)]))
    np.testing.assert_allclose(
        believing.predict(everywhere)[0], model.predict(everywhere)[0], atol=0.02
    )
    assert (believing.predict(ENCODE(Z))[1] < 2.0 * model.noise).all()
