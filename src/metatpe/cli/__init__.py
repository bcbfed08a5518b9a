"""The command `metatpe`: parsing and printing, nothing else. One module a group of commands."""

from __future__ import annotations

from typing import Annotated

import typer

import metatpe
from metatpe.cli import _bench, _dashboard, _demo, _report, _reproduce, _tasks, _tune

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


app.command()(_demo.demo)
app.command()(_tune.tune)
app.command()(_tasks.tasks)
app.command()(_tasks.similarity)
app.command("import")(_tasks.import_)
app.command()(_report.report)
app.command()(_dashboard.dashboard)
_bench.app.command()(_reproduce.reproduce)
app.add_typer(_bench.app, name="bench")


def main() -> None:
    """Run the command; Ctrl-C ends it without a traceback."""
    app()
