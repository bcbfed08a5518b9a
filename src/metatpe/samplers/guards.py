r"""Rules beyond the paper: each has a name and a switch for experiments.

`benchmarks/guards.py --without NAME` measures what the sampler is worth without a rule, and
docs/method/guards.md has the table. The guards protect a study from a past that does not fit.

Silence. While the study has one or two good observations (fewer than `MIN_GOOD`) after a warm
start, the past has no weight. Without any, as in a study whose first trials are still running, the
past is all there is. The paper keeps no column then, and every similarity is 1. But the best
configurations of the past have just been evaluated, and one or two good observations, most likely
among them, resemble any past task.

Trust. Does past task m put the study's observations in the right order? With z_m as in
`PastDensities.agreement`,

    t_m = min(1, 2 Phi(z_m))                            s_m t_m takes the place of s_m

The similarity cannot warn of a past task that is reversed while all evaluations are spent where
the past was good: the best of observations that all lie in a past task's best region lie there as
well. Their order can. No past task gets more than its similarity.

Turns. A configuration is chosen either with the task weights or by the study's own densities
alone. Of the last choices of both kinds,

    z = (mean rank of own choices - mean rank of weighed ones) / its standard deviation by chance
    the next choice is weighed with probability Phi(z + b),  Phi(b) = 3/4

a Thompson draw with the benefit b of the doubt: three of four choices while nothing is known, and
nearly all or hardly any once the results are clear.

Widths. The bandwidths of the bad observations are those of the bad observations that the study
chose itself. Where the past is wrong, its first configurations lie far from everything else, and
with them the kernels of the few bad observations would cover the whole space.

Restart. Soon after the start, if the past tasks order the observations in reverse,

    1/M sum_m z_m < -1.645 = Phi^-1(0.05)

the study gets first configurations once more, from the past tasks with their losses negated, as
long as those do better than the other trials. A past is reversed where directions of objectives
were mixed up. Tasks that are wrong each in its own way cancel out in the mean.

Shapes: z (M,) of M past tasks, levels (n,), turns (n,): 1 weighed, -1 the study's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import ndtr, ndtri

from metatpe.space import Floats, Ints
from metatpe.tpe.ranking import mid_ranks

MIN_GOOD = 3  # good observations of the study, before past tasks are compared with it
N_JUDGED = 100  # first observations that trust is measured on; later ones change little
N_TURNS = 40  # last choices that turns compare: what helped at first need not help later
FIRST_SHARE = 0.75  # of the choices that are weighed while nothing is known
N_RESTART = 5  # times the number of first configurations: until when a restart is possible
REVERSED = (
    "the past studies order the trials of this study in reverse: what was good there is bad "
    "here, and what was worst there does better. Do the directions of the objectives agree?"
)
_LEAST_Z = -1.645  # Phi^-1(0.05)


@dataclass(frozen=True)
class Rules:
    """What a sampler does beyond the paper; an experiment switches a rule off by its name."""

    # The method: departures from the paper's text.
    front: bool = True  # two objectives: up to three of the first front are good (`tpe.pareto`)
    column: bool = True  # at least one column is kept (`tpe.importance`)
    marginals: bool = True  # candidates are drawn column by column (`tpe.acquisition`)
    proportion: bool = True  # more candidates from tasks of more weight (`tpe.acquisition`)
    new: bool = True  # no configuration is evaluated twice (`base`, `study.moment`)
    # Guards.
    silence: bool = True  # `densities.is_silent`
    trust: bool = True  # `densities.weigh`
    turns: bool = True  # `meta_tpe._weights_used`
    restart: bool = True  # `meta_tpe._restart`
    widths: bool = True  # `densities.of_study`
    # The start and workers.
    listen: bool = True  # results decide on the rest of a portfolio (`first`, `past.portfolio`)
    contradicted: bool = True  # the start ends if results contradict all past tasks (the same)
    reserve: bool = True  # more first configurations than trials (`first`, `past.start`)
    fewer: bool = True  # after workers collide, fewer candidates (`densities`, `surrogate`)
    # TransferSampler.
    alternate: bool = True  # half of the later choices are without the past (`transfer`)
    densities: bool = True  # densities choose if models order badly (`transfer._doubt`)
    ten: bool = True  # at most ten past tasks inform the models (`transfer._chosen`)
    plateaus: bool = True  # what has the same losses as its neighbours is not new (`gp.plateaus`)

    @classmethod
    def none(cls) -> Rules:
        """Return the rules of the paper's text."""
        return cls(**{field.name: False for field in fields(cls)})


def fewer(n: int, attempt: int) -> int:
    """Return how many of n candidates a worker looks at after so many collisions with others.

    With all of them, workers that collided would find the same best one again.
    """
    return max(1, n >> 2 * attempt)


def trust(z: Floats) -> Floats:  # (M,) -> (M,)
    """Return how far each past task is trusted, from 0 to 1."""
    trusted: Floats = np.minimum(1.0, 2.0 * ndtr(z))
    return trusted


def is_reversed(z: Floats) -> bool:  # (M,)
    """Return whether past tasks put the observations in the wrong order, on average."""
    return bool(len(z)) and float(z.mean()) < _LEAST_Z


def may_restart(levels: Ints, start: Floats, first: int) -> bool:  # (n,), (n,)
    """Return whether warm starts from the reversed past, if there are any, do better than others.

    Args:
        levels: The level of each observation, see `tpe.pareto.levels`.
        start: Which warm start each was, -1 for none.
        first: The index of the first warm start from the reversed past.
    """
    is_later = start >= first
    return not is_later.any() or bool(levels[is_later].mean() < levels[~is_later].mean())


def chance_of_the_past(levels: Ints, turns: Floats) -> float:  # (n,), (n,)
    """Return the probability with which the next choice is weighed."""
    n, n_past = len(turns), int(np.count_nonzero(turns > 0))
    if n_past in (0, n):
        return FIRST_SHARE
    places = mid_ranks(levels.astype(np.float64))
    ahead = places[turns < 0].mean() - places[turns > 0].mean()
    spread = places.std(ddof=1) * math.sqrt(n / (n_past * (n - n_past)))
    return float(ndtr(ahead / spread + ndtri(FIRST_SHARE))) if spread > 0.0 else FIRST_SHARE
