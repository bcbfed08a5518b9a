"""Runs the command `metatpe` within the process of the tests."""

from __future__ import annotations

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
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Answer(result.exit_code, result.stdout, result.stderr)


def refusal(*arguments: object) -> str:
    """Return the error of a command that gives up: one sentence, the code 2, no table."""
    answer = metatpe(*arguments)
    assert answer.code == 2, answer
    sentence = answer.err.strip().splitlines()[-1]
    assert sentence.startswith("metatpe: ")
    return sentence.removeprefix("metatpe: ")
