"""`metatpe bench pruning`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from metatpe.bench.pruners import compare
from metatpe.bench.records import Record, read_records
from metatpe.bench.spending import Spending, spending
from metatpe.cli.bench import Folder, budgets_of, print_rows
from metatpe.cli.common import AsJson, need, plain_failures, print_json


def pruning(
    results: Folder,
    at: Annotated[
        str,
        typer.Option(metavar="TRAININGS", help="Epochs spent, in full training runs: 10,50."),
    ] = "10,50",
    figure: Annotated[
        Path | None, typer.Option(help="A PNG file for the regret against the epochs spent.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare pruners: epochs spent, regret beyond no pruning, and share of the best trials lost.

    The columns `at 10` and `at 50` show the mean regret after as many epochs as 10 and 50 full
    training runs take: 0 is the best of the problem, 1 the median of random configurations. They
    are empty if the runs end before that.

    Examples:

    `metatpe bench run --problem taskset-curves --method random --pruner none,transfer,median
    --out results/`

    `metatpe bench pruning results/ --figure regret.png`
    """
    with plain_failures():
        budgets = budgets_of(at)
        if figure is not None:
            need("bench", "matplotlib")
        records = [r for r in read_records(results) if isinstance(r, Record)]
        curves = spending(records)
        if figure is not None:
            from metatpe.bench.figures.spending import draw_spending

            draw_spending(curves, figure)
    rows = _rows(records, curves, budgets)
    if as_json:
        print_json(rows)
        return
    names = ("pruner", "method", "n_runs", "epochs", "regret", "lost", *_columns(budgets))
    shown = [{name: _short(row.get(name)) for name in names} for row in rows]
    print_rows("Pruners", shown, names)


def _rows(
    records: Sequence[Record], curves: Sequence[Spending], budgets: Sequence[int]
) -> list[dict[str, Any]]:
    """Return a row per pruner and method, those that spend the least first.

    Without runs of `none`, a row has fewer columns.
    """
    entries = {(e.pruner, e.method): asdict(e) for e in compare(records, required=False)}
    rows = []
    for curve in curves:
        known = {"pruner": curve.pruner, "method": curve.method, "n_runs": curve.n_runs}
        at = {name: curve.at(n) for name, n in zip(_columns(budgets), budgets, strict=True)}
        rows.append({**known, **entries.get((curve.pruner, curve.method), {}), **at})
    return sorted(rows, key=lambda row: (row["method"], row.get("epochs", 0.0), row["pruner"]))


def _columns(budgets: Sequence[int]) -> list[str]:
    return [f"at {n}" for n in budgets]


def _short(value: object) -> object:
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else value
