"""A worker of `metatpe tune` as the parent sees it: a process, and what it said last."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess
from typing import Any

from metatpe.tuning.objective import Command, Function
from metatpe.tuning.running import ending
from metatpe.tuning.worker import Asked, Broken, Finished, Idle, work

_SECONDS = 10.0  # that a worker has to end after it was told to


class WorkerProcess:
    """A process that evaluates trials.

    Attributes:
        connection: The pipe to it.
        number: The trial that it evaluates, if any.
        is_idle: Whether it waits for permission to ask for a trial.
        idle_since: When it last began to wait for it.
        is_dismissed: Whether it was told that there is nothing left to do.
        trouble: Why it gave up, if it did.
    """

    def __init__(self, objective: Function | Command) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.connection, theirs = spawn.Pipe()
        self.process: BaseProcess = spawn.Process(target=work, args=(theirs, objective))
        self.number: int | None = None
        self.is_idle = False
        self.idle_since = 0.0
        self.is_dismissed = False
        self.trouble: str | None = None
        with handling(signal.SIGINT, signal.SIG_IGN):  # not for it: the parent ends it
            self.process.start()
        theirs.close()

    def wait_until_ready(self) -> None:
        """Wait until the objective was imported.

        Raises:
            ValueError: It does not import.
        """
        try:
            message = self.connection.recv()
        except EOFError:
            self.process.join()
            raise ValueError(
                f"importing the objective ended the process with {ending(self.process.exitcode)}."
            ) from None
        if isinstance(message, Broken):
            raise ValueError(message.text)

    def receive(self) -> Any:
        """Return its next message, and take note of what it is doing.

        Raises:
            EOFError: It has ended.
        """
        try:
            message = self.connection.recv()
        except OSError:
            raise EOFError from None
        match message:
            case Idle():
                self.is_idle, self.number = True, None
                self.idle_since = time.monotonic()
            case Asked(number):
                self.number = number
            case Finished():
                self.number = None
            case Broken(text):
                self.trouble = text
        return message

    def send(self, message: Any) -> None:
        """Tell it something; that it has died meanwhile is seen later."""
        with contextlib.suppress(OSError):
            self.connection.send(message)

    def answer(self, yes: bool) -> None:
        """Answer whether it may go on."""
        self.is_idle = False
        self.send(yes)

    def dismiss(self) -> None:
        """Tell an idle worker that there is nothing left to do."""
        self.is_dismissed = True
        self.answer(False)


def end_workers(workers: Sequence[WorkerProcess]) -> None:
    """End processes, at once those that do not end by themselves."""
    for worker in workers:
        worker.process.terminate()
    deadline = time.monotonic() + _SECONDS
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


@contextlib.contextmanager
def handling(number: int, handler: Any) -> Iterator[None]:
    """Handle a signal in another way; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
