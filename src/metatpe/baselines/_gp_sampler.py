"""What RGPE and TST-R share: Gaussian processes of all tasks, an acquisition, the search for it.

The adaptor (states, seeds, warm starts, records) is that of `MetaTPESampler`; this module decides
what a trial after the start is given. See `_transform` and `_gp` for the models, `_ensemble` for
the weights, `_ehvi` and `_parego` for the acquisitions, `_search` for their optimum.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial

from metatpe._history import History, Moment
from metatpe._record import TARGET, Plan
from metatpe.baselines._ehvi import Boxes
from metatpe.baselines._ensemble import (
    N_SAMPLES,
    Ensemble,
    discordant,
    n_pairs,
    sampled,
    sampled_left_out,
)
from metatpe.baselines._models import Models, PastModels, Target
from metatpe.baselines._parego import Scalarisation
from metatpe.baselines._search import candidates, climb
from metatpe.sampler import MetaTPESampler, _require
from metatpe.space import Floats, Ints, Mask, Space
from metatpe.tasks import Task

Acquisition = Literal["ehvi", "parego"]
_ACQUISITIONS = ("ehvi", "parego")
_N_CANDIDATES = 1000
_MAX_CACHED = 4  # spaces whose models of the past are kept


class TransferGPSampler(MetaTPESampler):
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
        _check_installed(type(self).__name__)
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

    def _forget(self) -> None:
        super()._forget()
        self._past_models: dict[tuple[Space, tuple[str, ...]], PastModels] = {}

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["_past_models"]
        return state

    def __str__(self) -> str:
        name = type(self).__name__
        return f"{name}({len(self._sources)} sources, {self._acquisition}, seed={self._seed})"

    @abstractmethod
    def _weigh(self, losses: Ints, n_pairs: int) -> Floats:  # (T, S) -> (T,)
        """Return the weights of the tasks from the pairs that they put in the wrong order."""

    @abstractmethod
    def _ensemble(self, tasks: Sequence[Models], weights: Floats) -> Ensemble:
        """Return how the tasks predict together."""

    def _acquired(
        self, moment: Moment, *, rng: np.random.Generator, may_repeat: bool = False
    ) -> Plan:
        """Return the configuration with the best acquisition, a new one where there is one.

        A parameter that stands alone is drawn at random, as Optuna's GPSampler does.
        """
        if may_repeat:
            return self._random(moment, "random")
        past = self._models(moment)
        target = Target.of(moment, past.encoder)
        weights = self._weights(target, past, self._rng(moment.trial, "weights"))
        tasks = [target.believing, *past.models]
        best = self._search(moment, target, past, self._ensemble(tasks, weights), rng)
        named = dict(zip((TARGET, *past.names), weights.tolist(), strict=True))
        return Plan("acquisition", moment.values(best), named)

    def _read(self, study: Study) -> tuple[History, list[FrozenTrial]]:
        history, trials = super()._read(study)
        history.objective_names = tuple(study.metric_names or ())
        return history, trials

    def _weights(self, target: Target, past: PastModels, rng: np.random.Generator) -> Floats:
        """Return the weights of the study and of the past tasks, in this order."""
        y, F = target.y, target.features
        samples = [sampled_left_out(target.models, N_SAMPLES, rng)]
        samples += [sampled(models, F, N_SAMPLES, rng) for models in past.models]
        return self._weigh(np.stack([discordant(s, y) for s in samples]), n_pairs(y))

    def _search(
        self,
        moment: Moment,
        target: Target,
        past: PastModels,
        ensemble: Ensemble,
        rng: np.random.Generator,
    ) -> Floats:  # (d,)
        """Return the new configuration with the best acquisition."""
        columns, encoder = moment.space.columns, past.encoder

        def score(X: Floats) -> Floats:
            return improvement(*ensemble.predict(encoder(X)))

        def is_open(X: Floats) -> Mask:
            is_as_fixed: Mask = (moment.with_fixed(X) == X).all(axis=1)
            return is_as_fixed & moment.is_new(X)

        improvement = self._improvement(ensemble.predict(target.reached)[0], rng)
        # Workers that collided would go on colliding; of fewer candidates they have other ones.
        n = _N_CANDIDATES // 4**moment.attempt
        X = np.vstack([candidates(columns, target.best, n, rng), past.best])
        X = moment.with_fixed(X)
        is_new = moment.is_new(X)
        X = X[is_new] if is_new.any() else self._new_at_random(moment, "acquisition")
        if moment.attempt:
            return np.asarray(X[np.argmax(score(X))])
        return climb(X, columns, score, is_open, rng)

    def _improvement(
        self, reached: Floats, rng: np.random.Generator
    ) -> Callable[[Floats, Floats], Floats]:
        """Return the acquisition over what was reached so far, (n, m)."""
        if not len(reached):
            reached = np.zeros((1, reached.shape[1]))  # what is average in the past
        if self._acquisition == "parego":
            return Scalarisation.of(reached, rng).log_improvement
        worst, best = reached.max(axis=0), reached.min(axis=0)
        return Boxes.of(reached, worst + 0.1 * (worst - best)).log_improvement

    def _models(self, moment: Moment) -> PastModels:
        """Return the models of the past tasks in the moment's space."""
        names = moment.history.objective_names
        key = (moment.space, names)
        past = self._past_models.pop(key, None) or PastModels(self._sources, moment.space, names)
        self._past_models[key] = past
        if len(self._past_models) > _MAX_CACHED:
            del self._past_models[next(iter(self._past_models))]
        return past


def _check_installed(name: str) -> None:
    for module in ("torch", "botorch"):
        if find_spec(module) is None:
            raise ImportError(f"{name} needs {module}, which is missing: pip install metatpe[gp]")
