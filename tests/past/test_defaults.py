"""Parameters that past studies did not have, and the values that they had fixed them to."""

from __future__ import annotations

from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from studies import ONE, past_study

from metatpe import Space, Task, load_tasks

UNIT = FloatDistribution(0.0, 1.0)
SPACE: dict[str, BaseDistribution] = {"lr": FloatDistribution(1e-3, 1.0), "x": UNIT}


def past(n: int = 40) -> Task:
    return Task.from_study(past_study(space=SPACE, n=n, directions=ONE, name="past"))


@pytest.mark.parametrize(
    ("value", "now"),
    [
        (0.9, FloatDistribution(0.0, 1.0)),
        (0.9, FloatDistribution(1e-3, 1.0, log=True)),
        (3, IntDistribution(1, 8)),
        (3, FloatDistribution(0.0, 8.0)),
        (16, CategoricalDistribution((16, 32))),
        ('it\'s "ü"', CategoricalDistribution(("a", 'it\'s "ü"'))),
        (True, CategoricalDistribution((False, True))),
        (None, CategoricalDistribution((None, "a"))),
    ],
    ids=str,
)
def test_a_parameter_that_was_fixed_has_its_value_in_the_new_space(
    value: Any, now: BaseDistribution
) -> None:
    task = past().with_defaults({"momentum": value})
    assert all(c["momentum"] == value for c in task.configurations(range(40)))
    space = Space({**SPACE, "momentum": now})
    expected = space.encode([{"momentum": value}])[0, -1]
    np.testing.assert_array_equal(task.to(space).X[:, -1], np.full(40, expected))
    assert not np.isnan(expected)


def test_a_default_outside_of_the_new_range_is_missing_there() -> None:
    task = past().with_defaults({"momentum": 2.5})
    encoded = task.encode_in(Space({**SPACE, "momentum": UNIT}))
    assert np.isnan(encoded.X[:, -1]).all()
    assert encoded.lost["momentum"] == 40
    assert encoded.is_usable.all()


def test_only_observations_that_lack_a_parameter_get_its_default() -> None:
    study = optuna.create_study(study_name="past")
    for params in ({"x": 0.1}, {"x": 0.2, "y": 0.3}):
        distributions = dict.fromkeys(params, UNIT)
        study.add_trial(optuna.create_trial(value=0.0, params=params, distributions=distributions))
    task = Task.from_study(study)
    filled = task.with_defaults({"y": 0.5, "x": 0.9})
    assert filled.configurations([0, 1]) == [{"x": 0.1, "y": 0.5}, {"x": 0.2, "y": 0.3}]
    assert filled.space == task.space
    wider = task.with_defaults({"y": 5})
    assert wider.space.distributions["y"] == FloatDistribution(0, 5)
    assert wider.configurations([0, 1]) == [{"x": 0.1, "y": 5.0}, {"x": 0.2, "y": 0.3}]


@pytest.mark.parametrize(
    ("own", "value", "found"),
    [
        (CategoricalDistribution("ab"), "c", CategoricalDistribution("abc")),
        (CategoricalDistribution("ab"), 3, CategoricalDistribution(("a", "b", 3))),
        (IntDistribution(2, 8, step=2), 3, IntDistribution(2, 8)),
        (FloatDistribution(0.1, 1, log=True), 0, FloatDistribution(0, 1)),
        (IntDistribution(2, 8), 0.5, None),
        (UNIT, "high", None),
    ],
    ids=str,
)
def test_a_default_widens_what_a_study_had(
    own: BaseDistribution, value: Any, found: BaseDistribution | None
) -> None:
    space = Space({"x": UNIT, "y": own})
    X = space.columns.snap(np.array([[0.5, np.nan], [0.5, 0.5]]))
    task = Task("past", space, X, np.zeros((2, 1)))
    if found is None:
        with pytest.raises(ValueError, match=r"the default .* of 'y' does not fit into"):
            task.with_defaults({"y": value})
    else:
        filled = task.with_defaults({"y": value})
        assert filled.space.distributions["y"] == found
        assert filled.configuration(0)["y"] == value
        assert filled.configuration(1) == task.configuration(1)


def test_defaults_of_nothing_change_nothing() -> None:
    task = past()
    same = task.with_defaults({})
    np.testing.assert_array_equal(same.X, task.X)
    np.testing.assert_array_equal(same.numbers, task.numbers)


def test_defaults_are_given_while_loading() -> None:
    storage = optuna.storages.InMemoryStorage()
    past_study(space=SPACE, n=5, directions=ONE, name="old", storage=storage)
    (task,) = load_tasks(storage, defaults={"momentum": 0.9, "it's": "ü"})
    assert task.configuration(0)["momentum"] == 0.9
    assert task.configuration(0)["it's"] == "ü"
