"""The first configurations: the best of every past task, each once, exactly as stored."""

import copy
import pickle
from typing import Any

import numpy as np
import optuna
import pytest
from helpers import INF, MIXED, random_points, task_of
from optuna.distributions import FloatDistribution, IntDistribution

from metatpe import Space, Task
from metatpe.past.start import first_configurations, turned_round, warm_starts
from metatpe.tpe.pareto import order


def ranked(name: str, n: int = 20) -> list[dict[str, Any]]:
    return [{"from": name, "rank": i} for i in range(n)]


def some_tasks(n: int, rng: np.random.Generator) -> list[Task]:
    return [
        task_of(f"past {m}", MIXED, 30, lambda X: rng.random((len(X), 2)), rng) for m in range(n)
    ]


@pytest.mark.parametrize(
    ("n_init", "n_past", "per_task"),
    [(5, 1, 5), (5, 2, 3), (5, 3, 2), (5, 5, 1), (5, 7, 1), (6, 3, 2), (1, 4, 1), (10, 3, 4)],
)
def test_the_pool_has_the_top_of_each_past_task(
    n_init: int, n_past: int, per_task: int, rng: np.random.Generator
) -> None:
    names = [str(m) for m in range(n_past)]
    starts = warm_starts([ranked(name) for name in names], n_init, rng=rng)
    pool = [(c["from"], c["rank"]) for c in starts[: n_past * per_task]]
    assert sorted(pool) == [(name, rank) for name in names for rank in range(per_task)]


def test_the_pool_is_drawn_from_at_random(rng: np.random.Generator) -> None:
    first = [warm_starts([ranked("a"), ranked("b")], 5, rng=rng)[0] for _ in range(100)]
    assert {(c["from"], c["rank"]) for c in first} == {(f, r) for f in "ab" for r in range(3)}


def test_no_configuration_is_given_out_twice(rng: np.random.Generator) -> None:
    best = [[{"x": int(x)} for x in rng.integers(0, 12, size=20)] for _ in range(3)]
    starts = [c["x"] for c in warm_starts(best, 8, rng=rng)]
    assert len(starts) == len(set(starts))
    assert set(starts) == {c["x"] for ranking in best for c in ranking}


def test_where_past_tasks_agree_the_next_best_of_each_follow_in_turn(
    rng: np.random.Generator,
) -> None:
    shared = [{"x": i} for i in range(3)]
    a = [*shared, *({"x": 10 + i} for i in range(4))]
    b = [*shared, *({"x": 20 + i} for i in range(4))]
    starts = [c["x"] for c in warm_starts([a, b], 6, rng=rng)]
    assert sorted(starts[:3]) == [0, 1, 2]
    assert starts[3:] == [10, 20, 11, 21, 12, 22, 13, 23]


def test_a_task_with_few_observations_gives_what_it_has(rng: np.random.Generator) -> None:
    starts = warm_starts([ranked("a", 1), ranked("b", 10)], 8, rng=rng)
    pool = [(c["from"], c["rank"]) for c in starts]
    assert sorted(pool[:5]) == [("a", 0), *(("b", i) for i in range(4))]
    assert pool[5:] == [("b", i) for i in range(4, 10)]


def test_without_past_tasks_there_is_no_warm_start(rng: np.random.Generator) -> None:
    assert warm_starts([], 5, rng=rng) == []
    assert first_configurations([], 5) == []


def test_the_best_are_the_first_in_the_order_of_the_task(rng: np.random.Generator) -> None:
    (task,) = some_tasks(1, rng)
    starts = first_configurations([task], 4)
    best = task.configurations([int(i) for i in order(task.losses, task.violation)])
    assert sorted(map(repr, starts[:4])) == sorted(map(repr, best[:4]))
    assert starts[4:] == best[4:]


def test_infeasible_observations_come_last(rng: np.random.Generator) -> None:
    X = random_points(MIXED.columns, 6, rng)
    losses, violation = np.arange(6.0)[:, None], np.array([1.0, 2.0, 0.0, 0.0, 0.0, INF])
    starts = first_configurations([Task("t", MIXED, X, losses, violation)], 1)
    assert starts == MIXED.decode(X[[2, 3, 4, 0, 1, 5]])


def test_the_warm_starts_depend_on_the_sources_alone(rng: np.random.Generator) -> None:
    tasks = some_tasks(3, rng)
    starts = first_configurations(tasks, 5)
    assert first_configurations(copy.deepcopy(tasks), 5) == starts
    assert first_configurations(pickle.loads(pickle.dumps(tasks)), 5) == starts
    assert first_configurations(some_tasks(3, rng), 5) != starts


def test_a_longer_start_begins_with_other_configurations_of_the_same_pool(
    rng: np.random.Generator,
) -> None:
    tasks = some_tasks(2, rng)
    short, long = first_configurations(tasks, 4), first_configurations(tasks, 8)
    assert {repr(c) for c in short[:4]} <= {repr(c) for c in long[:8]}


def test_stored_values_are_handed_out_to_the_last_digit(rng: np.random.Generator) -> None:
    space = {"x": FloatDistribution(1e-6, 1e3, log=True), "n": IntDistribution(1, 10**6, log=True)}
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for i in range(40):
        study.tell(study.ask(space), float(i))
    stored = [trial.params for trial in study.trials]
    starts = first_configurations([Task.from_study(study)], 5)
    assert all(start in stored for start in starts)
    decoded = Space(space).decode(Space(space).encode(stored))
    assert decoded != stored  # decoding would have changed some of them


def test_a_task_turned_round_has_its_worst_for_its_best_and_what_failed_stays_last() -> None:
    space = Space({"x": FloatDistribution(0.0, 1.0)})
    X = np.array([[0.1], [0.2], [0.3], [0.4], [0.5]])
    losses = np.array([[1.0], [INF], [3.0], [-INF], [5.0]])
    violation = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    turned = turned_round(Task("past", space, X, losses, violation))
    ranking = order(turned.losses, turned.violation)
    assert X[ranking, 0].tolist() == [0.3, 0.1, 0.2, 0.4, 0.5]  # -inf has become as bad as +inf
    again = turned_round(turned_round(Task("past", space, X[:1], losses[:1])))
    assert again.losses.tolist() == [[1.0]]
