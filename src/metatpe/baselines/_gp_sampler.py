"""What RGPE and TST-R share: Gaussian processes of all tasks, weighed by how well they rank.

See `_gp` for the models and the search, `_ensemble` for the weights, `_parego` for the acquisition
that is not the expected hypervolume improvement.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study

from metatpe._gp.models import Models, Observed, PastModels, fit_all
from metatpe._gp.sampler import Improvement, Surrogate, SurrogateSampler, or_average
from metatpe._history import Moment
from metatpe._record import TARGET
from metatpe.baselines._ensemble import (
    N_SAMPLES,
    Ensemble,
    discordant,
    n_pairs,
    sampled,
    sampled_left_out,
)
from metatpe.baselines._parego import Scalarisation
from metatpe.sampler import _require
from metatpe.space import Floats, Ints
from metatpe.tasks import Task

Acquisition = Literal["ehvi", "parego"]
_ACQUISITIONS = ("ehvi", "parego")


class TransferGPSampler(SurrogateSampler):
    """Base of the samplers whose surrogate is an ensemble of Gaussian processes."""

    def __init__(
        self,
        sources: Sequence[Study | Task] = (),
        *,
        acquisition: Acquisition = "ehvi",
        n_startup_trials: int = 5,
        warm_start: bool = True,
        search_space: Mapping[str, BaseDistribution] | None = None,
        seed: int | None = None,
    ) -> None:
        wanted = " or ".join(f'"{name}"' for name in _ACQUISITIONS)
        _require("acquisition", acquisition, acquisition in _ACQUISITIONS, wanted)
        self._acquisition = acquisition
        super().__init__(
            sources,
            n_startup_trials=n_startup_trials,
            epsilon=0.0,
            warm_start=warm_start,
            search_space=search_space,
            seed=seed,
        )

    def __str__(self) -> str:
        name = type(self).__name__
        return f"{name}({len(self._sources)} sources, {self._acquisition}, seed={self._seed})"

    @abstractmethod
    def _weigh(self, losses: Ints, n_pairs: int) -> Floats:  # (T, S) -> (T,)
        """Return the weights of the tasks from the pairs that they put in the wrong order."""

    @abstractmethod
    def _ensemble(self, tasks: Sequence[Models], weights: Floats) -> Ensemble:
        """Return how the tasks predict together."""

    def _surrogate(self, moment: Moment, past: PastModels) -> Surrogate:
        study, encoder = Observed.of(moment, past.encoder), past.encoder
        own = fit_all(encoder, study.X, study.y)
        everyone = past.models(range(len(past.names)))
        rng = self._rng(moment.trial, "weights")
        weights = self._weights(study, own, everyone, rng)
        believing = [m.believing(study.running) for m in own] if len(study.running) else own
        ensemble = self._ensemble([believing, *everyone], weights)
        return Surrogate(
            predict=ensemble.predict,
            reached=ensemble.predict(study.reached)[0],
            starts=study.front,
            past_best=past.best(range(len(past.names))),
            branches=study.branches,
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
        if self._acquisition == "parego":
            return Scalarisation.of(or_average(reached), rng).log_improvement
        return super()._improvement(reached, rng)
