"""Encoding and decoding: every value of every distribution of Optuna, and nothing else."""

import math
from typing import Any

import numpy as np
import optuna
import pytest
from helpers import DISTRIBUTIONS, INF, MIXED, NAN, distributions, locked, whole_space
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from scipy.stats import chisquare

from metatpe import Space

of_every_kind = pytest.mark.parametrize(
    "distribution", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS.keys()
)
GRIDS = [name for name, d in DISTRIBUTIONS.items() if getattr(d, "step", None)]
FINITE = [name for name in [*GRIDS, "choices", "many choices"] if not DISTRIBUTIONS[name].single()]


def alone(distribution: BaseDistribution) -> Space:
    return Space({"x": distribution})


def decode(distribution: BaseDistribution, *coordinates: float) -> list[Any]:
    decoded = alone(distribution).decode(np.array(coordinates)[:, None])
    return [params["x"] for params in decoded]


def encode(distribution: BaseDistribution, *values: Any) -> list[float]:
    return alone(distribution).encode([{"x": value} for value in values])[:, 0].tolist()


def grid_values(distribution: BaseDistribution) -> list[Any]:
    """Return all values of a grid, a thousand evenly spread ones of a large one."""
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    step = distribution.step
    assert step is not None
    n = round((distribution.high - distribution.low) / step) + 1
    return [distribution.low + step * k for k in sorted({n * i // 1000 for i in range(1000)})]


def assert_is_value(distribution: BaseDistribution, value: Any) -> None:
    assert distribution._contains(distribution.to_internal_repr(value))
    if isinstance(distribution, CategoricalDistribution):
        assert any(value is choice for choice in distribution.choices)
    else:
        assert type(value) is (int if isinstance(distribution, IntDistribution) else float)


def is_same(a: Any, b: Any) -> bool:
    """Return whether two values are the same up to the last digits of a float."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return type(a) is type(b) and bool(a == b)


@of_every_kind
def test_every_point_of_the_cube_is_a_value(
    distribution: BaseDistribution, rng: np.random.Generator
) -> None:
    for value in decode(distribution, 0.0, 1.0, 0.5, *rng.random(200)):
        assert_is_value(distribution, value)


@of_every_kind
def test_decoding_undoes_encoding(
    distribution: BaseDistribution, rng: np.random.Generator
) -> None:
    values = decode(distribution, 0.0, 1.0, *rng.random(200))
    again = decode(distribution, *encode(distribution, *values))
    assert all(map(is_same, values, again))


@pytest.mark.parametrize("name", GRIDS)
def test_every_value_of_a_grid_is_decoded_from_its_code(name: str) -> None:
    values = grid_values(DISTRIBUTIONS[name])
    again = decode(DISTRIBUTIONS[name], *encode(DISTRIBUTIONS[name], *values))
    assert again == pytest.approx(values, abs=1e-9)


@given(distribution=distributions(), x=st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(max_examples=150, derandomize=True)
def test_encoding_and_decoding_are_inverse_over_all_distributions(
    distribution: BaseDistribution, x: list[float]
) -> None:
    values = decode(distribution, *x)
    code = encode(distribution, *values)
    assert all(0.0 <= c <= 1.0 for c in code)
    for value, again in zip(values, decode(distribution, *code), strict=True):
        assert_is_value(distribution, value)
        assert is_same(value, again)


@given(distribution=distributions(), x=st.floats(0, 1))
@settings(max_examples=100, derandomize=True)
def test_the_cell_of_a_code_does_not_change_when_it_is_snapped(
    distribution: BaseDistribution, x: float
) -> None:
    space, X = alone(distribution), np.array([[x]])
    snapped = space.columns.snap(X)
    np.testing.assert_array_equal(space.columns.snap(snapped), snapped)
    if space.columns.n_cells[0]:
        np.testing.assert_allclose(space.encode(space.decode(snapped)), snapped, atol=1e-9)


@pytest.mark.parametrize("name", FINITE)
def test_uniform_points_are_values_as_frequent_as_with_a_random_sampler(
    name: str, rng: np.random.Generator
) -> None:
    distribution, n = DISTRIBUTIONS[name], 2000
    sampler = optuna.samplers.RandomSampler(seed=int(rng.integers(1000)))
    study = optuna.create_study()
    trial = optuna.trial.create_trial(value=0.0)
    theirs = [sampler.sample_independent(study, trial, "x", distribution) for _ in range(n)]
    ours = decode(distribution, *rng.random(n))
    # Ten bins with about the same number of theirs in each, compared as two samples.
    internal = np.array([[distribution.to_internal_repr(v) for v in vs] for vs in (ours, theirs)])
    borders = np.unique(np.quantile(internal[1], np.linspace(0, 1, 11)[1:-1]))
    bins = np.searchsorted(borders, internal + 1e-6)
    counts = np.stack([np.bincount(row, minlength=bins.max() + 1) for row in bins])
    expected = counts.mean(axis=0)
    assert chisquare(counts[0][expected > 0], expected[expected > 0]).pvalue > 1e-3


@pytest.mark.parametrize("name", [n for n, d in DISTRIBUTIONS.items() if d.single()])
def test_a_single_value_is_a_cell_of_the_whole_column_and_no_reason_for_a_warning(
    name: str,
) -> None:
    with np.errstate(all="raise"):
        columns = alone(DISTRIBUTIONS[name]).columns
    assert columns.edges[0] is not None
    assert columns.edges[0].tolist() == [0.0, 1.0]
    assert columns.n_cells.tolist() == [1]


def test_a_linear_scale_is_linear_and_a_log_scale_logarithmic() -> None:
    assert encode(FloatDistribution(-1, 3), -1, 0, 3) == [0.0, 0.25, 1.0]
    np.testing.assert_allclose(
        encode(FloatDistribution(1e-4, 1e-2, log=True), 1e-4, 1e-3, 1e-2), [0, 0.5, 1], atol=1e-12
    )


def test_a_grid_has_equal_cells_with_its_values_in_the_middle() -> None:
    columns = alone(IntDistribution(10, 25, step=5)).columns
    np.testing.assert_allclose(columns.edges[0], [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(columns.points[0], [0.125, 0.375, 0.625, 0.875])


def test_an_integer_on_a_log_scale_has_the_cell_from_half_below_to_half_above() -> None:
    columns = alone(IntDistribution(1, 4, log=True)).columns
    borders = np.log([0.5, 1.5, 2.5, 3.5, 4.5])
    scale = borders[-1] - borders[0]
    np.testing.assert_allclose(columns.edges[0], (borders - borders[0]) / scale)
    np.testing.assert_allclose(columns.points[0], (np.log([1, 2, 3, 4]) - borders[0]) / scale)


@pytest.mark.parametrize(
    ("distribution", "n_cells"),
    [
        (FloatDistribution(0, 1), 0),
        (IntDistribution(1, 256), 256),
        (IntDistribution(0, 256), 0),
        (IntDistribution(1, 256, log=True), 256),
        (FloatDistribution(0, 1, step=0.5), 3),
        (CategoricalDistribution("abcd"), 4),
        (FloatDistribution(2, 2), 1),
    ],
    ids=str,
)
def test_a_large_grid_is_a_continuous_column(distribution: BaseDistribution, n_cells: int) -> None:
    columns = alone(distribution).columns
    assert columns.n_cells.tolist() == [n_cells]
    assert columns.is_finite == (n_cells > 0)
    assert columns.is_categorical[0] == isinstance(distribution, CategoricalDistribution)


def test_cells_hold_the_points_between_their_borders() -> None:
    columns = alone(IntDistribution(0, 3)).columns
    x = np.array([0.0, 0.1, 0.25, 0.5, 0.74, 0.75, 1.0, NAN])
    assert columns.cells(x, 0).tolist() == [0, 0, 1, 2, 2, 3, 3, -1]


def test_all_configurations_of_a_finite_space_are_listed_once_with_their_volume() -> None:
    columns = MIXED.columns.take([2, 3, 4])
    X, volumes = columns.list_all()
    expected_X, expected_volumes = whole_space(columns, 1)
    np.testing.assert_allclose(X, expected_X)
    np.testing.assert_allclose(volumes, expected_volumes)
    assert len(np.unique(X, axis=0)) == 5 * 30 * 3
    assert volumes.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("sizes", "is_listable"),
    [((64, 64), True), ((65, 64), False), ((), True)],
)
def test_a_finite_space_of_few_configurations_is_worth_listing(
    sizes: tuple[int, ...], is_listable: bool
) -> None:
    space = Space({str(i): IntDistribution(1, k) for i, k in enumerate(sizes)})
    assert space.columns.is_listable == is_listable
    assert not MIXED.columns.is_listable  # has continuous parameters


def test_columns_can_be_taken_in_any_order() -> None:
    taken = MIXED.columns.take([4, 0])
    assert taken.n_cells.tolist() == [3, 0]
    assert taken.is_categorical.tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("float", [-3.1, 5.1, INF, -INF, NAN, "1.0", None, True]),
        ("log float", [0.0, -1.0, 1e3]),
        ("int", [-3, 8, "2", None, False]),
        ("log int", [0, 41, -1]),
        ("stepped float", [10.25, -10.3]),
        ("choices", ["Adam", None, 0, NAN]),
        ("mixed choices", ["b", 3, True]),
        ("one float", [0.2, 0.4]),
        ("one choice", [0, "None"]),
    ],
)
def test_a_value_that_the_distribution_does_not_have_is_missing(
    name: str, values: list[Any]
) -> None:
    assert np.isnan(encode(DISTRIBUTIONS[name], *values)).all()
    assert all(alone(DISTRIBUTIONS[name]).fit({"x": value}) == {} for value in values)


@pytest.mark.parametrize(
    ("distribution", "value", "nearest"),
    [
        (IntDistribution(0, 10), 3.4, 3),
        (IntDistribution(0, 10, step=5), 7, 5),
        (IntDistribution(1, 1000, log=True), 99.6, 100),
        (FloatDistribution(0, 1, step=0.25), 0.3, 0.25),
        (IntDistribution(0, 100_000, step=10), 123, 120),
        (FloatDistribution(0, 0.3, step=0.1), 3 * 0.1, 0.3),  # a little more than the highest
    ],
)
def test_a_value_off_the_grid_becomes_its_neighbour(
    distribution: BaseDistribution, value: float, nearest: float
) -> None:
    assert encode(distribution, value) == encode(distribution, nearest)
    fitted = alone(distribution).fit({"x": value})["x"]
    assert_is_value(distribution, fitted)
    assert fitted == pytest.approx(nearest)


def test_a_number_of_another_type_keeps_its_place() -> None:
    assert encode(IntDistribution(0, 4), 2.0, np.int64(2), np.float32(2)) == [0.5] * 3
    assert alone(IntDistribution(0, 4)).fit({"x": 2.0}) == {"x": 2}
    assert type(alone(IntDistribution(0, 4)).fit({"x": np.int64(2)})["x"]) is int
    assert type(alone(FloatDistribution(0, 4)).fit({"x": 2})["x"]) is float


def test_what_fits_is_handed_out_unchanged() -> None:
    params = {"float": 0.1 + 0.2, "log": 3e-3, "grid": 4, "log int": 7, "choice": "b"}
    assert MIXED.fit({**params, "unknown": 1}) == params
    assert MIXED.fit({"grid": 9, "choice": "z", "float": 1.0}) == {"float": 1.0}


def test_fitting_keeps_every_digit_of_a_float(rng: np.random.Generator) -> None:
    space = alone(FloatDistribution(1e-7, 1e3, log=True))
    for value in np.exp(rng.uniform(-16, 6, size=100)).tolist():
        assert space.fit({"x": value}) == {"x": value}


def test_an_absent_parameter_is_missing_and_stays_so() -> None:
    X = MIXED.encode([{"float": 0.25, "choice": "c"}, {}])
    np.testing.assert_array_equal(np.isnan(X), [[0, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
    assert MIXED.decode(X) == [{"float": 0.25, "choice": "c"}, {}]


@pytest.mark.parametrize("choices", [(1, 1.0, "sqrt"), (0, False, "x"), (True, 1, 1.0)], ids=str)
def test_choices_that_compare_equal_have_cells_of_their_own(choices: tuple[Any, ...]) -> None:
    distribution = CategoricalDistribution(choices)
    x = encode(distribution, *choices)
    assert x == pytest.approx([1 / 6, 3 / 6, 5 / 6])
    assert [(c, type(c)) for c in decode(distribution, *x)] == [(c, type(c)) for c in choices]
    fitted = alone(distribution).fit({"x": choices[1]})["x"]
    assert type(fitted) is type(choices[1])


def test_a_value_of_another_type_is_the_first_choice_that_it_equals() -> None:
    distribution = CategoricalDistribution((2, 2.0, "a"))
    assert encode(distribution, np.int64(2), np.float64(2.0), True)[:2] == pytest.approx(
        [1 / 6] * 2
    )


def test_a_choice_that_is_listed_twice_has_one_cell() -> None:
    columns = alone(CategoricalDistribution(("a", "b", "a", NAN, NAN))).columns
    x = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    np.testing.assert_array_equal(columns.cells(x, 0), [0, 1, 0, 3, 3])
    np.testing.assert_array_equal(columns.take([0]).cells(x, 0), [0, 1, 0, 3, 3])


def test_spaces_with_equal_choices_in_another_order_differ() -> None:
    first, second = (alone(CategoricalDistribution(c)) for c in ((0, False), (False, 0)))
    assert first != second
    assert first == alone(CategoricalDistribution((0, False)))
    assert alone(CategoricalDistribution((NAN,))) == alone(CategoricalDistribution((-NAN,)))


@pytest.mark.parametrize("high", [2**31, 2**53, 2**63 - 1, 10**300])
def test_a_log_scale_of_integers_has_no_zero(high: int) -> None:
    distribution = IntDistribution(1, high, log=True)
    assert np.isnan(encode(distribution, 0, -1)).all()
    assert encode(distribution, 1)[0] == pytest.approx(math.log(2) / math.log(2 * high), abs=0.01)


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(-1.7e308, 1.7e308),
        IntDistribution(0, 10**400),
    ],
    ids=["float", "int"],
)
def test_a_range_that_is_too_wide_to_compute_with_is_refused(
    distribution: BaseDistribution,
) -> None:
    with pytest.raises(ValueError, match=r"parameter 'x': .* choose bounds that differ by less"):
        alone(distribution)


@pytest.mark.parametrize("low", [1e9, -2e9])
def test_what_rounding_adds_at_the_ends_of_a_grid_is_still_on_it(low: float) -> None:
    distribution = FloatDistribution(low, low + 1e3, step=1e-3)
    ends = distribution.low, distribution.high
    off = math.nextafter(ends[0], -INF), math.nextafter(ends[1], INF)  # by more than 1e-8 steps
    assert encode(distribution, *off) == encode(distribution, *ends)


def test_the_largest_integer_is_not_rounded_out_of_its_range() -> None:
    distribution = IntDistribution(1, 2**63 - 1)  # which is 2**63 as a float, and so in storages
    assert decode(distribution, 0.0, 1.0) == [1, 2**63 - 1024]
    below = IntDistribution(-(2**63) + 1, 5)
    assert decode(below, 0.0) == [-(2**63) + 1024]
    only = IntDistribution(2**63 - 1, 2**63 - 1)
    assert decode(only, 0.5) == [2**63 - 1]


def test_the_only_integer_of_a_range_stays_in_it_where_no_float_is_that_integer() -> None:
    odd = 2**53 + 1  # which is 2**53 as a float
    assert decode(IntDistribution(odd, odd), 0.5) == [odd]


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
def test_choices_need_not_be_hashable() -> None:
    distribution = CategoricalDistribution(([1, 2], [3], "a"))  # type: ignore[list-item]
    assert decode(distribution, *encode(distribution, [3], "a", [1, 2])) == [[3], "a", [1, 2]]
    assert np.isnan(encode(distribution, [4], {})).all()


def test_spaces_with_the_same_distributions_are_equal() -> None:
    same = Space(MIXED.distributions)
    assert same == MIXED
    assert hash(same) == hash(MIXED)
    assert Space(dict(reversed(MIXED.distributions.items()))) != MIXED
    assert alone(FloatDistribution(0, 1)) != alone(FloatDistribution(0, 2))
    assert MIXED != "a space"
    assert "log int" in repr(MIXED)
    assert len(Space({})) == 0


def test_changing_what_a_space_was_made_of_does_not_change_it() -> None:
    made_of: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1)}
    space = Space(made_of)
    made_of["y"] = FloatDistribution(0, 1)
    space.distributions["y"] = FloatDistribution(0, 1)
    assert space.names == ("x",)


def test_an_unknown_distribution_is_refused_by_name() -> None:
    class Strange(BaseDistribution):
        def __repr__(self) -> str:
            return "Strange()"

        def single(self) -> bool:
            return False

        def _contains(self, value: float) -> bool:
            return True

        def to_internal_repr(self, value: Any) -> float:
            return 0.0

    with pytest.raises(ValueError, match=r"Strange\(\) is not a distribution that metatpe knows"):
        alone(Strange())


def test_numbers_stand_between_points_and_values(rng: np.random.Generator) -> None:
    X = locked(rng.random((20, len(MIXED))))
    numbers = locked(MIXED.decode_numbers(X))
    np.testing.assert_allclose(MIXED.encode_numbers(numbers), MIXED.columns.snap(X), atol=1e-12)
    assert MIXED.values(numbers) == MIXED.decode(X)


@pytest.mark.parametrize("k", [1, 15, 16, 17, 256, 257, 300])
@pytest.mark.parametrize("kind", ["int", "choice"])
def test_every_column_is_in_one_group_of_the_layout(k: int, kind: str) -> None:
    values = (
        IntDistribution(0, k - 1)
        if kind == "int"
        else CategoricalDistribution([f"c{i}" for i in range(k)])
    )
    columns = Space({"x": FloatDistribution(0, 1), "k": values}).columns
    continuous, few, many = columns.layout
    assert sorted(continuous + few + many) == [0, 1]
    is_continuous = kind == "int" and k > 256
    assert (1 in few, 1 in many) == (k <= 16, k > 16 and not is_continuous)


@pytest.mark.parametrize("choices", [[16, 32, 64], [0.5, 0.1, 0.01], [1, 1.5, INF]])
def test_choices_that_are_sorted_numbers_are_the_cells_of_a_grid(choices: list[float]) -> None:
    columns = Space({"c": CategoricalDistribution(choices)}).columns
    assert not columns.is_categorical.any()
    assert columns.n_cells.tolist() == [3]
    np.testing.assert_allclose(columns.edges[0], [0, 1 / 3, 2 / 3, 1])


@pytest.mark.parametrize(
    "choices",
    [
        [32, 16, 64],
        [16, 32],
        [1, 2, 2, 3],
        [1, 2, NAN],
        [1, 2, None],
        [False, True, 2],
        ["1", "2", "3"],
        range(257),
    ],
)
def test_other_choices_have_no_order(choices: list[Any]) -> None:
    assert Space({"c": CategoricalDistribution(choices)}).columns.is_categorical.all()


def test_a_number_beyond_the_sorted_choices_is_none_of_them() -> None:
    space = Space({"c": CategoricalDistribution([16, 32, 64])})
    assert space.may_have(np.array([[0.0], [2.0], [NAN]])).all()
    assert not space.may_have(np.array([[3.0], [0.5], [-1.0]])).any()


@pytest.mark.parametrize(
    "single",
    [FloatDistribution(2.0, 2.0), IntDistribution(3, 3), FloatDistribution(1, 1, log=True)],
)
def test_a_single_value_lies_in_the_middle(single: FloatDistribution | IntDistribution) -> None:
    space = Space({"p": single})
    assert space.encode([{"p": single.low}, {}, {"p": single.low + 1}])[0].tolist() == [0.5]
    assert np.isnan(space.encode([{}, {"p": single.low + 1}])).all()
