"""The method in plain loops, from the paper's equations: what the fast code must agree with."""

from itertools import pairwise
from math import ceil, floor, inf, isfinite, isnan, log, prod, sqrt
from operator import le
from statistics import NormalDist, correlation, fmean, pstdev, quantiles

Point = list[float]
Column = tuple[list[float] | None, bool]  # edges of the cells or None, is it categorical
Density = tuple[list[Column], list[Point], list[float]]  # columns, centres, bandwidths


def fronts(f: list[Point], rows: list[int]) -> list[list[int]]:
    left = {i for i in rows for j in rows if f[j] != f[i] and all(map(le, f[j], f[i]))}
    return [[i for i in rows if i not in left], *fronts(f, sorted(left))] if rows else []


def crowding(f: list[Point], front: list[int], i: int) -> float:
    distance = 0.0
    for m, own in enumerate(f[i]):
        line = sorted((f[j][m], j) for j in front if isfinite(f[j][m]))
        if isfinite(own) and (spread := line[-1][0] - line[0][0]) > 0:
            k = line.index((own, i))
            is_inner = 0 < k < len(line) - 1
            distance += (line[k + 1][0] - line[k - 1][0]) / spread if is_inner else inf
    return 0.0 if [f[j] for j in front].count(f[i]) > 1 else distance


def volume(points: list[Point], r: Point) -> float:
    """Return the volume that points dominate below r, slice by slice of the last coordinate."""
    if not r:
        return float(bool(points))
    cuts = [*sorted({p[-1] for p in points if p[-1] < r[-1]}), r[-1]]
    return sum(
        (b - a) * volume([p[:-1] for p in points if p[-1] <= a], r[:-1]) for a, b in pairwise(cuts)
    )


def scaled(f: list[Point], front: list[int], ranked: list[int]) -> tuple[dict[int, Point], Point]:
    """Return a front in units of its range, and the reference point."""
    z: dict[int, Point] = {i: [] for i in front}
    r = []
    for m in range(len(f[0])):
        own, every = ([f[i][m] for i in g if isfinite(f[i][m])] or [0.0] for g in (front, ranked))
        (a, b), (v, w) = ((min(x), max(x)) for x in (own, every))
        r.append(1 + min(1, (w - b + 0.1 * (w - v)) / (b - a or 1)))
        for i in front:
            z[i].append(min(max(0.0, (f[i][m] - a) / (b - a or 1)), r[-1]))
    return z, r


def best_first(f: list[Point], front: list[int], ranked: list[int]) -> list[int]:
    """Return a front by the hypervolume that each adds, with two objectives by crowding."""
    rest, best = sorted(front, key=lambda i: -crowding(f, front, i)), list[int]()
    z, r = scaled(f, front, ranked)
    while len(r) > 2 and rest:
        before = volume([z[j] for j in best], r)
        added = {i: round(volume([z[j] for j in [*best, i]], r) - before, 9) for i in sorted(rest)}
        if added[i := max(added, key=lambda i: added[i])] <= 0:
            break
        best.append(i)
        rest.remove(i)
    return best + rest


def split(f: list[Point], violation: Point, gamma: float) -> tuple[list[int], list[int], Point]:
    n, m, line = len(f), len(f[0]), fronts(f, [i for i, v in enumerate(violation) if v == 0])
    ranked = [i for front in line for i in front if f[i] != [inf] * m]
    rest = {*range(n)} - {i for front in line for i in front}
    line += [[i] for i in sorted(rest, key=lambda i: (violation[i], i))]
    order = [i for front in line for i in best_first(f, front, ranked or [0])]
    k = min(n - 1, max(ceil(round(gamma * n, 9)), min(len(line[0]), m + 1) * (m > 1)))
    return order[:k], order[k:], [[i in g for g in line].index(True) for i in range(n)]


def fit(columns: list[Column], centers: list[Point]) -> Density:
    h = []
    for j, (edges, is_categorical) in enumerate(columns):
        present = [c[j] for c in centers if not isnan(c[j])] or [0.0]
        low, _, high = quantiles(present, method="inclusive") if present[1:] else (0, 0, 0)
        scott = 1.059 * min(pstdev(present), (high - low) / 1.34) * len(present) ** -0.2
        step = 0.0 if edges is None or is_categorical else min(0.1, 1 / (len(edges) - 1))
        h.append(min(0.5, max(0.1 / sqrt(len(present)), step, scott)))
    return columns, centers, h


def kernel(column: Column, x: float, c: float, h: float) -> float:
    if isnan(c) or isnan(x):
        return 1.0
    (edges, is_categorical), gauss = column, NormalDist(c, h)
    if edges is None:
        return gauss.pdf(x) / (gauss.cdf(1) - gauss.cdf(0))
    cell, own = (sum(edge <= z for edge in edges[1:-1]) for z in (x, c))
    mass = (gauss.cdf(edges[cell + 1]) - gauss.cdf(edges[cell])) / (gauss.cdf(1) - gauss.cdf(0))
    if is_categorical and len(edges) > 2:
        mass = 0.9 if cell == own else 0.1 / (len(edges) - 2)
    return mass / (edges[cell + 1] - edges[cell])


def density(p: Density, x: Point, flat: int = 1) -> float:  # flat: is there a uniform component
    columns, centers, h = p
    kernels = [prod(map(kernel, columns, x, c, h)) for c in centers]
    return (flat + sum(kernels)) / (flat + len(kernels))


def reduced(p: Density, kept: list[int]) -> Density:
    columns, *centers, h = [[row[j] for j in kept] for row in (p[0], *p[1], p[2])]
    return columns, centers, h


def importance(p: Density, j: int, gamma: float) -> float:
    cells, p_j = pairwise(p[0][j][0] or [i / 300 for i in range(301)]), reduced(p, [j])
    return gamma**2 * sum((b - a) * (density(p_j, [(a + b) / 2]) - 1) ** 2 for a, b in cells)


def kept_columns(goods: list[Density], gamma: float, eta: float) -> list[int]:
    V, n = {}, len(goods[0][1])
    for j in range(len(goods[0][0])):
        having = [p for p in goods if not all(isnan(c[j]) for c in p[1])]
        if having not in ([], goods[:1]):
            V[j] = fmean([importance(p, j, gamma) for p in having])
    return sorted(sorted(V, key=lambda j: -V[j])[: max(1, floor(log(n, eta)))])


def similarity(p: Density, q: Density, nodes: list[tuple[Point, float]]) -> float:
    d = sum(mass * max(0.0, 1 - density(p, x, 0) / density(q, x, 0)) for x, mass in nodes)
    return (1 - d) / (1 + d)


def trust(good: Density, bad: Density, X: list[Point], levels: Point) -> float:
    r = [round(log(density(good, x) / density(bad, x)), 6) for x in X]
    a, b = ([sum(w < v for w in u) + sum(w <= v for w in u) for v in u] for u in (r, levels))
    rho = correlation(a, b) if len({*a}) > 1 < len({*b}) else 0.0
    return min(1.0, 2 * NormalDist().cdf(-rho * sqrt(len(X) - 1)))


def joint(side: list[Density], w: list[float], x: Point) -> float:
    return sum(w_m * len(p[1]) * density(p, x) for w_m, p in zip(w, side, strict=True))
