"""The observations of a running study, each trial read and encoded once.

The arrays are indexed by trial number and grow with the study; the encodings for the spaces used
last are kept. Maximised objectives are losses here already (see `trials`).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from metatpe.recent import Recent
from metatpe.space import Floats, Ints, Space
from metatpe.study.record import params_of, start_of, turn_of
from metatpe.study.seen import Seen
from metatpe.study.trials import (
    expected_loss_of,
    is_counted,
    lateness_of,
    losses_of,
    violation_of,
)

_MAX_SPACES = 4  # a study whose ranges move with every trial needs a new encoding each time


@dataclass(frozen=True, eq=False)
class Observations:
    """What a study has finished, by trial number; in the shapes of `tpe.pareto` and `tpe.kde`."""

    X: Floats  # (n, d)
    losses: Floats  # (n, m)
    violation: Floats  # (n,)
    turns: Floats  # (n,), see `record.turn_of`
    start: Floats  # (n,), see `record.start_of`
    lateness: Floats  # (n, 3)
    deviation: Floats  # (n,), of the loss of a trial that was pruned, 0 of one that was seen
    seen: Seen


class _Encoding:
    """The rows of one space, filled as trials finish."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.X = np.empty((0, len(space)))
        self.seen = Seen(space.columns)

    def add(self, numbers: list[int], params: Sequence[Mapping[str, Any]]) -> None:
        """Encode the trials with these numbers."""
        if not numbers:
            return
        self.X = _grown(self.X, max(numbers) + 1)
        X = self.space.encode(params)
        self.X[numbers] = X
        # A value that this space does not have cannot be suggested again, so it is no repeat.
        n_used = [sum(name in p for name in self.space.names) for p in params]
        fits = np.count_nonzero(~np.isnan(X), axis=1) == n_used
        self.seen.add(X[fits])


def _grown(array: Floats, size: int) -> Floats:
    """Return the array with room for `size` rows, at least doubled when it has to move."""
    if size <= len(array):
        return array
    grown = np.full((max(size, 2 * len(array), 64), *array.shape[1:]), np.nan)
    grown[: len(array)] = array
    return grown


class History:
    """The finished trials of one study, and the distributions that its trials have asked for."""

    def __init__(self, directions: Sequence[StudyDirection]) -> None:
        self._directions = tuple(directions)
        self._first_trial: tuple[int, datetime.datetime | None] | None = None  # number, start
        self._n_read = 0
        self._open: set[int] = set()
        self._params: dict[int, Mapping[str, Any]] = {}
        # Losses, violation, turn, start, lateness, expected loss and its deviation.
        self._results = np.empty((0, len(self._directions) + 8))
        self._newest: dict[str, tuple[int, BaseDistribution]] = {}
        self._encodings: Recent[Space, _Encoding] = Recent(_MAX_SPACES)
        self.longest = datetime.timedelta(0)  # duration of a finished trial
        self.has_complete = False  # a trial with parameters

    def is_continued_by(self, trials: Sequence[FrozenTrial]) -> bool:
        """Return whether `trials` continues the history read so far.

        A database may give the id of a deleted study to a new one.
        """
        if self._first_trial is None:
            return True
        if not trials:
            return False
        number, started = self._first_trial
        if trials[0].number != number:
            return True  # another bracket of Hyperband
        return trials[0].datetime_start == started and trials[-1].number + 1 >= self._n_read

    def update(self, trials: Sequence[FrozenTrial]) -> None:
        """Read what is new among a study's trials, sorted by number."""
        if not trials:
            return
        if self._first_trial is None:
            self._first_trial = (trials[0].number, trials[0].datetime_start)
        recorded = [t.number for t in self._unread(trials) if self._read(t)]
        for encoding in self._encodings.values():
            encoding.add(recorded, [self._params[i] for i in recorded])

    def _unread(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        if is_whole(trials):
            candidates = [*self._still_open(trials), *trials[self._n_read :]]
            self._n_read = len(trials)
        else:
            candidates = list(trials)
        return [t for t in candidates if t.number not in self._params]

    def _read(self, trial: FrozenTrial) -> bool:
        """Read one trial; return whether it is a new observation."""
        if not trial.state.is_finished():
            self._open.add(trial.number)
            return False
        self._open.discard(trial.number)
        _take_newer(self._newest, trial)
        self.has_complete |= trial.state == TrialState.COMPLETE and bool(trial.params)
        if not is_counted(trial):
            return False
        self._results = _grown(self._results, trial.number + 1)
        expected = expected_loss_of(trial, self._directions) or (np.nan, 0.0)
        self._results[trial.number] = [
            *losses_of(trial, self._directions),
            violation_of(trial),
            turn_of(trial),
            start_of(trial),
            *lateness_of(trial, self._directions),
            *expected,
        ]
        self._params[trial.number] = params_of(trial)
        self.longest = max(self.longest, trial.duration or self.longest)
        return True

    def _results_of(self, rows: slice | Ints) -> tuple[Floats, Floats, Floats]:
        """Return losses, lateness, and the standard deviation of the loss of some trials.

        A trial that `TransferPruner` has stopped has the loss that its curve was expected to
        reach, and is ordered by it among the others. It never counts as the best: what was not
        seen is no better than the best feasible loss that was.
        """
        m, results = len(self._directions), self._results[rows]
        losses, lateness = results[:, :m], results[:, m + 3 : m + 6]
        expected, deviation = results[:, m + 6], results[:, m + 7]
        is_expected = ~np.isnan(expected)
        # Of all trials, also later ones: the result must not depend on what was read when.
        known = self._results[list(self._params)] if is_expected.any() else np.empty((0, m + 1))
        least = known[known[:, m] <= 0.0, 0].min(initial=np.inf)
        if not np.isfinite(least):
            return losses, lateness, np.zeros(len(results))
        losses = np.where(is_expected[:, None], np.maximum(expected, least)[:, None], losses)
        lateness = np.where(is_expected[:, None], 0.0, lateness)
        return losses, lateness, deviation

    @property
    def n_observations(self) -> int:
        """The number of observations."""
        return len(self._params)

    def results(self) -> list[tuple[Mapping[str, Any], list[float]]]:
        """Return the parameters and losses of all observations; infinite ones of infeasible."""
        rows = np.array(sorted(self._params), dtype=np.int64)
        losses, _, _ = self._results_of(rows)
        is_feasible = self._results[rows, len(self._directions)] <= 0.0
        losses = np.where(is_feasible[:, None], losses, np.inf)
        return [(self._params[i], own) for i, own in zip(rows, losses.tolist(), strict=True)]

    def distributions(self, running: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
        """Return what finished and running trials asked for, the newest of each name."""
        newest = dict(self._newest)
        for trial in running:
            _take_newer(newest, trial)
        return {name: newest[name][1] for name in sorted(newest)}

    def running(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return the trials that are being evaluated."""
        return [t for t in self.unfinished(trials) if t.state == TrialState.RUNNING]

    def unfinished(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return the trials that are being evaluated, or wait to be."""
        open_ones = self._still_open(trials) if is_whole(trials) else trials
        return [t for t in open_ones if not t.state.is_finished()]

    def _still_open(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return the trials that had not finished when they were read."""
        # Those of another Hyperband bracket may have numbers beyond the trials at hand.
        return [trials[i] for i in sorted(self._open) if i < len(trials)]

    def observations(self, space: Space, trials: Sequence[FrozenTrial]) -> Observations:
        """Return the observations among these trials, in the given space."""
        encoding = self._encodings.get(space, lambda: self._encode(space))
        rows: slice | Ints = slice(self.n_observations)
        if np.isnan(self._results[rows, -1]).any():
            rows = np.flatnonzero(~np.isnan(self._results[:, -1]))
        if not is_whole(trials):
            counted = [t.number for t in trials if t.number in self._params]
            rows = np.array(counted, dtype=np.int64)
        m, results = len(self._directions), self._results[rows]
        losses, lateness, deviation = self._results_of(rows)
        return Observations(
            X=encoding.X[rows],
            losses=losses,
            violation=results[:, m],
            turns=results[:, m + 1],
            start=results[:, m + 2],
            lateness=lateness,
            deviation=deviation,
            seen=encoding.seen,
        )

    def _encode(self, space: Space) -> _Encoding:
        encoding = _Encoding(space)
        encoding.add(list(self._params), list(self._params.values()))
        return encoding


def _take_newer(newest: dict[str, tuple[int, BaseDistribution]], trial: FrozenTrial) -> None:
    """Replace distributions by those of a trial where it is newer than the one they come from."""
    for name, distribution in trial.distributions.items():
        if newest.get(name, (-1,))[0] <= trial.number:
            newest[name] = (trial.number, distribution)


def is_whole(trials: Sequence[FrozenTrial]) -> bool:
    """Return whether no trial is filtered out (as Hyperband does), so that position is number."""
    return not trials or trials[-1].number == len(trials) - 1
