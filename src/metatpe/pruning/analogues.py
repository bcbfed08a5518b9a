r"""What became of past trials that stood where a trial stands now.

A trial of a study that has reached a share of its length has the position

    rank       logit((n_better + 1/2) / (n + 1)), n_better of the n trials before it that have a
               smaller loss at this share; a tie counts one half
    progress   phi(u at half the share) - phi(u),   u = (loss - target) / (first - target)
    size       log(n + 1)

where `target` is the k-th smallest final loss before it, k = ceil(n / 20), and `first` the median
loss of the first reports. phi is asinh(u / 0.05), clipped: fine near the target, coarse where
losses reach 1e18. The outcome of a trial is phi(u) of its final loss; where it is negative, the
trial is among the best. With several objectives, "smaller" is "dominates", the best are those that
no earlier trial dominates, and progress is the mean over the objectives.

Each past study gives positions with known outcomes: its trials are replayed in three orders, and
once more as many short studies of 20 trials. One long replay has only 20 positions with fewer than
20 trials before, the short ones have as many as there are trials. With kernel weights w_j of these
positions for a new one, counted in trials,

    p = (sum_j w_j [outcome_j < 0] + 1) / (sum_j w_j + 1 / b),   b = k / (n + 1)

is the probability of ending among the best, and p / b how it compares with a new trial. One
success is added, at the base rate b: a position with few analogues is not judged.

Shapes: features (n, G, 3), outcome (n,).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metatpe.pruning.curves import HALF, SHARES, Curves, Row
from metatpe.space import Floats, Ints, Mask

BEST_SHARE = 0.05
AHEAD = 2  # columns; how far a position is followed to see whether past studies predict it
_DELTA = 0.05
_UNIT = float(np.arcsinh(1.0 / _DELTA))
_LOW, _HIGH = -1.0, 2.0  # u is clipped to this range
_BANDWIDTHS: Floats = np.array([0.3, 0.15, 0.5])  # rank, progress, size, with 1,000 past trials
# Each counts twice, in long and in short studies. Fewer have wider kernels: the bandwidth falls as
# n^(-1/7) in three dimensions.
_N_PAST = 2000
_WORST_RANK = 2.0  # the worst eighth is one: so few trials are the very last that none compare
_N_ORDERS = 3
_N_SHORT = 20  # trials of a short study
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

    def position(self, row: Row) -> Floats:  # (G, 3), NaN where there is no value
        """Return where a trial stands at each share."""
        values, until = self.before.values, self.before.until
        is_known = np.asarray(~np.isnan(values).any(axis=-1), dtype=np.float64)
        n = _carried(is_known, until).sum(axis=0)
        n_better = _carried(dominates(values, row.values), until).sum(axis=0)
        share = (n_better + 0.5) / (n + 1.0)
        scaled = self.phi(row.values).mean(axis=-1)
        earlier = np.concatenate([scaled[:1].repeat(HALF), scaled[:-HALF]])
        progress = np.where(np.isnan(earlier), 0.0, earlier - scaled)
        size = np.full(len(SHARES), np.log(len(self.before) + 1.0))
        rank = np.minimum(np.log(share / (1.0 - share)), _WORST_RANK)
        features = np.stack([rank, progress, size], axis=1)
        return np.where((np.isnan(scaled) | (n == 0))[:, None], np.nan, features)

    def outcome(self, row: Row) -> float:
        """Return how a trial ended: below zero where it is among the best."""
        if len(row.final) == 1:
            return float(self.phi(row.final)[0])
        ended = self.before.final[~np.isnan(self.before.final).any(axis=1)]
        is_front = np.isfinite(row.final).all() and not dominates(ended, row.final).any()
        return -1.0 if is_front else 1.0


def _carried(compared: Floats, until: Ints) -> Floats:  # (n, G), (n,) -> (n, G)
    """Return comparisons with trials that were stopped as they were at their last column.

    Leaving these trials out would make the survivors look ordinary. Counting all of them as worse
    would hide a trial that was behind them, too, which matters where late starters win.
    """
    columns = np.minimum(np.arange(len(SHARES))[None], until[:, None])
    return np.take_along_axis(compared, columns, axis=1)


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

    features: Floats  # (n, G, 3)
    outcome: Floats  # (n,)
    weight: float = 1.0  # of each, in trials


def _row(curves: Curves, i: int) -> Row:
    return Row(curves.values[i], curves.first[i], curves.final[i], int(curves.reached[i]))


def positions(curves: Curves, is_judged: Mask, weight: float = 1.0) -> Positions:
    """Return the positions of a study's trials, each among those before it."""
    features, outcome = [], []
    for i in np.flatnonzero(is_judged).tolist():
        frame = frame_of(curves.take(slice(i)), curves.first[i]) if i else None
        if frame is not None:
            row = _row(curves, i)
            features.append(frame.position(row))
            outcome.append(frame.outcome(row))
    return Positions(np.array(features).reshape(-1, len(SHARES), 3), np.array(outcome), weight)


def replayed(curves: Curves, is_judged: Mask) -> list[Positions]:
    """Return the positions of a study's trials in several orders, the same ones every time."""
    rng = np.random.default_rng(len(curves))
    *orders, last = (rng.permutation(len(curves))[:_MAX_TRIALS] for _ in range(_N_ORDERS + 1))
    n_short = len(last) // _N_SHORT
    short = last[: n_short * _N_SHORT].reshape(n_short, _N_SHORT)
    return [
        *(positions(curves.take(order), is_judged[order], 1.0 / _N_ORDERS) for order in orders),
        *(positions(curves.take(order), is_judged[order]) for order in short),
    ]


@dataclass(frozen=True)
class Forecast:
    """What is expected of a trial."""

    ratio: float  # probability of ending among the best, divided by that of a new trial
    mean: float  # of the outcome
    deviation: float


_UNKNOWN = Forecast(ratio=1.0, mean=0.5, deviation=0.5)


class _Column(NamedTuple):
    """The positions that are known at a column of the grid."""

    features: Floats  # (n, 3), in bandwidths
    outcome: Floats  # (n,)
    later: Floats  # (n,), rank `AHEAD` columns later
    weight: Floats  # (n,)


class Analogues:
    """Replayed positions of many trials, by share of the length."""

    def __init__(self, sources: Sequence[Positions]) -> None:
        features = np.concatenate([np.empty((0, len(SHARES), 3)), *(s.features for s in sources)])
        outcome = np.concatenate([np.empty(0), *(s.outcome for s in sources)])
        weight = np.concatenate(
            [np.empty(0), *(np.full(len(s.outcome), s.weight) for s in sources)]
        )
        sizes = features[..., 2]
        n = max(1.0, float(weight.sum()))
        self._bandwidths = _BANDWIDTHS * max(1.0, (_N_PAST / n) ** (1.0 / 7.0))
        self._largest = float(sizes[~np.isnan(sizes)].max(initial=0.0))
        self._columns = []
        for g in range(len(SHARES)):
            known = ~np.isnan(features[:, g]).any(axis=1)
            later = features[known, min(g + AHEAD, len(SHARES) - 1), 0]
            scaled = features[known, g] / self._bandwidths
            self._columns.append(_Column(scaled, outcome[known], later, weight[known]))

    def forecast(self, features: Floats, column: int, base: float) -> Forecast:
        """Return what becomes of a trial with the features (3,) at a column of the grid."""
        weights = self._weights(features, column)
        outcome = self._columns[column].outcome
        weight = float(weights.sum())
        if not weight > 0.0:
            return _UNKNOWN
        probability = (float(weights @ (outcome < 0.0)) + 1.0) / (weight + 1.0 / base)
        mean = float(weights @ outcome) / weight
        variance = float(weights @ (outcome - mean) ** 2) / weight
        return Forecast(probability / base, mean, float(np.sqrt(variance)))

    def next_rank(self, features: Floats, column: int) -> tuple[float, float] | None:
        """Return mean and variance of the rank `AHEAD` columns later; None without analogues."""
        weights = self._weights(features, column)
        later = self._columns[column].later
        is_known = ~np.isnan(later)
        weight = float(weights[is_known].sum())
        if weight < 1.0:
            return None
        mean = float(weights[is_known] @ later[is_known]) / weight
        return mean, float(weights[is_known] @ (later[is_known] - mean) ** 2) / weight

    def _weights(self, features: Floats, column: int) -> Floats:
        # A study that is longer than all past ones is compared with their largest sizes.
        capped = np.minimum(features, [np.inf, np.inf, self._largest]) / self._bandwidths
        past = self._columns[column]
        squares = ((past.features - capped) ** 2).sum(axis=1)
        return np.asarray(past.weight * np.exp(-0.5 * squares))
