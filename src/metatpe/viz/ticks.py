"""Where axes have their ticks, in both backends."""

from __future__ import annotations

import math

import numpy as np

from metatpe.space import Floats

MAX_TICKS = 12
_LARGEST = float(np.finfo(np.float64).max)
_LOGS = (-706.0, 709.78)  # where floating-point numbers end
_RATIO_OF_LOG = 10.0  # values that span more are drawn on a log scale


def spans_decades(values: Floats) -> bool:
    """Return whether values are drawn on a log scale."""
    low, high = float(values.min()), float(values.max())
    return low > 0 and high / low > _RATIO_OF_LOG


def padded(values: Floats, is_log: bool) -> tuple[float, float]:
    """Return the ends of an axis that shows the values, with a little room."""
    ends = np.array([values.min(), values.max()])
    # Halved: the distance of two values may be larger than any number.
    low, high = np.log(ends) if is_log else ends / 2
    room = 0.06 * (high - low) or 0.06 * max(abs(float(low)), 0.5)
    limits = _LOGS if is_log else (-_LARGEST / 2, _LARGEST / 2)
    around = np.clip([low - room, high + room], *limits)
    low, high = np.exp(around) if is_log else 2 * around
    return float(low), float(high)


def log_labels(low: float, high: float) -> tuple[list[float], list[str]]:
    """Return the ticks of a log scale and their labels, each of them a whole number.

    The backends' own labels are the last digits of a number, which cannot be read alone.
    """
    ticks = log_ticks(low, high)
    return ticks, [f"{tick:g}" for tick in ticks]


def trial_step(n: int) -> int | None:
    """Return the distance of ticks on an axis of n trials; None: what the backend chooses.

    Of a few trials it would choose half ones.
    """
    return 1 if n <= MAX_TICKS else None


def linear_ticks(low: float, high: float) -> list[float]:
    """Return some multiples of 1, 2 or 5 times a power of ten between two numbers."""
    if high <= low:
        return [low]
    raw = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten between two numbers; of a short range their multiples, too."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = math.ceil(len(powers) / MAX_TICKS)
    for multiples in ((1,), (1, 3), (1, 2, 5)):
        ticks = [m * 10.0**k for k in powers[::every] for m in multiples]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) > 2:
            return inside
    return [low, high] if high > low else [low]
