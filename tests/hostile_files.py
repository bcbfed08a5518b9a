"""Files as nobody should write them: tables, saved tasks and search spaces with odd content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from fuzzing import HIDDEN, NAMES, random_name

from metatpe import Task

Rng = np.random.Generator
COLUMNS = ("error", "params_x", "run_id", "date", "0", *NAMES)
_CELLS = (
    *("", " ", "0", "1", "-1", "0.5", "1e-3", "1e300", "1e400", "-inf", "nan", "NA", "null"),
    *("True", "false", "relu", "2026-01-01", "0x10", "1_000", "1,5", "9" * 400, "\u0663", *NAMES),
)
_PIECES = (
    *("x", "lr", "", ":", ":float", ":log", ":int", ":logint", ":choice", ":0", ":1", ":1e-3"),
    *(":inf", ":nan", ":-5", "|a", "|", "\n", "#", "{", "[", "}", '"x":', "null", "\x1b[31m"),
)


def _quoted(cell: str, rng: Rng) -> str:
    if rng.random() < 0.02:
        return f'"{cell}'  # a quote that is never closed
    needs = any(c in cell for c in ',;\t\n"')
    return '"' + cell.replace('"', '""') + '"' if needs and rng.random() < 0.97 else cell


def write_csv(path: Path, rng: Rng) -> str:
    """Write a table; return the name of a column that may be its objective."""
    width, n = int(rng.integers(1, 6)), int(rng.choice([0, 1, 2, 9, 40]))
    header = ["error", *(COLUMNS[i] for i in rng.integers(len(COLUMNS), size=width - 1))]
    rows = [_row(width, rng) for _ in range(n)]
    separator = str(rng.choice([",", ";", "\t"], p=[0.8, 0.1, 0.1]))
    lines = [separator.join(_quoted(cell, rng) for cell in row) for row in [header, *rows]]
    text = str(rng.choice(["\n", "\r\n"])).join([*lines, ""])
    content = text.encode("utf-8", "surrogatepass" if rng.random() < 0.5 else "replace")
    path.write_bytes(damaged(content, rng) if rng.random() < 0.2 else content)
    return str(rng.choice(header)) if rng.random() < 0.2 else "error"


def _row(width: int, rng: Rng) -> list[str]:
    if rng.random() < 0.01:
        width += 1
    is_odd = rng.random() < 0.2
    numbers = [f"{value:.3g}" for value in rng.normal(size=width)]
    return [_CELLS[rng.integers(len(_CELLS))] if is_odd else number for number in numbers]


def damaged(content: bytes, rng: Rng) -> bytes:
    """Return content with a byte changed, cut off, or a piece of it repeated."""
    at, kind = int(rng.integers(len(content) + 1)), rng.integers(3)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + bytes([rng.integers(256)]) + content[at + 1 :]
    return content[:at] + content[int(rng.integers(at + 1)) :]


def write_damaged_task(task: Task, path: Path, rng: Rng) -> None:
    """Write a saved task with damage, in half of the cases with a checksum that is right."""
    task.save(path)
    first, _, rest = path.read_bytes().partition(b"\n")
    if rng.random() < 0.5:
        text, _, numbers = rest.partition(b"\n")
        rest = json.dumps(_forged(json.loads(text), rng)).encode() + b"\n" + numbers
    else:
        rest = damaged(rest, rng)
    if rng.random() < 0.7:
        first = b"metatpe-task 1 " + hashlib.sha256(rest).hexdigest().encode()
    path.write_bytes(first + b"\n" + rest)


def _forged(header: dict[str, Any], rng: Rng) -> dict[str, Any]:
    """Return a header with one entry that is something else."""
    odd = (
        None,
        -1,
        10**400,
        "\x1b",
        [],
        [[]],
        {},
        [["x", "{}"]],
        float("nan"),
        [random_name(rng)],
    )
    key = str(rng.choice(list(header)))
    return {**header, key: odd[rng.integers(len(odd))]}


def write_space(path: Path, rng: Rng) -> None:
    """Write what may be a search space."""
    pieces = [_PIECES[i] for i in rng.integers(len(_PIECES), size=rng.integers(1, 12))]
    path.write_text("".join(pieces) if rng.random() < 0.9 else "[" * 100_000, "utf-8")


def hidden_in(text: str) -> list[str]:
    """Return the control characters of a text."""
    return HIDDEN.findall(text)
