r"""The part of each parameter's range that holds most of the good observations of past tasks.

With n_t the good observations of task t, c_tij their coordinates and k the kernels of the task's
good density (`tpe.kde`), the mean over the tasks of their marginals in column j is

    p_j(x) ~ sum_t 1/n_t sum_i k(x, c_tij)          i the good observations that use the parameter

without the uniform component of a density: it stands for what is not known, and good observations
are where they are. What is worth searching is

    number        the shortest interval with the wanted mass of p_j, on the encoded scale
    categorical   the most frequent choices with the wanted mass; the frequencies without kernels,
                  which would give a part to choices that no good observation has

Intervals are rounded outwards to two digits, of the width or, on a log scale, of the bounds.

Shapes: masses (K,) of K cells, edges (K + 1,); coordinates of good observations (n,).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from scipy.special import ndtr

from metatpe.past.known import Past
from metatpe.space import Floats, Ints, Space
from metatpe.tpe.pareto import GAMMA

_N_CELLS = 512  # of a continuous column
_MAX_CENTERS = 256  # good observations of a task, enough for a marginal
_ROUNDING = 1e-9  # of sums of masses


@dataclass(frozen=True)
class GoodRange:
    """What of one parameter is worth searching.

    Attributes:
        distribution: The interval or the choices. All of the parameter's, where no good
            observation uses it.
        volume: Which part of the parameter's range that is, on the encoded scale.
        usage: Which part of the good observations uses the parameter, the mean over the past
            tasks that have it. Less than 1 for a conditional parameter.
    """

    distribution: BaseDistribution
    volume: float
    usage: float


class _Good(NamedTuple):
    """The good observations of one task in one column."""

    x: Floats  # (n,), of those that use the parameter
    bandwidth: float
    usage: float  # which part of them uses it


def good_ranges(past: Past, mass: float = 0.9) -> dict[str, GoodRange]:
    """Return the interval or the choices of each parameter that hold most good observations.

    Args:
        past: The past tasks, in the space to narrow.
        mass: Which part of the good observations is to be inside, for each parameter alone.

    Raises:
        ValueError: No past task has a parameter of the space, or the mass is not in (0, 1].

    Example:
        >>> from metatpe import Task
        >>> space = Space({"depth": IntDistribution(1, 8)})
        >>> X = (np.arange(40) % 8 + 0.5)[:, None] / 8
        >>> past = Past([Task("old", space, X, losses=np.abs(X - 0.3))], space)
        >>> good_ranges(past)["depth"].distribution
        IntDistribution(high=4, log=False, low=2, step=1)
    """
    if not 0.0 < mass <= 1.0:
        raise ValueError(f"the mass must be more than 0 and at most 1, but is {mass!r}.")
    if not past.names:
        raise ValueError("no past study has a parameter in common with the space.")
    return {
        name: _good_range(name, distribution, list(_good(past, name)), mass)
        for name, distribution in past.space.distributions.items()
    }


def widened(
    found: GoodRange, searched: BaseDistribution, values: Sequence[Any]
) -> GoodRange:  # values of the parameter that must not be lost
    """Return a range that also holds some values, those that the searched range has.

    Example:
        >>> found = GoodRange(IntDistribution(3, 4), volume=0.25, usage=1.0)
        >>> widened(found, IntDistribution(1, 8), [2]).distribution
        IntDistribution(high=4, log=False, low=2, step=1)
    """
    if isinstance(searched, CategoricalDistribution):
        assert isinstance(found.distribution, CategoricalDistribution)
        # By what they look like, since 1, 1.0 and True are equal.
        kept = {repr(choice) for choice in (*found.distribution.choices, *values)}
        choices = [choice for choice in searched.choices if repr(choice) in kept]
        share = len(choices) / len(searched.choices)
        return GoodRange(CategoricalDistribution(choices), share, found.usage)
    assert isinstance(searched, FloatDistribution | IntDistribution)
    assert isinstance(found.distribution, FloatDistribution | IntDistribution)
    low, high = found.distribution.low, found.distribution.high
    outside = [v for v in values if searched.low <= v <= searched.high and not low <= v <= high]
    if not outside:
        return found
    wider = _narrowed(searched, min(low, *outside), max(high, *outside))
    return GoodRange(wider, _share(Space({"": searched}), wider), found.usage)


def volume_left(ranges: Mapping[str, GoodRange]) -> float:
    """Return which part of the whole space the ranges of all parameters are together."""
    return math.prod(found.volume for found in ranges.values())


def _good(past: Past, name: str) -> Iterator[_Good]:
    """Yield the good observations of each task that has the parameter."""
    j = past.space.names.index(name)
    for (task, _), densities in zip(past.rows, past.densities(GAMMA).tasks, strict=True):
        good = densities.good.thinned(_MAX_CENTERS)
        if name in task.space.names and len(good.centers):
            is_used = ~np.isnan(good.centers[:, j])
            x = good.centers[is_used, j]
            yield _Good(x, float(good.bandwidth[j]), float(is_used.mean()))


def _good_range(
    name: str, distribution: BaseDistribution, tasks: list[_Good], mass: float
) -> GoodRange:
    usage = float(np.mean([good.usage for good in tasks])) if tasks else 0.0
    if usage == 0.0 or distribution.single():
        return GoodRange(distribution, 1.0, usage)
    used = [good for good in tasks if good.usage > 0.0]
    space = Space({name: distribution})
    if isinstance(distribution, CategoricalDistribution):
        kept = _most_frequent(_frequencies(space, used), mass)
        choices = [distribution.choices[i] for i in kept]
        share = len(choices) / len(distribution.choices)
        return GoodRange(CategoricalDistribution(choices), share, usage)
    low, high = _interval(space, used, mass)
    narrowed = _narrowed(distribution, low, high)
    return GoodRange(narrowed, _share(space, narrowed), usage)


# Choices -----------------------------------------------------------------------------------------


def _frequencies(space: Space, tasks: list[_Good]) -> Floats:  # (K,)
    """Return how often good observations have each choice."""
    columns = space.columns
    counts = [
        good.usage
        * np.bincount(columns.cells(good.x, 0), minlength=columns.n_cells[0])
        / len(good.x)
        for good in tasks
    ]
    total = np.sum(counts, axis=0)
    frequencies: Floats = total / total.sum()
    return frequencies


def _most_frequent(frequencies: Floats, mass: float) -> list[int]:
    """Return the fewest choices with the mass, in the order of the distribution."""
    order: Ints = np.argsort(-frequencies, kind="stable")
    n = int(np.searchsorted(np.cumsum(frequencies[order]), mass - _ROUNDING)) + 1
    return sorted(int(i) for i in order[:n])


# Numbers -----------------------------------------------------------------------------------------


def _interval(space: Space, tasks: list[_Good], mass: float) -> tuple[float, float]:
    """Return the bounds of the shortest interval with the mass."""
    edges, points = space.columns.edges[0], space.columns.points[0]
    if edges is None:
        edges = np.linspace(0.0, 1.0, _N_CELLS + 1)
    masses = np.sum([good.usage * _kernel_masses(good, edges) for good in tasks], axis=0)
    first, end = shortest(masses / masses.sum(), edges, mass)
    at = edges[[first, end]] if points is None else points[[first, end - 1]]
    low, high = space.decode_numbers(at[:, None])[:, 0].tolist()
    return low, high


def _kernel_masses(good: _Good, edges: Floats) -> Floats:  # (K,)
    """Return the mass of the kernels around good observations in each cell, in the mean."""
    below = ndtr((edges[:, None] - good.x) / good.bandwidth)  # (K + 1, n)
    masses: Floats = (np.diff(below, axis=0) / (below[-1] - below[0])).mean(axis=1)
    return masses


def shortest(masses: Floats, edges: Floats, mass: float) -> tuple[int, int]:  # (K,), (K + 1,)
    """Return the first cell of the shortest run of cells with the mass, and the one after it."""
    below = np.concatenate([[0.0], np.cumsum(masses)])
    ends = np.searchsorted(below, below + mass - _ROUNDING)
    firsts = np.flatnonzero(ends < len(edges))  # from the others on there is too little
    best = int(firsts[np.argmin(edges[ends[firsts]] - edges[firsts])])
    return best, int(ends[best])


def _narrowed(distribution: BaseDistribution, low: float, high: float) -> BaseDistribution:
    """Return a distribution of the same kind on an interval, rounded outwards."""
    if isinstance(distribution, IntDistribution):
        step, is_log = distribution.step, distribution.log
        return IntDistribution(int(low), int(high), log=is_log, step=step)
    assert isinstance(distribution, FloatDistribution)
    if distribution.step is not None:
        # low + k * step in twelve digits: 0.3 instead of 0.30000000000000004.
        low, high = (float(f"{bound:.12g}") for bound in (low, high))
        return FloatDistribution(low, high, step=distribution.step)
    width = high - low
    down = _rounded(low, low if distribution.log else width, ROUND_FLOOR)
    up = _rounded(high, high if distribution.log else width, ROUND_CEILING)
    low, high = max(down, distribution.low), min(up, distribution.high)
    return FloatDistribution(low, high, log=distribution.log)


def _rounded(number: float, size: float, rounding: str) -> float:
    """Return a number with as many decimals as two digits of `size` have."""
    unit = Decimal(1).scaleb(math.floor(math.log10(size)) - 1)
    return float((Decimal(repr(number)) / unit).to_integral_value(rounding) * unit)


def _share(space: Space, narrowed: BaseDistribution) -> float:
    """Return which part of the one column of a space an interval is."""
    (name,) = space.names
    if narrowed == space.distributions[name]:
        return 1.0
    assert isinstance(narrowed, FloatDistribution | IntDistribution)
    x = space.encode([{name: narrowed.low}, {name: narrowed.high}])[:, 0]
    edges = space.columns.edges[0]
    if edges is None:
        return float(x[1] - x[0])
    first, last = space.columns.cells(x, 0)
    return float(edges[last + 1] - edges[first])
