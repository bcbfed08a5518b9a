"""The ranges worth searching: where the good observations of past tasks are."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from helpers import DISTRIBUTIONS, INF, NAN, task_of
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from metatpe import Space, Task
from metatpe.past.known import Past
from metatpe.past.ranges import GoodRange, _good, good_ranges, shortest, volume_left, widened
from metatpe.space import Floats

UNIT = FloatDistribution(0.0, 1.0)


def ranges_of(
    space: dict[str, BaseDistribution], *X: list[list[float]], mass: float = 0.9
) -> dict[str, GoodRange]:
    """Return the ranges of tasks whose good observations are exactly these points."""
    own = Space(space)
    return good_ranges(Past([task_with(own, good, i) for i, good in enumerate(X)], own), mass)


def task_with(space: Space, good: list[list[float]], number: int = 0) -> Task:
    """Return a task with good observations, and nine times as many bad ones all over the space."""
    n = len(good)
    bad = np.random.default_rng(number).random((9 * n, len(space)))
    X = np.vstack([np.array(good, dtype=np.float64), space.columns.snap(bad)])
    losses = np.repeat([0.0, 1.0], [n, 9 * n]) + np.arange(10 * n) * 1e-3
    return Task(f"task {number}", space, X, losses[:, None])


def cell(k: int, n: int) -> float:
    """Return the middle of the k-th of n equal cells."""
    return (k + 0.5) / n


def test_a_range_is_around_the_good_observations_of_all_tasks(rng: np.random.Generator) -> None:
    left, right = rng.uniform(0.2, 0.3, (30, 1)), rng.uniform(0.5, 0.6, (30, 1))
    found = ranges_of({"x": FloatDistribution(0, 10)}, left.tolist(), right.tolist())["x"]
    assert isinstance(found.distribution, FloatDistribution)
    assert found.distribution.low == pytest.approx(2.0, abs=0.3)
    assert found.distribution.high == pytest.approx(6.0, abs=0.3)
    width = found.distribution.high - found.distribution.low
    assert found.volume == pytest.approx(width / 10)
    assert found.usage == 1.0


def test_a_larger_mass_needs_a_range_that_holds_the_smaller_one(rng: np.random.Generator) -> None:
    good = rng.beta(2, 5, (50, 1)).tolist()
    found = [ranges_of({"x": UNIT}, good, mass=mass)["x"] for mass in (0.3, 0.6, 0.9, 1.0)]
    volumes = [each.volume for each in found]
    assert volumes == sorted(volumes)
    assert volumes[0] < volumes[-1]
    for narrow, wide in pairwise(found):
        inner, outer = narrow.distribution, wide.distribution
        assert isinstance(inner, FloatDistribution)
        assert isinstance(outer, FloatDistribution)
        assert outer.low - 0.02 <= inner.low < inner.high <= outer.high + 0.02


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=12), st.floats(0.05, 1.0))
def test_no_run_of_cells_with_the_mass_is_shorter(weights: list[float], mass: float) -> None:
    masses = np.array(weights) / np.sum(weights)
    edges = np.concatenate([[0.0], np.cumsum(weights[::-1])])
    first, end = shortest(masses, edges, mass)
    assert masses[first:end].sum() >= mass - 1e-6
    runs = [(i, j) for i in range(len(masses)) for j in range(i + 1, len(masses) + 1)]
    enough = [edges[j] - edges[i] for i, j in runs if masses[i:j].sum() >= mass]
    assert edges[end] - edges[first] <= min(enough, default=INF) + 1e-9


def test_each_task_counts_the_same_however_many_observations_it_has() -> None:
    few, many = [[0.1]] * 2, [[0.9]] * 40
    found = ranges_of({"x": UNIT}, few, many, mass=0.7)["x"].distribution
    assert isinstance(found, FloatDistribution)
    assert found.low <= 0.1 < 0.9 <= found.high  # half of the mass is on either side


@pytest.mark.parametrize(
    ("x", "good"),
    [(UNIT, 0.25), (IntDistribution(0, 3), 0.375), (CategoricalDistribution("abcd"), 0.375)],
)
def test_a_task_whose_good_observations_do_not_use_a_parameter_says_nothing_of_its_range(
    x: BaseDistribution, good: float
) -> None:
    space, using, without = {"x": x, "y": UNIT}, [[good, 0.5]] * 4, [[NAN, 0.5]] * 4
    alone, both = ranges_of(space, using)["x"], ranges_of(space, using, without)["x"]
    assert both.distribution == alone.distribution
    assert (alone.usage, both.usage) == (1.0, 0.5)


# What is worth searching has the form of the parameter


def test_a_log_scale_is_kept_and_bounds_are_rounded_outwards_to_two_digits() -> None:
    good = [[x] for x in np.linspace(0.45, 0.55, 20)]  # around 1e-3
    found = ranges_of({"lr": FloatDistribution(1e-5, 1e-1, log=True)}, good)["lr"]
    distribution = found.distribution
    assert isinstance(distribution, FloatDistribution)
    assert distribution.log
    assert distribution.low < 1e-3 * 10**-0.15
    assert distribution.high > 1e-3 * 10**0.15
    assert all(float(f"{v:.2g}") == v for v in (distribution.low, distribution.high))
    assert found.volume == pytest.approx(math.log10(distribution.high / distribution.low) / 4)


@pytest.mark.parametrize(
    ("distribution", "width", "low", "high"),
    [
        (FloatDistribution(0, 10), 0.29, 2.8, 6.1),  # of 2.89 and 6.05
        (FloatDistribution(1e-5, 1.0, log=True), 0.058, 2.9e-4, 7.7e-4),  # of 2.92e-4 and 7.67e-4
        (FloatDistribution(1e-5, 1.0, log=True), 0.5, 2.6e-4, 0.14),
        (FloatDistribution(1.0, 2.0, log=True), 0.058, 1.2, 1.3),
    ],
)
def test_bounds_move_by_no_more_than_a_unit_of_the_second_digit(
    distribution: FloatDistribution, width: float, low: float, high: float
) -> None:
    good = [[x] for x in np.linspace(0.31, 0.31 + width, 30)]
    found = ranges_of({"x": distribution}, good)["x"].distribution
    assert found == FloatDistribution(low, high, log=distribution.log)


@pytest.mark.parametrize("is_log", [False, True])
def test_bounds_that_are_rounded_outwards_stay_within_the_range(is_log: bool) -> None:
    distribution = FloatDistribution(0.1234, 9.8765, log=is_log)
    everywhere = [[x] for x in np.linspace(0.0, 1.0, 60)]
    found = ranges_of({"x": distribution}, everywhere, mass=1.0)["x"]
    assert found.distribution == distribution
    assert found.volume == 1.0


def test_the_bounds_of_a_grid_have_no_more_digits_than_it() -> None:
    space = {"f": FloatDistribution(0.0, 2.9, step=0.1)}
    x = Space(space).encode([{"f": 0.5}])[0].tolist()
    found = ranges_of(space, [x] * 100, mass=0.95)["f"].distribution
    assert repr(found) == repr(FloatDistribution(0.3, 0.7, step=0.1))


def test_whole_numbers_and_steps_stay_on_their_grid() -> None:
    space = {
        "n": IntDistribution(10, 300, step=10),
        "f": FloatDistribution(0.0, 2.9, step=0.1),
        "log": IntDistribution(1, 40, log=True),
    }
    x = Space(space).encode([{"n": 100, "f": 0.7, "log": 5}])[0].tolist()
    found = ranges_of(space, [x] * 100, mass=0.95)
    assert found["n"].distribution == IntDistribution(80, 120, step=10)  # a kernel is five cells
    assert found["f"].distribution == FloatDistribution(0.5, 0.9, step=0.1)
    assert found["n"].volume == found["f"].volume == pytest.approx(5 / 30)
    log = found["log"].distribution
    assert isinstance(log, IntDistribution)
    assert log.log
    assert 1 < log.low <= 5 <= log.high < 10
    share = math.log((log.high + 0.5) / (log.low - 0.5)) / math.log(40.5 / 0.5)
    assert found["log"].volume == pytest.approx(share)
    assert volume_left(found) == pytest.approx((5 / 30) ** 2 * share)


def test_the_most_frequent_choices_are_kept_in_their_order() -> None:
    choices = ("a", "b", "c", "d")
    good = [[cell(3, 4)]] * 12 + [[cell(1, 4)]] * 7 + [[cell(0, 4)]]
    found = ranges_of({"kind": CategoricalDistribution(choices)}, good)["kind"]
    assert found.distribution == CategoricalDistribution(("b", "d"))
    assert found.volume == 0.5
    everything = ranges_of({"kind": CategoricalDistribution(choices)}, good, mass=1.0)["kind"]
    assert everything.distribution == CategoricalDistribution(("a", "b", "d"))  # c is never good


def test_choices_that_have_the_mass_up_to_rounding_are_enough() -> None:
    choices = CategoricalDistribution("abcdefghij")
    found = ranges_of({"kind": choices}, [[cell(k, 10)] for k in range(10)], mass=0.9)["kind"]
    assert found.distribution == CategoricalDistribution("abcdefghi")


@pytest.mark.parametrize("kind", sorted(DISTRIBUTIONS))
def test_every_kind_of_distribution_has_a_range_within_its_own(
    kind: str, rng: np.random.Generator
) -> None:
    space = Space({"p": DISTRIBUTIONS[kind]})
    task = task_of("old", space, 60, lambda X: np.abs(X - 0.4), rng)
    found = good_ranges(Past([task], space))["p"]
    assert 0.0 < found.volume <= 1.0
    if isinstance(found.distribution, CategoricalDistribution):
        assert {*map(repr, found.distribution.choices)} <= {
            *map(repr, space.distributions["p"].choices)
        }
        return
    bounds = [{"p": found.distribution.low}, {"p": found.distribution.high}]
    assert [space.fit(bound) for bound in bounds] == bounds


# Conditional parameters, and spaces that differ


CONDITIONAL: dict[str, BaseDistribution] = {
    "optimizer": CategoricalDistribution(("adam", "sgd")),
    "momentum": UNIT,
}


def test_a_conditional_parameter_has_the_range_of_the_observations_that_use_it() -> None:
    good = [[cell(0, 2), NAN]] * 15 + [[cell(1, 2), x] for x in np.linspace(0.85, 0.95, 5)]
    found = ranges_of(CONDITIONAL, good)
    assert found["optimizer"].volume == 1.0
    assert found["momentum"].usage == 0.25
    assert found["momentum"].volume < 0.35
    assert isinstance(found["momentum"].distribution, FloatDistribution)
    assert found["momentum"].distribution.low > 0.6


def test_a_parameter_that_no_good_observation_uses_keeps_its_range() -> None:
    found = ranges_of(CONDITIONAL, [[cell(0, 2), NAN]] * 10)
    assert found["momentum"] == GoodRange(UNIT, 1.0, 0.0)
    assert found["optimizer"].distribution == CategoricalDistribution(("adam",))
    assert volume_left(found) == 0.5


def test_a_task_without_a_parameter_does_not_count_for_it() -> None:
    wide, narrow = Space({"x": UNIT, "y": UNIT}), Space({"x": UNIT})
    tasks = [task_with(wide, [[0.2, 0.8]] * 10), task_with(narrow, [[0.2]] * 10, number=1)]
    found = good_ranges(Past(tasks, wide))
    assert found["y"].usage == 1.0
    assert found["y"].volume < 0.2


def test_a_single_value_stays_as_it_is() -> None:
    found = ranges_of({"x": UNIT, "fixed": IntDistribution(3, 3)}, [[0.5, 0.5]] * 5)
    assert found["fixed"] == GoodRange(IntDistribution(3, 3), 1.0, 1.0)


def test_of_very_many_good_observations_256_say_where_they_are(rng: np.random.Generator) -> None:
    space = Space({"x": UNIT})
    (good,) = _good(Past([task_with(space, rng.random((300, 1)).tolist())], space), "x")
    assert len(good.x) == 256
    (few,) = _good(Past([task_with(space, rng.random((256, 1)).tolist())], space), "x")
    assert len(few.x) == 256


# Errors


@pytest.mark.parametrize("mass", [0.0, -1.0, 1.1, NAN])
def test_a_mass_that_is_no_part_is_refused(mass: float) -> None:
    with pytest.raises(ValueError, match="the mass must be more than 0 and at most 1, but is"):
        ranges_of({"x": UNIT}, [[0.5]], mass=mass)


def test_a_past_that_shares_no_parameter_is_refused() -> None:
    task = task_with(Space({"x": UNIT}), [[0.5]] * 3)
    with pytest.raises(ValueError, match="no past study has a parameter in common"):
        good_ranges(Past([task], Space({"y": UNIT})))


def test_the_example_is_right() -> None:
    X: Floats = (np.arange(40) % 8 + 0.5)[:, None] / 8
    space = Space({"depth": IntDistribution(1, 8)})
    found = good_ranges(Past([Task("old", space, X, losses=np.abs(X - 0.3))], space))
    assert found["depth"].distribution == IntDistribution(2, 4)


@pytest.mark.parametrize(
    ("searched", "good", "values", "wider", "volume"),
    [
        (IntDistribution(1, 8), IntDistribution(3, 4), [2], IntDistribution(2, 4), 3 / 8),
        (IntDistribution(1, 8), IntDistribution(3, 4), [3, 9], IntDistribution(3, 4), 1 / 4),
        (
            FloatDistribution(0.0, 1.0),
            FloatDistribution(0.2, 0.3),
            [0.4567, 0.25],
            FloatDistribution(0.2, 0.46),
            0.26,
        ),
        (
            CategoricalDistribution([1, 1.0, "a", None]),
            CategoricalDistribution(["a"]),
            [1.0],
            CategoricalDistribution([1.0, "a"]),
            1 / 2,
        ),
    ],
)
def test_a_range_can_be_widened_to_hold_some_values(
    searched: BaseDistribution,
    good: BaseDistribution,
    values: list[Any],
    wider: BaseDistribution,
    volume: float,
) -> None:
    found = widened(GoodRange(good, 1 / 4, 1.0), searched, values)
    assert repr(found.distribution) == repr(wider)
    assert found.volume == pytest.approx(volume)
