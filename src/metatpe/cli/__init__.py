"""The command `metatpe`: parsing and printing, nothing else. One module per group of commands.

A command is imported when it is used: `metatpe --version` and completion in a shell do not wait
for SciPy.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

import metatpe
from metatpe.cli.completion import mend_words
from metatpe.text import tolerate_any_text


class _Command(TyperCommand):
    """A command whose help has no type beside a flag, which takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


class _Commands(TyperGroup):
    """A group of commands that are imported when they are used."""

    members: ClassVar[Mapping[str, str]]  # name -> module:function

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(dict.fromkeys([*self.members, *super().list_commands(ctx)]))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.list_commands(ctx):
            # "Did you mean ...?" looks at the commands that are loaded.
            self.commands.update({name: self.get_command(ctx, name) for name in self.members})
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.members:
            return super().get_command(ctx, cmd_name)
        module, _, function = self.members[cmd_name].partition(":")
        alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        found = getattr(importlib.import_module(f"metatpe.cli.{module}"), function)
        alone.command(cmd_name, cls=_Command)(found)
        return typer.main.get_command(alone)


class _Root(_Commands):
    members: ClassVar[Mapping[str, str]] = {
        "demo": "demo:demo",
        "tune": "tune:tune",
        "suggest": "suggest:suggest",
        "tasks": "tasks:tasks",
        "similarity": "tasks:similarity",
        "import": "tasks:import_",
        "report": "report:report",
        "dashboard": "dashboard:dashboard",
    }


class _Bench(_Commands):
    members: ClassVar[Mapping[str, str]] = {
        "list": "bench:list_",
        "run": "bench:run",
        "table": "bench:table",
        "compact": "bench:compact",
        "pruning": "bench_pruning:pruning",
        "reproduce": "reproduce:reproduce",
    }


def _without_types_of_flags(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


app = typer.Typer(
    cls=_Root,
    help="Hyperparameter search that learns from past Optuna studies.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
_bench = typer.Typer(
    cls=_Bench,
    help="The paper's experiments: problems, methods, runs, tables and figures.",
    no_args_is_help=True,
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.")
    ] = False,
) -> None:
    if version:
        print(f"metatpe {metatpe.__version__}")
        raise typer.Exit


app.add_typer(_bench, name="bench")


def command_names() -> list[str]:
    """Return all commands as they are typed, `metatpe bench run` among them."""
    bench = [f"metatpe bench {name}" for name in _Bench.members]
    return [*(f"metatpe {name}" for name in _Root.members), *bench]


def main() -> None:
    """Run the command; Ctrl-C ends it without a traceback."""
    tolerate_any_text()
    mend_words(os.environ)
    app()
