"""The five samplers, and how a test makes one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from optuna.study import Study
from studies import past_study

from metatpe import MetaTPESampler, Task, TransferSampler
from metatpe.baselines import RGPESampler, TSTRSampler, WarmStartSampler
from metatpe.samplers.base import PastSampler


@dataclass(frozen=True)
class Make:
    """Makes samplers of one kind, seeded unless a test says otherwise."""

    kind: type[PastSampler]

    def __call__(
        self,
        sources: Sequence[Study | Task] = (),
        *,
        n_startup_trials: int = 5,
        seed: int | None = 0,
        **settings: Any,
    ) -> PastSampler:
        """Return a sampler with about as many first trials."""
        if self.kind is WarmStartSampler:
            settings["fraction"] = _fraction(sources, n_startup_trials)
        else:
            settings["n_startup_trials"] = n_startup_trials
        return self.kind(sources, seed=seed, **settings)

    def drawing(self, sources: Sequence[Study | Task] = (), **settings: Any) -> PastSampler:
        """Return a sampler that starts with the best of the past, as WarmStartSampler does."""
        start = {} if self.kind is WarmStartSampler else {"start": "draw"}
        return self(sources, **start, **settings)

    def at_once(self, sources: Sequence[Study | Task] = (), **settings: Any) -> PastSampler:
        """Return a sampler without a start-up and without random trials."""
        if self.kind is MetaTPESampler:
            settings.setdefault("epsilon", 0.0)
        return self(sources, n_startup_trials=0, **settings)

    def __str__(self) -> str:
        return self.kind.__name__


def _fraction(sources: Sequence[Study | Task], n: int) -> float:
    """Return which part of the sources has n configurations, as WarmStartSampler counts them."""
    n_observations = sum(len(s) if isinstance(s, Task) else len(s.trials) for s in sources)
    return min(1.0, n / n_observations) if n_observations else 0.1


EVERY = [
    Make(kind)
    for kind in (MetaTPESampler, TransferSampler, RGPESampler, TSTRSampler, WarmStartSampler)
]
META_TPE, TRANSFER, RGPE, TSTR, WARM_START = EVERY
LEARNING = EVERY[:4]  # from the trials of the study
MODELLING = EVERY[1:4]  # the objectives, by Gaussian processes

learning = pytest.mark.parametrize("make", LEARNING, ids=str)
modelling = pytest.mark.parametrize("make", MODELLING, ids=str)
with_and_without = pytest.mark.parametrize("n_sources", [0, 2], ids=["alone", "with sources"])


def pasts(n_studies: int, **settings: Any) -> list[Study]:
    """Return past studies, each with configurations of its own."""
    return [past_study(seed=i, name=f"past {i}", **settings) for i in range(n_studies)]
