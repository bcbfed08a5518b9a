"""Tables of all configurations of a grid, and which repeat an evaluation gets."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from metatpe.bench.problems import Direction
from metatpe.bench.tables import Branches, Grid, repeats, tabular_problem

LEVELS = {"units": (16, 32, 64), "activation": ("relu", "tanh")}
UNORDERED = frozenset({"activation"})


def splitmix64(state: int) -> Iterator[int]:
    """The published generator, in plain integers."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        yield mix(state)


def mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_splitmix64_of_these_tests_is_the_published_one() -> None:
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert list(itertools.islice(splitmix64(1234567), 3)) == published


@pytest.mark.parametrize("seed", [0, 1, 2, 2**63, 2**64 - 1])
def test_repeats_are_the_outputs_of_splitmix64_from_a_hash_of_the_seed(seed: int) -> None:
    start = next(splitmix64(seed))
    expected = [(word >> 32) * 4 >> 32 for word in itertools.islice(splitmix64(start), 50)]
    assert repeats(seed, np.arange(50), 4).tolist() == expected


def test_repeats_are_the_same_everywhere_and_for_ever() -> None:
    assert repeats(0, np.arange(12), 4).tolist() == [2, 2, 1, 2, 3, 0, 3, 1, 1, 2, 1, 0]
    assert repeats(7, np.array([0, 62207]), 4).tolist() == [2, 0]


def test_a_repeat_depends_on_seed_and_row_alone(rng: np.random.Generator) -> None:
    rows = rng.permutation(62208)[:1000]
    together = repeats(5, rows, 4)
    assert [repeats(5, rows[i : i + 1], 4)[0] for i in range(100)] == together[:100].tolist()
    np.testing.assert_array_equal(repeats(5, rows[::-1], 4), together[::-1])


@pytest.mark.parametrize("n_repeats", [1, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_over_the_configurations_all_repeats_occur_about_equally_often(
    seed: int, n_repeats: int
) -> None:
    counts = np.bincount(repeats(seed, np.arange(62208), n_repeats), minlength=n_repeats)
    expected = 62208 / n_repeats
    assert ((counts - expected) ** 2 / expected).sum() < 16.3  # 1 in 1,000 for four repeats


@pytest.mark.parametrize("row", [0, 1, 62207])
def test_over_the_seeds_all_repeats_occur_about_equally_often(row: int) -> None:
    drawn = [repeats(seed, np.array([row]), 4)[0] for seed in range(2000)]
    counts = np.bincount(drawn, minlength=4)
    assert ((counts - 500) ** 2 / 500).sum() < 16.3


def test_neighbouring_seeds_and_rows_agree_only_by_chance() -> None:
    a, b = (repeats(seed, np.arange(62208), 4) for seed in (0, 1))
    assert (a == b).mean() == pytest.approx(0.25, abs=0.01)
    assert (a[1:] == a[:-1]).mean() == pytest.approx(0.25, abs=0.01)


def test_any_integer_is_a_seed() -> None:
    for seed in (-1, 2**64 + 3, 10**30):
        assert set(repeats(seed, np.arange(100), 4).tolist()) == {0, 1, 2, 3}


def test_rows_are_in_row_major_order_of_the_parameters() -> None:
    table = Grid(LEVELS, UNORDERED, np.zeros((6, 1, 2)))
    grid = itertools.product(range(3), ("relu", "tanh"))
    assert [table.row({"units": u, "activation": a}) for u, a in grid] == list(range(6))


def test_an_evaluation_is_the_entry_of_its_row_and_repeat(rng: np.random.Generator) -> None:
    values = rng.random((6, 4, 2))
    problem = tabular_problem(
        "toy",
        Grid(LEVELS, UNORDERED, values),
        objective_names=("error", "seconds"),
        directions=("minimize", "minimize"),
        log_objectives=(True, False),
    )
    for seed in range(20):
        found = problem.evaluate({"units": 2, "activation": "relu"}, seed)
        assert found == tuple(values[4, repeats(seed, np.array([4]), 4)[0]])


@pytest.mark.parametrize("directions", list(itertools.product(["minimize", "maximize"], repeat=2)))
def test_the_front_is_what_nothing_dominates(
    directions: tuple[Direction, Direction], rng: np.random.Generator
) -> None:
    values = rng.integers(5, size=(6, 4, 2)).astype(float)  # with ties and duplicates
    problem = tabular_problem(
        "toy",
        Grid(LEVELS, UNORDERED, values),
        objective_names=("a", "b"),
        directions=directions,
        log_objectives=(False, False),
    )
    signs = [1 if d == "minimize" else -1 for d in directions]
    points = {tuple(point) for point in (values * signs).reshape(-1, 2).tolist()}
    front = [
        (signs[0] * p[0], signs[1] * p[1])
        for p in points
        if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)
    ]
    assert problem.front is not None
    assert problem.front.tolist() == [list(p) for p in sorted(front)]
    pick = {"minimize": (min, max), "maximize": (max, min)}
    for i, direction in enumerate(directions):
        best, worst = pick[direction]
        assert problem.best[i] == best(values[..., i].ravel())
        assert problem.worst[i] == worst(values[..., i].ravel())


def test_a_table_of_another_size_than_its_grid_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(3, 2\) levels needs a table of shape \(6, .*\(5, 1"):
        Grid(LEVELS, UNORDERED, np.zeros((5, 1, 2)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_table_with_holes_is_refused(value: float) -> None:
    values = np.zeros((6, 1, 2))
    values[[2, 4], 0, 1] = value
    with pytest.raises(ValueError, match=r"rows \[2, 4\] are not; pad failed evaluations"):
        Grid(LEVELS, UNORDERED, values)


def test_the_rows_of_branches_are_those_of_their_tables_one_after_the_other(
    rng: np.random.Generator,
) -> None:
    grid, alone = rng.random((6, 2, 2)), rng.random((1, 2, 2))
    branches = Branches(
        "model",
        {
            "mean": Grid({}, frozenset(), alone),
            "net": Grid(LEVELS, UNORDERED, grid),
            "tree": Grid({"depth": (1, 2)}, frozenset(), grid[:2]),
        },
    )
    configurations: list[dict[str, object]] = [
        {"model": "mean"},
        *(
            {"model": "net", "units": u, "activation": a}
            for u in range(3)
            for a in ("relu", "tanh")
        ),
        *({"model": "tree", "depth": k} for k in range(2)),
    ]
    assert [branches.row(c) for c in configurations] == list(range(9))
    np.testing.assert_array_equal(branches.values, np.concatenate([alone, grid, grid[:2]]))
    problem = tabular_problem(
        "toy",
        branches,
        objective_names=("error", "seconds"),
        directions=("minimize", "minimize"),
        log_objectives=(False, False),
    )
    for row, c in enumerate(configurations):
        repeat = repeats(5, np.array([row]), 2)[0]
        assert problem.evaluate(c, seed=5) == tuple(branches.values[row, repeat])
    assert problem.levels == {"units": (16, 32, 64), "depth": (1, 2)}
