"""What one suggestion sees of its study."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial

from metatpe.space import Floats, Mask, Space
from metatpe.study.access import all_trials, fixed_params, is_enqueued
from metatpe.study.history import History, Observations, is_whole
from metatpe.study.record import params_of, read_plan, start_of
from metatpe.study.seen import Seen


class Moment:
    """What a study knows, in one space, at the moment when a trial asks for its configuration.

    Args:
        study: The study.
        history: What was read of it, up to date.
        trials: Its trials, sorted by number; with Hyperband those of the trial's own bracket.
        trial: The one that asks.
        space: The parameters to choose.
        attempt: How often the trial has chosen what another worker chose at the same time.
    """

    def __init__(
        self,
        study: Study,
        history: History,
        trials: list[FrozenTrial],
        trial: FrozenTrial,
        space: Space,
        attempt: int = 0,
    ) -> None:
        self._study = study
        self.history = history
        self.trials = trials
        self.trial = trial
        self.space = space
        self.attempt = attempt
        self.is_enqueued = is_enqueued(trial)
        self.fixed: Mapping[str, Any] = space.fit(fixed_params(trial))

    def in_space(self, space: Space) -> Moment:
        """Return the same moment in another space."""
        kind = type(self)
        return kind(self._study, self.history, self.trials, self.trial, space, self.attempt)

    @cached_property
    def everyone(self) -> list[FrozenTrial]:
        """All trials of the study, also those that Hyperband does not show to this one."""
        return self.trials if is_whole(self.trials) else all_trials(self._study)

    @cached_property
    def objective_names(self) -> tuple[str, ...]:
        """The names of the objectives, empty where they have none."""
        # Hyperband's view of a study has no names; of one objective they would say nothing anyway.
        return tuple(getattr(self._study, "metric_names", None) or ())

    @cached_property
    def observations(self) -> Observations:
        """The finished evaluations."""
        return self.history.observations(self.space, self.trials)

    @cached_property
    def _others(self) -> list[FrozenTrial]:
        """The other trials that are RUNNING."""
        running = self.history.running(self.trials)
        return [t for t in running if t.number != self.trial.number]

    @cached_property
    def is_alone(self) -> bool:
        """Whether all other trials have finished, so that only a new one can choose as well."""
        unfinished = self.history.unfinished(self.trials)
        return all(t.number == self.trial.number for t in unfinished)

    @property
    def running(self) -> Floats:  # (r, d)
        """The configurations that others are evaluating, as far as they are known."""
        return self._running[0]

    @property
    def is_running_start(self) -> Mask:  # (r,)
        """Which of these are warm starts."""
        return self._running[1]

    @cached_property
    def _running(self) -> tuple[Floats, Mask]:
        others = [t for t in self._others if not self._is_stale(t)]
        if not others:
            return np.empty((0, len(self.space))), np.empty(0, dtype=np.bool_)
        X = self.space.encode([_known_params(t) for t in others])
        is_known = ~np.isnan(X).all(axis=1)
        return X[is_known], np.array([start_of(t) >= 0 for t in others])[is_known]

    @cached_property
    def is_space_known(self) -> bool:
        """Whether the space is all that trials ask for, not only what they have asked for so far.

        Before one is complete, those that were planned with more may still ask for it.
        """
        if self.history.has_complete:
            return True
        asked = {*self.space.names}.union(*(t.distributions for t in self._others))
        plans = [read_plan(t) for t in self._others]
        return all(plan is None or plan.params.keys() <= asked for plan in plans)

    def _is_stale(self, other: FrozenTrial) -> bool:
        """Return whether a RUNNING trial was probably left behind by a worker that died."""
        if other.datetime_start is None or not self.history.n_observations:
            return False  # nobody knows how long an evaluation takes
        patience = max(10 * self.history.longest, datetime.timedelta(seconds=60))
        return datetime.datetime.now() - other.datetime_start > patience

    # The start -----------------------------------------------------------------------------------

    def start_index(self, n: int) -> int | None:
        """Return which of n first configurations is this trial's: the k-th not enqueued by hand.

        None where the trial comes later, or was enqueued itself.
        """
        if self.is_enqueued:
            return None
        k = 0
        for earlier in self.everyone:
            if earlier.number >= self.trial.number or k >= n:
                break
            k += not is_enqueued(earlier)
        return k if k < n else None

    def n_undecided(self, n: int) -> int:
        """Return how many of the n start-up trials began before this one and have no plan yet."""
        first = [t for t in self.everyone if not is_enqueued(t)][:n]
        return sum(
            t.number < self.trial.number and not t.state.is_finished() and read_plan(t) is None
            for t in first
        )

    @property
    def abandoned_start(self) -> int | None:
        """A first configuration that a dead worker was given and that no trial has taken since."""
        if self.is_enqueued:
            return None
        abandoned = {start_of(t) for t in self._others if self._is_stale(t)} - {-1}
        return min(abandoned - self.taken_starts, default=None) if abandoned else None

    @cached_property
    def taken_starts(self) -> set[int]:
        """The first configurations that trials were given, those of dead workers apart."""
        return self._given_to(self.everyone)

    def is_start_of_others(self, index: int) -> bool:
        """Return whether another trial has this first configuration too, dead workers apart."""
        return index in self._given_to(t for t in self.everyone if t.number != self.trial.number)

    def is_given_to_others(self, params: Mapping[str, Any]) -> bool:
        """Return whether another trial has exactly these parameters, dead workers apart."""
        return any(
            _known_params(t) == params
            for t in self.everyone
            if t.number != self.trial.number and not (t in self._others and self._is_stale(t))
        )

    def _given_to(self, trials: Iterable[FrozenTrial]) -> set[int]:
        stale = {t.number for t in self._others if self._is_stale(t)}
        return {start_of(t) for t in trials if t.number not in stale} - {-1}

    @property
    def tried(self) -> list[tuple[Mapping[str, Any], list[float] | None]]:
        """What was evaluated and its losses, and what others are evaluating with None."""
        others = [t for t in self._others if not self._is_stale(t)]
        return [*self.history.results(), *((_known_params(t), None) for t in others)]

    # Repeats -------------------------------------------------------------------------------------

    def is_new(self, X: Floats, *, complete_only: bool = False) -> Mask:  # (C, d) -> (C,)
        """Return which configurations nobody has evaluated or is evaluating, up to rounding."""
        is_seen = self.observations.seen.has(X, complete_only=complete_only)
        return ~(is_seen | self._seen_running.has(X, complete_only=complete_only))

    @cached_property
    def _seen_running(self) -> Seen:
        seen = Seen(self.space.columns)
        if len(self.running):
            seen.add(self.running)
        return seen

    def has(self, x: Floats) -> bool:  # (d,)
        """Return whether a configuration agrees with an evaluated or running one to 9 digits."""
        others = np.vstack([self.observations.X, self.running])
        is_same = (np.abs(others - x) < 1e-9) | (np.isnan(others) & np.isnan(x))
        return bool(is_same.all(axis=1).any())

    def with_fixed(self, X: Floats) -> Floats:  # (C, d) -> (C, d)
        """Return the configurations with the values that were enqueued with the trial."""
        if not self.fixed:
            return X
        fixed = self.space.encode([self.fixed])
        return np.where(np.isnan(fixed), X, fixed)

    def values(self, x: Floats) -> dict[str, Any]:  # (d,)
        """Return a point as parameters."""
        return {**self.space.decode(x[None])[0], **self.fixed}


class RepeatingMoment(Moment):
    """A moment in which configurations may repeat, as in the method as published."""

    def is_new(self, X: Floats, *, complete_only: bool = False) -> Mask:  # (C, d) -> (C,)
        """Return True for every configuration."""
        return np.ones(len(X), dtype=np.bool_)

    def has(self, x: Floats) -> bool:  # (d,)
        """Return False for every configuration."""
        return False


class ValueMoment(RepeatingMoment):
    """A moment in which one parameter, which the plan does not contain, is chosen on its own."""


def _known_params(trial: FrozenTrial) -> dict[str, Any]:
    """Return what a running trial has been given, and what was planned for it."""
    plan = read_plan(trial)
    return {**(plan.params if plan else {}), **params_of(trial)}
