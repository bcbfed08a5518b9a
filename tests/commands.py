"""Runs the command `metatpe`, within the process of the tests or beside it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from typer.testing import CliRunner

from metatpe.cli import app


class Answer(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


def metatpe(*arguments: object) -> Answer:
    """Run a command."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Answer(result.exit_code, result.stdout, result.stderr)


def refusal(*arguments: object) -> str:
    """Return the error of a command that gives up: one sentence, the code 2, no table."""
    answer = metatpe(*arguments)
    assert answer.code == 2, answer
    sentence = answer.err.strip().splitlines()[-1]
    assert sentence.startswith("metatpe: ")
    return sentence.removeprefix("metatpe: ")


def start_metatpe(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start a command in a process, and a group of processes, of its own."""
    code = "import sys; from metatpe.cli import main; sys.argv[0] = 'metatpe'; main()"
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
        start_new_session=True,
    )


@contextlib.contextmanager
def running(*arguments: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command beside the test, and end it with the test."""
    command = start_metatpe(*arguments, **environment)
    try:
        yield command
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGKILL)
        command.communicate()


def ended(command: subprocess.Popen[str]) -> Answer:
    """Wait for a command; return its exit code and what it printed."""
    out, err = command.communicate(timeout=120)
    return Answer(command.returncode, out, err)
