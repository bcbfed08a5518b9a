"""The portfolio: hypervolume by directions, the greedy choice, what it means for past tasks."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import combinations
from typing import Any

import moocore
import numpy as np
import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import create_trial

from metatpe import Space, Task, portfolio
from metatpe.past.known import Past
from metatpe.past.portfolio import (
    Candidates,
    Tried,
    _candidates,
    agreement,
    greedy,
    order_weights,
    spread_directions,
)
from metatpe.space import Floats

SQUARE: dict[str, BaseDistribution] = {n: FloatDistribution(0.0, 1.0) for n in ("x", "y")}


def bowl(name: str, *centers: tuple[float, float], n: int = 60, seed: int = 0) -> Task:
    """Return a task with an objective per centre: the squared distance from it."""
    X = np.random.default_rng(seed).random((n, 2))
    losses = [((X - np.array(center)) ** 2).sum(axis=1) for center in centers]
    return Task(name, Space(SQUARE), X, np.stack(losses, axis=1))


def params_of(members: list[Any]) -> list[dict[str, Any]]:
    return [dict(member.params) for member in members]


def value(Y: Floats, directions: Floats) -> float:  # (M, k, m)
    """Return V of a set, in plain loops over its definition."""
    total = 0.0
    for own in Y:
        for direction in directions:
            total += max(min(np.maximum(0.0, 1.0 - y) / direction) ** Y.shape[2] for y in own)
    return total / (len(Y) * len(directions))


# The value of a set ------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_directions_are_unit_vectors_of_the_positive_part(m: int) -> None:
    directions = spread_directions(m, 64)
    assert len(directions) == (64 if m > 1 else 1)
    assert (directions > 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0)


def test_of_two_objectives_64_trade_offs_count() -> None:
    candidates = Candidates(Past([bowl("past", (0.1, 0.5), (0.9, 0.5))], Space(SQUARE)))
    np.testing.assert_array_equal(candidates._directions, spread_directions(2, 64))


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_mean_over_directions_is_the_hypervolume_up_to_a_constant(
    m: int, rng: np.random.Generator
) -> None:
    directions = spread_directions(m, 4096)
    ratios = []
    for _ in range(5):
        Y = rng.random((4, m)) * 0.8
        ratios.append(value(Y[None], directions) / moocore.hypervolume(Y, ref=np.ones(m)))
    np.testing.assert_allclose(ratios, np.mean(ratios), rtol=0.03)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_each_choice_has_the_largest_gain_of_all_candidates(
    m: int, rng: np.random.Generator
) -> None:
    Y, directions = rng.random((3, 12, m)), spread_directions(m, 16)
    chosen = greedy(Y, directions, 4).tolist()
    for k in range(len(chosen)):
        values = [value(Y[:, [*chosen[:k], i]], directions) for i in range(12)]
        assert values[chosen[k]] == pytest.approx(max(values))


def test_the_greedy_choice_is_nearly_as_good_as_the_best_set(rng: np.random.Generator) -> None:
    Y, directions = rng.random((4, 12, 2)), spread_directions(2, 32)
    found = value(Y[:, greedy(Y, directions, 3)], directions)
    best = max(value(Y[:, list(own)], directions) for own in combinations(range(12), 3))
    assert (1.0 - 1.0 / np.e) * best <= found <= best + 1e-12


def test_the_choice_ends_where_another_one_adds_nothing() -> None:
    Y = np.array([[[0.0], [0.5], [0.2]], [[0.1], [0.0], [0.1]]])  # losses of two tasks
    assert greedy(Y, np.ones((1, 1)), 3).tolist() == [0, 1]
    assert greedy(Y[:1], np.ones((1, 1)), 3).tolist() == [0]


@pytest.mark.parametrize(("gain", "is_taken"), [(0.009, False), (0.011, True)])
def test_one_that_adds_less_than_a_hundredth_is_not_chosen(gain: float, is_taken: bool) -> None:
    Y = np.array([[[0.2], [1.0]], [[1.0], [1.0 - 0.8 * gain]]])  # one reaches 0.8 of the value
    assert greedy(Y, np.ones((1, 1)), 2).tolist() == [0, 1][: 1 + is_taken]


def test_the_first_one_is_chosen_even_if_it_adds_nothing() -> None:
    assert greedy(np.ones((2, 3, 1)), np.ones((1, 1)), 3).tolist() == [0, 1, 2]


def test_weights_and_what_was_chosen_before_decide_on_the_gain() -> None:
    Y = np.array([[[0.0], [0.5], [1.0]], [[1.0], [0.4], [0.0]]])
    ones = np.ones((1, 1))
    assert greedy(Y, ones, 1, weights=np.array([3.0, 1.0])).tolist() == [0]
    assert greedy(Y, ones, 1, weights=np.array([1.0, 3.0])).tolist() == [2]
    assert greedy(Y, ones, 1, before=np.array([0])).tolist() == [2]
    assert greedy(Y, ones, 9, before=np.array([1, 1])).tolist() == [0, 2]


def test_what_is_taken_in_blocks_is_the_same(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    Y, directions = rng.random((7, 30, 2)), spread_directions(2, 16)
    whole = greedy(Y, directions, 5)
    monkeypatch.setattr("metatpe.past.portfolio._MAX_ENTRIES", 1)
    np.testing.assert_array_equal(greedy(Y, directions, 5), whole)


# Which configurations it is chosen from ----------------------------------------------------------


def test_the_whole_first_front_of_a_past_task_may_be_chosen(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatpe.past.portfolio._LEAST_GAIN", -1.0)
    x = rng.random(40)
    losses = np.stack([x, 1.0 - x], axis=1)
    losses[20:] += 2.0  # behind all others
    task = Task("half a front", LINE, x[:, None], losses)
    found = {member.params["x"] for member in portfolio([task], k=40)}
    assert found == set(x[:20].tolist())


# What it means for past tasks --------------------------------------------------------------------


def test_one_configuration_serves_tasks_that_agree() -> None:
    tasks = [bowl(f"past {i}", (0.3, 0.7), seed=i) for i in range(3)]
    (member,) = portfolio(tasks, k=5)
    assert member.serves == ("past 0", "past 1", "past 2")
    assert (member.params["x"], member.params["y"]) == pytest.approx((0.3, 0.7), abs=0.1)


def test_tasks_with_optima_apart_get_a_configuration_each() -> None:
    tasks = [bowl("left", (0.1, 0.5)), bowl("right", (0.9, 0.5), seed=1)]
    members = portfolio(tasks, k=3)
    served = {"left": 1.0, "right": 0.0}
    for member in members:
        for name in member.serves:
            served[name] = member.params["x"]
    assert served["left"] < 0.3
    assert served["right"] > 0.7


def test_the_first_configuration_serves_the_most_tasks() -> None:
    tasks = [bowl(f"left {i}", (0.1, 0.5), seed=i) for i in range(3)]
    first = portfolio([*tasks, bowl("right", (0.9, 0.5), seed=5)], k=2)[0]
    assert first.serves == ("left 0", "left 1", "left 2")


def test_with_two_objectives_it_is_spread_over_the_front() -> None:
    members = portfolio([bowl("past", (0.1, 0.5), (0.9, 0.5))], k=5)
    x = [member.params["x"] for member in members]
    assert len(members) == 5
    assert min(x) < 0.35
    assert max(x) > 0.65
    assert all(abs(member.params["y"] - 0.5) < 0.25 for member in members)


def test_expected_losses_are_what_the_task_has_seen_nearby() -> None:
    (member, *_) = portfolio([bowl("past", (0.3, 0.7), n=100)])
    x, y = member.params["x"], member.params["y"]
    assert member.expected["past"][0] == pytest.approx((x - 0.3) ** 2 + (y - 0.7) ** 2, abs=0.02)


def test_infeasible_configurations_are_avoided() -> None:
    task = bowl("past", (0.2, 0.5), n=100)
    violation = (task.X[:, 0] < 0.5).astype(float)
    members = portfolio([replace(task, violation=violation)], k=3)
    assert all(member.params["x"] > 0.45 for member in members)


def test_units_and_the_order_of_tasks_and_objectives_do_not_matter() -> None:
    tasks = [bowl("a", (0.1, 0.3), (0.9, 0.4)), bowl("b", (0.2, 0.6), (0.7, 0.9), seed=1)]
    plain = params_of(portfolio(tasks))
    scaled = [replace(t, losses=t.losses * [1000.0, 0.1] + [7.0, -3.0]) for t in tasks]
    swapped = [replace(t, losses=t.losses[:, ::-1]) for t in tasks]
    assert params_of(portfolio(tasks[::-1])) == plain
    assert params_of(portfolio(scaled)) == plain
    assert len(portfolio(swapped)) == len(plain)


# Spaces ------------------------------------------------------------------------------------------


def test_values_of_a_past_task_are_handed_out_as_they_were_stored() -> None:
    space = {"lr": FloatDistribution(1e-5, 1e-1, log=True), "n": IntDistribution(1, 3)}
    study = optuna.create_study(study_name="past")
    rates = np.geomspace(1.1e-5, 0.09, 30)
    for i, rate in enumerate(rates):
        params = {"lr": float(rate), "n": 1 + i % 3}
        loss = abs(np.log(rate / rates[20])) + 0.5 * (params["n"] != 3)
        study.add_trial(create_trial(params=params, distributions=space, value=float(loss)))
    found = portfolio([study], k=1)[0].params
    assert found["n"] == 3
    assert found["lr"] in [t.params["lr"] for t in study.trials]


def conditional_task(best: str, seed: int = 0) -> Task:
    study, rng = optuna.create_study(study_name=f"{best} {seed}"), np.random.default_rng(seed)
    kinds = CategoricalDistribution(("adam", "sgd"))
    for _ in range(60):
        kind = str(rng.choice(["adam", "sgd"]))
        own = {"adam": "beta", "sgd": "momentum"}[kind]
        params = {"kind": kind, own: float(rng.random())}
        loss = (params[own] - 0.5) ** 2 + (kind != best)
        distributions = {"kind": kinds, own: FloatDistribution(0.0, 1.0)}
        study.add_trial(create_trial(params=params, distributions=distributions, value=loss))
    return Task.from_study(study)


@pytest.mark.parametrize("best", ["adam", "sgd"])
def test_in_a_conditional_space_members_have_the_parameters_of_their_branch(best: str) -> None:
    members = portfolio([conditional_task(best)], k=3)
    used = {"adam": {"kind", "beta"}, "sgd": {"kind", "momentum"}}[best]
    assert [set(member.params) for member in members] == [used] * len(members)


def test_members_stay_in_a_space_that_is_given() -> None:
    narrow = {"x": FloatDistribution(0.4, 0.6), "new": FloatDistribution(0.0, 1.0)}
    members = portfolio([bowl("past", (0.1, 0.5), n=200)], k=3, space=narrow)
    assert members
    assert all(0.4 <= member.params["x"] <= 0.6 for member in members)
    assert all("y" not in member.params for member in members)


@pytest.mark.parametrize("m", [1, 2, 3, 5])
@pytest.mark.parametrize("n_tasks", [1, 12])
def test_any_number_of_objectives_and_tasks(
    m: int, n_tasks: int, rng: np.random.Generator
) -> None:
    space = Space({**SQUARE, "c": CategoricalDistribution(("a", "b", "c"))})
    tasks = []
    for i in range(n_tasks):
        X = space.columns.snap(rng.random((20, 3)))
        tasks.append(Task(f"past {i}", space, X, rng.random((20, m))))
    members = portfolio(tasks, k=4)
    assert 1 <= len(members) <= 4
    for member in members:
        assert set(member.expected) == {task.name for task in tasks}
        assert all(len(losses) == m for losses in member.expected.values())
        assert space.fit(member.params) == member.params


def test_a_finite_space_has_no_more_members_than_configurations() -> None:
    space = Space({"c": CategoricalDistribution(("a", "b"))})
    X = space.encode([{"c": "a"}, {"c": "b"}])
    members = portfolio([Task("past", space, X, [[0.0, 1.0], [1.0, 0.0]])], k=5)
    assert len(members) <= 2


def test_losses_that_are_infinite_or_all_the_same_are_no_trouble() -> None:
    X = np.random.default_rng(0).random((10, 2))
    losses = np.where(X[:, :1] > 0.5, np.inf, 1.0)
    (member,) = portfolio([Task("past", Space(SQUARE), X, losses)], k=1)
    assert member.params["x"] < 0.6


@pytest.mark.parametrize(
    ("n_tasks", "n", "n_candidates"),
    [
        *((1, 3, 3), (1, 30, 5), (1, 101, 6), (1, 199, 10), (1, 300, 15)),
        *((3, 100, 15), (40, 50, 200), (41, 50, 205), (100, 50, 200), (510, 2, 500)),
    ],
)
def test_candidates_are_the_best_twentieth_or_five_of_each_task_and_fewer_of_many_tasks(
    n_tasks: int, n: int, n_candidates: int, rng: np.random.Generator
) -> None:
    tasks = [Task(f"t{i}", LINE, rng.random((n, 1)), rng.random((n, 1))) for i in range(n_tasks)]
    X, origins = _candidates(Past(tasks, LINE))
    assert len(X) == len(origins) == n_candidates
    for x, (task, row) in zip(X, origins, strict=True):
        assert task.X[row] == x
        n_better = np.count_nonzero(task.losses < task.losses[row])
        assert n_better < max(5, n / 20)


def test_what_lost_a_value_is_a_candidate_only_of_a_task_that_has_nothing_else(
    rng: np.random.Generator,
) -> None:
    narrower = Space({"x": FloatDistribution(0.0, 0.5), "y": FloatDistribution(0.0, 1.0)})
    X = np.array([[0.9, 0.1], [0.2, 0.2], [0.3, 0.3]])
    losses = np.arange(3.0)[:, None]
    whole = Task("whole", Space(SQUARE), X, losses)
    lossy = Task("lossy", Space(SQUARE), X[:1], losses[:1])
    origins = _candidates(Past([whole, lossy], narrower))[1]
    assert [(task.name, row) for task, row in origins] == [
        ("whole", 1),
        ("whole", 2),
        ("lossy", 0),
    ]


@pytest.mark.parametrize(("off", "is_known"), [(5e-10, True), (5e-9, False)])
def test_a_candidate_is_known_again_to_nine_digits(
    off: float, is_known: bool, rng: np.random.Generator
) -> None:
    task = valleys(rng)[0]
    x = task.configuration(int(np.argmin(task.losses)))["x"] + off
    found = Candidates(Past([task], LINE))._rows_of([{"x": x}])
    assert (found != [None]) == is_known


# What is refused ---------------------------------------------------------------------------------


def test_what_cannot_be_served_is_refused_in_a_sentence() -> None:
    one, two = bowl("one", (0.5, 0.5)), bowl("two", (0.5, 0.5), (0.1, 0.1))
    with pytest.raises(ValueError, match="there is no past study"):
        portfolio([])
    with pytest.raises(ValueError, match="the past studies have 1 and 2 objectives"):
        portfolio([one, two])
    with pytest.raises(ValueError, match="k must be 1 or more, but is 0"):
        portfolio([one], k=0)
    with pytest.raises(ValueError, match="no past study has a parameter in common"):
        portfolio([one], space={"z": FloatDistribution(0.0, 1.0)})


# The choice listens ------------------------------------------------------------------------------


def test_a_pair_in_the_right_order_makes_a_task_e_times_as_probable_as_in_the_wrong_one() -> None:
    Y = np.array([[[0.0], [0.5], [1.0]], [[1.0], [0.5], [0.0]]])  # two tasks, opposite orders
    weights = order_weights(agreement(Y, np.array([[1.0], [2.0], [3.0]])))
    np.testing.assert_allclose(weights, 2.0 / (1.0 + np.exp(np.array([-3.0, 3.0]))))


def test_without_two_results_or_with_equal_ones_all_tasks_weigh_the_same() -> None:
    Y = np.array([[[0.0], [0.5]], [[1.0], [0.5]]])
    for results in ([[1.0], [1.0]], [[np.inf], [np.inf]]):
        np.testing.assert_allclose(order_weights(agreement(Y, np.array(results))), 1.0)
    np.testing.assert_allclose(order_weights(agreement(Y[:, :1], np.array([[1.0]]))), 1.0)


def test_a_portfolio_of_what_was_not_tried_yet_is_the_rest_of_it(rng: np.random.Generator) -> None:
    candidates = Candidates(Past(valleys(rng), LINE))
    whole = candidates.members(3)
    tried = [Tried(member.params, None) for member in whole[:2]]
    assert [m.params for m in candidates.members(1, tried)] == [whole[2].params]


def test_results_lead_to_configurations_of_the_past_tasks_that_foresaw_them(
    rng: np.random.Generator,
) -> None:
    candidates = Candidates(Past(valleys(rng), LINE))
    middle = candidates.members(1)[0].params["x"]
    assert 0.4 < middle < 0.6
    for best, is_there in ((0.9, lambda x: x > 0.7), (0.1, lambda x: x < 0.3)):
        # Of the two that were tried, the one on the side of the best value was better.
        other = candidates.members(1, [Tried({"x": middle}, [0.0])])[0].params["x"]
        results = [[abs(x - best)] for x in (middle, other)]
        tried = [Tried({"x": x}, y) for x, y in zip((middle, other), results, strict=True)]
        (member,) = candidates.members(1, tried)
        assert is_there(member.params["x"]) or is_there(other)


def test_the_odds_that_some_past_task_fits_fall_with_each_pair_in_the_wrong_order(
    rng: np.random.Generator,
) -> None:
    (task,) = valleys(rng)[:1]
    candidates = Candidates(Past([task], LINE))
    rows = np.argsort(task.losses[:, 0])[[0, 2, 4]]
    xs = [task.configuration(i)["x"] for i in rows]
    assert candidates.log_odds([]) == candidates.log_odds([Tried({"x": xs[0]}, [1.0])]) == 0.0
    for results, s in (([1.0, 2.0, 3.0], 3), ([3.0, 2.0, 1.0], -3), ([2.0, 1.0, 3.0], 1)):
        tried = [Tried({"x": x}, [y]) for x, y in zip(xs, results, strict=True)]
        assert candidates.log_odds(tried) == pytest.approx(s / 2)
    unknown = Tried({"x": 0.123456789}, [-1.0])  # is no candidate: nothing is known of it
    assert candidates.log_odds([unknown, Tried({"x": xs[0]}, [1.0])]) == 0.0


def test_the_odds_are_the_mean_over_the_past_tasks(rng: np.random.Generator) -> None:
    low, _, high = valleys(rng)
    xs = [task.configuration(int(np.argmin(task.losses)))["x"] for task in (low, high)]
    tried = [Tried({"x": x}, [y]) for x, y in zip(xs, (0.0, 1.0), strict=True)]
    both = Candidates(Past([low, high], LINE)).log_odds(tried)
    assert both == pytest.approx(np.log((np.exp(0.5) + np.exp(-0.5)) / 2))


def test_the_odds_are_finite_after_any_number_of_results(rng: np.random.Generator) -> None:
    x = np.sort(rng.random(60))
    task = Task("all on the front", LINE, x[:, None], np.stack([x, 1.0 - x], axis=1))
    candidates = Candidates(Past([task], LINE))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for sign in (1.0, -1.0):
            results = [(sign * k, -sign * k) for k in range(60)]
            tried = [Tried(task.configuration(i), results[i]) for i in range(60)]
            assert np.isfinite(candidates.log_odds(tried))
            assert abs(candidates.log_odds(tried)) > 300.0


def valleys(rng: np.random.Generator) -> list[Task]:
    """Return tasks with their best values at 0.1, 0.5 and 0.9."""

    def task(best: float) -> Task:
        X = rng.random((40, 1))
        return Task(f"at {best}", LINE, X, np.abs(X - best))

    return [task(best) for best in (0.1, 0.5, 0.9)]


LINE = Space({"x": FloatDistribution(0.0, 1.0)})
