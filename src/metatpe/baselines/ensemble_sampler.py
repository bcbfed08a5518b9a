"""What RGPE and TST-R share: Gaussian processes of all tasks, weighted by how well they rank.

See `ensemble` for the weights, `parego` for the acquisition that is not the expected hypervolume
improvement.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study

from metatpe.baselines.ensemble import (
    N_SAMPLES,
    Ensemble,
    discordant,
    n_pairs,
    sampled,
    sampled_left_out,
)
from metatpe.baselines.parego import Scalarisation
from metatpe.gp.models import Models, Observed, fit_all
from metatpe.past.task import Task
from metatpe.samplers.base import N_STARTUP_TRIALS, PastSampler, StartName, require_one_of
from metatpe.samplers.surrogate import (
    Improvement,
    Surrogate,
    best_configuration,
    expected_improvement,
    observed,
    or_average,
)
from metatpe.space import Floats, Ints
from metatpe.study.moment import Moment
from metatpe.study.record import TARGET, Plan
from metatpe.words import counted

Acquisition = Literal["ehvi", "parego"]


class EnsembleSampler(PastSampler):
    """Base of the samplers whose surrogate is an ensemble of Gaussian processes."""

    def __init__(
        self,
        sources: Sequence[Study | Task] = (),
        *,
        acquisition: Acquisition = "ehvi",
        n_startup_trials: int = N_STARTUP_TRIALS,
        start: StartName = "portfolio",
        search_space: Mapping[str, BaseDistribution] | None = None,
        seed: int | None = None,
    ) -> None:
        require_one_of("acquisition", acquisition, ("ehvi", "parego"))
        self._acquisition = acquisition
        super().__init__(
            sources,
            n_startup_trials=n_startup_trials,
            start=start,
            search_space=search_space,
            seed=seed,
        )

    def __repr__(self) -> str:
        sources = counted(len(self._sources), "source")
        return f"{self.name}({sources}, {self._acquisition}, seed={self._seed})"

    @abstractmethod
    def _weigh(self, losses: Ints, n_pairs: int) -> Floats:  # (T, S) -> (T,)
        """Return the weights of the tasks from the pairs that they put in the wrong order."""

    @abstractmethod
    def _ensemble(self, tasks: Sequence[Models], weights: Floats) -> Ensemble:
        """Return how the tasks predict together."""

    def propose(self, moment: Moment, rng: np.random.Generator) -> Plan:
        """Choose a configuration once the start-up trials are done."""
        rng.random()  # MetaTPESampler's epsilon; without it, stored runs would differ
        past = self.past_in(moment.space)
        models = past.models(moment.objective_names)
        every = range(len(past.names))
        study = observed(moment, models.encoder)
        own = fit_all(models.encoder, study.X, study.y)
        weights = self._weights(study, own, models.of(every), self.rng(moment.trial, "weights"))
        if len(study.running):
            own = [model.believing(study.running) for model in own]
        ensemble = self._ensemble([own, *models.of(every)], weights)
        surrogate = Surrogate(
            predict=ensemble.predict,
            encoder=models.encoder,
            branches=study.branches,
            reached=ensemble.predict(study.reached_features)[0],
            front=study.front,
            past_best=models.best(every),
        )
        improvement = self._improvement(surrogate.reached, rng)
        x = best_configuration(self, moment, surrogate, lambda _: improvement, rng)
        return Plan(
            "acquisition",
            "weighed" if past.names else "no_past",
            moment.values(x),
            weights=dict(zip((TARGET, *past.names), weights.tolist(), strict=True)),
        )

    def _weights(
        self, study: Observed, own: Models, past: Sequence[Models], rng: np.random.Generator
    ) -> Floats:
        """Return the weights of the study and of the past tasks, in this order."""
        samples = [sampled_left_out(own, N_SAMPLES, rng)]
        samples += [sampled(models, study.features, N_SAMPLES, rng) for models in past]
        losses = np.stack([discordant(s, study.y) for s in samples])
        return self._weigh(losses, n_pairs(study.y))

    def _improvement(self, reached: Floats, rng: np.random.Generator) -> Improvement:
        """Return the acquisition over what was reached so far, (n, m)."""
        if self._acquisition == "parego":
            return Scalarisation.of(or_average(reached), rng).log_improvement
        return expected_improvement(reached)
