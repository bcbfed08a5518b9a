r"""What the next trials of a study are expected to reach.

The next configurations are those that the sampler would choose, see `tuning.batch`. One Gaussian
process per objective, informed by the past studies that were borrowed from (`gp.informed`),
predicts their values: on a log scale where the values span decades, standardised.

    z_c ~ N(mean(x_c), sd(x_c)^2 + noise)      what configuration c will return
    volume(Y)                                  the hypervolume of values Y up to the worst seen
    last = 1 - volume(all but the last N trials) / volume(all)
    next = volume(all, z_1 ... z_N) / volume(all) - 1,     a draw of it for each draw of z

z_c are drawn independently of each other. In truth they are correlated, so that the largest of
them is a little too good on average.

Shapes: losses (n, m) on these scales, minimised; configurations (N, d).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import moocore
import numpy as np
from optuna.study import Study, StudyDirection

from metatpe.gp.informed import InformedProcess, inform
from metatpe.gp.models import thinned
from metatpe.past.known import Past
from metatpe.past.task import Task
from metatpe.space import Floats, Mask, Space
from metatpe.study.trials import signs_of, used_distributions
from metatpe.tpe.hypervolume import running_hypervolume
from metatpe.tpe.pareto import order, ranks
from metatpe.tpe.ranking import rank_correlation
from metatpe.tuning.batch import Choice, next_batch
from metatpe.tuning.setup import SamplerName
from metatpe.viz.runs import in_logs
from metatpe.viz.ticks import spans_decades

N_SHOWN = 3  # configurations
N_NEXT = 10  # trials that the gain is estimated for
MIN_TRIALS = N_NEXT + 5  # finished, for a model and for the last ten
_LARGEST = 1e150  # losses whose squares are still numbers
_MAX_OBJECTIVES = 4  # more take long
_MAX_PAST = 10  # past studies that inform the model
_N_DRAWS = 400
_Z = 1.645  # of a 90 % interval


class Expected(NamedTuple):
    """A number that is not known yet, with the 90 % interval of the model."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Proposal:
    """A configuration to evaluate next, and what it is expected to return."""

    choice: Choice
    values: tuple[Expected, ...]  # one per objective, in its units; the low end first


@dataclass(frozen=True)
class Forecast:
    """What the next trials are expected to reach."""

    sampler: SamplerName
    proposals: Sequence[Proposal]  # `N_SHOWN` of them
    correlation: Sequence[float]  # (m,) of each trial with what the model of the others predicts
    last: float  # by which part the last `N_NEXT` trials have enlarged the hypervolume
    next: Expected  # by which part the next ones will


def forecast(study: Study, tasks: Sequence[Task], sampler: SamplerName) -> Forecast | None:
    """Return what the next trials of a study are expected to reach; None where it is too early.

    Args:
        study: The study.
        tasks: The past tasks that were borrowed from, the most influential first.
        sampler: Which sampler chooses.
    """
    own = Task.from_study(study)
    is_done = np.isfinite(own.losses).all(axis=1) & (own.violation <= 0.0)
    space = Space(used_distributions(study.get_trials(deepcopy=False)))
    if is_done.sum() < MIN_TRIALS or len(study.directions) > _MAX_OBJECTIVES or not len(space):
        return None
    if np.abs(own.losses[is_done]).max() > _LARGEST:
        return None
    try:
        choices = next_batch(study, tasks, N_NEXT, sampler=sampler, seed=0)
    except ValueError:  # nothing is left to choose from
        return None
    scales = _Scales.of(own.losses[is_done], study.directions)
    observed = scales.scaled(own.losses[is_done])
    X = own.encode_in(space).X[is_done]
    past = Past(tasks[:_MAX_PAST], space)
    models = _fitted(past, tuple(study.metric_names or ()), X, observed)
    mean, sd = _predicted(models, past, space.encode([choice.params for choice in choices]))
    return Forecast(
        sampler=sampler,
        proposals=[
            Proposal(choice, scales.expected(mean[c], sd[c]))
            for c, choice in enumerate(choices[:N_SHOWN])
        ],
        correlation=[float(rank_correlation(m.left_out_mean[None], m.y)[0]) for m in models],
        last=_last_gain(observed),
        next=_next_gain(observed, mean, sd),
    )


@dataclass(frozen=True, eq=False)
class _Scales:
    """The scale of each objective on which it is modelled."""

    signs: Floats  # (m,), -1 where an objective is maximised
    is_log: Mask  # (m,)
    center: Floats  # (m,)
    spread: Floats  # (m,)

    @classmethod
    def of(cls, losses: Floats, directions: Sequence[StudyDirection]) -> _Scales:
        """Return the scales that suit the losses (n, m) of a study."""
        signs = signs_of(directions)
        is_log = np.array([spans_decades(values) for values in (losses * signs).T])
        scaled = in_logs(losses, signs, is_log)
        spread = scaled.std(axis=0)
        return cls(signs, is_log, scaled.mean(axis=0), np.where(spread > 0.0, spread, 1.0))

    def scaled(self, losses: Floats) -> Floats:  # (n, m) -> (n, m)
        """Return losses as the models see them."""
        return (in_logs(losses, self.signs, self.is_log) - self.center) / self.spread

    def expected(self, mean: Floats, sd: Floats) -> tuple[Expected, ...]:  # (m,), (m,)
        """Return a prediction in the units of the objectives."""
        ends = [mean + z * sd for z in (-_Z, 0.0, _Z)]
        found = np.sort([self._values(end) for end in ends], axis=0)
        return tuple(Expected(*column) for column in found.T.tolist())

    def _values(self, scaled: Floats) -> Floats:  # (m,)
        plain = self.signs * (scaled * self.spread + self.center)
        values: Floats = np.where(self.is_log, 10.0 ** np.where(self.is_log, plain, 0.0), plain)
        return values


def _fitted(
    past: Past, names: tuple[str, ...], X: Floats, y: Floats
) -> list[InformedProcess]:  # (n, d), (n, m)
    """Return the model of each objective."""
    of_past = past.models(names)
    rows = np.sort(thinned(order(y, np.zeros(len(y)))))  # in the order of the trials
    features = of_past.encoder(X[rows])
    by_task = of_past.of(range(len(past.names)))
    is_used = ~np.asarray(np.isnan(X).all(axis=0))
    return [
        inform([task[j] for task in by_task], features, [own], of_past.encoder.owner, is_used)[0]
        for j, own in enumerate(y[rows].T)
    ]


def _predicted(
    models: Sequence[InformedProcess], past: Past, X: Floats
) -> tuple[Floats, Floats]:  # (N, d) -> (N, m), (N, m)
    """Return the mean and the deviation of what configurations will return, noise included."""
    features = past.models(()).encoder(X)
    found = [model.predict(features) for model in models]
    noise = [model.settings.amplitude * model.settings.noise for model in models]
    mean = np.stack([mean for mean, _ in found], axis=1)
    sd = np.sqrt(np.stack([variance for _, variance in found], axis=1) + noise)
    return mean, sd * [_inflation(model) for model in models]


def _inflation(model: InformedProcess) -> float:
    """Return the factor by which deviations are too small, judged by the later half of the trials.

    So that 90 % of them lie in the 90 % interval that the trials before them predict, at least 1.
    Trials that a sampler chose are often worse than predicted, since it chooses where the
    prediction is too good.
    """
    # With C = L L^T in the order of the trials, L^-1 (y - prior mean) are the errors of
    # predictions from the trials before, in units of their deviations.
    errors = model.factor.T @ model.alpha
    later = np.abs(errors[len(errors) // 2 :])
    return max(1.0, float(np.quantile(later, 0.9)) / _Z)


def _last_gain(observed: Floats) -> float:  # (n, m)
    volumes = running_hypervolume(observed, observed.max(axis=0))
    return float(1.0 - volumes[-1 - N_NEXT] / volumes[-1]) if volumes[-1] > 0.0 else 0.0


def _next_gain(observed: Floats, mean: Floats, sd: Floats) -> Expected:  # (n, m), (N, m), (N, m)
    worst = observed.max(axis=0)
    now = running_hypervolume(observed, worst)[-1]
    front = observed[ranks(observed) == 0]
    rng = np.random.default_rng(0)
    draws = mean + sd * rng.standard_normal((_N_DRAWS, *mean.shape))
    volume = moocore.Hypervolume(ref=worst)
    after = np.array([volume(np.minimum(np.vstack([front, draw]), worst)) for draw in draws])
    gains = after / now - 1.0 if now > 0.0 else np.zeros(len(after))
    low, high = np.quantile(gains, (0.05, 0.95))
    return Expected(float(low), float(gains.mean()), float(high))
