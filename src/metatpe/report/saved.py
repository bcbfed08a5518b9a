r"""How many trials the past studies have saved.

Against runs of the same problem without a past, b = 1, ..., B:

    q(n), q_b(n)    the hypervolume (one objective: the best value) after n trials, here and there;
                    in ranks among all values of an objective, so that scales do not matter
    q*_b = min(q, q_b at their ends)         the best that both have reached
    saved_b = (first n with q_b(n) >= q*_b) - (first n with q(n) >= q*_b)
    saved = median of saved_b

Within the study alone: a guard draws at random whether a trial is chosen with past studies
("weighed") or by the study alone ("own"), see `samplers.guards`, so that the two kinds of turns
are a randomised comparison. A turn is a hit if no earlier trial is as good in every objective.
Later hits are rarer, and the share of weighed turns changes. So turns are compared within blocks i
of `BLOCK` in a row, of which n_pi are weighed with h_pi hits and n_oi own with h_oi hits:

    ratio = (sum_i h_pi n_oi / n_i) / (sum_i h_oi n_pi / n_i)             Mantel and Haenszel
    saved = n_p (ratio - 1)                  the own turns that as many hits would have taken, less
                                             the weighed turns n_p

with the variance of log(ratio) by Greenland and Robins. There is no estimate unless both kinds
have `MIN_HITS` hits and the 90 % interval of the ratio lies above one.

Turns up to the first own one are left out, because `TransferSampler` starts to draw late: before,
all choices are weighed, and nothing is randomised. Blocks without both kinds add nothing to the
ratio, and are left out of n_p, too.

Shapes: losses (n, m), one row per finished trial in the order of their numbers, inf where a trial
was pruned or infeasible; turns (n,): 1 weighed, -1 own, 0 neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metatpe.space import Floats, Ints, Mask
from metatpe.tpe.hypervolume import is_improving, running_hypervolume

BLOCK = 20
MIN_HITS = 5
_Z = 1.645  # of a 90 % interval


@dataclass(frozen=True)
class AgainstRuns:
    """Trials saved, measured against runs without past studies."""

    here: Sequence[int]  # (B,) trials to the best that both have reached, in this study
    there: Sequence[int]  # (B,) and in the run without a past

    @property
    def each(self) -> list[int]:
        """The trials saved against each run."""
        return [there - here for here, there in zip(self.here, self.there, strict=True)]

    @property
    def n(self) -> int:
        """Median number of trials saved."""
        return math.floor(np.median(self.each))


@dataclass(frozen=True)
class ByTurns:
    """Trials saved, estimated from the hits of weighed and of own turns."""

    n: int
    low: int
    high: int
    n_weighed: int
    n_weighed_hits: int
    n_own: int
    n_own_hits: int


def against_runs(losses: Floats, runs: Sequence[Floats]) -> AgainstRuns | None:
    """Return what was saved against runs of the same problem; None where nothing can be told."""
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
    """Return the progress of a run after each trial, in ranks among all losses."""
    columns = zip(losses.T, every.T, strict=True)
    places = np.stack([np.searchsorted(np.unique(all_), own) for own, all_ in columns], axis=1)
    places = places.astype(np.float64)
    if losses.shape[1] == 1:
        return -np.minimum.accumulate(places[:, 0])
    places[~np.isfinite(losses).all(axis=1)] = len(every)
    return running_hypervolume(places, np.full(losses.shape[1], float(len(every))))


def by_turns(losses: Floats, turns: Floats) -> ByTurns | None:
    """Return the trials saved by weighed turns; None if there are too few hits to tell."""
    is_hit = np.isfinite(losses).all(axis=1) & is_improving(losses)
    compared, block = _in_blocks(turns)
    hit, weighed = is_hit[compared], turns[compared] > 0
    counts = (weighed.sum(), (hit & weighed).sum(), (~weighed).sum(), (hit & ~weighed).sum())
    n_weighed, n_weighed_hits, n_own, n_own_hits = map(int, counts)
    if min(n_weighed_hits, n_own_hits) < MIN_HITS:
        return None
    ratio, deviation = _ratio_of_rates(hit, weighed, block)
    low, middle, high = (n_weighed * (ratio * math.exp(z * deviation) - 1) for z in (-_Z, 0, _Z))
    if not low > 0:
        return None
    ends = math.ceil(low), round(high)
    return ByTurns(round(middle), *ends, n_weighed, n_weighed_hits, n_own, n_own_hits)


def _in_blocks(turns: Floats) -> tuple[Ints, Ints]:  # (n,) -> (k,), (k,)
    """Return the turns that are compared by their index, and the block of each: 0, 1, ..."""
    first_own = np.argmax(turns < 0) if (turns < 0).any() else len(turns)
    index = np.flatnonzero((turns != 0) & (np.arange(len(turns)) > first_own))
    block = np.arange(len(index)) // BLOCK
    share = np.bincount(block, weights=turns[index] > 0) / np.bincount(block)
    has_both = ((share > 0) & (share < 1))[block]
    return index[has_both], np.unique(block[has_both], return_inverse=True)[1]


def _ratio_of_rates(hit: Mask, weighed: Mask, block: Ints) -> tuple[float, float]:
    """Return the ratio of the hit rates of weighed and own turns, and the deviation of its log."""
    n, n_weighed, hits, weighed_hits = (
        np.bincount(block, weights=which) for which in (hit == hit, weighed, hit, hit & weighed)
    )
    n_own, own_hits = n - n_weighed, hits - weighed_hits
    above, below = (weighed_hits * n_own / n).sum(), (own_hits * n_weighed / n).sum()
    variance = (n_weighed * n_own * hits - weighed_hits * own_hits * n) / n**2
    return float(above / below), math.sqrt(variance.sum() / (above * below))
