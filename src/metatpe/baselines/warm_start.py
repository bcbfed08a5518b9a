r"""The past's best configurations, then random ones: what a warm start alone is worth.

    trials 1, ..., K      the top ceil(fraction * n_m) of each past task m, K different ones
                          together, in random order
    trials K + 1, ...     random

With fraction = 0.1 this is "only warm-start" of the paper. A sampler that transfers more than
configurations has to be better than this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study

from metatpe.past.start import top
from metatpe.past.task import Task
from metatpe.samplers.base import PastSampler, require
from metatpe.samplers.first import FirstTrials
from metatpe.study.moment import Moment
from metatpe.study.record import Plan


class WarmStartSampler(PastSampler):
    """Sampler that tries the best configurations of past studies, and then random ones.

    The order of the warm starts depends on the sources alone, and parallel workers get each of
    them once. In a finite space no configuration is suggested twice while there is a new one.

    Args:
        sources: Past studies or tasks; without any, this is random search.
        fraction: The share of the best trials of each source that is tried.
        search_space: The parameters that the objective will ask for, so that the first trials can
            use them; by default they are learned from the trials.
        seed: Makes the suggestions reproducible (not with ``n_jobs > 1``, as elsewhere in Optuna).

    Raises:
        ValueError: The fraction or the seed is out of its range, or a source has only one
            observation.

    Example:
        >>> from metatpe import load_tasks
        >>> from metatpe.baselines import WarmStartSampler
        >>> sources = load_tasks("sqlite:///studies.db", "resnet-*")
        >>> sampler = WarmStartSampler(sources, seed=0)
    """

    def __init__(
        self,
        sources: Sequence[Study | Task] = (),
        *,
        fraction: float = 0.1,
        search_space: Mapping[str, BaseDistribution] | None = None,
        seed: int | None = None,
    ) -> None:
        is_fraction = 0.0 < fraction <= 1.0
        require("fraction", fraction, is_fraction, "more than 0 and at most 1")
        super().__init__(
            sources, n_startup_trials=0, start="random", search_space=search_space, seed=seed
        )
        start = top(self._sources, fraction)
        self.first_trials = FirstTrials(self._sources, start, has_portfolio=False)

    def propose(self, moment: Moment, rng: np.random.Generator) -> Plan:
        """Choose a random configuration once all warm starts were given out."""
        return self.random(moment, "random", "no_start_left")
