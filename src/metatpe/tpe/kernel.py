r"""Task kernel: how much weight each past task gets (Algorithm 1, Eqs. 7 to 9 of the paper).

With p the density of the good observations of the current task on the kept columns, and q_m that
of past task m:

    d_m = 1/2 * integral |p - q_m| = E_{x ~ q_m}[max(0, 1 - p(x) / q_m(x))]   total variation
    s_m = (1 - d_m) / (1 + d_m)                                             similarity
    w_m = s_m / T,   w_0 = 1 - sum_m w_m              T tasks, the current one among them

A past task is compared on the kept columns that it has; with none of them it gets no weight. If
the current task has no observation yet, every similarity is 1.

Departures from the paper:

- p and q_m have no uniform component here, unlike the densities of the acquisition: two tasks do
  not overlap because both have one. The authors' code does the same.
- The authors' code estimates d_m at uniform points, which miss narrow peaks: two disjoint peaks
  in six columns then look the same. Under q_m the integrand lies in [0, 1], so the standard error
  is at most 0.5/sqrt(S), and the points and q_m there are computed once. Many past tasks share a
  number of points, so that S is smaller for each (`PastDensities`).
- Where the kept columns have at most `MAX_LISTED` cells together, the expectation is a sum over
  the cells, and exact.

Shapes: nodes (M, S), S points of M past tasks that are compared on the same columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metatpe.space import MAX_LISTED, Columns, Floats, Ints
from metatpe.tpe.kde import Parzen, Points, log_densities, sample_kernels
from metatpe.tpe.pool import Pool

N_MC_SAMPLES = 1000  # points at which two densities are compared
_MAX_ENTRIES = 50 * MAX_LISTED  # of nodes, exact ones: what fifty tasks need at most
_BLOCK = 1 << 20  # pairs of kernels and points at a time
_SEED = 0x5EED  # the points belong to the past task, not to the luck of a trial


@dataclass(frozen=True, eq=False)
class Nodes:
    """Where the densities of some past tasks are compared with that of the current one."""

    tasks: Ints  # (M,) which past tasks
    kept: tuple[int, ...]  # the columns they are compared on
    points: Points  # M * S of them, or S that all share
    log_q: Floats  # (M, S), inf in a cell where q_m has no mass
    mass: Floats  # (M, S), sums to one in each row: 1/S, or q_m's mass in the cell

    def total_variation(self, p: Parzen) -> Floats:  # (M,)
        """Return the distance of each past task's density from `p`, a density of all columns."""
        reduced = p.reduced(self.kept)
        log_p = reduced.log_pdf(self.points, uniform=False).reshape(-1, self.log_q.shape[1])
        gap = 1.0 - np.exp(np.minimum(log_p - self.log_q, 0.0))
        # The masses of a row sum to one only up to rounding.
        distance: Floats = np.minimum(np.einsum("ms,ms->m", self.mass, gap), 1.0)
        return distance


def similarity(total_variation: Floats) -> Floats:
    """Return the intersection over union of two gamma-sets at this distance."""
    return (1.0 - total_variation) / (1.0 + total_variation)


def task_weights(similarities: Floats) -> Floats:  # (T - 1,) -> (T,)
    """Return the task kernel, the current task first."""
    past = similarities / (len(similarities) + 1)
    return np.concatenate([[1.0 - past.sum()], past])


def make_nodes(past: Sequence[Parzen], kept: tuple[int, ...], n_points: int) -> list[Nodes]:
    """Return where to compare each of the past good densities, grouped by the columns they share.

    A past task that has none of the kept columns is in no group.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for m, q in enumerate(past):
        own = tuple(j for j in kept if q.has[j])
        groups.setdefault(own, []).append(m)
    return [_nodes(past, tasks, own, n_points) for own, tasks in groups.items() if own]


def _nodes(
    past: Sequence[Parzen], tasks: list[int], kept: tuple[int, ...], n_points: int
) -> Nodes:
    columns = past[0].columns.take(kept)
    n_cells = columns.n_cells.prod(dtype=np.float64)
    if columns.is_listable and len(tasks) * n_cells <= _MAX_ENTRIES:
        X, volume = columns.list_all()
        points = Points.of(columns, X)
        log_q = Pool([past[m].reduced(kept) for m in tasks]).log_pdf(X, uniform=False)
        mass = np.exp(log_q) * volume
        return Nodes(np.array(tasks), kept, points, np.where(mass > 0.0, log_q, np.inf), mass)
    drawn, log_q = _drawn(columns, [past[m] for m in tasks], kept, n_points)
    points = Points.of(columns, drawn.reshape(-1, len(kept)), is_coarse=True)
    return Nodes(np.array(tasks), kept, points, log_q, np.full(log_q.shape, 1.0 / n_points))


def _drawn(
    columns: Columns, past: Sequence[Parzen], kept: tuple[int, ...], n_points: int
) -> tuple[Floats, Floats]:  # (M, S, k), (M, S)
    """Return S points of each density on the kept columns, and the log density there."""
    drawn, log_q = np.empty((len(past), n_points, len(kept))), np.empty((len(past), n_points))
    sizes = np.array([len(q) for q in past])
    for n in np.unique(sizes):  # those of one size together
        alike, step = np.flatnonzero(sizes == n), max(1, _BLOCK // int(n * n_points))
        for some in (alike[i : i + step] for i in range(0, len(alike), step)):
            centers = np.stack([past[i].centers[:, kept] for i in some])
            h = np.stack([past[i].bandwidth[list(kept)] for i in some])
            rng = np.random.default_rng(_SEED)
            drawn[some] = X = sample_kernels(columns, centers, h, n_points, rng=rng)
            log_q[some] = log_densities(columns, centers, h, X)
    return drawn, log_q


def similarities(p: Parzen, nodes: Sequence[Nodes], n_past: int) -> Floats:  # (n_past,)
    """Return the similarity of each past task to the current one; 0 for those in no group."""
    s = np.zeros(n_past)
    for group in nodes:
        s[group.tasks] = similarity(group.total_variation(p))
    return s
