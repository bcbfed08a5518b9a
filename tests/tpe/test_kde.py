"""The Parzen estimator against plain loops, sums over whole spaces, SciPy and Optuna."""

import math

import numpy as np
import pytest
from helpers import MIXED, NAN, locked, pdf, plain_columns, random_points, whole_space
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers._tpe import probability_distributions as optuna_tpe
from oracle import reference
from scipy.stats import chisquare, iqr, kstest, norm, truncnorm

from metatpe import Space
from metatpe.space import Columns, Floats, Ints
from metatpe.tpe.cells import cell_mass, kernel_mass, log2_in_cells
from metatpe.tpe.kde import (
    Parzen,
    Points,
    bandwidths,
    mass_inside,
    sample,
    sample_kernels,
)

CONTINUOUS = FloatDistribution(0, 1)
KINDS: dict[str, BaseDistribution] = {
    "continuous": CONTINUOUS,
    "grid": IntDistribution(0, 6),
    "long grid": IntDistribution(1, 50),
    "log integers": IntDistribution(1, 12, log=True),
    "many log integers": IntDistribution(2, 200, log=True),
    "choices": CategoricalDistribution("abcde"),
    "many choices": CategoricalDistribution([f"c{i}" for i in range(30)]),
    "very many choices": CategoricalDistribution([f"c{i}" for i in range(300)]),
    "one value": IntDistribution(3, 3),
}
SPACES: dict[str, Space] = {
    **{name: Space({"x": distribution}) for name, distribution in KINDS.items()},
    "mixed": MIXED,
}
of_every_kind = pytest.mark.parametrize("name", SPACES)
with_missing = pytest.mark.parametrize("missing", [0.0, 0.3, 1.0], ids="missing={}".format)


def columns_of(*distributions: BaseDistribution) -> Columns:
    return Space({f"x{i}": distribution for i, distribution in enumerate(distributions)}).columns


def drawn_from(parzen: Parzen, n: int, rng: np.random.Generator) -> Floats:
    """Draw points, column by column from the marginals."""
    return sample([parzen], [n], rng=rng)


def drawn_around(parzen: Parzen, n: int, rng: np.random.Generator) -> Floats:
    """Draw points around one centre each, from the density without its uniform component."""
    centers, h = parzen.centers[None], parzen.bandwidth[None]
    return np.asarray(sample_kernels(parzen.columns, centers, h, n, rng=rng)[0])


def marginal(parzen: Parzen, j: int) -> tuple[Floats, Floats]:
    """Return the marginal density of a column in cells, and their widths."""
    if parzen.columns.edges[j] is not None:
        return parzen.marginal(j)
    density, widths = parzen.gaussian_marginals([j])
    return density[:, 0], widths


@of_every_kind
@with_missing
@pytest.mark.parametrize("n", [0, 1, 15])
def test_the_density_integrates_to_one(
    name: str, missing: float, n: int, rng: np.random.Generator
) -> None:
    columns = SPACES[name].columns
    parzen = Parzen(columns, random_points(columns, n, rng, missing))
    X, volumes = whole_space(columns, 400 if len(columns) == 1 else 16)
    assert volumes.sum() == pytest.approx(1.0)
    tolerance = 1e-10 if columns.is_finite else 5e-3  # sums over cells are exact
    assert volumes @ pdf(parzen, X) == pytest.approx(1.0, abs=tolerance)
    if n:
        assert volumes @ pdf(parzen, X, uniform=False) == pytest.approx(1.0, abs=2 * tolerance)


@of_every_kind
@with_missing
@pytest.mark.parametrize("n", [0, 1, 2, 15])
def test_the_density_is_that_of_plain_loops(
    name: str, missing: float, n: int, rng: np.random.Generator
) -> None:
    columns = SPACES[name].columns
    centers = random_points(columns, n, rng, missing)
    X = random_points(columns, 30, rng)
    plain = reference.fit(plain_columns(columns), centers.tolist())
    parzen = Parzen(columns, centers)
    np.testing.assert_allclose(parzen.bandwidth, plain[2], rtol=1e-12)
    expected = [reference.density(plain, x) for x in X.tolist()]
    np.testing.assert_allclose(pdf(parzen, X), expected, rtol=1e-9)
    if n:
        expected = [reference.density(plain, x, 0) for x in X.tolist()]
        np.testing.assert_allclose(pdf(parzen, X, uniform=False), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("h", [0.01, 0.1, 0.5])
def test_one_continuous_column_is_a_mixture_of_truncated_normals(
    h: float, rng: np.random.Generator
) -> None:
    centers, X = rng.random((2, 20, 1))
    parzen = Parzen(columns_of(CONTINUOUS), locked(centers), locked(np.array([h])))
    kernels = truncnorm.pdf(X, -centers.T / h, (1 - centers.T) / h, loc=centers.T, scale=h)
    np.testing.assert_allclose(pdf(parzen, X), (1 + kernels.sum(axis=1)) / 21, rtol=1e-9)


def optuna_log_pdf(centers: Floats, h: float, step: float | None, x: Floats) -> Floats:
    """Return the log density of Optuna's estimator in one column, with a prior that is flat."""
    mu, sigma = np.append(centers, 0.5), np.append(np.full(len(centers), h), 1e8)
    weights = np.full(len(mu), 1 / len(mu))
    kernels = (
        optuna_tpe._BatchedTruncNormDistributions(mu, sigma, 0.0, 1.0)
        if step is None
        else optuna_tpe._BatchedDiscreteTruncNormDistributions(
            mu, sigma, step / 2, 1 - step / 2, step
        )
    )
    return optuna_tpe._MixtureOfProductDistribution(weights, [kernels]).log_pdf(x[:, None])


def test_one_continuous_column_is_optunas_estimator(rng: np.random.Generator) -> None:
    centers, x = rng.random((2, 20))
    parzen = Parzen(columns_of(CONTINUOUS), locked(centers[:, None]))
    theirs = optuna_log_pdf(centers, float(parzen.bandwidth[0]), None, x)
    np.testing.assert_allclose(np.log(pdf(parzen, x[:, None])), theirs, atol=1e-7)


@pytest.mark.parametrize("k", [2, 10, 40])
def test_one_grid_is_optunas_estimator(k: int, rng: np.random.Generator) -> None:
    columns = columns_of(IntDistribution(1, k))
    centers, points = random_points(columns, 20, rng), columns.points[0]
    assert points is not None
    parzen = Parzen(columns, centers)
    mass = optuna_log_pdf(centers[:, 0], float(parzen.bandwidth[0]), 1 / k, points)
    # Theirs is the mass of a cell, ours its density.
    np.testing.assert_allclose(np.log(pdf(parzen, points[:, None]) / k), mass, atol=1e-7)


def test_choices_have_no_order_however_many_there_are(rng: np.random.Generator) -> None:
    for k in (2, 5, 40, 300):
        columns = columns_of(CategoricalDistribution([f"c{i}" for i in range(k)]))
        X = (np.arange(k)[:, None] + 0.5) / k
        density = pdf(Parzen(columns, X[:1]), X)
        np.testing.assert_allclose(density[0], (1 + 0.9 * k) / 2)
        np.testing.assert_allclose(density[1:], (1 + 0.1 * k / (k - 1)) / 2)
        drawn = drawn_from(Parzen(columns, X[:1]), 1000, rng)
        assert np.mean(drawn == X[0]) == pytest.approx(0.45 + 0.5 / k, abs=0.08)


def test_a_column_of_one_value_changes_nothing(rng: np.random.Generator) -> None:
    columns = columns_of(CONTINUOUS, FloatDistribution(2, 2), CategoricalDistribution([None]))
    centers, X = random_points(columns, 10, rng), random_points(columns, 10, rng)
    parzen = Parzen(columns, centers)
    np.testing.assert_allclose(pdf(parzen, X), pdf(parzen.reduced([0]), X[:, :1]))


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "continuous"])
@pytest.mark.parametrize("h", [0.02, 0.1, 0.5])
def test_the_mass_of_a_cell_and_its_log_density_agree(kind: str, h: float) -> None:
    columns = columns_of(KINDS[kind])
    edges, each = columns.edges[0], np.arange(columns.n_cells[0])
    assert edges is not None
    log2 = log2_in_cells(columns, 0, each[:, None], each, locked(np.full(len(each), h)))
    mass = kernel_mass(columns, 0, h)
    np.testing.assert_allclose(mass.sum(axis=0), 1.0)
    np.testing.assert_allclose(np.exp2(log2) * np.diff(edges)[:, None], mass, atol=1e-12)
    missing = log2_in_cells(columns, 0, each, np.full(len(each), -1), np.full(len(each), h))
    np.testing.assert_array_equal(missing, 0.0)


def test_a_missing_coordinate_is_a_factor_of_one(rng: np.random.Generator) -> None:
    columns = MIXED.columns
    center, X = random_points(columns, 1, rng), random_points(columns, 20, rng)
    for kept in ([0], [1, 4], [2, 3], [0, 1, 2, 3]):
        partial = np.full_like(center, NAN)
        partial[:, kept] = center[:, kept]
        parzen = Parzen(columns, locked(partial))
        np.testing.assert_allclose(pdf(parzen, X), pdf(parzen.reduced(kept), X[:, kept]))


def test_nothing_known_is_a_density_of_one(rng: np.random.Generator) -> None:
    X = random_points(MIXED.columns, 20, rng)
    for centers in (np.empty((0, 5)), np.full((3, 5), NAN)):
        np.testing.assert_allclose(pdf(Parzen(MIXED.columns, centers), X), 1.0)


@pytest.mark.parametrize("kind", ["grid", "choices", "log integers"])
def test_looking_up_a_cell_is_the_same_as_multiplying_by_it(
    kind: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = columns_of(KINDS[kind], CONTINUOUS)
    centers, X = random_points(columns, 15, rng, 0.2), random_points(columns, 15, rng)
    multiplied = pdf(Parzen(columns, centers), X)
    monkeypatch.setattr("metatpe.space.FEW_CELLS", 1)
    fresh = columns.take(range(len(columns)))  # the layout is made anew
    np.testing.assert_allclose(pdf(Parzen(fresh, centers), X), multiplied, rtol=1e-12)


def test_working_in_blocks_changes_nothing(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = MIXED.columns
    centers, X = random_points(columns, 50, rng, 0.2), random_points(columns, 15, rng)
    whole = pdf(Parzen(columns, centers), X)
    monkeypatch.setattr("metatpe.tpe.kde._BLOCK", 100)
    np.testing.assert_allclose(pdf(Parzen(columns, centers), X), whole, rtol=1e-12)


def test_single_precision_is_right_to_three_digits(rng: np.random.Generator) -> None:
    columns = MIXED.columns
    parzen = Parzen(columns, random_points(columns, 60, rng, 0.2))
    X = np.vstack([drawn_around(parzen, 200, rng), rng.random((200, 5))])
    coarse = parzen.log_pdf(Points.of(columns, X, is_coarse=True))
    np.testing.assert_allclose(coarse, np.log(pdf(parzen, X)), atol=1e-3)


def test_a_narrow_kernel_is_exact_in_single_precision_too() -> None:
    columns = columns_of(CONTINUOUS)
    parzen = Parzen(columns, np.array([[0.987]]), np.array([1e-4]))
    X = 0.987 + 1e-4 * np.linspace(-3, 3, 50)[:, None]
    exact = (1 + norm.pdf(X[:, 0], 0.987, 1e-4)) / 2
    coarse = parzen.log_pdf(Points.of(columns, X, is_coarse=True))
    np.testing.assert_allclose(np.exp(coarse), exact, rtol=1e-6)


@pytest.mark.parametrize(("d", "h"), [(1, 1e-4), (60, 0.1)], ids=["cancels", "overflows"])
def test_what_single_precision_cannot_hold_is_computed_in_double(d: int, h: float) -> None:
    columns = columns_of(*[CONTINUOUS] * d)
    centers = np.array([[0.1], [0.987]]).repeat(d, axis=1)[: 1 + (d == 1)]
    parzen = Parzen(columns, centers, np.full(d, h))
    X = np.vstack([centers, centers + 0.5 * h, centers - 2.0 * h])
    coarse, fine = (
        parzen.log_pdf(Points.of(columns, np.clip(X, 0.0, 1.0), is_coarse=is_coarse))
        for is_coarse in (True, False)
    )
    np.testing.assert_allclose(coarse, fine, atol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.3], ids="missing={}".format)
def test_how_many_kernels_and_points_are_looked_at_together_changes_nothing(
    missing: float, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    parzen = Parzen(MIXED.columns, random_points(MIXED.columns, 11, rng, missing))
    points = Points.of(MIXED.columns, random_points(MIXED.columns, 7, rng))
    continuous = list(MIXED.columns.layout[0])
    log_pdf, (marginals, _) = parzen.log_pdf(points), parzen.gaussian_marginals(continuous)
    for n_entries, n_points in [(1, 1), (1, 100), (20, 3), (20, 7)]:
        monkeypatch.setattr("metatpe.tpe.kde._BLOCK", n_entries)
        monkeypatch.setattr("metatpe.tpe.kde._MAX_POINTS", n_points)
        np.testing.assert_allclose(parzen.log_pdf(points), log_pdf, rtol=1e-12)
        some, _ = parzen.gaussian_marginals(continuous)
        np.testing.assert_allclose(some, marginals, rtol=1e-5)


@pytest.mark.parametrize("is_coarse", [False, True])
@pytest.mark.parametrize(
    ("kind", "d"), [("continuous", 250), ("choices", 300), ("many log integers", 120)]
)
def test_hundreds_of_columns_do_not_overflow(
    kind: str, d: int, is_coarse: bool, rng: np.random.Generator
) -> None:
    columns = columns_of(*[KINDS[kind]] * d)
    centers = random_points(columns, 3, rng)
    parzen = Parzen(columns, centers, np.full(d, 0.01))
    points = Points.of(columns, np.vstack([centers, rng.random((5, d))]), is_coarse=is_coarse)
    log_pdf = parzen.log_pdf(points)
    first = Parzen(columns, centers[:1], parzen.bandwidth)
    alone = [pdf(first.reduced([j]), centers[:1, [j]], uniform=False) for j in range(d)]
    assert log_pdf[0] == pytest.approx(np.log(alone).sum() - math.log(4), rel=1e-6)
    np.testing.assert_allclose(log_pdf[3:], -math.log(4), atol=1e-6)


@of_every_kind
def test_the_density_is_never_less_than_its_uniform_part(
    name: str, rng: np.random.Generator
) -> None:
    columns, n = SPACES[name].columns, 40
    centers = np.repeat(random_points(columns, 1, rng), n, axis=0)
    log_pdf = np.log(
        pdf(Parzen(columns, centers, np.full(len(columns), 1e-3)), whole_space(columns, 8)[0])
    )
    assert np.isfinite(log_pdf).all()
    assert (log_pdf >= -math.log(n + 1) - 1e-12).all()


def test_a_tail_is_as_heavy_on_the_right_as_on_the_left() -> None:
    # Beside sharp columns even a cell eight bandwidths away has a kernel of more than one.
    columns = columns_of(IntDistribution(0, 39), *[CONTINUOUS] * 9)
    X = np.full((40, 10), 0.5)
    X[:, 0] = (np.arange(40) + 0.5) / 40
    h = np.array([0.05, *[1e-3] * 9])
    left, right = (np.log(pdf(Parzen(columns, X[[i]], h), X)) for i in (19, 20))
    np.testing.assert_allclose(right, left[::-1], rtol=1e-9)


# Bandwidths


def hand_bandwidth(x: Floats, floor: float) -> float:
    scott = 1.059 * min(np.std(x), iqr(x) / 1.34) * len(x) ** -0.2
    return min(0.5, max(floor, 0.1 / math.sqrt(len(x)), scott))


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize(
    ("distribution", "floor"),
    [
        (CONTINUOUS, 0.0),
        (CategoricalDistribution("abc"), 0.0),
        (IntDistribution(1, 3), 0.1),
        (IntDistribution(1, 40), 1 / 40),
        (IntDistribution(1, 40, log=True), 1 / 40),
        (IntDistribution(1, 1000), 0.0),
    ],
    ids=str,
)
def test_the_bandwidth_is_scotts_with_the_robust_spread(
    n: int, distribution: BaseDistribution, floor: float, rng: np.random.Generator
) -> None:
    columns = columns_of(distribution)
    X = random_points(columns, n, rng)
    assert bandwidths(columns, X) == pytest.approx(hand_bandwidth(X[:, 0], floor))
    narrow = columns.snap(0.5 + 0.01 * (X - 0.5))
    assert bandwidths(columns, narrow) == pytest.approx(hand_bandwidth(narrow[:, 0], floor))


@pytest.mark.parametrize(
    ("x", "h"),
    [
        ([0.3], 0.1),
        ([0.3] * 4, 0.05),
        ([0.3] * 10_000, 0.001),
        ([0.0, 1.0], 1.059 * 0.5 / 1.34 * 2**-0.2),
        ([0.1, 0.1, 0.1, 0.1, 0.9], 0.1 / math.sqrt(5)),  # no spread between the quartiles
    ],
    ids=["one entry", "equal entries", "many equal entries", "two ends", "an outlier"],
)
def test_the_bandwidth_vanishes_as_observations_grow(x: list[float], h: float) -> None:
    assert bandwidths(columns_of(CONTINUOUS), np.array(x)[:, None]) == pytest.approx(h)


def test_only_entries_that_are_present_count_for_the_bandwidth(rng: np.random.Generator) -> None:
    columns = columns_of(CONTINUOUS, CONTINUOUS, IntDistribution(1, 5))
    X = np.array(random_points(columns, 30, rng))
    X[10:, 1] = NAN
    X[:, 2] = NAN
    h = bandwidths(columns, locked(X))
    expected = [hand_bandwidth(X[:, 0], 0), hand_bandwidth(X[:10, 1], 0), 0.1]
    np.testing.assert_allclose(h, expected)


# Marginals and reduced densities


@with_missing
def test_a_marginal_is_the_sum_of_the_joint_density(
    missing: float, rng: np.random.Generator
) -> None:
    columns = columns_of(*(KINDS[k] for k in ("grid", "log integers", "choices", "one value")))
    parzen = Parzen(columns, random_points(columns, 12, rng, missing))
    X, volumes = whole_space(columns, 1)
    mass = volumes * pdf(parzen, X)
    for j in range(len(columns)):
        density, widths = marginal(parzen, j)
        summed = np.bincount(columns.cells(X[:, j], j), weights=mass)
        np.testing.assert_allclose(density * widths, summed, rtol=1e-10)
        own = parzen.reduced([j])
        points = columns.points[j]
        assert points is not None
        np.testing.assert_allclose(density, pdf(own, points[:, None]), rtol=1e-10)


@with_missing
def test_a_continuous_marginal_is_the_reduced_density_in_fine_cells(
    missing: float, rng: np.random.Generator
) -> None:
    parzen = Parzen(MIXED.columns, random_points(MIXED.columns, 12, rng, missing))
    for j in (0, 1):
        density, widths = marginal(parzen, j)
        assert widths.sum() == pytest.approx(1.0)
        assert widths.max() <= parzen.bandwidth[j] / 2
        middles = np.cumsum(widths) - widths / 2
        np.testing.assert_allclose(density, pdf(parzen.reduced([j]), middles[:, None]), rtol=1e-5)


def test_a_reduced_density_is_the_integral_over_the_other_columns(
    rng: np.random.Generator,
) -> None:
    parzen = Parzen(MIXED.columns, random_points(MIXED.columns, 10, rng, 0.2))
    X, volumes = whole_space(MIXED.columns, 16)
    grid, inverse = np.unique(X[:, [4, 2]], axis=0, return_inverse=True)
    volume = np.bincount(inverse.ravel(), weights=volumes)
    mass = np.bincount(inverse.ravel(), weights=volumes * pdf(parzen, X))
    np.testing.assert_allclose(mass / volume, pdf(parzen.reduced([4, 2]), grid), rtol=1e-2)


# Samples


@of_every_kind
@pytest.mark.parametrize("uniform", [True, False])
def test_each_column_of_a_sample_follows_the_marginal(
    name: str, uniform: bool, rng: np.random.Generator
) -> None:
    columns, n = SPACES[name].columns, 4000
    parzen = Parzen(columns, random_points(columns, 6, rng, 0.2))
    X = drawn_from(parzen, n, rng) if uniform else drawn_around(parzen, n, rng)
    assert X.shape == (n, len(columns))
    np.testing.assert_array_equal(columns.snap(X), X)
    for j in range(len(columns)):
        density, widths = marginal(parzen, j)
        mass = widths * (density if uniform else (7 * density - 1) / 6)  # of six centres
        if columns.n_cells[j] == 0:
            borders, cdf = np.cumsum(np.append(0, widths)), np.cumsum(np.append(0, mass))
            assert kstest(X[:, j], lambda x, b=borders, c=cdf: np.interp(x, b, c)).pvalue > 1e-4
        elif columns.n_cells[j] > 1:
            counts = np.bincount(columns.cells(X[:, j], j), minlength=len(mass))
            assert chi_square(counts, n * mass) > 1e-4


def chi_square(counts: Ints, expected: Floats) -> float:
    """Return how probable counts are, cells with few expected ones together."""
    is_rare = expected < 5
    observed, wanted = (np.append(v[~is_rare], v[is_rare].sum()) for v in (counts, expected * 1.0))
    some = wanted > 1e-9
    assert observed[~some].sum() == 0
    return float(chisquare(observed[some], wanted[some] * observed.sum() / wanted.sum()).pvalue)


def test_a_sample_around_the_centres_follows_the_joint_density(rng: np.random.Generator) -> None:
    columns, n = columns_of(KINDS["grid"], KINDS["log integers"], KINDS["choices"]), 20_000
    parzen = Parzen(columns, random_points(columns, 4, rng, 0.2))
    X, volumes = whole_space(columns, 1)
    expected = n * volumes * pdf(parzen, X, uniform=False)
    drawn = drawn_around(parzen, n, rng)
    cells = [columns.cells(rows[:, j], j) for rows in (X, drawn) for j in range(3)]
    np.testing.assert_array_equal(np.ravel_multi_index(cells[:3], columns.n_cells), range(len(X)))
    index = np.ravel_multi_index(cells[3:], columns.n_cells)
    assert chi_square(np.bincount(index, minlength=len(X)), expected) > 1e-4


def test_candidates_forget_which_coordinates_belong_together(rng: np.random.Generator) -> None:
    columns = columns_of(CONTINUOUS, CONTINUOUS)
    parzen = Parzen(columns, np.array([[0.1, 0.1], [0.9, 0.9]] * 20))
    assert np.corrcoef(drawn_around(parzen, 3000, rng).T)[0, 1] > 0.7
    assert abs(np.corrcoef(drawn_from(parzen, 3000, rng).T)[0, 1]) < 0.1


@of_every_kind
def test_samples_lie_in_the_cube_however_narrow_the_kernels(
    name: str, rng: np.random.Generator
) -> None:
    columns = SPACES[name].columns
    for x in (0.0, 1.0, 0.5):
        centers = columns.snap(np.full((20, len(columns)), x))
        parzen = Parzen(columns, centers, np.full(len(columns), 1e-6))
        X = np.vstack([drawn_from(parzen, 500, rng), drawn_around(parzen, 500, rng)])
        assert ((X >= 0.0) & (X <= 1.0)).all()


def test_the_table_of_the_normal_distribution_is_right_to_ten_digits() -> None:
    h = np.array([1e-6, 0.01, 0.07, 0.2, 0.5])[:, None]
    centers = np.linspace(0.0, 1.0, 10_001)[None]
    inside = norm.cdf((1.0 - centers) / h) - norm.cdf(-centers / h)
    np.testing.assert_allclose(mass_inside(np.repeat(centers, 5, axis=0), h), inside, atol=1e-10)
    assert mass_inside(np.array([[NAN]]), np.array([[0.1]])) == 1.0


@pytest.mark.parametrize("name", ["continuous", "grid", "choices"])
def test_some_centres_stand_for_all(name: str, rng: np.random.Generator) -> None:
    columns = SPACES[name].columns
    X, points = random_points(columns, 3000, rng), random_points(columns, 50, rng)
    whole = Parzen(columns, X)
    some = whole.thinned(2000)
    assert len(some) == 3000
    assert some.centers.shape == (2000, 1)
    assert some.bandwidth is whole.bandwidth
    np.testing.assert_allclose(pdf(some, points), pdf(whole, points), rtol=0.2)
    np.testing.assert_allclose(pdf(some.reduced([0]), points), pdf(some, points))
    assert whole.thinned(3000) is whole


@pytest.mark.parametrize("n", [0, 5, 10, 11, 35])
def test_some_observations_count_as_all(n: int, rng: np.random.Generator) -> None:
    columns = SPACES["mixed"].columns
    X = locked(random_points(columns, n, rng))
    some = Parzen.of_some(columns, X, 10)
    assert len(some) == n
    assert len(some.centers) == min(n, 10)
    np.testing.assert_array_equal(some.bandwidth, bandwidths(columns, some.centers))
    if n > 10:  # evenly spread over the course of the study
        rows = [int(np.flatnonzero((center == X).all(axis=1))[0]) for center in some.centers]
        assert np.diff(rows).max() - np.diff(rows).min() <= 1


def test_some_centres_leave_the_uniform_part_as_it_is() -> None:
    far = Parzen(columns_of(CONTINUOUS), np.full((3000, 1), 0.1), np.array([0.01])).thinned(100)
    assert pdf(far, np.array([[0.9]])) == pytest.approx(1 / 3001)


@pytest.mark.parametrize(("spread", "n_cells"), [(0.0, 80), (1.0, 32)])
def test_marginals_are_given_in_cells_of_half_a_bandwidth_at_most(
    spread: float, n_cells: int
) -> None:
    columns = Space({"x": FloatDistribution(0.0, 1.0)}).columns
    centers = np.linspace(0.5 - spread / 2, 0.5 + spread / 2, 16)[:, None]
    density, widths = Parzen(columns, centers).gaussian_marginals([0])
    assert density.shape == (n_cells, 1)  # the least bandwidth is 0.1 / sqrt(16)
    assert density[:, 0] @ widths == pytest.approx(1.0, rel=0.01)


def test_a_stepped_kernel_is_as_exact_far_to_the_right_as_far_to_the_left() -> None:
    columns = Space({"n": IntDistribution(0, 10)}).columns
    mass = cell_mass(columns, 0, np.arange(11), np.array(5), 0.02)
    assert (mass[[0, 10]] > 0.0).all()  # at twenty bandwidths
    np.testing.assert_allclose(mass, mass[::-1], rtol=1e-9)
