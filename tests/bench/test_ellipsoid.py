"""The ellipsoid against its formula."""

import itertools

import numpy as np
import pytest

from metatpe.bench import ellipsoid, get_problem


def at(*x: float) -> dict[str, float]:
    return {f"x{d}": value for d, value in enumerate(x, start=1)}


@pytest.mark.parametrize("c", [-5.0, 0.0, 1.0, 4.0])
def test_it_is_zero_at_its_centre(c: float) -> None:
    problem = ellipsoid(3, c)
    assert problem.evaluate(at(c, c, c), seed=0) == (0.0,)
    assert problem.best.tolist() == [0.0]


def test_each_dimension_weighs_five_times_the_one_before() -> None:
    problem = ellipsoid(4)
    axes = [problem.evaluate(at(*axis), seed=0)[0] for axis in np.eye(4)]
    assert axes == [1.0, 5.0, 25.0, 125.0]
    assert problem.evaluate(at(1, -2, 3, 0), seed=0) == (1.0 + 20.0 + 225.0,)


@pytest.mark.parametrize("c", [-2.0, 0.0, 3.0])
def test_its_worst_value_is_at_a_corner(c: float) -> None:
    problem = ellipsoid(3, c)
    corners = itertools.product([-5.0, 5.0], repeat=3)
    assert problem.worst[0] == max(problem.evaluate(at(*x), seed=0)[0] for x in corners)


def test_the_seed_changes_nothing() -> None:
    problem = ellipsoid(2)
    assert problem.evaluate(at(1.5, 2.5), seed=0) == problem.evaluate(at(1.5, 2.5), seed=1)


@pytest.mark.parametrize("dim", [4, 10])
def test_the_registered_ones_are_around_zero(dim: int) -> None:
    problem = get_problem(f"ellipsoid{dim}")
    assert list(problem.space) == [f"x{d}" for d in range(1, dim + 1)]
    assert problem.evaluate(at(*[0.0] * dim), seed=0) == (0.0,)
    assert problem.front is None


def test_others_have_names_of_their_own() -> None:
    assert [ellipsoid(4, c).name for c in (0.0, 1.0, 2.5)] == [
        "ellipsoid4",
        "ellipsoid4-c1",
        "ellipsoid4-c2.5",
    ]


@pytest.mark.parametrize("name", ["ellipsoid7", "ellipsoid4-c1", "ellipsoid10-c-2.5"])
def test_a_name_tells_dimensions_and_centre(name: str) -> None:
    problem = get_problem(name)
    dim, _, c = name.removeprefix("ellipsoid").partition("-c")
    assert problem.name == name
    assert len(problem.space) == int(dim)
    assert problem.evaluate(at(*[float(c or 0)] * int(dim)), seed=0) == (0.0,)


@pytest.mark.parametrize("name", ["ellipsoid0", "ellipsoid4-c", "ellipsoid4-cx", "ellipsoidx"])
def test_other_names_are_unknown(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown problem '{name}'; did you mean 'ellipsoid"):
        get_problem(name)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="dim=0"):
        ellipsoid(0)
    with pytest.raises(ValueError, match=r"must be in \[-5, 5\], but got 6"):
        ellipsoid(4, 6)
