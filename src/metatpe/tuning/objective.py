"""What `metatpe tune` evaluates: a Python function, or any command.

    train.py:objective           the function of a file that takes an Optuna trial
    package.module:objective     the same of a module
    python train.py --lr {lr:log:1e-5:1e-1} --act {act:relu|tanh}
                                 a command: what stands in braces is chosen for each trial, {lr}
                                 alone is the same value again, {{ and }} are braces

The last line that a command prints is JSON: a number, a list of numbers, or an object with the
objectives' values by name. All that an evaluation prints goes into files, so that the output of a
failed one can be kept.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import json
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TextIO

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.exceptions import TrialPruned
from optuna.trial import Trial

from metatpe.past.read.infer import parse_parameter
from metatpe.tuning.reports import ReportPattern, Reports
from metatpe.tuning.running import ending, run

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_][\w.-]*)((?::[^{}]*)?)\}")
_MODULE = "metatpe_objective"


class EvaluationError(Exception):
    """An evaluation without a result; the message is one sentence."""


@dataclass(frozen=True)
class Output:
    """The files with what one evaluation prints."""

    out: Path
    err: Path

    def tail(self, length: int) -> str:
        """Return the end of what was printed, as much as fits into so many characters of JSON."""
        text = "".join(_end_of(path, length) for path in (self.out, self.err)).strip()
        while len(json.dumps(text)) > length:
            text = text[-min(length, len(text) - 1) :] if len(text) > length else text[50:]
        return text


def _end_of(path: Path, length: int) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - length))
        return file.read().decode("utf-8", "replace")


# A function ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """A Python function that takes a trial and returns the objectives' values."""

    where: str  # a file, or a dotted module
    name: str
    space: ClassVar[dict[str, BaseDistribution]] = {}  # nothing is known of it beforehand

    @classmethod
    def parse(cls, text: str) -> Function:
        """Read FILE.py:NAME or MODULE:NAME.

        Raises:
            ValueError: It is neither, or there is no such file.
        """
        where, _, name = text.rpartition(":")
        if not where or not name.isidentifier():
            raise ValueError(f"{text!r} is not an objective; write FILE.py:FUNCTION.")
        if where.endswith(".py") and not Path(where).is_file():
            raise ValueError(f"there is no file {where}.")
        return cls(where, name)

    def load(self) -> Callable[[Trial], Any]:
        """Import the function.

        Raises:
            ValueError: It does not import, or there is no such function.
        """
        try:
            module = _imported(self.where)
        except (Exception, SystemExit) as error:
            raise ValueError(
                f"{self.where} cannot be imported: {_why(error, self.where)}"
            ) from None
        function = getattr(module, self.name, None)
        if not callable(function):
            names = [n for n, value in vars(module).items() if callable(value) and n[0] != "_"]
            close = difflib.get_close_matches(self.name, names, n=3)
            hint = f"; close are {close}" if close else ""
            raise ValueError(f"{self.where} has no function {self.name!r}{hint}.")
        found: Callable[[Trial], Any] = function
        return found

    def evaluate(self, trial: Trial, output: Output, names: Sequence[str] | None) -> Any:
        """Return what the function returns; what it prints, an error too, goes into the files."""
        function = self.load()
        with _redirected(output):
            try:
                return function(trial)
            except Exception:
                traceback.print_exc()
                raise


def _imported(where: str) -> Any:
    if not where.endswith(".py"):
        if "" not in sys.path:
            sys.path.insert(0, "")
        return importlib.import_module(where)
    if _MODULE in sys.modules:
        return sys.modules[_MODULE]
    path = Path(where).resolve()
    sys.path.insert(0, str(path.parent))  # as for a script
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[_MODULE]
        raise
    return module


def _why(error: BaseException, where: str) -> str:
    """Return an error with the line of the file that it comes from, in one line."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).name == Path(where).name
    ]
    number = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    message = (str(error) or "it stops").splitlines()[0].rstrip(".")
    at = f" (line {number})" if number and "line" not in message else ""
    return f"{type(error).__name__}: {message}{at}."


@contextlib.contextmanager
def _redirected(output: Output) -> Iterator[None]:
    """Send what this process and its children print into files."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with _opened(output.out) as out, _opened(output.err) as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                yield
        finally:
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)


def _opened(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", errors="replace", buffering=1)


# A command -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """A command with placeholders."""

    arguments: tuple[str, ...]
    space: dict[str, BaseDistribution]
    texts: dict[str, tuple[str, ...]]  # parameter -> its choices as they were written
    report: ReportPattern | None = None  # of intermediate values in its output

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> Command:
        """Read a command.

        Raises:
            ValueError: There is no such command, no placeholder, or one that cannot be read.
        """
        if shutil.which(arguments[0]) is None:
            raise ValueError(f"there is no command {arguments[0]!r}.")
        space: dict[str, BaseDistribution] = {}
        texts: dict[str, tuple[str, ...]] = {}
        found = [match for argument in arguments for match in _PLACEHOLDER.finditer(argument)]
        for match in found:
            name, rest = match[1], match[2]
            if name and rest:
                distribution = _distribution(match[0])
                if space.setdefault(name, distribution) != distribution:
                    raise ValueError(f"{name} appears twice; write {{{name}}} the second time.")
                if isinstance(distribution, CategoricalDistribution):
                    texts[name] = tuple(rest[1:].split("|"))
        for match in found:
            if match[1] and match[1] not in space:
                raise ValueError(
                    f"{match[0]} has no range or choices; write {{{match[1]}:float:0:1}}, or "
                    f"{{{match[0]}}} if the braces are meant."
                )
        if not space:
            raise ValueError("the command has no parameter, such as {lr:log:1e-5:1e-1}.")
        return cls(tuple(arguments), space, texts)

    def reporting(self, pattern: str | None) -> Command:
        """Return the same command with a pattern of its intermediate values.

        Raises:
            ValueError: The pattern cannot be read.
        """
        return replace(self, report=None if pattern is None else ReportPattern.parse(pattern))

    def load(self) -> None:
        """Do what has to be done before the first evaluation: nothing."""

    def evaluate(
        self, trial: Trial, output: Output, names: Sequence[str] | None
    ) -> float | list[float]:
        """Run the command; return the values in the last line of its output.

        Raises:
            EvaluationError: It does not end well, or its last line is something else.
            TrialPruned: It was stopped because of its intermediate values.
        """
        values = {name: self._text(trial, name) for name in self.space}
        filled = [
            _PLACEHOLDER.sub(lambda match: values[match[1]] if match[1] else match[0][0], argument)
            for argument in self.arguments
        ]
        code = self._run(filled, trial, output)
        if code:
            raise EvaluationError(f"the command ended with {ending(code)}.")
        lines = _end_of(output.out, 1_000_000).strip().splitlines() or [""]
        return parse_values(lines[-1].strip(), names)

    def _run(self, arguments: list[str], trial: Trial, output: Output) -> int | None:
        """Run the command and report the values that it prints; return its exit code."""
        environment = {**os.environ, "METATPE_TRIAL": str(trial.number)}
        with output.out.open("wb") as out, output.err.open("wb") as err:
            if self.report is None:
                return run(arguments, environment, out, err)
            # Python keeps what it prints to a file in a buffer until the command has ended.
            environment["PYTHONUNBUFFERED"] = "1"
            reports = Reports(self.report, trial, output.out)
            code = run(arguments, environment, out, err, reports.is_stopped)
        if code is None:
            raise TrialPruned
        reports.finish()
        return code

    def _text(self, trial: Trial, name: str) -> str:
        distribution = self.space[name]
        value = suggest(trial, name, distribution)
        if isinstance(distribution, CategoricalDistribution):
            return self.texts[name][distribution.choices.index(value)]
        return repr(value)


def suggest(trial: Trial, name: str, distribution: BaseDistribution) -> Any:
    """Ask a trial for the value of one parameter."""
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    if isinstance(distribution, IntDistribution):
        low, high, step = distribution.low, distribution.high, distribution.step
        return trial.suggest_int(name, low, high, step=step, log=distribution.log)
    assert isinstance(distribution, FloatDistribution)
    bounds = distribution.low, distribution.high
    return trial.suggest_float(name, *bounds, step=distribution.step, log=distribution.log)


def _distribution(placeholder: str) -> BaseDistribution:
    try:
        _, distribution = parse_parameter(placeholder[1:-1])
    except ValueError as error:
        raise ValueError(f"{error} ({{{placeholder}}} if the braces are meant.)") from None
    if not isinstance(distribution, BaseDistribution):
        raise ValueError(f"{placeholder} has no range; write {placeholder[:-1]}:LOW:HIGH}}.")
    return distribution


def parse_values(line: str, names: Sequence[str] | None) -> float | list[float]:
    """Read the objectives' values out of a line of JSON.

    >>> parse_values('{"cost": 3, "error": 0.5}', ["error", "cost"])
    [0.5, 3]

    Args:
        line: A number, a list of numbers, or an object with numbers.
        names: The objectives' names; None: those of an object come in its own order.

    Raises:
        EvaluationError: It is something else, or a name is missing.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        shown = repr(line[:80]) if line else "nothing"
        raise EvaluationError(f"the last line of output must be JSON, but is {shown}.") from None
    if isinstance(found, dict):
        missing = [name for name in names or () if name not in found]
        if missing:
            raise EvaluationError(f"the last line of output has no value of {missing[0]!r}.")
        found = [found[name] for name in names or found]
    for value in found if isinstance(found, list) else [found]:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or value != value:
            shown = repr(value)[:80]
            raise EvaluationError(f"an objective's value must be a number, but is {shown}.")
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            n = len(str(abs(value)))
            raise EvaluationError(f"an objective's value must be below 1e308, but has {n} digits.")
    values: float | list[float] = found
    return values


def check_returned(values: Any) -> None:
    """Refuse what a function returns if it can be no values; Optuna's messages are about its own.

    Raises:
        EvaluationError: It is nothing, a dictionary or text.
    """
    if values is None or isinstance(values, Mapping | str | bytes):
        what = "nothing (None)" if values is None else f"a {type(values).__name__}"
        raise EvaluationError(
            f"the objective returned {what}; it must return a number, or a tuple with one number "
            "per objective."
        )


def parse(words: Sequence[str], report: str | None = None) -> Function | Command:
    """Return what is to be evaluated: one word is a function, several are a command.

    Args:
        words: The words of the command line.
        report: The pattern of the intermediate values that a command prints.

    Raises:
        ValueError: It cannot be read.
    """
    if len(words) > 1 or "{" in words[0]:
        return Command.parse(words).reporting(report)
    if report is not None:
        raise ValueError("--report is for commands; a function calls trial.report itself.")
    return Function.parse(words[0])
