"""The Gaussian processes of past tasks: fitted once, with the objectives of the study."""

import numpy as np
import pytest
from helpers import INF, MIXED, NAN, locked, random_points, task_of, without
from optuna.distributions import FloatDistribution

from metatpe import Space, Task
from metatpe.gp.models import fit_all
from metatpe.gp.transform import scores
from metatpe.past import models as models_module
from metatpe.past.known import Past
from metatpe.past.models import _some
from metatpe.space import Floats
from metatpe.tpe.pareto import order


def two_losses(X: Floats) -> Floats:  # (n, d) -> (n, 2)
    return np.stack([X[:, 0], 1.0 - X[:, 0] + X[:, 1]], axis=1)


def named(task: Task, *names: str) -> Task:
    return Task(task.name, task.space, task.X, task.losses, objective_names=names)


def test_a_task_is_fitted_when_it_is_first_asked_for_and_once(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_fitted: list[int] = []

    def counted(encoder, X, y):  # type: ignore[no-untyped-def]
        n_fitted.append(len(X))
        return fit_all(encoder, X, y)

    monkeypatch.setattr(models_module, "fit_all", counted)
    tasks = [task_of("t", MIXED, n, two_losses, rng) for n in (10, 12, 14)]
    models = Past(tasks, MIXED).models(())
    assert n_fitted == []
    models.of([1])
    models.best([1])
    models.of([2, 1])
    assert n_fitted == [12, 14]


def test_the_models_are_those_of_the_scores(rng: np.random.Generator) -> None:
    task = task_of("t", MIXED, 15, two_losses, rng)
    models = Past([task], MIXED).models(())
    features = models.encoder(random_points(MIXED.columns, 5, rng))
    y = scores(task.losses, task.violation)
    for own, expected in zip(models.of([0])[0], fit_all(models.encoder, task.X, y), strict=True):
        np.testing.assert_allclose(own.mean(features), expected.mean(features), atol=1e-4)


@pytest.mark.parametrize(
    ("of_study", "is_swapped"),
    [
        (("cost", "error"), True),
        (("error", "cost"), False),
        (("error", "size"), False),
        ((), False),
    ],
    ids=str,
)
def test_objectives_are_matched_by_name_where_both_name_the_same(
    of_study: tuple[str, ...], is_swapped: bool, rng: np.random.Generator
) -> None:
    task = named(task_of("t", MIXED, 15, two_losses, rng), "error", "cost")
    past = Past([task], MIXED)
    features = past.models(()).encoder(random_points(MIXED.columns, 5, rng))
    (plain,), (own,) = past.models(()).of([0]), past.models(of_study).of([0])
    in_order = np.s_[:: -1 if is_swapped else 1]
    expected = [model.mean(features) for model in plain][in_order]
    np.testing.assert_allclose([model.mean(features) for model in own], expected, atol=1e-6)
    ((_, _, losses),) = past.models(of_study).of_all()
    np.testing.assert_array_equal(losses, task.losses[:, in_order])


def test_the_best_configurations_come_first_and_are_complete(rng: np.random.Generator) -> None:
    # What is missing stands in the middle of its column, and every value is one of the space.
    task = task_of("t", MIXED, 50, two_losses, rng)
    partial = Task("partial", MIXED, without(task.X, 1, 3), task.losses)
    best = Past([task, partial], MIXED).models(()).best([0, 1])
    y = scores(task.losses, task.violation)
    rows = order(y, np.zeros(50))[:20]
    np.testing.assert_array_equal(best[:20], task.X[rows])
    np.testing.assert_array_equal(best[20:, [0, 2, 4]], task.X[rows][:, [0, 2, 4]])
    middle = MIXED.columns.snap(np.full((1, 5), 0.5))[0]
    np.testing.assert_array_equal(best[20:, [1, 3]], np.tile(middle[[1, 3]], (20, 1)))


def test_a_long_task_is_modelled_by_a_part_of_its_observations(rng: np.random.Generator) -> None:
    task = task_of("t", Space({"x": MIXED.distributions["float"]}), 400, lambda X: X[:, 0], rng)
    ((model,),) = Past([task], task.space).models(()).of([0])
    assert len(model.points) == 300


@pytest.mark.parametrize(("n_whole", "n_modelled"), [(4, 8), (5, 5)])
def test_what_has_lost_a_value_is_left_out_where_five_observations_have_lost_none(
    n_whole: int, n_modelled: int, rng: np.random.Generator
) -> None:
    wider, narrower = (
        Space({"x": FloatDistribution(0.0, high), "y": FloatDistribution(0.0, 1.0)})
        for high in (2.0, 1.0)
    )
    X = rng.random((8, 2))
    X[:, 0] = np.where(np.arange(8) < n_whole, 0.2, 0.8)  # the latter are beyond the narrower x
    past = Past([Task("t", wider, locked(X), rng.random((8, 1)))], narrower)
    (((model,), y, seen),) = past.models(()).of_all()
    assert len(model.points) == len(y) == len(seen) == n_modelled


def test_what_failed_is_as_bad_as_the_worst_and_never_among_the_best() -> None:
    space = Space({"x": MIXED.distributions["float"]})
    X = locked(np.linspace(0, 1, 40)[:, None])
    losses, violation = np.array(X), np.zeros(40)
    losses[:5], violation[5:10] = INF, 1.0
    models = Past([Task("t", space, X, losses, violation)], space).models(())
    np.testing.assert_array_equal(models.best([0])[:, 0], X[10:30, 0])
    ((model,),) = models.of([0])
    middle, first = model.mean(models.encoder(np.array([[0.3], [0.1]])))
    assert middle < first
    assert not np.isnan(model.mean(models.encoder(np.array([[NAN]])))).any()


def test_models_that_are_not_fitted_have_the_mean_noise_and_scales_of_those_that_use_a_parameter(
    rng: np.random.Generator,
) -> None:
    space = Space(dict.fromkeys("xy", MIXED.distributions["float"]))
    tasks = [task_of(f"t{i}", space, 12, lambda X: X[:, 0] + X[:, 1], rng) for i in range(12)]
    X = tasks[0].X * [1.0, NAN]  # the first task never used the second parameter
    tasks[0] = Task("t0", space, X, tasks[0].losses)
    models = [model for ((model,), _, _) in Past(tasks, space).models(()).of_all()]
    fitted = np.stack([model.scale for i, model in enumerate(models) if i not in (5, 10)])
    assert (fitted[0] == 0.0).tolist() == [False, True]
    noises = [model.noise for i, model in enumerate(models) if i not in (5, 10)]
    for i in (5, 10):
        assert models[i].noise == pytest.approx(np.exp(np.log(noises).mean()))
        logs = np.log(fitted[:, 0]).mean(), np.log(fitted[1:, 1]).mean()
        np.testing.assert_allclose(models[i].scale, np.exp(logs))


def test_a_parameter_that_none_of_the_fitted_tasks_used_has_a_length_scale_of_one(
    rng: np.random.Generator,
) -> None:
    space = Space(dict.fromkeys("xy", MIXED.distributions["float"]))
    tasks = [task_of(f"t{i}", space, 12, lambda X: X.sum(axis=1), rng) for i in range(12)]
    tasks = [
        task if i == 5 else Task(task.name, space, task.X * [1.0, NAN], task.losses)
        for i, task in enumerate(tasks)
    ]
    models = [model for ((model,), _, _) in Past(tasks, space).models(()).of_all()]
    assert models[4].scale[1] == 0.0  # a fitted one
    assert models[5].scale[1] == 1.0


@pytest.mark.parametrize("n", [101, 149, 150, 151, 400])
def test_of_many_observations_the_best_fifty_and_fifty_others_evenly_are_taken(n: int) -> None:
    some = np.sort(_some(np.arange(n, dtype=float)[:, None]))
    assert some[:50].tolist() == list(range(50))
    assert (some[50], some[-1], len(some)) == (50, n - 1, 100)
    assert np.ptp(np.diff(some[50:])) <= 1


@pytest.mark.parametrize("n", [0, 1, 99, 100])
def test_of_a_hundred_observations_all_are_taken(n: int) -> None:
    assert sorted(_some(np.arange(n, dtype=float)[:, None])) == list(range(n))


def test_losses_that_must_not_count_as_good_are_the_worst_of_the_feasible_ones() -> None:
    space = Space({"x": MIXED.distributions["float"]})
    X = locked(np.linspace(0, 1, 7)[:, None])
    losses, violation = (
        np.array([[0.0, 1.0, 2.0, 3.0, INF, 9.0, -INF]]).T,
        np.array([1e-9, 0, 0, 0, 0, 2, 0]),
    )
    ((_, _, seen),) = Past([Task("t", space, X, losses, violation)], space).models(()).of_all()
    # Nothing is better than the best that has a number.
    assert seen.ravel().tolist() == [3.0, 1.0, 2.0, 3.0, 3.0, 3.0, 1.0]
