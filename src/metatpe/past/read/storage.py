"""Opening Optuna storages, with one sentence for each way in which that can go wrong.

What a storage is called decides what it is:

    dialect://...          a database, as Optuna and SQLAlchemy write it: sqlite:///studies.db,
                           postgresql+psycopg://user:password@host/name, mysql+pymysql://...
    grpc://host:port       Optuna's gRPC proxy
    anything else          a file: a journal, or an SQLite database; told apart by how it begins,
                           a new one by its ending

A storage that is opened for reading is never created, nor are Optuna's tables in a database that
does not have them.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from metatpe.study.access import PunctualProxy, as_storage

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

StorageName = str | os.PathLike[str] | BaseStorage

_SECONDS = 5  # to wait for a server
_SQLITE = b"SQLite format 3\x00"
_ENDINGS = {"sqlite": (".db", ".sqlite", ".sqlite3"), "journal": (".log", ".journal", ".jsonl")}
_DIALECTS = "sqlite|postgres|postgresql|mysql|mariadb|mssql|oracle|grpc|redis"
_BEGINS_AS_URL = re.compile(rf"(?:{_DIALECTS})(?:\+\w+)?:")
_SCHEME = rf"(?:{_DIALECTS})(?:\+\w+)?:/*|\w[\w+.-]*:/+"
_PASSWORDS = (
    re.compile(r"(?<=://)([^/?#:]*:)(?P<secret>.*)(?=@)"),  # greedy: a password may hold an @
    # The same of a mistyped URL, as in postgresql:/user:password@host or user:password@host.
    re.compile(rf"((?:{_SCHEME})?[^\s:/@]*:)(?!//[^\s:/@]+@)(?P<secret>\S*)(?=@)"),
    re.compile(r"(?i)((?:password|passwd|pwd)=)(?P<secret>[^&#]*)"),
)


class StorageError(ValueError):
    """A storage that cannot be used; the message is one sentence and holds no password."""


def open_storage(storage: StorageName, *, create: bool = False) -> BaseStorage:
    """Return the storage with this name; a storage object is returned as it is.

    Args:
        storage: See the head of this module.
        create: Whether a file or tables that do not exist are made.

    Raises:
        StorageError: It is down, locked, damaged, not there, or lacks a driver.
    """
    if isinstance(storage, BaseStorage):
        return as_storage(storage)
    name = os.fspath(storage)
    with plain_errors(name):
        if name.startswith("grpc://"):
            return _open_proxy(name)
        if "://" in name:
            return _open_database(name, create=create)
        if masked(name) != name or _BEGINS_AS_URL.match(name):
            raise StorageError(_no_storage(name))  # a mistyped URL, not a file
        return _open_file(name, create=create)


@contextlib.contextmanager
def plain_errors(storage: StorageName) -> Iterator[None]:
    """Turn what storages raise into a `StorageError`; all else passes.

    The original is not chained: drivers put what they like into their messages.
    """
    name = "the storage" if isinstance(storage, BaseStorage) else os.fspath(storage)
    try:
        yield
    except ImportError as error:
        raise StorageError(_missing_driver(name, error)) from None
    except Exception as error:
        # By name: importing SQLAlchemy and gRPC only to ask takes as long as importing Optuna.
        packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
        is_known = isinstance(error, StorageInternalError | OSError | RuntimeError)
        if is_known or packages & {"sqlalchemy", "grpc"}:
            raise StorageError(_sentence(name, error)) from None
        raise


@contextlib.contextmanager
def study_errors(storage: StorageName, name: str, *, doing: str = "read") -> Iterator[None]:
    """The same while one study is used, which somebody may delete at that time."""
    with plain_errors(storage):
        try:
            yield
        except KeyError:
            if name in (s.study_name for s in open_storage(storage).get_all_studies()):
                raise
            raise StorageError(f"study {name!r} was deleted while it was {doing}.") from None


def masked(text: str) -> str:
    """Return a storage's name with stars for passwords.

    >>> masked("mysql+pymysql://me:secret@host/studies")
    'mysql+pymysql://me:***@host/studies'
    """
    for pattern in _PASSWORDS:
        text = pattern.sub(lambda found: found[1] + "***", text)
    return text


def _open_proxy(url: str) -> BaseStorage:
    try:
        host, port = urlsplit(url).hostname, urlsplit(url).port
    except ValueError:
        host = port = None
    if not host or port is None:
        raise StorageError(f"{masked(url)} is not a gRPC proxy; write grpc://host:port.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        proxy = PunctualProxy(host=host, port=port)
    with contextlib.suppress(ConnectionError):
        proxy.wait_server_ready(timeout=_SECONDS)
        if proxy.answers(_SECONDS):
            return proxy
    raise StorageError(f"no gRPC proxy answers at {masked(url)}.")


def _open_database(url: str, *, create: bool) -> BaseStorage:
    parsed = _parsed(url)
    if parsed.drivername.startswith("sqlite") and not create:
        _check_sqlite_file(parsed.database)
    options: dict[str, Any] = {}
    if not parsed.drivername.startswith("sqlite"):
        # A connection that broke while nobody used it, as when the server restarts, is replaced.
        options["pool_pre_ping"] = True
    if parsed.drivername in ("postgresql", "postgresql+psycopg", "postgresql+psycopg2"):
        # Without it a host that does not answer at all is waited for by the minute.
        seconds = int(str(parsed.query.get("connect_timeout", _SECONDS)))
        options["connect_args"] = {"connect_timeout": seconds}
    for _ in range(_SECONDS if create else 0):
        try:
            return as_storage(RDBStorage(url, options))
        except Exception as error:
            if not _is_made_by_another(error):
                raise
        time.sleep(1.0)
    return as_storage(RDBStorage(url, options, skip_table_creation=not create))


def _is_made_by_another(error: BaseException) -> bool:
    """Return whether another process makes Optuna's tables at the same time."""
    text = str(error)
    is_half_done = "already exists" in text or "version_info" in text
    if is_half_done or type(error).__name__ == "IntegrityError":
        return True
    return error.__cause__ is not None and _is_made_by_another(error.__cause__)


def _parsed(url: str) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import SQLAlchemyError

    try:
        parsed = make_url(url)
    except (ValueError, SQLAlchemyError):
        raise StorageError(_no_storage(url)) from None
    if parsed.drivername.startswith("sqlite") and parsed.host:
        # Two slashes: SQLAlchemy takes the file for a host.
        raise StorageError(_no_storage(url))
    if "@" in (parsed.host or "") + (parsed.database or "") and parsed.password:
        # A part of the password would be taken for the host, and be printed.
        raise StorageError(f"{masked(url)}: write an @ in the password as %40.")
    return parsed


def _no_storage(name: str) -> str:
    return (
        f"{masked(name)} is not a storage; write a URL such as sqlite:///studies.db, "
        "or the path of a journal."
    )


def _check_sqlite_file(path: str | None) -> None:
    if path and path != ":memory:" and not path.startswith("file:"):
        _first_bytes(Path(path))


def _open_file(name: str, *, create: bool) -> BaseStorage:
    path = Path(name)
    if create and not (path.exists() and path.stat().st_size):
        kind = _kind_of_ending(path)
    else:
        first = _first_bytes(path)
        kind = "sqlite" if first == _SQLITE else "journal"
        if kind == "journal" and not first.startswith(b"{"):
            raise StorageError(f"{name} is neither a journal of Optuna nor an SQLite database.")
    if kind == "sqlite":
        return _open_database(f"sqlite:///{name}", create=create)
    try:
        # Absolute, because the lock is a link to this path, which Optuna follows to see how old it
        # is. A relative link in another folder leads nowhere: a killed process keeps its lock.
        return JournalStorage(JournalFileBackend(str(path.absolute())))
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{name} is not a journal of Optuna, or damaged ({error}).") from None


def _kind_of_ending(path: Path) -> str:
    for kind, endings in _ENDINGS.items():
        if path.suffix in endings:
            return kind
    raise StorageError(
        f"there is no file {path}, and its suffix does not say what to create; "
        "use .db (SQLite) or .log (a journal), or give a URL such as sqlite:///studies.db."
    )


def _first_bytes(path: Path) -> bytes:
    """Return how a file begins; one that is not there or empty has no studies."""
    if not path.exists():
        raise StorageError(f"there is no file {path}.")
    with path.open("rb") as file:
        first = file.read(len(_SQLITE))
    if not first:
        raise StorageError(f"{path} is empty: it has no studies.")
    return first


def _missing_driver(name: str, error: ImportError) -> str:
    package = getattr(error.__cause__ or error, "name", None)
    if name.startswith("grpc://"):
        package = "grpcio and protobuf"
    instead = "; or write postgresql+psycopg:// for psycopg" if package == "psycopg2" else ""
    return f"{masked(name)} needs {package or 'a driver'}, which is not installed{instead}."


def _sentence(name: str, error: BaseException) -> str:
    reason = _reason(error)
    if "version_info" in reason:
        return f"{masked(name)} is not an Optuna storage: it has no tables for studies."
    secrets = [found["secret"] for p in _PASSWORDS for found in p.finditer(name)]
    for secret in filter(None, secrets):
        reason = reason.replace(secret, "***")
    return f"{masked(name)} cannot be used: {reason.rstrip('.')}."


def _reason(error: BaseException) -> str:
    """Return the first line of what the driver itself says."""
    while error.__cause__ is not None:
        error = error.__cause__
    details = getattr(error, "details", None)
    last = error.args[-1] if error.args else ""  # a driver may put a number before it
    text = details() if callable(details) else last if isinstance(last, str) else error
    return (str(text).strip() or type(error).__name__).splitlines()[0]
