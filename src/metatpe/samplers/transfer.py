"""TransferSampler: a Gaussian process of the study, informed by models of past studies.

For evaluations that take minutes: it uses each of them better than densities can, and takes tenths
of a second to suggest the next. See `gp.informed` for the model, `gp.transform` for the scales,
`gp.ehvi` for the acquisition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study

from metatpe.gp.informed import InformedProcess, inform
from metatpe.gp.models import Observed
from metatpe.gp.plateaus import Plateaus
from metatpe.past.known import Past
from metatpe.past.models import PastModels
from metatpe.past.task import Task
from metatpe.samplers.base import N_STARTUP_TRIALS, PastSampler, StartName
from metatpe.samplers.densities import TPESteps, judged
from metatpe.samplers.surrogate import (
    Surrogate,
    best_configuration,
    expected_improvement,
    is_new_in,
    observed,
)
from metatpe.space import Floats, Ints
from metatpe.study.moment import Moment
from metatpe.study.record import TARGET, Plan, Reason
from metatpe.tpe.ranking import mid_ranks, rank_correlation

MAX_INFORMING = 10  # past tasks that inform at one time
# Observations until which the model makes every choice, informed by the past. Afterwards the past
# informs one of two, by chance (rule `alternate`): a model that the past explains well is
# overconfident where it has no observations. And densities choose where the model orders the
# trials badly (rule `densities`): the improvement that it expects of a noisy objective would keep
# the search at that end of the front.
_N_LED = 50


class TransferSampler(PastSampler):
    """Sampler for expensive evaluations that learns from past studies.

    The objectives of the study are modelled by Gaussian processes, whose mean combines the
    predictions of models of the past studies. The coefficient of each past study is updated with
    every evaluation: that of an unrelated past study moves towards zero, and that of a reversed
    one becomes negative. The next configuration is the one with the largest expected improvement
    of the hypervolume of the Pareto front (with one objective: of the best value).

    After fifty evaluations, half of the configurations are chosen without past studies, so that
    the search also explores regions where these are wrong. The worse the model orders the
    trials, for example because of noise, the more often the densities of `MetaTPESampler` choose.

    Warm starts, seeds, constraints, parallel workers and records are those of `MetaTPESampler`,
    and no configuration is suggested twice as long as there are new ones. A weight in
    `transfer_history` is the share of a past study in the spread of the predictions. A trial that
    `TransferPruner` stopped counts with the value that it was expected to reach; infeasible and
    other pruned trials count as the worst. A parameter that no earlier trial has used is drawn at
    random.

    Args:
        sources: Past studies or tasks (`load_tasks` reads them from a storage). Their spaces may
            differ from the one of the new study; they need the same number of objectives, which
            are matched by name if the study has the same names, otherwise by order. If there are
            more than ten, the model uses the ten that order the study's trials best.
        n_startup_trials: The number of start-up trials.
        start: What the first trials evaluate: "portfolio" for configurations that together do
            well on the past studies (see `portfolio`), "draw" for the best ones of each in random
            order, or "random". Without sources they are always random.
        search_space: The parameters that the objective will ask for, so that the first trials can
            use them; by default they are learned from the trials.
        seed: Makes the suggestions reproducible (not with ``n_jobs > 1``, as elsewhere in Optuna).

    Raises:
        ValueError: A setting is out of its range, or a source has only one observation.

    Example:
        >>> import optuna
        >>> from metatpe import TransferSampler, load_tasks
        >>> sources = load_tasks("sqlite:///studies.db", "resnet-*")
        >>> study = optuna.create_study(
        ...     directions=["minimize", "minimize"], sampler=TransferSampler(sources, seed=0)
        ... )
        >>> study.optimize(objective, n_trials=6)
    """

    def __init__(
        self,
        sources: Sequence[Study | Task] = (),
        *,
        n_startup_trials: int = N_STARTUP_TRIALS,
        start: StartName = "portfolio",
        search_space: Mapping[str, BaseDistribution] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            sources,
            n_startup_trials=n_startup_trials,
            start=start,
            search_space=search_space,
            seed=seed,
        )

    def propose(self, moment: Moment, rng: np.random.Generator) -> Plan:
        """Choose a configuration once the start-up trials are done."""
        rng.random()  # MetaTPESampler's epsilon; without it, stored runs would differ
        past = self.past_in(moment.space)
        models, is_own = past.models(moment.objective_names), self._is_without_past(moment, past)
        chosen = np.arange(0) if is_own else self._chosen(moment, past)
        study = observed(moment, models.encoder)
        # Trials that start before the next result, and a trial that chooses again, share the fit.
        key = (moment.space, moment.objective_names, chosen.tobytes(), study.key)
        fitted = self.cached_fit(key, lambda: _fitted(study, models, chosen))
        reason: Reason = "own" if is_own else "weighed" if past.names else "no_past"
        weights = {} if is_own else _weights(fitted, past.names, chosen)
        if (coin := self.rng(moment.trial, "densities")).random() < self._doubt(fitted):
            return self._by_densities(moment, past, study, is_own, coin)
        surrogate = _surrogate(study, models, chosen, fitted)
        if self.rules.plateaus:
            surrogate = replace(surrogate, plateaus=_plateaus(study, fitted))
        acquisition = partial(expected_improvement, surrogate.reached)
        x = best_configuration(self, moment, surrogate, acquisition, rng)
        return Plan("acquisition", reason, moment.values(x), weights)

    def _is_without_past(self, moment: Moment, past: Past) -> bool:
        """Return whether the study chooses alone, without the past."""
        if not self.rules.alternate or len(moment.observations.X) < _N_LED or not past.names:
            return False
        return self.rng(moment.trial, "turn").random() < 0.5

    def _chosen(self, moment: Moment, past: Past) -> Ints:
        """Return the past tasks that inform: of many those that rank the study's trials best."""
        if len(past.names) <= MAX_INFORMING or not self.rules.ten:
            return np.arange(len(past.names))
        densities = TPESteps(rules=self.rules).of_past(past)
        agreement = densities.agreement(*judged(moment, densities))
        return np.sort(np.argsort(-agreement, kind="stable")[:MAX_INFORMING])

    def _doubt(self, models: Sequence[InformedProcess]) -> float:
        """Return the probability with which densities choose instead of the models.

        1 minus the rank correlation of the objective that is predicted worst. One that is the same
        everywhere needs no order. Where all of them are, as while no trial is feasible, the models
        know nothing and would go from corner to corner, so densities always choose.
        """
        if (n := len(models[0].y)) < 2:
            return 0.0
        varied = [model for model in models if np.ptp(model.y) > 0.0]
        if not varied:
            return 1.0
        if n < _N_LED or not self.rules.densities:
            return 0.0
        return 1.0 - max(0.0, min(map(_order, varied)))

    def _by_densities(
        self, moment: Moment, past: Past, study: Observed, is_own: bool, rng: np.random.Generator
    ) -> Plan:
        """Choose the candidate with the best ratio of densities, with or without the past."""
        tpe = TPESteps(rules=self.rules)
        densities = tpe.of_past(past)
        target = tpe.of_study(moment, densities)
        has_start = self.first_trials.has_past
        weights, _ = tpe.weigh(moment, target.good, densities, has_start=has_start)
        if is_own:
            weights = np.eye(1, len(weights))[0]
        X = tpe.candidates(moment, [target, *densities.tasks], weights, rng=rng)
        score = partial(densities.score, target, weights, rng=rng)
        best = self.best_new(moment, X, score, is_new_in(moment, study.branches))
        named = dict(zip((TARGET, *past.names), weights.tolist(), strict=True))
        return Plan("acquisition", "densities", moment.values(best), {} if is_own else named)


def _surrogate(
    study: Observed, past: PastModels, chosen: Ints, models: Sequence[InformedProcess]
) -> Surrogate:
    """Return the models, conditioned on their own predictions for the running trials."""
    y = np.stack([model.y for model in models], axis=1)
    if len(study.running):
        models = [model.believing(study.running) for model in models]
    return Surrogate(
        predict=lambda features: _predictions(models, features),
        encoder=past.encoder,
        branches=study.branches,
        # What was observed, not what is predicted for it: a front of means hides the luck of
        # single evaluations, and the search stays near it.
        reached=np.vstack([y[study.is_valid], _predictions(models, study.running)[0]]),
        front=study.front,
        past_best=past.best(chosen),
    )


def _plateaus(study: Observed, models: Sequence[InformedProcess]) -> Plateaus:
    """Return where the losses of all objectives are the same."""
    # The mean of the squared distances by the length scales of each objective.
    scale = np.sqrt(np.mean([model.settings.scale**2 for model in models], axis=0))
    known = study.is_valid & study.is_seen  # expectations are cut off at the best loss
    return Plateaus.of(study.features[known], study.losses[known], scale)


def _fitted(study: Observed, past: PastModels, chosen: Ints) -> list[InformedProcess]:
    """Return the model of each objective, on the scale that suits it."""
    by_task, owner = past.of(chosen), past.encoder.owner
    found = []
    for j, scales in enumerate(study.scales):
        own = [models[j] for models in by_task]
        known = study.features, scales, owner, study.is_used, study.variances[j]
        found.append(_best_on_its_scale(inform(own, *known)))
    return found


def _best_on_its_scale(models: Sequence[InformedProcess]) -> InformedProcess:
    """Return the one of models on different scales that ranks its observations best.

    Each observation as the others predict it; the first model unless another is clearly better, by
    more than a standard error of Fisher's z. The shape of the losses says on which scale they look
    normal (see `transform`), not on which one they are smooth: the logarithm of a quadratic bowl
    looks normal, and has a spike where the search has to go.
    """
    first, n = models[0], len(models[0].y)
    if n < 5 or len(models) == 1:
        return first
    left_out = np.stack([model.left_out_mean for model in models])
    z = np.arctanh(np.clip(rank_correlation(left_out, first.y), -0.9999, 0.9999))
    best = int(np.argmax(z))
    return models[best] if z[best] > z[0] + 1.0 / np.sqrt(n - 3) else first


def _order(model: InformedProcess) -> float:
    """Return the rank correlation of observations with what the others predict of them.

    Relative to the largest value that ties allow where all predictions differ.
    """
    rho = rank_correlation(model.left_out_mean[None], model.y)[0]
    return float(rho * np.arange(len(model.y)).std() / mid_ranks(model.y).std())


def _weights(
    models: Sequence[InformedProcess], names: Sequence[str], chosen: Ints
) -> dict[str, float]:
    """Return the shares of the study and of all past tasks in what the models predict."""
    shares = np.mean([model.shares for model in models], axis=0)
    weights = np.zeros(1 + len(names))
    weights[0], weights[1:][chosen] = shares[0], shares[1:]
    return dict(zip((TARGET, *names), weights.tolist(), strict=True))


def _predictions(
    models: Sequence[InformedProcess], features: Floats
) -> tuple[Floats, Floats]:  # (C, m), (C, m)
    """Return the means and the standard deviations of all objectives."""
    parts = [model.predict(features) for model in models]
    mean, variance = (np.stack(side, axis=1) for side in zip(*parts, strict=True))
    return mean, np.sqrt(variance)
