"""Expected hypervolume improvement: the boxes, samples, and BoTorch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers import locked
from hypothesis import given
from hypothesis import strategies as st
from processes import needs_botorch
from scipy.stats import norm

from metatpe.gp.ehvi import Boxes, log_h
from metatpe.space import Floats


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


def test_points_that_differ_in_the_last_digits_leave_no_candidate_without_a_value() -> None:
    # Of two corners so close, the lower one may round to the larger improvement.
    nearly = 0.5 + np.arange(40) * 2.0**-52
    boxes = Boxes.of(np.stack([1.0 - np.arange(40) / 40, nearly], axis=1), np.array([2.0, 2.0]))
    mean = np.stack([np.full(500, 0.5), np.linspace(0.0, 5.0, 500)], axis=1)
    assert np.isfinite(boxes.log_improvement(mean, np.full((500, 2), 0.3))).all()


def test_log_h_is_the_logarithm_where_that_can_be_computed() -> None:
    z = np.linspace(-6.0, 6.0, 50)
    np.testing.assert_allclose(log_h(z), np.log(norm.pdf(z) + z * norm.cdf(z)), rtol=1e-6)
    far = np.array([-1e5, -1e4 - 1, -1e4 + 1, -1e3, -30.0, -1.0 - 1e-9, -1.0])
    assert (np.diff(log_h(far)) > 0.0).all()


def test_log_h_is_right_far_away_too() -> None:
    z = -np.array([1e3, 9e3, 1.1e4, 1e6, 1e8, 1e12])
    # phi(z) / z^2 to first order.
    expected = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - 2.0 * np.log(-z)
    np.testing.assert_allclose(log_h(z), expected, rtol=1e-11)


# A limit of an objective -------------------------------------------------------------------------


def test_what_lies_beyond_a_best_value_that_many_have_counts_less() -> None:
    # Worse than the front in the second objective: all that can be won is beyond the first's best.
    mean, sd = np.array([[-1.0, 0.9]]), np.array([[0.01, 0.01]])
    once = np.array([[-1.0, 0.0], [0.0, -1.0], [0.5, 0.0]])
    thrice = np.array([[-1.0, 0.0], [0.0, -1.0], [-1.0, 0.5], [-1.0, 0.25]])
    reference = np.ones(2)
    free, limited = (
        Boxes.of(points, reference).log_improvement(mean, sd) for points in (once, thrice)
    )
    np.testing.assert_allclose(np.exp(limited - free), 1 / 3)


def test_the_part_beyond_a_limit_is_discounted_and_the_rest_is_not() -> None:
    rng = np.random.default_rng(0)
    points = np.array([[-1.0, 0.0], [-1.0, 0.5], [0.0, -1.0]])  # q = 1 in the first objective
    mean, sd = np.array([[-0.9, -0.8]]), np.array([[0.3, 0.4]])
    samples = mean + sd * rng.normal(size=(400_000, 2))
    gain = np.zeros(len(samples))
    for lower, upper in (((-np.inf, -np.inf), (-1.0, 1.0)), ((-1.0, -np.inf), (0.0, 0.0))):
        weight = 0.5 if upper[0] == -1.0 else 1.0
        sides = [
            np.clip(upper[j] - np.maximum(samples[:, j], lower[j]), 0.0, None) for j in (0, 1)
        ]
        gain += weight * sides[0] * sides[1]
    right = np.clip(1.0 - np.maximum(samples[:, 0], 0.0), 0.0, None)
    gain += right * np.clip(-1.0 - samples[:, 1], 0.0, None)
    found = Boxes.of(points, np.ones(2)).log_improvement(mean, sd)
    np.testing.assert_allclose(np.exp(found), gain.mean(), rtol=0.01)


@pytest.mark.parametrize("n_terms", [1, 7, 100])
def test_how_many_candidates_are_looked_at_together_changes_nothing(
    n_terms: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes = Boxes.of(rng.random((8, 2)), np.ones(2))
    mean, sd = rng.random((10, 2)), rng.uniform(0.1, 0.3, (10, 2))
    together = boxes.log_improvement(mean, sd)
    monkeypatch.setattr("metatpe.gp.ehvi._MAX_TERMS", n_terms)
    np.testing.assert_allclose(boxes.log_improvement(mean, sd), together)
