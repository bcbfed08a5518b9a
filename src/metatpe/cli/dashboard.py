"""`metatpe dashboard`."""

from __future__ import annotations

import socket
import threading
import time
from typing import Annotated

import optuna
import typer
from optuna.exceptions import OptunaError
from optuna.storages import BaseStorage

from metatpe.cli.common import Storage, Terminal, need, plain_failures, progress_bar, say
from metatpe.past.read.storage import masked, open_storage, study_errors
from metatpe.past.read.studies import study_names
from metatpe.report.callback import Pace, publish

_SECONDS = 10.0  # between two looks at the studies, at least


def dashboard(
    storage: Storage,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the server; 0 uses any free port.")
    ] = 8080,
    host: Annotated[
        str,
        typer.Option(help="Address of the server; `0.0.0.0` allows other machines to connect."),
    ] = "localhost",
) -> None:
    """Open optuna-dashboard on a storage, with plots of the transfer.

    Every study that was tuned with past studies gets a note and plots of its progress, the weights
    of past studies and the importances. They are updated while the command runs. Ctrl-C ends it.
    Needs the extra `viz`.

    Example: `metatpe dashboard --storage sqlite:///studies.db --port 8080`
    """
    need("viz", "optuna_dashboard", "plotly")
    import optuna_dashboard

    with plain_failures():
        opened = open_storage(storage)
        free = _free_port(host, port)
        publish_all(opened, progress=True)
    threading.Thread(target=_keep_up, args=(opened,), daemon=True).start()
    address = f"http://{'localhost' if host == '0.0.0.0' else host}:{free}/"
    say(f"{masked(storage)} is at {address} (Ctrl-C ends it)")
    optuna_dashboard.run_server(opened, host=host, port=free)


def _free_port(host: str, port: int) -> int:
    """Return the port, a free one for 0.

    Raises:
        ValueError: It is taken, or the host is not this machine.
    """
    try:
        with socket.create_server((host, port)) as found:
            return int(found.getsockname()[1])
    except OSError as error:
        raise ValueError(f"cannot listen at {host}:{port}: {error.strerror or error}.") from None


def publish_all(storage: BaseStorage, *, progress: bool = False) -> None:
    """Update the plots of all studies that have records of a transfer."""
    names = study_names(storage, "*") if optuna.study.get_all_study_names(storage) else []
    with progress_bar(Terminal(stderr=True, quiet=not progress)) as bar:
        for name in bar.track(names, description="drawing"):
            with study_errors(storage, name):
                publish(optuna.load_study(study_name=name, storage=storage))


def _keep_up(storage: BaseStorage) -> None:
    """Do that again and again, at the pace of the callback."""
    pace = Pace()
    while True:
        time.sleep(max(pace.wait, _SECONDS))
        with pace.update():
            try:
                publish_all(storage)
            except (ValueError, OptunaError):
                continue  # storage unavailable or study deleted; try again at the next update
