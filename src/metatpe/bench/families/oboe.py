"""oboe: classifiers of scikit-learn on 418 datasets of OpenML; which algorithm is chosen too.

Objectives: `error`, the balanced error, and `run_time` in seconds, both minimised. Each of the 219
configurations was cross-validated once; a table is (219, 1, 2). Run times span decades, and the
hypervolume takes their logarithm; the error, which is 0 on some datasets, has none.

The space is conditional: `algorithm`, and hyperparameters such as `RF.criterion` that only this
algorithm uses. Of each algorithm all combinations of the values that occur are in the table, which
is checked. Numbers are ordered parameters, the indices of their sorted values; everything else is
categorical. The `min_samples_split` of trees has fractions of the dataset first and then counts,
each in order. A hyperparameter with a single value, `learning_rate` of MLP, is no parameter.

`oboe/3` is the dataset 3 of OpenML. With the datasets sorted by this number, the suite has
every 35th from the first on, twelve in all. The past of each is the same: every 38th from the
twentieth on, ten in all; none of them is in the suite. (An eleventh takes the place of the data
set itself, where a run names one of the ten.)

The matrices are data of others (Yang, Akimoto, Kim and Udell, "OBOE: Collaborative Filtering for
AutoML Model Selection", 2019). They are read from CSV files: a row per dataset, a column per
configuration, which is a dictionary as text.
"""

from __future__ import annotations

import ast
import csv
import gzip
import itertools
import re
import zlib
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from metatpe.bench import data
from metatpe.bench.problems import Floats, Problem
from metatpe.bench.tables import Branches, Grid, tabular_problem

_PREFIX = "oboe/"
NAMES = tuple(
    f"oboe/{i}" for i in (3, 316, 721, 774, 853, 933, 1011, 1127, 1442, 1501, 1560, 40670)
)
PATTERN = re.compile(r"oboe/([1-9]\d*)")

_PAST = tuple(f"oboe/{i}" for i in (44, 446, 761, 834, 923, 1005, 1129, 1448, 1515, 4538, 40704))
_N_PAST = 10
_OBJECTIVES = ("error", "run_time")
_FILES = {  # as the authors call them, and compressed
    "error": ("error_matrix.csv", "error.csv.gz"),
    "run_time": ("runtime_matrix.csv", "runtime.csv.gz"),
}
Column = tuple[str, dict[str, Any]]  # an algorithm and its hyperparameters


def load(name: str) -> Problem:
    """Return one problem of the suite.

    Raises:
        FileNotFoundError: If a matrix is in none of the places where it is looked for.
        ValueError: If a file is not a matrix of oboe, or has no such dataset.
    """
    return tabular_problem(
        name,
        _table(int(name.removeprefix(_PREFIX)), _find("error"), _find("run_time")),
        objective_names=_OBJECTIVES,
        directions=("minimize", "minimize"),
        log_objectives=(False, True),
    )


def past(name: str) -> tuple[str, ...]:
    """Return the past of a problem: ten other datasets."""
    return tuple(other for other in _PAST if other != name)[:_N_PAST]


def data_sets() -> list[int]:
    """Return the numbers of all datasets."""
    return sorted(_matrix(_find("error"))[1])


def data_folders() -> tuple[Path, ...]:
    """Return where the matrices are looked for, in this order."""
    return data.data_folders("oboe")


def _find(objective: str) -> Path:
    folders, names = data_folders(), _FILES[objective]
    if found := data.find_file(folders, *names):
        return found
    raise FileNotFoundError(
        f"the matrix {names[0]} of oboe is not in {' or '.join(map(str, folders))}. It is data of "
        "Yang et al. (2019) and inside the wheel of oboe 0.2.0, which is a zip file (pip download "
        "--no-deps oboe==0.2.0). Put error_matrix.csv and runtime_matrix.csv of its folder "
        f"oboe/defaults/Oboe into {folders[-1]}, or into a folder oboe and set METATPE_DATA to "
        "the folder above it."
    )


# The table of one dataset ----------------------------------------------------------------------


def _table(dataset: int, *files: Path) -> Branches:
    """Return the objectives of a dataset, a file per objective."""
    read = [_matrix(file) for file in files]
    columns = read[0][0]
    for file, (found, rows) in zip(files, read, strict=True):
        if found != columns:
            raise ValueError(f"{file} has other columns than {files[0]}, download both again.")
        if dataset not in rows:
            near = sorted(sorted(rows, key=lambda i: abs(i - dataset))[:2])
            raise ValueError(
                f"oboe has no dataset {dataset}; the nearest are {' and '.join(map(str, near))}."
            )
    values = np.stack([rows[dataset] for _, rows in read], axis=1)[:, None]
    try:
        return _branches([_column(text) for text in columns], values)
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        raise _not_a_matrix(files[0], error) from error


@cache  # the problems of a suite share the files
def _matrix(file: Path) -> tuple[tuple[str, ...], dict[int, Floats]]:
    """Return the columns of a file, and the row of each dataset."""
    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(file, "rt", encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        found = {int(row[0]): np.array(row[1:], dtype=np.float64) for row in rows}
        if not found or any(row.shape != (len(header) - 1,) for row in found.values()):
            raise ValueError("it must have rows, all of the same length")
        return tuple(header[1:]), found
    except (ValueError, IndexError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _not_a_matrix(file, error) from error


def _not_a_matrix(file: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{file} is not a matrix of oboe, download it again ({type(error).__name__}: {error})."
    )


def _column(text: str) -> Column:
    entries = ast.literal_eval(text)
    return entries["algorithm"], entries["hyperparameters"]


def _branches(columns: Sequence[Column], values: Floats) -> Branches:  # (n, 1, 2)
    """Return the tables of all algorithms."""
    tables = {}
    for algorithm in sorted({algorithm for algorithm, _ in columns}):
        here = [i for i, (other, _) in enumerate(columns) if other == algorithm]
        tables[algorithm] = _grid(algorithm, [columns[i][1] for i in here], values[here])
    return Branches("algorithm", tables)


def _grid(algorithm: str, settings: Sequence[dict[str, Any]], values: Floats) -> Grid:
    """Return the table of one algorithm; its settings may be in any order."""
    levels = {name: _levels({s[name] for s in settings}) for name in sorted(settings[0])}
    levels = {name: found for name, found in levels.items() if len(found) > 1}
    table = np.empty_like(values)
    table[_rows(algorithm, levels, settings)] = values
    unordered = frozenset(f"{algorithm}.{n}" for n, v in levels.items() if not _is_ordered(v))
    return Grid({f"{algorithm}.{n}": v for n, v in levels.items()}, unordered, table)


def _rows(
    algorithm: str, levels: dict[str, tuple[Any, ...]], settings: Sequence[dict[str, Any]]
) -> list[int]:
    """Return the row of each setting in the grid of an algorithm."""
    order = {
        combination: row for row, combination in enumerate(itertools.product(*levels.values()))
    }
    rows = [order[tuple(s[name] for name in levels)] for s in settings]
    if sorted(rows) != list(range(len(order))):
        raise ValueError(
            f"{algorithm} must have each of {len(order)} combinations once, but there are "
            f"{len(set(rows))} in {len(rows)} columns"
        )
    return rows


def _levels(values: Collection[Any]) -> tuple[Any, ...]:
    return tuple(sorted(values)) if _is_ordered(values) else tuple(sorted(values, key=str))


def _is_ordered(values: Collection[Any]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
