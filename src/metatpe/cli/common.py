"""What the commands share: the console, a progress bar, and how a command gives up."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NoReturn

import optuna
import typer
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from metatpe.extras import install_command
from metatpe.past.read.storage import masked, plain_errors, study_errors
from metatpe.past.read.studies import no_study
from metatpe.text import on_one_line, visible, visible_json


class Terminal(Console):
    """A console on which text from a storage or an objective cannot control the terminal.

    Whatever is printed passes here as segments of text; control codes of rich itself are marked.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return what is printed, with control characters made visible."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


console = Terminal()

Storage = Annotated[
    str,
    typer.Option(
        envvar="OPTUNA_STORAGE",
        help="An Optuna storage: a URL such as `sqlite:///studies.db` "
        "or `postgresql+psycopg://user@host/name`, `grpc://host:port`, or a journal file.",
    ),
]
Directions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DIRECTION", help="minimize or maximize, once per objective; default: minimize."
    ),
]
Defaults = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE", help="Value of a parameter that was fixed in past studies."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@contextlib.contextmanager
def plain_failures() -> Iterator[None]:
    """Turn errors about what the user gave into one sentence and the exit code 2; quiet Optuna."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    try:
        yield
    except FileNotFoundError as error:
        fail(f"there is no file {error.filename}." if error.filename else str(error))
    except (ValueError, OSError, ImportError) as error:
        fail(str(error))


def load_study(storage: BaseStorage, name: str) -> Study:
    """Return the study with exactly this name.

    Raises:
        ValueError: There is none; the message lists those that are close, or that there are.
    """
    with plain_errors(storage):
        stored = optuna.get_all_study_names(storage)
    if name not in stored:
        raise ValueError(no_study(name, stored))
    return load_stored(storage, name)


def load_stored(storage: BaseStorage, name: str) -> Study:
    """Return a study that the storage has."""
    with study_errors(storage, name):
        return optuna.load_study(study_name=name, storage=storage)


def table_of(
    columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | Text | None = None
) -> Table:
    """Return a table of plain text: names may hold brackets, which rich would take for markup."""
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(Text(on_one_line(name)), overflow="fold")
    for cells in rows:
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def say(text: str, *, err: bool = False) -> None:
    """Print a sentence; names in it may hold anything."""
    typer.echo(visible(text), err=err)


def require_name(study: str) -> None:
    """Refuse an empty name of a study.

    Raises:
        ValueError: It is empty.
    """
    if not study.strip():
        raise ValueError("--study is empty; give the study a name.")


def print_json(value: Any) -> None:
    """Print a value as JSON; a distribution as Optuna has it, and NaN and infinities as text.

    JSON has no such numbers, and other programs refuse a document that has one.
    """
    # A reader of JSON knows escapes for all characters, but not those of a stream that has no ü.
    is_unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(_plain(value), indent=2, ensure_ascii=not is_unicode, allow_nan=False)
    print(visible_json(text))


def _plain(value: Any) -> Any:
    """Return a value in what JSON has."""
    if isinstance(value, BaseDistribution):
        return _plain(json.loads(optuna.distributions.distribution_to_json(value)))
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def need(extra: str, *modules: str) -> None:
    """Stop with a sentence where an extra is not installed."""
    if any(importlib.util.find_spec(module) is None for module in modules):
        fail(f"this command needs more packages: {install_command(extra)}")


def fail(message: str) -> NoReturn:
    # A message may hold what the user typed, a mistyped URL for example.
    text = f"metatpe: {masked(message)}"
    Terminal(stderr=True).print(text, style="red", soft_wrap=True, markup=False)
    raise typer.Exit(2)


def progress_bar(on: Console = console, *, window: float = 30.0) -> Progress:
    """Return a progress bar; the time left follows from what was done in the last seconds."""
    return Progress(
        TextColumn("{task.description:<42}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=on,
        speed_estimate_period=window,
    )
