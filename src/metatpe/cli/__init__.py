"""The command `metatpe`: parsing and printing, nothing else. One module a group of commands."""

from __future__ import annotations

from typing import Annotated

import typer

import metatpe
from metatpe.cli import bench, dashboard, demo, report, reproduce, suggest, tasks, tune
from metatpe.tuning.objective import tolerate_any_text

app = typer.Typer(
    help="Hyperparameter search that starts from what earlier searches learned.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.")
    ] = False,
) -> None:
    if version:
        print(f"metatpe {metatpe.__version__}")
        raise typer.Exit


app.command()(demo.demo)
app.command()(tune.tune)
app.command()(suggest.suggest)
app.command()(tasks.tasks)
app.command()(tasks.similarity)
app.command("import")(tasks.import_)
app.command()(report.report)
app.command()(dashboard.dashboard)
bench.app.command()(reproduce.reproduce)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command; Ctrl-C ends it without a traceback."""
    tolerate_any_text()
    app()
