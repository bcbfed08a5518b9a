"""The improvement that the Gaussian-process samplers look for."""

import numpy as np
import pytest

from metatpe.samplers.surrogate import expected_improvement

REACHED = np.array([[0.0, 1.0], [1.0, 0.0]])
BEYOND, CERTAIN = np.array([[-1.0, 3.0]]), np.full((1, 2), 1e-3)


def test_a_trade_off_that_candidates_are_expected_to_reach_is_not_out_of_bounds() -> None:
    # Worse in the second objective than all that was reached, and best in the first.
    without = expected_improvement(REACHED)(BEYOND, CERTAIN)
    with_it = expected_improvement(REACHED, BEYOND)(BEYOND, CERTAIN)
    assert without < -100.0
    # The reference point is a tenth of the spread beyond (1, 3): 0.3 high, up to (0, 1) 1 wide.
    assert np.exp(with_it) == pytest.approx(0.3, rel=0.02)


def test_with_one_objective_what_is_expected_changes_nothing(rng: np.random.Generator) -> None:
    reached, expected = rng.normal(size=(5, 1)), 9.0 + rng.random((3, 1))
    X, sd = rng.normal(size=(20, 1)), np.full((20, 1), 0.5)
    np.testing.assert_array_equal(
        expected_improvement(reached, expected)(X, sd), expected_improvement(reached)(X, sd)
    )


def test_a_constant_that_is_added_to_an_objective_changes_nothing(
    rng: np.random.Generator,
) -> None:
    X, sd, off = rng.normal(size=(20, 2)), np.full((20, 2), 0.5), np.array([-7.0, 30.0])
    np.testing.assert_allclose(
        expected_improvement(REACHED + off, BEYOND + off)(X + off, sd),
        expected_improvement(REACHED, BEYOND)(X, sd),
        rtol=1e-9,
    )
