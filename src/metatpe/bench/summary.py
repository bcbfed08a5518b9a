r"""What many runs say together: means, ranks, paired tests and speed-ups.

With y_s(n) the measure of the run with seed s after n evaluations, hypervolume where there are
several objectives and the best value where there is one, and b another method to compare with:

    mean, se        over the seeds of a method; se = standard deviation / sqrt(seeds)
    rank            of the method among all, 1 the best, ties shared; the mean over seeds
    difference      mean and se of y_s(n) - y_s^b(n), over the seeds that both have
    p               of Wilcoxon's signed-rank test of these differences, two-sided
    n_needed        the least k with mean y(k) as good as mean y^b(n); n / n_needed: the speed-up

The mean of a suite is the mean over its problems, seed by seed; its rank that over its problems.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.stats import rankdata, wilcoxon

from metatpe.bench.metrics import Scale, progress_curve
from metatpe.bench.plan import AT
from metatpe.bench.problems import Floats, Problem, get_problem, suite_of, unknown_name
from metatpe.bench.records import Trace
from metatpe.tpe.hypervolume import standard_error

K = TypeVar("K")


@dataclass(frozen=True, eq=False)
class Curves:
    """The measure of all runs of a problem, or of the mean of a suite.

    Attributes:
        name: Of the problem; "hpolib (mean)" for a suite.
        sign: 1 where more is better, -1 where less is.
        by_method: Label of a method -> seed -> (n,), the measure after each evaluation.
    """

    name: str
    sign: float
    by_method: Mapping[str, Mapping[int, Floats]]

    def at(self, method: str, n: int) -> dict[int, float]:
        """Return the measure after n evaluations by seed, of the runs that are as long."""
        curves = self.by_method.get(method, {})
        return {seed: float(curve[n - 1]) for seed, curve in curves.items() if len(curve) >= n}


@dataclass(frozen=True)
class Comparison:
    """One method beside another one, over the seeds that both have."""

    difference: float
    se: float | None
    p: float
    n_needed: int | None  # None where it never gets as good


@dataclass(frozen=True)
class Entry:
    """One method on one problem after n evaluations; None where nothing can be said."""

    problem: str
    method: str
    n: int
    n_seeds: int
    mean: float
    se: float | None
    rank: float | None
    versus: Comparison | None  # the method that all are compared with


def curves_of(
    traces: Iterable[Trace], *, scale: Scale = "paper", raw: bool = False
) -> tuple[Curves, ...]:
    """Return the curves of all problems; of runs that differ in length alone, the longest.

    Args:
        traces: As `read_results` returns them.
        scale: Of the hypervolume, as in `hypervolume_curve`.
        raw: The same.
    """
    found: dict[str, dict[str, dict[int, Trace]]] = {}
    for trace in traces:
        by_seed = found.setdefault(trace.run.problem, {}).setdefault(trace.run.label, {})
        known = by_seed.get(trace.run.seed)
        if known is None or len(known.values) < len(trace.values):
            by_seed[trace.run.seed] = trace
    return tuple(_curves(get_problem(name), found[name], scale, raw) for name in sorted(found))


def _curves(
    problem: Problem, traces: Mapping[str, Mapping[int, Trace]], scale: Scale, raw: bool
) -> Curves:
    is_loss = problem.n_objectives == 1 and problem.directions[0] == "minimize"
    by_method = {
        label: {
            seed: progress_curve(problem, trace.values, scale=scale, raw=raw)
            for seed, trace in sorted(by_seed.items())
        }
        for label, by_seed in traces.items()
    }
    return Curves(problem.name, -1.0 if is_loss else 1.0, by_method)


def suites_of(curves: Sequence[Curves]) -> dict[str, list[Curves]]:
    """Return the problems of each suite that can be averaged: several, with a hypervolume."""
    suites: dict[str, list[Curves]] = {}
    for member in curves:
        if get_problem(member.name).n_objectives > 1:
            suites.setdefault(suite_of(member.name), []).append(member)
    return {suite: members for suite, members in suites.items() if len(members) > 1}


def suite_mean(suite: str, members: Sequence[Curves]) -> Curves:
    """Return the mean over problems, seed by seed, of the methods that were run on all of them."""
    means: dict[str, dict[int, Floats]] = {}
    for method in _shared([member.by_method for member in members]):
        runs = [member.by_method[method] for member in members]
        if seeds := _shared(runs):
            means[method] = {seed: _mean([run[seed] for run in runs]) for seed in seeds}
    return Curves(f"{suite} (mean)", members[0].sign, means)


def _mean(curves: Sequence[Floats]) -> Floats:
    """Return the mean of curves, as long as the shortest of them."""
    length = min(map(len, curves))
    mean: Floats = np.mean([curve[:length] for curve in curves], axis=0)
    return mean


def _shared(groups: Sequence[Mapping[K, object]]) -> list[K]:
    """Return the keys that all have, in the order of the first."""
    return [key for key in groups[0] if all(key in other for other in groups[1:])]


def summarise(
    curves: Sequence[Curves], *, at: Sequence[int] = AT, against: str | None = None
) -> tuple[Entry, ...]:
    """Return means, ranks and comparisons, problem by problem and then for the suites.

    Args:
        curves: As `curves_of` returns them.
        at: Numbers of evaluations; nothing is said about a run that is shorter.
        against: The label of the method to compare with; left out, "meta-tpe" if it is there.

    Raises:
        ValueError: If no run is as long as any of `at`, or `against` is not among the methods.
    """
    against = chosen_method(curves, against)
    groups = [(group, [group]) for group in curves]
    groups += [(suite_mean(suite, own), own) for suite, own in suites_of(curves).items()]
    entries: list[Entry] = []
    for group, members in groups:
        for n in at:
            ranks = _mean_ranks([_ranks(member, n) for member in members])
            entries += _entries(group, n, against, ranks)
    if not entries:
        raise ValueError(f"no run has {min(at)} evaluations; the longest has {_longest(curves)}.")
    return tuple(entries)


def _longest(curves: Sequence[Curves]) -> int:
    runs = (run for group in curves for runs in group.by_method.values() for run in runs.values())
    return max(map(len, runs), default=0)


def chosen_method(curves: Sequence[Curves], against: str | None) -> str:
    """Return the label of the method that all are compared with."""
    methods = list(dict.fromkeys(method for group in curves for method in group.by_method))
    if against is None:
        return "meta-tpe" if "meta-tpe" in methods else methods[0]
    if against not in methods:
        raise ValueError(unknown_name("method in these results", against, methods))
    return against


def _entries(group: Curves, n: int, against: str, ranks: Mapping[str, float]) -> list[Entry]:
    """Return what is said about every method of a problem after n evaluations."""
    entries = []
    for method in group.by_method:
        values = np.array(list(group.at(method, n).values()))
        if k := len(values):
            mean, se, rank = float(values.mean()), _standard_error(values), ranks.get(method)
            versus = None if method == against else compare(group, n, method, against)
            entries.append(Entry(group.name, method, n, k, mean, se, rank, versus))
    return entries


def _ranks(group: Curves, n: int) -> dict[str, float]:
    """Return the mean rank of every method, over the seeds that all have."""
    at = {method: by_seed for method in group.by_method if (by_seed := group.at(method, n))}
    seeds = _shared(list(at.values())) if at else []
    if not seeds:
        return {}
    values = np.array([[by_seed[seed] for seed in seeds] for by_seed in at.values()])  # (k, s)
    ranks = rankdata(-group.sign * values, axis=0).mean(axis=1)
    return dict(zip(at, ranks.tolist(), strict=True))


def _mean_ranks(ranks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {method: float(np.mean([r[method] for r in ranks])) for method in _shared(ranks)}


def compare(group: Curves, n: int, method: str, against: str) -> Comparison | None:
    """Return one method beside another after n evaluations; None where they share no seed."""
    mine, theirs = group.at(method, n), group.at(against, n)
    seeds = _shared([mine, theirs])
    if not seeds:
        return None
    differences = np.array([mine[seed] - theirs[seed] for seed in seeds])
    goal = _mean([group.by_method[against][seed][:n] for seed in seeds])[-1]
    curve = _mean([group.by_method[method][seed] for seed in seeds])
    reached = np.flatnonzero(group.sign * curve >= group.sign * goal)
    return Comparison(
        difference=float(differences.mean()),
        se=_standard_error(differences),
        p=float(wilcoxon(differences).pvalue) if differences.any() else 1.0,
        n_needed=int(reached[0]) + 1 if len(reached) else None,
    )


def _standard_error(values: Floats) -> float | None:
    error = float(standard_error(values[:, None])[0])
    return None if math.isnan(error) else error
