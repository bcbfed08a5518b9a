r"""The Parzen estimator of mixed spaces.

    p(x) = 1/(n + 1) * (1 + sum_i prod_d k_d(x_d, c_{i,d}))     n centres and one uniform component

with all densities against the uniform measure of the unit cube, and

    continuous   k(x, c) = phi((x - c)/h) / (h * (Phi((1 - c)/h) - Phi(-c/h)))  truncated to [0, 1]
    stepped      k(x, c) = the truncated Gaussian's mass in the cell of x / width of the cell
    categorical  k(x, c) = K * 0.9 if x and c are the same choice, else K * 0.1/(K - 1)
    missing c    k(x, c) = 1

The bandwidth h of a column is Scott's with the robust spread, and vanishes as n grows (a constant
floor, as in the authors' code, never converges):

    h = min(1/2, max(floor, 1.059 * min(sd, IQR/1.34) * n^(-1/5)))
    floor = 0.1/sqrt(n), and for a stepped column of K values at least min(0.1, 1/K)

All centres share h, so log prod_d k_d is a matrix product of features of x with coefficients of c:

    Gaussian columns    features (x - 1/2)^2, x - 1/2, 1
    discrete columns    a one of the cell of x; a look-up in a table where K is large

Shapes: centres (n, d), points (C, d), features (F, C), coefficients (F, n).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, ndtri

from metatpe.space import Columns, Floats, Ints

OWN_CHOICE = 0.9  # the categorical kernel's mass on its own choice, as in the authors' code
_BLOCK = (
    1 << 17
)  # entries of the (centres, points) matrix worked on at a time: they stay in the cache
_MAX_LOG = 600.0  # exp of more than this is near the end of float64
_MAX_LOG_COARSE = 60.0  # and of float32
_Real = TypeVar("_Real", np.float32, np.float64)
# Next to the uniform component's 1 this is nothing, and denormal numbers are slow.
_LEAST_LOG2 = -120.0
_LOG2_E = math.log2(math.e)
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


def bandwidths(columns: Columns, centers: Floats) -> Floats:  # (n, d) -> (d,)
    """Return the bandwidth of each column."""
    n = np.maximum(np.count_nonzero(~np.isnan(centers), axis=0), 1)
    sd, iqr = _spread(centers)
    scott = 1.059 * np.minimum(sd, iqr / 1.34) * n**-0.2
    floor = 0.1 / np.sqrt(n)
    is_stepped = (columns.n_cells > 0) & ~columns.is_categorical
    cell = np.minimum(0.1, 1.0 / np.maximum(columns.n_cells, 1))
    floor = np.where(is_stepped, np.maximum(floor, cell), floor)
    bandwidth: Floats = np.minimum(0.5, np.maximum(floor, scott))
    return bandwidth


def _spread(centers: Floats) -> tuple[Floats, Floats]:
    """Return the standard deviation and the interquartile range of the entries of each column."""
    d = centers.shape[1]
    sd, iqr = np.zeros(d), np.zeros(d)
    ranked = np.sort(centers.T, axis=1)  # NaN last
    n_present = np.count_nonzero(~np.isnan(ranked), axis=1)
    for n in np.unique(n_present[n_present > 0]):  # nearly always one round: nothing is missing
        columns = np.flatnonzero(n_present == n)
        entries = ranked[columns, :n]
        sd[columns] = entries.std(axis=1)
        low, high = _quantile(entries, 0.25), _quantile(entries, 0.75)
        iqr[columns] = high - low
    return sd, iqr


def _quantile(ranked: Floats, q: float) -> Floats:  # (d, n) -> (d,), linear between neighbours
    position = q * (ranked.shape[1] - 1)
    below = int(position)
    above = min(below + 1, ranked.shape[1] - 1)
    quantile: Floats = ranked[:, below] + (position - below) * (
        ranked[:, above] - ranked[:, below]
    )
    return quantile


def kernel_mass(columns: Columns, j: int, h: float) -> Floats:  # (K, K)
    """Return the mass in each cell (rows) of the kernel around each value (columns)."""
    edges, points = columns.edges[j], columns.points[j]
    assert edges is not None
    assert points is not None
    k = len(points)
    if columns.is_categorical[j]:
        others = (1.0 - OWN_CHOICE) / max(k - 1, 1)
        mass = np.where(np.eye(k, dtype=np.bool_), OWN_CHOICE, others)
    else:
        z = (edges[:, None] - points[None, :]) / h
        # On the right of the centre as a difference of right tails: both tails are small numbers.
        mass = np.where(z[:-1] > 0, -np.diff(ndtr(-z), axis=0), np.diff(ndtr(z), axis=0))
    normalised: Floats = mass / mass.sum(axis=0)
    return normalised


@dataclass(frozen=True, eq=False)
class Points:
    """Points prepared for `Parzen.log_pdf`: the features depend on the space alone."""

    features: Floats  # (F, C)
    cells: dict[int, Ints]  # column -> (C,), the columns that are looked up
    is_coarse: bool = False  # whether single precision will do, where bandwidths allow it

    @classmethod
    def of(cls, columns: Columns, X: Floats, *, is_coarse: bool = False) -> Points:
        """Prepare complete points (no NaN) of the given columns."""
        gaussian, one_hot, looked_up = columns.layout
        centred = X[:, gaussian].T - 0.5
        blocks = [centred**2, centred, np.ones((1, len(X)))]
        for j in one_hot:
            cells = np.arange(columns.n_cells[j])[:, None]
            blocks.append((columns.cells(X[:, j], j) == cells).astype(np.float64))
        looked_up_cells = {j: columns.cells(X[:, j], j) for j in looked_up}
        return cls(np.vstack(blocks), looked_up_cells, is_coarse)

    @cached_property
    def coarse(self) -> NDArray[np.float32]:
        """The features in single precision."""
        return self.features.astype(np.float32)

    def __len__(self) -> int:
        return int(self.features.shape[1])


class Parzen:
    """The density of one set of observations (see the module)."""

    def __init__(self, columns: Columns, centers: Floats, bandwidth: Floats | None = None) -> None:
        self.columns = columns
        self.centers = centers
        self.bandwidth = bandwidths(columns, centers) if bandwidth is None else bandwidth

    def __len__(self) -> int:
        return len(self.centers)

    def reduced(self, kept: Sequence[int]) -> Parzen:
        """Return the density of the columns `kept` alone, with the same bandwidths."""
        kept = list(kept)
        return Parzen(self.columns.take(kept), self.centers[:, kept], self.bandwidth[kept])

    @cached_property
    def _coefficients(self) -> tuple[Floats, dict[int, Floats]]:
        """The coefficients (F, n) and, for each column looked up, its table (K, n)."""
        gaussian, one_hot, looked_up = self.columns.layout
        centers, h = self.centers[:, gaussian].T, self.bandwidth[gaussian][:, None]
        is_missing = np.isnan(centers)
        centers = np.where(is_missing, 0.5, centers)
        inside = _mass_inside(centers, h)
        centred = centers - 0.5
        square = np.broadcast_to(-0.5 / h**2, centers.shape)
        linear = centred / h**2
        constant = centred * linear
        constant *= -0.5
        constant -= np.log(inside)
        constant -= np.log(h) + _LOG_SQRT_2PI
        if is_missing.any():
            square, linear, constant = (
                np.where(is_missing, 0.0, term) for term in (square, linear, constant)
            )
        blocks = [square, linear, constant.sum(axis=0, keepdims=True)]
        blocks += [self._table(j) for j in one_hot]
        tables = {j: self._table(j) for j in looked_up}
        return np.vstack(blocks), tables

    def _table(self, j: int) -> Floats:  # (K, n)
        """Return the log density in each cell of the kernel around each centre."""
        edges = self.columns.edges[j]
        assert edges is not None
        mass = kernel_mass(self.columns, j, float(self.bandwidth[j]))
        with np.errstate(divide="ignore"):  # a cell many bandwidths away may have no mass at all
            log_density = np.log(mass) - np.log(np.diff(edges))[:, None]
        # The cell -1 of a missing centre is the last column: a factor of one.
        padded = np.hstack([np.maximum(log_density, -_MAX_LOG), np.zeros((len(mass), 1))])
        return padded[:, self.columns.cells(self.centers[:, j], j)]

    @cached_property
    def _peak(self) -> float:
        """An upper bound of the log of any kernel."""
        gaussian = self.bandwidth[self.columns.n_cells == 0]
        # Phi((1 - c)/h) - Phi(-c/h) is at least Phi(1/h) - 1/2: half of the mass is inside.
        at_least = np.log(ndtr(1.0 / gaussian) - 0.5)
        heights = -np.log(gaussian) - _LOG_SQRT_2PI - at_least
        discrete = np.log(np.maximum(self.columns.n_cells, 1)) + 1.0
        return float(np.maximum(heights, 0).sum() + discrete.sum())

    @cached_property
    def _binary(self) -> tuple[Floats, dict[int, Floats]]:
        """The coefficients for logs to base two: exp2 is cheaper than exp."""
        coefficients, tables = self._coefficients
        return coefficients * _LOG2_E, {j: table * _LOG2_E for j, table in tables.items()}

    @cached_property
    def _coarse(self) -> tuple[NDArray[np.float32], dict[int, NDArray[np.float32]]]:
        """The same in single precision."""
        coefficients, tables = self._binary
        coarse = {j: table.astype(np.float32) for j, table in tables.items()}
        return coefficients.astype(np.float32), coarse

    @cached_property
    def _may_be_coarse(self) -> bool:
        """Whether single precision keeps the log of a kernel right to about 1e-3.

        The terms of the product are as large as 1/(4 h^2) and cancel where the kernel is high.
        """
        gaussian = self.bandwidth[self.columns.n_cells == 0]
        return self._peak < _MAX_LOG_COARSE and bool((gaussian >= 0.01).all())

    def log_pdf(self, points: Points, *, uniform: bool = True) -> Floats:  # (C,)
        """Return the log density at each of the points, with or without the uniform component."""
        log_n = math.log(len(self) + uniform)
        if self._peak > _MAX_LOG:  # only in spaces of a hundred columns or more
            log_kernels = _log_kernels(points.features, *self._coefficients, points, slice(None))
            parts = np.vstack([log_kernels, np.zeros((int(uniform), len(points)))])
            log_sum: Floats = logsumexp(parts, axis=0)
            return log_sum - log_n
        if points.is_coarse and self._may_be_coarse:
            total = float(uniform) + _kernel_sums(points.coarse, *self._coarse, points)
        else:
            total = float(uniform) + _kernel_sums(points.features, *self._binary, points)
        with np.errstate(divide="ignore"):  # without the uniform component it may be zero
            log_density: Floats = np.log(total) - log_n
        return log_density

    def marginal(self, j: int) -> tuple[Floats, Floats]:
        """Return the marginal density of a column and the width of the cells that it is given on.

        Exact for a discrete column, one entry a cell; for a continuous one, the density in the
        middle of cells that are at most half a bandwidth wide.
        """
        if self.columns.edges[j] is None:
            density, widths = self.gaussian_marginals([j])
            return density[:, 0], widths
        edges, centers = self.columns.edges[j], self.centers[:, j]
        assert edges is not None
        present = centers[~np.isnan(centers)]
        counts = np.bincount(self.columns.cells(present, j), minlength=len(edges) - 1)
        widths = np.diff(edges)
        kernels = kernel_mass(self.columns, j, float(self.bandwidth[j])) @ counts / widths
        n_flat = (
            len(centers) - len(present) + 1
        )  # centres without this column, and the uniform one
        return (kernels + n_flat) / (len(centers) + 1), widths

    def gaussian_marginals(self, js: Sequence[int]) -> tuple[Floats, Floats]:  # (G, c), (G,)
        """Return the marginal densities of continuous columns in the middle of G common cells."""
        h = self.bandwidth[list(js)][:, None]  # (c, 1)
        centers = self.centers[:, list(js)].T  # (c, n)
        n_cells = math.ceil(max(32.0, 2.0 / h.min()))
        middles = (np.arange(n_cells) + 0.5) / n_cells
        is_missing = np.isnan(centers)
        centers = np.where(is_missing, 0.5, centers)
        inside = _mass_inside(centers, h)
        heights = np.where(is_missing, 0.0, 1.0 / (h * math.sqrt(2.0 * math.pi) * inside))
        total = np.ones((len(js), n_cells)) + is_missing.sum(axis=1)[:, None]  # what is flat
        n_rows = max(1, 4 * _BLOCK // total.size)
        for start in range(0, len(self), n_rows):
            block = slice(start, start + n_rows)
            # In place and summed by a product: this is done for every suggestion.
            kernels = (middles[:, None] - centers[:, None, block]) * (math.sqrt(0.5) / h)[
                :, :, None
            ]
            np.exp(-np.square(kernels, out=kernels), out=kernels)  # (c, G, block)
            total += (kernels @ heights[:, block, None])[:, :, 0]
        return total.T / (len(self) + 1), np.full(n_cells, 1.0 / n_cells)

    def sample(self, n: int, *, rng: np.random.Generator) -> Floats:  # (n, d)
        """Draw points, column by column from the marginals."""
        return sample([self], n, rng=rng)

    def sample_kernels(self, n: int, *, rng: np.random.Generator) -> Floats:  # (n, d)
        """Draw points around one centre each, from the density without its uniform component."""
        uniforms = rng.random((n, 1 + len(self.columns)))
        around = self.centers[(uniforms[:, 0] * len(self)).astype(np.int64)]
        h = np.broadcast_to(self.bandwidth, around.shape)
        return _place(self.columns, around, h, uniforms[:, 1:])


def _mass_inside(centers: Floats, h: Floats) -> Floats:  # (c, n), (c, 1) -> (c, n)
    """Return Phi((1 - c)/h) - Phi(-c/h): how much of the Gaussians around centers is in [0, 1].

    The further border is beyond eight bandwidths for most, and its tail then below rounding.
    """
    far = np.abs(centers - 0.5) + 0.5
    mass = ndtr((1.0 - far) / h)  # the distance to the nearer border
    z = far / h
    is_cut = z < 8.3
    mass[is_cut] -= ndtr(-z[is_cut])
    return mass


def _log_kernels(
    features: NDArray[_Real],
    coefficients: NDArray[_Real],
    tables: Mapping[int, NDArray[_Real]],
    points: Points,
    block: slice,
    out: NDArray[_Real] | None = None,
) -> NDArray[_Real]:  # (block, C)
    """Return the log of the kernel around each centre of the block at each point."""
    log_kernels: NDArray[_Real] = np.matmul(coefficients[:, block].T, features, out=out)
    for j, table in tables.items():
        log_kernels += table[:, block].T[:, points.cells[j]]
    return log_kernels


def _kernel_sums(
    features: NDArray[_Real],
    coefficients: NDArray[_Real],
    tables: Mapping[int, NDArray[_Real]],
    points: Points,
) -> Floats:  # (C,)
    """Return the sum of the kernels at each point, some centres at a time."""
    n_rows = max(1, min(_BLOCK // max(len(points), 1), coefficients.shape[1]))
    buffer = np.empty((n_rows, len(points)), dtype=features.dtype)
    ones = np.ones(n_rows, dtype=features.dtype)
    least = np.full(len(points), _LEAST_LOG2, dtype=features.dtype)
    total = np.zeros(len(points))
    for start in range(0, coefficients.shape[1], n_rows):
        block = slice(start, start + n_rows)
        kernels = buffer[: coefficients.shape[1] - start]
        _log_kernels(features, coefficients, tables, points, block, out=kernels)
        if kernels.dtype == np.float32:
            np.maximum(kernels, least, out=kernels)
        np.exp2(kernels, out=kernels)
        total += ones[: len(kernels)] @ kernels  # a sum over the rows, by BLAS
    return total


def sample(parzens: Sequence[Parzen], n: int, *, rng: np.random.Generator) -> Floats:  # (T * n, d)
    """Draw n points from each of T densities of one space, those of the first one first.

    Each coordinate is drawn on its own, from the marginal of its column.
    """
    columns = parzens[0].columns
    d = len(columns)
    uniforms = rng.random((len(parzens), n, 2, d))
    pick, place = uniforms[:, :, 0], uniforms[:, :, 1]
    # The uniform component is one more centre, with all coordinates missing.
    sizes = np.array([len(p) + 1 for p in parzens])
    centers = np.vstack([rows for p in parzens for rows in (p.centers, np.full((1, d), np.nan))])
    first = (np.cumsum(sizes) - sizes)[:, None, None]
    component = first + (pick * sizes[:, None, None]).astype(np.int64)
    around = np.take_along_axis(centers, component.reshape(-1, d), axis=0)
    h = np.repeat(np.stack([p.bandwidth for p in parzens]), n, axis=0)
    return _place(columns, around, h, place.reshape(-1, d))


def _place(columns: Columns, around: Floats, h: Floats, place: Floats) -> Floats:  # all (N, d)
    """Return for uniform numbers `place` a point each from the kernels around `around`."""
    is_missing = np.isnan(around)
    centre = np.where(is_missing, 0.5, around)
    below, above = ndtr(-centre / h), ndtr((1.0 - centre) / h)
    gaussian = centre + h * ndtri(below + place * (above - below))
    X = np.where(is_missing, place, np.clip(gaussian, 0.0, 1.0))
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
