"""Measure how long a model takes to predict; used by the examples that minimise this time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

N_ROWS, N_REPEATS = 2000, 10


def prediction_time(model: Any, rows: np.ndarray) -> float:
    """Return microseconds per row, the best of some runs: other work only ever adds to it."""
    many = np.resize(rows, (N_ROWS, rows.shape[1]))
    seconds = []
    for _ in range(N_REPEATS):
        start = time.perf_counter()
        model.predict(many)
        seconds.append(time.perf_counter() - start)
    return min(seconds) / N_ROWS * 1e6
