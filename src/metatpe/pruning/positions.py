r"""Where a trial stands among the trials before it, and how past trials ended that stood there.

A trial of a study that has reached a share of its length has the position

    rank       logit((n_better + 1/2) / (n + 1)), n_better of the n trials before it that have a
               smaller loss at this share; a tie counts one half, and a trial that was stopped
               keeps its place among those that went on
    best       the same for the smallest losses so far
    progress   phi(u at half the share) - phi(u) of the smallest losses so far,
               u = (loss - target) / (first - target)
    size       log(n + 1)
    level      phi(u) of the smallest loss so far

where `target` is the k-th smallest final loss before it, k = ceil(n / 20), and `first` the median
loss of the first reports. phi is asinh(u / 0.05), clipped: fine near the target, coarse where
losses reach 1e18. The outcome of a trial is phi(u) of its final loss; where it is negative, the
trial is among the best. A new trial is with probability b = k / (n + 1). With several objectives,
"smaller" is "dominates", the best are those that no earlier trial dominates, the smallest loss so
far is the present one, and progress and level are means over the objectives.

Each past study gives positions with known outcomes: its trials are replayed in three orders, and
once more as many short studies of 20 trials. One long replay has only 20 positions with fewer than
20 trials before, the short ones have as many as there are trials. A trial counts once in all of
them, since it has one end: half in the long orders, half in the short studies.

Shapes: features (n, G, 5), outcome and base (n,).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metatpe.pruning.curves import HALF, SHARES, Curves, Row
from metatpe.space import Floats, Ints, Mask

BEST_SHARE = 0.05
N_FEATURES = 5
SIZE, LEVEL = 3, 4  # their places among the features
_DELTA = 0.05
_UNIT = float(np.arcsinh(1.0 / _DELTA))
_LOW, _HIGH = -1.0, 2.0  # u is clipped to this range
_WORST_RANK = 2.0  # the worst eighth is one: so few trials are the very last that none compare
_N_ORDERS = 3
_N_SHORT = 20  # trials of a short study
_MAX_COMPARED = 100  # trials that went on, with which stopped ones are compared
_MAX_TRIALS = 200  # of one past study; in a longer one the positions are hardly different
_LARGEST = float(np.finfo(np.float64).max)
_MIN_WIDTH = 1e-9  # of a scale, relative: a study may start at its target


def phi(u: Floats) -> Floats:
    """Return scaled losses, fine near zero, clipped far away."""
    return np.asarray(np.arcsinh(np.clip(u, _LOW, _HIGH) / _DELTA) / _UNIT)


def n_best(n: int) -> int:
    """Return how many of n trials count as the best."""
    return max(1, int(np.ceil(BEST_SHARE * n)))


def dominates(losses: Floats, row: Floats) -> Floats:
    """Return 1 where losses (..., m) are better than a row (..., m), and 1/2 where equal."""
    is_better = (losses <= row).all(axis=-1) & (losses < row).any(axis=-1)
    return np.asarray(is_better + 0.5 * (losses == row).all(axis=-1))


@dataclass(frozen=True, eq=False)
class Frame:
    """What the trials before another one say about its losses."""

    before: Curves
    target: Floats  # (m,)
    first: Floats  # (m,)
    base: float  # share of the best among all trials

    def phi(self, losses: Floats) -> Floats:
        """Return scaled losses."""
        # In halves: the difference of two losses may be larger than any number.
        target, first = 0.5 * self.target, 0.5 * self.first
        width = np.maximum(first - target, _MIN_WIDTH * (0.5 + np.abs(first)))
        with np.errstate(over="ignore"):  # inf is clipped as everything far away
            return phi((0.5 * losses - target) / width)

    def loss(self, x: float) -> float:
        """Return the first objective's loss with this phi."""
        target, first = 0.5 * self.target[0], 0.5 * self.first[0]
        with np.errstate(over="ignore"):
            half = target + np.sinh(x * _UNIT) * _DELTA * (first - target)
        return float(2.0 * np.clip(half, -0.5 * _LARGEST, 0.5 * _LARGEST))

    def position(self, row: Row, columns: slice = slice(None)) -> Floats:
        """Return where a trial stands at some shares, (columns, 5), NaN without a value there."""
        before = self.before
        rank = _rank(before.values, row.values, before.until, columns)
        best = _rank(before.best, row.best, before.until, columns)
        scaled = self.phi(row.best).mean(axis=-1)
        earlier = np.concatenate([scaled[:1].repeat(HALF), scaled[:-HALF]])
        progress = np.where(np.isnan(earlier), 0.0, earlier - scaled)[columns]
        level = scaled[columns]
        size = np.full(len(level), np.log(len(before) + 1.0))
        features = np.stack([rank, best, progress, size, level], axis=1)
        return np.where(np.isnan(level)[:, None], np.nan, features)

    def outcome(self, row: Row) -> float:
        """Return how a trial ended: below zero where it is among the best."""
        if len(row.final) == 1:
            return float(self.phi(row.final)[0])
        ended = self.before.final[~np.isnan(self.before.final).any(axis=1)]
        is_front = np.isfinite(row.final).all() and not dominates(ended, row.final).any()
        return -1.0 if is_front else 1.0


def _rank(
    losses: Floats, row: Floats, until: Ints, columns: slice
) -> Floats:  # (n, G, m), (G, m), (n,) -> (columns,)
    """Return the logit of the share of trials that are better, NaN where there are none."""
    some = np.arange(len(SHARES))[columns]
    n = _carried(_is_known(losses).astype(np.float64), until, some).sum(axis=0)
    n_better = _better(losses, dominates(losses, row), until, some).sum(axis=0)
    share = (n_better + 0.5) / (n + 1.0)
    rank = np.minimum(np.log(share / (1.0 - share)), _WORST_RANK)
    return np.where(n > 0.0, rank, np.nan)


def _better(losses: Floats, is_better: Floats, until: Ints, columns: Ints) -> Floats:
    """Return 1 where trials are better than another one, 1/2 where equal, (n, columns).

    Args:
        losses: Those of the trials, (n, G, m).
        is_better: The same comparison, (n, G), in all columns, right where a trial still ran.
        until: The last column in which each trial ran, (n,).
        columns: Where they are compared.

    A trial that was stopped keeps its place among those that went on: it is better if fewer of
    these were better than it when it was stopped than are better than the other one now. If the
    numbers are equal, the comparison at its last column counts.

    Without the stopped trials, the survivors would look ordinary. With all of them counted as
    worse, a trial that was behind them would look better than it is.
    """
    found = _carried(is_better, until, columns)
    is_known = _is_known(losses)
    was_known = is_known[np.arange(len(until)), until]
    for k, g in enumerate(columns.tolist()):
        stopped = np.flatnonzero((until < g) & was_known)
        went_on = np.flatnonzero((until >= g) & is_known[:, g])
        if not len(stopped) or not len(went_on):
            continue
        evenly = np.linspace(0, len(went_on) - 1, min(len(went_on), _MAX_COMPARED))
        went_on = went_on[evenly.round().astype(np.int64)]
        then = until[stopped]
        n_before = dominates(losses[went_on[:, None], then], losses[stopped, then]).sum(axis=0)
        n_now = is_better[went_on, g].sum()
        found[stopped[n_before < n_now], k] = 1.0
        found[stopped[n_before > n_now], k] = 0.0
    return found


def _is_known(losses: Floats) -> Mask:  # (n, G, m) -> (n, G)
    return np.asarray(~np.isnan(losses).any(axis=-1))


def _carried(seen: Floats, until: Ints, columns: Ints) -> Floats:  # (n, G), (n,) -> (n, columns)
    """Return what is seen of trials, and of those that were stopped what was seen at last."""
    return np.take_along_axis(seen, np.minimum(columns[None], until[:, None]), axis=1)


def frame_of(before: Curves, first: Floats) -> Frame | None:
    """Return the frame of a trial with these first losses; None until a trial has ended well."""
    ended = before.final[np.isfinite(before.final).all(axis=1)]
    # In halves: the sum of two losses may be larger than any number.
    middle = 2.0 * np.median(0.5 * np.concatenate([before.first, first[None]]), axis=0)
    if not len(ended) or not np.isfinite(middle).all():
        return None
    n, m = len(before), ended.shape[1]
    if m == 1:
        k = n_best(n)
        target = np.sort(ended[:, 0])[min(k, len(ended)) - 1, None]
    else:
        k = sum(not (dominates(ended, row) == 1.0).any() for row in ended)
        target = ended.min(axis=0)
    return Frame(before, target, middle, k / (n + 1.0))


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions with known outcomes."""

    features: Floats  # (n, G, 5)
    outcome: Floats  # (n,)
    base: Floats  # (n,), the probability that a new trial would have been among the best
    weight: float = 1.0  # of each, in trials


def positions(curves: Curves, is_judged: Mask, weight: float = 1.0) -> Positions:
    """Return the positions of a study's trials, each among those before it."""
    features, outcome, base = [], [], []
    for i in np.flatnonzero(is_judged).tolist():
        frame = frame_of(curves.take(slice(i)), curves.first[i]) if i else None
        if frame is not None:
            row = curves.row(i)
            features.append(frame.position(row))
            outcome.append(frame.outcome(row))
            base.append(frame.base)
    known = np.array(features).reshape(-1, len(SHARES), N_FEATURES)
    return Positions(known, np.array(outcome), np.array(base), weight)


def replayed(curves: Curves, is_judged: Mask) -> list[Positions]:
    """Return the positions of a study's trials in several orders, the same ones every time."""
    rng = np.random.default_rng(len(curves))
    *orders, last = (rng.permutation(len(curves))[:_MAX_TRIALS] for _ in range(_N_ORDERS + 1))
    n_short = len(last) // _N_SHORT
    short = last[: n_short * _N_SHORT].reshape(n_short, _N_SHORT)
    half = 0.5 if n_short else 1.0
    return [
        *(positions(curves.take(order), is_judged[order], half / _N_ORDERS) for order in orders),
        *(positions(curves.take(order), is_judged[order], half) for order in short),
    ]
