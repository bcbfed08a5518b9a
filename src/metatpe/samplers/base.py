"""The Optuna side of every sampler with a past.

`PastSampler` reads the study, settles random numbers and caches, gives out the first
configurations, keeps workers from evaluating the same twice, and writes records. What a sampler
adds is one method, `propose`: a moment goes in, a plan comes out.

A trial's configuration is chosen once, as a whole, and written to the trial before its first value
is handed out (`study.record`). Random numbers come from (seed, trial number, purpose), so that the
same seed gives the same suggestions whatever process, pickle or copy makes them.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial

from metatpe.distributions import are_same
from metatpe.gp.threads import one_thread
from metatpe.html import table
from metatpe.past.known import Past
from metatpe.past.portfolio import joined_space
from metatpe.past.read.studies import as_tasks
from metatpe.past.start import Start, draw
from metatpe.past.task import Task
from metatpe.recent import Recent
from metatpe.samplers.first import FirstTrials, Portfolio
from metatpe.samplers.guards import Rules
from metatpe.space import Floats, Mask, Space
from metatpe.study.access import (
    set_system_attributes,
    set_user_attributes,
    storage_of,
    study_id,
)
from metatpe.study.history import History
from metatpe.study.moment import Moment, RepeatingMoment, ValueMoment
from metatpe.study.record import Plan, Reason, read_plan, system_attributes, user_attributes
from metatpe.text import visible
from metatpe.words import counted

StartName = Literal["portfolio", "draw", "random"]
IsNew = Callable[[Floats], Mask]  # (C, d) -> (C,), which configurations may be evaluated
Score = Callable[[Floats], Floats]  # (C, d) -> (C,), the larger the better

_logger = logging.getLogger(__name__)
_STARTS = ("portfolio", "draw", "random")
_MAX_CACHED = 4  # studies of one storage, and spaces, that are kept
_MAX_OBSERVATIONS = 1_000_000  # of past tasks, in all spaces together; a million take 0.4 GB
_N_ATTEMPTS = 5  # to choose a configuration that no other worker has chosen at the same time
_N_RANDOM = 64  # random configurations among which a new one is looked for
N_STARTUP_TRIALS = 5


class PastSampler(BaseSampler):
    """Base of the samplers that learn from past studies.

    Args:
        sources: Past studies or tasks.
        n_startup_trials: The number of start-up trials.
        start: "portfolio" for configurations that serve the past tasks together, "draw" for the
            best of each in random order, "random" for random ones.
        search_space: The parameters that the objective will ask for, where they are given.
        seed: Makes the suggestions reproducible.
    """

    rules = Rules()  # replaced by experiments, and by `MetaTPESampler.as_published`

    def __init__(
        self,
        sources: Sequence[Study | Task],
        *,
        n_startup_trials: int,
        start: StartName,
        search_space: Mapping[str, BaseDistribution] | None,
        seed: int | None,
    ) -> None:
        require_whole("n_startup_trials", n_startup_trials, 0)
        require_whole("seed", 0 if seed is None else seed, 0)
        require_one_of("start", start, _STARTS)
        is_space = search_space is None or (
            isinstance(search_space, Mapping)
            and all(isinstance(d, BaseDistribution) for d in search_space.values())
        )
        require("search_space", search_space, is_space, "a dictionary of Optuna distributions")
        self._search_space = dict(search_space or {})
        self._sources = as_tasks(sources)
        self._n_objectives = {task.n_objectives for task in self._sources}
        n = n_startup_trials
        self.first_trials = FirstTrials(
            self._sources,
            Start(n) if start == "random" else draw(self._sources, n),
            has_portfolio=start == "portfolio",
        )
        self._seed = None if seed is None else int(seed)
        self._cache = _Cache(self._sources)

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """Refuse the argument that people who come from `TPESampler` will try."""
        if "constraints_func" in settings:
            raise TypeError(
                f"{cls.__name__} has no constraints_func, which Optuna has deprecated; call "
                'trial.set_constraint("name", value) in the objective, where more than 0 is a '
                "violation."
            )
        return super().__new__(cls)

    @abstractmethod
    def propose(self, moment: Moment, rng: np.random.Generator) -> Plan:
        """Choose a configuration once the start-up trials are done."""

    def propose_value(self, moment: Moment, rng: np.random.Generator) -> Any:
        """Choose a value for a parameter that the plan does not contain: the one of the space."""
        return moment.values(rng.random(1))[moment.space.names[0]]

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._cache = _Cache(self._sources)

    def __repr__(self) -> str:
        return f"{self.name}({counted(len(self._sources), 'source')}, seed={self._seed})"

    def __str__(self) -> str:  # Optuna's own would be the name of the class alone
        return repr(self)

    def _repr_html_(self) -> str:
        rows = [(t.name, str(len(t)), ", ".join(t.space.names)) for t in self._sources]
        return table(repr(self), rows, ("source", "observations", "parameters"))

    @property
    def name(self) -> str:
        """What records call the sampler."""
        return type(self).__name__

    # Random numbers ------------------------------------------------------------------------------

    def reseed_rng(self) -> None:
        """Take new entropy: from here on, the suggestions no longer follow from the seed."""
        self._seed = None
        self._cache.entropy = None

    def rng(self, trial: FrozenTrial, purpose: str) -> np.random.Generator:
        """Return the random numbers of a trial for one purpose."""
        entropy = self._cache.entropy_of_process() if self._seed is None else self._seed
        text = f"{entropy}:{trial.number}:{purpose}".encode(errors="surrogatepass")
        key = hashlib.blake2b(text, digest_size=16)
        return np.random.Generator(np.random.Philox(key=int.from_bytes(key.digest(), "little")))

    # Optuna's interface --------------------------------------------------------------------------

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that this study's trials have used, and those given by hand."""
        with self._cache.lock:
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
        rng = self.rng(trial, f"alone:{param_name}")
        with self._cache.lock, one_thread():
            moment = ValueMoment(study, *self._read(study), trial, space)
            if plan.origin in ("acquisition", "independent"):
                return self.propose_value(moment, rng)
            return moment.values(rng.random(1))[param_name]

    def _choose(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> Plan:
        """Choose a configuration for the trial and write it down.

        Another worker may choose the same at the same time. Of two such workers, at least the one
        that writes last sees what the other has written, and chooses again. After `_N_ATTEMPTS`
        it keeps what it has.
        """
        self._check_objectives(study)
        for attempt in range(_N_ATTEMPTS):
            with self._cache.lock, one_thread():
                moment = self._moment(study, trial, self._cache.space_of(search_space), attempt)
                plan = replace(self._plan(moment), sampler=self.name)
                was_new = not moment.is_alone and self._is_new(moment, plan)
            set_system_attributes(study, trial, system_attributes(plan))
            if not self._is_taken(study, moment, plan, was_new):
                break
        set_user_attributes(study, trial, user_attributes(plan))
        return plan

    def _is_taken(self, study: Study, moment: Moment, plan: Plan, was_new: bool) -> bool:
        """Return whether another trial has taken this configuration since it was chosen.

        Only warm starts and configurations that were new are checked. `was_new` is not known yet
        where the trial was alone.
        """
        with self._cache.lock:
            if moment.is_alone:
                n_now = len(study.get_trials(deepcopy=False))
                if plan.start is None and n_now == len(moment.trials):
                    return False
                was_new = self._is_new(moment, plan)
            if plan.start is None and not was_new:
                return False
            now = self._moment(study, moment.trial, moment.space)
            if plan.start is not None and (
                now.is_start_of_others(plan.start) or now.is_given_to_others(plan.params)
            ):
                return True
            return was_new and not self._is_new(now, plan)

    def _is_new(self, moment: Moment, plan: Plan) -> bool:
        """Return whether no other trial has this configuration; False if repeats are allowed."""
        space = moment.space
        if not self.rules.new or not len(space):
            return False
        return bool(moment.is_new(space.encode([plan.params]))[0])

    def _check_objectives(self, study: Study) -> None:
        m = len(study.directions)
        if self._n_objectives <= {m}:
            return
        for task in self._sources:
            if task.n_objectives != m:
                raise ValueError(
                    f"source {task.name!r} has {task.n_objectives} objectives, but this study has "
                    f"{m}; leave it out, or choose the objectives to compare."
                )

    # What is read --------------------------------------------------------------------------------

    def _read(self, study: Study) -> tuple[History, list[FrozenTrial]]:
        """Return the study's history, brought up to date, and its trials."""
        trials = study.get_trials(deepcopy=False)
        history = self._cache.history_of(study, trials)
        history.update(trials)
        return history, trials

    def _moment(self, study: Study, trial: FrozenTrial, space: Space, attempt: int = 0) -> Moment:
        kind = Moment if self.rules.new else RepeatingMoment
        return kind(study, *self._read(study), trial, space, attempt)

    def past_in(self, space: Space) -> Past:
        """Return the past tasks in a space."""
        return self._cache.pasts.get(space, lambda: Past(self._sources, space))

    def cached_portfolio(
        self, key: tuple[Space, tuple[str, ...]], make: Callable[[], Portfolio]
    ) -> Portfolio:
        """Return the portfolio for a space and objectives; `make` it the first time."""
        return self._cache.portfolios.get(key, make)

    def cached_fit(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the models for a key that identifies what they are fitted to."""
        return self._cache.fits.get(key, make)

    def warn_once(self, message: str) -> None:
        """Log a warning, unless it was logged before."""
        if message not in self._cache.warnings:
            self._cache.warnings.add(message)
            _logger.warning("%s", visible(message))

    # The plan ------------------------------------------------------------------------------------

    def _plan(self, moment: Moment) -> Plan:
        """Return a first configuration or, after the start, what the sampler proposes."""
        if plan := self._first(moment):
            return plan
        if not len(moment.space):
            return self._guess(moment)
        return self.propose(moment, self.rng(moment.trial, "acquisition"))

    def _guess(self, moment: Moment) -> Plan:
        """Return what is proposed in the space of the past, where the study's is not known yet."""
        if not self._sources:
            return Plan("independent", "unknown_space")
        space = joined_space(self._sources)
        plan = self.propose(moment.in_space(space), self.rng(moment.trial, "acquisition"))
        return Plan("independent", "unknown_space", plan.params, plan.weights)

    def random(self, moment: Moment, origin: Literal["random", "epsilon"], reason: Reason) -> Plan:
        """Return a configuration from the whole space, a new one where there is one."""
        if not len(moment.space):
            return Plan(origin, reason)
        return Plan(origin, reason, moment.values(self._new_at_random(moment, origin)[0]))

    # The start -----------------------------------------------------------------------------------

    def _first(self, moment: Moment) -> Plan | None:
        """Return the configuration of a start-up trial; None after the start."""
        past = self.past_in(moment.space) if len(moment.space) else None
        for remark in past.remarks if past else ():
            self.warn_once(remark)
        if self.first_trials.has_past and (past is None or past.names):
            return self.first_trials.plan(self, moment)
        if moment.history.n_observations < self.first_trials.n:
            return self.random(moment, "random", "startup")
        return None

    # New configurations --------------------------------------------------------------------------

    def best_new(
        self, moment: Moment, X: Floats, score: Score, is_new: IsNew
    ) -> Floats:  # (C, d) -> (d,)
        """Return the new candidate with the best score."""
        best: Floats = X[np.argmax(score(X))]
        if is_new(best[None])[0]:  # nearly always: faster than to look at all candidates
            return best
        X = self.only_new(moment, X, is_new)
        return np.asarray(X[np.argmax(score(X))])

    def only_new(self, moment: Moment, X: Floats, is_new: IsNew) -> Floats:  # (C, d) -> (k, d)
        """Return the candidates that are new, random ones where there are none."""
        is_open = is_new(X)
        if not is_open.any():
            X = self._new_at_random(moment, "acquisition")
            is_open = is_new(X)
        return X[is_open] if is_open.any() else X

    def _new_at_random(self, moment: Moment, purpose: str) -> Floats:  # (k, d), k >= 1
        """Return random configurations that nobody has evaluated, as long as there are any."""
        columns, rng = moment.space.columns, self.rng(moment.trial, f"random:{purpose}")
        X = moment.with_fixed(columns.snap(rng.random((_N_RANDOM, len(columns)))))
        is_new = moment.is_new(X)
        if not is_new.any() and columns.is_listable:
            X = moment.with_fixed(rng.permutation(columns.list_all()[0]))
            is_new = moment.is_new(X)
        if not is_new.any() and moment.observations.seen.has_complete:
            # Those that used fewer parameters may be from before one was added.
            is_new = moment.is_new(X, complete_only=True)
        if is_new.any():
            return X[is_new]
        if self.knows_space(moment) and not moment.fixed:
            self.warn_once(
                "every configuration of the space has been evaluated; repeats are allowed from "
                "now on."
            )
        return X

    def knows_space(self, moment: Moment) -> bool:
        """Return whether the space is all that the objective asks for, as far as one can tell."""
        return len(moment.space) > 0 and (bool(self._search_space) or moment.is_space_known)


class _Cache:
    """What a sampler remembers between calls; a pickle or a copy starts without it."""

    def __init__(self, sources: Sequence[Task]) -> None:
        n_observations = sum(map(len, sources))
        n_spaces = max(1, min(_MAX_CACHED, _MAX_OBSERVATIONS // max(n_observations, 1)))
        self.lock = threading.RLock()
        self.entropy: tuple[int, int] | None = None  # (process, entropy)
        self.pasts: Recent[Space, Past] = Recent(n_spaces)
        self.portfolios: Recent[tuple[Space, tuple[str, ...]], Portfolio] = Recent(_MAX_CACHED)
        self.fits: Recent[Hashable, Any] = Recent(2)  # with the past, and without it
        self.warnings: set[str] = set()
        self._histories: WeakKeyDictionary[BaseStorage, Recent[int, History]] = WeakKeyDictionary()
        self._last_space: tuple[Mapping[str, BaseDistribution], Space] | None = None

    def entropy_of_process(self) -> int:
        """Return random numbers of this process, which a forked one does not share."""
        if self.entropy is None or self.entropy[0] != os.getpid():
            self.entropy = (os.getpid(), int.from_bytes(os.urandom(16), "big"))
        return self.entropy[1]

    def history_of(self, study: Study, trials: Sequence[FrozenTrial]) -> History:
        """Return the history of a study, a new one where the trials are others than before."""
        histories = self._histories.setdefault(storage_of(study), Recent(_MAX_CACHED))
        history = histories.get(study_id(study), lambda: History(study.directions))
        if not history.is_continued_by(trials):
            history = History(study.directions)
            histories.put(study_id(study), history)
        return history

    def space_of(self, search_space: Mapping[str, BaseDistribution]) -> Space:
        """Return a search space with its columns, the one of the last trial if it is the same."""
        if self._last_space is None or not are_same(self._last_space[0], search_space):
            own = dict(search_space)
            self._last_space = (own, Space(own))
        return self._last_space[1]


def require(name: str, value: Any, holds: bool, wanted: str) -> None:
    """Refuse a setting with a sentence that says what is wanted."""
    if not holds:
        raise ValueError(f"{name} must be {wanted}, but is {value!r}.")


def require_whole(name: str, value: Any, least: int) -> None:
    """Refuse a setting that is not a whole number, or too small."""
    require(name, value, isinstance(value, int | np.integer), "a whole number")
    require(name, value, value >= least, f"{least} or more")


def require_one_of(name: str, value: Any, names: Sequence[str]) -> None:
    """Refuse a setting that is none of the given names."""
    require(name, value, value in names, " or ".join(f'"{one}"' for one in names))
