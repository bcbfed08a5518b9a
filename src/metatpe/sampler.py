"""MetaTPESampler: the method as an Optuna sampler.

This module is the adaptor: trials and studies on one side, arrays on the other. It settles random
numbers, trial attributes and what is remembered, and has no mathematics of its own.

A trial's configuration is chosen once, as a whole, and written to the trial before its first value
is handed out (`_record`). Random numbers come from (seed, trial number, purpose), so that the same
seed gives the same suggestions whatever process, pickle or copy makes them.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial

from metatpe._acquisition import MAX_OWN, Densities, draw_candidates
from metatpe._history import History, Moment, Observations, is_whole
from metatpe._html import table
from metatpe._kde import Parzen, bandwidths
from metatpe._kernel import MAX_EXACT, MIN_GOOD, all_cells
from metatpe._pareto import levels, split
from metatpe._record import (
    REST,
    TARGET,
    Plan,
    Turn,
    read_plan,
    system_attributes,
    user_attributes,
)
from metatpe._transfer import Past, Settings
from metatpe._trust import N_JUDGED, N_TURNS, chance_of_the_past
from metatpe._warm_start import Configuration, first_configurations, turned_round
from metatpe.space import Columns, Floats, Ints, Mask, Space
from metatpe.tasks import Task, joined, n_usable, own_names

_logger = logging.getLogger(__name__)
_MAX_CACHED = 4  # spaces (and studies of one storage) whose models are kept
_MAX_OBSERVATIONS = 1_000_000  # of past tasks, in all spaces together; a million take 0.4 GB
_WEIGHTS = ("similarity", "uniform")
_N_ATTEMPTS = 5  # to choose a configuration that no other worker has chosen at the same time
_START = 5  # times `n_startup_trials`: how long a past that is upside down is looked out for
_UPSIDE_DOWN = (
    "the past studies put this study's trials in the wrong order: what was good there is bad "
    "here, and what was worst there does better. Do the directions of the objectives agree?"
)
_N_RANDOM = 64  # random configurations among which an unseen one is looked for
IsNew = Callable[[Floats], Mask]  # (C, d) -> (C,), which configurations are to be evaluated


class MetaTPESampler(BaseSampler):
    """Tree-structured Parzen estimator that learns from past studies.

    Implements the meta-learning TPE of Watanabe, Awad, Onishi and Hutter (IJCAI-23) for one and
    for several objectives. While the study runs, it measures how much the best region of each past
    task overlaps with that of this study, and borrows from those that do. Without sources it is
    plain (multi-objective) TPE.

    Args:
        sources: Past studies or tasks (`load_tasks` reads them out of a storage). Their spaces may
            differ from the one of the new study; they need the same number of objectives.
        n_startup_trials: The first trials: warm starts out of the past, random without one. 5 are
            the paper's; with a past they are not spent blindly, so more are seldom worth it.
        n_ei_candidates: Candidates for each task that counts, drawn from the good densities in
            proportion to the weights. 24 to 400 do equally well, 100 are still cheap.
        gamma: The fraction of observations that count as good; 0.1 is the paper's, and 0.05 to 0.2
            do equally well.
        eta: The larger, the fewer parameters the similarity is measured on (log_eta of the number
            of good observations): in many at once, few observations never look alike. 2.5 is the
            paper's, and 1.5 to 5 do equally well.
        epsilon: The probability of a random configuration after the start, the paper's 0.05: now
            and then, so that nothing is overlooked for ever.
        n_mc_samples: Points at which two densities are compared, where that is not exact anyway.
            With 1,000 the error of a similarity's distance is at most 0.016.
        weights: "similarity", or "uniform" for the same weight on every task, whatever it is like,
            which is the paper's naive variant and loses where a past task does not fit.
        warm_start: Whether the first trials are the past's best configurations, from which most of
            the early gain comes.
        search_space: The parameters that the objective will ask for, if you want the first trials
            to know them; otherwise they are learned from the trials.
        seed: Makes the suggestions reproducible (not with ``n_jobs > 1``, as elsewhere in Optuna).

    Raises:
        ValueError: A setting is out of its range, or a source has only one observation.

    Example:
        >>> import optuna
        >>> from metatpe import MetaTPESampler, load_tasks
        >>> sources = load_tasks("sqlite:///studies.db", "resnet-*")  # doctest: +SKIP
        >>> study = optuna.create_study(
        ...     directions=["minimize", "minimize"], sampler=MetaTPESampler(sources, seed=0)
        ... )  # doctest: +SKIP
    """

    def __init__(
        self,
        sources: Sequence[Study | Task] = (),
        *,
        n_startup_trials: int = 5,
        n_ei_candidates: int = 100,
        gamma: float = 0.1,
        eta: float = 2.5,
        epsilon: float = 0.05,
        n_mc_samples: int = 1000,
        weights: Literal["similarity", "uniform"] = "similarity",
        warm_start: bool = True,
        search_space: Mapping[str, BaseDistribution] | None = None,
        seed: int | None = None,
    ) -> None:
        for name, number, least in [
            ("n_startup_trials", n_startup_trials, 0),
            ("n_ei_candidates", n_ei_candidates, 1),
            ("n_mc_samples", n_mc_samples, 1),
            ("seed", 0 if seed is None else seed, 0),
        ]:
            is_whole_number = isinstance(number, int | np.integer)
            _require(name, number, is_whole_number, "a whole number")
            _require(name, number, number >= least, f"{least} or more")
        _require("gamma", gamma, 0.0 < gamma < 1.0, "between 0 and 1")
        _require("eta", eta, eta > 1.0 and math.isfinite(eta), "more than 1")
        _require("epsilon", epsilon, 0.0 <= epsilon <= 1.0, "from 0 to 1")
        _require("weights", weights, weights in _WEIGHTS, " or ".join(f'"{w}"' for w in _WEIGHTS))
        is_space = search_space is None or (
            isinstance(search_space, Mapping)
            and all(isinstance(d, BaseDistribution) for d in search_space.values())
        )
        _require("search_space", search_space, is_space, "a dictionary of Optuna distributions")
        self._n_startup_trials = n_startup_trials
        self._n_ei_candidates = n_ei_candidates
        self._epsilon = epsilon
        self._search_space = dict(search_space or {})
        self._sources = as_tasks(sources)
        self._n_objectives = {task.n_objectives for task in self._sources}
        self._warm_starts = (
            first_configurations(self._sources, n_startup_trials) if warm_start else []
        )
        # Once the past's best configurations have been tried, the past is silent until more than
        # one or two good observations tell how alike the tasks are; the reason is in `_kernel`.
        is_naive = weights == "uniform"
        min_good = MIN_GOOD if self._warm_starts and not is_naive else 0
        self._settings = Settings(gamma, eta, n_mc_samples, is_naive, min_good)
        self._seed = None if seed is None else int(seed)
        self._forget()

    def _forget(self) -> None:
        """Start with empty caches, and without random numbers of this process."""
        self._lock = threading.RLock()
        self._entropy: tuple[int, int] | None = None  # (process, entropy)
        self._histories: WeakKeyDictionary[BaseStorage, dict[int, History]] = WeakKeyDictionary()
        self._pasts: dict[Space, Past] = {}
        self._last_space: tuple[Mapping[str, BaseDistribution], Space] | None = None
        self._turned_starts: Sequence[Configuration] | None = None
        self._said: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        caches = (
            "_lock",
            "_entropy",
            "_histories",
            "_pasts",
            "_last_space",
            "_turned_starts",
            "_said",
        )
        return {key: value for key, value in self.__dict__.items() if key not in caches}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._sources)} sources, seed={self._seed})"

    def __str__(self) -> str:  # Optuna's own would be the name of the class alone
        return repr(self)

    def _repr_html_(self) -> str:
        rows = [(t.name, str(len(t)), ", ".join(t.space.names)) for t in self._sources]
        return table(repr(self), rows, ("source", "observations", "parameters"))

    # Random numbers ------------------------------------------------------------------------------

    def reseed_rng(self) -> None:
        """Take new entropy: from here on, the suggestions no longer follow from the seed."""
        self._seed = None
        self._entropy = None

    def _rng(self, trial: FrozenTrial, purpose: str) -> np.random.Generator:
        """Return the random numbers of a trial for one purpose."""
        if self._seed is not None:
            entropy = self._seed
        else:
            if self._entropy is None or self._entropy[0] != os.getpid():
                self._entropy = (os.getpid(), int.from_bytes(os.urandom(16), "big"))
            entropy = self._entropy[1]
        key = hashlib.blake2b(f"{entropy}:{trial.number}:{purpose}".encode(), digest_size=16)
        return np.random.Generator(np.random.Philox(key=int.from_bytes(key.digest(), "little")))

    # Optuna's side -------------------------------------------------------------------------------

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that this study's trials have used, and those given by hand."""
        with self._lock:
            history, trials = self._read(study)
            others = [t for t in history.running(trials) if t.number != trial.number]
            known = {**self._search_space, **history.distributions(others)}
        return {name: known[name] for name in sorted(known) if not known[name].single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Choose the trial's configuration; return the part that was asked for."""
        params = self._choose(study, trial, search_space).params
        return {name: params[name] for name in search_space}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the planned value of a parameter if it fits what is asked for, or a new one."""
        plan = read_plan(trial) or self._choose(study, trial, {})
        space = Space({param_name: param_distribution})
        fitted = space.fit(plan.params)
        if param_name in fitted:
            return fitted[param_name]
        rng = self._rng(trial, f"alone:{param_name}")
        with self._lock:
            moment = self._moment(study, trial, space)
            if plan.origin in ("acquisition", "independent"):
                return self._acquired(moment, rng=rng, may_repeat=True).params[param_name]
            return moment.values(rng.random(1))[param_name]

    def _choose(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> Plan:
        """Choose a configuration for the trial and write it down.

        Another worker may choose the same at the same time. Of two such, the one that writes last
        sees what the other has written, and chooses again.
        """
        self._check_objectives(study)
        for attempt in range(_N_ATTEMPTS):
            with self._lock:
                moment = self._moment(study, trial, self._space_of(search_space), attempt)
                plan = self._plan(moment)
                was_new = _is_new(moment, plan)
            for key, value in system_attributes(plan).items():
                study._storage.set_trial_system_attr(trial._trial_id, key, value)
            if not self._is_taken(study, moment, plan, was_new):
                break
        for key, value in user_attributes(plan).items():
            study._storage.set_trial_user_attr(trial._trial_id, key, value)
        return plan

    def _is_taken(self, study: Study, moment: Moment, plan: Plan, was_new: bool) -> bool:
        """Return whether another trial was given this meanwhile, which may have finished since.

        That is a warm start, or a configuration of a finite space that was new.
        """
        if plan.warm_index is None and not was_new:
            return False
        with self._lock:
            now = self._moment(study, moment.trial, moment.space)
            if plan.warm_index is not None and now.is_given_to_others(plan.warm_index):
                return True
            return was_new and not _is_new(now, plan)

    def _check_objectives(self, study: Study) -> None:
        if self._n_objectives <= {len(study.directions)}:
            return
        for task in self._sources:
            if task.n_objectives != len(study.directions):
                raise ValueError(
                    f"source {task.name!r} has {task.n_objectives} objectives, but this study has "
                    f"{len(study.directions)}; leave it out, or choose the objectives to compare."
                )

    # What is remembered --------------------------------------------------------------------------

    def _read(self, study: Study) -> tuple[History, list[FrozenTrial]]:
        """Return the study's history, brought up to date, and its trials."""
        trials = study.get_trials(deepcopy=False)
        of_storage = self._histories.setdefault(study._storage, {})
        history = of_storage.pop(study._study_id, None)
        if history is None or not history.belongs_to(trials):
            history = History(study.directions)
        of_storage[study._study_id] = history
        if len(of_storage) > _MAX_CACHED:
            del of_storage[next(iter(of_storage))]
        history.update(trials)
        return history, trials

    def _moment(self, study: Study, trial: FrozenTrial, space: Space, attempt: int = 0) -> Moment:
        history, trials = self._read(study)
        everyone = trials
        if not is_whole(trials):  # Hyperband shows a trial only those of its own bracket
            everyone = study._storage.get_all_trials(study._study_id, deepcopy=False)
        return Moment(history, trials, trial, space, everyone, attempt)

    def _space_of(self, search_space: Mapping[str, BaseDistribution]) -> Space:
        """Return a search space with its columns, the one of the last trial if it is the same."""
        if self._last_space is None or self._last_space[0] != search_space:
            ordered = {name: search_space[name] for name in sorted(search_space)}
            self._last_space = (ordered, Space(ordered))
        return self._last_space[1]

    def _past(self, space: Space) -> Past:
        """Return the models of the sources in a space."""
        past = self._pasts.pop(space, None)
        if past is None:
            n_observations = sum(map(len, self._sources))
            n_kept = max(1, min(_MAX_CACHED, _MAX_OBSERVATIONS // max(n_observations, 1)))
            while len(self._pasts) >= n_kept:
                del self._pasts[next(iter(self._pasts))]
            past = Past(self._sources, space, self._settings)
        self._pasts[space] = past
        return past

    def _say(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            _logger.warning(message)

    # The choice ----------------------------------------------------------------------------------

    def _plan(self, moment: Moment) -> Plan:
        """Return the trial's configuration: a warm start, random, or by the acquisition."""
        space = moment.space
        past = self._past(space) if len(space) else None
        for remark in past.remarks if past else ():
            self._say(remark)
        if self._warm_starts and (past is None or past.names):
            if plan := self._warm(moment):
                return plan
        elif moment.history.n_counted < self._n_startup_trials:
            return self._random(moment, "random")
        if not len(space):
            return self._first(moment)
        rng = self._rng(moment.trial, "acquisition")
        if rng.random() < self._epsilon:
            return self._random(moment, "epsilon")
        return self._acquired(moment, rng=rng)

    def _warm(self, moment: Moment) -> Plan | None:
        """Return the trial's warm start; None where it gets none."""
        index = moment.warm_index(self._n_startup_trials)
        if index is not None:
            starts = [*self._numbered(self._in_turn(index))]
            found = self._first_fitting(moment, starts)
            if found is None and not self._is_known(moment):
                # One that agrees with others so far differs in what they have not asked for yet.
                found = self._first_fitting(moment, starts, may_agree=True)
            return found or self._random(moment, "random")
        index = moment.abandoned_warm_start
        return None if index is None else self._first_fitting(moment, self._numbered([index]))

    def _in_turn(self, index: int) -> list[int]:
        """Return the warm start with this index, and what follows where it has no place.

        The reserve before the next ones, which belong to other trials; of the reserve first the
        part that trials with another index turn to last.
        """
        n, n_all = self._n_startup_trials, len(self._warm_starts)
        return [index, *range(n + index, n_all, n), *range(n, n_all), *range(index + 1, n)]

    def _numbered(self, indices: Sequence[int]) -> Iterator[tuple[int, Configuration]]:
        """Yield warm starts with their numbers, as far as there are any."""
        for i in indices:
            if i < len(self._warm_starts):
                yield i, self._warm_starts[i]
            elif 0 <= i - self._n_before_turned < len(self._turned):
                yield i, self._turned[i - self._n_before_turned]

    @property
    def _turned(self) -> Sequence[Configuration]:
        """The warm starts of the past turned round."""
        if self._turned_starts is None:
            tasks = [turned_round(task) for task in self._sources]
            self._turned_starts = first_configurations(tasks, self._n_startup_trials)
        return self._turned_starts

    @property
    def _n_before_turned(self) -> int:
        """The first number that a warm start of the past turned round can have."""
        return max(len(self._warm_starts), self._n_startup_trials)

    def _first_fitting(
        self,
        moment: Moment,
        starts: Iterable[tuple[int, Configuration]],
        *,
        may_agree: bool = False,
    ) -> Plan | None:
        """Return the first of numbered warm starts that is free, new, and shares a parameter."""
        space = moment.space
        filling = moment.values(self._rng(moment.trial, "warm_start").random(len(space)))
        for i, configuration in starts:
            if i in moment.taken_warm_starts:
                continue
            fitting = space.fit(configuration)
            params = {**configuration, **filling, **fitting}
            # A source without a shared parameter has nothing to start from.
            if not len(space) or (
                fitting and (may_agree or moment.is_new(space.encode([params]))[0])
            ):
                return Plan("warm_start", params, warm_index=i)
        return None

    def _is_known(self, moment: Moment) -> bool:
        """Return whether the space is all that the objective asks for, as far as one can tell."""
        return len(moment.space) > 0 and (bool(self._search_space) or moment.is_space_known)

    def _turned_start(self, moment: Moment, past: Past) -> Plan | None:
        """Return a warm start of the past turned round, where it is upside down.

        That is soon after the start, and while those that were given do better than other trials.
        """
        n, done = self._n_startup_trials, moment.observations
        is_late = not n or len(done.X) > _START * n or moment.attempt > 0
        if is_late or not self._warm_starts or self._settings.is_naive or moment.is_enqueued:
            return None
        X, level = _judged(done, past)
        is_turned = done.warm_index[: len(level)] >= self._n_before_turned
        if is_turned.any() and level[is_turned].mean() >= level[~is_turned].mean():
            return None
        if np.count_nonzero(is_turned) == n:  # a single one may have been luck
            self._say(_UPSIDE_DOWN)
        n_given = sum(i >= self._n_before_turned for i in moment.taken_warm_starts)
        if n_given >= n or not past.is_upside_down(X, level):
            return None
        return self._first_fitting(moment, enumerate(self._turned, start=self._n_before_turned))

    def _random(self, moment: Moment, origin: Literal["random", "epsilon"]) -> Plan:
        """Return a configuration from the whole space, a new one where there is one."""
        if not len(moment.space):
            return Plan(origin)
        return Plan(origin, moment.values(self._new_at_random(moment, origin)[0]))

    def _first(self, moment: Moment) -> Plan:
        """Return what the past alone suggests where nothing is known of the study's space yet."""
        if not self._sources:
            return Plan("independent")
        found: dict[str, list[BaseDistribution]] = {}
        for task in self._sources:
            for name, distribution in task.space.distributions.items():
                found.setdefault(name, []).append(distribution)
        space = Space({name: joined(found[name]) for name in sorted(found)})
        in_past = Moment(moment.history, moment.trials, moment.trial, space)
        plan = self._acquired(in_past, rng=self._rng(moment.trial, "acquisition"))
        return Plan("independent", plan.params, plan.weights)

    def _acquired(
        self, moment: Moment, *, rng: np.random.Generator, may_repeat: bool = False
    ) -> Plan:
        """Return what is evaluated after the start."""
        if not may_repeat and (plan := self._turned_start(moment, self._past(moment.space))):
            return plan
        return self._by_densities(moment, None if may_repeat else moment.is_new, rng=rng)

    def _by_densities(
        self, moment: Moment, is_new: IsNew | None, *, rng: np.random.Generator
    ) -> Plan:
        """Return the candidate with the best acquisition: of the new ones, or of all."""
        past = self._past(moment.space)
        X_good, X_bad, is_own = self._split(moment)
        good, weights, kept = past.weigh(X_good, *_judged(moment.observations, past))
        target = Densities(good, _bad_density(moment.space.columns, X_bad, is_own))
        tasks = [target, *past.densities]
        turn = self._turn(moment, weights)
        used = np.eye(1, len(tasks))[0] if turn == "own" else weights
        # Workers that collided have the same best candidate, and would go on colliding: of fewer
        # candidates they have different ones.
        n = max(1, self._n_ei_candidates // 4**moment.attempt)
        X = moment.with_fixed(draw_candidates(tasks, used, n, rng=rng))
        if is_new is not None:
            X = self._only_new(moment, X, is_new)
        best = X[np.argmax(past.score(target, used, X, rng=rng))]
        named = dict(zip((TARGET, *past.names), weights.tolist(), strict=True))
        names = tuple(moment.space.names[j] for j in kept)
        return Plan("acquisition", moment.values(best), named, names, turn=turn)

    def _turn(self, moment: Moment, weights: Floats) -> Turn | None:
        """Return whose turn it is: the past's, in proportion to what its turns have given."""
        if self._settings.is_naive or weights[0] >= 1.0:
            return None
        done = moment.observations
        last = np.flatnonzero(done.turns)[-N_TURNS:]
        level = levels(done.losses[last], done.violation[last], done.lateness[last])
        is_past = self._rng(moment.trial, "turn").random() < chance_of_the_past(
            level, done.turns[last]
        )
        return "past" if is_past else "own"

    def _split(self, moment: Moment) -> tuple[Floats, Floats, Mask]:
        """Return the good observations (n, d), the bad ones (k, d), and which of these are own.

        What is being evaluated stands on the bad side; warm starts are not the study's own.
        """
        done = moment.observations
        is_good = split(done.losses, done.violation, self._settings.gamma, done.lateness)
        bad, is_own = done.X[~is_good], done.warm_index[~is_good] < 0
        if len(moment.running):
            bad = np.vstack([bad, moment.running])
            is_own = np.append(is_own, ~moment.is_running_warm)
        return done.X[is_good], bad, is_own

    def _only_new(self, moment: Moment, X: Floats, is_new: IsNew) -> Floats:  # (C, d) -> (k, d)
        """Return the candidates that are new, random ones where there are none."""
        is_open = is_new(X)
        if not is_open.any():
            X = self._new_at_random(moment, "acquisition")
            is_open = is_new(X)
        return X[is_open] if is_open.any() else X

    def _new_at_random(self, moment: Moment, purpose: str) -> Floats:  # (k, d), k >= 1
        """Return random configurations that nobody has evaluated, as long as there are any."""
        columns, rng = moment.space.columns, self._rng(moment.trial, f"random:{purpose}")
        X = moment.with_fixed(columns.snap(rng.random((_N_RANDOM, len(columns)))))
        is_new = moment.is_new(X)
        if not is_new.any() and columns.n_cells.prod(dtype=np.float64) <= MAX_EXACT:
            X = moment.with_fixed(rng.permutation(all_cells(columns)[0]))
            is_new = moment.is_new(X)
        if not is_new.any() and moment.observations.seen.has_complete:
            # Those that used fewer parameters may be from before one was added.
            is_new = moment.is_new(X, complete_only=True)
        if is_new.any():
            return X[is_new]
        if self._is_known(moment):
            self._say(
                "every configuration of the space has been evaluated; they are repeated now."
            )
        return X


def _is_new(moment: Moment, plan: Plan) -> bool:
    """Return whether a plan is of a finite space, and nobody else has it."""
    space = moment.space
    if not len(space) or not space.columns.is_finite:
        return False
    return bool(moment.is_new(space.encode([plan.params]))[0])


def _bad_density(columns: Columns, X: Floats, is_own: Mask) -> Parzen:  # (k, d), (k,)
    """Return the density of the bad observations, its kernels as wide as the own ones say.

    `_trust` says why; among thousands a few warm starts do not matter.
    """
    if len(X) > MAX_OWN or not is_own.any():
        return Parzen.of_some(columns, X, MAX_OWN)
    return Parzen(columns, X, bandwidths(columns, X[is_own]))


def _judged(done: Observations, past: Past) -> tuple[Floats, Ints]:  # (n, d), (n,)
    """Return the observations that past tasks are judged by, and how far behind each is."""
    some = slice(N_JUDGED if past.names else 0)
    level = past.levels(done.losses[some], done.violation[some], done.lateness[some])
    return done.X[some], level


def _require(name: str, value: Any, holds: bool, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{name} must be {wanted}, but is {value!r}.")


def _shown(value: Any) -> str:
    """Return a value for a message; a string may be a URL with a password in it."""
    return "a string" if isinstance(value, str) else repr(value)


def as_tasks(sources: Sequence[Study | Task]) -> list[Task]:
    """Return the sources as tasks with names of their own, without those that are empty."""
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        raise ValueError(
            f"sources must be a list of studies or tasks, but is {_shown(sources)}; "
            "write [study], or load_tasks(url) for those of a storage."
        )
    tasks: list[Task] = []
    for source in sources:
        if isinstance(source, Study) and not n_usable(source):
            _logger.warning(
                "source %r is skipped: it has no finished trial with a parameter.",
                source.study_name,
            )
            continue
        if not isinstance(source, Study | Task):
            raise ValueError(f"a source must be a Study or a Task, but is {_shown(source)}.")
        task = Task.from_study(source) if isinstance(source, Study) else source
        if len(task) < 2:
            raise ValueError(
                f"source {task.name!r} has one observation, and good and bad cannot be told "
                "apart with fewer than two; leave it out."
            )
        tasks.append(task)
    names = own_names([task.name for task in tasks], (TARGET, REST))
    return [t if t.name == n else replace(t, name=n) for t, n in zip(tasks, names, strict=True)]
