"""What the members of a portfolio reach of each past task, alone and together."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import task_of
from studies import SQUARE

from metatpe import Space, Task, portfolio
from metatpe.past.portfolio import _served

LINE = Space({"x": SQUARE["x"]})


def bowl(name: str, centre: float, rng: np.random.Generator, n: int = 60) -> Task:
    """Return a task whose loss grows with the distance from a centre."""
    return task_of(name, LINE, n, lambda X: (X - centre) ** 2, rng)


def test_the_best_configuration_of_a_task_reaches_all_of_it(rng: np.random.Generator) -> None:
    (member,) = portfolio([bowl("a", 0.3, rng)], k=1)
    assert member.params["x"] == pytest.approx(0.3, abs=0.05)
    assert member.alone["a"] == pytest.approx(1.0, abs=0.02)


def test_what_is_no_better_than_the_worst_tenth_reaches_nothing(rng: np.random.Generator) -> None:
    tasks = {name: bowl(name, c, rng) for name, c in (("left", 0.0), ("right", 1.0))}
    found = []
    for member in portfolio(list(tasks.values()), k=3):
        for name, (loss,) in member.expected.items():
            found.append(loss >= np.quantile(tasks[name].losses, 0.9))
            assert (member.alone[name] == pytest.approx(0.0, abs=0.01)) == found[-1]
    assert any(found)


@pytest.mark.parametrize("n_objectives", [1, 2, 4])
def test_together_they_reach_no_less_than_each_alone(
    n_objectives: int, rng: np.random.Generator
) -> None:
    shift = 0.2 * np.arange(n_objectives)
    tasks = [
        task_of(
            f"{c}",
            Space(SQUARE),
            50,
            lambda X, c=c: ((X[:, :, None] - c - shift) ** 2).sum(axis=1),
            rng,
        )
        for c in (0.1, 0.3)
    ]
    members = portfolio(tasks, k=4)
    before = dict.fromkeys(members[0].together, 0.0)
    assert members[0].together == members[0].alone
    for member in members:
        for name, share in member.together.items():
            assert max(before[name], member.alone[name]) <= share + 1e-12
            assert 0.0 <= share <= 1.0
        before = dict(member.together)


def test_with_one_objective_together_is_the_best_of_them(rng: np.random.Generator) -> None:
    members = portfolio([bowl(f"{c}", c, rng) for c in (0.1, 0.5, 0.9)], k=3)
    for name, share in members[-1].together.items():
        assert share == max(member.alone[name] for member in members)


def test_no_configuration_covers_a_front_of_two_opposed_objectives_alone(
    rng: np.random.Generator,
) -> None:
    task = task_of("front", LINE, 80, lambda X: np.hstack([X, 1.0 - X]), rng)
    members = portfolio([task], k=5)
    assert all(member.alone["front"] < 0.8 for member in members)
    assert members[-1].together["front"] > members[0].together["front"] + 0.1


def test_a_member_that_others_overtake_serves_where_it_reaches_most() -> None:
    x = np.array([[0.0], [0.25], [0.45], [0.75], [1.0]])  # 0.45 is a compromise
    tasks = [Task(f"best at {c}", LINE, x, (x - c) ** 2) for c in (0.0, 1.0)]
    members = portfolio(tasks, k=6)
    assert members[0].params["x"] == 0.45
    overtaken = [
        member
        for member in members
        if not any(
            member.alone[name] == max(other.alone[name] for other in members)
            for name in member.alone
        )
    ]
    assert overtaken
    for member in overtaken:
        assert member.serves == (max(member.alone, key=lambda name: member.alone[name]),)


@pytest.mark.parametrize(
    ("share", "alone", "served"),
    [
        ([0.5, 0.49, 0.8], [0.0, 1.0, 0.0], ("a", "c")),  # a fair share or more
        ([0.2, 0.4, 0.3], [0.9, 0.1, 0.2], ("b",)),  # else the largest
        ([0.1, 0.3, 0.3], [0.9, 0.2, 0.1], ("b",)),  # and of equal ones where it reaches most
        ([0.0, 0.0, 0.0], [0.1, 0.2, 0.3], ("c",)),
    ],
)
def test_a_member_serves_where_it_has_a_fair_share_or_one_task_at_least(
    share: list[float], alone: list[float], served: tuple[str, ...]
) -> None:
    assert _served("abc", np.array(share), np.array(alone), 0.5) == served


def test_a_task_of_which_nothing_has_value_is_reached_as_a_whole() -> None:
    # Each of the two is among the worst in one objective: the task itself dominates no volume.
    task = Task("two", LINE, np.array([[0.2], [0.8]]), np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert [member.alone["two"] for member in portfolio([task], k=2)] == [1.0, 1.0]
