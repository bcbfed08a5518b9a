r"""The kernels of all past tasks side by side: what many tasks, or long ones, are computed with.

One side (good or bad) of M past tasks, with N_m kernels of task m and N in all. Task by task, in
one pass over all kernels:

    p(x | D_m) = (1 + sum_i k_i(x)) / (N_m + 1)             i the kernels of task m

and the mixture of the acquisition, of which the kernels' part is estimated from n kernels, where
there are more:

    f(x) = sum_m v_m * sum_i k_i(x),   v_m = w_m N_m / (N_m + 1)
    a kernel of task m is taken with probability c_m = min(1, v_m / tau), and then counts v_m / c_m

tau is such that n kernels are taken on average. The estimate is right on average, exact where few
tasks have the weight (then c_m = 1), and its variance, were the kernels taken one by one, is

    sum_m sum_i v_m (v_m / c_m - v_m) k_i(x)^2  <=  tau * max_i k_i(x) * f(x)

They are taken at equal distances along the line of all kernels, task by task in the order of their
trials, which spreads them over tasks and over the course of each search.

Shapes: weights (M,); coefficients of all kernels (N, F), F = 2 G + 1 for G continuous columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from metatpe.space import FEW_CELLS, Columns, Floats, Ints
from metatpe.tpe.cells import (
    LOG2_E,
    MAX_LOG,
    Choices,
    Table,
    coarse_tables,
    has_many_choices,
    log2_in_cells,
)
from metatpe.tpe.kde import (
    MAX_LOG_COARSE,
    MAX_REACH,
    Parzen,
    Points,
    gaussian_terms,
    kernel_sums,
    log2_kernels,
    mass_inside,
)

_BLOCK = 1 << 20  # entries of the (kernels, points) matrix at a time
_MIDDLE = 0.5  # what continuous coordinates are counted from


class Pool:
    """The kernels of one side of some tasks, one task after the other."""

    def __init__(self, parzens: Sequence[Parzen]) -> None:
        self._columns = parzens[0].columns
        self.sizes: Ints = np.array([len(p) for p in parzens], dtype=np.int64)  # (M,)
        self._bandwidths = np.stack([p.bandwidth for p in parzens])  # (M, d)
        self._peak = max(p.peak for p in parzens)
        gaussian, one_hot, looked_up = self._columns.layout
        self._discrete = [*one_hot, *looked_up]
        self._coefficients = np.empty((self.sizes.sum(), 2 * len(gaussian) + 1))
        self._reaches = np.empty(len(self))
        # Which kernel of a discrete column: of task m around value c, m * K + c; M * K is missing.
        self._index = np.empty((len(self), len(self._discrete)), dtype=np.int64)
        self._tables: dict[int, Floats] = {}
        ends = np.cumsum(self.sizes).tolist()
        for m, (parzen, end) in enumerate(zip(parzens, ends, strict=True)):
            self._fill(m, slice(end - len(parzen), end), parzen.centers)

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def _fill(self, m: int, rows: slice, centers: Floats) -> None:
        """Compute what the logs of one task's kernels are made of."""
        gaussian = self._columns.layout[0]
        h = self._bandwidths[m, gaussian][:, None]
        around = np.ascontiguousarray(centers[:, gaussian].T)
        is_missing = np.isnan(around)
        centred = np.where(is_missing, 0.0, around - _MIDDLE)
        linear, constant, self._reaches[rows] = gaussian_terms(centred, h, mass_inside(around, h))
        square = np.where(is_missing, 0.0, -0.5 * LOG2_E / h**2)
        constant = np.where(is_missing, 0.0, constant).sum(axis=0, keepdims=True)
        self._coefficients[rows] = np.vstack([square, linear, constant]).T
        for i, j in enumerate(self._discrete):
            cells, k = self._columns.cells(centers[:, j], j), int(self._columns.n_cells[j])
            self._index[rows, i] = np.where(cells < 0, len(self.sizes) * k, m * k + cells)

    def log_pdf(self, X: Floats, *, uniform: bool = True) -> Floats:  # (C, d) -> (M, C)
        """Return the log density of each task at complete points; see `Parzen.log_pdf`."""
        n_points = max(1, _BLOCK // max(len(self), 1))
        blocks = [X[i : i + n_points] for i in range(0, len(X), n_points)]
        return np.hstack(
            [np.empty((len(self.sizes), 0)), *(self._log_pdf(block, uniform) for block in blocks)]
        )

    def _log_pdf(self, X: Floats, uniform: bool) -> Floats:  # (C, d) -> (M, C)
        log2 = self._coefficients @ _gaussian_features(self._columns, X)  # (N, C)
        for i, j in enumerate(self._discrete):
            cells, inverse = np.unique(self._columns.cells(X[:, j], j), return_inverse=True)
            log2 += self._discrete_terms(j, cells, self._index[:, i]).T[:, inverse]
        has = self.sizes > 0
        starts = (np.cumsum(self.sizes) - self.sizes)[has]
        top = np.full((len(self.sizes), len(X)), 0.0 if uniform else -np.inf)
        top[has] = np.maximum(np.maximum.reduceat(log2, starts, axis=0), top[has])
        total = np.exp2(-top) if uniform else np.zeros(top.shape)  # the uniform component
        log2 -= np.repeat(top, self.sizes, axis=0)
        total[has] += np.add.reduceat(np.exp2(log2), starts, axis=0)
        with np.errstate(divide="ignore"):  # without any kernel
            log_sum = (top + np.log2(total)) / LOG2_E
            log_density: Floats = log_sum - np.log(self.sizes + float(uniform))[:, None]
        return log_density

    def _discrete_terms(self, j: int, cells: Ints, index: Ints) -> Floats:  # (a,), (n,) -> (a, n)
        """Return the log2 in some cells of a discrete column of some of its kernels."""
        k = int(self._columns.n_cells[j])
        n_kernels = len(self.sizes) * k + 1
        if k <= FEW_CELLS:
            if j not in self._tables:
                self._tables[j] = self._log2(j, np.arange(k), np.arange(n_kernels))
            return self._tables[j][cells][:, index]
        if len(index) > n_kernels:
            return self._log2(j, cells, np.arange(n_kernels))[:, index]
        distinct, inverse = np.unique(index, return_inverse=True)
        return self._log2(j, cells, distinct)[:, inverse]

    def _log2(self, j: int, cells: Ints, index: Ints) -> Floats:  # (a,), (n,) -> (a, n)
        task, value = np.divmod(index, self._columns.n_cells[j])
        is_missing = task == len(self.sizes)
        own, h = np.where(is_missing, -1, value), self._bandwidths[task - is_missing, j]
        return log2_in_cells(self._columns, j, cells[:, None], own, h)

    def some(self, weights: Floats, n: int, *, rng: np.random.Generator) -> Kernels:
        """Return about n kernels that stand for all, those of task m with weight `weights[m]`."""
        rows, _, mass = take_some(weights, self.sizes, n, rng=rng)
        coefficients = self._coefficients.take(rows, axis=0).T
        coefficients[-1] += np.log2(mass / mass.max())
        n_one_hot = len(self._columns.layout[1])
        one_hot = [self._table(i, rows) for i in range(n_one_hot)]
        tables = {
            j: self._looked_up(i, rows)
            for i, j in enumerate(self._discrete[n_one_hot:], start=n_one_hot)
        }
        reach = float(self._reaches[rows].max(initial=0.0))
        may_be_coarse = self._peak < MAX_LOG_COARSE and reach < MAX_REACH
        return Kernels(
            np.vstack([coefficients, *one_hot]) if one_hot else coefficients,
            tables,
            float(np.log(mass.max())),
            self._peak < MAX_LOG,
            may_be_coarse,
        )

    def _table(self, i: int, rows: Ints) -> Floats:  # (K, n)
        """Return the log2 in all cells of a discrete column of some kernels."""
        j = self._discrete[i]
        return self._discrete_terms(j, np.arange(self._columns.n_cells[j]), self._index[rows, i])

    def _looked_up(self, i: int, rows: Ints) -> Table[np.float64]:
        """Return the same, without a table where the column has very many choices."""
        j = self._discrete[i]
        if not has_many_choices(self._columns, j):
            return self._table(i, rows)
        task, own = np.divmod(self._index[rows, i], self._columns.n_cells[j])
        return Choices.of(self._columns, j, np.where(task == len(self.sizes), -1, own))


@dataclass(frozen=True, eq=False)
class Kernels:
    """Weighted kernels, each with a bandwidth of its own."""

    coefficients: Floats  # (F, n), F with the columns of few cells
    tables: dict[int, Table[np.float64]]  # column of many cells -> (K, n)
    log_scale: float  # of the largest weight, which is a one in the coefficients
    may_be_added: bool  # whether no kernel is too large for float64
    may_be_coarse: bool  # nor for float32

    def log_sum(self, points: Points) -> Floats:  # (C,)
        """Return the log of the weighted sum of the kernels at each of the points."""
        centred = points.gaussian - _MIDDLE
        features = np.vstack([centred**2, centred, points.constant])
        if not self.may_be_added:
            everything = log2_kernels(
                features, self.coefficients, self.tables, points.cells, slice(None)
            )
            log_sum: Floats = logsumexp(everything / LOG2_E, axis=0)
            return self.log_scale + log_sum
        if points.is_coarse and self.may_be_coarse:
            tables, coefficients = coarse_tables(self.tables), self.coefficients.astype(np.float32)
            total = kernel_sums(features.astype(np.float32), coefficients, tables, points.cells)
        else:
            total = kernel_sums(features, self.coefficients, self.tables, points.cells)
        with np.errstate(divide="ignore"):  # far from all of them
            return self.log_scale + np.log(total)


def _gaussian_features(columns: Columns, X: Floats) -> Floats:  # (C, d) -> (F, C)
    centred = X[:, columns.layout[0]].T - _MIDDLE
    return np.vstack([centred**2, centred, np.ones((1, len(X)))])


def take_some(
    weights: Floats, sizes: Ints, n: int, *, rng: np.random.Generator
) -> tuple[Ints, Ints, Floats]:
    """Return about n kernels of tasks of so many kernels: which, of which task, and their masses.

    Args:
        weights: Of each kernel of a task, (M,).
        sizes: How many kernels each task has, (M,).
        n: How many are wanted.
        rng: The place of the first one.
    """
    order = np.argsort(-weights, kind="stable")  # those that are taken for sure come first
    v, size = weights[order], sizes[order]
    with np.errstate(over="ignore"):
        chance = np.minimum(1.0, v / _threshold(v, size, n))
    ends = np.cumsum(size * chance)
    places = np.arange(rng.random(), ends[-1])
    which = np.minimum(np.searchsorted(ends, places, side="right"), len(v) - 1)
    within = (places - (ends - size * chance)[which]) / chance[which]
    tasks = order[which]
    first = (np.cumsum(sizes) - sizes)[tasks]
    rows = first + np.minimum(within.astype(np.int64), sizes[tasks] - 1)
    return rows, tasks, v[which] / chance[which]


def _threshold(weights: Floats, sizes: Ints, n: int) -> float:
    """Return tau with sum_m sizes_m * min(1, weights_m / tau) = n; the weights fall.

    Where there are no more than n kernels with a weight, all of them are taken.
    """
    if sizes[weights > 0].sum() <= n:
        return float(weights[weights > 0].min(initial=1.0))
    before = np.cumsum(sizes) - sizes  # kernels of heavier tasks, taken for sure
    rest = np.cumsum((sizes * weights)[::-1])[::-1]
    with np.errstate(divide="ignore"):
        tau = np.where(before < n, rest / np.maximum(n - before, 1e-300), np.inf)
    return float(tau[np.argmax(weights <= tau)])
