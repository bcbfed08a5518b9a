"""Gaussian processes on arrays: scores, models, boxes of the undominated part, the search."""

from __future__ import annotations

import itertools
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from helpers import INF, MIXED, NAN, locked, random_points
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal, norm

from metatpe.gp.ehvi import Boxes, log_h
from metatpe.gp.models import MAX_OBSERVATIONS, thinned
from metatpe.gp.process import (
    Encoder,
    GaussianProcess,
    Pairs,
    _negative_log_posterior,
    fit,
    matern,
    squared_distances,
)
from metatpe.gp.search import candidates, climb
from metatpe.gp.transform import scores
from metatpe.space import Floats, Mask

needs_botorch = pytest.mark.skipif(
    find_spec("botorch") is None, reason="the extra `gp` is not installed"
)

ENCODE = Encoder(MIXED.columns)


def smooth(X: Floats) -> Floats:  # (n, d) -> (n,)
    """Return a function of points of the mixed space, standardised."""
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * X[:, 2] - 0.3 * (X[:, 4] > 0.5)
    return (y - y.mean()) / y.std()


def fitted(X: Floats, y: Floats) -> GaussianProcess:
    return fit(ENCODE(X), y, ENCODE.owner, ~np.isnan(X).all(axis=0))


# Scores -----------------------------------------------------------------------------------------


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


def test_infeasible_pruned_and_infinite_losses_are_as_bad_as_the_worst() -> None:
    losses = np.array([[1.0], [2.0], [3.0], [-9.0], [INF], [-INF]])
    z = scores(losses, np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]))[:, 0]
    assert z[0] < z[1] < z[2] == z[3] == z[4]
    assert z[5] == z[0]


@pytest.mark.parametrize("losses", [[], [4.0], [2.0, 2.0, 2.0], [INF, INF], [1e308, 1e308]])
def test_a_constant_objective_is_zero_everywhere(losses: list[float]) -> None:
    y = np.array(losses).reshape(-1, 1)
    np.testing.assert_array_equal(scores(y, np.zeros(len(y))), np.zeros_like(y))


def test_losses_of_the_size_of_the_largest_float_do_not_overflow() -> None:
    assert np.isfinite(scores(np.array([[-1.7e308], [1.7e308], [0.0]]), np.zeros(3))).all()


# Models -----------------------------------------------------------------------------------------


def botorch_model(model: GaussianProcess, features: Floats, y: Floats) -> object:
    """Return the process as BoTorch has it."""
    import torch
    from botorch.models import SingleTaskGP
    from gpytorch.constraints import GreaterThan
    from gpytorch.kernels import MaternKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.means import ZeroMean

    # A length scale that is nearly infinite where a feature has no part.
    scale = torch.from_numpy(np.maximum(model.scale, 1e-8))
    matern = MaternKernel(nu=2.5, ard_num_dims=features.shape[1])
    matern.lengthscale = 1.0 / scale
    kernel = ScaleKernel(matern)
    kernel.outputscale = model.amplitude
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(1e-8))
    likelihood.noise = model.amplitude * model.noise
    return SingleTaskGP(
        torch.from_numpy(features),
        torch.from_numpy(y[:, None]),
        likelihood=likelihood.double(),
        covar_module=kernel.double(),
        mean_module=ZeroMean(),
        outcome_transform=None,
    )


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


def test_a_column_that_a_task_never_used_changes_no_prediction(rng: np.random.Generator) -> None:
    X = np.array(random_points(MIXED.columns, 20, rng))
    X[:, [1, 4]] = NAN
    model = fitted(X, smooth(np.nan_to_num(X, nan=0.5)))
    Z = np.array(random_points(MIXED.columns, 5, rng))
    before = model.predict(ENCODE(Z))
    Z[:, [1, 4]] = random_points(MIXED.columns, 5, rng)[:, [1, 4]]
    np.testing.assert_allclose(model.predict(ENCODE(Z)), before)


DEGENERATE: dict[str, tuple[list[int], list[float]]] = {  # rows of some points, and losses
    "none": ([], []),
    "one": ([0], [0.0]),
    "constant": ([0, 1, 2], [0.0, 0.0, 0.0]),
    "one point 30 times": ([0] * 30, [0.0] * 30),
    "two points, noise": ([0] * 15 + [1] * 15, [1.0, -1.0] * 15),
    "contradiction": ([0, 0, 1, 1, 2, 2], [2.0, -2.0, 0.0, 0.0, 1.0, -1.0]),
}


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


def test_of_very_many_observations_the_best_and_some_of_the_others_are_kept() -> None:
    kept = thinned(np.arange(5000))
    assert len(set(kept.tolist())) == len(kept) == MAX_OBSERVATIONS
    assert kept[: MAX_OBSERVATIONS // 2].tolist() == list(range(MAX_OBSERVATIONS // 2))
    assert kept[-1] == 4999
    few = np.arange(MAX_OBSERVATIONS)
    assert thinned(few) is few


# EHVI -----------------------------------------------------------------------------------


@st.composite
def fronts(draw: st.DrawFn) -> tuple[Floats, Floats]:  # (n, m), (m,)
    """Points with many equal coordinates, and a reference that may lie anywhere among them."""
    m = draw(st.integers(1, 5))
    small = st.integers(0, 3)
    points = draw(st.lists(st.tuples(*[small] * m), max_size=12))
    reference = draw(st.tuples(*[st.integers(0, 4)] * m))
    return np.array(points, dtype=float).reshape(-1, m), np.array(reference, dtype=float)


@given(fronts())
def test_each_undominated_point_is_in_one_box_and_a_dominated_one_in_none(
    case: tuple[Floats, Floats],
) -> None:
    points, reference = case
    boxes, m = Boxes.of(locked(points), locked(reference)), len(reference)
    everywhere = np.array(list(itertools.product(np.arange(5) - 0.5, repeat=m)))
    is_free = (everywhere < reference).all(axis=1)
    is_free &= ~(points[None] < everywhere[:, None]).all(axis=2).any(axis=1)
    is_above = (boxes.lower[None] < everywhere[:, None]).all(axis=2)
    is_below = (everywhere[:, None] <= boxes.upper[None]).all(axis=2)
    np.testing.assert_array_equal((is_above & is_below).sum(axis=1), is_free)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_the_boxes_and_the_dominated_hypervolume_fill_the_space(
    m: int, rng: np.random.Generator
) -> None:
    import moocore

    points, reference, low = rng.normal(size=(30, m)), np.ones(m), np.full(m, -5.0)
    boxes = Boxes.of(points, reference)
    volume = np.prod(boxes.upper - np.maximum(boxes.lower, low), axis=1).sum()
    dominated = moocore.hypervolume(points, ref=reference)
    assert volume + dominated == pytest.approx(6.0**m)


def improvements(samples: Floats, front: Floats, reference: Floats) -> Floats:  # (S, m) -> (S,)
    """Return the hypervolume that each sample adds, by another library."""
    import moocore

    before = moocore.hypervolume(front, ref=reference) if len(front) else 0.0
    clipped = np.minimum(samples, reference)
    return np.array(
        [moocore.hypervolume(np.vstack([front, s[None]]), ref=reference) - before for s in clipped]
    )


@pytest.mark.parametrize("m", [2, 3, 4])
def test_ehvi_is_the_mean_hypervolume_of_samples(m: int, rng: np.random.Generator) -> None:
    front, reference = locked(rng.normal(size=(12, m))), np.full(m, 1.5)
    mean, sd = rng.normal(size=(3, m)), rng.uniform(0.3, 1.0, size=(3, m))
    log_ehvi = Boxes.of(front, reference).log_improvement(mean, sd)
    for c in range(3):
        found = improvements(mean[c] + sd[c] * rng.normal(size=(4000, m)), front, reference)
        error = found.std() / np.sqrt(4000)
        assert np.exp(log_ehvi[c]) == pytest.approx(found.mean(), abs=5 * error)


@needs_botorch
@pytest.mark.parametrize("m", [2, 3, 4])
def test_ehvi_is_that_of_botorch(m: int, rng: np.random.Generator) -> None:
    import torch
    from botorch.acquisition.multi_objective import ExpectedHypervolumeImprovement
    from botorch.utils.multi_objective.box_decompositions import NondominatedPartitioning
    from botorch.utils.testing import MockModel, MockPosterior

    front, reference = rng.normal(size=(12, m)), np.full(m, 1.5)
    mean, sd = rng.normal(size=(20, m)), rng.uniform(0.3, 1.0, size=(20, m))
    tensors = [torch.from_numpy(a)[:, None] for a in (-mean, sd**2)]
    theirs = ExpectedHypervolumeImprovement(
        model=MockModel(MockPosterior(mean=tensors[0], variance=tensors[1])),
        ref_point=(-reference).tolist(),
        partitioning=NondominatedPartitioning(
            ref_point=torch.from_numpy(-reference), Y=torch.from_numpy(-front)
        ),
    )
    expected = theirs(torch.zeros(20, 1, 1, dtype=torch.float64)).numpy()
    found = Boxes.of(front, reference).log_improvement(mean, sd)
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-6)


def test_with_one_objective_ehvi_is_the_expected_improvement() -> None:
    boxes = Boxes.of(np.array([[0.5], [2.0]]), np.array([2.2]))
    z = (0.5 - 0.7) / 0.3
    expected = 0.3 * (norm.pdf(z) + z * norm.cdf(z))
    found = np.exp(boxes.log_improvement(np.array([[0.7]]), np.array([[0.3]])))
    np.testing.assert_allclose(found, [expected])


@pytest.mark.parametrize("m", [1, 2, 3])
def test_without_a_front_the_whole_box_is_to_be_won(m: int) -> None:
    boxes = Boxes.of(np.empty((0, m)), np.zeros(m))
    sure = boxes.log_improvement(np.full((1, m), -2.0), np.full((1, m), 1e-6))
    np.testing.assert_allclose(np.exp(sure), [2.0**m])


def test_hopeless_candidates_still_have_an_order() -> None:
    front = np.array([[0.0, 1.0], [1.0, 0.0]])
    boxes = Boxes.of(front, np.array([2.0, 2.0]))
    mean = np.array([[50.0, 50.0], [100.0, 100.0], [1e5, 1e5], [1e7, 1e7]])
    log_ehvi = boxes.log_improvement(mean, np.ones((4, 2)))
    assert np.isfinite(log_ehvi).all()
    assert (np.diff(log_ehvi) < 0.0).all()


def test_log_h_is_the_logarithm_where_that_can_be_computed() -> None:
    z = np.linspace(-6.0, 6.0, 50)
    np.testing.assert_allclose(log_h(z), np.log(norm.pdf(z) + z * norm.cdf(z)), rtol=1e-6)
    far = np.array([-1e5, -1e4 - 1, -1e4 + 1, -1e3, -30.0, -1.0 - 1e-9, -1.0])
    assert (np.diff(log_h(far)) > 0.0).all()


# The search -------------------------------------------------------------------------------------


def anywhere(X: Floats) -> Mask:
    return np.ones(len(X), dtype=np.bool_)


def test_the_search_climbs_to_the_best_configuration_and_stays_on_the_grid(
    rng: np.random.Generator,
) -> None:
    columns = MIXED.columns
    top = np.array([0.123, 0.456, 0.3, columns.points[3][20], 5 / 6])

    def score(X: Floats) -> Floats:
        np.testing.assert_array_equal(columns.snap(X), X)
        return -((X - top) ** 2).sum(axis=1)

    found = climb(candidates(columns, X_NONE, 500, rng), columns, score, anywhere, rng)
    np.testing.assert_allclose(found, top, atol=0.02)
    np.testing.assert_allclose(found[2:], top[2:])


def test_the_search_never_leaves_what_is_allowed(rng: np.random.Generator) -> None:
    columns = MIXED.columns

    def is_left(X: Floats) -> Mask:
        return np.asarray(X[:, 0] < 0.4)

    X = candidates(columns, X_NONE, 300, rng)
    found = climb(X[is_left(X)], columns, lambda X: X[:, 0], is_left, rng)
    assert 0.35 < found[0] < 0.4


def test_the_whole_of_a_small_space_is_scored(rng: np.random.Generator) -> None:
    columns = MIXED.columns.take([2, 4])
    X = candidates(columns, np.empty((0, 2)), 3, rng)
    assert len(np.unique(X, axis=0)) == len(X) == 15


def test_neighbours_of_good_ones_keep_most_of_their_coordinates(rng: np.random.Generator) -> None:
    good = np.array(random_points(MIXED.columns, 1, rng))
    good[0, 1] = NAN  # of a conditional parameter any value will do
    near = candidates(MIXED.columns, good, 400, rng)[400:]
    assert not np.isnan(near).any()
    assert 0.4 < (near == good)[:, [0, 2, 3, 4]].mean() < 0.95


X_NONE = np.empty((0, len(MIXED)))
