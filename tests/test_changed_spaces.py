"""A search space changes from study to study; the past goes on helping."""

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
from optuna.trial import Trial
from studies import ONE, Distributions, Params, evaluate, in_space, new_study, past_study

from metatpe import MetaTPESampler, Space, Task, load_tasks, transfer_history

UNIT = FloatDistribution(0.0, 1.0)
OLD: dict[str, BaseDistribution] = {
    "lr": FloatDistribution(1e-3, 1.0),
    "depth": IntDistribution(1, 8),
    "act": CategoricalDistribution(("relu", "tanh", 'it\'s "ü"')),
    "x": UNIT,
}
CHANGES: dict[str, dict[str, BaseDistribution]] = {
    "added": {**OLD, "new": UNIT, "newer 'ü'": IntDistribution(1, 3)},
    "dropped": {name: OLD[name] for name in ("lr", "x")},
    "half differ": {"lr": OLD["lr"], "x": UNIT, "new": UNIT, "other": UNIT},
    "wider range": {**OLD, "x": FloatDistribution(-1.0, 2.0)},
    "narrower range": {**OLD, "x": FloatDistribution(0.0, 0.5)},
    "linear became log": {**OLD, "lr": FloatDistribution(1e-4, 1.0, log=True)},
    "other choices": {**OLD, "act": CategoricalDistribution(("gelu", 'it\'s "ü"', "relu"))},
    "int became float": {**OLD, "depth": FloatDistribution(0.5, 8.5)},
    "int became choices": {**OLD, "depth": CategoricalDistribution((2, 4, 8, 16))},
    "float became int": {**OLD, "x": IntDistribution(0, 1)},
}


def loss(params: Params) -> list[float]:
    numbers = [float(v) for v in params.values() if isinstance(v, int | float)]
    return [sum((v - 0.3) ** 2 for v in numbers)]


def past(space: Distributions = OLD) -> Task:
    return Task.from_study(past_study(loss, space=space, n=40, directions=ONE, name="past 'ü'"))


def run(task: Task, space: Distributions, n: int = 24) -> optuna.Study:
    """Return a study with this past that is just long enough to be compared with it."""
    study = new_study(MetaTPESampler([task], seed=0), ONE)
    evaluate(study, n, space=space, losses=loss)
    return study


def last_weight(study: optuna.Study, task: Task) -> float:
    return [r for r in transfer_history(study) if r.weights][-1].weights[task.name]


@pytest.mark.parametrize("change", CHANGES)
def test_a_past_study_still_helps(change: str) -> None:
    task, space = past(), CHANGES[change]
    study = run(task, space)
    assert all(t.state == optuna.trial.TrialState.COMPLETE for t in study.trials)
    assert all(in_space(t.params, space) for t in study.trials)
    assert any(r.origin == "warm_start" for r in transfer_history(study))
    assert last_weight(study, task) > 0.0


# A parameter that used to be fixed

FIXED = {name: OLD[name] for name in ("lr", "x")}


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
    task = past(FIXED).with_defaults({"momentum": value})
    assert all(c["momentum"] == value for c in task.configurations(range(40)))
    space = Space({**FIXED, "momentum": now})
    moved = task.to(space)
    expected = space.encode([{"momentum": value}])[0, -1]
    np.testing.assert_array_equal(moved.X[:, -1], np.full(40, expected))
    assert not np.isnan(expected)
    study = run(task, {**FIXED, "momentum": now})
    starts = [r.number for r in transfer_history(study) if r.origin == "warm_start"]
    assert all(study.trials[number].params["momentum"] == value for number in starts)
    assert len(starts) > 1
    assert last_weight(study, task) > 0.0


def test_a_default_outside_of_the_new_range_is_missing_there() -> None:
    task = past(FIXED).with_defaults({"momentum": 2.5})
    encoded = task.encode_in(Space({**FIXED, "momentum": UNIT}))
    assert np.isnan(encoded.X[:, -1]).all()
    assert encoded.lost["momentum"] == 40
    assert encoded.says.all()
    assert last_weight(run(task, {**FIXED, "momentum": UNIT}), task) > 0.0


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
    past_study(loss, space=FIXED, n=5, directions=ONE, name="old", storage=storage)
    (task,) = load_tasks(storage, defaults={"momentum": 0.9, "it's": "ü"})
    assert task.configuration(0)["momentum"] == 0.9
    assert task.configuration(0)["it's"] == "ü"


# Branches


def branched(trial: Trial) -> float:
    x = trial.suggest_float("x", 0, 1)
    if trial.suggest_categorical("optimizer", ["adam", "sgd"]) == "adam":
        return (x - 0.3) ** 2 + (trial.suggest_float("beta", 0, 1) - 0.5) ** 2
    return (x - 0.3) ** 2 + (trial.suggest_float("momentum", 0, 1) - 0.9) ** 2 + 0.1


def test_branches_in_the_past_and_in_the_new_study_fit_together() -> None:
    old = optuna.create_study(study_name="old", sampler=optuna.samplers.RandomSampler(seed=0))
    old.optimize(branched, n_trials=40)
    study = optuna.create_study(sampler=MetaTPESampler([old], seed=0))
    study.optimize(branched, n_trials=25)
    assert all(("beta" in t.params) != ("momentum" in t.params) for t in study.trials)
    assert last_weight(study, Task.from_study(old)) > 0.0


def test_a_past_without_branches_helps_a_study_with_them() -> None:
    task = past_study(loss, space={"x": UNIT, "beta": UNIT}, n=30, directions=ONE, name="flat")
    filled = Task.from_study(task).with_defaults({"optimizer": "adam"})
    study = optuna.create_study(sampler=MetaTPESampler([filled], seed=0))
    study.optimize(branched, n_trials=24)
    starts = [r.number for r in transfer_history(study) if r.origin == "warm_start"]
    assert {study.trials[number].params["optimizer"] for number in starts} == {"adam"}
    assert last_weight(study, filled) > 0.0
