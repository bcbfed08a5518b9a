r"""Means over seeds, as tables: what most figures draw.

With y_s(n) the measure of the run with seed s after n evaluations:

    mean(n), se(n) = standard deviation / sqrt(seeds)          one row each n
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from metatpe.bench.figures.figure import Measure, Table
from metatpe.bench.metrics import progress_curve
from metatpe.bench.plan import Run
from metatpe.bench.problems import get_problem
from metatpe.bench.records import Trace
from metatpe.tpe.hypervolume import standard_error

K = TypeVar("K", bound=Hashable)


def grouped(traces: Sequence[Trace], key: Callable[[Run], K]) -> dict[K, list[Trace]]:
    """Return the traces by what their runs have in common, by seed within."""
    groups: dict[K, list[Trace]] = {}
    for trace in sorted(traces, key=lambda t: t.run.seed):
        groups.setdefault(key(trace.run), []).append(trace)
    return groups


def labelled(table: Table, **labels: Any) -> Table:
    """Return a table with columns of one value each before its own."""
    for place, (name, value) in enumerate(labels.items()):
        table.insert(place, name, value)
    return table


def mean_curve(traces: Sequence[Trace], measure: Measure) -> Table:
    """Return the mean of runs that differ in their seed alone, one row per evaluation."""
    import pandas as pd

    problem = get_problem(traces[0].run.problem)
    curves = np.stack(
        [progress_curve(problem, t.values, scale=measure.scale, raw=measure.raw) for t in traces]
    )
    return pd.DataFrame(
        {
            "evaluations": np.arange(1, curves.shape[1] + 1),
            "mean": curves.mean(axis=0),
            "se": standard_error(curves),
            "seeds": len(curves),
        }
    )
