"""One thread for linear algebra while a configuration is chosen.

The matrices of a suggestion are small. With more threads they are multiplied no faster, and where
other processes need the cores, as the workers of a study do, the threads wait for each other: a
suggestion can take fifty times as long. BLAS has one number of threads per process, so it is set
back when the last sampler that set it is done.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_entered: list[Any] = []  # the limit in force, once for each that is inside


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread, in all threads of the process."""
    with _lock:
        limit = _entered[-1] if _entered else _controller().limit(limits=1, user_api="blas")
        _entered.append(limit)
    try:
        yield
    finally:
        with _lock:
            _entered.pop()
            if not _entered:
                limit.restore_original_limits()


@cache  # looking for the libraries takes some milliseconds
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
