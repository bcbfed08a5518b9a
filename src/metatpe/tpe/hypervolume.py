r"""How far runs have come: hypervolume after each observation, attainment surfaces, their spread.

With losses f (minimised) and a reference point r:

    volume_n = the volume of the union of the boxes [f(x_i), r], i = 1, ..., n
    q % attainment surface = the border of what q % of the runs dominate

Shapes: losses (n, m), one row per observation, finite; curves (s, n), one row per run; corners
of a surface (k, 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import moocore
import numpy as np

from metatpe.space import Floats, Mask


def running_hypervolume(losses: Floats, reference: Floats) -> Floats:  # (n, m), (m,) -> (n,)
    """Return the hypervolume after each observation; what is beyond the reference adds nothing."""
    volume = moocore.Hypervolume(ref=reference)
    losses = np.minimum(losses, reference)
    improving = is_improving(losses)
    volumes = np.zeros(len(losses))
    for i in np.flatnonzero(improving):
        volumes[i] = volume(losses[: i + 1][improving[: i + 1]])
    return np.maximum.accumulate(volumes)


def is_improving(losses: Floats) -> Mask:  # (n, m) -> (n,)
    """Return which points are not weakly dominated by an earlier one."""
    is_as_good = np.logical_and.reduce([f[:, None] <= f[None, :] for f in losses.T])  # (n, n)
    improving: Mask = ~np.triu(is_as_good, k=1).any(axis=0)
    return improving


def attainment_surface(runs: Sequence[Floats], percentage: float) -> Floats:  # (k, m)
    """Return the corners of what this percentage of the runs dominate, by the first loss."""
    sets = np.repeat(np.arange(len(runs)), [len(losses) for losses in runs])
    corners: Floats = moocore.eaf(np.concatenate(runs), sets, percentiles=[percentage])[:, :-1]
    return corners[np.lexsort(corners.T[::-1])]


def staircase(corners: Floats, worst: Floats) -> Floats:  # (k, 2), (2,) -> (2 k + 1, 2)
    """Return the border of what the corners, none dominating another, dominate up to `worst`."""
    losses = corners[np.argsort(corners[:, 0], kind="stable")]
    border = np.empty((2 * len(losses) + 1, 2))
    border[1::2] = losses
    border[0] = losses[0, 0], worst[1]
    border[-1] = worst[0], losses[-1, 1]
    border[2:-1:2] = np.maximum(losses[1:], losses[:-1])  # the inner edges between two corners
    return border


def standard_error(curves: Floats) -> Floats:  # (s, n) -> (n,)
    """Return the standard error over the runs; NaN for a single one, which has no spread.

    Args:
        curves: One row per run.

    Example:
        >>> standard_error(np.array([[1.0, 2.0], [3.0, 2.0]]))
        array([1., 0.])
    """
    n_runs = len(curves)
    if n_runs < 2:
        return np.full(curves.shape[1:], np.nan)
    deviation: Floats = curves.std(axis=0, ddof=1)
    return deviation / math.sqrt(n_runs)
