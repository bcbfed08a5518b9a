"""The steps of Algorithm 2 on a moment: densities, task weights, candidates, the best ratio.

`MetaTPESampler` takes them one by one; `TransferSampler` takes them where its models are in doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metatpe.past.densities import PastDensities
from metatpe.past.known import Past
from metatpe.samplers.guards import MIN_GOOD, N_JUDGED, Rules, fewer, trust
from metatpe.space import Floats, Ints
from metatpe.study.moment import Moment
from metatpe.tpe.acquisition import MAX_OWN, Densities, draw_candidates
from metatpe.tpe.importance import ETA
from metatpe.tpe.kde import Parzen, bandwidths
from metatpe.tpe.kernel import N_MC_SAMPLES, task_weights
from metatpe.tpe.pareto import GAMMA, split

N_EI_CANDIDATES = 100
_ALL_RULES = Rules()


@dataclass(frozen=True)
class TPESteps:
    """The control parameters of the paper, and the steps that depend on them."""

    gamma: float = GAMMA
    eta: float = ETA
    n_mc_samples: int = N_MC_SAMPLES
    n_candidates: int = N_EI_CANDIDATES
    is_naive: bool = False
    rules: Rules = _ALL_RULES  # pass those of the sampler

    def of_past(self, past: Past) -> PastDensities:
        """Return both densities of each past task, made once."""
        return past.densities(self.gamma, keeps_front=self.rules.front)

    def of_study(self, moment: Moment, past: PastDensities) -> Densities:
        """Sort the observations; return the densities of the good ones and of the bad ones.

        What is being evaluated stands on the bad side.
        """
        done, columns = moment.observations, moment.space.columns
        is_good = split(
            done.losses,
            done.violation,
            self.gamma,
            done.lateness,
            keeps_front=self.rules.front,
        )
        bad, is_own = done.X[~is_good], done.start[~is_good] < 0
        if len(moment.running):
            bad = np.vstack([bad, moment.running])
            is_own = np.append(is_own, ~moment.is_running_start)
        good = past.good_of_study(done.X[is_good])
        # Rule `widths`: bandwidths come from the bad observations that were not warm starts.
        if not self.rules.widths or len(bad) > MAX_OWN or not is_own.any():
            return Densities(good, Parzen.of_some(columns, bad, MAX_OWN))
        return Densities(good, Parzen(columns, bad, bandwidths(columns, bad[is_own])))

    def is_silent(self, n_good: int, *, has_start: bool) -> bool:
        """Return whether there are too few good observations for a comparison (rule `silence`)."""
        return self.rules.silence and has_start and not self.is_naive and 0 < n_good < MIN_GOOD

    def weigh(
        self, moment: Moment, good: Parzen, past: PastDensities, *, has_start: bool
    ) -> tuple[Floats, tuple[int, ...]]:  # (1 + M,), indices of columns
        """Return the task kernel (Algorithm 1), and the columns that it was measured on.

        Args:
            moment: What the study knows.
            good: The density of its good observations.
            past: Those of the past tasks.
            has_start: Whether the sampler gives warm starts.
        """
        n_past = len(past.tasks)
        if self.is_naive:
            return task_weights(np.ones(n_past)), ()
        if self.is_silent(len(good), has_start=has_start):
            return task_weights(np.zeros(n_past)), ()
        s, kept = past.similarities(
            good, eta=self.eta, n_mc_samples=self.n_mc_samples, keeps_one=self.rules.column
        )
        if self.rules.trust and n_past:
            s = s * trust(past.agreement(*judged(moment, past)))
        return task_weights(s), kept

    def candidates(
        self,
        moment: Moment,
        tasks: Sequence[Densities],
        weights: Floats,
        *,
        rng: np.random.Generator,
    ) -> Floats:  # (C, d)
        """Draw candidates from the good densities of the tasks."""
        n = self.n_candidates
        if self.rules.fewer and moment.attempt > 0:
            n = fewer(n, moment.attempt)
        X = draw_candidates(
            tasks,
            weights,
            n,
            rng=rng,
            in_proportion=self.rules.proportion,
            jointly=not self.rules.marginals,
        )
        return moment.with_fixed(X)


def judged(moment: Moment, past: PastDensities) -> tuple[Floats, Ints]:  # (n, d), (n,)
    """Return the observations that past tasks are judged by, and the level of each."""
    done, some = moment.observations, slice(N_JUDGED)
    return done.X[some], past.levels(done.losses[some], done.violation[some], done.lateness[some])
