r"""Losses of one task as scores that a Gaussian process can model.

With y the losses of one objective, n of them, u_i = (rank of y_i - 1/2) / n and q_i = Phi^-1(u_i),
the first of these whose values are close to normal, standardised where that is not the last:

    z = y                        as it is
    z = log y                    where all losses are positive, or all negative: -log(-y)
    z = q                        the Gaussian copula: skewed or heavy-tailed losses

Close to normal is corr(z, q)^2 >= 0.85, which says how straight the normal probability plot is
(the statistic of Shapiro and Francia). Equal losses have equal ranks, their mean one; a constant
objective is 0 everywhere.

What must never count as good gets the worst loss of the task before anything else: pruned and
infeasible observations, and +inf. -inf gets the best one.

Shapes: losses and scores (n, m), violation (n,); always minimised.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from metatpe.space import Floats, Mask
from metatpe.tpe.ranking import mid_ranks

_STRAIGHT = 0.85


def scores(losses: Floats, violation: Floats) -> Floats:  # (n, m), (n,) -> (n, m)
    """Return the losses of one task, each objective on a scale of its own."""
    return np.stack([first for first, *_ in all_scores(losses, violation)], axis=1)


def _plain(y: Floats, is_feasible: Mask) -> Floats:  # (n,)
    """Return finite losses, the worst one where an observation must not count as good."""
    known = y[is_feasible & np.isfinite(y)]
    if not len(known):
        return np.where(is_feasible & (y < 0.0), -1.0, 0.0)
    return np.where(is_feasible, np.clip(y, known.min(), known.max()), known.max())


def all_scores(losses: Floats, violation: Floats) -> list[list[Floats]]:  # (n, m), (n,)
    """Return each objective's scores on all scales that there are, first that of `scores`."""
    return [_scores(_plain(y, violation <= 0.0)) for y in losses.T]


def _scores(y: Floats) -> list[Floats]:  # (n,) each
    """Return the scores, and after them those that the losses would have on other scales."""
    if not len(y) or y.min() == y.max():
        return [np.zeros(len(y))]
    q: Floats = ndtri(mid_ranks(y) / len(y))
    found = [*_smooth(y)]
    is_straight = [np.mean(z * q) ** 2 >= _STRAIGHT * np.var(q) for z in found]
    found.append(q)
    return [found.pop([*is_straight, True].index(True)), *found]


def deviation_on(scores: Floats, losses: Floats, deviation: Floats) -> Floats:  # (n,) each
    """Return standard deviations of losses on the scale of their scores.

    Scores are interpolated one deviation above and below. Beyond the last loss there are none, so
    the farther side counts.
    """
    is_known = np.isfinite(losses)
    if not deviation.any() or not is_known.any():
        return np.zeros(len(losses))
    order = np.flatnonzero(is_known)[np.argsort(losses[is_known], kind="stable")]
    x, z = losses[order], scores[order]
    y = np.clip(losses, x[0], x[-1])
    # Halved: a huge loss and its deviation must not overflow.
    at = (y / 2 + k * (deviation / 2) for k in (0.0, 1.0, -1.0))
    here, above, below = (np.interp(a, x / 2, z) for a in at)
    return np.where(deviation > 0.0, np.maximum(np.abs(above - here), np.abs(here - below)), 0.0)


def _smooth(y: Floats) -> Iterator[Floats]:
    """Yield the losses as they are and as logarithms, standardised."""
    yield _standardised(y)
    if y.min() > 0.0:
        yield _standardised(np.log(y))
    elif y.max() < 0.0:
        yield _standardised(-np.log(-y))


def _standardised(y: Floats) -> Floats:
    # Halved: the spread of two huge losses of opposite sign must not overflow.
    shifted = y / 2 - y.max() / 2
    scaled = shifted / np.abs(shifted).max()
    standardised: Floats = (scaled - scaled.mean()) / scaled.std()
    return standardised
