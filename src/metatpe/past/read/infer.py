"""What the columns of a table are: which are parameters, and of what kind and range.

What is not given about a parameter is inferred:

    whole numbers             an int from the smallest to the largest value
    other numbers             a float
    of several magnitudes     the same on a log scale: all positive, the largest at least 1,000
                              times the smallest, and half of them below a tenth of the largest
    text, True and False      categorical, the choices sorted
    numbers and text          an error: one of them is a slip, or the column is to be a "choice"

Text that differs from row to row (names of runs, dates) is no parameter. In a table that Optuna's
`trials_dataframe` wrote, the columns params_NAME are the parameters, and rows whose state is not
COMPLETE have failed.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from metatpe.distributions import require_range
from metatpe.past.read.frames import MAX_CHOICES, Column, value_of
from metatpe.past.read.suspects import suspects
from metatpe.space import Floats, Mask, Space
from metatpe.text import visible

KINDS = ("float", "log", "int", "logint", "choice")
_LOG_FROM = 1000.0  # largest by smallest value
_LOG_MEDIAN = 0.1  # of the largest; uniform numbers have theirs at 0.5, however many there are
_PREFIX = "params_"  # of Optuna's trials_dataframe

Given = BaseDistribution | str | None  # what is known of a parameter; None: nothing


@dataclass(frozen=True)
class ParsedTable:
    """A table that was understood: parameters as `Space.numbers`, and the objectives' values."""

    space: Space
    numbers: Floats  # (n, d)
    values: Floats  # (n, m)
    remarks: tuple[str, ...]  # what was left out


def understand(
    columns: Mapping[str, Column],
    objectives: Sequence[str],
    params: Sequence[str] | Mapping[str, Given] | None,
    source: str,
) -> ParsedTable:
    """Return the parameters and the objectives of a table.

    Args:
        columns: By name, all of the same length.
        objectives: The columns of the objectives.
        params: The columns of the parameters, and what is known of them; None: all others.
        source: What errors call the table.
    """
    _check_known([*objectives, *(params or ())], columns, source)
    values = np.stack([_objective(columns[name], name, source) for name in objectives], axis=1)
    is_run: Mask = ~np.any(np.isnan(values), axis=1)
    chosen, remarks = _chosen(columns, objectives, params)
    if _is_optunas(columns):
        is_run = is_run & _is_complete(columns)
    if not is_run.any():
        raise ValueError(f"{source}: no row has a value of {' and '.join(map(repr, objectives))}.")
    if not is_run.all():
        n = len(is_run)
        remarks.append(f"{n - int(is_run.sum())} of {n} rows have no result and are left out")
    kept, empty = {}, []
    for name, given in chosen.items():
        if pair := _parameter(columns[name], name, given, is_run, source):
            kept[name.removeprefix(_PREFIX)] = pair
        else:
            empty.append(name)
    if empty:
        remarks.append(f"without a value and left out: {', '.join(empty)}")
    if not kept:
        raise ValueError(f"{source} has no column that could be a parameter.")
    space = Space({name: distribution for name, (distribution, _) in kept.items()})
    numbers = np.stack([column for _, column in kept.values()], axis=1)
    return ParsedTable(space, numbers, values[is_run], tuple(remarks))


def _check_known(names: Iterable[str], columns: Mapping[str, Column], source: str) -> None:
    for name in names:
        if name not in columns:
            close = difflib.get_close_matches(name, columns, n=3)
            hint = f"similar names are {close}" if close else f"it begins with {list(columns)[:5]}"
            raise ValueError(f"{source} has no column {name!r}; {hint}.")


def _objective(column: Column, name: str, source: str) -> Floats:
    if column.first_text is not None:
        row, text = column.first_text
        raise ValueError(
            f"{source}: the objective {name!r} must be a number, but row {row} has {text!r}."
        )
    return column.cells


def _is_optunas(columns: Mapping[str, Column]) -> bool:
    return "state" in columns and any(name.startswith(_PREFIX) for name in columns)


def _is_complete(columns: Mapping[str, Column]) -> Mask:
    state = columns["state"]
    complete = [i for i, choice in enumerate(state.choices or ()) if choice == "COMPLETE"]
    return np.isin(state.cells, complete)


def _chosen(
    columns: Mapping[str, Column],
    objectives: Sequence[str],
    params: Sequence[str] | Mapping[str, Given] | None,
) -> tuple[dict[str, Given], list[str]]:
    """Return the columns that are parameters, with what is known of them, and a remark."""
    if params is not None:
        named = params if isinstance(params, Mapping) else dict.fromkeys(params)
        return dict(named), []
    names, ids = candidates(columns, objectives)
    remarks = [f"different in every row and left out: {', '.join(ids)}"] if ids else []
    for name, what in suspects(columns, names).items():
        remarks.append(
            f"{name!r} looks like {what} and is read as a parameter; if it is none, give those "
            "that are as `params`"
        )
    return dict.fromkeys(names), remarks


def candidates(
    columns: Mapping[str, Column], objectives: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the columns that may be parameters, and those that only name the rows."""
    others = [name for name in columns if name not in objectives]
    if _is_optunas(columns):
        others = [name for name in others if name.startswith(_PREFIX)]
    ids = [name for name in others if _is_id(columns[name])]
    return [name for name in others if name not in ids], ids


def _is_id(column: Column) -> bool:
    """Return whether the texts of a column differ from row to row, as the names of runs do."""
    n_texts = sum(isinstance(choice, str) for choice in column.choices or ())
    return column.is_full or (n_texts > 10 and n_texts > len(column.cells) / 2)


def _parameter(
    column: Column, name: str, given: Given, is_run: Mask, source: str
) -> tuple[BaseDistribution, Floats] | None:
    """Return the distribution and the numbers of a parameter; None where every cell is missing."""
    if column.is_full:
        raise ValueError(_too_many(name, source))
    cells = column.cells[is_run]
    if np.isnan(cells).all():
        return None
    if isinstance(given, CategoricalDistribution) or given == "choice":
        return _as_choices(column, cells, given, name, source)
    if column.choices is None:
        return _as_range(cells, given, name, source), cells
    if given is None and not any(isinstance(choice, float) for choice in column.choices):
        return _as_choices(column, cells, None, name, source)
    assert column.first_text is not None
    row, text = column.first_text
    raise ValueError(
        f"{source}: {name!r} has numbers, but row {row} has {text!r}; "
        "correct it, or give the column as a choice."
    )


def _too_many(name: str, source: str) -> str:
    return f"{source}: {name!r} has more than {MAX_CHOICES} values, too many for choices."


def _as_choices(
    column: Column, cells: Floats, given: Given, name: str, source: str
) -> tuple[BaseDistribution, Floats]:
    distinct, inverse = np.unique(cells, return_inverse=True)  # NaN is the last one
    values = _values(column, distinct[~np.isnan(distinct)])
    if len(values) > MAX_CHOICES:
        raise ValueError(_too_many(name, source))
    if not isinstance(given, CategoricalDistribution):
        given = CategoricalDistribution(sorted(values, key=lambda v: (isinstance(v, str), v)))
    known = {str(choice): float(i) for i, choice in reversed(list(enumerate(given.choices)))}
    unknown = [value for value in values if str(value) not in known]
    if unknown:
        raise ValueError(f"{source}: {name!r} has {unknown[0]!r}, which is not in {given}.")
    numbers = np.array([*(known[str(value)] for value in values), np.nan])
    return given, numbers[inverse]


def _values(column: Column, cells: Floats) -> list[Any]:
    """Return the values of some cells, whole numbers as such."""
    choices = column.choices
    values = cells.tolist() if choices is None else [choices[int(i)] for i in cells]
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]


def _as_range(cells: Floats, given: Given, name: str, source: str) -> BaseDistribution:
    if isinstance(given, BaseDistribution):
        return _checked(cells, given, name, source)
    low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
    if math.isinf(low) or math.isinf(high):
        raise ValueError(f"{source}: {name!r} must have finite values, but has infinite ones.")
    if given is not None:
        return _checked(cells, distribution(given, low, high, name), name, source)
    is_log = low > 0 and high / low >= _LOG_FROM and np.nanmedian(cells) <= _LOG_MEDIAN * high
    is_whole = bool((np.isnan(cells) | (cells == np.round(cells))).all())
    kind = ("logint" if is_log else "int") if is_whole else ("log" if is_log else "float")
    return distribution(kind, low, high, name)


def distribution(kind: str, low: float, high: float, name: str) -> BaseDistribution:
    """Return the distribution of a kind: float, log, int or logint.

    Raises:
        ValueError: There is no such kind, or the range does not fit it.
    """
    name = visible(name)
    if kind not in KINDS[:-1]:
        raise ValueError(
            f"{name}: {kind!r} is not a parameter type; the types are {', '.join(KINDS)}."
        )
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{name}: a range needs two finite numbers, not {low:g} and {high:g}.")
    if low > high:
        raise ValueError(f"{name}: the range from {low:g} to {high:g} is empty.")
    is_log = kind.startswith("log")
    if kind in ("int", "logint"):
        if low != int(low) or high != int(high):
            raise ValueError(f"{name}: {low:g} to {high:g} is not a range of whole numbers.")
        if is_log and low < 1:
            raise ValueError(f"{name}: a log scale of whole numbers starts at 1, not at {low:g}.")
        return require_range(name, IntDistribution(int(low), int(high), log=is_log))
    if is_log and low <= 0:
        raise ValueError(f"{name}: a log scale needs positive values, but there is {low:g}.")
    return require_range(name, FloatDistribution(low, high, log=is_log))


def _checked(cells: Floats, given: BaseDistribution, name: str, source: str) -> BaseDistribution:
    """Return a distribution if all cells are values of it."""
    distinct = np.unique(cells[~np.isnan(cells)])
    space = Space({name: given})
    X = space.encode_numbers(distinct[:, None])
    is_off = ~(np.abs(space.decode_numbers(X)[:, 0] - distinct) <= 1e-8 * np.abs(distinct))
    if is_off.any():
        raise ValueError(
            f"{source}: {name!r} has {distinct[is_off][0]:g}, which is not in {given}."
        )
    return given


def parse_parameter(text: str) -> tuple[str, Given]:
    """Read NAME, NAME:KIND, NAME:KIND:LOW:HIGH or NAME:CHOICE|CHOICE.

    >>> parse_parameter("lr:log:1e-5:1e-1")
    ('lr', FloatDistribution(high=0.1, log=True, low=1e-05, step=None))
    """
    name, *rest = text.split(":")
    if not name or len(rest) not in (0, 1, 3):
        raise ValueError(f"{text!r} is not NAME:KIND, NAME:KIND:LOW:HIGH or NAME:CHOICE|CHOICE.")
    if not rest:
        return name, None
    if len(rest) == 1 and "|" in rest[0]:
        return name, CategoricalDistribution([parse_value(part) for part in rest[0].split("|")])
    if rest[0] not in KINDS:
        raise ValueError(f"{text!r}: {rest[0]!r} is not a type; the types are {', '.join(KINDS)}.")
    if len(rest) == 1:
        return name, rest[0]
    try:
        low, high = float(rest[1]), float(rest[2])
    except ValueError:
        raise ValueError(f"{text!r}: {rest[1]} to {rest[2]} is not a range of numbers.") from None
    return name, distribution(rest[0], low, high, name)


def parse_value(text: str) -> Any:
    """Return the value of a text: a whole number, another one, true or false, or itself.

    >>> [parse_value(text) for text in ("16", "1e-3", "true", "relu")]
    [16, 0.001, True, 'relu']
    """
    value = value_of(text)
    if value is None:
        return text
    return int(value) if isinstance(value, float) and value.is_integer() else value
