"""Columns of a table that are probably no parameters: identifiers, seeds and timestamps.

They are told by their names and by their values; nothing is left out because of it, but a user is
to know. A model would take the number of a run for a parameter that explains everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from metatpe.past.read.frames import Column
from metatpe.space import Floats

_ID = re.compile(r"(?i)^(id|uuid|guid|index|idx|unnamed.*|run|job|trial|experiment|row|number)$")
_ID_END = re.compile(r"(?i)(_|\b)(id|uuid|idx|index|number|hash|commit)$|(?<=[a-z])(Id|ID)$")
_SEED = re.compile(r"(?i)(^|_)(random_?)?(seed|state)$")
_TIME = re.compile(
    r"(?i)(^|_)(date|datetime|timestamp|time_?stamp|created|started|finished|ended|start_time|"
    r"end_time|datetime_start|datetime_complete)(_at|_on)?$"
)
_DATE = re.compile(r"^\s*\d{4}-\d\d?-\d\d?([T ]\d\d?:\d\d.*)?\s*$")
# From 1998 to 2049 in seconds, milliseconds, microseconds and nanoseconds.
_EPOCHS = tuple((9e8 * unit, 2.5e9 * unit) for unit in (1.0, 1e3, 1e6, 1e9))
_MIN_ROWS = 5  # fewer numbers in a row may follow each other by chance


def suspects(columns: Mapping[str, Column], names: Iterable[str]) -> dict[str, str]:
    """Return which columns are probably no parameters, and what they look like.

    >>> suspects({"run_id": Column(np.array([7.0, 3.0]))}, ["run_id"])
    {'run_id': 'an identifier'}
    """
    found = {name: _looks_like(name, columns[name]) for name in names}
    return {name: what for name, what in found.items() if what}


def _looks_like(name: str, column: Column) -> str:
    own = name.removeprefix("params_")
    if _SEED.search(own):
        return "a seed"
    if _TIME.search(own) or _has_dates(column):
        return "a timestamp"
    if _ID.match(own) or _ID_END.search(own) or _is_counter(column):
        return "an identifier"
    return ""


def _has_dates(column: Column) -> bool:
    if column.choices is not None:
        return all(_DATE.match(str(choice)) for choice in column.choices)
    cells = _present(column)
    return len(cells) >= _MIN_ROWS and any(
        bool(((low <= cells) & (cells <= high)).all()) for low, high in _EPOCHS
    )


def _is_counter(column: Column) -> bool:
    """Return whether a column counts the rows."""
    cells = _present(column)
    return column.choices is None and len(cells) >= _MIN_ROWS and bool((np.diff(cells) == 1).all())


def _present(column: Column) -> Floats:
    return column.cells[~np.isnan(column.cells)]
