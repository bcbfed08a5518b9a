"""MetaTPESampler: Algorithm 2 of the paper as an Optuna sampler."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study

from metatpe.past.start import reversed_start
from metatpe.past.task import Task
from metatpe.samplers.base import (
    N_STARTUP_TRIALS,
    PastSampler,
    StartName,
    require,
    require_one_of,
    require_whole,
)
from metatpe.samplers.densities import N_EI_CANDIDATES, TPESteps, judged
from metatpe.samplers.first import first_fitting
from metatpe.samplers.guards import (
    N_RESTART,
    N_TURNS,
    REVERSED,
    Rules,
    chance_of_the_past,
    is_reversed,
    may_restart,
)
from metatpe.space import Floats
from metatpe.study.moment import Moment, ValueMoment
from metatpe.study.record import TARGET, Plan, Reason
from metatpe.tpe.importance import ETA
from metatpe.tpe.kernel import N_MC_SAMPLES
from metatpe.tpe.pareto import GAMMA, levels

_NO_RULES = Rules.none()


class MetaTPESampler(PastSampler):
    """Tree-structured Parzen estimator that learns from past studies.

    Implements the meta-learning TPE of Watanabe, Awad, Onishi and Hutter (IJCAI-23) for one or
    several objectives. While the study runs, it measures how much the best region of each past
    task overlaps with that of this study, and weights past tasks accordingly. Without sources it
    is plain (multi-objective) TPE.

    Args:
        sources: Past studies or tasks (`load_tasks` reads them from a storage). Their spaces may
            differ from the one of the new study; they need the same number of objectives.
        n_startup_trials: The number of start-up trials.
        start: What the first trials evaluate: "portfolio" for configurations that together do
            well on the past studies (see `portfolio`), "draw" for the best ones of each in random
            order, or "random". Without sources they are always random.
        n_ei_candidates: Candidates for each task, drawn from the good densities in proportion to
            the weights. Values from 24 to 400 give equally good results.
        gamma: The fraction of observations that count as good. Values from 0.05 to 0.2 give
            equally good results.
        eta: The larger it is, the fewer parameters the similarity is measured on (log_eta of the
            number of good observations). Values from 1.5 to 5 give equally good results.
        epsilon: The probability of a random configuration after the start.
        n_mc_samples: Number of points at which two densities are compared, if this cannot be done
            exactly.
        weights: "similarity", or "uniform" for the same weight on every task. That is the naive
            variant of the paper, which is worse if a past task is dissimilar.
        search_space: The parameters that the objective will ask for, so that the first trials can
            use them; by default they are learned from the trials.
        seed: Makes the suggestions reproducible (not with ``n_jobs > 1``, as elsewhere in Optuna).

    Raises:
        ValueError: A setting is out of its range, or a source has only one observation.

    Example:
        >>> import optuna
        >>> from metatpe import MetaTPESampler, load_tasks
        >>> sources = load_tasks("sqlite:///studies.db", "resnet-*")
        >>> study = optuna.create_study(
        ...     directions=["minimize", "minimize"], sampler=MetaTPESampler(sources, seed=0)
        ... )
        >>> study.optimize(objective, n_trials=6)
    """

    def __init__(
        self,
        sources: Sequence[Study | Task] = (),
        *,
        n_startup_trials: int = N_STARTUP_TRIALS,
        start: StartName = "portfolio",
        n_ei_candidates: int = N_EI_CANDIDATES,
        gamma: float = GAMMA,
        eta: float = ETA,
        epsilon: float = 0.05,
        n_mc_samples: int = N_MC_SAMPLES,
        weights: Literal["similarity", "uniform"] = "similarity",
        search_space: Mapping[str, BaseDistribution] | None = None,
        seed: int | None = None,
    ) -> None:
        require_whole("n_ei_candidates", n_ei_candidates, 1)
        require_whole("n_mc_samples", n_mc_samples, 1)
        require("gamma", gamma, 0.0 < gamma < 1.0, "between 0 and 1")
        require("eta", eta, eta > 1.0 and math.isfinite(eta), "more than 1")
        require("epsilon", epsilon, 0.0 <= epsilon <= 1.0, "from 0 to 1")
        require_one_of("weights", weights, ("similarity", "uniform"))
        self._epsilon = epsilon
        self._settings = (gamma, eta, n_mc_samples, n_ei_candidates, weights == "uniform")
        super().__init__(
            sources,
            n_startup_trials=n_startup_trials,
            start=start,
            search_space=search_space,
            seed=seed,
        )

    @classmethod
    def as_published(cls, sources: Sequence[Study | Task] = (), **settings: Any) -> MetaTPESampler:
        """Return the method of the paper, without the rules that this library adds.

        The rules are those of `metatpe.samplers.guards.Rules`. What else differs are estimators of
        the same quantities: the bandwidths and the uniform component of the densities, the points
        at which densities are compared, the mean of importances over the tasks that have a
        parameter, choices that are sorted numbers, whose kernel is that of a grid, and, with three
        and more objectives, hypervolume instead of crowding distance.

        Args:
            sources: Past studies or tasks.
            settings: Those of `MetaTPESampler`.

        Example:
            >>> MetaTPESampler.as_published(seed=0)
            MetaTPESampler.as_published(0 sources, seed=0)
        """
        sampler = cls(sources, **{"start": "draw", **settings})
        sampler.rules = _NO_RULES
        return sampler

    @property
    def name(self) -> str:
        """What records call the sampler."""
        suffix = ".as_published" if self.rules == _NO_RULES else ""
        return f"{type(self).__name__}{suffix}"

    @property
    def _tpe(self) -> TPESteps:
        return TPESteps(*self._settings, rules=self.rules)

    def propose(self, moment: Moment, rng: np.random.Generator) -> Plan:
        """Choose a configuration: lines 11 to 21 of Algorithm 2.

        Lines 2 to 4 are `past.start.draw`, lines 7 to 10 `FirstTrials.plan`.
        """
        if rng.random() < self._epsilon:  # lines 17 and 18: epsilon-greedy
            return self.random(moment, "epsilon", "epsilon")
        if plan := self._restart(moment):  # rule `restart`
            return plan
        tpe, past = self._tpe, self.past_in(moment.space)
        densities = tpe.of_past(past)  # line 6: both densities of each past task, made once
        target = tpe.of_study(moment, densities)  # line 13: sort, split; rules `front`, `widths`
        weights, kept = tpe.weigh(  # line 16: Algorithm 1; rules `silence`, `trust`
            moment, target.good, densities, has_start=self.first_trials.has_past
        )
        used, reason = self._weights_used(moment, weights, len(target.good))  # rule `turns`
        X = tpe.candidates(moment, [target, *densities.tasks], used, rng=rng)  # lines 14, 15
        score = partial(densities.score, target, used, rng=rng)
        best = self.best_new(moment, X, score, moment.is_new)  # line 20; rule `new`
        return Plan(
            "acquisition",
            reason,
            moment.values(best),
            weights=dict(zip((TARGET, *past.names), weights.tolist(), strict=True)),
            kept=tuple(moment.space.names[j] for j in kept),
        )

    def propose_value(self, moment: Moment, rng: np.random.Generator) -> Any:
        """Choose a value for a parameter that the plan does not contain."""
        return self.propose(moment, rng).params[moment.space.names[0]]

    def _weights_used(self, moment: Moment, weights: Floats, n_good: int) -> tuple[Floats, Reason]:
        """Return the weights that are used for this choice, and why."""
        if len(weights) == 1:
            return weights, "no_past"
        if self._tpe.is_silent(n_good, has_start=self.first_trials.has_past):
            return weights, "silent"
        if weights[0] >= 1.0:
            return weights, "no_weight"
        if self._tpe.is_naive or not self.rules.turns:
            return weights, "weighed"
        done = moment.observations
        last = np.flatnonzero(done.turns)[-N_TURNS:]
        level = levels(done.losses[last], done.violation[last], done.lateness[last])
        chance = chance_of_the_past(level, done.turns[last])
        if self.rng(moment.trial, "turn").random() < chance:
            return weights, "weighed"
        return np.eye(1, len(weights))[0], "own"

    def _restart(self, moment: Moment) -> Plan | None:
        """Return a warm start from the past with negated losses if it is reversed, else None."""
        n, first = self.first_trials.n, self.first_trials.n_indices
        if (
            not self.rules.restart
            or not self.first_trials.has_past
            or self._tpe.is_naive
            or isinstance(moment, ValueMoment)
            or moment.is_enqueued
            or moment.attempt > 0
            or len(moment.observations.X) > N_RESTART * n
        ):
            return None
        past = self._tpe.of_past(self.past_in(moment.space))
        X, level = judged(moment, past)
        start = moment.observations.start[: len(level)]
        if not may_restart(level, start, first):
            return None
        if np.count_nonzero(start >= first) == n:  # a single one may have been luck
            self.warn_once(REVERSED)
        if sum(i >= first for i in moment.taken_starts) >= n:
            return None
        if not is_reversed(past.agreement(X, level)):
            return None
        numbered = enumerate(reversed_start(self._sources, n).configurations, start=first)
        return first_fitting(self, moment, numbered)
