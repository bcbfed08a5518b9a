"""One thread for linear algebra while a configuration is chosen.

The matrices of a suggestion are small. With more threads they are multiplied no faster, and where
other processes need the cores, as the workers of a study do, the threads wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache  # looking for the libraries takes some milliseconds
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
