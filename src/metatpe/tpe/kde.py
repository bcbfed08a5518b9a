r"""The Parzen estimator of mixed spaces (Eqs. 12 and 13 of the paper).

    p(x) = 1/(n + 1) * (1 + sum_i prod_d k_d(x_d, c_{i,d}))     n centres and one uniform component

with all densities against the uniform measure of the unit cube, and

    continuous   k(x, c) = phi((x - c)/h) / (h * (Phi((1 - c)/h) - Phi(-c/h)))  truncated to [0, 1]
    stepped      k(x, c) = the truncated Gaussian's mass in the cell of x / width of the cell
    categorical  k(x, c) = K * 0.9 if x and c are the same choice, else K * 0.1/(K - 1)
    missing c    k(x, c) = 1

The bandwidth h of a column is Scott's with the robust spread. Except in stepped columns, it
vanishes as n grows (a constant floor, as in the authors' code, never converges):

    h = min(1/2, max(floor, 1.059 * min(sd, IQR/1.34) * n^(-1/5)))
    floor = 0.1/sqrt(n), and for a stepped column of K values at least min(0.1, 1/K)

Departures from the paper: the uniform component, which keeps the ratio of two densities finite far
from all centres, and the bandwidths, for which the paper refers to BOHB.

All centres share h, so log prod_d k_d is a matrix product of features of x with coefficients of c:

    Gaussian columns    features (x - m)^2, x - m, 1                      m the mean of the centres
    discrete columns    a one of the cell of x; a look-up in a table where K is large

Shapes: centres (n, d), points (C, d), features (F, C), coefficients (F, n).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, ndtri

from metatpe.space import Columns, Floats, Ints, Mask
from metatpe.tpe.cells import (
    LOG2_E,
    MAX_LOG,
    OWN_CHOICE,
    Choices,
    Real,
    Table,
    coarse_tables,
    has_many_choices,
    kernel_mass,
    log2_in_cells,
)

_BLOCK = 1 << 16  # entries of the (centres, points) matrix at a time: they stay in the cache
_MAX_POINTS = 1 << 13  # at a time
MAX_LOG_COARSE = 60.0  # as `MAX_LOG`, of float32
MAX_REACH = 16000.0  # what may cancel in float32, so that the log of a kernel is right to 1e-3
# Less than this is nothing, and denormal numbers are slow: the log to base two, by precision.
_LEAST_LOG2 = {np.dtype(np.float32): -120.0, np.dtype(np.float64): -1000.0}
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_N_SIGMAS, _PER_SIGMA = 6.5, 1024  # a table of the normal distribution; less than 1e-10 is beyond
_SIGMAS = np.arange(int(_N_SIGMAS * _PER_SIGMA) + 1) / _PER_SIGMA
_TAILS = np.append(ndtr(-_SIGMAS[:-1]), 0.0)
_DENSITIES = np.append(np.exp(-0.5 * _SIGMAS[:-1] ** 2 - _LOG_SQRT_2PI), 0.0)


def bandwidths(columns: Columns, centers: Floats) -> Floats:  # (n, d) -> (d,)
    """Return the bandwidth of each column."""
    return _bandwidths(columns, np.ascontiguousarray(centers.T))


def _bandwidths(columns: Columns, rows: Floats) -> Floats:  # (d, n) -> (d,)
    n_present, sd, iqr = _spread(rows)
    n = np.maximum(n_present, 1)
    scott = 1.059 * np.minimum(sd, iqr / 1.34) * n**-0.2
    floor = 0.1 / np.sqrt(n)
    is_stepped = (columns.n_cells > 0) & ~columns.is_categorical
    cell = np.minimum(0.1, 1.0 / np.maximum(columns.n_cells, 1))
    floor = np.where(is_stepped, np.maximum(floor, cell), floor)
    bandwidth: Floats = np.minimum(0.5, np.maximum(floor, scott))
    return bandwidth


def _spread(rows: Floats) -> tuple[Ints, Floats, Floats]:  # (d, n) -> (d,) each
    """Return number, standard deviation and interquartile range of the entries of each column."""
    d, n_centers = rows.shape
    sd, iqr = np.zeros(d), np.zeros(d)
    ranked = np.sort(rows, axis=1)  # NaN last
    n_present = np.full(d, n_centers)
    if np.isnan(ranked[:, -1:]).any():
        n_present = np.count_nonzero(~np.isnan(ranked), axis=1)
    for n in set(n_present.tolist()) - {0}:  # nearly always one round: nothing is missing
        columns = np.flatnonzero(n_present == n)
        entries = ranked[columns, :n] if len(columns) < d else ranked[:, :n]
        centred = entries - entries[:, [n // 2]]  # at the median: a small spread must not cancel
        mean_square = np.einsum("ij,ij->i", centred, centred) / n
        sd[columns] = np.sqrt(np.maximum(mean_square - centred.mean(axis=1) ** 2, 0.0))
        iqr[columns] = _quantile(entries, 0.75) - _quantile(entries, 0.25)
    return n_present, sd, iqr


def _quantile(ranked: Floats, q: float) -> Floats:  # (d, n) -> (d,), linear between neighbours
    position = q * (ranked.shape[1] - 1)
    below = int(position)
    above = min(below + 1, ranked.shape[1] - 1)
    quantile: Floats = ranked[:, below] + (position - below) * (
        ranked[:, above] - ranked[:, below]
    )
    return quantile


@dataclass(frozen=True, eq=False)
class Points:
    """Points prepared for `Parzen.log_pdf`."""

    gaussian: Floats  # (G, C), the continuous coordinates
    constant: Floats  # (1 + sum of K, C): a one, and a one of the cell for columns of few cells
    cells: dict[int, Ints]  # column -> (C,), the columns that are looked up
    is_coarse: bool = False  # whether single precision will do, where the density allows it

    @classmethod
    def of(cls, columns: Columns, X: Floats, *, is_coarse: bool = False) -> Points:
        """Prepare complete points (no NaN) of the given columns."""
        gaussian, one_hot, looked_up = columns.layout
        blocks = [np.ones((1, len(X)))]
        for j in one_hot:
            cells = np.arange(columns.n_cells[j])[:, None]
            blocks.append((columns.cells(X[:, j], j) == cells).astype(np.float64))
        many = {j: columns.cells(X[:, j], j) for j in looked_up}
        return cls(np.ascontiguousarray(X[:, gaussian].T), np.vstack(blocks), many, is_coarse)

    def __len__(self) -> int:
        return int(self.constant.shape[1])


class Parzen:
    """The density of one set of observations (see the module).

    Args:
        columns: The space.
        centers: The observations, or some that stand for all, (n, d).
        bandwidth: Of each column, (d,); left out, Scott's rule as above.
        n: How many observations there are; left out, the centres.
    """

    def __init__(
        self,
        columns: Columns,
        centers: Floats,
        bandwidth: Floats | None = None,
        n: int | None = None,
    ) -> None:
        self.columns = columns
        self.centers = centers
        self.bandwidth = _bandwidths(columns, self._rows) if bandwidth is None else bandwidth
        self._n = len(centers) if n is None else n

    @classmethod
    def of_some(cls, columns: Columns, X: Floats, n_max: int) -> Parzen:
        """Return the density of `n_max` observations at most, evenly spread, as that of all."""
        if len(X) <= n_max:
            return cls(columns, X)
        return cls(columns, X[np.arange(n_max) * len(X) // n_max], n=len(X))

    def thinned(self, n_max: int) -> Parzen:
        """Return the density by `n_max` centres at most, evenly spread, that stand for all."""
        if len(self.centers) <= n_max:
            return self
        rows = np.arange(n_max) * len(self.centers) // n_max
        return Parzen(self.columns, self.centers[rows], self.bandwidth, len(self))

    def __len__(self) -> int:
        return self._n

    def reduced(self, kept: Sequence[int]) -> Parzen:
        """Return the density of the columns `kept` alone, with the same bandwidths."""
        kept = list(kept)
        columns, centers = self.columns.take(kept), self.centers[:, kept]
        reduced = Parzen(columns, centers, self.bandwidth[kept], self._n)
        # What is inside of a column does not depend on the others.
        reduced.__dict__["_inside"] = self._inside[kept]
        return reduced

    @cached_property
    def _rows(self) -> Floats:  # (d, n)
        """The centres with the entries of a column side by side, to compute with."""
        return np.ascontiguousarray(self.centers.T)

    @cached_property
    def _inside(self) -> Floats:  # (d, n)
        """How much of each centre's Gaussian lies in [0, 1]; 1 where it is missing."""
        return mass_inside(self._rows, self.bandwidth[:, None])

    @cached_property
    def _gaussian_rows(self) -> Floats:  # (G, n)
        """The continuous coordinates of the centres."""
        gaussian = self.columns.layout[0]
        return self._rows if len(gaussian) == len(self.columns) else self._rows[gaussian]

    @cached_property
    def _is_complete(self) -> bool:
        """Whether no continuous coordinate is missing: then all squares have one coefficient."""
        return not np.isnan(self._gaussian_rows).any()

    @cached_property
    def _middle(self) -> Floats:  # (G, 1)
        """What continuous coordinates are counted from.

        The products cancel where a kernel is high, the less the closer it is to the middle.
        """
        rows = self._gaussian_rows
        if self._is_complete and len(self):
            middle: Floats = rows.mean(axis=1, keepdims=True)
            return middle
        return np.full((len(rows), 1), 0.5)

    @cached_property
    def _coefficients(self) -> tuple[Floats, dict[int, Table[np.float64]], float]:
        """The coefficients (F, n), for each column looked up its table (K, n), and the reach.

        All for logs to base two, because exp2 is cheaper than exp. The reach is the largest number
        that cancels in a product.
        """
        gaussian, one_hot, looked_up = self.columns.layout
        h = self.bandwidth[gaussian][:, None]
        centred = self._gaussian_rows - self._middle
        is_missing = np.isnan(centred)
        if not self._is_complete:
            centred = np.where(is_missing, 0.0, centred)
        linear, constant, reaches = gaussian_terms(centred, h, self._inside[gaussian])
        square = np.ones((1, len(self.centers)))
        if not self._is_complete:
            square = np.where(is_missing, 0.0, -0.5 * LOG2_E / h**2)
            constant = np.where(is_missing, 0.0, constant)
        few = [LOG2_E * self._table(j) for j in one_hot]
        constants = constant.sum(axis=0, keepdims=True)
        if len(self) > len(self.centers):  # each stands for some more
            constants += math.log2(len(self) / len(self.centers))
        blocks = [square, linear, constants, *few]
        reach = float(reaches.max(initial=0.0))
        return np.vstack(blocks), {j: self._looked_up(j) for j in looked_up}, reach

    def _looked_up(self, j: int) -> Table[np.float64]:
        """Return the log2 of the kernels of a column of many cells."""
        if has_many_choices(self.columns, j):
            return Choices.of(self.columns, j, self.columns.cells(self.centers[:, j], j))
        return LOG2_E * self._table(j)

    def _features(self, points: Points, dtype: type[Real]) -> NDArray[Real]:  # (F, C)
        """Return the features of the points that go with the coefficients."""
        centred = points.gaussian - self._middle
        squares = centred**2
        if self._is_complete:
            scales = -0.5 * LOG2_E / self.bandwidth[self.columns.layout[0]] ** 2
            squares = (scales @ squares)[None]
        blocks = (squares, centred, points.constant)
        # Written once, in the precision that is wanted: there may be thousands of points.
        features = np.empty((sum(map(len, blocks)), len(points)), dtype=dtype)
        return np.concatenate(blocks, out=features, casting="same_kind")

    @cached_property
    def _coarse(self) -> tuple[NDArray[np.float32], dict[int, Table[np.float32]]]:
        """The coefficients in single precision."""
        coefficients, tables, _ = self._coefficients
        return coefficients.astype(np.float32), coarse_tables(tables)

    def _table(self, j: int) -> Floats:  # (K, n)
        """Return the log density in each cell of the kernel around each centre."""
        edges = self.columns.edges[j]
        assert edges is not None
        mass = kernel_mass(self.columns, j, float(self.bandwidth[j]))
        with np.errstate(divide="ignore"):  # a cell many bandwidths away may have no mass at all
            log_density = np.log(mass) - np.log(np.diff(edges))[:, None]
        # The cell -1 of a missing centre is the last column: a factor of one.
        padded = np.hstack([np.maximum(log_density, -MAX_LOG), np.zeros((len(mass), 1))])
        return padded[:, self.columns.cells(self.centers[:, j], j)]

    @cached_property
    def peak(self) -> float:
        """An upper bound of the log of any kernel."""
        # At h <= 1/2 at least Phi(2) - 1/2 > 1/e of a Gaussian lies in [0, 1].
        gaussian = 1.0 - _LOG_SQRT_2PI - np.log(self.bandwidth[self.columns.layout[0]])
        discrete = 1.0 + np.log(np.maximum(self.columns.n_cells, 1))
        return float(np.maximum(gaussian, 0.0).sum() + discrete.sum())

    @cached_property
    def _may_be_coarse(self) -> bool:
        """Whether single precision keeps the log of a kernel right to about 1e-3."""
        return self.peak < MAX_LOG_COARSE and self._coefficients[2] < MAX_REACH

    def log_pdf(self, points: Points, *, uniform: bool = True) -> Floats:  # (C,)
        """Return the log density at each of the points, with or without the uniform component."""
        log_n = math.log(len(self) + uniform)
        if self.peak > MAX_LOG:  # only in spaces of a hundred columns or more
            features = self._features(points, np.float64)
            log2 = log2_kernels(features, *self._coefficients[:2], points.cells, slice(None))
            parts = np.vstack([log2 / LOG2_E, np.zeros((int(uniform), len(points)))])
            log_sum: Floats = logsumexp(parts, axis=0)
            return log_sum - log_n
        if points.is_coarse and self._may_be_coarse:
            total = kernel_sums(self._features(points, np.float32), *self._coarse, points.cells)
        else:
            coefficients, tables, _ = self._coefficients
            features = self._features(points, np.float64)
            total = kernel_sums(features, coefficients, tables, points.cells)
        if uniform:
            total += 1.0
        with np.errstate(divide="ignore"):  # without the uniform component it may be zero
            log_density: Floats = np.log(total) - log_n
        return log_density

    def marginal(self, j: int) -> tuple[Floats, Floats]:
        """Return the marginal density of a discrete column in each cell, and the cells' widths."""
        edges, centers = self.columns.edges[j], self.centers[:, j]
        assert edges is not None
        present = centers[~np.isnan(centers)]
        counts = np.bincount(self.columns.cells(present, j), minlength=len(edges) - 1)
        widths = np.diff(edges)
        if has_many_choices(self.columns, j):
            others = (1.0 - OWN_CHOICE) / (len(widths) - 1)
            kernels = ((OWN_CHOICE - others) * counts + others * len(present)) / widths
        else:
            kernels = kernel_mass(self.columns, j, float(self.bandwidth[j])) @ counts / widths
        n_flat = len(centers) - len(present) + 1  # without this column, and the uniform one
        return (kernels + n_flat) / (len(centers) + 1), widths

    def gaussian_marginals(self, js: Sequence[int]) -> tuple[Floats, Floats]:  # (G, c), (G,)
        """Return the marginal densities of continuous columns in the middle of G common cells.

        The cells are at most half a bandwidth wide.
        """
        h = self.bandwidth[list(js)][:, None]  # (c, 1)
        centers = self._rows[list(js)]  # (c, n)
        n_cells = math.ceil(max(32.0, 2.0 / h.min()))
        middles = (np.arange(n_cells) + 0.5) / n_cells
        heights = 1.0 / (h * math.sqrt(2.0 * math.pi) * self._inside[list(js)])
        total = np.ones((len(js), n_cells))  # what is flat
        is_missing = np.isnan(centers)
        if is_missing.any():
            centers, heights = np.where(is_missing, [[[0.5]], [[0.0]]], [centers, heights])
            total += is_missing.sum(axis=1)[:, None]
        scale = math.sqrt(0.5) / h
        at = (scale * middles).astype(np.float32)[:, :, None]  # (c, G, 1)
        around = (scale * centers).astype(np.float32)[:, None, :]  # (c, 1, n)
        weights = heights.astype(np.float32)[:, :, None]  # (c, n, 1)
        far = np.float32(80.0)  # exp of less is nothing, and denormal numbers are slow
        n_rows = max(1, _BLOCK // total.size)
        for start in range(0, len(self.centers), n_rows):
            block = slice(start, start + n_rows)
            # In place, coarse, and summed by a product: this is done for every suggestion.
            kernels = at - around[:, :, block]  # (c, G, block)
            np.square(kernels, out=kernels)
            np.minimum(kernels, far, out=kernels)
            np.negative(kernels, out=kernels)
            np.exp(kernels, out=kernels)
            total += (kernels @ weights[:, block])[:, :, 0]
        return total.T / (len(self.centers) + 1), np.full(n_cells, 1.0 / n_cells)

    @cached_property
    def has(self) -> Mask:  # (d,)
        """Which columns some centre has."""
        return np.asarray(~np.isnan(self.centers).all(axis=0))

    @cached_property
    def components(self) -> tuple[Floats, Floats, Floats]:  # (n + 1, d) each
        """The centres and their Gaussians' distribution functions at 0 and at 1.

        The uniform component is one more centre, the last, with all coordinates missing.
        """
        centers = np.vstack([self.centers, np.full((1, len(self.columns)), np.nan)])
        return centers, ndtr(-centers / self.bandwidth), ndtr((1.0 - centers) / self.bandwidth)


def gaussian_terms(
    centred: Floats, h: Floats, inside: Floats
) -> tuple[Floats, Floats, Floats]:  # (G, n), (G, 1), (G, n) -> (G, n), (G, n), (n,)
    """Return of log2 k(x, c) what is multiplied with x, what is constant, and the reach.

    The reach is the largest number that cancels in the sum over columns.
    """
    linear = centred * (LOG2_E / h**2)
    constant = centred * linear
    constant *= -0.5
    reach = -constant.sum(axis=0)
    constant -= np.log2(inside)
    constant -= LOG2_E * (np.log(h) + _LOG_SQRT_2PI)
    return linear, constant, reach


def mass_inside(rows: Floats, h: Floats) -> Floats:  # (d, n), (d, 1) -> (d, n)
    """Return Phi((1 - c)/h) - Phi(-c/h): how much of the Gaussians around centres is in [0, 1]."""
    off_middle = np.abs(rows - 0.5)
    mass = 1.0 - _tail((0.5 - off_middle) / h)
    reaches_far = h[:, 0] > 0.5 / _N_SIGMAS
    if reaches_far.any():
        mass[reaches_far] -= _tail((0.5 + off_middle[reaches_far]) / h[reaches_far])
    return mass


def _tail(z: Floats) -> Floats:
    """Return 1 - Phi(z) for z >= 0, to 1e-10; nothing for NaN.

    From a table, to second order around the nearest entry: three times as fast as `ndtr`.
    """
    offset = np.fmin(z, _N_SIGMAS)
    nearest = np.rint(offset * _PER_SIGMA)
    entry = nearest.astype(np.int64)
    nearest /= _PER_SIGMA
    offset -= nearest
    nearest *= -0.5
    nearest *= offset
    nearest += 1.0
    nearest *= offset
    nearest *= _DENSITIES.take(entry)
    tail: Floats = _TAILS.take(entry) - nearest
    return tail


def log2_kernels(
    features: NDArray[Real],
    coefficients: NDArray[Real],
    tables: Mapping[int, Table[Real]],
    cells: Mapping[int, Ints],
    block: slice,
    out: NDArray[Real] | None = None,
) -> NDArray[Real]:  # (block, C)
    """Return the log of the kernel around each centre of the block at each point."""
    log2: NDArray[Real] = np.matmul(coefficients[:, block].T, features, out=out)
    for j, table in tables.items():
        if isinstance(table, Choices):
            log2 += table.log2(cells[j], block, log2.dtype)
        else:
            log2 += table[:, block].T[:, cells[j]]
    return log2


def kernel_sums(
    features: NDArray[Real],
    coefficients: NDArray[Real],
    tables: Mapping[int, Table[Real]],
    cells: Mapping[int, Ints],
) -> Floats:  # (C,)
    """Return the sum of the kernels at each point, some centres at a time."""
    n_points = features.shape[1]
    if n_points > _MAX_POINTS:
        blocks = [slice(i, i + _MAX_POINTS) for i in range(0, n_points, _MAX_POINTS)]
        some = [{j: cell[block] for j, cell in cells.items()} for block in blocks]
        parts = zip(blocks, some, strict=True)
        return np.concatenate(
            [kernel_sums(features[:, b], coefficients, tables, cells_b) for b, cells_b in parts]
        )
    n_rows = max(1, min(_BLOCK // max(n_points, 1), coefficients.shape[1]))
    buffer = np.empty((n_rows, n_points), dtype=features.dtype)
    ones = np.ones(n_rows, dtype=features.dtype)
    least = np.full(n_points, _LEAST_LOG2[features.dtype], dtype=features.dtype)
    total = np.zeros(n_points)
    for start in range(0, coefficients.shape[1], n_rows):
        block = slice(start, start + n_rows)
        kernels = buffer[: coefficients.shape[1] - start]
        log2_kernels(features, coefficients, tables, cells, block, out=kernels)
        np.maximum(kernels, least, out=kernels)
        np.exp2(kernels, out=kernels)
        total += ones[: len(kernels)] @ kernels  # a sum over the rows, by BLAS
    return total


def sample(
    parzens: Sequence[Parzen],
    counts: Sequence[int] | Ints,
    *,
    rng: np.random.Generator,
    jointly: bool = False,
) -> Floats:  # (sum of counts, d)
    """Draw so many points from each density of one space, those of the first one first.

    Each coordinate is drawn on its own, from the marginal of its column; `jointly`, all of a point
    around the same centre.
    """
    columns = parzens[0].columns
    pick, place = rng.random((2, int(np.sum(counts)), len(columns)))
    if jointly:
        pick = np.repeat(pick[:, :1], len(columns), axis=1)
    sizes = np.array([len(p.centers) + 1 for p in parzens])
    first = np.repeat(np.cumsum(sizes) - sizes, counts)[:, None]
    component = first + (pick * np.repeat(sizes, counts)[:, None]).astype(np.int64)
    component *= len(columns)
    component += np.arange(len(columns))
    around, below, above = (
        np.vstack(stacked).take(component)
        for stacked in zip(*(p.components for p in parzens), strict=True)
    )
    h = np.repeat(np.stack([p.bandwidth for p in parzens]), counts, axis=0)
    return _place(columns, around, below, above, h, place)


def sample_kernels(
    columns: Columns, centers: Floats, h: Floats, n: int, *, rng: np.random.Generator
) -> Floats:  # (T, n_centers, d), (T, d) -> (T, n, d)
    """Draw points around one centre each for T densities, with the same random numbers for all."""
    n_tasks, n_centers, d = centers.shape
    uniforms = rng.random((n, 1 + d))
    component = (uniforms[:, 0] * n_centers).astype(np.int64)
    around = centers[:, component].reshape(-1, d)
    h = np.repeat(h, n, axis=0)
    below, above = ndtr(-around / h), ndtr((1.0 - around) / h)
    place = np.tile(uniforms[:, 1:], (n_tasks, 1))
    return _place(columns, around, below, above, h, place).reshape(n_tasks, n, d)


def log_densities(
    columns: Columns, centers: Floats, h: Floats, X: Floats
) -> Floats:  # (T, n, d), (T, d), (T, C, d) -> (T, C)
    """Return the log of T densities, each at points of its own, without uniform components."""
    log2 = np.zeros((len(centers), centers.shape[1], X.shape[1]))  # (T, n, C)
    for j in range(len(columns)):
        own, x, width = centers[:, :, None, j], X[:, None, :, j], h[:, None, None, j]
        if columns.n_cells[j]:
            log2 += log2_in_cells(columns, j, columns.cells(x, j), columns.cells(own, j), width)
        else:
            inside = mass_inside(centers[:, :, j], h[:, [j]])[:, :, None]
            terms = -0.5 * LOG2_E * ((x - own) / width) ** 2
            terms -= np.log2(inside) + LOG2_E * (np.log(width) + _LOG_SQRT_2PI)
            log2 += np.where(np.isnan(own), 0.0, terms)
    top = log2.max(axis=1)
    total = np.exp2(log2 - top[:, None]).sum(axis=1)
    log_density: Floats = (top + np.log2(total)) / LOG2_E - math.log(centers.shape[1])
    return log_density


def _place(
    columns: Columns, around: Floats, below: Floats, above: Floats, h: Floats, place: Floats
) -> Floats:  # all (N, d)
    """Return for uniform numbers `place` a point each from the kernels around `around`.

    `below` and `above` are the Gaussian's distribution function at 0 and at 1.
    """
    gaussian = around + h * ndtri(below + place * (above - below))
    X = np.where(np.isnan(around), place, np.clip(gaussian, 0.0, 1.0))
    for j in columns.categorical:
        X[:, j] = _place_choice(columns, around[:, j], place[:, j], j)
    return columns.snap(X)


def _place_choice(columns: Columns, around: Floats, place: Floats, j: int) -> Floats:  # (N,)
    """Return the own choice with probability `OWN_CHOICE`, otherwise one of the others."""
    points, k = columns.points[j], int(columns.n_cells[j])
    assert points is not None
    own = columns.cells(around, j)
    other = ((place - OWN_CHOICE) / (1.0 - OWN_CHOICE) * (k - 1)).astype(np.int64)
    other = np.clip(other + (other >= own), 0, k - 1)
    chosen = points[np.where(place < OWN_CHOICE, own, other)]
    return np.where(own < 0, place, chosen)
