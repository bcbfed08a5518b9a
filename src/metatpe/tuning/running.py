"""Runs one command in a group of processes of its own, and ends all of them.

The group ends in time when this process is interrupted, when it is killed, and when the command is
to be stopped.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO

_SECONDS = 5.0  # that a command has to end after it was told to
_UNTIL_NEXT_LOOK = 0.05  # seconds, at what a command has printed or whether it has ended


def run(
    arguments: list[str],
    environment: dict[str, str],
    out: IO[bytes],
    err: IO[bytes],
    is_stopped: Callable[[], bool] | None = None,
) -> int | None:
    """Run a command; return its exit code, None if it was stopped.

    Args:
        arguments: The command.
        environment: Its environment.
        out: Where it prints to.
        err: Where it prints errors to.
        is_stopped: Asked again and again while the command runs; True ends it.
    """
    process = None
    with _watcher() as watch:
        try:
            with _deferred_signals():  # until the command is known, nobody could end it
                process = subprocess.Popen(
                    arguments,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
                watch(process.pid)
            code = _wait(process, is_stopped)
        except BaseException:
            if process is not None:
                _end(process)
            raise
        if code is None:
            _end(process)
        return code


@contextlib.contextmanager
def _deferred_signals() -> Iterator[None]:
    """Handle signals to stop that arrive here at the end; only the main thread gets them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    # A child inherits which signals are ignored, so those stay as they are.
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in received:
            signal.raise_signal(late)


def _wait(process: subprocess.Popen[bytes], is_stopped: Callable[[], bool] | None) -> int | None:
    """Wait for a process; return its exit code, or None as soon as it is to be stopped."""
    if is_stopped is None:
        return process.wait()
    while True:
        try:
            return process.wait(_UNTIL_NEXT_LOOK)
        except subprocess.TimeoutExpired:
            if is_stopped():
                return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Tell a group of processes to end, and kill those that have not ended in time."""
    if not hasattr(os, "killpg"):
        process.terminate()
        return
    deadline = time.monotonic() + _SECONDS
    with contextlib.suppress(ProcessLookupError):  # as soon as none of them is left
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < deadline:
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(_UNTIL_NEXT_LOOK)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def _watcher() -> Iterator[Callable[[int], None]]:
    """Yield a function that takes a group of processes, which is killed if this process dies.

    A shell reads the number of the group from a pipe. When the pipe closes without another line,
    this process is no more: no child of ours inherits our end of the pipe.
    """
    if os.name != "posix":
        yield lambda group: None
        return
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", 'read -r group && { read -r line || kill -s KILL -- "-$group"; }'],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert watcher.stdin is not None
    pipe = watcher.stdin

    def write(line: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            pipe.write(f"{line}\n".encode())
            pipe.flush()

    try:
        yield write
    finally:
        write("end")
        watcher.communicate()


def ending(code: int | None) -> str:
    """Return how a process ended, in two words."""
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
