"""The two measures of the paper as a user calls them."""

from collections.abc import Callable

import numpy as np
import pytest
from helpers import MIXED, NAN, locked, random_points, task_of
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from metatpe import Space, Task, gamma_similarity, importance
from metatpe.past.similarity import similarity_matrix
from metatpe.space import Floats

UNIT = FloatDistribution(0, 1)
SQUARE = Space({"x": UNIT, "y": UNIT})


def distance_to(*center: float, columns: tuple[int, ...] = (0, 1)) -> Callable[[Floats], Floats]:
    return lambda X: np.abs(X[:, list(columns)] - center).max(axis=1)


def renamed(task: Task, **names: str) -> Task:
    space = {names.get(n, n): d for n, d in task.space.distributions.items()}
    return Task(task.name, Space(space), task.X, task.losses)


def test_a_task_is_like_itself(rng: np.random.Generator) -> None:
    for space in (SQUARE, MIXED):
        task = task_of("a", space, 200, lambda X: X[:, :2], rng)
        assert gamma_similarity(task, task) == pytest.approx(1.0, abs=1e-3)


def test_similarity_falls_as_the_best_regions_move_apart(rng: np.random.Generator) -> None:
    here = task_of("a", SQUARE, 500, distance_to(0.2, 0.2), rng)
    there = [task_of("b", SQUARE, 500, distance_to(x, 0.2), rng) for x in (0.2, 0.3, 0.4, 0.8)]
    s = [gamma_similarity(here, task) for task in there]
    assert s == sorted(s, reverse=True)
    assert s[0] > 0.5
    assert s[-1] < 0.05


def test_similarity_is_almost_symmetric_where_tasks_have_as_many_observations(
    rng: np.random.Generator,
) -> None:
    a, b = (task_of("t", SQUARE, 400, distance_to(x, 0.5), rng) for x in (0.4, 0.5))
    there, back = (gamma_similarity(*pair, n_mc_samples=5000) for pair in ((a, b), (b, a)))
    assert there == pytest.approx(back, abs=0.03)


@pytest.mark.parametrize("n", [5, 20, 30])
def test_tasks_with_their_best_regions_far_apart_are_told_apart_by_few_observations(
    n: int, rng: np.random.Generator
) -> None:
    a, b = (task_of("t", SQUARE, n, distance_to(x, x), rng) for x in (0.0, 1.0))
    assert gamma_similarity(a, b) < 0.5
    assert gamma_similarity(a, a) == pytest.approx(1.0)


def test_only_the_important_parameters_are_compared(rng: np.random.Generator) -> None:
    # x decides, y does not matter: with one kept column it is x, on which the tasks differ.
    a, b = (task_of("t", SQUARE, 60, distance_to(x, columns=(0,)), rng) for x in (0.1, 0.9))
    assert gamma_similarity(a, b, eta=4.0) < 0.1


def test_a_task_without_a_common_parameter_is_not_alike(rng: np.random.Generator) -> None:
    task = task_of("a", SQUARE, 100, distance_to(0.5, 0.5), rng)
    assert gamma_similarity(task, renamed(task, x="p", y="q")) == 0.0


def test_a_task_that_lacks_a_parameter_is_compared_on_the_others(rng: np.random.Generator) -> None:
    task = task_of("a", SQUARE, 100, distance_to(0.5, 0.5), rng)
    assert gamma_similarity(task, renamed(task, y="q")) == pytest.approx(1.0, abs=1e-3)


def test_of_tasks_that_share_an_unimportant_parameter_that_one_is_compared(
    rng: np.random.Generator,
) -> None:
    only_x = task_of("a", SQUARE, 100, distance_to(0.5, columns=(0,)), rng)
    assert gamma_similarity(only_x, renamed(only_x, x="p")) > 0.1


@pytest.mark.parametrize(
    "other",
    [
        {"x": FloatDistribution(-1, 2), "y": UNIT},
        {"x": FloatDistribution(0.01, 1, log=True), "y": UNIT, "z": IntDistribution(1, 3)},
        {"y": CategoricalDistribution((0, 1)), "x": UNIT},
    ],
    ids=str,
)
def test_tasks_of_other_spaces_can_be_compared(
    other: dict[str, BaseDistribution], rng: np.random.Generator
) -> None:
    a = task_of("a", SQUARE, 100, distance_to(0.5, 0.5), rng)
    b = task_of("b", Space(other), 100, distance_to(0.5, 0.5), rng)
    assert 0.0 <= gamma_similarity(a, b) < 1.0
    assert 0.0 <= gamma_similarity(b, a) < 1.0


def test_scales_of_the_losses_do_not_matter(rng: np.random.Generator) -> None:
    a, b = (task_of("t", SQUARE, 100, distance_to(x, 0.5), rng) for x in (0.4, 0.5))
    scaled = Task("b", SQUARE, b.X, np.exp(5 * b.losses) - 100)
    assert gamma_similarity(a, scaled) == gamma_similarity(a, b)


def test_the_matrix_has_the_similarity_of_each_task_to_each(rng: np.random.Generator) -> None:
    tasks = [task_of("t", SQUARE, 40, distance_to(x, 0.5), rng) for x in (0.2, 0.4)]
    tasks.append(task_of("other", MIXED, 30, lambda X: X[:, 0], rng))
    tasks.append(renamed(tasks[0], y="float"))  # shares a parameter with each of the others
    rows_done: list[int] = []
    matrix = similarity_matrix(tasks, step=rows_done.append)
    assert matrix.tolist() == [[gamma_similarity(a, b) for b in tasks] for a in tasks]
    assert rows_done == [1, 2, 3, 4]
    assert matrix[0, 2] == matrix[2, 0] == 0.0


def test_importance_names_the_parameters_that_matter_most_first(rng: np.random.Generator) -> None:
    space = Space({"none": UNIT, "little": UNIT, "much": UNIT})
    task = task_of("a", space, 1000, lambda X: 10 * np.abs(X[:, 2] - 0.3) + X[:, 1], rng)
    found = importance(task)
    assert list(found) == ["much", "little", "none"]
    assert found["much"] > 10 * found["none"]
    assert all(type(value) is float for value in found.values())


def test_importance_leaves_out_what_no_good_observation_used(rng: np.random.Generator) -> None:
    X = np.array(random_points(SQUARE.columns, 50, rng))
    losses = X[:, :1].copy()
    X[X[:, 0] < 0.5, 1] = NAN  # y is used in the bad half only
    assert list(importance(Task("a", SQUARE, locked(X), losses))) == ["x"]
