"""TaskSet: what a made-up file answers, what is said about a bad one, and the real one."""

import os
from pathlib import Path

import numpy as np
import pytest

from metatpe.bench import get_problem, problem_names
from metatpe.bench.families import taskset, taskset_curves
from metatpe.bench.past import random_configurations
from metatpe.space import Space

NAMES = problem_names("taskset")
SETTINGS = ("learning_rate", "beta1", "beta2", "epsilon", "l1", "l2", "linear_decay")
SETTINGS += ("exponential_decay",)
MIDDLE = {"learning_rate": 1e-3, "one_minus_beta1": 1e-2, "one_minus_beta2": 1e-3, "epsilon": 1e-4}
MIDDLE |= {"l1": 1e-4, "l2": 1e-4, "linear_decay": 1e-6, "exponential_decay": 1e-5}


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    """Three settings, which differ in the learning rate; the last diverges."""
    middle = [1e-3, 1 - 1e-2, 1 - 1e-3, 1e-4, 1e-4, 1e-4, 1e-6, 1e-5]
    configurations = np.array([[rate, *middle[1:]] for rate in (1e-4, 1e-2, 1.0)])
    curves = np.array([[3.0, 0.5], [3.0, 0.25], [3.0, np.nan]])
    found = {f"{name.removeprefix('taskset/')}/valid": curves for name in NAMES}
    return {"names": np.array(SETTINGS), "configurations": configurations, **found}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file is looked for, first."""
    monkeypatch.setenv("METATPE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "taskset").mkdir()
    return tmp_path / "taskset" / "taskset.npz"


def test_a_configuration_has_the_last_loss_of_the_nearest_setting(
    file: Path, arrays: dict[str, np.ndarray]
) -> None:
    np.savez(file, **arrays)
    problem = taskset.load(NAMES[0])
    assert problem.evaluate({**MIDDLE, "learning_rate": 2e-5}, 0) == (0.5,)
    assert problem.evaluate({**MIDDLE, "learning_rate": 5e-3}, 0) == (0.25,)


def test_a_training_that_diverged_has_the_worst_loss(
    file: Path, arrays: dict[str, np.ndarray]
) -> None:
    np.savez(file, **arrays)
    problem = taskset.load(NAMES[0])
    assert problem.evaluate({**MIDDLE, "learning_rate": 5.0}, 0) == (0.5,)
    assert (problem.best.tolist(), problem.worst.tolist()) == ([0.25], [0.5])


def test_a_missing_file_names_the_place_and_the_data(file: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"taskset\.npz of TaskSet is not in .*Metz"):
        taskset.load(NAMES[0])


@pytest.mark.parametrize("change", ["missing task", "out of range", "other length", "no archive"])
def test_a_bad_file_is_named(file: Path, arrays: dict[str, np.ndarray], change: str) -> None:
    if change == "missing task":
        del arrays[f"{NAMES[3].removeprefix('taskset/')}/valid"]
    if change == "out of range":
        arrays["configurations"][1, 0] = -1.0
    if change == "other length":
        arrays[f"{NAMES[3].removeprefix('taskset/')}/valid"] = np.zeros((2, 2))
    np.savez(file, **arrays)
    if change == "no archive":
        file.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="is not the file of TaskSet, download it again"):
        taskset.load(NAMES[0])


@pytest.mark.skipif(
    not (Path(os.environ.get("METATPE_DATA", "")) / "taskset" / "taskset.npz").is_file(),
    reason="METATPE_DATA names no folder with the file of TaskSet",
)
def test_every_problem_of_the_real_file_has_the_values_of_its_settings() -> None:
    space = Space(taskset.SPACE)
    for name in NAMES:
        problem, last = get_problem(name), taskset.curves(name)[:, -1]
        assert last.shape == (1000,)
        for params in random_configurations(problem, 5, (0, 1)):
            (loss,) = problem.evaluate(params, 0)
            assert loss in last or loss == problem.worst[0]
        assert space.names == tuple(problem.space)


def test_the_suite_with_curves_reports_the_losses_of_the_nearest_setting(
    file: Path, arrays: dict[str, np.ndarray]
) -> None:
    np.savez(file, **arrays)
    problem = taskset_curves.load(taskset_curves.NAMES[0])
    assert problem.curve is not None
    near = {**MIDDLE, "learning_rate": 5e-3}
    np.testing.assert_array_equal(problem.curve(near), [3.0, 0.25])
    assert problem.evaluate(near, 0) == (0.25,)
