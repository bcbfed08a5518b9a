"""NMT-Bench: transformers for machine translation, from Somali, Swahili and Tagalog to English.

Objectives: `bleu`, maximised, and `decoding_time` in seconds, minimised. Each of the 648
configurations was trained once; a table is (648, 1, 2). Every parameter is an ordered grid. Where
a training failed, the files have BLEU 0 and 1,500 s, both; BLEU 0 alone is a bad model.

The tables are data of others and are read from JSON files, `so-en.json` and so on: a list for each
parameter and each objective, one entry a configuration, in any order (Zhang and Duh, "Reproducible
and Efficient Benchmarks for Hyperparameter Optimization of Neural Machine Translation Systems",
2020).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from metatpe.bench import data
from metatpe.bench.problems import Problem
from metatpe.bench.tables import Grid, Ints, tabular_problem

_PREFIX = "nmt/"
NAMES = ("nmt/so-en", "nmt/sw-en", "nmt/tl-en")

_OBJECTIVES = ("bleu", "decoding_time")
_LEVELS: dict[str, tuple[Any, ...]] = {
    "bpe": (1000, 2000, 4000, 8000, 16000, 32000),
    "n_layers": (1, 2, 4),
    "n_embed": (256, 512, 1024),
    "n_hidden": (1024, 2048),
    "n_heads": (8, 16),
    "initial_lr": (3e-4, 6e-4, 1e-3),
}
_N_CONFIGURATIONS = math.prod(map(len, _LEVELS.values()))


def load(name: str) -> Problem:
    """Return one problem of the suite.

    Raises:
        FileNotFoundError: If its table is in none of the places where it is looked for.
        ValueError: If the file is not a table of this suite.
    """
    return tabular_problem(
        name,
        _read(_find(f"{name.removeprefix(_PREFIX)}.json")),
        objective_names=_OBJECTIVES,
        directions=("maximize", "minimize"),
        log_objectives=(False, False),
    )


def data_folders() -> tuple[Path, ...]:
    """Return where the tables are looked for, in this order."""
    return data.data_folders("nmt-bench")


def _find(file_name: str) -> Path:
    folders = data_folders()
    if found := data.find_file(folders, file_name):
        return found
    raise FileNotFoundError(
        f"the NMT-Bench table {file_name} is not in {' or '.join(map(str, folders))}. It is data "
        "of Zhang and Duh (2020), released at https://github.com/Este1le/hpo_nmt; as JSON it is "
        "in the folder nmt-bench of https://github.com/nabenabe0928/meta-learn-tpe. Put the files "
        f"{', '.join(name.removeprefix(_PREFIX) + '.json' for name in NAMES)} into "
        f"{folders[-1]}, or into a folder nmt-bench and set METATPE_DATA to the folder above it."
    )


def _read(file: Path) -> Grid:
    try:
        columns = json.loads(file.read_text(encoding="utf-8"))
        found = np.array([columns[name] for name in _OBJECTIVES], dtype=np.float64)
        values = np.empty((_N_CONFIGURATIONS, 1, len(_OBJECTIVES)))
        values[_rows(columns), 0] = found.reshape(-1, _N_CONFIGURATIONS).T
        return Grid(_LEVELS, frozenset(), values)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{file} is not a table of NMT-Bench, download it again "
            f"({type(error).__name__}: {error})."
        ) from error


def _rows(columns: dict[str, list[float]]) -> Ints:
    levels = [[grid.index(v) for v in columns[name]] for name, grid in _LEVELS.items()]
    shape = tuple(map(len, _LEVELS.values()))
    rows: Ints = np.ravel_multi_index(tuple(np.array(levels, dtype=np.int64)), shape)
    if sorted(rows) != list(range(_N_CONFIGURATIONS)):
        raise ValueError(
            f"each of {_N_CONFIGURATIONS} configurations must be there once, "
            f"but there are {len(set(rows))} in {len(rows)} entries"
        )
    return rows
