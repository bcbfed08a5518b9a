"""The densities of past tasks: similarity, the acquisition of many tasks, and the agreement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from helpers import MIXED, NAN, locked, pdf, random_points, task_of
from optuna.distributions import FloatDistribution, IntDistribution
from scipy.stats import spearmanr

from metatpe import Space, Task
from metatpe.past import densities as densities_module
from metatpe.past.densities import PastDensities
from metatpe.past.known import Past
from metatpe.tpe.acquisition import Densities, draw_candidates, score
from metatpe.tpe.importance import importances, kept_columns, mean_importances
from metatpe.tpe.kde import Parzen
from metatpe.tpe.kernel import Nodes, make_nodes

GAMMA = 0.1
UNIT = FloatDistribution(0, 1)
SQUARE = Space({"x": UNIT, "y": UNIT})
CUBE = Space({f"x{j}": UNIT for j in range(4)})
of_both_kinds = pytest.mark.parametrize("space", [MIXED, CUBE], ids=["mixed", "continuous"])


def random_tasks(n_tasks: int, n: int, space: Space, rng: np.random.Generator) -> list[Task]:
    """Return past tasks with their optima in different places."""
    middles = 0.5 + 0.2 * rng.normal(size=(n_tasks, len(space)))
    return [
        task_of(f"past {i}", space, n, lambda X, m=middle: ((X - m) ** 2).sum(axis=1), rng)
        for i, middle in enumerate(middles)
    ]


def densities_of(tasks: Sequence[Task], space: Space) -> PastDensities:
    return Past(tasks, space).densities(GAMMA)


def as_if_large(past: PastDensities) -> PastDensities:
    """Make densities work as they do where there are thousands of kernels."""
    past.__dict__["_is_large"] = True
    return past


# The task kernel ---------------------------------------------------------------------------------


def test_the_kept_columns_are_the_most_important_ones_on_average(rng: np.random.Generator) -> None:
    past = densities_of(random_tasks(3, 60, CUBE, rng), CUBE)
    good = Parzen(CUBE.columns, rng.random((16, 4)) * [1.0, 0.3, 1.0, 0.6])
    V = np.stack([importances(task.good, GAMMA) for task in past.tasks])
    mean = mean_importances(importances(good, GAMMA), V.sum(axis=0), np.full(4, 3))
    _, kept = past.similarities(good, eta=3.5, n_mc_samples=100)
    assert kept == kept_columns(mean, 16, 3.5)
    assert len(kept) == 2


def test_a_column_that_no_past_task_has_is_not_kept(rng: np.random.Generator) -> None:
    grown = Space({"new": UNIT, **SQUARE.distributions})
    past = densities_of(random_tasks(1, 50, SQUARE, rng), grown)
    X = rng.random((8, 3))
    X[:, 0] = 0.5  # by far the most important one of the new study
    s, kept = past.similarities(Parzen(grown.columns, X), eta=2.5, n_mc_samples=100)
    assert kept
    assert 0 not in kept
    assert s[0] > 0


def test_before_the_study_has_a_good_observation_every_task_is_like_it(
    rng: np.random.Generator,
) -> None:
    nothing = Parzen(CUBE.columns, np.empty((0, 4)))
    s, kept = densities_of(random_tasks(3, 20, CUBE, rng), CUBE).similarities(
        nothing, eta=2.5, n_mc_samples=100
    )
    assert (s.tolist(), kept) == ([1.0, 1.0, 1.0], ())


def test_without_a_past_task_there_is_no_similarity(rng: np.random.Generator) -> None:
    good = Parzen(CUBE.columns, rng.random((3, 4)))
    s, kept = densities_of([], CUBE).similarities(good, eta=2.5, n_mc_samples=100)
    assert (s.tolist(), kept) == ([], ())


def test_as_published_every_task_is_like_the_study_while_no_column_is_kept(
    rng: np.random.Generator,
) -> None:
    past = densities_of(random_tasks(3, 40, CUBE, rng), CUBE)
    two, three = (Parzen(CUBE.columns, 0.05 * rng.random((n, 4))) for n in (2, 3))

    def compared(good: Parzen, *, keeps_one: bool) -> tuple[list[float], int]:
        s, kept = past.similarities(good, eta=2.5, n_mc_samples=100, keeps_one=keeps_one)
        return s.tolist(), len(kept)

    own = compared(two, keeps_one=True)
    assert own[1] == 1
    assert max(own[0]) < 1.0
    assert compared(two, keeps_one=False) == ([1.0, 1.0, 1.0], 0)
    assert compared(two, keeps_one=True) == own
    assert compared(three, keeps_one=False) == compared(three, keeps_one=True)


def test_a_comparison_at_other_points_is_made_anew(rng: np.random.Generator) -> None:
    tasks, good = random_tasks(3, 40, CUBE, rng), Parzen(CUBE.columns, rng.random((5, 4)))
    used = densities_of(tasks, CUBE)
    for n in (50, 400, 50):
        found, expected = (
            past.similarities(good, eta=2.5, n_mc_samples=n)[0]
            for past in (used, densities_of(tasks, CUBE))
        )
        np.testing.assert_array_equal(found, expected)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Nodes]:
    """The nodes that were made, one entry per group of past tasks."""
    nodes: list[Nodes] = []

    def recorded(*args: Any) -> list[Nodes]:
        found = make_nodes(*args)
        nodes.extend(found)
        return found

    monkeypatch.setattr(densities_module, "make_nodes", recorded)
    return nodes


@pytest.mark.parametrize(("n_tasks", "n_points"), [(60, 100), (200, 50), (2000, 16)])
def test_many_tasks_share_the_points_at_which_they_are_compared(
    n_tasks: int, n_points: int, made: list[Nodes], rng: np.random.Generator
) -> None:
    some = random_tasks(10, 60, SQUARE, rng)
    good = Parzen(SQUARE.columns, 0.5 + 0.1 * rng.normal(size=(20, 2)))
    few = densities_of(some, SQUARE)
    many = densities_of([some[i % 10] for i in range(n_tasks)], SQUARE)
    exact, kept = few.similarities(good, eta=2.0, n_mc_samples=4000)  # keeps both columns
    estimated, kept_of_many = many.similarities(good, eta=2.0, n_mc_samples=400)
    assert kept == kept_of_many == (0, 1)
    assert [nodes.log_q.shape for nodes in made] == [(10, 4000), (n_tasks, n_points)]
    distances = [(1.0 - s) / (1.0 + s) for s in (exact[np.arange(n_tasks) % 10], estimated)]
    assert np.abs(distances[1] - distances[0]).max() <= 3 * 0.5 / math.sqrt(n_points)


@pytest.mark.parametrize(("n_tasks", "n_points"), [(50, 3600), (60, 25)])
def test_a_long_grid_of_many_tasks_is_compared_at_points_too(
    n_tasks: int, n_points: int, made: list[Nodes], rng: np.random.Generator
) -> None:
    space = Space({name: IntDistribution(1, 60) for name in "ab"})  # 3,600 cells
    past = densities_of(random_tasks(n_tasks, 20, space, rng), space)
    good = Parzen(space.columns, random_points(space.columns, 5, rng))
    past.similarities(good, eta=1.5, n_mc_samples=100)
    assert [(nodes.kept, nodes.log_q.shape) for nodes in made] == [((0, 1), (n_tasks, n_points))]


def test_a_long_history_is_compared_at_fewer_points(
    made: list[Nodes], rng: np.random.Generator
) -> None:
    past = densities_of(random_tasks(10, 20, SQUARE, rng), SQUARE)
    for n in (10, 200, 400, 1000):
        good = Parzen(SQUARE.columns, rng.random((n, 2)))
        past.similarities(good, eta=1.5, n_mc_samples=1000)
    assert [nodes.log_q.shape[1] for nodes in made] == [1000, 500, 125]  # those of 200 are reused


# The acquisition ---------------------------------------------------------------------------------


def target_of(space: Space, n: int, n_good: int, rng: np.random.Generator) -> Densities:
    return Densities.of(space.columns, random_points(space.columns, n, rng), np.arange(n) < n_good)


@of_both_kinds
def test_the_acquisition_of_many_tasks_is_that_of_each_where_all_kernels_are_used(
    space: Space, rng: np.random.Generator
) -> None:
    past = densities_of(random_tasks(12, 40, space, rng), space)
    target = target_of(space, 30, 3, rng)
    weights = locked(np.full(13, 1 / 13))
    candidates = locked(draw_candidates([target, *past.tasks], weights, 20, rng=rng))
    exact = past.score(target, weights, candidates, rng=rng)
    np.testing.assert_array_equal(exact, score([target, *past.tasks], weights, candidates))
    scores = as_if_large(past).score(target, weights, candidates, rng=rng)
    seen = np.isfinite(scores)
    assert seen.sum() == 128
    assert seen[np.argmax(exact)]
    np.testing.assert_allclose(scores[seen], exact[seen], atol=5e-3)
    own = np.eye(1, 13)[0]
    np.testing.assert_array_equal(
        past.score(target, own, candidates, rng=rng), score([target], own[:1], candidates)
    )


@pytest.mark.parametrize("n", [127, 128, 129])
def test_the_best_candidates_of_a_first_look_get_a_second_one_and_all_of_few(
    n: int, rng: np.random.Generator
) -> None:
    past = as_if_large(densities_of(random_tasks(3, 40, CUBE, rng), CUBE))
    X, target = rng.random((n, 4)), target_of(CUBE, 30, 3, rng)
    scores = past.score(target, np.full(4, 0.25), X, rng=rng)
    assert np.isfinite(scores).sum() == min(n, 128)


def test_a_first_look_leaves_the_best_by_the_target_too(rng: np.random.Generator) -> None:
    past = densities_of(random_tasks(3, 40, CUBE, rng), CUBE)
    X, target = rng.random((500, 4)), target_of(CUBE, 30, 3, rng)
    weights = np.array([0.97, 0.01, 0.01, 0.01])
    best = np.argsort(-past.score(target, weights, X, rng=rng))[:100]
    assert np.isfinite(as_if_large(past).score(target, weights, X, rng=rng)[best]).all()


@of_both_kinds
def test_a_target_without_bad_observations_is_scored(
    space: Space, rng: np.random.Generator
) -> None:
    past = densities_of(random_tasks(3, 40, space, rng), space)
    target = target_of(space, 1, 1, rng)
    X, weights = random_points(space.columns, 20, rng), np.full(4, 0.25)
    exact = past.score(target, weights, X, rng=rng)
    scores = as_if_large(past).score(target, weights, X, rng=rng)
    np.testing.assert_allclose(scores, exact, atol=5e-3)


@pytest.mark.parametrize("most", ["past", "target"])
def test_all_kernels_are_looked_at_up_to_a_number_and_a_part_of_more(
    most: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, target = random_tasks(3, 40, CUBE, rng), target_of(CUBE, 50, 5, rng)
    weights, X = np.full(4, 0.25), rng.random((1000, 4))
    past = densities_of(tasks, CUBE)
    exact = score([target, *past.tasks], weights, X)
    is_past = most == "past"
    n = sum(len(task.bad) for task in past.tasks) if is_past else len(target.bad)
    name = "MAX_KERNELS" if is_past else "MAX_OWN"
    monkeypatch.setattr(densities_module, name, n)
    np.testing.assert_array_equal(past.score(target, weights, X, rng=rng), exact)
    monkeypatch.setattr(densities_module, name, n - 1)
    some = densities_of(tasks, CUBE).score(target, weights, X, rng=rng)
    assert np.isinf(some).any()  # most candidates are ruled out by a first look


@pytest.mark.parametrize(("n", "is_large"), [(2276, False), (2277, True)])
def test_of_past_tasks_with_more_than_2048_bad_observations_a_part_is_looked_at(
    n: int, is_large: bool, rng: np.random.Generator
) -> None:
    line = Space({"x": UNIT})
    past = densities_of([Task("t", line, rng.random((n, 1)), rng.random((n, 1)))], line)
    assert len(past.tasks[0].bad) == n - 228
    target, X = target_of(line, 30, 3, rng), rng.random((200, 1))
    scores = past.score(target, np.full(2, 0.5), X, rng=rng)
    assert np.isinf(scores).any() == is_large


@pytest.mark.parametrize(("n_bad", "is_long"), [(4096, False), (4097, True)])
def test_beside_more_than_4096_bad_observations_of_the_study_a_part_of_the_past_is_looked_at(
    n_bad: int, is_long: bool, rng: np.random.Generator
) -> None:
    line = Space({"x": UNIT})
    past = densities_of(random_tasks(2, 20, line, rng), line)
    target, X = target_of(line, 3 + n_bad, 3, rng), rng.random((200, 1))
    scores = past.score(target, np.full(3, 1 / 3), X, rng=rng)
    assert np.isinf(scores).any() == is_long


def test_a_pick_by_a_part_of_the_kernels_is_one_of_the_best_by_all(
    rng: np.random.Generator,
) -> None:
    past = densities_of(random_tasks(60, 100, CUBE, rng), CUBE)
    target = target_of(CUBE, 50, 5, rng)
    places = []
    for _ in range(20):
        weights = rng.dirichlet(np.ones(61))
        candidates = draw_candidates([target, *past.tasks], weights, 100, rng=rng)
        exact = score([target, *past.tasks], weights, candidates)
        scores = past.score(target, weights, candidates, rng=rng)
        assert np.isinf(scores).any()  # most candidates are ruled out by a first look
        places.append(np.mean(exact > exact[np.argmax(scores)]))
    assert np.median(places) <= 0.01
    assert max(places) <= 0.05


# The agreement -----------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [False, True])
@of_both_kinds
def test_the_agreement_is_the_rank_correlation_of_density_ratios_with_levels(
    space: Space, missing: bool, rng: np.random.Generator
) -> None:
    past = densities_of(random_tasks(4, 40, space, rng), space)
    X, level = np.array(random_points(space.columns, 20, rng)), rng.integers(0, 6, 20)
    kept = [0, 2, 3] if missing else list(range(len(space)))
    X[:, [j for j in range(len(space)) if j not in kept]] = NAN
    found = past.agreement(locked(X), locked(level))
    for z, task in zip(found, past.tasks, strict=True):
        good, bad = (pdf(side, X[:, kept]) for side in task.reduced(kept))
        rho = spearmanr(np.log(good / bad).round(6), level).statistic
        assert z == pytest.approx(-rho * math.sqrt(19), abs=1e-9)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_observations_have_no_order(n: int, rng: np.random.Generator) -> None:
    past = densities_of(random_tasks(3, 20, CUBE, rng), CUBE)
    assert past.agreement(rng.random((n, 4)), np.zeros(n, dtype=np.int64)).tolist() == [0.0] * 3


def test_two_observations_have_an_order(rng: np.random.Generator) -> None:
    past, X = densities_of(random_tasks(3, 20, CUBE, rng), CUBE), rng.random((2, 4))
    np.testing.assert_allclose(np.abs(past.agreement(X, np.array([0, 1]))), [1.0] * 3)


def test_density_ratios_that_differ_by_rounding_have_equal_ranks(
    rng: np.random.Generator,
) -> None:
    past, x = densities_of(random_tasks(3, 20, CUBE, rng), CUBE), rng.uniform(0.2, 0.8, 4)
    nearly = np.vstack([x + k * 1e-13 for k in range(5)])
    far = np.vstack([nearly, rng.random(4)])
    level = np.array([0, 1, 2, 3, 4, 2])
    np.testing.assert_allclose(past.agreement(far, level), 0.0, atol=1e-9)


def test_other_configurations_with_the_same_levels_are_judged_anew(
    rng: np.random.Generator,
) -> None:
    tasks, level = random_tasks(3, 30, CUBE, rng), np.arange(12)
    used = densities_of(tasks, CUBE)
    for X in rng.random((3, 12, 4)):
        fresh = densities_of(tasks, CUBE)
        np.testing.assert_array_equal(used.agreement(X, level), fresh.agreement(X, level))


@pytest.mark.parametrize("missing", [False, True])
@of_both_kinds
def test_many_tasks_are_judged_like_few(
    space: Space, missing: bool, rng: np.random.Generator
) -> None:
    tasks = random_tasks(12, 40, space, rng)
    small, large = densities_of(tasks, space), as_if_large(densities_of(tasks, space))
    X = np.array(random_points(space.columns, 20, rng))
    if missing:
        X[::3, 1] = NAN
    for n in (5, 6, 20):
        judged = X[:n], np.arange(n)
        np.testing.assert_allclose(large.agreement(*judged), small.agreement(*judged), atol=1e-9)


def test_what_is_remembered_of_earlier_observations_changes_nothing(
    rng: np.random.Generator,
) -> None:
    tasks, X = random_tasks(3, 30, MIXED, rng), random_points(MIXED.columns, 25, rng)
    used = densities_of(tasks, MIXED)
    for n in (5, 6, 6, 7, 20, 25, 3, 25):
        fresh, level = densities_of(tasks, MIXED), rng.permutation(n)
        np.testing.assert_array_equal(used.agreement(X[:n], level), fresh.agreement(X[:n], level))
        good = Parzen(MIXED.columns, X[: max(1, n // 5)])
        similarities = [p.similarities(good, eta=2.5, n_mc_samples=50) for p in (used, fresh)]
        assert similarities[0][1] == similarities[1][1]
        np.testing.assert_array_equal(similarities[0][0], similarities[1][0])


# The split ---------------------------------------------------------------------------------------


def test_the_split_is_that_of_all_observations_also_of_those_that_do_not_fit_the_space(
    rng: np.random.Generator,
) -> None:
    # The best tenth has x > 0.9, outside of the narrower space; what is left of it is bad.
    task = task_of("t", Space({"x": UNIT}), 100, lambda X: -X[:, 0], rng)
    narrower = Space({"x": FloatDistribution(0.0, 0.5)})
    (inside,) = densities_of([task], narrower).tasks
    assert len(inside.good) == 0
    assert len(inside.bad) == np.count_nonzero(task.X <= 0.5)


def test_as_published_gamma_alone_says_how_many_are_good(rng: np.random.Generator) -> None:
    task = task_of("t", SQUARE, 10, lambda X: np.stack([X[:, 0], 1.0 - X[:, 0]], axis=1), rng)
    past = Past([task], SQUARE)
    assert len(past.densities(GAMMA).tasks[0].good) == 3
    assert len(past.densities(GAMMA, keeps_front=False).tasks[0].good) == 1


def test_the_same_configurations_with_other_losses_are_judged_anew(
    rng: np.random.Generator,
) -> None:
    past = densities_of(random_tasks(2, 60, SQUARE, rng), SQUARE)
    X, levels = rng.random((12, 2)), np.arange(12)
    first = past.agreement(X, levels)
    np.testing.assert_allclose(past.agreement(X, levels[::-1].copy()), -first)
    np.testing.assert_allclose(past.agreement(X, levels), first)
    done = np.zeros((12, 3))
    losses = rng.random((12, 1))
    np.testing.assert_array_equal(
        past.levels(losses, np.zeros(12), done), 11 - past.levels(-losses, np.zeros(12), done)
    )


def test_levels_are_those_of_the_lateness_too(rng: np.random.Generator) -> None:
    past = densities_of(random_tasks(1, 20, SQUARE, rng), SQUARE)
    losses, feasible, late = np.full((6, 1), np.inf), np.zeros(6), np.zeros((6, 3))
    late[:, 0], late[:, 1] = 1.0, np.arange(6)
    first = past.levels(losses, feasible, late)
    np.testing.assert_array_equal(past.levels(losses, feasible, late[::-1].copy()), first[::-1])
    assert first.tolist() == sorted(first.tolist()) != [first[0]] * 6
