"""`metatpe tune` when the storage goes away, processes die, or all trials fail."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import optuna
import pytest
from commands import Answer, ended, metatpe, running
from optuna.study import Study
from optuna.trial import TrialState
from studies import Server, free_port, grpc_proxy, postgresql_server

from metatpe.past.read.storage import masked, open_storage

# An evaluation says that it has begun, and ends when it is told to.
HELD = """
import os, time
from pathlib import Path
def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    Path(f"begun-{trial.number}").write_text(str(os.getpid()))
    while not Path("go").exists():
        time.sleep(0.02)
    Path(f"returned-{trial.number}").touch()
    return x
"""
SQLITE = "sqlite:///studies.db"


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with postgresql_server(tmp_path_factory.mktemp("pg")) as server:
        yield server


@pytest.fixture
def server(postgres: Server) -> Iterator[Server]:
    """A database without studies; a test that fails may have left it stopped."""
    postgres.start()
    yield postgres
    postgres.start()
    optuna.delete_study(study_name="new", storage=postgres.url)


def write(source: str = HELD) -> str:
    Path("train.py").write_text(source)
    return "train.py:objective"


def arguments(storage: str, *more: object) -> list[object]:
    return ["tune", write(), "--study", "new", "--storage", storage, *more]


def tune(storage: str, *more: object) -> Answer:
    Path("go").touch()
    return metatpe(*arguments(storage, *more))


def study_of(storage: str) -> Study:
    return optuna.load_study(study_name="new", storage=open_storage(storage))


def states(storage: str) -> list[str]:
    return [t.state.name for t in study_of(storage).trials]


def wait_for(condition: Callable[[], bool], command: subprocess.Popen[str]) -> None:
    while not condition():
        assert command.poll() is None, command.communicate()
        time.sleep(0.05)


def n_files(pattern: str) -> int:
    return len(list(Path().glob(pattern)))


def kept() -> list[Path]:
    return list(Path("state").rglob("*.json"))


# A storage that goes away


def test_a_database_that_restarts_during_an_evaluation_costs_nothing(server: Server) -> None:
    with running(*arguments(server.url, "--trials", 4, "--jobs", 2)) as command:
        wait_for(lambda: n_files("begun-*") == 2, command)
        server.stop()
        server.start()
        Path("go").touch()
        answer = ended(command)
    assert answer.code == 0, answer
    assert "Trying again" not in answer.out  # connections are checked before they are used
    assert states(server.url) == ["COMPLETE"] * 4


@pytest.mark.slow
def test_a_database_that_is_away_when_evaluations_end_is_waited_for(server: Server) -> None:
    with running(*arguments(server.url, "--trials", 4, "--jobs", 2)) as command:
        wait_for(lambda: n_files("begun-*") == 2, command)
        server.stop()
        Path("go").touch()
        wait_for(lambda: n_files("returned-*") == 2 and len(kept()) == 2, command)
        server.start()
        answer = ended(command)
    assert answer.code == 0, answer
    lines = [line for line in answer.out.splitlines() if "300 seconds; results are kept." in line]
    assert len(lines) == 1, answer.out
    assert lines[0].startswith(f"{masked(server.url)} cannot be used: ")
    assert answer.out.count("the storage answers again.") == 1
    assert states(server.url) == ["COMPLETE"] * 4
    assert kept() == []


@pytest.mark.slow
def test_what_a_database_does_not_take_in_time_is_stored_by_the_next_run(server: Server) -> None:
    impatient = ("--trials", 3, "--jobs", 2, "--storage-patience", 1)
    with running(*arguments(server.url, *impatient)) as command:
        wait_for(lambda: n_files("begun-*") == 2, command)
        server.stop()
        Path("go").touch()
        answer = ended(command)
    assert answer.code == 2, answer
    assert len(kept()) == 2
    said = answer.out + answer.err
    assert all(f"is in {path.absolute()}, for the next run to store." in said for path in kept())
    assert "Traceback" not in said
    server.start()
    before = study_of(server.url).trials
    assert [t.state.name for t in before] == ["RUNNING", "RUNNING"]
    answer = tune(server.url, "--trials", 3)
    assert answer.code == 0, answer
    assert "2 trials (0, 1): stored the result that was kept in a file." in answer.out
    trials = study_of(server.url).trials
    assert [t.state.name for t in trials] == ["COMPLETE"] * 3
    assert [t.value for t in trials[:2]] == [t.params["x"] for t in before]
    assert kept() == []


@pytest.mark.slow
def test_a_grpc_proxy_that_restarts_is_waited_for() -> None:
    pytest.importorskip("grpc")
    port = free_port()
    open_storage(SQLITE, create=True)
    with ExitStack() as proxies:
        address = proxies.enter_context(grpc_proxy(SQLITE, port))
        with running(*arguments(address, "--trials", 3)) as command:
            wait_for(lambda: n_files("begun-*") == 1, command)
            proxies.close()
            Path("go").touch()
            wait_for(lambda: bool(kept()), command)
            with grpc_proxy(SQLITE, port):
                answer = ended(command)
    assert answer.code == 0, answer
    assert "the storage answers again." in answer.out
    assert states(SQLITE).count("COMPLETE") == 3


@pytest.mark.slow
def test_a_locked_sqlite_file_is_waited_for() -> None:
    storage = f"{SQLITE}?timeout=0.1"  # that SQLite itself waits, in seconds
    with running(*arguments(storage, "--trials", 2)) as command:
        wait_for(lambda: n_files("begun-*") == 1, command)
        with sqlite3.connect("studies.db", isolation_level=None) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            Path("go").touch()
            wait_for(lambda: bool(kept()), command)
            time.sleep(0.5)  # a few attempts
            lock.execute("ROLLBACK")
        answer = ended(command)
    assert answer.code == 0, answer
    assert "database is locked. Trying again for 300 seconds; results are kept." in answer.out
    assert states(SQLITE) == ["COMPLETE"] * 2


@pytest.mark.slow
def test_the_trouble_of_one_worker_does_not_stop_the_others() -> None:
    # In one process no file can be opened any more, not even that of the storage.
    write(
        "import resource, time\n"
        "def objective(trial):\n"
        "    x = trial.suggest_float('x', 0, 1)\n"
        "    if trial.number == 0: resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "    time.sleep(0.2)\n"
        "    return x\n"
    )
    new = ("tune", "train.py:objective", "--study", "new", "--storage", SQLITE)
    answer = metatpe(*new, "--trials", 5, "--jobs", 2, "--storage-patience", 0.5)
    assert answer.code == 0, answer
    assert "studies.db cannot be used: " in answer.out
    assert states(SQLITE).count("COMPLETE") == 5
    assert "RUNNING" not in states(SQLITE)


# Processes that go away


def test_the_next_run_cleans_up_after_a_parent_and_workers_that_died_together() -> None:
    with running(*arguments(SQLITE, "--trials", 3, "--jobs", 2)) as command:
        wait_for(lambda: n_files("begun-*") == 2, command)
        os.killpg(command.pid, signal.SIGKILL)
        command.communicate()
    assert states(SQLITE) == ["RUNNING", "RUNNING"]
    answer = tune(SQLITE, "--trials", 3, "--json")
    assert answer.code == 0, answer
    assert (
        "2 trials (0, 1): the process has ended; marked as failed and enqueued again."
        in answer.err
    )
    counts = json.loads(answer.out)
    assert (counts["trials"], counts["complete"]) == (3, 3)
    trials = study_of(SQLITE).trials
    assert [t.state.name for t in trials] == ["FAIL", "FAIL", *["COMPLETE"] * 3]
    assert [t.params for t in trials[2:4]] == [t.params for t in trials[:2]]


@pytest.mark.slow
def test_a_parent_that_dies_alone_costs_no_result() -> None:
    with running(*arguments(SQLITE, "--trials", 3, "--jobs", 2)) as command:
        wait_for(lambda: n_files("begun-*") == 2, command)
        command.kill()
        command.wait()
        with running(*arguments(SQLITE, "--trials", 3)) as other:
            wait_for(lambda: n_files("begun-*") == 3, other)
            Path("go").touch()
            answer = ended(other)
        while "RUNNING" in states(SQLITE):
            time.sleep(0.1)
    assert answer.code == 0, answer
    assert "the process is gone" not in answer.out
    assert states(SQLITE) == ["COMPLETE"] * 3


@pytest.mark.slow
def test_two_runs_of_a_study_begin_as_many_trials_as_one() -> None:
    command = arguments("studies.log", "--trials", 24, "--jobs", 2)
    with running(*command) as one, running(*command) as two:
        wait_for(lambda: n_files("begun-*") == 4, one)  # both have a part in it
        Path("go").touch()
        answers = [ended(one), ended(two)]
    assert [answer.code for answer in answers] == [0, 0], answers
    assert states("studies.log") == ["COMPLETE"] * 24
    assert all("| best so far: " in answer.out for answer in answers)


@pytest.mark.slow
def test_runs_that_do_not_share_a_machine_withdraw_what_is_too_many() -> None:
    for name in ("one", "two"):
        Path(name).mkdir()
    command = arguments("studies.log", "--trials", 24, "--jobs", 2)
    # The lock that lets runs of one machine take turns is in the folder for temporary files.
    with running(*command, TMPDIR="one") as one, running(*command, TMPDIR="two") as two:
        wait_for(lambda: n_files("begun-*") == 4, one)
        Path("go").touch()
        answers = [ended(one), ended(two)]
    assert [answer.code for answer in answers] == [0, 0], answers
    trials = study_of("studies.log").trials
    counted = [t for t in trials if "metatpe:stopped" not in t.user_attrs]
    assert [t.state for t in counted] == [TrialState.COMPLETE] * 24
    assert {t.state for t in trials} <= {TrialState.COMPLETE, TrialState.FAIL}


# Hope


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("return x, x", "The number of the values 2 did not match the number of the objectives 1"),
        pytest.param("return y", "NameError: name 'y' is not def", marks=pytest.mark.slow),
    ],
)
def test_three_failures_of_a_kind_at_the_start_end_a_run_and_leave_no_study(
    extra: str, message: str
) -> None:
    source = 'def objective(trial):\n    x = trial.suggest_float("x", 0, 1)\n    '
    write(source + extra)
    new = ("tune", "train.py:objective", "--study", "new", "--storage", SQLITE)
    answer = metatpe(*new, "--trials", 50)
    assert answer.code == 2, answer
    assert f"metatpe: the first 3 trials failed in the same way: {message}" in answer.err
    assert answer.out.count("| fail: ") == 3
    assert optuna.get_all_study_names(SQLITE) == []
    write(source + "return x, x")
    two = ("--direction", "minimize", "--direction", "maximize")
    assert metatpe(*new, "--trials", 2, *two).code == 0


@pytest.mark.slow
def test_a_hopeless_command_shows_the_end_of_its_errors() -> None:
    what = ("--", sys.executable, "nowhere.py", "{x:float:0:1}")
    new = ("tune", "--study", "new", "--storage", SQLITE, "--jobs", 2, "--trials", 9)
    answer = metatpe(*new, *what)
    assert answer.code == 2, answer
    assert "in the same way: the command ended with exit code 2; correct this" in answer.err
    assert "nowhere.py': [Errno 2] No such file or directory" in answer.out
    assert optuna.get_all_study_names(SQLITE) == []
    answer = metatpe(*new, "--keep-going", *what)
    assert answer.code == 1
    assert states(SQLITE) == ["FAIL"] * 9


@pytest.mark.slow
def test_a_hopeless_run_of_an_old_study_leaves_the_study() -> None:
    assert tune(SQLITE, "--trials", 2).code == 0
    write("def objective(trial):\n    return trial.suggest_int('n', 1, 2) + None")
    new = ("tune", "train.py:objective", "--study", "new", "--storage", SQLITE)
    answer = metatpe(*new, "--trials", 50)
    assert answer.code == 2
    assert "in the same way: TypeError: unsupported operand" in answer.err
    assert states(SQLITE) == ["COMPLETE"] * 2 + ["FAIL"] * 3


def test_failures_of_several_kinds_do_not_end_a_run() -> None:
    write("def objective(trial):\n    raise ValueError(f'odd {trial.number}')")
    new = ("tune", "train.py:objective", "--study", "new", "--storage", SQLITE)
    assert metatpe(*new, "--trials", 5).code == 1
    assert states(SQLITE) == ["FAIL"] * 5


# Letters


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("utf-8", marks=pytest.mark.slow)])
def test_text_that_a_terminal_cannot_write_does_not_end_a_run(encoding: str) -> None:
    write(
        "print('importiert: ü', flush=True)\n"
        "def objective(trial):\n"
        "    x = trial.suggest_categorical('größe', ['klein', 'groß'])\n"
        "    print('\\udcff ü')\n"
        "    if trial.number == 0: raise ValueError('\\ud800 ü')\n"
        "    return 1.0\n"
    )
    new = ("tune", "train.py:objective", "--study", "prüfen", "--storage", SQLITE, "--trials", 2)
    strict = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    with running(*new, **strict) as command:
        answer = ended(command)
    assert answer.code == 0, answer
    assert "ValueError: \\ud800 " in answer.out
    assert ("größe" if encoding == "utf-8" else "gr\\xf6\\xdfe") in answer.out
    with running(*new, "--json", **strict) as command:
        answer = ended(command)
    (best,) = json.loads(answer.out)["front"]
    assert list(best["params"]) == ["größe"]
