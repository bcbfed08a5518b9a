"""Judges the curves of one study: the past's forecast, the study's own, and a check of the past.

The past is checked where it is used. It predicts the rank of a trial two columns ahead, and most
trials live to show it: that does not depend on which of them are pruned later, as their end does.
With the squared errors r^2 of the study's trials and the variances v that the past expects,

    q = max(1, (sum r^2 + 5 v) / (sum v + 5 v))        per column, 5 trials of v in advance
    log ratio = log(past ratio) / q + (1 - 1 / q) log(own ratio)

So a past whose ranks change less than the study's loses its influence, share by share, and the
study's own finished curves take over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from metatpe.pruning.analogues import AHEAD, Analogues, Forecast, Frame, frame_of, replayed
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
from metatpe.space import Floats
from metatpe.study.trials import curve_of, is_counted, losses_of

_N_IN_ADVANCE = 5.0
_N_OWN = 5  # completed trials before the study's own curves are used
_GROWTH = 1.2  # of their number before they are read again


@dataclass(frozen=True)
class Verdict:
    """What is known of a running trial at its last report."""

    ratio: float  # chance to end among the best, compared with a new trial
    influence: float  # of the past, 1 / q
    base: float  # chance of a new trial
    frame: Frame
    forecast: Forecast


class Judge:
    """The curves of one study, each finished trial read once."""

    def __init__(self, past: Analogues, directions: Sequence[StudyDirection]) -> None:
        self._past = past
        self._directions = tuple(directions)
        self._start(None)

    def _start(self, length: Length | None) -> None:
        """Forget all rows: with another length they lie elsewhere on the grid."""
        self._length = length
        self._rows: dict[int, Row] = {}  # of finished trials
        self._finished: Curves  # the same, as one; there as soon as there is a row
        self._complete: set[int] = set()
        self._squares, self._variances, self._counts = np.zeros((3, len(SHARES)))
        self._checked: set[int] = set()
        self._own, self._n_own = Analogues([]), 0

    def update(self, trials: Sequence[FrozenTrial]) -> None:
        """Read what has finished since."""
        new = [t for t in trials if t.state.is_finished() and t.number not in self._rows]
        read = {t.number: curve_of(t, self._directions) for t in new}
        new = [t for t in new if read[t.number]]
        if not new:
            return
        ended = [t for t in new if t.state == TrialState.COMPLETE and is_counted(t)]
        length = length_of([read[t.number] for t in ended])
        if length is not None and (self._length is None or length.last > self._length.last):
            self._start(length)
            self.update(trials)
        elif self._length is not None:
            self._complete.update(t.number for t in ended)
            for trial in new:
                self._rows[trial.number] = self._row(trial, read[trial.number], self._length)
            self._learn()

    def _row(self, trial: FrozenTrial, curve: Mapping[int, list[float]], length: Length) -> Row:
        if trial.state == TrialState.COMPLETE and is_counted(trial):
            return completed(curve, losses_of(trial, self._directions), length)
        return pruned(curve, length) if trial.state == TrialState.PRUNED else row_of(curve, length)

    @property
    def is_ready(self) -> bool:
        """Whether a trial has finished, so that the length is known."""
        return bool(self._complete)

    def verdict(self, trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> Verdict | None:
        """Return what is known of a trial; None where its last report passed no new column."""
        curve, length = curve_of(trial, self._directions), self._length
        if length is None or not curve or not self._complete:
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
        features = frame.position(row)[row.reached]
        if np.isnan(features).any():
            return None
        own = self._own.forecast(features, row.reached, frame.base)
        past = self._past.forecast(features, row.reached, frame.base)
        influence = float(1.0 / self._distrust()[row.reached])
        ratio = past.ratio**influence * own.ratio ** (1.0 - influence)
        return Verdict(ratio, influence, frame.base, frame, past if influence >= 0.5 else own)

    def _distrust(self) -> Floats:  # (G,)
        """Return q of each column; the last ones, which cannot be checked, are as those before."""
        advance = _N_IN_ADVANCE * self._variances / np.maximum(self._counts, 1.0)
        with np.errstate(invalid="ignore"):
            q = (self._squares + advance) / (self._variances + advance)
        q = np.where(self._counts > 0, np.maximum(q, 1.0), 1.0)
        q[-AHEAD:] = q[-AHEAD - 1]
        return q

    def _learn(self) -> None:
        numbers = sorted(self._rows)
        curves = self._finished = stacked([self._rows[number] for number in numbers])
        for i, number in enumerate(numbers):
            if i and number not in self._checked:
                self._check_past(curves.take(slice(i)), self._rows[number])
                self._checked.add(number)
        if len(self._complete) >= max(_N_OWN, _GROWTH * self._n_own):
            self._n_own = len(self._complete)
            is_complete = np.array([number in self._complete for number in numbers])
            self._own = Analogues(replayed(curves, is_complete))

    def _check_past(self, before: Curves, row: Row) -> None:
        """Compare a finished trial's ranks with those that the past would have predicted."""
        frame = frame_of(before, row.first)
        if frame is None:
            return
        features = frame.position(row)
        for g in range(min(row.reached, len(SHARES) - 1) - AHEAD + 1):
            actual = features[g + AHEAD, 0]
            if np.isnan(features[g]).any() or np.isnan(actual):
                continue
            if predicted := self._past.next_rank(features[g], g):
                self._squares[g] += (actual - predicted[0]) ** 2
                self._variances[g] += predicted[1]
                self._counts[g] += 1
