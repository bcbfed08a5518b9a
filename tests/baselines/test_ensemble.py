"""Ensembles of Gaussian processes: the weights of RGPE and TST-R, and what they predict."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from helpers import MIXED, locked, random_points
from processes import ENCODE, botorch_model, fitted, needs_botorch, smooth

from metatpe.baselines import RGPESampler, TSTRSampler
from metatpe.baselines.ensemble import (
    discordant,
    n_pairs,
    positions,
    rgpe_weights,
    sampled,
    sampled_left_out,
    tstr_weights,
)
from metatpe.space import Floats, Ints
from metatpe.tpe import pareto
from metatpe.tpe.pareto import order

RHO = 0.4


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_order_of_samples_is_that_of_observations(
    m: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    # By crowding distance with three objectives too: a hypervolume per sample would be too slow.
    monkeypatch.setattr(pareto, "BY_VOLUME", 4)
    samples = locked(rng.normal(size=(5, 30, m)))
    for sample, place in zip(samples, positions(samples), strict=True):
        assert np.argsort(place, kind="stable").tolist() == order(sample, np.zeros(30)).tolist()


def test_equal_points_have_equal_places() -> None:
    sample = np.array([[[0.0, 3.0], [3.0, 0.0], [1.0, 1.0], [1.0, 1.0], [2.0, 2.0]]])
    place = positions(sample)[0]
    assert place[0] == place[1] < place[2] == place[3] < place[4]


def slow_discordant(sample: Floats, observed: Floats) -> int:
    """Return the same by the definition; the observations are no ties."""
    place = [order(f, np.zeros(len(f))).tolist() for f in (sample, observed)]
    pairs = itertools.combinations(range(len(sample)), 2)
    return sum(
        (place[0].index(i) < place[0].index(j)) != (place[1].index(i) < place[1].index(j))
        for i, j in pairs
    )


@pytest.mark.parametrize("m", [1, 2])
def test_discordant_pairs_are_those_that_a_loop_counts(m: int, rng: np.random.Generator) -> None:
    samples, observed = rng.normal(size=(4, 9, m)), rng.normal(size=(9, m))
    # The ends of a front tie, and a loop over places would break such ties by number.
    unequal = [s for s in (*samples, observed) if len(set(positions(s[None])[0])) == 9]
    if m == 1:
        assert len(unequal) == 5
        expected = [slow_discordant(s, observed) for s in samples]
        assert discordant(samples, observed).tolist() == expected
    assert discordant(observed[None], observed).tolist() == [0]
    assert discordant(-samples[:, :, :1], samples[0, :, :1])[0] == 36


def test_rgpe_weights_are_how_often_a_task_is_the_best() -> None:
    losses = np.array([[3, 3, 3, 9], [1, 4, 3, 9], [2, 2, 9, 1]])
    np.testing.assert_allclose(rgpe_weights(losses), [0.5 / 4, 1.5 / 4, 2 / 4])


def test_a_past_task_that_is_mostly_worse_than_the_study_has_no_part() -> None:
    own = np.arange(20)
    poor = np.where(np.arange(20) < 9, 0, 30)  # sometimes the best, its median the worst
    np.testing.assert_allclose(rgpe_weights(np.stack([own, poor])), [1.0, 0.0])


def test_tstr_weights_are_epanechnikov_kernels_of_the_discordant_pairs() -> None:
    losses = np.array([[9, 9], [0, 0], [10, 10], [19, 21], [40, 40]])
    kernel = np.array([1.0, 1.0, 1.0 - (0.25 / RHO) ** 2, 1.0 - (0.5 / RHO) ** 2, 0.0])
    expected = np.maximum(kernel, 0.0)
    np.testing.assert_allclose(tstr_weights(losses, 40), expected / expected.sum())


@needs_botorch
def test_samples_have_the_mean_and_the_covariance_of_botorch(rng: np.random.Generator) -> None:
    import torch

    X, Z = random_points(MIXED.columns, 15, rng), random_points(MIXED.columns, 4, rng)
    models = [fitted(X, smooth(X)), fitted(X, -smooth(X))]
    draws = sampled(models, ENCODE(Z), 20_000, rng)
    for j, sign in enumerate((1.0, -1.0)):
        with torch.no_grad():
            theirs = botorch_model(models[j], ENCODE(X), sign * smooth(X))
            posterior = theirs.posterior(torch.from_numpy(ENCODE(Z)))
            covariance = posterior.distribution.covariance_matrix.numpy()
        np.testing.assert_allclose(draws[:, :, j].mean(axis=0), posterior.mean[:, 0], atol=0.03)
        np.testing.assert_allclose(np.cov(draws[:, :, j].T), covariance, atol=0.03)
    assert abs(np.corrcoef(draws[:, 0, 0], draws[:, 0, 1])[0, 1]) < 0.03


@pytest.mark.parametrize("weigh", [lambda losses, n: rgpe_weights(losses), tstr_weights])
def test_the_same_task_weighs_as_much_as_the_study_and_a_reversed_one_nearly_nothing(
    weigh: Callable[[Ints, int], Floats], rng: np.random.Generator
) -> None:
    X, past = random_points(MIXED.columns, 8, rng), random_points(MIXED.columns, 80, rng)
    y = np.stack([smooth(X), (X[:, 0] - 0.3) ** 2 * 10], axis=1)
    y_past = np.stack([smooth(past), (past[:, 0] - 0.3) ** 2 * 10], axis=1)
    own = [fitted(X, f) for f in y.T]
    tasks = [[fitted(past, sign * f) for f in y_past.T] for sign in (1.0, -1.0)]
    samples = [sampled_left_out(own, 256, rng)]
    samples += [sampled(task, ENCODE(X), 256, rng) for task in tasks]
    weights = weigh(np.stack([discordant(s, y) for s in samples]), n_pairs(y))
    assert weights.sum() == pytest.approx(1.0)
    assert weights[1] > 0.9 * weights[0]  # TST-R gives no past task more than the study
    assert weights[2] < 0.05


def test_predictions_are_combined_as_each_method_says(rng: np.random.Generator) -> None:
    X, Z = random_points(MIXED.columns, 10, rng), ENCODE(random_points(MIXED.columns, 6, rng))
    tasks = [[fitted(X, smooth(X))], [fitted(X[:5], smooth(X[:5]))], [fitted(X, -smooth(X))]]
    w = np.array([0.5, 0.5, 0.0])
    means, variances = np.array([task[0].predict(Z) for task in tasks]).transpose(1, 0, 2)
    rgpe = RGPESampler()._ensemble(tasks, w).predict(Z)
    np.testing.assert_allclose(rgpe[0][:, 0], w @ means)
    np.testing.assert_allclose(rgpe[1][:, 0] ** 2, w**2 @ variances)
    tstr = TSTRSampler()._ensemble(tasks, w).predict(Z)
    np.testing.assert_allclose(tstr[0][:, 0], w @ means)
    np.testing.assert_allclose(tstr[1][:, 0] ** 2, variances[0])
