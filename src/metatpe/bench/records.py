r"""What a run leaves behind: one file each, written whole or not at all.

    FOLDER/metatpe-bench.json                        {"schema": 1}
    FOLDER/hpolib_slice_localization/meta-tpe/0003-0a1b2c3d4e5f.json.gz      seed and key of a run

A record is JSON, compressed: the run, the versions of what ran it, a checksum of the data, every
evaluation, the audit of the budget, and the error where it failed. It is written beside its place
and then moved there, so that a process that is killed leaves the old file or the new one.

`Trace` is the part that tables and figures are made from; `compact` keeps only that.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from metatpe.bench.plan import Run
from metatpe.bench.problems import Direction, Floats
from metatpe.past.read.task_file import write_whole

SCHEMA = 1
MARKER = "metatpe-bench.json"
_SUFFIX = ".json.gz"
T = TypeVar("T")


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of a run.

    Attributes:
        params: The configuration.
        values: The objectives, in the problem's own units and directions.
        origin: Where the configuration came from, as `TransferRecord` has it; "sampler" where the
            sampler does not say.
        weights: Of the past tasks and the target, at the time of the suggestion.
        seconds: That the suggestion took.
        epochs: How many values a trial with a learning curve has reported, None without one. The
            values of a trial that was pruned are the worst of the problem.
    """

    params: Mapping[str, Any]
    values: tuple[float, ...]
    origin: str
    weights: Mapping[str, float]
    seconds: float
    epochs: int | None = None


@dataclass(frozen=True, eq=False)
class Trace:
    """How one run went: what tables and figures are made from."""

    run: Run
    directions: tuple[Direction, ...]
    values: Floats  # (n, m)
    weights: Mapping[str, Floats]  # task -> (n,), NaN where none was computed
    seconds: float  # that all suggestions took together


@dataclass(frozen=True)
class Record:
    """Everything about one run, also of one that failed."""

    run: Run
    directions: tuple[Direction, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    n_evaluated: int = 0  # by whoever called the problem: the audit of the budget
    versions: Mapping[str, str] = field(default_factory=dict)
    data: str = ""  # checksum of the problem's table
    error: str | None = None

    @property
    def trace(self) -> Trace:
        """What tables and figures need."""
        found = self.evaluations
        names = dict.fromkeys(name for e in found for name in e.weights)
        weights = {n: np.array([e.weights.get(n, math.nan) for e in found]) for n in names}
        values = np.array([e.values for e in found])
        return Trace(self.run, self.directions, values, weights, sum(e.seconds for e in found))

    def to_json(self) -> dict[str, Any]:
        """Return the record as what JSON can hold."""
        entries = {**asdict(self), "run": self.run.to_json()}
        for evaluation in entries["evaluations"]:
            if evaluation["epochs"] is None:  # so that records without curves stay as they were
                del evaluation["epochs"]
        return entries

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> Record:
        """Return the record that `to_json` described."""
        evaluations = tuple(
            Evaluation(**{**e, "values": tuple(e["values"])}) for e in entries["evaluations"]
        )
        run, directions = Run.from_json(entries["run"]), tuple(entries["directions"])
        others = {name: entries[name] for name in ("n_evaluated", "versions", "data", "error")}
        return cls(run, directions, evaluations, **others)


@dataclass(frozen=True)
class Corrupt:
    """A file that cannot be read, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path} is corrupt and was skipped ({self.reason})"


class VersionError(ValueError):
    """Results that another version of the format was used for."""


def prepare(folder: Path) -> None:
    """Make a folder ready for records.

    Raises:
        VersionError: If it holds results of another version.
    """
    if not is_results(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / MARKER, json.dumps({"schema": SCHEMA}).encode())


def is_results(folder: Path) -> bool:
    """Return whether a folder holds results that can be read.

    Raises:
        VersionError: If it holds results of another version.
    """
    marker = folder / MARKER
    if not marker.is_file():
        return False
    try:
        schema = json.loads(marker.read_text("utf-8"))["schema"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VersionError(
            f"{marker} is not readable, so the version of the results in {folder} is not known; "
            "choose another folder."
        ) from error
    _check_schema(marker, schema)
    return True


def _check_schema(path: Path, found: Any) -> None:
    if found != SCHEMA:
        raise VersionError(
            f"{path} was written in version {found} of the format of results, and this is version "
            f"{SCHEMA}; choose another folder, or use the metatpe that wrote it."
        )


def path_of(folder: Path, run: Run) -> Path:
    """Return where the record of a run belongs."""
    name = f"{run.seed:04d}-{run.key}{_SUFFIX}"
    return folder / run.problem.replace("/", "_") / run.method / name


def write_record(folder: Path, record: Record) -> Path:
    """Write a record to its place; a process killed in between leaves no part of it there."""
    path = path_of(folder, record.run)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, compressed(record.to_json()))
    return path


def compressed(entries: Mapping[str, Any]) -> bytes:
    """Return entries and their version as JSON, compressed; the same bytes for the same ones."""
    text = json.dumps({"schema": SCHEMA, **entries}, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def read_record(path: Path) -> Record | Corrupt:
    """Return the record in a file, or why it cannot be read.

    Raises:
        VersionError: If it is of another version.
    """
    return read_file(path, Record.from_json)


def read_file(path: Path, parse: Callable[[Mapping[str, Any]], T]) -> T | Corrupt:
    """Return what a compressed file holds, or why it cannot be read.

    Raises:
        VersionError: If it is of another version.
    """
    try:
        entries = json.loads(gzip.decompress(path.read_bytes()))
        _check_schema(path, entries["schema"])
        return parse(entries)
    except VersionError:
        raise
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        return Corrupt(path, f"{type(error).__name__}: {error}")


def read_records(folder: Path) -> Iterator[Record | Corrupt]:
    """Yield the records of a folder, sorted by their paths, and what is corrupt among them.

    Raises:
        VersionError: If they are of another version.
    """
    is_results(folder)  # refused if it is of another version
    yield from map(read_record, sorted(folder.glob(f"*/*/*{_SUFFIX}")))


def read_finished(folder: Path, runs: Iterable[Run]) -> Iterator[Record | Corrupt]:
    """Yield the records that are there of some runs, failed ones apart."""
    paths = (path_of(folder, run) for run in runs)
    for read in map(read_record, filter(Path.is_file, paths)):
        if isinstance(read, Corrupt) or read.error is None:
            yield read
