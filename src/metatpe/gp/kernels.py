r"""The two kernels of a Gaussian process: one for smooth functions, one for rugged ones.

With q = sum_j delta_j / l_j^2 the squared distance of two points (`process` says what delta is):

    smooth    k = (1 + r + r^2 / 3) exp(-r),  r^2 = 5 q      Matern 5/2: two derivatives
    rough     k = exp(-r),                    r^2 = q        Matern 1/2: none, as a random walk
    dk / d log l_j = slope delta_j / l_j^2

A response that jumps from one configuration to the next, as losses of trainings on the edge of
divergence do, looks like noise to the smooth kernel: its model flattens the peaks that the search
is after. The rough kernel follows them. Which one fits is decided by the density of the data under
each (`past.models` for past tasks, `informed` for the study).

Shapes: squared distances of any shape, k and slope of the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from metatpe.space import Floats


class Kernel(NamedTuple):
    """A kernel as functions of squared distances."""

    name: str
    value: Callable[[Floats], Floats]  # -> k
    with_slope: Callable[[Floats], tuple[Floats, Floats]]  # -> k, slope


def _smooth(squared: Floats) -> Floats:
    """Return k in few passes: most of a suggestion is spent here."""
    r = np.sqrt(5.0 * squared)
    k = r / 3.0
    k += 1.0
    k *= r
    k += 1.0
    np.negative(r, out=r)
    k *= np.exp(r, out=r)
    return k


def _smooth_with_slope(squared: Floats) -> tuple[Floats, Floats]:
    r = np.sqrt(5.0 * squared)
    decay = np.exp(-r)
    return (1.0 + r + r * r / 3.0) * decay, (5.0 / 3.0) * (1.0 + r) * decay


def _rough(squared: Floats) -> Floats:
    r = np.sqrt(squared)
    np.negative(r, out=r)
    return np.exp(r, out=r)


def _rough_with_slope(squared: Floats) -> tuple[Floats, Floats]:
    r = np.sqrt(squared)
    k = np.exp(-r)
    return k, k / np.maximum(r, 1e-9)  # where r is 0, delta is 0 as well


SMOOTH = Kernel("smooth", _smooth, _smooth_with_slope)
ROUGH = Kernel("rough", _rough, _rough_with_slope)
