"""Axes of values of any size."""

import numpy as np
import pytest

from metatpe.viz.ticks import padded

HUGE = 1.7e308


@pytest.mark.parametrize(
    ("values", "is_log"),
    [
        ([1.0, 3.0], False),
        ([-HUGE, HUGE], False),
        ([HUGE, HUGE], False),
        ([0.0, 0.0], False),
        ([1e-300, HUGE], True),
        ([1.0, 1e3], True),
    ],
)
def test_an_axis_shows_all_values_and_ends_where_numbers_end(
    values: list[float], is_log: bool
) -> None:
    with np.errstate(all="raise"):
        low, high = padded(np.array(values), is_log)
    assert low <= min(values) <= max(values) <= high
    assert low < high
    assert np.isfinite([low, high]).all()


def test_an_axis_has_a_little_room_at_both_ends() -> None:
    assert padded(np.array([0.0, 1.0]), False) == pytest.approx((-0.06, 1.06))
    assert padded(np.array([1.0, 100.0]), True) == pytest.approx((100**-0.06, 100**1.06))
    assert padded(np.array([5.0, 5.0]), False) == pytest.approx((4.7, 5.3))
