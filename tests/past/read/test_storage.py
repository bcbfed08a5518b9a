"""Past studies out of every kind of storage, and what is said of one that cannot be used."""

import contextlib
import sqlite3
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import optuna
import pytest
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from studies import SPACE, free_port, grpc_proxy, mariadb, past_study, postgresql

from metatpe import MetaTPESampler, load_tasks, transfer_history
from metatpe.past.read.storage import (
    StorageError,
    _kind_of_ending,
    _sentence,
    masked,
    open_storage,
)

NAMES = ['it\'s "quoted"', "täglich-тест-日本 %s"]


def fill(storage: str | BaseStorage) -> str | BaseStorage:
    """Store two studies whose names are not easy."""
    for seed, name in enumerate(NAMES):
        past_study(n=5, seed=seed, name=name, storage=storage)
    return storage


@pytest.fixture(scope="module")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('sqlite') / 'studies.db'}"
    fill(url)
    return url


@pytest.fixture(scope="module")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgresql(tmp_path_factory.mktemp("pg")) as url:
        yield url


# Reading


def tasks_are_those(storage: Any) -> bool:
    """Return whether a storage has the two studies of `fill`, value for value."""
    expected = [past_study(n=5, seed=seed, name=name) for seed, name in enumerate(NAMES)]
    for study, task in zip(expected, load_tasks(storage, NAMES), strict=True):
        assert task.name == study.study_name
        assert task.configurations(range(5)) == [
            {name: t.params[name] for name in sorted(SPACE)} for t in study.trials
        ]
        np.testing.assert_array_equal(task.losses, [t.values for t in study.trials])
    return True


def test_tasks_come_out_of_sqlite(sqlite_url: str) -> None:
    assert tasks_are_those(sqlite_url)
    assert tasks_are_those(sqlite_url.removeprefix("sqlite:///"))
    assert tasks_are_those(Path(sqlite_url.removeprefix("sqlite:///")))
    assert tasks_are_those(f"{sqlite_url.replace('sqlite:///', 'sqlite:///file:')}?uri=true")


def test_tasks_come_out_of_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "any name"
    fill(JournalStorage(JournalFileBackend(str(path))))
    assert tasks_are_those(path)
    assert tasks_are_those(JournalStorage(JournalFileBackend(str(path))))


def test_tasks_come_out_of_postgresql(postgres_url: str) -> None:
    fill(postgres_url)
    assert tasks_are_those(postgres_url)


def test_tasks_come_out_of_mariadb_and_a_study_there_goes_on_with_them(tmp_path: Path) -> None:
    with mariadb(tmp_path) as url:
        fill(url)
        assert tasks_are_those(url)
        sampler = MetaTPESampler(load_tasks(url), seed=0)
        study = optuna.create_study(
            storage=url, study_name="new", directions=["minimize"] * 2, sampler=sampler
        )
        for _ in range(8):
            study.tell(study.ask(SPACE), [1.0, 2.0])
        assert [r.origin for r in transfer_history(study)][:5] == ["warm_start"] * 5


def test_tasks_come_out_of_the_grpc_proxy(sqlite_url: str) -> None:
    pytest.importorskip("grpc")
    with grpc_proxy(sqlite_url) as proxy:
        assert tasks_are_those(proxy)


# What reading does not do


def test_processes_that_make_one_database_at_the_same_time_all_get_it(tmp_path: Path) -> None:
    url, together = f"sqlite:///{tmp_path / 'studies.db'}", threading.Barrier(4)

    def make(_: int) -> list[str]:
        together.wait()
        return optuna.get_all_study_names(open_storage(url, create=True))

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(make, range(4))) == [[]] * 4


class IntegrityError(Exception):
    """Called as the error of SQLAlchemy for a row that is there already."""


def caused(cause: Exception) -> Exception:
    error = RuntimeError("the storage failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "n_attempts"),
    [
        (RuntimeError("table studies already exists"), 3),
        (RuntimeError("no row in version_info"), 3),
        (IntegrityError("UNIQUE constraint failed"), 3),
        (caused(RuntimeError("table studies already exists")), 3),
        (RuntimeError("disk full"), 1),
        (caused(RuntimeError("disk full")), 1),
    ],
)
def test_tables_that_another_process_makes_are_waited_for_and_nothing_else_is(
    error: Exception, n_attempts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, pauses = f"sqlite:///{tmp_path / 'studies.db'}", list[float]()
    attempts = [error, error, optuna.storages.RDBStorage(url)]
    with (
        patch("metatpe.past.read.storage.RDBStorage", side_effect=attempts) as made,
        contextlib.suppress(StorageError),
    ):
        monkeypatch.setattr("time.sleep", pauses.append)
        open_storage(url, create=True)
    assert made.call_count == n_attempts
    assert pauses == [1.0] * (n_attempts - 1)


def test_tables_that_another_process_never_finishes_are_waited_for_five_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, pauses = RuntimeError("table studies already exists"), list[float]()
    monkeypatch.setattr("time.sleep", pauses.append)
    with (
        patch("metatpe.past.read.storage.RDBStorage", side_effect=error),
        pytest.raises(StorageError),
    ):
        open_storage(f"sqlite:///{tmp_path / 'studies.db'}", create=True)
    assert pauses == [1.0] * 5


def test_the_lock_of_a_killed_process_does_not_stop_a_journal_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    storage = open_storage("studies/journal.log", create=True)
    assert isinstance(storage, JournalStorage)
    backend = storage._backend
    assert isinstance(backend, JournalFileBackend)
    assert backend._lock.acquire()
    lock = Path("studies/journal.log.lock")
    assert lock.is_symlink()
    assert lock.exists()  # Optuna asks how old it is, and follows the link
    backend._lock.release()


@pytest.mark.parametrize("name", ["sqlite:///{}", "{}"])
def test_reading_makes_no_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    with pytest.raises(StorageError, match=r"there is no file .*studies\.db"):
        load_tasks(name.format(path))
    assert not path.exists()


def test_reading_makes_no_tables_in_the_database_of_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table people (name)")
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"other\.db is not an Optuna storage"):
        load_tasks(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_reading_makes_no_tables_in_an_empty_postgresql(postgres_url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    url = postgres_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create database empty")
    with pytest.raises(StorageError, match="is not an Optuna storage"):
        load_tasks(postgres_url.replace("/postgres?", "/empty?"))
    with psycopg.connect(url.replace("/postgres?", "/empty?")) as connection:
        tables = connection.execute("select * from pg_tables where schemaname = 'public'")
        assert tables.fetchall() == []


# What cannot be used


def sentence_of(storage: Any) -> str:
    """Return what is said of a storage that cannot be opened; a secret is nowhere in it."""
    with pytest.raises(StorageError) as caught:
        load_tasks(storage)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    whole = "".join(traceback.format_exception(caught.value))
    assert not any(part in text + whole.replace(__file__, "") for part in ("s3cr3t", "s3cr"))
    return text


def test_a_postgresql_that_is_down_is_said_without_the_password() -> None:
    pytest.importorskip("psycopg")
    url = "postgresql+psycopg://me:s3cr3t@127.0.0.1:{}/studies"
    text = sentence_of(url.format(free_port()))
    assert text.startswith("postgresql+psycopg://me:***@127.0.0.1:")
    assert "Connection refused" in text


def test_a_mysql_that_is_down_is_said_without_the_password() -> None:
    pytest.importorskip("pymysql")
    text = sentence_of(f"mysql+pymysql://me:s3cr3t@127.0.0.1:{free_port()}/studies")
    assert "Can't connect" in text


def test_a_proxy_that_is_down_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("grpc")
    monkeypatch.setattr("metatpe.past.read.storage._SECONDS", 0.2)
    port = free_port()
    assert sentence_of(f"grpc://localhost:{port}") == (
        f"no gRPC proxy answers at grpc://localhost:{port}."
    )
    assert "write grpc://host:port" in sentence_of("grpc://localhost")


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    monkeypatch.setitem(sys.modules, "pymysql", None)
    assert "needs pymysql" in sentence_of("mysql+pymysql://me:s3cr3t@host/x")
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    text = sentence_of("postgresql+psycopg2://me:s3cr3t@host/x")
    assert "needs psycopg2, which is not installed; or write postgresql+psycopg://" in text


def test_an_at_sign_in_a_password_is_to_be_escaped() -> None:
    for url in ("postgresql+psycopg://me:s3@cr3t@host/x", "mysql://me:s3@cr/3t@host/x"):
        assert "write an @ in the password as %40" in sentence_of(url)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("mysql+pymysql://me:s3cr3t@host/x", "mysql+pymysql://me:***@host/x"),
        ("postgresql://:s3cr3t@h:1/x?a=b", "postgresql://:***@h:1/x?a=b"),
        ("postgresql://h/x?user=me&password=s3cr3t&a=b", "postgresql://h/x?user=me&password=***&a=b"),
        ("a://me:s3:c@r/3t@host/x", "a://me:***@host/x"),
        ("sqlite:///me:you.db", "sqlite:///me:you.db"),
        ("grpc://me:s3cr3t@host:13000", "grpc://me:***@host:13000"),
        ("postgresql+psycopg:/me:s3cr3t@h/x", "postgresql+psycopg:/me:***@h/x"),
        ("postgresql:me:s3:c@r/3t@h/x", "postgresql:me:***@h/x"),
        ("postgresql//me:s3cr3t@h/x", "postgresql//me:***@h/x"),
        ("me:s3cr3t@host/x", "me:***@host/x"),
        ("C:\\runs\\me@home.db", "C:***@home.db"),  # rather one star too many
        ("at 12:30 by me@home", "at 12:30 by me@home"),
        ("postgresql+psycopg://me@host/x", "postgresql+psycopg://me@host/x"),
        ("mysql://me@host:3306/x", "mysql://me@host:3306/x"),
    ],
)  # fmt: skip
def test_passwords_are_masked(url: str, found: str) -> None:
    assert masked(url) == found


@pytest.mark.parametrize(
    "url", ["what://me:s3cr3t@host/x", "postgresql+psycopg://me:s3cr3t@host:port/x", "://", "."]
)
def test_what_is_no_storage_is_said(url: str) -> None:
    assert sentence_of(url)


@pytest.mark.parametrize("url", ["sqlite:new.db", "sqlite:/new.db", "sqlite://new.db"])
def test_a_url_with_too_few_slashes_is_no_new_file(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match=r"write a URL such as sqlite:///studies\.db"):
        open_storage(url, create=True)
    assert not list(tmp_path.iterdir())


def test_a_locked_sqlite_file_is_said(sqlite_url: str) -> None:
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as connection:
        connection.execute("begin exclusive")
        assert "cannot be used: database is locked" in sentence_of(sqlite_url + "?timeout=0.1")


def test_a_file_that_is_locked_only_later_is_said_too(sqlite_url: str) -> None:
    storage = open_storage(sqlite_url + "?timeout=0.1")
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as connection:
        connection.execute("begin exclusive")
        assert sentence_of(storage) == "the storage cannot be used: database is locked."


@pytest.mark.parametrize("name", ["sqlite:///{}", "{}"])
def test_a_damaged_sqlite_file_is_said(name: str, sqlite_url: str, tmp_path: Path) -> None:
    content = Path(sqlite_url.removeprefix("sqlite:///")).read_bytes()
    path = tmp_path / "cut.db"
    path.write_bytes(content[:5000])
    assert "malformed" in sentence_of(name.format(path))
    path.write_bytes(b"junk" * 1000)
    assert path.name in sentence_of(name.format(path))
    path.write_bytes(b"")
    assert "cut.db is empty: it has no studies" in sentence_of(name.format(path))


def test_a_damaged_journal_is_said(tmp_path: Path) -> None:
    path = tmp_path / "studies.log"
    fill(JournalStorage(JournalFileBackend(str(path))))
    lines = path.read_bytes().splitlines(keepends=True)
    for damaged in (b"{oops\n", b'{"op_code": 0}\n', b"[1]\n"):
        path.write_bytes(lines[0] + damaged + lines[1])
        assert "studies.log is not a journal of Optuna, or damaged" in sentence_of(path)


class Vanishing(InMemoryStorage):
    """A storage in which somebody deletes a study as soon as its trials are read."""

    def get_all_trials(self, study_id: int, *args: Any, **kwargs: Any) -> Any:
        self.delete_study(study_id)
        return super().get_all_trials(study_id, *args, **kwargs)


def test_a_study_that_is_deleted_under_way_is_said() -> None:
    storage = Vanishing()
    optuna.create_study(study_name="gone", storage=storage)
    assert sentence_of(storage) == "study 'gone' was deleted while it was read."


def test_a_secret_that_a_driver_repeats_is_hidden_there_too() -> None:
    error = RuntimeError("no user me:s3cret at host")
    sentence = _sentence("postgresql://me:s3cret@host/studies", error)
    assert "s3cret" not in sentence
    assert sentence.endswith("cannot be used: no user me:*** at host.")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("it failed."), "it failed"),
        (RuntimeError("it failed\nand much more"), "it failed"),
        (OSError(111, "refused"), "refused"),
        (caused(RuntimeError("disk full")), "disk full"),
        (RuntimeError(), "RuntimeError"),
    ],
    ids=repr,
)
def test_the_reason_is_the_first_line_of_what_the_driver_itself_says(
    error: Exception, reason: str
) -> None:
    # An empty password is no secret.
    sentence = _sentence("mysql://me:@host/x", error)
    assert sentence == f"mysql://me:***@host/x cannot be used: {reason}."


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("mysql://h/x", {"pool_pre_ping": True}),
        ("postgresql://h/x", {"pool_pre_ping": True, "connect_args": {"connect_timeout": 5}}),
        (
            "postgresql+psycopg://h/x?connect_timeout=7",
            {"pool_pre_ping": True, "connect_args": {"connect_timeout": 7}},
        ),
        ("sqlite:///:memory:", {}),
    ],
)
def test_a_server_is_waited_for_five_seconds_and_asked_whether_it_still_answers(
    url: str, options: dict[str, Any]
) -> None:
    with patch("metatpe.past.read.storage.RDBStorage") as made:
        open_storage(url)
    made.assert_called_once_with(url, options, skip_table_creation=True)


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        *[(suffix, "sqlite") for suffix in (".db", ".sqlite", ".sqlite3")],
        *[(suffix, "journal") for suffix in (".log", ".journal", ".jsonl")],
    ],
)
def test_the_suffix_of_a_new_file_says_what_it_will_be(suffix: str, kind: str) -> None:
    assert _kind_of_ending(Path(f"studies{suffix}")) == kind


def test_an_empty_file_becomes_a_storage_where_one_is_to_be_made(tmp_path: Path) -> None:
    path = tmp_path / "studies.log"
    path.touch()
    assert isinstance(open_storage(path, create=True), JournalStorage)
