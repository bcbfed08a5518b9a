"""What samplers with a model of the objectives share: an acquisition, and the search for it.

The adaptor (states, seeds, warm starts, records) is that of `MetaTPESampler`; this module decides
what a trial after the start is given. See `transform` and `process` for the models, `ehvi` for the
acquisition, `search` for its optimum.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial

from metatpe._gp.branches import Branches
from metatpe._gp.ehvi import Boxes
from metatpe._gp.models import PastModels
from metatpe._gp.search import candidates, climb
from metatpe._history import History, Moment
from metatpe._record import Plan
from metatpe.sampler import IsNew, MetaTPESampler
from metatpe.space import Floats, Mask, Space

Improvement = Callable[[Floats, Floats], Floats]  # means and sds, (C, m) each -> (C,)
_N_CANDIDATES = 1000
_MAX_CACHED = 4  # spaces whose models of the past are kept


@dataclass(frozen=True, eq=False)
class Surrogate:
    """What a sampler believes of the objectives at one moment, all of them minimised."""

    predict: Callable[[Floats], tuple[Floats, Floats]]  # (C, p) -> means, sds, (C, m) each
    reached: Floats  # (n, m), what has been reached
    starts: Floats  # (k, d), good configurations, to look for better ones nearby
    past_best: Floats  # (k, d), what was good in the past
    branches: Branches  # what a configuration will use
    weights: Mapping[str, float]  # of the study and the past tasks, for the record
    doubt: float = 0.0  # the probability with which densities choose instead


class SurrogateSampler(MetaTPESampler):
    """Base of the samplers that model the objectives and optimise an acquisition."""

    def _forget(self) -> None:
        super()._forget()
        self._past_models: dict[tuple[Space, tuple[str, ...]], PastModels] = {}

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["_past_models"]
        return state

    @abstractmethod
    def _surrogate(self, moment: Moment, past: PastModels) -> Surrogate:
        """Return the model of a moment."""

    def _acquired(
        self, moment: Moment, *, rng: np.random.Generator, may_repeat: bool = False
    ) -> Plan:
        """Return the configuration with the best acquisition, a new one where there is one.

        A parameter that stands alone is drawn at random, as Optuna's GPSampler does.
        """
        if may_repeat:
            return self._random(moment, "random")
        past = self._models(moment)
        surrogate = self._surrogate(moment, past)

        def is_new(X: Floats) -> Mask:  # (C, d) -> (C,)
            return moment.is_new(X) & surrogate.branches.is_new(X)

        other = self._rng(moment.trial, "densities")
        if other.random() < surrogate.doubt:
            plan = self._by_densities(moment, is_new, rng=other)
            return Plan("acquisition", plan.params, surrogate.weights)
        improvement = self._improvement(surrogate.reached, rng)

        def score(X: Floats) -> Floats:  # (C, d) -> (C,)
            return improvement(*surrogate.predict(past.encoder(surrogate.branches(X))))

        best = self._search(moment, surrogate, score, is_new, rng)
        return Plan("acquisition", moment.values(best), surrogate.weights)

    def _read(self, study: Study) -> tuple[History, list[FrozenTrial]]:
        history, trials = super()._read(study)
        # Hyperband's view of a study has no names; of one objective they would say nothing anyway.
        history.objective_names = tuple(getattr(study, "metric_names", None) or ())
        return history, trials

    def _search(
        self,
        moment: Moment,
        surrogate: Surrogate,
        score: Callable[[Floats], Floats],
        is_new: IsNew,
        rng: np.random.Generator,
    ) -> Floats:  # (d,)
        """Return the new configuration with the best score."""
        columns = moment.space.columns

        def is_open(X: Floats) -> Mask:  # (C, d) -> (C,)
            is_as_fixed: Mask = (moment.with_fixed(X) == X).all(axis=1)
            return is_as_fixed & is_new(X)

        # Workers that collided would go on colliding; of fewer candidates they have other ones.
        n = _N_CANDIDATES // 4**moment.attempt
        X = np.vstack([candidates(columns, surrogate.starts, n, rng), surrogate.past_best])
        X = self._only_new(moment, moment.with_fixed(X), is_new)
        if moment.attempt:
            return np.asarray(X[np.argmax(score(X))])
        return climb(X, columns, score, is_open, rng)

    def _improvement(self, reached: Floats, rng: np.random.Generator) -> Improvement:
        """Return the acquisition over what was reached so far, (n, m)."""
        reached = or_average(reached)
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


def or_average(reached: Floats) -> Floats:  # (n, m)
    """Return what was reached, or what is average in the past where nothing was."""
    return reached if len(reached) else np.zeros((1, reached.shape[1]))
