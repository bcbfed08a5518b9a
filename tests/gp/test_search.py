"""The search for the best configuration of a mixed space."""

import numpy as np
import pytest
from helpers import MIXED, NAN, random_points
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from metatpe import Space
from metatpe.gp.search import Allowed, Score, _anywhere, _near, candidates, climb
from metatpe.space import Columns, Floats, Mask

X_NONE = np.empty((0, len(MIXED)))


def anywhere(X: Floats) -> Mask:
    return np.ones(len(X), dtype=np.bool_)


def climbed(
    X: Floats, columns: Columns, score: Score, is_allowed: Allowed, rng: np.random.Generator
) -> Floats:
    return climb(X, score(X), columns, score, is_allowed, rng)


def test_the_search_climbs_to_the_best_configuration_and_stays_on_the_grid(
    rng: np.random.Generator,
) -> None:
    columns = MIXED.columns
    top = np.array([0.123, 0.456, 0.3, columns.points[3][20], 5 / 6])

    def score(X: Floats) -> Floats:
        np.testing.assert_array_equal(columns.snap(X), X)
        return -((X - top) ** 2).sum(axis=1)

    found = np.stack(
        [
            climbed(candidates(columns, X_NONE, 500, rng), columns, score, anywhere, rng)
            for _ in range(11)
        ]
    )
    np.testing.assert_allclose(found[:, 2:], np.tile(top[2:], (11, 1)))
    off = np.abs(found[:, :2] - top[:2]).max(axis=1)
    assert np.median(off) < 0.02
    assert off.max() < 0.1


def test_the_search_never_leaves_what_is_allowed(rng: np.random.Generator) -> None:
    columns = MIXED.columns

    def is_left(X: Floats) -> Mask:
        return np.asarray(X[:, 0] < 0.4)

    X = candidates(columns, X_NONE, 300, rng)
    found = climbed(X[is_left(X)], columns, lambda X: X[:, 0], is_left, rng)
    assert 0.35 < found[0] < 0.4


def test_a_finite_space_is_climbed_until_nothing_near_is_better(rng: np.random.Generator) -> None:
    columns = Space({name: CategoricalDistribution("ab") for name in "xy"}).columns
    bottom, top = columns.snap(np.array([[0.0, 0.0], [1.0, 1.0]]))
    scored: list[Floats] = []

    def score(X: Floats) -> Floats:
        scored.append(X)
        return X.sum(axis=1)

    # Two steps lead up, one coordinate each; a third round finds nothing better.
    np.testing.assert_array_equal(climbed(bottom[None], columns, score, anywhere, rng), top)
    assert len(scored) == 1 + 3


def test_a_continuous_space_is_climbed_in_nine_rounds_of_ever_smaller_steps(
    rng: np.random.Generator,
) -> None:
    columns = Space({f"x{j}": FloatDistribution(0.0, 1.0) for j in range(50)}).columns
    scored: list[Floats] = []

    def score(X: Floats) -> Floats:  # nothing is better than where the search begins
        scored.append(X)
        return np.zeros(len(X))

    climbed(np.full((5, 50), 0.5), columns, score, anywhere, rng)
    widths = [(X[X != 0.5] - 0.5).std() for X in scored[1:]]
    np.testing.assert_allclose(widths, 0.2 * 0.4 ** np.arange(9), rtol=0.15)


def test_from_each_of_the_five_best_four_steps_are_tried_in_each_continuous_coordinate(
    rng: np.random.Generator,
) -> None:
    columns = Space({name: FloatDistribution(0.0, 1.0) for name in "xy"}).columns
    scored: list[Floats] = []

    def score(X: Floats) -> Floats:
        scored.append(X)
        return np.zeros(len(X))

    X, values = np.stack([np.full(9, 0.5), np.arange(9) / 20 + 0.3], axis=1), np.arange(9.0)
    climb(X, values, columns, score, anywhere, rng)
    first = scored[0]
    assert len(first) == 5 * 2 * 4
    moved_in_x = first[first[:, 0] != 0.5]
    starts, counts = np.unique(moved_in_x[:, 1], return_counts=True)
    np.testing.assert_array_equal(starts, X[4:, 1])
    assert counts.tolist() == [4] * 5


def test_on_a_grid_one_and_two_cells_up_and_down_are_tried_and_one_anywhere(
    rng: np.random.Generator,
) -> None:
    columns, scored = Space({"n": IntDistribution(0, 99)}).columns, []

    def score(X: Floats) -> Floats:
        scored.append(columns.cells(X[:, 0], 0))
        return -np.arange(1.0, len(X) + 1)

    climb(columns.snap(np.array([[0.505]])), np.zeros(1), columns, score, anywhere, rng)
    for cells in scored:
        assert {48, 49, 51, 52} <= {*cells.tolist()}
        assert len(cells) in (4, 5)


def test_a_random_step_may_lead_from_each_end_of_a_grid_to_the_other(
    rng: np.random.Generator,
) -> None:
    steps = _anywhere(5, np.zeros(500), rng)
    assert {*steps.tolist()} == {*range(-4, 5)}


def test_of_very_many_choices_sixteen_others_are_tried(rng: np.random.Generator) -> None:
    columns, scored = Space({"c": CategoricalDistribution(range(100_000))}).columns, []

    def score(X: Floats) -> Floats:
        scored.append(len(X))
        return -np.ones(len(X))

    climb(columns.snap(np.array([[0.5]])), np.zeros(1), columns, score, anywhere, rng)
    assert max(scored) == 16


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


def test_of_very_many_choices_only_some_are_scored_and_a_good_one_is_kept(
    rng: np.random.Generator,
) -> None:
    distributions = {"c": CategoricalDistribution(range(10_000)), "x": FloatDistribution(0, 1)}
    columns, scored = Space(distributions).columns, []
    good = np.array([[columns.points[0][1234], 0.9]])

    def score(X: Floats) -> Floats:
        np.testing.assert_array_equal(columns.snap(X), X)
        scored.append(len(X))
        return (X[:, 0] == good[0, 0]) - (X[:, 1] - 0.3) ** 2

    found = climbed(candidates(columns, good, 100, rng), columns, score, anywhere, rng)
    assert found[0] == good[0, 0]
    assert abs(found[1] - 0.3) < 0.05
    assert sum(scored) < 2000


@pytest.mark.parametrize(("d", "share"), [(20, 2.0 / 20), (2, (0.5 + 1.0 + 1.0) / 3)])
def test_one_two_or_three_coordinates_are_moved_on_average(
    d: int, share: float, rng: np.random.Generator
) -> None:
    columns = Space({f"x{j}": FloatDistribution(0.0, 1.0) for j in range(d)}).columns
    moved = _near(columns, np.full((1, d), 0.5), 40_000, rng) != 0.5
    assert moved.mean() == pytest.approx(share, rel=0.03)
    # How many differs more from point to point than if all had the same chance.
    assert moved.sum(axis=1).var() > d * share * (1.0 - share) * 1.1


def test_half_of_the_moves_stay_near_and_half_go_anywhere(rng: np.random.Generator) -> None:
    columns = Space({"x": FloatDistribution(0.0, 1.0)}).columns
    moved = _near(columns, np.array([[0.5]]), 40_000, rng)[:, 0]
    # Of uniform ones a fifth lies so far away, of the others hardly any.
    assert (np.abs(moved - 0.5) > 0.4).mean() == pytest.approx(0.1, abs=0.006)
    assert moved.std() == pytest.approx(np.sqrt((1 / 12 + 0.01) / 2), rel=0.02)
