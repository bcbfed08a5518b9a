"""The undominated part of the objective space as boxes, against volumes and random points."""

import itertools

import moocore
import numpy as np
import pytest

from metatpe.space import Floats
from metatpe.tpe.boxes import Bounds
from metatpe.tpe.pareto import ranks

objectives = pytest.mark.parametrize("m", [1, 2, 3, 4, 5], ids="objectives={}".format)


def a_front(n: int, m: int, rng: np.random.Generator) -> Floats:
    """Return points of which none dominates another, in the order of their choice."""
    points = rng.random((n, m)).round(1)  # many equal coordinates
    return rng.permutation(np.unique(moocore.filter_dominated(points), axis=0))


def bounds_of(points: Floats, reference: Floats) -> Bounds:
    bounds = Bounds.of(reference)
    for point in points:
        bounds, _ = bounds.add(point)
    return bounds


@objectives
def test_every_point_is_either_dominated_or_in_exactly_one_box(
    m: int, rng: np.random.Generator
) -> None:
    front, reference = a_front(15, m, rng), np.full(m, 0.95)
    bounds = bounds_of(front, reference)
    some = rng.random((500, m)) * reference
    is_inside = (bounds.lower < some[:, None]) & (some[:, None] <= bounds.upper)
    is_dominated = (front <= some[:, None]).all(axis=2).any(axis=1)
    np.testing.assert_array_equal(is_inside.all(axis=2).sum(axis=1), np.where(is_dominated, 0, 1))


@objectives
def test_a_new_point_dominates_a_part_of_the_boxes_above_it_and_of_no_other(
    m: int, rng: np.random.Generator
) -> None:
    front, reference = a_front(15, m, rng), np.ones(m)
    volume, bounds = moocore.Hypervolume(ref=reference), Bounds.of(reference)
    for k, point in enumerate(front):
        bounds, above = bounds.add(point)
        added = volume(front[: k + 1]) - (volume(front[:k]) if k else 0.0)
        sides = above.upper - np.maximum(above.lower, point)
        assert np.prod(sides, axis=1).sum() == pytest.approx(added)


def test_without_a_point_the_reference_is_the_only_bound() -> None:
    bounds = Bounds.of(np.array([1.0, 2.0, 3.0]))
    assert bounds.upper.tolist() == [[1.0, 2.0, 3.0]]
    assert bounds.lower.tolist() == [[-np.inf, -np.inf, -np.inf]]


def test_one_point_leaves_one_bound_per_objective() -> None:
    bounds, above = Bounds.of(np.ones(3)).add(np.array([0.2, 0.3, 0.4]))
    assert bounds.upper.tolist() == [[0.2, 1.0, 1.0], [1.0, 0.3, 1.0], [1.0, 1.0, 0.4]]
    assert above.upper.tolist() == [[1.0, 1.0, 1.0]]


def test_points_that_tie_in_some_objectives_leave_no_volume_out() -> None:
    rng = np.random.default_rng(0)
    everywhere = np.array(list(itertools.product(np.arange(4) - 0.5, repeat=3)))
    for _ in range(60):
        points, bounds = rng.integers(0, 4, size=(6, 3)).astype(float), Bounds.of(np.full(3, 4.0))
        for point in np.unique(points[ranks(points) == 0], axis=0):
            bounds, _ = bounds.add(point)
        is_free = ~(points[None] < everywhere[:, None]).all(axis=2).any(axis=1)
        is_above = (bounds.lower[None] < everywhere[:, None]).all(axis=2)
        is_below = (everywhere[:, None] <= bounds.upper[None]).all(axis=2)
        np.testing.assert_array_equal((is_above & is_below).sum(axis=1), is_free)
