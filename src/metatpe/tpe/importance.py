r"""Which parameters matter: PED-ANOVA, from the marginals of the good density (Eq. 11).

    V_{d,m} = gamma^2 * E_{x ~ U}[(p_d(x | good_m) / u - 1)^2]        column d of task m
    V_d     = mean of V_{d,m} over the tasks that have the column
    kept    = the top k = max(1, floor(log_eta n_good)) columns by V_d      n_good of this task

p_d is the marginal of the good density; against the uniform measure of the cube u = 1. Columns
that no past task has are left out.

Departures from the paper:

- The mean is over the tasks that have a column, not over all tasks. Where all tasks share a space
  the two are the same.
- At least one column is kept (rule `column`). The paper keeps none below eta good observations,
  and then every similarity is 1.

Shapes: importances (d,), NaN where a task has no entry in the column.
"""

from __future__ import annotations

import math

import numpy as np

from metatpe.space import Floats, Ints
from metatpe.tpe.kde import Parzen

ETA = 2.5  # the base of the logarithm that says how many columns are kept
_MAX_CENTERS = 256  # enough for a marginal


def importances(good: Parzen, gamma: float) -> Floats:  # (d,)
    """Return V_d of one task; NaN where none of its good observations has the column."""
    good = good.thinned(_MAX_CENTERS)
    V = np.full(len(good.columns), np.nan)
    has = ~np.isnan(good.centers).all(axis=0)
    is_discrete = good.columns.n_cells > 0
    for j in np.flatnonzero(has & is_discrete):
        density, widths = good.marginal(int(j))
        V[j] = np.sum(widths * (density - 1.0) ** 2)
    continuous = np.flatnonzero(has & ~is_discrete)
    if len(continuous):
        density, widths = good.gaussian_marginals([int(j) for j in continuous])
        V[continuous] = widths @ (density - 1.0) ** 2
    return gamma**2 * V


def mean_importances(own: Floats, total: Floats, counts: Ints) -> Floats:  # (d,) each
    """Return the mean over the tasks that have the column.

    Args:
        own: The importances in the current task, NaN where it does not have the column.
        total: Their sum over the past tasks that have the column.
        counts: And how many these are, at least one.
    """
    has = ~np.isnan(own)
    mean: Floats = (np.where(has, own, 0.0) + total) / (has + counts)
    return mean


def kept_columns(
    V: Floats, n_good: int, eta: float, *, keeps_one: bool = True
) -> tuple[int, ...]:  # (d,)
    """Return the most important columns, in the order of the space; ties go to the first.

    `keeps_one` is whether at least one column is kept.
    """
    # 1e-9: log(2.5**3)/log(2.5) must not come out as 2.999...
    k = math.floor(math.log(n_good) / math.log(eta) + 1e-9) if n_good > 0 else 0
    k = max(k, int(keeps_one and n_good > 0))
    top = np.argsort(-V, kind="stable")[: min(k, len(V))]
    return tuple(sorted(int(j) for j in top))
