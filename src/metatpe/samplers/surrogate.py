"""The search for the best acquisition of a model, which several samplers share.

See `gp.process` and `gp.informed` for models, `gp.ehvi` for the acquisition, `gp.search` for its
optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metatpe.gp.branches import Branches
from metatpe.gp.ehvi import Boxes
from metatpe.gp.models import Observed
from metatpe.gp.plateaus import Plateaus
from metatpe.gp.process import Encoder
from metatpe.gp.search import candidates, climb
from metatpe.samplers.base import PastSampler
from metatpe.samplers.guards import fewer
from metatpe.space import Floats, Mask
from metatpe.study.moment import Moment
from metatpe.tpe.pareto import ranks

Improvement = Callable[[Floats, Floats], Floats]  # means and sds, (C, m) each -> (C,)
Acquisition = Callable[[Floats], Improvement]  # means (C, m) of all candidates -> how to score
_N_CANDIDATES = 1000


@dataclass(frozen=True, eq=False)
class Surrogate:
    """What a sampler predicts for the objectives at one moment, all of them minimised."""

    predict: Callable[[Floats], tuple[Floats, Floats]]  # (C, p) -> means, sds, (C, m) each
    encoder: Encoder  # configurations -> features
    branches: Branches  # what a configuration will use
    reached: Floats  # (n, m), what has been reached
    front: Floats  # (k, d), the best configurations of the study; the search looks near them
    past_best: Floats  # (k, d), good configurations of the past
    plateaus: Plateaus | None = None  # where nothing new is expected


def observed(moment: Moment, encoder: Encoder) -> Observed:
    """Return the observations of a moment as models see them."""
    done = moment.observations
    return Observed.of(
        moment.space.columns,
        encoder,
        done.X,
        done.losses,
        done.violation,
        moment.running,
        done.deviation,
    )


def is_new_in(moment: Moment, branches: Branches) -> Callable[[Floats], Mask]:
    """Return the test for configurations that are new, also in the parameters they will use."""
    return lambda X: moment.is_new(X) & branches.is_new(X)


def best_configuration(
    sampler: PastSampler,
    moment: Moment,
    surrogate: Surrogate,
    acquisition: Acquisition,
    rng: np.random.Generator,
) -> Floats:  # (d,)
    """Return the new configuration with the best acquisition."""
    columns, is_other = moment.space.columns, is_new_in(moment, surrogate.branches)

    def features(X: Floats) -> Floats:  # (C, d) -> (C, p)
        return surrogate.encoder(surrogate.branches(X))

    def predict(X: Floats) -> tuple[Floats, Floats]:  # (C, d) -> (C, m), (C, m)
        return surrogate.predict(features(X))

    def is_new(X: Floats) -> Mask:  # (C, d) -> (C,)
        if surrogate.plateaus is None:
            return is_other(X)
        return is_other(X) & ~surrogate.plateaus.hold(features(X))

    def is_open(X: Floats) -> Mask:  # (C, d) -> (C,)
        is_as_fixed: Mask = (moment.with_fixed(X) == X).all(axis=1)
        return is_as_fixed & is_new(X)

    has_collided = moment.attempt > 0 and sampler.rules.fewer
    n = fewer(_N_CANDIDATES, moment.attempt) if has_collided else _N_CANDIDATES
    X = np.vstack([candidates(columns, surrogate.front, n, rng), surrogate.past_best])
    if has_collided:
        X = X[rng.permutation(len(X))[:n]]  # of a finite space, all configurations are candidates
    X = sampler.only_new(moment, moment.with_fixed(X), is_new)
    mean, sd = predict(X)
    improvement = acquisition(mean)
    values = improvement(mean, sd)
    if has_collided:
        return np.asarray(X[np.argmax(values)])
    return climb(X, values, columns, lambda near: improvement(*predict(near)), is_open, rng)


def expected_improvement(reached: Floats, expected: Floats | None = None) -> Improvement:
    """Return the log of the expected hypervolume improvement over what was reached so far.

    Args:
        reached: (n, m), what was reached.
        expected: (C, m), what is expected of candidates. The reference point is beyond the front
            of these too: a trade-off that the study has not tried yet is not out of bounds.
    """
    reached = or_average(reached)
    worst, best = reached.max(axis=0), reached.min(axis=0)
    if expected is not None and reached.shape[1] > 1:
        worst = np.maximum(worst, expected[ranks(expected) == 0].max(axis=0))
    return Boxes.of(reached, worst + 0.1 * (worst - best)).log_improvement


def or_average(reached: Floats) -> Floats:  # (n, m)
    """Return what was reached, or what is average in the past where nothing was."""
    return reached if len(reached) else np.zeros((1, reached.shape[1]))
