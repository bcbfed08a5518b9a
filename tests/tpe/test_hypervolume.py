"""What a set of observations dominates: its borders, and which observations add to it."""

import numpy as np
from helpers import locked

from metatpe.tpe.hypervolume import is_improving, staircase


def test_a_staircase_goes_from_corner_to_corner_and_out_to_the_worst() -> None:
    corners, worst = locked(np.array([[2.0, 3.0], [1.0, 5.0], [4.0, 0.0]])), np.array([9.0, 8.0])
    border = [(1, 8), (1, 5), (2, 5), (2, 3), (4, 3), (4, 0), (9, 0)]
    np.testing.assert_array_equal(staircase(corners, worst), border)


def test_the_staircase_of_one_corner_has_one_step() -> None:
    border = staircase(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]))
    np.testing.assert_array_equal(border, [(1, 4), (1, 2), (3, 2)])


def test_an_observation_adds_something_unless_an_earlier_one_is_as_good_in_everything() -> None:
    losses = locked(np.array([[2.0, 2.0], [2.0, 2.0], [1.0, 3.0], [1.0, 4.0], [0.0, 4.0]]))
    assert is_improving(losses).tolist() == [True, False, True, False, True]
    assert is_improving(losses[::-1]).tolist() == [True, False, True, True, False]
