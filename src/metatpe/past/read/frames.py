"""Tables of evaluations, one row per run, as columns: from CSV files and data frames.

A column holds numbers where every cell is one, and distinct values otherwise; a cell that is
blank, NaN, NA or null is missing.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metatpe.space import Floats

MAX_CHOICES = 1000  # different texts in one column; above, it is no parameter
_CHUNK = 500  # rows held as text; with more of them the processor waits for its memory
_MISSING = frozenset(("", "nan", "NaN", "NAN", "NA", "N/A", "null"))
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    cells: Floats  # (n,), the numbers, or indices of choices; NaN where missing
    choices: tuple[Any, ...] | None = None  # the distinct values; None: numbers
    first_text: tuple[int, str] | None = None  # row and text of the first cell that is no number
    is_full: bool = False  # there were more texts than MAX_CHOICES, and the cells are not kept


def read_csv(path: Path) -> dict[str, Column]:
    """Return the columns of a CSV file, separated by commas, semicolons or tabs.

    Raises:
        ValueError: It is not UTF-8, empty, only a header, or a row has another number of cells.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            separator = max(",;\t", key=first.count)
            lines = itertools.chain([first], file)
            header = next(csv.reader(lines, delimiter=separator, strict=True), [])
            _check_header(header, str(path))
            return _read_rows(header, file, separator, str(path))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not a CSV file in UTF-8: {error.reason} at byte {error.start}."
        ) from None
    except csv.Error as error:
        is_open = "unexpected end" in str(error) or "expected after" in str(error)
        hint = '; a " is missing, or there is one too many' if is_open else ""
        raise ValueError(f"{path} is not a CSV file: {error}{hint}.") from None


def _check_header(header: Sequence[str], source: str) -> None:
    if not any(header):
        raise ValueError(f"{source} is empty; its first line must name the columns.")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise ValueError(f"{source} has more than one column {twice[0]!r}; rename or remove them.")


def _read_rows(
    header: Sequence[str], file: Iterator[str], separator: str, source: str
) -> dict[str, Column]:
    readers = [_Reader() for _ in header]
    for columns in _column_chunks(file, separator, len(header), source):
        for reader, cells in zip(readers, columns, strict=True):
            reader.add(cells)
    if not readers[0].n:
        raise ValueError(f"{source} has a header but no rows.")
    return {name: reader.column() for name, reader in zip(header, readers, strict=True)}


def _column_chunks(
    file: Iterator[str], separator: str, width: int, source: str
) -> Iterator[Sequence[Sequence[str]]]:
    """Yield the cells of some rows at a time, one sequence a column."""
    n = 0
    while lines := list(itertools.islice(file, _CHUNK)):
        columns = _split(lines, separator, width)
        if columns is None:
            text = itertools.chain(lines, file)
            rows = csv.reader(text, delimiter=separator, strict=True)
            yield from _parsed(rows, separator, width, n, source)
        else:
            n += len(columns[0])
            yield columns


def _split(lines: Sequence[str], separator: str, width: int) -> list[list[str]] | None:
    """Return the columns of plain lines, in half of the time of `csv`; None where it is needed.

    That is: where there are quotes, blank lines, or rows of different lengths.
    """
    text = "".join(lines).replace("\r\n", "\n").removesuffix("\n") + "\n"
    cells = text.replace("\n", f"{separator}\n{separator}").split(separator)
    ends = cells[width :: width + 1]  # every row has one more cell now, its end
    if ends != ["\n"] * len(lines) or '"' in text:
        return None
    return [cells[j : -1 : width + 1] for j in range(width)]


def _parsed(
    rows: Iterator[list[str]], separator: str, width: int, n: int, source: str
) -> Iterator[list[tuple[str, ...]]]:
    """Yield the columns of rows that `csv` has read, after n others."""
    while read := list(itertools.islice(rows, _CHUNK)):
        chunk = [row for row in read if row]
        for i, row in enumerate(chunk, n + 1):
            if len(row) != width:
                raise ValueError(
                    f"{source}: row {i} has {len(row)} cells, but the header names {width}."
                )
            _check_quotes(row, separator, i, source)
        n += len(chunk)
        if chunk:
            yield list(zip(*chunk, strict=True))


def _check_quotes(row: Sequence[str], separator: str, i: int, source: str) -> None:
    """Refuse a row with a cell that holds other rows."""
    for cell in row:
        lines = cell.split("\n")
        if any(line.count(separator) == len(row) - 1 for line in lines[1:-1]):
            raise ValueError(
                f"{source}: a cell of row {i} spans {len(lines)} lines that look like rows; "
                'a " is missing, or there is one too many.'
            )


class _Reader:
    """Collects the cells of one column, as numbers for as long as they are."""

    def __init__(self) -> None:
        self._chunks: list[tuple[Floats, bool]] = []  # the cells, and whether they are codes
        self._codes: dict[Any, int] = {}  # value -> code; numbers among the texts have one too
        self._first_text: tuple[int, str] | None = None
        self.n = self._n_texts = 0  # cells, and different texts among them

    def add(self, cells: Sequence[str]) -> None:
        """Add the texts of some cells."""
        if self._n_texts <= MAX_CHOICES:
            numbers = _as_numbers(cells)
            coded = self._coded(cells) if numbers is None else numbers
            self._chunks.append((coded, numbers is None))
        self.n += len(cells)

    def _coded(self, cells: Sequence[str]) -> Floats:
        codes = {cell: self._code(cell) for cell in dict.fromkeys(cells)}
        if self._first_text is None:
            texts = ((i, cell) for i, cell in enumerate(cells, self.n + 1) if _is_text(cell))
            self._first_text = next(texts, None)
        return np.array([codes[cell] for cell in cells], dtype=np.float64)

    def _code(self, cell: str) -> float:
        value = value_of(cell)
        if value is None:
            return math.nan
        key = (type(value), value)
        if _is_text(cell) and key not in self._codes:
            self._n_texts += 1
        return self._codes.setdefault(key, len(self._codes))

    def column(self) -> Column:
        """Return all cells that were added."""
        if self._n_texts > MAX_CHOICES:
            return Column(np.empty(0), first_text=self._first_text, is_full=True)
        if not self._n_texts:
            return Column(np.concatenate([cells for cells, _ in self._chunks]))
        cells = np.concatenate([self._recoded(*chunk) for chunk in self._chunks])
        return Column(cells, tuple(value for _, value in self._codes), self._first_text)

    def _recoded(self, cells: Floats, is_coded: bool) -> Floats:
        if is_coded:
            return cells
        distinct, inverse = np.unique(cells, return_inverse=True)
        codes = [
            math.nan if math.isnan(v) else self._codes.setdefault((float, v), len(self._codes))
            for v in distinct.tolist()
        ]
        return np.array(codes, dtype=np.float64)[inverse]


def _as_numbers(cells: Sequence[str]) -> Floats | None:
    """Return cells as numbers, None where one is not a number."""
    for numbers in (
        map(float, cells),
        (float("nan" if c.strip() in _MISSING else c) for c in cells),
    ):
        with contextlib.suppress(ValueError):
            return np.fromiter(numbers, dtype=np.float64, count=len(cells))
    return None


def value_of(cell: str) -> float | bool | str | None:
    """Return the value of a cell; None where it is missing."""
    text = cell.strip()
    if text in _MISSING:
        return None
    try:
        return float(text)
    except ValueError:
        return _TRUTH.get(text.lower(), text)


def _is_text(cell: str) -> bool:
    return isinstance(value_of(cell), str | bool)


def columns_of(table: Any, source: str) -> dict[str, Column]:
    """Return the columns of a data frame (of pandas, Polars, ...) or of a mapping of lists."""
    keys = list(table if isinstance(table, Mapping) else table.columns)
    _check_keys(keys, source)
    names = [str(key) for key in keys]  # a column may be called 0
    _check_header(names, source)
    columns = {
        name: _array(table[key], name, source) for name, key in zip(names, keys, strict=True)
    }
    _check_lengths(columns, source)
    found = {name: _column_of(cells) for name, cells in columns.items()}
    if not all(len(column.cells) or column.is_full for column in found.values()):
        raise ValueError(f"{source} has columns but no rows.")
    return found


def _check_keys(keys: Sequence[Any], source: str) -> None:
    several = [key for key in keys if isinstance(key, tuple)]
    if several:
        raise ValueError(
            f"{source} has column names of several levels, such as {several[0]!r}; join them "
            'first: df.columns = ["_".join(map(str, name)) for name in df.columns].'
        )


def _array(column: Any, name: str, source: str) -> np.ndarray[Any, Any]:
    """Return a column as an array of cells."""
    with contextlib.suppress(ValueError):  # lists of different lengths
        cells = np.asarray(column)
        if cells.ndim == 1:
            return cells
    raise ValueError(
        f"{source}: the column {name!r} must have one value per row, but holds lists."
    )


def _check_lengths(columns: Mapping[str, np.ndarray[Any, Any]], source: str) -> None:
    first = next(iter(columns))
    for name, cells in columns.items():
        if len(cells) != len(columns[first]):
            raise ValueError(
                f"{source}: all columns must have the same number of rows, but {first!r} has "
                f"{len(columns[first])} and {name!r} has {len(cells)}."
            )


def _column_of(cells: np.ndarray[Any, Any]) -> Column:
    if cells.dtype.kind in "iuf":
        return Column(cells.astype(np.float64))
    reader = _Reader()
    reader.add(["" if _is_missing(cell) else str(cell) for cell in cells.tolist()])
    return reader.column()


def _is_missing(cell: Any) -> bool:
    """Return whether a cell of a data frame is empty: None, NaN, pandas.NA, NaT."""
    return cell is None or type(cell).__name__ == "NAType" or bool(cell != cell)
