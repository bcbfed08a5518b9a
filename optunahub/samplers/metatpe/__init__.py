"""metatpe for OptunaHub: the names of the library that a study needs."""

from metatpe import (
    MetaTPESampler,
    Task,
    TransferRecord,
    TransferSampler,
    load_tasks,
    transfer_history,
)

__all__ = [
    "MetaTPESampler",
    "Task",
    "TransferRecord",
    "TransferSampler",
    "load_tasks",
    "transfer_history",
]
