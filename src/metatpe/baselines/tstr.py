r"""TST-R: the two-stage transfer surrogate with rankings (Wistuba et al. 2016).

    d_m = the share of pairs of the study's observations that task m puts in the wrong order
    w_m ~ 3/4 (1 - (d_m / rho)^2) for d_m < rho, otherwise 0;    d_0 = 0 for the study itself
    mean(x) = sum_m w_m mean_m(x),    variance(x) = variance_0(x), that of the study

See `ensemble` for the weights, and for the order that several objectives have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metatpe.baselines.ensemble import Ensemble, tstr_weights
from metatpe.baselines.ensemble_sampler import EnsembleSampler
from metatpe.gp.models import Models
from metatpe.space import Floats, Ints


class TSTRSampler(EnsembleSampler):
    """Sampler whose surrogate is a two-stage transfer surrogate with rankings.

    Warm starts, seeds, parallel workers and records are those of `MetaTPESampler`, and in a finite
    space no configuration is suggested twice while there is a new one. Infeasible and pruned
    trials count as the worst. A parameter that is asked for outside of the space that trials have
    used is drawn at random.

    Args:
        sources: Past studies or tasks. Without any, the model is a Gaussian process of the study
            alone. Objectives are matched by name if both studies name them, otherwise by order.
        acquisition: "ehvi", the expected hypervolume improvement (with one objective the expected
            improvement), or "parego", that of a random scalarisation.
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
        >>> from metatpe import load_tasks
        >>> from metatpe.baselines import TSTRSampler
        >>> sources = load_tasks("sqlite:///studies.db", "resnet-*")
        >>> sampler = TSTRSampler(sources, acquisition="ehvi", seed=0)
    """

    def _weigh(self, losses: Ints, n_pairs: int) -> Floats:
        return tstr_weights(losses, n_pairs)

    def _ensemble(self, tasks: Sequence[Models], weights: Floats) -> Ensemble:
        return Ensemble(tasks, weights, variance_weights=np.eye(1, len(tasks))[0])
