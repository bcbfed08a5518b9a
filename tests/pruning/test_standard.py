"""The made-up studies that stand in where there are few past curves."""

import numpy as np
import pytest

from metatpe.pruning.standard import NOISE, made_up_losses, standard_positions


def test_there_are_made_up_studies_for_what_is_missing_of_five_hundred_trials() -> None:
    orders = len(standard_positions(0)) // 5
    found = [len(standard_positions(n)) // orders for n in (0, 99, 100, 450, 500, 10_000)]
    assert found == [5, 5, 4, 1, 0, 0]


@pytest.mark.parametrize("index", range(5))
def test_their_curves_fall_from_one_to_asymptotes_below_it_with_noise(index: int) -> None:
    losses = made_up_losses(index)
    noise = NOISE[index]
    assert losses[:, 0].mean() == pytest.approx(1.0, abs=3 * noise / 10 + 1e-12)
    assert losses[:, 0].std() == pytest.approx(noise, rel=0.3)
    assert (losses[:, -1] < losses[:, 0] + 5 * noise).all()
    assert losses[:, -1].min() > -5 * noise


def test_the_first_of_them_has_no_noise() -> None:
    assert NOISE[0] == 0.0
    assert (np.diff(made_up_losses(0), axis=1) <= 0.0).all()
