"""Plateaus: what equal losses say about the configurations around them."""

import numpy as np
from helpers import MIXED, random_points

from metatpe.gp.plateaus import Plateaus
from metatpe.gp.process import Encoder
from metatpe.space import Floats

ONE = np.ones(1)


def column(*values: float) -> Floats:  # (n, 1)
    return np.array(values)[:, None]


def test_without_equal_losses_nothing_is_flat(rng: np.random.Generator) -> None:
    X = Encoder(MIXED.columns)(random_points(MIXED.columns, 20, rng))
    plateaus = Plateaus.of(X, rng.normal(size=(20, 2)), np.ones(X.shape[1]))
    assert not plateaus.hold(X).any()


def test_two_observations_reach_half_as_far_as_they_are_apart() -> None:
    plateaus = Plateaus.of(column(0.4, 0.6), column(1.0, 1.0), ONE)
    x = column(0.29, 0.31, 0.49, 0.69, 0.71)
    assert plateaus.hold(x).tolist() == [False, True, True, True, False]


def test_an_observation_with_other_losses_bounds_it() -> None:
    plateaus = Plateaus.of(column(0.4, 0.6, 0.65), column(1.0, 1.0, 2.0), ONE)
    assert plateaus.hold(column(0.61, 0.64)).tolist() == [True, False]


def test_one_more_equal_loss_makes_it_larger() -> None:
    two = Plateaus.of(column(0.4, 0.5), column(1.0, 1.0), ONE)
    three = Plateaus.of(column(0.4, 0.5, 0.8), column(1.0, 1.0, 1.0), ONE)
    assert not two.hold(column(0.7))[0]
    assert three.hold(column(0.7))[0]


def test_a_search_along_it_takes_steps_that_grow() -> None:
    x = [0.5, 0.5001]
    while x[-1] < 1.0:
        plateaus = Plateaus.of(column(*x), column(*[1.0] * len(x)), ONE)
        grid = np.linspace(x[-1], x[-1] + 1.0, 200_001)[:, None]
        x.append(float(grid[~plateaus.hold(grid)][0, 0]))  # next to it, as a search would
    assert len(x) < 14  # steps in proportion to its size take 23


def test_losses_are_equal_where_all_objectives_are() -> None:
    losses = np.array([[1.0, 2.0], [1.0, 3.0]])
    assert not Plateaus.of(column(0.4, 0.6), losses, ONE).hold(column(0.5))[0]


def test_a_parameter_without_influence_does_not_count() -> None:
    X = np.array([[0.4, 0.0], [0.6, 0.0]])
    plateaus = Plateaus.of(X, column(1.0, 1.0), np.array([1.0, 0.0]))
    assert plateaus.hold(np.array([[0.55, 1.0]]))[0]
    assert not Plateaus.of(X, column(1.0, 1.0), np.ones(2)).hold(np.array([[0.55, 1.0]]))[0]


def test_two_plateaus_have_radii_of_their_own() -> None:
    plateaus = Plateaus.of(column(0.0, 0.02, 0.6, 0.9), column(1.0, 1.0, 2.0, 2.0), ONE)
    assert plateaus.hold(column(0.04, 0.5)).tolist() == [False, True]


def test_no_observation_is_no_plateau() -> None:
    plateaus = Plateaus.of(np.empty((0, 1)), np.empty((0, 1)), ONE)
    assert plateaus.hold(column(0.5)).tolist() == [False]


def test_what_lies_at_its_border_is_new() -> None:
    plateaus = Plateaus.of(column(0.0, 1.0, 2.0, 3.0), column(*[1.0] * 4), ONE)
    assert plateaus.hold(column(5.75, 6.0)).tolist() == [True, False]
