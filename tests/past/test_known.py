"""Past tasks in the space of a study: encoded once, and seen as densities and as models."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from helpers import task_of
from optuna.distributions import FloatDistribution

from metatpe import Space, Task
from metatpe.past.known import Past
from metatpe.past.task import Encoded
from metatpe.space import Floats

UNIT = FloatDistribution(0, 1)
SQUARE = Space({"x": UNIT, "y": UNIT})
NARROWER = Space({"x": FloatDistribution(0, 0.5), "y": UNIT})


def bowl(X: Floats) -> Floats:
    return ((X - 0.4) ** 2).sum(axis=1)


@pytest.fixture
def tasks(rng: np.random.Generator) -> list[Task]:
    return [
        task_of("whole", SQUARE, 20, bowl, rng),
        task_of("half", Space({"y": UNIT, "z": UNIT}), 20, bowl, rng),
        task_of("strange", Space({"a": UNIT, "z": UNIT}), 20, bowl, rng),
    ]


def test_each_task_is_encoded_once_whatever_is_asked_for(
    tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()
    encode_in = Task.encode_in

    def counted(task: Task, space: Space) -> Encoded:
        calls[task.name] += 1
        return encode_in(task, space)

    monkeypatch.setattr(Task, "encode_in", counted)
    past = Past(tasks, SQUARE)
    for gamma in (0.1, 0.2):
        past.densities(gamma)
    for names in ((), ("error",)):
        past.models(names).of([0, 1])
    assert calls == {"whole": 1, "half": 1, "strange": 1}


def test_a_task_that_has_nothing_in_common_with_the_space_is_left_out(tasks: list[Task]) -> None:
    past = Past(tasks, SQUARE)
    assert past.names == ("whole", "half")
    assert past.remarks == [
        "source 'strange' is skipped: it has no parameter in common with the study."
    ]
    assert len(past.densities(0.1).tasks) == 2


def test_what_was_lost_on_the_way_is_said(tasks: list[Task]) -> None:
    n_lost = np.count_nonzero(tasks[0].X[:, 0] > 0.5)
    outside = Task("outside", Space({"x": UNIT}), np.array([[0.7], [0.9]]), np.zeros((2, 1)))
    past = Past([*tasks[:2], outside], NARROWER)
    assert past.names == ("whole", "half")
    assert past.remarks == [
        f"source 'whole': outside of the study's space are {n_lost} of 20 values of 'x'.",
        "source 'outside' is skipped: all of it lies outside of the study's space.",
    ]


def test_without_tasks_there_is_nothing_to_say() -> None:
    past = Past([], SQUARE)
    assert (past.names, past.remarks, past.densities(0.1).tasks) == ((), [], [])


def test_densities_and_models_are_views_of_the_same_rows(tasks: list[Task]) -> None:
    past = Past(tasks, NARROWER)
    for m, (task, own) in enumerate(zip(tasks[:2], past.densities(0.1).tasks, strict=True)):
        encoded = task.encode_in(NARROWER)
        usable = encoded.X[encoded.is_usable]
        centers = np.vstack([own.good.centers, own.bad.centers])
        assert sorted(map(repr, centers)) == sorted(map(repr, usable))
        # A model has no use for an observation that has lost a value, a density has.
        features = past.models(()).encoder(encoded.X[encoded.is_whole])
        (model,) = past.models(()).of([m])[0]
        points = model.points / np.where(model.scale > 0, model.scale, 1.0)
        seen = features * (model.scale > 0)  # a column that the task lacks has no part
        np.testing.assert_allclose(
            points[np.lexsort(points.T)], seen[np.lexsort(seen.T)], atol=1e-12
        )


def test_a_view_is_made_once_until_another_one_is_asked_for(tasks: list[Task]) -> None:
    past = Past(tasks, SQUARE)
    first = past.densities(0.1)
    assert past.densities(0.1) is first
    assert past.densities(0.1, keeps_front=False) is not first
    assert past.densities(0.2) is not past.densities(0.1)
    models = past.models(("error",))
    assert past.models(("error",)) is models
    assert past.models(()) is not models


def test_a_task_with_an_unusable_observation_keeps_the_others() -> None:
    X = np.array([[0.7], [0.2], [0.3]])  # the first lies outside
    past = Past([Task("old", Space({"x": UNIT}), X, np.arange(3.0)[:, None])], NARROWER)
    assert past.names == ("old",)
    (densities,) = past.densities(0.1).tasks
    assert len(densities.good) + len(densities.bad) == 2
    assert past.remarks == [
        "source 'old': outside of the study's space are 1 of 3 values of 'x', "
        "1 of 3 observations as a whole."
    ]
