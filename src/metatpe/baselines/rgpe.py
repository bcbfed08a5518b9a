r"""RGPE: the ranking-weighted Gaussian process ensemble (Feurer, Letham, Bakshy 2018).

    w_m = how often, over joint posterior samples, task m puts the fewest pairs of the study's
          observations in the wrong order; leave-one-out samples for the study itself
    mean(x) = sum_m w_m mean_m(x),    variance(x) = sum_m w_m^2 variance_m(x)

See `ensemble` for the weights, and for the order that several objectives have.
"""

from __future__ import annotations

from collections.abc import Sequence

from metatpe.baselines.ensemble import Ensemble, rgpe_weights
from metatpe.baselines.ensemble_sampler import EnsembleSampler
from metatpe.gp.models import Models
from metatpe.space import Floats, Ints


class RGPESampler(EnsembleSampler):
    """Sampler whose surrogate is a ranking-weighted Gaussian process ensemble.

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
        >>> from metatpe.baselines import RGPESampler
        >>> sources = load_tasks("sqlite:///studies.db", "resnet-*")
        >>> sampler = RGPESampler(sources, acquisition="ehvi", seed=0)
    """

    def _weigh(self, losses: Ints, n_pairs: int) -> Floats:
        return rgpe_weights(losses)

    def _ensemble(self, tasks: Sequence[Models], weights: Floats) -> Ensemble:
        return Ensemble(tasks, weights, variance_weights=weights**2)
