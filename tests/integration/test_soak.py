"""`metatpe tune` for a while on a real storage, with workers killed and servers restarted.

Then parent and workers are killed together, and the study goes on. Nothing may be lost: every
result that the objective returned is in the storage, no trial is left running, no configuration of
the finite space was evaluated twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import optuna
import pytest
from commands import ended, running
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from studies import free_port, grpc_proxy, postgresql_server

from metatpe import transfer_history
from metatpe.past.read.storage import open_storage

OBJECTIVE = """
import json, os, random, time

def log(*entry):
    line = json.dumps([os.getpid(), time.time(), *entry]) + "\\n"
    file = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)

def objective(trial):
    i, j = trial.suggest_int("i", 0, 59), trial.suggest_int("j", 0, 59)
    c = trial.suggest_categorical("c", ["p", "q", "r", "s"])
    log("began", trial.number)
    time.sleep(random.uniform(0.1, 0.7))
    values = [(i - 20) ** 2 + j, (j - 40) ** 2 + i + (c == "p")]
    log("returned", trial.number, trial.params, values)
    return values
"""
TWO = ("--direction", "minimize", "--direction", "minimize")


@dataclass(frozen=True)
class Soak:
    """How long a study is tuned, by how many workers, and what happens meanwhile."""

    n_workers: int = 20
    seconds: float = 120.0
    seconds_between_kills: float = 5.0
    n_restarts: int = 2


LONG = Soak()
SHORT = Soak(n_workers=4, seconds=10.0, seconds_between_kills=2.0, n_restarts=1)
Restart = Callable[[], None]


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("train.py").write_text(OBJECTIVE)


@contextmanager
def database(folder: Path) -> Iterator[tuple[str, Restart]]:
    with postgresql_server(folder) as server:

        def restart() -> None:
            server.stop()
            time.sleep(1.0)
            server.start()

        yield server.url, restart


@contextmanager
def proxy(folder: Path) -> Iterator[tuple[str, Restart]]:
    """A proxy and the database behind it, which are restarted by turns."""
    pytest.importorskip("grpc")
    port = free_port()
    with database(folder) as (url, restart_database), ExitStack() as proxies:
        open_storage(url, create=True)
        address = proxies.enter_context(grpc_proxy(url, port))

        def restart_proxy() -> None:
            proxies.close()
            time.sleep(1.0)
            proxies.enter_context(grpc_proxy(url, port))

        restarts = cycle([restart_proxy, restart_database])
        yield address, lambda: next(restarts)()


@contextmanager
def journal(folder: Path) -> Iterator[tuple[str, Restart]]:
    yield str(folder / "studies.log"), lambda: None


@pytest.mark.parametrize(
    ("storage", "soak"),
    [
        pytest.param(database, SHORT, id="short-postgresql", marks=pytest.mark.slow),
        pytest.param(database, LONG, id="postgresql", marks=pytest.mark.slow),
        pytest.param(proxy, LONG, id="grpc", marks=pytest.mark.slow),
        pytest.param(journal, LONG, id="journal", marks=pytest.mark.slow),
    ],
)
def test_nothing_is_lost_when_workers_die_and_servers_restart(
    storage: Any, soak: Soak, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with storage(tmp_path_factory.mktemp("storage")) as (url, restart):
        command = ["tune", "train.py:objective", "--study", "new", "--storage", url, *TWO]
        command += ["--jobs", str(soak.n_workers)]
        with running(*command, "--trials", 100_000) as tuning:
            n_killed = disturb(tuning, soak, restart)
            os.killpg(tuning.pid, signal.SIGKILL)  # with its workers
            tuning.communicate()
        n_done = sum(t.state.is_finished() for t in study_of(url).trials)
        n_trials = n_done + 2 * soak.n_workers
        with running(*command, "--trials", n_trials, "--json") as resumed:
            answer = ended(resumed)
        assert answer.code == 0, answer
        print(f"{n_killed} workers killed; {Counter(t.state.name for t in study_of(url).trials)}")
        check(study_of(url), json.loads(answer.out), n_trials)


def study_of(url: str) -> Study:
    return optuna.load_study(study_name="new", storage=open_storage(url))


def disturb(tuning: subprocess.Popen[str], soak: Soak, restart: Restart) -> int:
    """Kill workers and restart the server until the time is over; return how many were killed."""
    while len({entry[0] for entry in log()}) < soak.n_workers:
        assert tuning.poll() is None, tuning.communicate()
        time.sleep(0.1)
    began, n_killed, n_restarts = time.monotonic(), 0, 0
    while (elapsed := time.monotonic() - began) < soak.seconds:
        assert tuning.poll() is None, tuning.communicate()
        if elapsed > soak.seconds * (n_restarts + 1) / (soak.n_restarts + 1):
            restart()
            n_restarts += 1
        n_killed += kill_a_worker(tuning.pid)
        time.sleep(soak.seconds_between_kills)
    assert n_restarts == soak.n_restarts
    assert n_killed
    return n_killed


def kill_a_worker(parent: int) -> bool:
    """Kill a worker, unless its objective returns at this very moment."""
    workers = [pid for pid in children(parent) if "spawn_main" in cmdline(pid)]
    for pid in random.sample(workers, len(workers)):
        os.kill(pid, signal.SIGSTOP)
        own = [entry for entry in log() if entry[0] == pid]
        is_kept = bool(list(Path("state").rglob(f"*-{pid}.json")))
        has_returned = own and own[-1][2] == "returned" and time.time() - own[-1][1] < 1.0
        if is_kept or not has_returned:
            os.kill(pid, signal.SIGKILL)
            return True
        os.kill(pid, signal.SIGCONT)
    return False


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cmdline(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def log() -> list[list[Any]]:
    path = Path("log")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def check(study: Study, printed: dict[str, Any], n_trials: int) -> None:
    trials = study.trials
    assert {t.state for t in trials} <= {TrialState.COMPLETE, TrialState.FAIL}
    complete = {t.number: t for t in trials if t.state == TrialState.COMPLETE}
    assert {n: (t.params, t.values) for n, t in complete.items()} == returned()
    failed = [t for t in trials if t.state == TrialState.FAIL]
    assert {t.number: t.user_attrs for t in failed if not why(t)} == {}
    counted = [t for t in trials if "metatpe:stopped" not in t.user_attrs]
    assert len(counted) == printed["trials"] == n_trials
    assert len(complete) == printed["complete"]
    evaluated = [tuple(sorted(t.params.items())) for t in complete.values()]
    assert len(set(evaluated)) == len(evaluated)
    # A trial that was enqueued again was not chosen by a sampler a second time.
    recorded = {record.number for record in transfer_history(study)}
    assert all(n in recorded or is_enqueued(t) for n, t in complete.items())
    assert not list(Path("state").rglob("*.json"))


def returned() -> dict[int, tuple[dict[str, Any], list[float]]]:
    """Return what the objective has returned, by the number of the trial."""
    return {entry[3]: (entry[4], entry[5]) for entry in log() if entry[2] == "returned"}


def why(trial: FrozenTrial) -> bool:
    """Return whether a failed trial says why: it was stopped, or its worker was killed."""
    error = trial.user_attrs.get("metatpe:error", "")
    return trial.user_attrs.get("metatpe:stopped") is True or "signal 9" in error


def is_enqueued(trial: FrozenTrial) -> bool:
    return "fixed_params" in trial.system_attrs
