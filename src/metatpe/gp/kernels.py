r"""The kernel of the Gaussian processes: Matern 5/2.

With q = sum_j delta_j / l_j^2 the squared distance of two points (`process` says what delta is):

    k = (1 + r + r^2 / 3) exp(-r),   r^2 = 5 q
    dk / d log l_j = slope delta_j / l_j^2,   slope = 5/3 (1 + r) exp(-r)

Shapes: squared distances of any shape, k and slope of the same.
"""

from __future__ import annotations

import numpy as np

from metatpe.space import Floats


def matern(squared: Floats) -> Floats:
    """Return k in few passes: most of a suggestion is spent here."""
    r = np.sqrt(5.0 * squared)
    k = r * (1.0 / 3.0)  # half the time of a division
    k += 1.0
    k *= r
    k += 1.0
    np.negative(r, out=r)
    k *= np.exp(r, out=r)
    return k


def matern_with_slope(squared: Floats) -> tuple[Floats, Floats]:
    """Return k and its slope."""
    r = np.sqrt(5.0 * squared)
    decay = np.exp(-r)
    return (1.0 + r + r * r / 3.0) * decay, (5.0 / 3.0) * (1.0 + r) * decay
