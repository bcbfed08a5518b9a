r"""How many trials the past has saved: measured where there is something to measure it with.

Against runs of the same problem without a past, b = 1, ..., B:

    q(n), q_b(n)    the hypervolume (one objective: the best value) after n trials, here and there;
                    in ranks among all values of an objective, so that no scale has a say
    q*_b = min(q, q_b at their ends)         the best that both have reached
    saved_b = (first n with q_b(n) >= q*_b) - (first n with q(n) >= q*_b)
    saved = median of saved_b

Within the study alone: whose turn a trial is, the past's or the study's own, is drawn at random
(`_trust`), so that the two are a randomised comparison. A turn is a hit if no earlier trial is as
good in everything. Later hits are rarer and the past's share of the turns changes, so turns are
compared within blocks i of `BLOCK` in a row, of which n_pi are the past's with h_pi hits and n_oi
the study's own with h_oi:

    ratio = (sum_i h_pi n_oi / n_i) / (sum_i h_oi n_pi / n_i)             Mantel and Haenszel
    saved = n_p (ratio - 1)                  the own turns that as many hits would have taken, less
                                             the turns that the past had

with the variance of log(ratio) by Greenland and Robins. Nothing is said unless both sides have
`MIN_HITS` hits and the 90 % interval of the ratio lies above one.

Shapes: losses (n, m), one row a finished trial in the order of their numbers, inf where a trial
was pruned or infeasible; turns (n,): 1 the past's, -1 the study's own, 0 nobody's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metatpe.space import Floats, Mask
from metatpe.tpe.hypervolume import is_improving, running_hypervolume

BLOCK = 20
MIN_HITS = 5
_Z = 1.645  # of a 90 % interval


@dataclass(frozen=True)
class AgainstRuns:
    """Trials saved, measured against runs without a past."""

    here: Sequence[int]  # (B,) trials to the best that both have reached, in this study
    there: Sequence[int]  # (B,) and in the run without a past

    @property
    def each(self) -> list[int]:
        """The trials saved against each run."""
        return [there - here for here, there in zip(self.here, self.there, strict=True)]

    @property
    def n(self) -> int:
        """The trials saved, in the middle."""
        return math.floor(np.median(self.each))


@dataclass(frozen=True)
class ByTurns:
    """Trials saved, estimated from whose turn was worth more."""

    n: int
    low: int
    high: int
    n_past: int
    n_past_hits: int
    n_own: int
    n_own_hits: int


def against_runs(losses: Floats, runs: Sequence[Floats]) -> AgainstRuns | None:
    """Return what was saved against runs of the same problem; None where there is no telling."""
    finite = [run[np.isfinite(run).all(axis=1)] for run in (losses, *runs)]
    if not runs or not all(len(run) for run in finite):
        return None
    every = np.concatenate(finite)
    here, *others = (_progress(run, every) for run in (losses, *runs))
    both = [min(here[-1], other[-1]) for other in others]
    return AgainstRuns(
        here=[_first(here >= q) for q in both],
        there=[_first(other >= q) for other, q in zip(others, both, strict=True)],
    )


def _first(is_reached: Mask) -> int:
    return int(np.argmax(is_reached)) + 1


def _progress(losses: Floats, every: Floats) -> Floats:  # (n, m), (k, m) -> (n,), rising
    """Return how far a run has come after each trial, in ranks among all losses."""
    columns = zip(losses.T, every.T, strict=True)
    places = np.stack([np.searchsorted(np.unique(all_), own) for own, all_ in columns], axis=1)
    places = places.astype(np.float64)
    if losses.shape[1] == 1:
        return -np.minimum.accumulate(places[:, 0])
    places[~np.isfinite(losses).all(axis=1)] = len(every)
    return running_hypervolume(places, np.full(losses.shape[1], float(len(every))))


def by_turns(losses: Floats, turns: Floats) -> ByTurns | None:
    """Return what was saved by the past's turns; None where they tell too little."""
    is_turn = turns != 0
    is_hit = np.isfinite(losses).all(axis=1) & is_improving(losses)
    hit, past = is_hit[is_turn], turns[is_turn] > 0
    counts = (past.sum(), (hit & past).sum(), (~past).sum(), (hit & ~past).sum())
    n_past, n_past_hits, n_own, n_own_hits = map(int, counts)
    if min(n_past_hits, n_own_hits) < MIN_HITS:
        return None
    ratio, deviation = _ratio_of_rates(hit, past)
    low, middle, high = (n_past * (ratio * math.exp(z * deviation) - 1) for z in (-_Z, 0, _Z))
    if not low > 0:
        return None
    return ByTurns(
        round(middle), math.ceil(low), round(high), n_past, n_past_hits, n_own, n_own_hits
    )


def _ratio_of_rates(hit: Mask, past: Mask) -> tuple[float, float]:
    """Return how often the past's turns hit, over how often own ones do, and the log's spread."""
    block = np.arange(len(hit)) // BLOCK
    n, n_past, hits, past_hits = (
        np.bincount(block, weights=which) for which in (hit == hit, past, hit, hit & past)
    )
    n_own, own_hits = n - n_past, hits - past_hits
    above, below = (past_hits * n_own / n).sum(), (own_hits * n_past / n).sum()
    if not above or not below:  # no block has both
        return 1.0, math.inf
    variance = ((n_past * n_own * hits - past_hits * own_hits * n) / n**2).sum() / (above * below)
    return float(above / below), math.sqrt(variance)
