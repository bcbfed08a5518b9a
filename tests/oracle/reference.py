"""The method once more, in plain loops from the paper's equations: slow, and easy to check.

What the fast code must agree with. Nothing here is shared with the library, and numbers come as
plain lists. NaN is a missing coordinate.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, floor, inf, isfinite, isnan, log, prod, sqrt
from statistics import NormalDist, correlation, fmean, pstdev, quantiles

Point = list[float]
Column = tuple[list[float] | None, bool]  # edges of the cells or None, is it categorical
Density = tuple[list[Column], list[Point], list[float]]  # columns, centres, bandwidths

# The order of observations, and the split --------------------------------------------------------


def dominates(a: Point, b: Point) -> bool:
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def fronts(f: list[Point], rows: list[int]) -> list[list[int]]:
    """Return the rows by non-domination rank, one front after the other peeled off."""
    if not rows:
        return []
    first = [i for i in rows if not any(dominates(f[j], f[i]) for j in rows)]
    return [first, *fronts(f, [i for i in rows if i not in first])]


def crowding(f: list[Point], front: list[int], i: int) -> float:
    """Return the crowding distance of row i in its front; 0 for a vector that is there twice."""
    if [f[j] for j in front].count(f[i]) > 1:
        return 0.0
    distance = 0.0
    for m, own in enumerate(f[i]):
        line = sorted((f[j][m], j) for j in front if isfinite(f[j][m]))
        if not isfinite(own) or line[0][0] == line[-1][0]:
            continue
        k = line.index((own, i))
        if k in (0, len(line) - 1):
            return inf
        distance += (line[k + 1][0] - line[k - 1][0]) / (line[-1][0] - line[0][0])
    return distance


def volume(points: list[Point], r: Point) -> float:
    """Return the volume that points dominate below r, slice by slice of the last coordinate."""
    if not r:
        return float(bool(points))
    cuts = [*sorted({p[-1] for p in points if p[-1] < r[-1]}), r[-1]]
    return sum(
        (b - a) * volume([p[:-1] for p in points if p[-1] <= a], r[:-1]) for a, b in pairwise(cuts)
    )


def scaled(f: list[Point], front: list[int], ranked: list[int]) -> tuple[dict[int, Point], Point]:
    """Return a front in units of its own range, and the reference point of its hypervolume."""
    z: dict[int, Point] = {i: [] for i in front}
    r: Point = []
    for m in range(len(f[0])):
        own, every = ([f[i][m] for i in g if isfinite(f[i][m])] or [0.0] for g in (front, ranked))
        (a, b), (v, w) = ((min(x), max(x)) for x in (own, every))
        r.append(1 + min(1, (w - b + 0.1 * (w - v)) / (b - a or 1)))
        for i in front:
            z[i].append(min(max(0.0, (f[i][m] - a) / (b - a or 1)), r[-1]))
    return z, r


def best_first(f: list[Point], front: list[int], ranked: list[int]) -> list[int]:
    """Return a front by the hypervolume that each adds; by crowding with two objectives."""
    best: list[int] = []
    rest = sorted(front, key=lambda i: -crowding(f, front, i))
    z, r = scaled(f, front, ranked)
    while len(r) > 2 and rest:
        before = volume([z[j] for j in best], r)
        added = {i: round(volume([z[j] for j in [*best, i]], r) - before, 9) for i in sorted(rest)}
        first = max(added, key=lambda i: added[i])
        if added[first] <= 0:
            break
        best.append(first)
        rest.remove(first)
    return best + rest


def n_good(n: int, m: int, n_front: int, gamma: float, *, keeps_front: bool) -> int:
    """Return how many of n observations are good; n_front of them are in the first front."""
    wanted = ceil(round(gamma * n, 9))
    if keeps_front and m == 2:
        wanted = max(wanted, min(n_front, 3))
    return min(n - 1, wanted)


def split(
    f: list[Point], violation: Point, gamma: float, *, keeps_front: bool = True
) -> tuple[list[int], list[int], list[int]]:
    """Return the good rows, the bad ones, and the level of each: how far behind it is."""
    line = fronts(f, [i for i, v in enumerate(violation) if v == 0])
    ranked = [i for front in line for i in front if f[i] != [inf] * len(f[i])]
    infeasible = [i for i, v in enumerate(violation) if v > 0]
    line += [[i] for i in sorted(infeasible, key=lambda i: (violation[i], i))]
    order = [i for front in line for i in best_first(f, front, ranked)]
    k = n_good(len(f), len(f[0]), len(line[0]), gamma, keeps_front=keeps_front)
    level = {i: place for place, front in enumerate(line) for i in front}
    return order[:k], order[k:], [level[i] for i in range(len(f))]


# Densities ---------------------------------------------------------------------------------------


def bandwidth(column: Column, present: Point) -> float:
    """Return Scott's bandwidth of the entries of a column, between its bounds."""
    edges, is_categorical = column
    low, _, high = quantiles(present, method="inclusive") if len(present) > 1 else (0, 0, 0)
    scott = 1.059 * min(pstdev(present), (high - low) / 1.34) * len(present) ** -0.2
    least = 0.1 / sqrt(len(present))
    if edges is not None and not is_categorical:
        least = max(least, min(0.1, 1 / (len(edges) - 1)))
    return min(0.5, max(least, scott))


def fit(columns: list[Column], centers: list[Point]) -> Density:
    """Return the density of observations."""
    h = []
    for j, column in enumerate(columns):
        present = [c[j] for c in centers if not isnan(c[j])]
        h.append(bandwidth(column, present or [0.0]))
    return columns, centers, h


def kernel(column: Column, x: float, c: float, h: float) -> float:
    """Return the density at x of the kernel around c in one column."""
    if isnan(c) or isnan(x):
        return 1.0
    (edges, is_categorical), gauss = column, NormalDist(c, h)
    inside = gauss.cdf(1) - gauss.cdf(0)
    if edges is None:
        return gauss.pdf(x) / inside
    cell, own = (sum(edge <= z for edge in edges[1:-1]) for z in (x, c))
    if is_categorical and len(edges) > 2:
        mass = 0.9 if cell == own else 0.1 / (len(edges) - 2)
    else:
        mass = (gauss.cdf(edges[cell + 1]) - gauss.cdf(edges[cell])) / inside
    return mass / (edges[cell + 1] - edges[cell])


def density(p: Density, x: Point, n_uniform: int = 1) -> float:
    """Return the density at x, with or without the uniform component."""
    columns, centers, h = p
    kernels = [prod(map(kernel, columns, x, c, h)) for c in centers]
    return (n_uniform + sum(kernels)) / (n_uniform + len(kernels))


def reduced(p: Density, kept: list[int]) -> Density:
    """Return the density of some columns alone."""
    columns, centers, h = p
    own = [[c[j] for j in kept] for c in centers]
    return [columns[j] for j in kept], own, [h[j] for j in kept]


# The task kernel ---------------------------------------------------------------------------------


def importance(p: Density, j: int, gamma: float) -> float:
    """Return PED-ANOVA's importance of column j: how far its marginal is from uniform."""
    marginal, edges = reduced(p, [j]), p[0][j][0]
    cells = pairwise(edges or [i / 300 for i in range(301)])
    return gamma**2 * sum((b - a) * (density(marginal, [(a + b) / 2]) - 1) ** 2 for a, b in cells)


def kept_columns(
    goods: list[Density], gamma: float, eta: float, *, keeps_one: bool = True
) -> list[int]:
    """Return the most important columns on average over the tasks; the first one is the study."""
    V = {}
    for j in range(len(goods[0][0])):
        has = [not all(isnan(c[j]) for c in centers) for _, centers, _ in goods]
        if any(has[1:]):
            V[j] = fmean(importance(p, j, gamma) for p, h in zip(goods, has, strict=True) if h)
    k = max(int(keeps_one), floor(log(len(goods[0][1]), eta)))
    return sorted(sorted(V, key=lambda j: -V[j])[:k])


def similarity(p: Density, q: Density, nodes: list[tuple[Point, float]]) -> float:
    """Return (1 - d) / (1 + d), d the total variation; the nodes are points and q's mass there."""
    d = sum(mass * max(0.0, 1 - density(p, x, 0) / density(q, x, 0)) for x, mass in nodes)
    return (1 - d) / (1 + d)


def doubled_ranks(values: list[float]) -> list[int]:
    return [sum(w < v for w in values) + sum(w <= v for w in values) for v in values]


def trust(good: Density, bad: Density, X: list[Point], levels: list[int]) -> float:
    """Return min(1, 2 Phi(z)), z from the rank correlation of log ratios with levels."""
    ratios = [round(log(density(good, x) / density(bad, x)), 6) for x in X]
    a, b = doubled_ranks(ratios), doubled_ranks([float(level) for level in levels])
    rho = correlation(a, b) if len({*a}) > 1 and len({*b}) > 1 else 0.0
    return min(1.0, 2 * NormalDist().cdf(-rho * sqrt(len(X) - 1)))


# The acquisition ---------------------------------------------------------------------------------


def joint(side: list[Density], w: list[float], x: Point) -> float:
    """Return sum_m w_m N_m p_m(x) over the tasks' densities of one side."""
    return sum(w_m * len(p[1]) * density(p, x) for w_m, p in zip(w, side, strict=True))
