from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution

from metatpe import Space, Task
from metatpe.past.curves import curves_in


@pytest.fixture
def study() -> optuna.Study:
    study = optuna.create_study(direction="maximize")

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(3):
            trial.report(float("nan") if step == 1 else x * step, 10 * step)
        if trial.number == 1:
            raise optuna.TrialPruned
        return x

    study.optimize(objective, n_trials=4)
    return study


def test_a_task_keeps_the_intermediate_losses_of_its_trials(study: optuna.Study) -> None:
    task = Task.from_study(study)
    curves = curves_in(task.curves)
    assert len(curves) == 4
    for row, curve in curves.items():
        x = task.configuration(row)["x"]
        assert list(curve) == [0, 10, 20]
        assert curve[20] == [-2.0 * x]
        assert np.isnan(curve[10][0])


def test_a_saved_task_has_its_curves_and_one_without_is_as_before(
    study: optuna.Study, tmp_path: Path
) -> None:
    task = Task.from_study(study)
    task.save(tmp_path / "with")
    np.testing.assert_array_equal(Task.load(tmp_path / "with").curves, task.curves)
    plain = Task(task.name, task.space, task.X, task.losses)
    plain.save(tmp_path / "without")
    assert b"curves" not in (tmp_path / "without").read_bytes()
    assert len(Task.load(tmp_path / "without").curves) == 0


def test_curves_go_with_their_observations_into_another_space() -> None:
    wide, narrow = FloatDistribution(0.0, 1.0), FloatDistribution(0.4, 1.0)
    curves = [[row, step, 10.0 * row + step] for row in range(3) for step in range(2)]
    task = Task("t", Space({"x": wide}), [[0.0], [0.5], [1.0]], np.ones((3, 1)), curves=curves)
    moved = task.to(Space({"x": narrow}))
    assert len(moved) == 2
    assert curves_in(moved.curves) == {0: {0: [10.0], 1: [11.0]}, 1: {0: [20.0], 1: [21.0]}}


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ([[0.0, 1.0]], "columns row, step and 1 losses"),
        ([0.0, 1.0, 2.0], "columns row, step and 1 losses"),
        *(
            ([[0.0, 0.0, 1.0], report], "rows from 0 to 1 and whole steps")
            for report in ([2.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [0.5, 0.0, 1.0], [1.0, 0.5, 1.0])
        ),
    ],
)
def test_curves_that_do_not_fit_are_refused(curves: list[Any], message: str) -> None:
    space = Space({"x": FloatDistribution(0.0, 1.0)})
    with pytest.raises(ValueError, match=message):
        Task("t", space, [[0.5], [0.6]], [[1.0], [2.0]], curves=curves)


def test_of_a_report_only_the_row_and_the_step_must_be_whole_and_steps_may_be_negative() -> None:
    space = Space({"x": FloatDistribution(0.0, 1.0)})
    curves = [[0.0, -2.0, 0.5], [1.0, 7.0, np.inf]]
    task = Task("t", space, [[0.5], [0.6]], [[1.0], [2.0]], curves=curves)
    assert curves_in(task.curves) == {0: {-2: [0.5]}, 1: {7: [np.inf]}}
