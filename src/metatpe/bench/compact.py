r"""Results small enough for a repository: the objective values of many runs, a file a problem.

    FOLDER/metatpe-bench.json                    {"schema": 1}
    FOLDER/hpolib_slice_localization.json.gz     its traces, sorted by label, seed and key

What is left out are the configurations and the time of each single suggestion. Values have seven
significant digits, rounded to the worse side: no value becomes better than the best there is.
Weights have three.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from pathlib import Path
from typing import Any

import numpy as np

from metatpe.bench.plan import Run
from metatpe.bench.problems import Direction, Floats
from metatpe.bench.records import (
    Corrupt,
    Record,
    Trace,
    compressed,
    prepare,
    read_file,
    read_records,
)
from metatpe.past.read.task_file import write_whole

_DIGITS = 7


@dataclass(frozen=True)
class Results:
    """What a folder holds."""

    traces: tuple[Trace, ...]
    failed: tuple[Record, ...] = ()
    corrupt: tuple[Corrupt, ...] = ()


def read_results(folder: Path) -> Results:
    """Return the results of a folder, of records, compact files, or both.

    Raises:
        FileNotFoundError: If there is no such folder, or nothing in it.
        VersionError: If they are of another version.

    Example:
        >>> traces = read_results(Path("records")).traces
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}; make results with: {_COMMAND}")
    records = list(read_records(folder))
    compact = [read_file(path, _traces) for path in sorted(folder.glob("*.json.gz"))]
    if not any([*compact, *records]):  # a compact file may hold none
        raise FileNotFoundError(f"{folder} holds no results; make some with: {_COMMAND}")
    read = [record for record in records if isinstance(record, Record)]
    traces = [trace for part in compact if not isinstance(part, Corrupt) for trace in part]
    return Results(
        traces=(*traces, *(record.trace for record in read if record.error is None)),
        failed=tuple(record for record in read if record.error is not None),
        corrupt=tuple(entry for entry in [*compact, *records] if isinstance(entry, Corrupt)),
    )


_COMMAND = "metatpe bench run --problem hpolib --method meta-tpe,mo-tpe --out FOLDER"


def write_compact(traces: Iterable[Trace], folder: Path) -> list[Path]:
    """Write traces to a folder and return its files; those of a problem replace what was there.

    Raises:
        VersionError: If the folder holds results of another version.

    Example:
        >>> write_compact(read_results(Path("records")).traces, Path("shared"))
        [PosixPath('shared/ellipsoid4.json.gz')]
    """
    by_problem: dict[str, list[Trace]] = {}
    for trace in sorted(traces, key=lambda t: (t.run.label, t.run.seed, t.run.key)):
        by_problem.setdefault(trace.run.problem, []).append(trace)
    prepare(folder)
    paths = []
    for problem, members in sorted(by_problem.items()):
        paths.append(folder / f"{problem.replace('/', '_')}.json.gz")
        write_whole(paths[-1], compressed({"traces": [_to_json(trace) for trace in members]}))
    return paths


def _to_json(trace: Trace) -> dict[str, Any]:
    columns = [
        _rounded(trace.values[:, i], direction) for i, direction in enumerate(trace.directions)
    ]
    return {
        "run": trace.run.to_json(),
        "directions": trace.directions,
        "values": columns,  # one list an objective: alike numbers beside each other
        "weights": {name: [_short(w) for w in ws] for name, ws in trace.weights.items()},
        "seconds": round(trace.seconds, 3),
    }


def _rounded(values: Floats, direction: Direction) -> list[float]:
    rounding = ROUND_FLOOR if direction == "maximize" else ROUND_CEILING
    context = Context(prec=_DIGITS, rounding=rounding)
    # The digits that a number is printed with: what has seven stays what it is.
    return [float(context.create_decimal(repr(value))) for value in values.tolist()]


def _short(weight: float) -> float | None:
    return None if math.isnan(weight) else float(f"{weight:.3g}")


def _traces(entries: Mapping[str, Any]) -> list[Trace]:
    return [
        Trace(
            run=Run.from_json(trace["run"]),
            directions=tuple(trace["directions"]),
            values=np.array(trace["values"], dtype=np.float64).T,
            weights={n: np.array(w, dtype=np.float64) for n, w in trace["weights"].items()},
            seconds=trace["seconds"],
        )
        for trace in entries["traces"]
    ]
