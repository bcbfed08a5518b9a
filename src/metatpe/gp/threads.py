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
    blas = _blas()
    if all(library.num_threads == 1 for library in blas.lib_controllers):
        yield  # a tenth of a millisecond less
        return
    with blas.limit(limits=1):
        yield


@cache  # looking for the libraries takes some milliseconds
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
