"""What the commands share: the console, a progress bar, and how a command gives up."""

from __future__ import annotations

import importlib.util
from typing import NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

console = Console()


def need(extra: str, *modules: str) -> None:
    """Stop with a sentence where an extra is not installed."""
    if any(importlib.util.find_spec(module) is None for module in modules):
        fail(f"this command needs more packages: pip install 'metatpe[{extra}]'")


def fail(message: str) -> NoReturn:
    Console(stderr=True).print(f"metatpe: {message}", style="red", soft_wrap=True, markup=False)
    raise typer.Exit(2)


def progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description:<42}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )
