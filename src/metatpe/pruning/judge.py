"""Judges the curves of one study: the past's forecast, the study's own, and a check of the past.

The past is checked where it is used. It predicts the rank of a trial two columns ahead, and most
trials live to show it: that does not depend on which of them are pruned later, as their end does.
With the squared errors r^2 of the study's trials and the variances v that the past expects,

    q = max(1, (sum r^2 + 5 v q_all) / (sum v + 5 v))        per column, 5 trials in advance
    ratio = past ratio / q^2 + (1 - 1 / q^2) own ratio

with q_all the same of all columns together, without the factor. So a past whose ranks change less
than the study's loses its influence, and the study's own finished curves take over. It loses some
at every share, since where most trials are stopped early, few show how ranks change later. The
own ratio is near 1 as long as few trials have finished, so a past that is wrong by a factor of two
or more (q^2 = 4) stops next to nothing.

All of this follows from the stored trials alone, so that workers decide alike whatever they have
seen before: a trial is checked against those with smaller numbers, once more when one of these
finishes late, and the own curves are those up to the k-th completed trial, k = 5, 6, 8, 10, ...
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from metatpe.pruning.curves import (
    SHARES,
    Curves,
    Length,
    Row,
    completed,
    joined,
    length_of,
    pruned,
    row_of,
    stacked,
)
from metatpe.pruning.forecast import AHEAD, Forecast, Forecaster
from metatpe.pruning.positions import Frame, frame_of, replayed
from metatpe.space import Floats
from metatpe.study.trials import curve_of, is_counted, losses_of

_N_IN_ADVANCE = 5.0
_N_OWN = 5  # completed trials before the study's own curves are used
_GROWTH = 1.2  # of their number before they are read again


@dataclass(frozen=True)
class Verdict:
    """What is known of a running trial at its last report."""

    ratio: float  # chance to end among the best, compared with a new trial
    influence: float  # of the past, 1 / q^2
    base: float  # chance of a new trial
    frame: Frame
    forecast: Forecast
    share: float  # of the length


class Judge:
    """The curves of one study, each finished trial read once."""

    def __init__(self, past: Forecaster, directions: Sequence[StudyDirection]) -> None:
        self._past = past
        self._directions = tuple(directions)
        self._lengths: dict[int, Length] = {}  # of completed trials
        self._start(None)

    def _start(self, length: Length | None) -> None:
        """Forget all rows: with another length they lie elsewhere on the grid."""
        self._length = length
        self._rows: dict[int, Row] = {}  # of finished trials
        self._finished: Curves  # the same, as one; there as soon as there is a row
        self._complete: set[int] = set()
        self._checks: dict[int, _Check] = {}
        self._own, self._own_numbers = Forecaster([]), list[int]()  # and the trials that it is of

    def update(self, trials: Sequence[FrozenTrial]) -> None:
        """Read what has finished since."""
        new = [t for t in trials if t.state.is_finished() and t.number not in self._rows]
        read = {t.number: curve_of(t, self._directions) for t in new}
        new = [t for t in new if read[t.number]]
        if not new:
            return
        ended = [t for t in new if t.state == TrialState.COMPLETE and is_counted(t)]
        for trial in ended:
            if length := length_of([read[trial.number]]):
                self._lengths[trial.number] = length
        longest = self._longest()
        if longest != self._length:
            self._start(longest)
            self.update(trials)
        elif longest is not None:
            self._complete.update(t.number for t in ended)
            for trial in new:
                self._rows[trial.number] = self._row(trial, read[trial.number], longest)
            self._learn()

    def _longest(self) -> Length | None:
        """Return the length of the longest completed trial, of equal ones that of the first."""
        numbers = sorted(self._lengths, key=lambda n: (-self._lengths[n].last, n))
        return self._lengths[numbers[0]] if numbers else None

    def _row(self, trial: FrozenTrial, curve: Mapping[int, list[float]], length: Length) -> Row:
        if trial.state == TrialState.COMPLETE and is_counted(trial):
            return completed(curve, losses_of(trial, self._directions), length)
        return pruned(curve, length) if trial.state == TrialState.PRUNED else row_of(curve, length)

    @property
    def is_ready(self) -> bool:
        """Whether a trial has finished, so that the length is known."""
        return bool(self._complete)

    def verdict(self, trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> Verdict | None:
        """Return what is known of a trial; None where its last report passed no new column.

        Also None at the last step: there is nothing left to save, only a result to lose.
        """
        curve, length = curve_of(trial, self._directions), self._length
        if length is None or not curve or not self._complete or max(curve) >= length.last:
            return None
        row = row_of(curve, length)
        earlier = {step: curve[step] for step in sorted(curve)[:-1]}
        if row.reached < 0 or (earlier and row_of(earlier, length).reached == row.reached):
            return None
        running = [t for t in trials if t.state == TrialState.RUNNING and t.number != trial.number]
        reported = filter(None, (curve_of(t, self._directions) for t in running))
        others = [row_of(other, length) for other in reported]
        return self._verdict(
            row, joined(self._finished, stacked(others)) if others else self._finished
        )

    def _verdict(self, row: Row, before: Curves) -> Verdict | None:
        frame = frame_of(before, row.first)
        if frame is None:
            return None
        (features,) = frame.position(row, slice(row.reached, row.reached + 1))
        if np.isnan(features).any():
            return None
        past = own = self._past.forecast(features, row.reached, frame.base)
        influence = float(1.0 / self._distrust()[row.reached] ** 2)
        if influence < 1.0:
            own = self._own.forecast(features, row.reached, frame.base)
        ratio = influence * past.ratio + (1.0 - influence) * own.ratio
        forecast = past if influence >= 0.5 else own
        share = float(SHARES[row.reached])
        return Verdict(ratio, influence, frame.base, frame, forecast, share)

    def _distrust(self) -> Floats:  # (G,)
        """Return q of each column; the last ones, which cannot be checked, are as those before."""
        checks = [self._checks[number] for number in sorted(self._checks)]
        nothing = np.zeros((3, len(SHARES)))
        squares, variances, counts = np.sum([nothing, *(c.sums for c in checks)], axis=0)
        advance = _N_IN_ADVANCE * variances / np.maximum(counts, 1.0)
        expected = variances + advance
        total = expected.sum()
        overall = max(1.0, float((squares + advance).sum() / total)) if total > 0.0 else 1.0
        with np.errstate(invalid="ignore"):
            q = np.maximum((squares + advance * overall) / expected, 1.0)
        q = np.where(expected > 0.0, q, overall)
        q[-AHEAD:] = q[-AHEAD - 1]
        return np.asarray(q)

    def _learn(self) -> None:
        numbers = sorted(self._rows)
        curves = self._finished = stacked([self._rows[number] for number in numbers])
        for i, number in enumerate(numbers):
            known = self._checks.get(number)
            if i and (known is None or known.n_before != i):
                sums = self._check_past(curves.take(slice(i)), self._rows[number])
                self._checks[number] = _Check(i, sums)
        self._read_own(numbers, curves)

    def _read_own(self, numbers: list[int], curves: Curves) -> None:
        """Replay the study's own curves up to the last completed trial that counts."""
        k = _n_own(len(self._complete))
        if not k:
            return
        n = 1 + bisect_left(numbers, sorted(self._complete)[k - 1])
        if numbers[:n] != self._own_numbers:
            self._own_numbers = numbers[:n]
            is_complete = np.array([number in self._complete for number in numbers[:n]])
            self._own = Forecaster(replayed(curves.take(slice(n)), is_complete))

    def _check_past(self, before: Curves, row: Row) -> Floats:  # (3, G)
        """Compare a finished trial's ranks with those that the past would have predicted.

        Returns:
            The squared error, the variance that the past expects, and 1, for each column.
        """
        sums = np.zeros((3, len(SHARES)))
        frame = frame_of(before, row.first)
        if frame is None:
            return sums
        features = frame.position(row, slice(row.reached + 1))
        for g in range(min(row.reached, len(SHARES) - 1) - AHEAD + 1):
            actual = features[g + AHEAD, 0]
            if np.isnan(features[g]).any() or np.isnan(actual):
                continue
            if predicted := self._past.next_rank(features[g], g):
                sums[:, g] = (actual - predicted[0]) ** 2, predicted[1], 1.0
        return sums


class _Check(NamedTuple):
    """How well the past predicted one trial."""

    n_before: int  # finished trials with smaller numbers
    sums: Floats  # (3, G)


def _n_own(n_complete: int) -> int:
    """Return how many of the completed trials are replayed: 0, 5, 6, 8, 10, ..."""
    k = 0
    while (following := max(_N_OWN, math.ceil(_GROWTH * k))) <= n_complete:
        k = following
    return k
