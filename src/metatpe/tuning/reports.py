"""Intermediate values that a command prints, read while it runs.

    epoch {step} loss {value}              the value of an epoch
    {step}/{}: error {value} cost {value}  two objectives; {} stands for any text
    loss {value}                           without {step}, lines are counted from 0

A pattern is looked for anywhere in a line, in lower and upper case. A space of it matches one or
more, and {{ and }} are braces.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from optuna.trial import Trial

from metatpe.pruning.pruner import record_values, should_stop

_FIELD = re.compile(r"\{\{|\}\}|\{(\w*)\}|[{}]")
# The text behind a number must not continue it: 0.5 is not found in 0.5x.
_VALUE = r"([-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf(?:inity)?))(?!\.?\w)"
_STEP = r"(?P<step>\d{1,9})(?!\w)"  # databases store no larger steps
_MAX_LINE = 4000  # characters that are compared; a pattern with several {} is slow on longer ones
_MAX_READ = 1_000_000  # bytes at a time
_MAX_COMPARED = 200  # lines, of which the one most like the pattern is shown
_MAX_SHOWN = 100  # characters of it
_EXAMPLE = "write for example --report 'epoch {step} loss {value}'"


@dataclass(frozen=True)
class ReportPattern:
    """Finds a step and one value per objective in a line."""

    text: str
    n_values: int
    expression: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> ReportPattern:
        """Read a pattern.

        Raises:
            ValueError: It has no {value}, or a field that is not known.
        """
        pieces, fields, end = [], [], 0
        for match in _FIELD.finditer(text):
            pieces.append(_literal(text[end : match.start()]))
            end = match.end()
            if match[0] in ("{{", "}}"):
                pieces.append(re.escape(match[0][0]))
                continue
            if match[1] is None:
                raise ValueError(
                    f"--report {text!r}: a {match[0]!r} is not part of a field; write "
                    f"{match[0] * 2} if a brace is meant."
                )
            pieces.append(_field(text, match[1]))
            fields.append(match[1])
        pieces.append(_literal(text[end:]))
        _check(text, fields)
        # "loss" is not found in "val_loss".
        begin = r"(?<!\w)" if re.match(r"\w|\{\w", text) else ""
        expression = re.compile(begin + "".join(pieces), re.IGNORECASE)
        return cls(text, fields.count("value"), expression)

    def find(self, line: str) -> tuple[int | None, list[float]] | None:
        """Return the step (None if the pattern has none) and the values in a line, if any."""
        match = self.expression.search(line[:_MAX_LINE])
        if match is None:
            return None
        named = match.groupdict().get("step")
        position = self.expression.groupindex.get("step")
        values = [float(v) for i, v in enumerate(match.groups(), 1) if i != position]
        return (None if named is None else int(named)), values


def _literal(text: str) -> str:
    return r"\s+".join(re.escape(part) for part in re.split(r"\s+", text))


def _field(text: str, name: str) -> str:
    found = {"step": _STEP, "value": _VALUE, "": ".*?"}.get(name)
    if found is None:
        raise ValueError(
            f"--report {text!r}: {{{name}}} is not known, only {{step}}, {{value}} and {{}} for "
            f"any text; {_EXAMPLE}."
        )
    return found


def _check(text: str, fields: list[str]) -> None:
    if "value" not in fields:
        raise ValueError(f"--report {text!r}: there is no {{value}}; {_EXAMPLE}.")
    if fields.count("step") > 1:
        raise ValueError(f"--report {text!r}: {{step}} appears twice; write {{}} for any text.")
    if touching := re.search(r"\{\w+\}\{\w+\}", text):
        raise ValueError(
            f"--report {text!r}: there must be text between the fields of {touching[0]}."
        )


class Reports:
    """Reports what a command prints to its trial.

    Args:
        pattern: Where the values are in a line.
        trial: The trial.
        path: The file that the command writes to.
    """

    def __init__(self, pattern: ReportPattern, trial: Trial, path: Path) -> None:
        self._pattern = pattern
        self._trial = trial
        self._lines = _Lines(path)
        self._n_found = 0
        self._steps: set[int] = set()

    def is_stopped(self) -> bool:
        """Report new values; return whether the pruner stops the trial at one of them."""
        return any(should_stop(self._trial) for _ in self._report(self._lines.complete()))

    def finish(self) -> None:
        """Report what is left of a command that has ended; it is too late to stop it."""
        for _ in self._report(self._lines.all()):
            pass

    def _report(self, lines: Iterator[str]) -> Iterator[int]:
        """Report the values in lines; yield each step. Of a step that comes again, the first."""
        for line in lines:
            found = self._pattern.find(line)
            if found is None:
                continue
            step = self._n_found if found[0] is None else found[0]
            self._n_found += 1
            if step not in self._steps:
                self._steps.add(step)
                record_values(self._trial, found[1], step)
                yield step


def mismatch(pattern: ReportPattern, out: Path, err: Path) -> str:
    """Return a sentence about a pattern that no line of a command's output matches.

    Args:
        pattern: The pattern.
        out: The file with the command's standard output.
        err: The file with its standard error, which is not read for values.
    """
    begin = (
        f"--report {pattern.text!r} matches no line of the output, so no trial is stopped early"
    )
    for line in _first_lines(err):
        if pattern.find(line):
            return f"{begin}: {_shown(line)} is on stderr, but only stdout is read."
    lines = _first_lines(out)
    nearest = max(lines, key=lambda line: _likeness(line, pattern.text), default="")
    return f"{begin}; a line of the output is {_shown(nearest)}."


def _first_lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        lines = re.split(rb"[\r\n]+", file.read(_MAX_READ))
    return [line.decode("utf-8", "replace") for line in lines if line.strip()][:_MAX_COMPARED]


def _shown(line: str) -> str:
    text = line.strip()
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")


def _likeness(line: str, pattern: str) -> float:
    compared = line.lower()[:_MAX_SHOWN], pattern.lower()
    return difflib.SequenceMatcher(None, *compared).ratio()


class _Lines:
    """The lines of a file that grows. A progress bar begins its line again: that is a new one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._begun = b""

    def complete(self) -> Iterator[str]:
        """Yield the lines that have ended since."""
        while block := self._read():
            *ended, self._begun = re.split(rb"[\r\n]+", self._begun[-_MAX_READ:] + block)
            for line in ended:
                yield line.decode("utf-8", "replace")

    def all(self) -> Iterator[str]:
        """Yield the rest, the last line also if it has no end."""
        yield from self.complete()
        yield self._begun.decode("utf-8", "replace")

    def _read(self) -> bytes:
        with self._path.open("rb") as file:
            file.seek(self._position)
            block = file.read(_MAX_READ)
        self._position += len(block)
        return block
