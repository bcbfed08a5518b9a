"""Calls of a storage that is away are repeated; what was carried out is not done twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import TrialState
from studies import free_port, grpc_proxy, grpc_server

from metatpe.past.read import storage as storage_module
from metatpe.past.read.storage import StorageError, open_storage
from metatpe.study.access import PunctualProxy, storage_of
from metatpe.tuning.owner import owners_of, this_process
from metatpe.tuning.patience import Patience, PatientStorage, is_passing

ME = this_process("run")


class Said:
    """What a patience has said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def patience(self, seconds: float = 60.0) -> Patience:
        return Patience(seconds, self.lines.append, lambda: self.lines.append("back"))


@pytest.fixture
def said() -> Said:
    return Said()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A storage whose locks are noticed soon."""
    return f"sqlite:///{tmp_path / 'studies.db'}?timeout=0.05"


def open_study(url: str, patience: Patience) -> Study:
    storage = PatientStorage(url, patience, ME, create=True)
    return optuna.create_study(study_name="new", storage=storage, load_if_exists=True)


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Another process, so to speak, that has locked the file of the storage."""
    path = tmp_path / "studies.db"
    with sqlite3.connect(path, isolation_level=None, check_same_thread=False) as connection:
        yield connection


def test_a_locked_file_is_waited_for(url: str, locked: sqlite3.Connection, said: Said) -> None:
    study = open_study(url, said.patience())
    locked.execute("BEGIN EXCLUSIVE")
    threading.Timer(0.5, lambda: locked.execute("ROLLBACK")).start()
    trial = study.ask()
    study.tell(trial, 1.0)
    assert [t.value for t in study.trials] == [1.0]
    assert len(said.lines) == 2
    assert "cannot be used: database is locked." in said.lines[0]
    assert said.lines[1] == "back"


def test_patience_has_an_end(url: str, locked: sqlite3.Connection, said: Said) -> None:
    study = open_study(url, said.patience(0.5))
    trial = study.ask()
    locked.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StorageError, match=r"studies\.db.* cannot be used: database is locked\."):
        study.tell(trial, 1.0)
    locked.execute("ROLLBACK")
    study.tell(trial, 2.0)
    assert [t.value for t in study.trials] == [2.0]


def test_pauses_double_up_to_five_seconds_and_none_outlasts_the_patience(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.monotonic", lambda: 1000.0 + sum(pauses))
    monkeypatch.setattr("time.sleep", pauses.append)

    def away() -> None:
        raise ConnectionError

    with pytest.raises(StorageError):
        said.patience(30.0).insist("s", away)
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0])
    assert len(said.lines) == 1


def test_without_patience_nothing_is_said(
    url: str, locked: sqlite3.Connection, said: Said
) -> None:
    study = open_study(url, said.patience(0.0))
    locked.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StorageError, match="database is locked"):
        study.ask()
    assert said.lines == []


def test_a_proxy_that_is_back_is_used_at_once(tmp_path: Path, said: Said) -> None:
    pytest.importorskip("grpc")
    behind = f"sqlite:///{tmp_path / 'studies.db'}"
    port = free_port()
    open_storage(behind, create=True)
    with grpc_proxy(behind, port) as url:
        study = open_study(url, said.patience())
        trial = study.ask()
    again = threading.Event()

    def restart() -> None:
        with grpc_proxy(behind, port):
            again.wait()

    proxy = threading.Thread(target=restart)
    proxy.start()
    study.tell(trial, 1.0)
    assert [t.value for t in study.trials] == [1.0]
    again.set()
    proxy.join()
    assert said.lines[-1] == "back"


def test_a_proxy_that_falls_silent_is_waited_for(
    tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("grpc")
    monkeypatch.setattr(PunctualProxy, "seconds", 0.5)
    monkeypatch.setattr(storage_module, "_SECONDS", 1)
    behind = f"sqlite:///{tmp_path / 'studies.db'}"
    open_storage(behind, create=True)
    with grpc_server(behind, free_port()) as (url, server):
        study, hasty = open_study(url, said.patience()), open_study(url, Said().patience(0.0))
        trial = study.ask()
        # Its connections stay open, as those of a host that has lost its network.
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(StorageError, match="Deadline Exceeded"):
            hasty.ask()
        with pytest.raises(StorageError, match="no gRPC proxy answers"):
            hasty.ask()  # and does not wait for the deadline again
        threading.Timer(1.5, os.kill, (server.pid, signal.SIGCONT)).start()
        study.tell(trial, 1.0)
        assert [t.value for t in study.trials] == [1.0]
    assert "cannot be used: Deadline Exceeded." in said.lines[0]
    assert said.lines[-1] == "back"


def test_a_proxy_that_was_restarted_takes_parameters_of_trials_it_has_not_read(
    tmp_path: Path, said: Said
) -> None:
    pytest.importorskip("grpc")
    behind = f"sqlite:///{tmp_path / 'studies.db'}"
    port = free_port()
    open_storage(behind, create=True)
    with grpc_proxy(behind, port) as url:
        study = open_study(url, said.patience())
        study.sampler = RandomSampler()
        trial = study.ask()
        x = trial.suggest_float("x", 0, 1)
    with grpc_proxy(behind, port):
        assert 0 <= trial.suggest_float("y", 0, 1) <= 1
        assert set(study.trials[0].params) == {"x", "y"}
        assert study.trials[0].params["x"] == x


def test_a_parameter_of_a_trial_that_is_not_there_is_refused(url: str, said: Said) -> None:
    storage = storage_of(open_study(url, said.patience()))
    with pytest.raises(KeyError):
        storage.set_trial_param(1000, "x", 0.5, FloatDistribution(0, 1))


@pytest.mark.parametrize(
    "error",
    [KeyError("no trial"), ValueError("a value"), RuntimeError("a sampler"), TypeError("odd")],
)
def test_other_errors_are_raised_at_once(error: Exception, said: Said) -> None:
    def call() -> None:
        raise error

    assert not is_passing(error)
    with pytest.raises(type(error)):
        said.patience().insist("studies.db", call)
    assert said.lines == []


def test_a_study_that_is_not_there_is_not_waited_for(url: str, said: Said) -> None:
    open_study(url, said.patience())
    with pytest.raises(KeyError):
        optuna.load_study(study_name="other", storage=PatientStorage(url, said.patience()))


# Answers that are lost


class Forgetful:
    """A storage that does what it is told, but whose first answer to each call gets lost."""

    def __init__(self, behind: BaseStorage) -> None:
        self._behind = behind
        self._called: set[str] = set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = getattr(self._behind, name)(*args, **kwargs)
            if name not in self._called and name != "remove_session":
                self._called.add(name)
                raise ConnectionError("the answer is lost")
            return result

        return call


def forgetful(url: str, said: Said) -> Study:
    study = open_study(url, said.patience())
    storage = storage_of(study)
    assert isinstance(storage, PatientStorage)
    storage.behind = cast(BaseStorage, Forgetful(storage.behind))
    return study


def test_no_trial_is_begun_or_ended_twice(url: str, said: Said) -> None:
    study = forgetful(url, said)
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    trial.set_user_attr("a", 1)
    study.tell(trial, 1.0)
    (stored,) = study.trials
    assert (stored.state, stored.value, stored.user_attrs) == (TrialState.COMPLETE, 1.0, {"a": 1})
    assert owners_of(stored) == [ME]


def test_an_enqueued_trial_is_taken_once(url: str, said: Said) -> None:
    study = forgetful(url, said)
    study.enqueue_trial({"x": 0.5})
    trial = study.ask()
    assert trial.suggest_float("x", 0, 1) == 0.5
    (stored,) = study.trials
    assert stored.state == TrialState.RUNNING
    assert owners_of(stored) == [ME]


def test_an_enqueued_trial_that_another_has_taken_is_not_claimed(url: str, said: Said) -> None:
    study = open_study(url, said.patience())
    study.enqueue_trial({"x": 0.5})
    other = PatientStorage(url, said.patience(), this_process("other run"))
    number = optuna.load_study(study_name="new", storage=other).ask().number
    assert number == 0
    assert not storage_of(study).set_trial_state_values(1, TrialState.RUNNING)
    assert [owner.run for owner in owners_of(study.trials[0])] == ["other run"]
