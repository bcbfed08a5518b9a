"""Hyperparameter search that starts from what earlier searches learned."""

from metatpe.past.read.studies import load_tasks
from metatpe.past.similarity import gamma_similarity, importance
from metatpe.past.task import Task
from metatpe.report.callback import TransferCallback
from metatpe.samplers.meta_tpe import MetaTPESampler
from metatpe.samplers.transfer import TransferSampler
from metatpe.space import Space
from metatpe.study.record import TransferRecord, transfer_history

__version__ = "0.1.0"

__all__ = [
    "MetaTPESampler",
    "Space",
    "Task",
    "TransferCallback",
    "TransferRecord",
    "TransferSampler",
    "gamma_similarity",
    "importance",
    "load_tasks",
    "transfer_history",
]
