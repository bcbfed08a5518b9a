"""A search space changes from study to study; the past goes on helping."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import Trial
from studies import (
    ONE,
    Distributions,
    Params,
    evaluate,
    in_space,
    new_study,
    past_study,
    random_sampler,
)

from metatpe import Task, TransferRecord, transfer_history
from samplers.five import META_TPE, Make, learning

UNIT = FloatDistribution(0.0, 1.0)
OLD: dict[str, BaseDistribution] = {
    "lr": FloatDistribution(1e-3, 1.0),
    "depth": IntDistribution(1, 8),
    "act": CategoricalDistribution(("relu", "tanh", 'it\'s "ü"')),
    "x": UNIT,
}
FIXED = {name: OLD[name] for name in ("lr", "x")}
CHANGES: dict[str, dict[str, BaseDistribution]] = {
    "added": {**OLD, "new": UNIT, "newer 'ü'": IntDistribution(1, 3)},
    "dropped": FIXED,
    "half differ": {"lr": OLD["lr"], "x": UNIT, "new": UNIT, "other": UNIT},
    "wider range": {**OLD, "x": FloatDistribution(-1.0, 2.0)},
    "narrower range": {**OLD, "x": FloatDistribution(0.0, 0.5)},
    "linear became log": {**OLD, "lr": FloatDistribution(1e-4, 1.0, log=True)},
    "other choices": {**OLD, "act": CategoricalDistribution(("gelu", 'it\'s "ü"', "relu"))},
    "int became float": {**OLD, "depth": FloatDistribution(0.5, 8.5)},
    "int became choices": {**OLD, "depth": CategoricalDistribution((2, 4, 8, 16))},
    "float became int": {**OLD, "x": IntDistribution(0, 1)},
}
changes = pytest.mark.parametrize("change", CHANGES)


def loss(params: Params) -> list[float]:
    numbers = [float(v) for v in params.values() if isinstance(v, int | float)]
    return [sum((v - 0.3) ** 2 for v in numbers)]


def past(space: Distributions = OLD) -> Task:
    return Task.from_study(past_study(loss, space=space, n=40, directions=ONE, name="past 'ü'"))


def run(make: Make, task: Task, space: Distributions, n: int) -> optuna.Study:
    study = new_study(make([task]), ONE)
    evaluate(study, n, space=space, losses=loss)
    return study


def starts(study: optuna.Study) -> list[Params]:
    numbers = [r.number for r in transfer_history(study) if r.origin == "warm_start"]
    return [study.trials[number].params for number in numbers]


def last_weighed(study: optuna.Study) -> TransferRecord:
    return [r for r in transfer_history(study) if r.weights][-1]


@changes
def test_a_past_study_starts_a_study_in_the_new_space(make: Make, change: str) -> None:
    task, space = past(), CHANGES[change]
    study = run(make, task, space, 7)
    assert all(in_space(t.params, space) for t in study.trials)
    shared = [name for name in OLD if space.get(name) == OLD[name]]
    stored = [{name: c[name] for name in shared} for c in task.configurations(range(len(task)))]
    assert starts(study)
    assert all({name: p[name] for name in shared} in stored for p in starts(study))


@changes
def test_a_past_study_keeps_its_weight_in_the_new_space(change: str) -> None:
    study = run(META_TPE, past(), CHANGES[change], 24)  # just long enough to be compared
    assert last_weighed(study).weights["past 'ü'"] > 0.0


@learning
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
def test_a_parameter_that_was_fixed_starts_with_its_value(
    make: Make, value: Any, now: BaseDistribution
) -> None:
    task = past(FIXED).with_defaults({"momentum": value})
    study = run(make, task, {**FIXED, "momentum": now}, 6)
    assert len(starts(study)) == 5
    assert {p["momentum"] for p in starts(study)} == {value}


def test_a_default_outside_of_the_new_range_leaves_the_rest_of_the_past_its_weight() -> None:
    task = past(FIXED).with_defaults({"momentum": 2.5})
    study = run(META_TPE, task, {**FIXED, "momentum": UNIT}, 24)
    assert last_weighed(study).weights[task.name] > 0.0


# Branches ----------------------------------------------------------------------------------------


def branched(trial: Trial) -> float:
    x = trial.suggest_float("x", 0, 1)
    if trial.suggest_categorical("optimizer", ["adam", "sgd"]) == "adam":
        return (x - 0.3) ** 2 + (trial.suggest_float("beta", 0, 1) - 0.5) ** 2
    return (x - 0.3) ** 2 + (trial.suggest_float("momentum", 0, 1) - 0.9) ** 2 + 0.1


def test_branches_in_the_past_and_in_the_new_study_fit_together(make: Make) -> None:
    old = optuna.create_study(study_name="old", sampler=random_sampler(0))
    old.optimize(branched, n_trials=40)
    study = optuna.create_study(sampler=make([old]))
    study.optimize(branched, n_trials=9)
    assert all(("beta" in t.params) != ("momentum" in t.params) for t in study.trials)
    assert all(params in [t.params for t in old.trials] for params in starts(study))
    assert len(starts(study)) == 5


def test_a_past_with_branches_keeps_its_weight() -> None:
    old = optuna.create_study(study_name="old", sampler=random_sampler(0))
    old.optimize(branched, n_trials=40)
    study = optuna.create_study(sampler=META_TPE([old]))
    study.optimize(branched, n_trials=25)
    assert last_weighed(study).weights["old"] > 0.0


@learning
def test_a_past_without_branches_starts_a_study_with_them(make: Make) -> None:
    flat = past_study(loss, space={"x": UNIT, "beta": UNIT}, n=30, directions=ONE, name="flat")
    filled = Task.from_study(flat).with_defaults({"optimizer": "adam"})
    study = optuna.create_study(sampler=make([filled]))
    study.optimize(branched, n_trials=7)
    assert [p["optimizer"] for p in starts(study)] == ["adam"] * 5
    assert "flat" in last_weighed(study).weights
