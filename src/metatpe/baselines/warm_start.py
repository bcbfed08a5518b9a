r"""The past's best configurations, then random ones: what a warm start alone is worth.

    trials 1, ..., K      the top ceil(fraction * n_m) of each past task m, K different ones
                          together, in random order
    trials K + 1, ...     random

With fraction = 0.1 this is "only warm-start" of the paper. A sampler that transfers more than
configurations has to be better than this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optuna.distributions import BaseDistribution
from optuna.study import Study

from metatpe._history import Moment
from metatpe._record import Plan
from metatpe._warm_start import top_configurations
from metatpe.sampler import MetaTPESampler
from metatpe.tasks import Task


class WarmStartSampler(MetaTPESampler):
    """Sampler that tries the best configurations of past studies, and then random ones.

    It keeps the rules of `MetaTPESampler`, whose adaptor it shares: the order of the warm starts
    depends on the sources alone, parallel workers get each of them once, in a finite space nothing
    is suggested twice while something is unseen, and `transfer_history` tells the origins.

    Args:
        sources: Past studies or tasks; none of them: random search.
        fraction: How much of each source is tried, the best of it.
        search_space: The parameters that the objective will ask for, if you want the first trials
            to know them; otherwise they are learned from the trials.
        seed: Makes the suggestions reproducible (not with ``n_jobs > 1``, as elsewhere in Optuna).

    Raises:
        ValueError: The fraction or the seed is out of its range, or a source has only one
            observation.

    Example:
        >>> from metatpe import load_tasks
        >>> from metatpe.baselines import WarmStartSampler
        >>> sources = load_tasks("sqlite:///studies.db", "resnet-*")  # doctest: +SKIP
        >>> sampler = WarmStartSampler(sources, seed=0)  # doctest: +SKIP
    """

    def __init__(
        self,
        sources: Sequence[Study | Task] = (),
        *,
        fraction: float = 0.1,
        search_space: Mapping[str, BaseDistribution] | None = None,
        seed: int | None = None,
    ) -> None:
        if not 0.0 < fraction <= 1.0:
            raise ValueError(f"fraction must be more than 0 and at most 1, but is {fraction!r}.")
        super().__init__(sources, warm_start=False, search_space=search_space, seed=seed)
        self._warm_starts = top_configurations(self._sources, fraction)
        self._n_startup_trials = len(self._warm_starts)

    def __str__(self) -> str:
        return f"WarmStartSampler({len(self._sources)} sources, seed={self._seed})"

    def _plan(self, moment: Moment) -> Plan:
        """Return the trial's configuration: a warm start while there is one, then random."""
        return self._warm(moment) or self._random(moment, "random")
