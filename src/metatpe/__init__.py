"""Hyperparameter search that learns from past Optuna studies."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatpe.past.portfolio import portfolio
    from metatpe.past.read.studies import load_tasks
    from metatpe.past.similarity import gamma_similarity, importance
    from metatpe.past.task import Task
    from metatpe.pruning.pruner import TransferPruner, report_values
    from metatpe.report.callback import TransferCallback
    from metatpe.report.trackers import MLflowCallback, WandbCallback
    from metatpe.samplers.meta_tpe import MetaTPESampler
    from metatpe.samplers.transfer import TransferSampler
    from metatpe.space import Space
    from metatpe.study.record import TransferRecord, transfer_history
    from metatpe.study.stops import PruningRecord, pruning_history

__version__ = "0.1.0"

__all__ = [
    "MLflowCallback",
    "MetaTPESampler",
    "PruningRecord",
    "Space",
    "Task",
    "TransferCallback",
    "TransferPruner",
    "TransferRecord",
    "TransferSampler",
    "WandbCallback",
    "gamma_similarity",
    "importance",
    "load_tasks",
    "portfolio",
    "pruning_history",
    "report_values",
    "transfer_history",
]

_MODULES = {
    "MLflowCallback": "metatpe.report.trackers",
    "MetaTPESampler": "metatpe.samplers.meta_tpe",
    "PruningRecord": "metatpe.study.stops",
    "Space": "metatpe.space",
    "Task": "metatpe.past.task",
    "TransferCallback": "metatpe.report.callback",
    "TransferPruner": "metatpe.pruning.pruner",
    "TransferRecord": "metatpe.study.record",
    "TransferSampler": "metatpe.samplers.transfer",
    "WandbCallback": "metatpe.report.trackers",
    "gamma_similarity": "metatpe.past.similarity",
    "importance": "metatpe.past.similarity",
    "load_tasks": "metatpe.past.read.studies",
    "portfolio": "metatpe.past.portfolio",
    "pruning_history": "metatpe.study.stops",
    "report_values": "metatpe.pruning.pruner",
    "transfer_history": "metatpe.study.record",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: SciPy alone takes as long as Optuna."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
