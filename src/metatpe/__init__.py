"""Hyperparameter search that starts from what earlier searches learned."""

from metatpe._callback import TransferCallback
from metatpe._record import TransferRecord, transfer_history
from metatpe.sampler import MetaTPESampler
from metatpe.similarity import gamma_similarity, importance
from metatpe.space import Space
from metatpe.tasks import Task, load_tasks
from metatpe.transfer_sampler import TransferSampler

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
