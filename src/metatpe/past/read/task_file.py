"""A header and arrays in one file: no pickle, exact numbers, and a checksum over all of it.

    metatpe-task 1 <sha256 of the rest, in hexadecimal digits>\n
    {"name": ..., "arrays": [["X", [n, d]], ...]}\n        JSON, in ASCII
    the arrays, one after the other, little-endian float64, row by row

A file of another version, a damaged one, and one with unknown parts are refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from metatpe.space import Floats

_MAGIC = b"metatpe-task"
_VERSION = 1
_NUMBER = np.dtype("<f8")


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Floats]) -> None:
    """Write a file whole or not at all; one that is there is replaced."""
    shapes = [[name, list(array.shape)] for name, array in arrays.items()]
    text = json.dumps({**header, "arrays": shapes}).encode("ascii")
    numbers = [np.ascontiguousarray(array, dtype=_NUMBER).tobytes() for array in arrays.values()]
    rest = b"".join([text, b"\n", *numbers])
    write_whole(path, b"%s %d %s\n" % (_MAGIC, _VERSION, _digest(rest)) + rest)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file at once: others see the old one or all of the new one."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def read(
    path: Path, keys: set[str], arrays: set[str], optional: set[str]
) -> tuple[dict[str, Any], dict[str, Floats]]:
    """Return the header and the arrays of a file.

    Args:
        path: The file.
        keys: The names that the header must have, and no others.
        arrays: The same for the arrays.
        optional: Arrays that it may have besides.

    Raises:
        ValueError: It is not such a file, of another version, or damaged.
    """
    first, _, rest = path.read_bytes().partition(b"\n")
    magic, _, version_and_digest = first.partition(b" ")
    version, _, digest = version_and_digest.partition(b" ")
    if magic != _MAGIC:
        raise ValueError(f"{path} is not a saved task.")
    if version != b"%d" % _VERSION:
        raise ValueError(
            f"{path} is a saved task of version {version.decode('ascii', 'replace')!r}, but this "
            f"metatpe reads version {_VERSION}; install a newer one."
        )
    if _digest(rest) != digest:
        raise ValueError(f"{path} is damaged: its checksum is wrong; save the task again.")
    return _parts(path, rest, keys, arrays, optional)


def _parts(
    path: Path, rest: bytes, keys: set[str], arrays: set[str], optional: set[str]
) -> tuple[dict[str, Any], dict[str, Floats]]:
    text, _, numbers = rest.partition(b"\n")
    try:
        header = json.loads(text)
        shapes = {name: _shape(shape) for name, shape in header.pop("arrays", [])}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError(
            f"{path} is not a task that metatpe saved: its header is invalid."
        ) from None
    if odd := sorted((header.keys() ^ keys) | ((shapes.keys() - optional) ^ arrays)):
        raise ValueError(f"{path} is a saved task with unknown or missing parts: {odd}.")
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    if _NUMBER.itemsize * sum(sizes.values()) != len(numbers):
        raise ValueError(f"{path} is damaged: its arrays do not have the size that it says.")
    flat = np.frombuffer(numbers, dtype=_NUMBER)
    parts = np.split(flat, np.cumsum(list(sizes.values()))[:-1])
    named = zip(shapes.items(), parts, strict=True)
    return header, {name: part.reshape(shape) for (name, shape), part in named}


def _shape(shape: Any) -> list[int]:
    if not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError(f"{shape} is not the shape of an array.")
    return list(shape)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode("ascii")
