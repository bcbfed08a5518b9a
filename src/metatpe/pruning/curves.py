"""Learning curves of one study on a common grid.

Studies report at different steps (epochs, batches, seconds) and for different lengths. All curves
are therefore read at the same shares of the length:

    share(step) = (step - first + spacing) / (last - first + spacing)

with the first and last step and the mean spacing of the longest completed curve. A report belongs
to the share of the grid that is nearest on the log scale; the last one of a share counts. NaN and
infinite losses are inf, behind all others. With one objective, the smallest loss up to each share
is read as well: a single report may be an outlier, and the smallest one so far is not.

Shapes: values and best (n, G, m), one row per trial, one column per share in `SHARES`, one layer
per objective; first and final (n, m).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metatpe.space import Floats, Ints, Mask

# The ratio of neighbours is 1.26: three columns back is half the share.
SHARES: Floats = np.geomspace(0.03, 0.92, 16)
HALF = 3
_UP_TO: Floats = SHARES * np.sqrt(SHARES[1] / SHARES[0])  # where the next column is nearer

Curve = Mapping[int, Sequence[float]]  # step -> losses


class Length(NamedTuple):
    """How far a completed trial of a study reports."""

    first: int
    last: int
    spacing: float

    def shares(self, steps: Sequence[int]) -> Floats:
        """Return what share of the length lies behind each step."""
        behind = np.asarray(steps, dtype=np.float64) - self.first + self.spacing
        return np.asarray(behind / (self.last - self.first + self.spacing))


def length_of(curves: Sequence[Curve]) -> Length | None:
    """Return the length of the longest of completed curves; None where none has two steps."""
    longest = max((c for c in curves if len(c) > 1), key=lambda c: max(c), default=None)
    if longest is None:
        return None
    first, last = min(longest), max(longest)
    return Length(first, last, (last - first) / (len(longest) - 1))


def as_losses(values: Sequence[Sequence[float]] | Sequence[float]) -> Floats:
    """Return losses with inf in the place of NaN and infinite values."""
    losses = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(losses), losses, np.inf)


class Row(NamedTuple):
    """One curve on the grid."""

    values: Floats  # (G, m), NaN where there is no report
    best: Floats  # (G, m), the smallest loss so far; of several objectives the values
    first: Floats  # (m,)
    final: Floats  # (m,), NaN where the trial has no end
    reached: int  # the last column that no later report can change, -1 before the first


def row_of(curve: Curve, length: Length) -> Row:
    """Return the row of a trial that runs or has failed."""
    steps = sorted(curve)
    shares = length.shares(steps)
    losses = as_losses([curve[step] for step in steps])
    position = np.searchsorted(shares, _UP_TO, side="right") - 1
    # Up to where the next report is due, the last one is current.
    is_current = shares[-1] + _spacing(shares) > _UP_TO
    is_known = ((position >= 0) & is_current)[:, None]
    values, best = (
        np.where(is_known, each[np.maximum(position, 0)], np.nan)
        for each in (losses, _best_so_far(losses))
    )
    reached = int(np.count_nonzero(is_current)) - 1
    return Row(values, best, losses[0], np.full(losses.shape[1], np.nan), reached)


def _best_so_far(losses: Floats) -> Floats:  # (n, m)
    """Return the smallest loss up to each report; inf stays where a curve has diverged."""
    if losses.shape[1] > 1:
        return losses  # the smallest ones of all objectives may belong to different reports
    return np.where(np.isinf(losses), losses, np.minimum.accumulate(losses))


def _spacing(shares: Floats) -> float:
    """Return how far the reports of one curve are apart."""
    if len(shares) < 2:
        return float(shares[0])
    return float((shares[-1] - shares[0]) / (len(shares) - 1))


def completed(curve: Curve, final: Sequence[float], length: Length) -> Row:
    """Return the row of a trial that ran to its end: later columns hold its final losses."""
    row, end = row_of(curve, length), as_losses(final)
    is_after = (np.arange(len(SHARES)) > row.reached)[:, None]
    values, best = (np.where(is_after, end, each) for each in (row.values, row.best))
    return Row(values, best, row.first, end, len(SHARES) - 1)


def pruned(curve: Curve, length: Length) -> Row:
    """Return the row of a trial that was stopped: its final losses are inf."""
    row = row_of(curve, length)
    return Row(row.values, row.best, row.first, np.full(len(row.final), np.inf), row.reached)


@dataclass(frozen=True, eq=False)
class Curves:
    """The rows of a study's trials, in the order of their numbers."""

    values: Floats  # (n, G, m)
    best: Floats  # (n, G, m)
    first: Floats  # (n, m)
    final: Floats  # (n, m)
    reached: Ints  # (n,)

    def __len__(self) -> int:
        return len(self.first)

    @property
    def until(self) -> Ints:
        """The last column in which trials that were stopped can be compared; else the last."""
        is_stopped = np.isposinf(self.final).all(axis=1) & (self.reached >= 0)
        return np.where(is_stopped, self.reached, len(SHARES) - 1)

    def row(self, i: int) -> Row:
        """Return one of the trials."""
        reached = int(self.reached[i])
        return Row(self.values[i], self.best[i], self.first[i], self.final[i], reached)

    def take(self, rows: slice | Ints | Mask) -> Curves:
        """Return some of the trials, in this order."""
        return Curves(
            values=self.values[rows],
            best=self.best[rows],
            first=self.first[rows],
            final=self.final[rows],
            reached=self.reached[rows],
        )


def stacked(rows: Sequence[Row]) -> Curves:
    """Return rows as one."""
    return Curves(
        values=np.stack([row.values for row in rows]),
        best=np.stack([row.best for row in rows]),
        first=np.stack([row.first for row in rows]),
        final=np.stack([row.final for row in rows]),
        reached=np.array([row.reached for row in rows], dtype=np.int64),
    )


def joined(one: Curves, other: Curves) -> Curves:
    """Return the rows of both."""
    return Curves(
        values=np.concatenate([one.values, other.values]),
        best=np.concatenate([one.best, other.best]),
        first=np.concatenate([one.first, other.first]),
        final=np.concatenate([one.final, other.final]),
        reached=np.concatenate([one.reached, other.reached]),
    )
