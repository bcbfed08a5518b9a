"""How alike the datasets of a suite are: where their best configurations lie.

The best are the first 1 % of HPOlib and 5 % of NMT-Bench by non-domination rank, then crowding
distance, of the mean over repeats. Their count is cumulated over the rows of the table: a row is
the same configuration in every dataset of a suite, so like curves mean like tasks. For NMT-Bench
also how many of the best have how many BPE symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metatpe.bench.figures.figure import SUITES, Figure, Measure, Table
from metatpe.bench.figures.style import ORDERED, legend_under, panels, title_of
from metatpe.bench.problems import Problem, get_suite, problem_names
from metatpe.bench.records import Trace
from metatpe.bench.tables import Ints
from metatpe.tpe.pareto import order

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_SHARES = {"hpolib": 0.01, "nmt": 0.05}
CUMULATED, BPE = "best up to this row", "best with so many BPE symbols"


def best_rows(problem: Problem, share: float) -> Ints:
    """Return the rows of the best configurations of a table, in the order of the rows."""
    assert problem.table is not None
    losses = problem.losses(problem.table.mean(axis=1))
    ordered = order(losses, np.zeros(len(losses)))
    return np.sort(ordered[: math.ceil(share * len(losses))])


def _table_of_distances(traces: Sequence[Trace], measure: Measure) -> Table:
    import pandas as pd

    parts = []
    for suite, share in _SHARES.items():
        for problem in get_suite(suite):
            rows = best_rows(problem, share)
            parts.append(_part(CUMULATED, problem, rows, np.arange(1, len(rows) + 1)))
            if suite == "nmt":
                bpe = problem.levels["bpe"]
                assert problem.table is not None
                levels = rows * len(bpe) // len(problem.table)  # its first parameter, row-major
                counts = np.bincount(levels, minlength=len(bpe))
                parts.append(_part(BPE, problem, np.array(bpe), counts))
    return pd.concat(parts, ignore_index=True)


def _part(what: str, problem: Problem, x: Ints, count: Ints) -> Table:
    import pandas as pd

    return pd.DataFrame({"problem": problem.name, "count_of": what, "x": x, "count": count})


def _draw(table: Table) -> Picture:
    picture, axes = panels(1, 3, 3.1)
    cumulated = table[table["count_of"] == CUMULATED]
    for axis, (suite, share) in zip(axes[0], _SHARES.items(), strict=False):
        here = cumulated[cumulated["problem"].str.startswith(f"{suite}/")]
        groups = here.groupby("problem", sort=False)
        for line, (problem, rows) in zip(ORDERED, groups, strict=False):
            x, count = [0, *rows["x"]], [0, *rows["count"]]
            look = {**line.look, "markevery": (0.1, 0.2), "label": title_of(problem)}
            axis.step(x, count, where="post", **look)
        axis.set(title=f"best {share:.0%} of {SUITES[suite]}", xlabel="configuration (row)")
        axis.set(ylabel="cumulated count", xlim=(0, None), ylim=(0, None))
        legend_under(axis)
    _draw_bars(axes[0, 2], table[table["count_of"] == BPE])
    return picture


def _draw_bars(axis: Any, table: Table) -> None:
    groups = list(table.groupby("problem", sort=False))
    width = 0.8 / len(groups)
    for nth, (problem, rows) in enumerate(groups):
        axis.bar(
            np.arange(len(rows)) + (nth - (len(groups) - 1) / 2) * width,
            rows["count"],
            width,
            color=ORDERED[nth].colour,
            hatch=("", "////", "....")[nth % 3],
            edgecolor="white",
            linewidth=0.3,
            label=title_of(problem),
        )
    axis.set_xticks(range(len(rows)), [f"{bpe // 1000}k" for bpe in rows["x"]])
    axis.set(title="BPE symbols of these", xlabel="BPE symbols", ylabel="count")
    axis.grid(visible=False)
    legend_under(axis)


FIGURES = (
    Figure(
        name="dataset-dist",
        about="where the best configurations of each dataset lie, and the BPE symbols they have",
        numbers=_table_of_distances,
        draw=_draw,
        problems=tuple(name for suite in _SHARES for name in problem_names(suite)),
    ),
)
