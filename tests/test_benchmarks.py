"""The scripts of benchmarks/ load, and what two of them share does what it says."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import numpy as np
import optuna
import pytest

from metatpe import MetaTPESampler
from metatpe.bench import get_problem
from metatpe.samplers.guards import Rules

FOLDER = Path(__file__).parents[1] / "benchmarks"
Load = Callable[[str], ModuleType]
SCRIPTS = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Load a script as Python does, with its folder among those where modules are looked for."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")  # as the scripts do, for good
    before = set(sys.modules)

    def load_script(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
        return module

    yield load_script
    for name in {"_pasts", "_runs", *SCRIPTS} - before:
        sys.modules.pop(name, None)


@pytest.fixture
def runs(load: Load) -> ModuleType:
    """The module that guards.py and no_harm.py share."""
    return load("_runs")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_loads_and_has_a_main_function(name: str, load: Load) -> None:
    if name == "gp":
        pytest.importorskip("botorch", reason="the extra `gp` is not installed")
    assert callable(load(name).main)


# Arms -------------------------------------------------------------------------------------------


def test_every_rule_can_be_switched_off_by_its_name(runs: ModuleType) -> None:
    named = {name for arms in ("meta-tpe", "transfer") for name in runs.RULES[arms]}
    assert named == {field.name for field in fields(Rules)}
    for sampler, rules in runs.RULES.items():
        assert set(runs.GUARDS[sampler]) <= set(rules)


def test_names_of_several_rules_stand_for_one_arm_or_for_one_each(runs: ModuleType) -> None:
    assert runs.arms_of("transfer", ["guards"]) == {"guards": ("alternate", "densities", "ten")}
    assert set(runs.arms_of("meta-tpe", ["every"])["every"]) == {f.name for f in fields(Rules)}
    alone = runs.arms_of("meta-tpe", ["all"])
    assert alone["trust"] == ("trust",)
    assert "fewer" not in alone  # one worker never collides
    assert "fewer" in runs.arms_of("meta-tpe", ["all"], n_workers=2)


@pytest.mark.parametrize(("sampler", "name"), [("meta-tpe", "ten"), ("transfer", "turns")])
def test_a_rule_of_another_sampler_is_refused(sampler: str, name: str, runs: ModuleType) -> None:
    with pytest.raises(ValueError, match=f"{sampler} has no rule '{name}'; its rules: "):
        runs.arms_of(sampler, [name])


def test_a_rule_that_is_switched_off_changes_the_run_and_nothing_else_does(
    runs: ModuleType,
) -> None:
    case = runs.Case("meta-tpe", "ellipsoid4", "reverse", seed=0, n_evaluations=20)
    np.testing.assert_array_equal(runs.run(case), runs.run(case))
    without = runs.Case("meta-tpe", "ellipsoid4", "reverse", 0, ("restart",), n_evaluations=20)
    assert not np.array_equal(runs.run(case), runs.run(without))


# Pasts ------------------------------------------------------------------------------------------


def test_a_past_that_does_not_fit_is_what_its_name_says(runs: ModuleType) -> None:
    target = get_problem("ellipsoid4")
    for kind in ("noise", "reverse", "other"):
        tasks = runs.past_tasks(kind, "ellipsoid4", seed=1, n_tasks=2)
        assert [len(task) for task in tasks] == [100, 100]
        assert not np.array_equal(tasks[0].X, tasks[1].X)
        values = [target.evaluate(task.configuration(i), 1)[0] for task in tasks for i in range(9)]
        is_reversed = np.allclose(values, [-y for t in tasks for (y,) in t.losses[:9]])
        assert is_reversed == (kind == "reverse")


def test_a_past_that_fits_are_ellipsoids_with_a_shifted_centre(runs: ModuleType) -> None:
    tasks = runs.past_tasks("like", "ellipsoid4", seed=0, n_tasks=3)
    names = ["ellipsoid4-c0.25", "ellipsoid4-c0.5", "ellipsoid4-c1"]
    assert [task.name for task in tasks] == names


# Workers ----------------------------------------------------------------------------------------


def ask_twice(runs: ModuleType, *, fewer: bool) -> list[dict[str, object]]:
    """What two workers are given that ask at the same time, after some trials."""
    storage, sampler = runs.Simultaneous(), MetaTPESampler(seed=0, epsilon=0.0)
    sampler.rules = Rules(fewer=fewer)
    study = optuna.create_study(storage=storage, sampler=sampler)
    space = {f"x{j}": optuna.distributions.IntDistribution(0, 3) for j in range(2)}
    toy = get_problem("ellipsoid4")
    problem = type(toy)(**{**vars(toy), "space": space})
    for value in range(8):
        study.tell(study.ask(space), float(value))
    trials = runs._asked(study, storage, problem, 2)
    assert [trial.number for trial in trials] == [8, 9]
    return [trial.params for trial in trials]


def test_workers_that_ask_at_the_same_time_collide_unless_a_rule_parts_them(
    runs: ModuleType,
) -> None:
    first, second = ask_twice(runs, fewer=False)
    assert first == second
    first, second = ask_twice(runs, fewer=True)
    assert first != second


def test_simultaneous_runs_are_reproducible(runs: ModuleType) -> None:
    case = runs.Case("meta-tpe", "ellipsoid4", "like", seed=3, n_workers=3, n_evaluations=16)
    np.testing.assert_array_equal(runs.run(case), runs.run(case))
    assert len(runs.run(case)) == 16


# The table --------------------------------------------------------------------------------------


def guards(*arguments: str) -> str:
    command = [sys.executable, str(FOLDER / "guards.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_table_follows_from_the_file_that_was_written(tmp_path: Path) -> None:
    file = tmp_path / "guards.json"
    options = ("--suites", "ellipsoid4", "--seeds", "2-3", "--evaluations", "10", "--jobs", "1")
    table = guards(*options, "--kinds", "reverse", "--without", "guards", "--out", str(file))
    assert table == guards("--read", str(file))
    found = json.loads(file.read_text())
    assert found["seeds"] == [2, 3]
    with_rules, without = (np.array(r["means"]) for r in found["results"])
    difference = (with_rules - without).mean()
    assert f"{difference:+.4f}" in table


# development.py ---------------------------------------------------------------------------------


@pytest.mark.skipif(
    not (Path(os.environ.get("METATPE_DATA", "")) / "taskset" / "taskset.npz").is_file(),
    reason="METATPE_DATA names no folder with the file of TaskSet",
)
def test_development_scores_go_from_the_median_to_the_best(load: Load) -> None:
    development = load("development")
    scores = development.scores_of(FOLDER.parent / "docs" / "development", "taskset")
    assert len(scores["transfer"]) == 48
    for own in scores["transfer"].values():
        assert (np.diff(own) >= 0.0).all()
        assert 0.0 <= own[0] <= own[-1] <= 1.0
