"""Constraints, set by objectives in the new study and in past ones: infeasible is never good."""

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.study import Study
from optuna.trial import Trial
from studies import SQUARE, TWO, asked, frozen, new_study, settled, spread

from metatpe import MetaTPESampler, Task, transfer_history
from metatpe.study.trials import front_of
from metatpe.tpe.pareto import n_good, order, split


def objective(trial: Trial) -> tuple[float, float]:
    """Best at small x, which is forbidden below 0.6."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    trial.set_constraint("x is large", 0.6 - x)
    trial.set_constraint("y is small", y - 2.0)
    return x + y, x - y


def constrained(sampler: optuna.samplers.BaseSampler, n: int, name: str = "new") -> Study:
    study = optuna.create_study(study_name=name, directions=TWO, sampler=sampler)
    study.optimize(objective, n_trials=n)
    return study


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([0.0, 0.5, 2.0])),
        min_size=1,
        max_size=40,
    ),
    st.floats(0.01, 0.6),
)
def test_infeasible_observations_are_good_only_where_feasible_ones_are_too_few(
    rows: list[tuple[int, int, float]], gamma: float
) -> None:
    losses, violation = np.array(rows, dtype=float)[:, :2], np.array([row[2] for row in rows])
    is_good, n_feasible = split(losses, violation, gamma), int((violation == 0).sum())
    assert violation[order(losses, violation)[:n_feasible]].sum() == 0.0
    if n_feasible >= n_good(len(rows), gamma, n_feasible, 2):
        assert not violation[is_good].any()


def test_a_past_study_says_which_of_its_trials_are_infeasible() -> None:
    study = constrained(optuna.samplers.RandomSampler(seed=0), 30)
    task = Task.from_study(study)
    expected = [max(0.0, 0.6 - t.params["x"]) for t in study.trials]
    np.testing.assert_allclose(task.violation, expected)
    is_good = split(task.losses, task.violation, 0.1)
    assert is_good.sum() >= 3
    assert not task.violation[is_good].any()
    assert split(task.losses, np.zeros(30), 0.1)[task.violation > 0].any()  # they have the values


def test_how_good_the_values_of_infeasible_past_trials_are_changes_nothing() -> None:
    def suggested(values: list[float]) -> list[dict[str, float]]:
        past = new_study(settled(), TWO, name="past")
        for i, params in enumerate(spread(30)):
            is_feasible = i % 3 > 0
            past.add_trial(
                frozen(
                    params,
                    [float(i), float(-i % 7)] if is_feasible else values,
                    constraint=-1.0 if is_feasible else 1.0,
                )
            )
        history = [frozen(p, [float(i), -float(i)]) for i, p in enumerate(spread(8, 0.1))]
        return asked(new_study(settled(sources=[past]), TWO, trials=history))

    assert suggested([-100.0, -100.0]) == suggested([100.0, 100.0])


def test_the_past_starts_a_study_with_feasible_configurations() -> None:
    past = constrained(optuna.samplers.RandomSampler(seed=1), 40, "past")
    study = constrained(MetaTPESampler([past], seed=0), 30)
    starts = [r.number for r in transfer_history(study) if r.origin == "warm_start"]
    assert len(starts) == 5
    assert all(study.trials[number].params["x"] >= 0.6 for number in starts)
    later = [t.params["x"] for t in study.trials[5:]]
    assert np.mean([x >= 0.6 for x in later]) > 0.8


@pytest.mark.parametrize("directions", [["minimize"], ["minimize", "maximize"]])
def test_infeasible_trials_are_not_on_the_front(directions: list[str]) -> None:
    study = new_study(settled(), directions)
    best = [-1.0, 1.0][: len(directions)]
    study.add_trial(frozen({"x": 0.1}, best, space=SQUARE, constraint=0.1))
    assert front_of(study) == []
    for x in (0.2, 0.3):
        study.add_trial(frozen({"x": x}, [0.0] * len(directions), constraint=-1.0))
    study.add_trial(frozen({"x": 0.4}, [5.0, -5.0][: len(directions)]))
    assert [t.number for t in front_of(study)] == [1, 2]
    assert [t.number for t in front_of(study)] == [t.number for t in study.best_trials]
