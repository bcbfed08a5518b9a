"""The observations of a running study, each trial read and encoded once.

The arrays are indexed by trial number and grow with the study; a space's encoding of them is kept
as long as the space stays the same. Maximised objectives are losses here already (see `tasks`).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from metatpe._record import read_plan, turn_of, warm_index_of
from metatpe.space import Columns, Floats, Ints, Mask, Space
from metatpe.tasks import is_counted, lateness_of, losses_of, violation_of

_MAX_SPACES = (
    4  # encodings kept; a study whose ranges move with every trial needs a new one each time
)


@dataclass(frozen=True, eq=False)
class Observations:
    """What a study has finished, by trial number; in the shapes of `_pareto` and `_kde`."""

    X: Floats  # (n, d)
    losses: Floats  # (n, m)
    violation: Floats  # (n,)
    turns: Floats  # (n,), see `_record.turn_of`
    warm_index: Floats  # (n,), which warm start each was, -1 where none
    lateness: Floats  # (n, 3)
    seen: Seen


class Seen:
    """The configurations of a finite space that were evaluated.

    Compared on the parameters that were active: a configuration that agrees with an earlier one on
    all that the earlier one used would take the same branches, and be the same evaluation.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._by_active: dict[bytes, tuple[Mask, set[bytes]]] = {}

    def add(self, X: Floats) -> None:  # (n, d)
        """Remember complete or conditional configurations."""
        if not self._columns.is_finite:
            return
        for row in _cells(self._columns, X):
            active = row >= 0
            if active.any() and not self._is_broken_off(row, active):
                self._refute(row, active)
                _, rows = self._by_active.setdefault(active.tobytes(), (active, set()))
                rows.add(row[active].tobytes())

    def _is_broken_off(self, row: Cells, active: Mask) -> bool:
        """Return whether an earlier configuration began like this one and used more parameters.

        Then this is no branch of its own, but a trial that ended before it had asked for all.
        """
        for more, rows in self._by_active.values():
            if more.sum() > active.sum() and more[active].all():
                earlier = np.frombuffer(b"".join(rows), dtype=np.int32).reshape(len(rows), -1)
                if (earlier[:, active[more]] == row[active]).all(axis=1).any():
                    return True
        return False

    def _refute(self, row: Cells, active: Mask) -> None:
        """Forget what was evaluated before a parameter was added to the objective.

        A configuration that agrees with an earlier one and yet uses more parameters shows that
        this is no branch: the earlier ones were evaluations of another objective.
        """
        for key, (fewer, rows) in list(self._by_active.items()):
            if fewer.sum() < active.sum() and active[fewer].all() and row[fewer].tobytes() in rows:
                del self._by_active[key]

    @property
    def has_complete(self) -> bool:
        """Whether some configuration used all parameters, so that they are no branches."""
        return any(active.all() for active, _ in self._by_active.values())

    def has(self, X: Floats, *, complete_only: bool = False) -> Mask:  # (C, d) -> (C,)
        """Return which of complete configurations repeat a remembered (complete) one."""
        found = np.zeros(len(X), dtype=np.bool_)
        if self._by_active:
            cells = _cells(self._columns, X)
            for active, rows in self._by_active.values():
                if active.all() or not complete_only:
                    projected = np.ascontiguousarray(cells[:, active])
                    found |= np.array([row.tobytes() in rows for row in projected], dtype=np.bool_)
        return found


Cells = NDArray[np.int32]


def _cells(columns: Columns, X: Floats) -> Cells:  # (n, d)
    return np.stack([columns.cells(X[:, j], j) for j in range(len(columns))], axis=1).astype(
        np.int32
    )


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
        if not self.space.columns.is_finite:
            return  # nothing is repeated
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
    """The finished trials of one study, and what its trials have asked for."""

    def __init__(self, directions: Sequence[StudyDirection]) -> None:
        self._directions = tuple(directions)
        self._first: tuple[int, datetime.datetime | None] | None = None
        self._n_seen = 0
        self._open: set[int] = set()
        self._params: dict[int, Mapping[str, Any]] = {}
        # Losses, violation, turn, which warm start, lateness.
        self._results = np.empty((0, len(self._directions) + 6))
        self._newest: dict[str, tuple[int, BaseDistribution]] = {}
        self._encodings: dict[Space, _Encoding] = {}
        self.longest = datetime.timedelta(0)  # of the finished trials' durations
        self.has_complete = False  # a trial with parameters
        self.objective_names: tuple[str, ...] = ()  # where a sampler asks the study for them

    def belongs_to(self, trials: Sequence[FrozenTrial]) -> bool:
        """Return whether these can be the trials that were read before and later ones.

        A database may give a deleted study's id to a new one.
        """
        if self._first is None or not trials or trials[0].number != self._first[0]:
            return self._first is None or bool(trials)
        return trials[0].datetime_start == self._first[1] and trials[-1].number + 1 >= self._n_seen

    def update(self, trials: Sequence[FrozenTrial]) -> None:
        """Read what is new among a study's trials, sorted by number."""
        if not trials:
            return
        if self._first is None:
            self._first = (trials[0].number, trials[0].datetime_start)
        recorded = [t.number for t in self._unread(trials) if self._read(t)]
        for encoding in self._encodings.values():
            encoding.add(recorded, [self._params[i] for i in recorded])

    def _unread(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        if is_whole(trials):
            candidates = [*(trials[i] for i in sorted(self._open)), *trials[self._n_seen :]]
            self._n_seen = len(trials)
        else:
            candidates = list(trials)
        return [t for t in candidates if t.number not in self._params]

    def _read(self, trial: FrozenTrial) -> bool:
        """Take in a trial; return whether it is a new observation."""
        if not trial.state.is_finished():
            self._open.add(trial.number)
            return False
        self._open.discard(trial.number)
        _take_newer(self._newest, trial)
        self.has_complete |= trial.state == TrialState.COMPLETE and bool(trial.params)
        if not is_counted(trial):
            return False
        self._results = _grown(self._results, trial.number + 1)
        self._results[trial.number] = [
            *losses_of(trial, self._directions),
            violation_of(trial),
            turn_of(trial),
            warm_index_of(trial),
            *lateness_of(trial, self._directions),
        ]
        self._params[trial.number] = trial.params
        self.longest = max(self.longest, trial.duration or self.longest)
        return True

    @property
    def n_counted(self) -> int:
        """How many observations there are."""
        return len(self._params)

    def distributions(self, running: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
        """Return what finished and running trials asked for, the newest of each name."""
        newest = dict(self._newest)
        for trial in running:
            _take_newer(newest, trial)
        return {name: newest[name][1] for name in sorted(newest)}

    def running(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return those that are being evaluated."""
        unfinished = [trials[i] for i in sorted(self._open)] if is_whole(trials) else trials
        return [t for t in unfinished if t.state == TrialState.RUNNING]

    def observations(self, space: Space, trials: Sequence[FrozenTrial]) -> Observations:
        """Return the observations among these trials, in the given space."""
        encoding = self._encoding(space)
        rows: slice | Ints = slice(self.n_counted)
        if np.isnan(self._results[rows, -1]).any():
            rows = np.flatnonzero(~np.isnan(self._results[:, -1]))
        if not is_whole(trials):
            counted = [t.number for t in trials if t.number in self._params]
            rows = np.array(counted, dtype=np.int64)
        m, results = len(self._directions), self._results[rows]
        return Observations(
            X=encoding.X[rows],
            losses=results[:, :m],
            violation=results[:, m],
            turns=results[:, m + 1],
            warm_index=results[:, m + 2],
            lateness=results[:, m + 3 :],
            seen=encoding.seen,
        )

    def _encoding(self, space: Space) -> _Encoding:
        encoding = self._encodings.pop(space, None)
        if encoding is None:
            encoding = _Encoding(space)
            encoding.add(list(self._params), list(self._params.values()))
        self._encodings[space] = encoding  # the last one is the one used last
        if len(self._encodings) > _MAX_SPACES:
            del self._encodings[next(iter(self._encodings))]
        return encoding


def _take_newer(newest: dict[str, tuple[int, BaseDistribution]], trial: FrozenTrial) -> None:
    """Take a trial's distributions in where it is newer than the one they come from."""
    for name, distribution in trial.distributions.items():
        if newest.get(name, (-1,))[0] <= trial.number:
            newest[name] = (trial.number, distribution)


def is_whole(trials: Sequence[FrozenTrial]) -> bool:
    """Return whether no trial is filtered out (as Hyperband does), so that position is number."""
    return not trials or trials[-1].number == len(trials) - 1


class Moment:
    """What a study knows, in one space, at the moment when a trial asks for its configuration."""

    def __init__(
        self,
        history: History,
        trials: Sequence[FrozenTrial],
        trial: FrozenTrial,
        space: Space,
        everyone: Sequence[FrozenTrial] | None = None,
        attempt: int = 0,
    ) -> None:
        self.history = history
        self.trials = trials  # sorted by number
        # All trials of the study, also those that Hyperband does not show to this one.
        self.everyone = trials if everyone is None else everyone
        self.trial = trial
        self.attempt = attempt  # choices of this trial that others had made at the same time
        self.space = space
        self.fixed: Mapping[str, Any] = space.fit(trial.system_attrs.get("fixed_params", {}))

    @cached_property
    def observations(self) -> Observations:
        """The finished evaluations."""
        return self.history.observations(self.space, self.trials)

    @cached_property
    def _others(self) -> list[FrozenTrial]:
        """The other trials that are RUNNING."""
        running = self.history.running(self.trials)
        return [t for t in running if t.number != self.trial.number]

    @property
    def running(self) -> Floats:  # (r, d)
        """The configurations that others are evaluating, as far as they are known."""
        return self._running[0]

    @property
    def is_running_warm(self) -> Mask:  # (r,)
        """Which of these are warm starts."""
        return self._running[1]

    @cached_property
    def _running(self) -> tuple[Floats, Mask]:
        params, is_warm = [], []
        for other in self._others:
            if not self._is_stale(other):
                plan = read_plan(other)
                params.append({**(plan.params if plan else {}), **other.params})
                is_warm.append(warm_index_of(other) >= 0)
        if not params:
            return np.empty((0, len(self.space))), np.empty(0, dtype=np.bool_)
        X = self.space.encode(params)
        is_known = ~np.isnan(X).all(axis=1)
        return X[is_known], np.array(is_warm)[is_known]

    @cached_property
    def is_space_known(self) -> bool:
        """Whether the space is what trials ask for, and not what they have asked for so far.

        Before one is complete, those that were planned with more may still ask for it.
        """
        if self.history.has_complete:
            return True
        asked = {*self.space.names}.union(*(t.distributions for t in self._others))
        plans = [read_plan(t) for t in self._others]
        return all(plan is None or plan.params.keys() <= asked for plan in plans)

    def _is_stale(self, other: FrozenTrial) -> bool:
        """Return whether a RUNNING trial was probably left behind by a worker that died."""
        if other.datetime_start is None or not self.history.n_counted:
            return False  # nobody knows how long an evaluation takes
        patience = max(10 * self.history.longest, datetime.timedelta(seconds=60))
        return datetime.datetime.now() - other.datetime_start > patience

    @property
    def is_enqueued(self) -> bool:
        """Whether the trial was enqueued by hand."""
        return _is_enqueued(self.trial)

    def warm_index(self, n_init: int) -> int | None:
        """Return which warm start this trial gets: the k-th of those not enqueued by hand."""
        if self.is_enqueued:
            return None
        k = 0
        for earlier in self.everyone:
            if earlier.number >= self.trial.number or k >= n_init:
                break
            k += not _is_enqueued(earlier)
        return k if k < n_init else None

    @property
    def abandoned_warm_start(self) -> int | None:
        """A warm start that a dead worker was given and that nobody has taken up since."""
        if self.is_enqueued:
            return None
        stale = [t for t in self._others if self._is_stale(t)]
        abandoned = {warm_index_of(t) for t in stale} - {-1}
        return min(abandoned - self.taken_warm_starts, default=None) if abandoned else None

    @cached_property
    def taken_warm_starts(self) -> set[int]:
        """The warm starts that trials were given, dead workers' apart."""
        return self._given_to(self.everyone)

    def is_given_to_others(self, index: int) -> bool:
        """Return whether another trial has this warm start as well, dead workers' apart."""
        return index in self._given_to(t for t in self.everyone if t.number != self.trial.number)

    def _given_to(self, trials: Iterable[FrozenTrial]) -> set[int]:
        stale = {t.number for t in self._others if self._is_stale(t)}
        return {warm_index_of(t) for t in trials if t.number not in stale} - {-1}

    def is_new(self, X: Floats, *, complete_only: bool = False) -> Mask:  # (C, d) -> (C,)
        """Return which configurations nobody has evaluated or is evaluating."""
        seen = self.observations.seen.has(X, complete_only=complete_only)
        return ~(seen | self.is_running(X, complete_only=complete_only))

    def is_running(self, X: Floats, *, complete_only: bool = False) -> Mask:  # (C, d) -> (C,)
        """Return which configurations others are evaluating; none in a continuous space."""
        running = Seen(self.space.columns)
        running.add(self.running)
        return running.has(X, complete_only=complete_only)

    def with_fixed(self, X: Floats) -> Floats:  # (C, d) -> (C, d)
        """Return the configurations with the values that were enqueued with the trial."""
        if not self.fixed:
            return X
        fixed = self.space.encode([self.fixed])
        return np.where(np.isnan(fixed), X, fixed)

    def values(self, x: Floats) -> dict[str, Any]:  # (d,)
        """Return a point as parameters."""
        return {**self.space.decode(x[None])[0], **self.fixed}


def _is_enqueued(trial: FrozenTrial) -> bool:
    return "fixed_params" in trial.system_attrs
