"""The first configurations: the best of every past task, each once, exactly as stored."""

import copy
import pickle

import numpy as np
import optuna
import pytest
from helpers import INF, MIXED, random_points, task_of
from optuna.distributions import FloatDistribution, IntDistribution

from metatpe import Space, Task
from metatpe.past.start import First, Start, draw, pool_and_reserve, top
from metatpe.tpe.pareto import order


def drawn(best: list[list[First]], n: int, *, rng: np.random.Generator) -> list[First]:
    """Return the pool and the reserve in one line."""
    pool, reserve = pool_and_reserve(best, n, rng=rng)
    return pool + reserve


def ranked(name: str, n: int = 20) -> list[First]:
    return [First({"rank": i, "from": name}, (name,)) for i in range(n)]


def places(firsts: list[First]) -> list[tuple[str, int]]:
    """Return the task that each configuration came from, and its rank there."""
    return [(first.params["from"], first.params["rank"]) for first in firsts]


def numbers(*xs: int, source: str = "past") -> list[First]:
    return [First({"x": x}, (source,)) for x in xs]


def some_tasks(n: int, rng: np.random.Generator) -> list[Task]:
    return [
        task_of(f"past {m}", MIXED, 30, lambda X: rng.random((len(X), 2)), rng) for m in range(n)
    ]


def texts(start: Start) -> list[str]:
    return [repr(first.params) for first in start.configurations]


# The draw of the paper ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_init", "n_past", "per_task"),
    [(5, 1, 5), (5, 2, 3), (5, 3, 2), (5, 5, 1), (5, 7, 1), (6, 3, 2), (1, 4, 1), (10, 3, 4)],
)
def test_the_pool_has_the_top_of_each_past_task(
    n_init: int, n_past: int, per_task: int, rng: np.random.Generator
) -> None:
    names = [str(m) for m in range(n_past)]
    found = drawn([ranked(name) for name in names], n_init, rng=rng)
    pool = places(found[: n_past * per_task])
    assert sorted(pool) == [(name, rank) for name in names for rank in range(per_task)]


def test_the_pool_is_drawn_from_at_random(rng: np.random.Generator) -> None:
    first = [drawn([ranked("a"), ranked("b")], 5, rng=rng)[0] for _ in range(100)]
    assert set(places(first)) == {(name, rank) for name in "ab" for rank in range(3)}


def test_no_configuration_is_given_out_twice(rng: np.random.Generator) -> None:
    best = [numbers(*rng.integers(0, 12, size=20).tolist()) for _ in range(3)]
    found = [first.params["x"] for first in drawn(best, 8, rng=rng)]
    assert len(found) == len(set(found))
    assert set(found) == {first.params["x"] for ranking in best for first in ranking}


def test_where_past_tasks_agree_the_next_best_of_each_follow_in_turn(
    rng: np.random.Generator,
) -> None:
    best = [numbers(0, 1, 2, 10, 11, 12, 13), numbers(0, 1, 2, 20, 21, 22, 23)]
    found = [first.params["x"] for first in drawn(best, 6, rng=rng)]
    assert sorted(found[:3]) == [0, 1, 2]
    assert found[3:] == [10, 20, 11, 21, 12, 22, 13, 23]


def test_a_configuration_names_each_past_task_that_it_is_among_the_best_of_once(
    rng: np.random.Generator,
) -> None:
    a, b = numbers(0, 1, 1, 2, source="a"), numbers(1, 3, 4, 2, source="b")
    found = {first.params["x"]: first.sources for first in drawn([a, b], 6, rng=rng)}
    assert found == {0: ("a",), 1: ("b", "a"), 3: ("b",), 4: ("b",), 2: ("a", "b")}


def test_a_task_with_few_observations_gives_what_it_has(rng: np.random.Generator) -> None:
    found = places(drawn([ranked("a", 1), ranked("b", 10)], 8, rng=rng))
    assert sorted(found[:5]) == [("a", 0), *(("b", i) for i in range(4))]
    assert found[5:] == [("b", i) for i in range(4, 10)]


def test_without_past_tasks_there_is_nothing_to_start_from(rng: np.random.Generator) -> None:
    assert drawn([], 5, rng=rng) == []
    assert draw([], 5) == Start(5, [])


def test_the_best_are_the_first_in_the_order_of_the_task(rng: np.random.Generator) -> None:
    (task,) = some_tasks(1, rng)
    start = draw([task], 4)
    best = [repr(c) for c in task.configurations(order(task.losses, task.violation).tolist())]
    assert start.n == 4
    assert sorted(texts(start)[:4]) == sorted(best[:4])
    assert texts(start)[4:] == best[4:]
    assert {first.sources for first in start.configurations} == {("past 0",)}


def test_infeasible_observations_come_last(rng: np.random.Generator) -> None:
    X = random_points(MIXED.columns, 6, rng)
    losses, violation = np.arange(6.0)[:, None], np.array([1.0, 2.0, 0.0, 0.0, 0.0, INF])
    start = draw([Task("t", MIXED, X, losses, violation)], 1)
    found = [first.params for first in start.configurations]
    assert found == MIXED.decode(X[[2, 3, 4, 0, 1, 5]])


def test_the_start_depends_on_the_sources_alone(rng: np.random.Generator) -> None:
    tasks = some_tasks(3, rng)
    start = draw(tasks, 5)
    assert draw(copy.deepcopy(tasks), 5) == start
    assert draw(pickle.loads(pickle.dumps(tasks)), 5) == start
    assert draw(some_tasks(3, rng), 5) != start


def test_a_longer_start_begins_with_other_configurations_of_the_same_pool(
    rng: np.random.Generator,
) -> None:
    tasks = some_tasks(2, rng)
    short, long = texts(draw(tasks, 4)), texts(draw(tasks, 8))
    assert set(short[:4]) <= set(long[:8])


def test_of_many_past_tasks_each_gives_fewer_to_the_reserve(rng: np.random.Generator) -> None:
    task = task_of("t", Space({"x": FloatDistribution(0, 1)}), 100, lambda X: X[:, 0], rng)
    assert len(draw([task], 5).configurations) == 5 + 64
    many = [task_of("t", task.space, 100, lambda X: X[:, 0], rng) for _ in range(40)]
    assert len(draw(many, 5).configurations) == 40 * (1 + 16)
    assert len(draw(many[:10], 5).configurations) == 10 * (5 + 64)
    assert len(draw(many[:11], 5).configurations) == 11 * (1 + 59)
    assert len(draw(many[:11], 12).configurations) == 11 * (2 + 59)


def test_stored_values_are_handed_out_to_the_last_digit(rng: np.random.Generator) -> None:
    space = {"x": FloatDistribution(1e-6, 1e3, log=True), "n": IntDistribution(1, 10**6, log=True)}
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for i in range(40):
        # Uniform, not log-uniform as the sampler's own, which may survive decoding.
        study.enqueue_trial({"x": float(rng.uniform(0.1, 100.0))})
        study.tell(study.ask(space), float(i))
    stored = [trial.params for trial in study.trials]
    start = draw([Task.from_study(study)], 5)
    assert len(start.configurations) == 40
    assert all(first.params in stored for first in start.configurations)
    decoded = Space(space).decode(Space(space).encode(stored))
    assert decoded != stored  # decoding would have changed some of them


# Which of them a trial tries ---------------------------------------------------------------------


def test_a_trial_tries_its_own_then_an_entry_of_the_reserve_that_is_its_own_too() -> None:
    start = Start(3, numbers(*range(9)))
    assert list(dict.fromkeys(start.order_for(0))) == [0, 3, 4, 5, 6, 7, 8, 1, 2]
    assert list(dict.fromkeys(start.order_for(1))) == [1, 4, 3, 5, 6, 7, 8, 2]
    assert list(dict.fromkeys(start.order_for(2))) == [2, 5, 3, 4, 6, 7, 8]


@pytest.mark.parametrize("n_served", [0, 1, 3, 5])
def test_trials_that_collided_have_disjoint_parts_of_the_reserve_that_make_up_all_of_it(
    n_served: int,
) -> None:
    start = Start(5, numbers(*range(27)), n_served=n_served)
    orders = [start.order_for(index, has_collided=True) for index in range(5)]
    n_own = [len(range(5 + (index - n_served) % 5, 27, 5)) for index in range(5)]
    parts = [order[1 : 1 + n] for order, n in zip(orders, n_own, strict=True)]
    assert sorted(i for part in parts for i in part) == list(range(5, 27))
    assert all(set(order) >= set(range(5, 27)) for order in orders)


def test_a_start_with_fewer_configurations_than_trials_tries_what_there_is() -> None:
    assert Start(5, numbers(0, 1)).order_for(0) == [0, 1]
    assert Start(5, numbers(0, 1)).order_for(3) == []


# A search by first configurations alone ----------------------------------------------------------


@pytest.mark.parametrize(("fraction", "per_task"), [(0.1, 3), (0.11, 4), (0.3, 9), (1.0, 30)])
def test_the_best_fraction_of_each_task_is_tried_in_random_order(
    fraction: float, per_task: int, rng: np.random.Generator
) -> None:
    tasks = some_tasks(3, rng)
    start = top(tasks, fraction)
    best = [
        repr(configuration)
        for task in tasks
        for configuration in task.configurations(
            order(task.losses, task.violation, n=per_task).tolist()
        )
    ]
    assert start.n == len(start.configurations) == 3 * per_task
    assert sorted(texts(start)) == sorted(best)
    assert texts(start) != best
    assert top(copy.deepcopy(tasks), fraction) == start


def test_a_fraction_that_is_a_whole_number_but_for_rounding_is_that_number(
    rng: np.random.Generator,
) -> None:
    task = task_of("past", MIXED, 100, lambda X: X[:, 0], rng)
    assert 0.07 * 100 > 7
    assert top([task], 0.07).n == 7


def test_what_several_tasks_have_among_their_best_is_tried_once(rng: np.random.Generator) -> None:
    (task,) = some_tasks(1, rng)
    again = Task("again", task.space, task.X, task.losses, numbers=task.numbers)
    start = top([task, again], 0.2)
    assert start.n == 6
    assert {first.sources for first in start.configurations} == {("past 0", "again")}


def test_equal_configurations_are_one_whatever_the_order_of_their_parameters() -> None:
    xy = Space({"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)})
    yx = Space(dict(reversed(xy.distributions.items())))
    losses = np.array([[0.0], [1.0]])
    tasks = [
        Task("first", xy, np.array([[0.25, 0.5], [0.1, 0.1]]), losses),
        Task("second", yx, np.array([[0.5, 0.25], [0.9, 0.9]]), losses),
    ]
    found = draw(tasks, 2).configurations
    assert len(found) == 3
    assert ("first", "second") in [first.sources for first in found]
