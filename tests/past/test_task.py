"""Tasks: what they check, what is lost in another space, and reading them out of studies."""

import logging
import pickle
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import optuna
import pytest
from helpers import DISTRIBUTIONS, INF, NAN, distributions, random_points
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study
from optuna.trial import TrialState, create_trial

from metatpe import MetaTPESampler, Space, Task
from metatpe.tpe.pareto import order

UNIT = FloatDistribution(0, 1)
CHOICES = CategoricalDistribution
LOG = partial(FloatDistribution, log=True)


def task_with(**changes: Any) -> Task:
    """Return a task of three observations of two parameters, with some arguments changed."""
    arguments: dict[str, Any] = {
        "name": "past",
        "space": Space({"x": UNIT, "y": UNIT}),
        "X": np.array([[0.1, 0.2], [0.3, NAN], [0.5, 0.6]]),
        "losses": np.array([[1.0], [2.0], [INF]]),
    }
    return Task(**{**arguments, **changes})


def past_task(values: dict[str, list[Any]], space: dict[str, BaseDistribution]) -> Task:
    """Return a task with the given values, one list a parameter; its losses are 0, 1, 2, ..."""
    params = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    own = Space(space)
    losses = np.arange(float(len(params)))[:, None]
    return Task("past", own, own.encode(params), losses, numbers=own.numbers(params))


def add_trial(
    study: Study,
    x: float,
    values: list[float] | None,
    state: TrialState = TrialState.COMPLETE,
    **more: Any,
) -> None:
    study.add_trial(
        create_trial(
            state=state, values=values, params={"x": x}, distributions={"x": UNIT}, **more
        )
    )


# What a task is


def test_a_task_is_frozen_and_owns_its_arrays() -> None:
    X = np.array([[0.1, 0.2]])
    task = task_with(X=X, losses=np.array([[1.0]]))
    X[:] = 0.9
    assert task.X.tolist() == [[0.1, 0.2]]
    for array in (task.X, task.losses, task.violation, task.numbers):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    with pytest.raises(AttributeError):
        task.name = "other"  # type: ignore[misc]


def test_what_is_left_out_is_feasible_and_decoded() -> None:
    task = task_with(space=Space({"x": FloatDistribution(0, 10), "y": UNIT}))
    assert task.violation.tolist() == [0.0, 0.0, 0.0]
    assert task.configurations([0, 1]) == [{"x": 1.0, "y": 0.2}, {"x": 3.0}]
    assert task.configuration(2) == {"x": 5.0, "y": 0.6}
    assert (len(task), task.n_objectives) == (3, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((3, 1))}, r"'past': X must have the shape \(3, 2\), but has \(3, 1\)"),
        ({"X": np.zeros(3)}, r"X must have the shape \(3, 2\), but has \(3,\)"),
        ({"X": np.full((3, 2), 1.5)}, r"X must lie in \[0, 1\].*3 rows \(such as 0, 1, 2\)"),
        (
            {"X": np.full((7, 2), 1.5), "losses": np.zeros((7, 1))},
            r"in 7 rows \(such as 0, 1, 2, 3, 4\)",
        ),
        ({"X": np.full((3, 2), -INF)}, r"X must lie in \[0, 1\]"),
        ({"losses": np.zeros(3)}, r"losses must have 3 rows.*but have the shape \(3,\)"),
        ({"losses": np.zeros((2, 1))}, r"losses must have 3 rows.*\(2, 1\)"),
        ({"losses": np.zeros((3, 0))}, r"one column per objective.*\(3, 0\)"),
        ({"losses": np.array([[0.0], [NAN], [1.0]])}, r"NaN is in 1 rows \(such as 1\); correct"),
        ({"losses": np.array([[0.0, 1.0], [2.0, NAN], [NAN, 1.0]])}, r"NaN is in 2 rows.* 1, 2"),
        ({"X": np.array([[0.1, 0.2], [0.3, 1.5], [-0.5, NAN]])}, r"\[0, 1\].*2 rows.* 1, 2"),
        ({"violation": np.zeros(2)}, r"violation must have the shape \(3,\), but has \(2,\)"),
        ({"violation": np.array([0.0, -1.0, NAN])}, r"violation must be 0 or more.*1, 2"),
        ({"numbers": np.zeros((2, 2))}, r"numbers must have the shape \(3, 2\)"),
        ({"objective_names": ("a", "b")}, r"1 objective, but 2 objective_names"),
        ({"X": np.empty((0, 2)), "losses": np.empty((0, 1))}, r"'past': there is no observation"),
    ],
)
def test_bad_arrays_are_refused_in_one_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task_with(**changes)


def test_infinite_losses_and_violations_are_allowed() -> None:
    task = task_with(losses=np.array([[-INF], [INF], [0.0]]), violation=np.array([INF, 0, 1]))
    assert order(task.losses, task.violation).tolist() == [1, 2, 0]


def test_a_task_survives_pickling_and_renaming() -> None:
    task = task_with(violation=np.array([0.0, 1.0, 0.0]), objective_names=("error",))
    for other in (pickle.loads(pickle.dumps(task)), replace(task, name="other")):
        np.testing.assert_array_equal(other.X, task.X)
        np.testing.assert_array_equal(other.violation, task.violation)
        assert other.space == task.space
        assert other.objective_names == ("error",)


def test_a_task_describes_itself() -> None:
    task = task_with()
    assert repr(task) == "Task('past', 3 observations, 2 parameters, 1 objective)"
    assert task.describe().splitlines()[1:] == [
        "  x: float 0 to 1",
        "  y: float 0 to 1 (used in 2 of 3)",
        "  smallest losses: objective 0 1",
    ]


def test_a_description_says_what_was_not_always_used_and_what_is_infeasible() -> None:
    space = Space({"lr": LOG(1e-4, 0.1), "act": CHOICES("ab")})
    X = np.array([[0.1, 0.25], [0.2, np.nan], [0.3, 0.75]])
    losses = np.array([[3.0, -1.0], [2.0, 5.0], [4.0, 6.0]])
    task = Task("t", space, X, losses, np.array([0.0, 1.0, 2.0]), ("error", "bleu"))
    assert task.describe().splitlines()[1:] == [
        "  lr: float 0.0001 to 0.1, log",
        "  act: a | b (used in 2 of 3)",
        "  smallest losses: error 2, bleu -1",
        "  infeasible: 2 of 3",
    ]


def test_a_notebook_shows_tasks_and_samplers_with_names_as_text() -> None:
    nasty = "<script>alert(1)</script> & <b>"
    escaped = "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &lt;b&gt;"
    space = Space({nasty: CategoricalDistribution((nasty, "b"))})
    task = Task(nasty, space, np.array([[0.25], [0.75]]), np.array([[1.0], [2.0]]))
    for shown in (task._repr_html_(), MetaTPESampler([task], seed=3)._repr_html_()):
        assert shown.startswith("<table>")
        assert escaped in shown
        assert "<script" not in shown
        assert "<b>" not in shown
    sampler = MetaTPESampler([task], seed=3)
    assert repr(sampler) == str(sampler) == "MetaTPESampler(1 source, seed=3)"


# Another space


@pytest.mark.parametrize(
    ("own", "values", "other", "found"),
    [
        (UNIT, [0.2, 0.8], FloatDistribution(0, 0.5), [0.4, NAN]),
        (UNIT, [0.2, 0.8], FloatDistribution(-1, 1), [0.6, 0.9]),
        (FloatDistribution(1, 100), [1.0, 10.0], LOG(1, 100), [0, 0.5]),
        (FloatDistribution(0, 9), [2.3, 2.6], IntDistribution(0, 4), [0.5, 0.7]),
        (IntDistribution(0, 9), [2, 7], FloatDistribution(0, 8), [0.25, 0.875]),
        (IntDistribution(0, 9), [2, 7], CHOICES((7, "2")), [NAN, 0.25]),
        (CHOICES("abc"), ["a", "c"], CHOICES("ca"), [0.75, 0.25]),
        (CHOICES("abc"), ["a", "b"], CHOICES("xb"), [NAN, 0.75]),
        (CHOICES((1, 2.5, "a")), [2.5, "a"], FloatDistribution(0, 5), [0.5, NAN]),
        (CHOICES((True, None)), [True, None], IntDistribution(0, 1), [NAN, NAN]),
        (CHOICES((None, NAN)), [None, NAN], CHOICES((NAN, None)), [0.75, 0.25]),
        (IntDistribution(1, 8), [2, 8], IntDistribution(1, 8, step=7), [0.25, 0.75]),
    ],
    ids=str,
)
def test_a_value_keeps_its_place_in_another_space_or_is_missing(
    own: BaseDistribution, values: list[Any], other: BaseDistribution, found: list[float]
) -> None:
    X, is_usable, *_ = past_task({"x": values}, {"x": own}).encode_in(Space({"x": other}))
    np.testing.assert_allclose(X[:, 0], found)
    assert is_usable.tolist() == [not np.isnan(x) for x in found]


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_same_space_changes_nothing(name: str, rng: np.random.Generator) -> None:
    space = Space({"x": DISTRIBUTIONS[name]})
    X = random_points(space.columns, 10, rng)
    task = Task("t", space, X, rng.random((10, 1)))
    again, is_usable, *_ = task.encode_in(Space({"x": DISTRIBUTIONS[name]}))
    np.testing.assert_array_equal(again, X)
    assert is_usable.all()


@given(distributions(), distributions(), st.lists(st.floats(0, 1), min_size=1, max_size=5))
@settings(max_examples=80, derandomize=True)
def test_any_task_fits_into_any_space_or_is_missing_there(
    own: BaseDistribution, other: BaseDistribution, x: list[float]
) -> None:
    space = Space({"x": other})
    values = [params["x"] for params in Space({"x": own}).decode(np.array(x)[:, None])]
    X, is_usable, *_ = past_task({"x": values}, {"x": own}).encode_in(space)
    np.testing.assert_array_equal(~np.isnan(X[:, 0]), is_usable)
    inside = X[is_usable]
    assert ((inside >= 0) & (inside <= 1)).all()
    np.testing.assert_allclose(space.encode(space.decode(inside)), inside, atol=1e-9)


def test_an_observation_that_lost_more_than_half_of_what_is_shared_is_not_usable() -> None:
    spaces = [dict.fromkeys("abcd", FloatDistribution(0, high)) for high in (1, 0.5)]
    values = {"a": [0.1, 0.1, 0.9, 0.9], "b": [0.1, 0.1, 0.9, 0.9],
              "c": [0.1, 0.9, 0.9, 0.9], "d": [0.1, 0.9, 0.1, 0.9]}  # fmt: skip
    X, is_usable, *_ = past_task(values, spaces[0]).encode_in(Space(spaces[1]))
    assert np.isnan(X).sum(axis=1).tolist() == [0, 2, 3, 4]
    assert is_usable.tolist() == [True, True, False, False]


def test_what_was_not_used_is_not_lost() -> None:
    space = Space({"x": UNIT, "y": UNIT, "z": UNIT})
    X = np.array([[0.1, NAN, NAN], [NAN, 0.9, NAN], [NAN, NAN, NAN]])
    task = Task("t", space, X, np.zeros((3, 1)))
    narrower = Space({"x": UNIT, "y": FloatDistribution(0, 0.5), "new": UNIT})
    encoded = task.encode_in(narrower)
    assert encoded.is_usable.tolist() == [True, False, False]
    assert encoded.is_whole.tolist() == [True, False, False]  # the last has nothing to keep


def test_a_parameter_that_the_task_lacks_is_missing() -> None:
    X, is_usable, *_ = task_with().encode_in(Space({"new": UNIT, "x": UNIT}))
    np.testing.assert_array_equal(X, [[NAN, 0.1], [NAN, 0.3], [NAN, 0.5]])
    assert is_usable.all()
    assert not task_with().encode_in(Space({"new": UNIT}))[1].any()


def test_a_task_says_what_was_lost_on_the_way_to_another_space(
    caplog: pytest.LogCaptureFixture,
) -> None:
    task = task_with(violation=np.array([0.0, 1.0, 2.0]), objective_names=("error",))
    space = Space({"y": FloatDistribution(0.5, 1.0), "x": FloatDistribution(0, 0.4)})
    with caplog.at_level(logging.INFO, logger="metatpe"):
        moved = task.to(space)
    np.testing.assert_allclose(moved.X, [[NAN, 0.25], [NAN, 0.75], [0.2, NAN]])
    assert moved.violation.tolist() == [0.0, 1.0, 2.0]
    assert (moved.name, moved.space, moved.objective_names) == ("past", space, ("error",))
    assert "1 of 3 values of 'y', 1 of 3 values of 'x'" in caplog.text


def test_a_task_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'past': nothing is left.*in common are \['x'\]"):
        task_with().to(Space({"x": FloatDistribution(5, 6), "z": UNIT}))


def test_stored_values_keep_their_last_digit_in_another_space(rng: np.random.Generator) -> None:
    own = {"x": LOG(1e-6, 1e3), "y": UNIT}
    x = np.exp(rng.uniform(-13, 6, size=50)).tolist()
    task = past_task({"x": x, "y": [0.5] * 50}, own)
    moved = task.to(Space({"x": own["x"], "z": UNIT}))
    assert [c["x"] for c in moved.configurations(range(50))] == x


# Studies


def test_a_study_becomes_its_finished_trials() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], study_name="old")
    study.set_metric_names(["error", "speed"])
    add_trial(study, 0.1, [1.0, 5.0])
    add_trial(study, 0.2, None, TrialState.FAIL)
    add_trial(study, 0.3, [2.0, -INF])
    study.enqueue_trial({"x": 0.4})
    add_trial(study, 0.5, None, TrialState.RUNNING)
    task = Task.from_study(study)
    np.testing.assert_array_equal(task.X, [[0.1], [0.3]])
    np.testing.assert_array_equal(task.losses, [[1.0, -5.0], [2.0, INF]])
    assert (task.name, task.objective_names) == ("old", ("error", "speed"))
    assert Task.from_study(study, name="new").name == "new"


def test_the_name_of_a_study_is_no_study() -> None:
    with pytest.raises(ValueError, match=r"but is the string 'old'; load_tasks\(url, name\)"):
        Task.from_study("old")  # type: ignore[arg-type]


def test_a_maximised_objective_is_a_loss_with_the_other_sign(rng: np.random.Generator) -> None:
    tasks = []
    for direction, sign in (("minimize", 1.0), ("maximize", -1.0)):
        study = optuna.create_study(direction=direction)
        for i, value in enumerate([3.0, -1.0, INF, 0.5]):
            add_trial(study, i / 4, [sign * value])
        tasks.append(Task.from_study(study))
    np.testing.assert_array_equal(tasks[0].losses, tasks[1].losses)


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_pruned_trials_stand_behind_the_completed_ones(direction: str, sign: float) -> None:
    study = optuna.create_study(direction=direction)

    def prune(x: float, reports: dict[int, float]) -> None:
        reported = {step: sign * value for step, value in reports.items()}
        add_trial(study, x, None, TrialState.PRUNED, intermediate_values=reported)

    prune(0.1, {})
    prune(0.2, {1: 0.1, 5: 9.0})
    add_trial(study, 0.3, [sign * INF])
    prune(0.4, {7: 3.0})
    prune(0.5, {5: 4.0})
    prune(0.6, {5: NAN})
    add_trial(study, 0.7, [sign * 1.0])
    task = Task.from_study(study)
    best_first = order(task.losses, task.violation)
    assert [task.configuration(i)["x"] for i in best_first] == [0.7, 0.3, 0.4, 0.5, 0.2, 0.6, 0.1]


def test_violated_constraints_are_added_up() -> None:
    study = optuna.create_study()
    add_trial(study, 0.1, [0.0], constraints={"a": 2.0, "b": -5.0, "c": 0.5})
    add_trial(study, 0.2, [0.0], constraints={"a": 0.0, "b": -1.0})
    add_trial(study, 0.3, [0.0])
    assert Task.from_study(study).violation.tolist() == [2.5, 0.0, 0.0]


@pytest.mark.parametrize(
    ("seen", "space"),
    [
        ([UNIT, FloatDistribution(-1, 0.5)], FloatDistribution(-1, 1)),
        ([IntDistribution(2, 8, step=2), IntDistribution(3, 9)], IntDistribution(2, 9)),
        ([CHOICES("ab"), CHOICES("ca")], CHOICES("abc")),
        ([CHOICES((NAN, 1)), CHOICES((1, float("nan")))], CHOICES((NAN, 1))),
        ([IntDistribution(1, 9), UNIT], UNIT),
        ([LOG(1, 4), LOG(2, 9)], LOG(1, 9)),
        ([FloatDistribution(-1, 4), LOG(2, 9)], FloatDistribution(-1, 9)),
        ([DISTRIBUTIONS["fine grid of floats"], FloatDistribution(0, 2)], FloatDistribution(0, 2)),
    ],
    ids=str,
)
def test_a_parameter_whose_distribution_changed_has_the_values_of_all(
    seen: list[BaseDistribution], space: BaseDistribution
) -> None:
    study = optuna.create_study()
    for distribution in seen:
        (params,) = Space({"x": distribution}).decode(np.array([[0.5]]))
        study.add_trial(create_trial(value=0.0, params=params, distributions={"x": distribution}))
    assert Task.from_study(study).space == Space({"x": space})


def test_conditional_parameters_are_missing_where_they_were_not_used() -> None:
    study = optuna.create_study()
    for params in ({"b": 0.1}, {"a": 0.2, "b": 0.3}, {}):
        study.add_trial(
            create_trial(value=0.0, params=params, distributions=dict.fromkeys(params, UNIT))
        )
    task = Task.from_study(study)
    assert task.space.names == ("a", "b")
    np.testing.assert_array_equal(task.X, [[NAN, 0.1], [0.2, 0.3], [NAN, NAN]])
    assert task.configurations([0, 1, 2]) == [{"b": 0.1}, {"a": 0.2, "b": 0.3}, {}]


def test_a_study_without_anything_to_learn_from_is_refused() -> None:
    study = optuna.create_study(study_name="empty")
    with pytest.raises(ValueError, match=r"study 'empty' has no finished trial; leave it out"):
        Task.from_study(study)
    study.add_trial(create_trial(value=1.0))
    with pytest.raises(ValueError, match=r"'empty' has no finished trial with a parameter"):
        Task.from_study(study)
