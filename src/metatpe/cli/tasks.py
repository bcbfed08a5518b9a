"""`metatpe tasks`, `metatpe similarity` and `metatpe import`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import numpy as np
import optuna
import typer
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from rich.table import Table
from rich.text import Text

from metatpe.cli.common import (
    AsJson,
    Defaults,
    Directions,
    Storage,
    Terminal,
    console,
    load_stored,
    plain_failures,
    print_json,
    progress_bar,
    require_name,
    say,
    table_of,
)
from metatpe.cli.completion import complete_study
from metatpe.past.read.frames import Column, read_csv
from metatpe.past.read.infer import Given, candidates, parse_parameter, parse_value
from metatpe.past.read.space_file import read_space
from metatpe.past.read.storage import masked, open_storage, plain_errors
from metatpe.past.read.studies import load_tasks, no_study
from metatpe.past.read.summary import Summary, store_task, summarise
from metatpe.past.read.suspects import suspects
from metatpe.past.read.tables import directions_of, task_of
from metatpe.past.similarity import similarity_matrix
from metatpe.past.task import Task
from metatpe.samplers.guards import MIN_GOOD
from metatpe.space import Floats, Space, shown
from metatpe.tpe.pareto import GAMMA, split
from metatpe.tuning.objective import Function
from metatpe.tuning.probe import parameters_of
from metatpe.words import counted

MAX_ROWS = 20_000  # above, a relational storage takes minutes
_WIDE = 10  # studies; above, a matrix does not fit a terminal

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="STUDY", help="Names or patterns; all if none.", autocompletion=complete_study
    ),
]


# tasks ----------------------------------------------------------------------------------------


def tasks(
    storage: Storage,
    names: Names = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="STUDY | FILE.py:FUNCTION | FILE",
            help="Compare with a study of the storage, an objective (`train.py:objective`), or a "
            "file with one parameter per line, such as `lr:log:1e-5:1e-1`.",
            autocompletion=complete_study,
        ),
    ] = None,
    default: Defaults = None,
    as_json: AsJson = False,
) -> None:
    """Show the studies of a storage, and how much of each a new study can use.

    `--like` shows which parameters each past study shares with the new one, which are dropped or
    missing, how many values lie outside the new ranges, and how many trials are usable. The new
    study need not exist. An objective is called to see which parameters it asks for. It is stopped
    after five seconds without a new parameter, and nothing is stored.

    Examples:

    `metatpe tasks --storage sqlite:///studies.db`

    `metatpe tasks --storage sqlite:///studies.db --like train.py:objective 'resnet-*'`
    """
    with plain_failures():
        opened = open_storage(storage)
        defaults = dict(parse_default(text) for text in default or ())
        new = None if like is None else _new_study(opened, like)
        found = summarise(opened, names or ["*"], like=new, defaults=defaults)
    if as_json:
        print_json([asdict(summary) for summary in found])
    elif like is None:
        for table in _tables_of_studies(found):
            console.print(table)
    else:
        console.print(_table_of_what_is_left(found, like))
        for summary in found:
            if summary.left_out:
                console.print(Text(f"left out: {summary.study}: {summary.left_out}"))


def _new_study(storage: BaseStorage, like: str) -> Study | Space:
    """Return the study, the parameters of the objective, or those of the file."""
    with plain_errors(storage):
        stored = optuna.get_all_study_names(storage)
    if like in stored:
        return load_stored(storage, like)
    if Path(like).is_file():
        return read_space(Path(like))
    if like.rpartition(":")[2].isidentifier() and ":" in like:
        return Space(parameters_of(Function.parse(like)))
    raise ValueError(
        f"{no_study(like, stored)} For a study that does not exist yet, give its objective, such "
        "as train.py:objective, or a file with one parameter per line."
    )


def parse_default(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE."""
    name, is_there, value = text.partition("=")
    if not name or not is_there:
        raise ValueError(f"--default {text!r} is not NAME=VALUE.")
    return name, parse_value(value)


def _tables_of_studies(found: Sequence[Summary]) -> list[Table]:
    """Return the studies, one line each, and the search spaces that they have, each once."""
    spaces: list[dict[str, BaseDistribution]] = []
    rows = []
    for s in found:
        pairs = zip(s.directions, s.objectives, strict=True)
        objectives = ", ".join(f"{direction} {name}" for direction, name in pairs)
        finished = f"{s.observations} of {s.trials}"
        if s.parameters and s.parameters not in spaces:
            spaces.append(s.parameters)
        space = _letter(spaces.index(s.parameters)) if s.parameters else ""
        rows.append([s.study, finished, objectives, space])
    tables = [table_of(["study", "finished trials", "objectives", "space"], rows)]
    for i, parameters in enumerate(spaces):
        lines = [(name, shown(distribution)) for name, distribution in parameters.items()]
        tables.append(table_of(["parameter", "range"], lines, f"Search space {_letter(i)}"))
    return tables


def _letter(i: int) -> str:
    """Return A, B, ..., Z, AA, ..."""
    return (_letter(i // 26 - 1) if i >= 26 else "") + chr(ord("A") + i % 26)


def _table_of_what_is_left(found: Sequence[Summary], like: str) -> Table:
    rows = []
    for s in found:
        if (left := s.left) is not None:
            outside = [f"{n} of {name}" for name, n in left.outside.items()]
            lists = (left.shared, outside, left.dropped, left.lacking)
            usable = f"{left.observations} of {s.observations}"
            rows.append([s.study, usable, *(", ".join(names) for names in lists)])
        elif not s.left_out:
            rows.append([s.study, f"{s.observations}", f"unknown: {like} has no trials yet"])
    columns = ["past study", "usable", "shared", "outside", "dropped", "missing"]
    return table_of(columns, rows, Text(f"Trials of past studies that can be used for {like}"))


# similarity -----------------------------------------------------------------------------------


def similarity(storage: Storage, names: Names = None, as_json: AsJson = False) -> None:
    """Show how similar the studies of a storage are: 1 if their best regions are the same.

    A similarity of 0 means that the best regions do not overlap. Each row compares a study with
    the others on its own most important parameters. A star marks a study with only one or two
    good trials; do not rely on its row.

    Example: `metatpe similarity --storage sqlite:///studies.db 'resnet-*'`
    """
    with plain_failures():
        found = load_tasks(storage, names or ["*"])
        if len(found) < 2:
            raise ValueError(
                f"a comparison takes two studies, but there is {found[0].name!r} alone."
                if found
                else "a comparison takes two studies, but none has two finished trials."
            )
    matrix = _compare_all(found)
    if as_json:
        print_json(_as_dict(found, matrix))
    elif len(found) > _WIDE:
        console.print(_table_of_nearest(found, matrix))
    else:
        console.print(_table_of_pairs(found, matrix))


def _compare_all(found: Sequence[Task]) -> Floats:
    """Return the similarity (n, n) of each to each."""
    with progress_bar(Terminal(stderr=True)) as progress:
        bar = progress.add_task("comparing", total=len(found))
        return similarity_matrix(found, step=lambda n: progress.update(bar, completed=n))


def _is_blind(task: Task) -> bool:
    """Return whether a task has too few good observations to be compared with others."""
    return int(split(task.losses, task.violation, GAMMA).sum()) < MIN_GOOD


def _as_dict(found: Sequence[Task], matrix: Floats) -> dict[str, Any]:
    names = [task.space.names for task in found]
    return {
        "studies": [task.name for task in found],
        "similarity": matrix.tolist(),
        "too_few_observations": [_is_blind(task) for task in found],
        "shared": [[[name for name in a if name in b] for b in names] for a in names],
    }


def _table_of_pairs(found: Sequence[Task], matrix: Floats) -> Table:
    numbers = [str(i) for i in range(1, len(found) + 1)]
    lines = zip(numbers, found, matrix, strict=True)
    rows = [[number, _starred(task), *(f"{s:.3f}" for s in row)] for number, task, row in lines]
    return table_of(["", "study", *numbers], rows)


def _table_of_nearest(found: Sequence[Task], matrix: Floats) -> Table:
    rows = []
    for i, row in enumerate(matrix):
        nearest = [j for j in np.argsort(-row, kind="stable") if j != i][:3]
        alike = ", ".join(f"{found[j].name} {row[j]:.3f}" for j in nearest)
        rows.append([_starred(found[i]), alike])
    return table_of(["study", "most alike"], rows)


def _starred(task: Task) -> str:
    return f"{task.name} *" if _is_blind(task) else task.name


# import ---------------------------------------------------------------------------------------


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A CSV file with a header and one row per evaluation."
        ),
    ],
    storage: Storage,
    study: Annotated[str, typer.Option(help="The name of the new study.")],
    objective: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="A column to optimise; may be repeated.")
    ],
    direction: Directions = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:KIND[:LOW:HIGH]",
            help="Type and range of a parameter: `lr:log`, `depth:int:1:8`, `act:relu|tanh`. The "
            "types are float, log, int, logint and choice. The rest is inferred.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that is not a parameter.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=2, help="Write at most this many rows, evenly spaced.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the table and write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Turn a CSV file of earlier runs into an Optuna study.

    Types and ranges that you do not give are inferred and shown before anything is written. Rows
    without a value for an objective are left out as failed.

    Example: `metatpe import runs.csv --storage sqlite:///studies.db --study old --objective error
    --objective seconds --param lr:log`
    """
    with plain_failures():
        require_name(study)
        columns = read_csv(file)
        given = dict(parse_parameter(text) for text in param or ())
        params = _parameters(columns, objective, given, ignore or ())
        directions = directions_of(direction or "minimize", len(objective))
        task = task_of(columns, objective, directions, params, study, str(file))
        chosen = _chosen_rows(len(task), rows, file)
        understood = _Understood(task, columns, given, directions, ignore or ())
        understood.show(len(chosen), as_json=as_json)
        if not dry_run:
            _write_study(task, storage, directions, chosen)


def _parameters(
    columns: dict[str, Column],
    objectives: Sequence[str],
    given: dict[str, Given],
    ignored: Sequence[str],
) -> dict[str, Given]:
    """Return all parameters of a table with what is known of them."""
    for name in ignored:
        if name not in columns:
            raise ValueError(f"--ignore {name}: there is no such column.")
    known = {_column_called(name, columns): what for name, what in given.items()}
    names, _ = candidates(columns, objectives)
    return {**{name: None for name in names if name not in ignored}, **known}


def _column_called(name: str, columns: dict[str, Column]) -> str:
    """Return the column of a parameter; in an export of Optuna, lr is the column params_lr."""
    return f"params_{name}" if name not in columns and f"params_{name}" in columns else name


def _chosen_rows(n: int, rows: int | None, file: Path) -> list[int]:
    if rows is None and n > MAX_ROWS:
        raise ValueError(
            f"{file} has {n:,} rows, which takes long to write as a study; say how many with "
            f"--rows, or use Task.from_csv, which reads them in seconds."
        )
    if rows is None or rows >= n:
        return list(range(n))
    return [int(i) for i in np.linspace(0, n - 1, rows).round()]


@dataclass(frozen=True)
class _Understood:
    """What was taken for what in a table."""

    task: Task
    columns: dict[str, Column]
    given: dict[str, Given]
    directions: Sequence[str]
    ignored: Sequence[str]

    def show(self, n: int, *, as_json: bool) -> None:
        """Show it for n rows."""
        task = self.task
        if as_json:
            about = {"study": task.name, "trials": n, "objectives": list(task.objective_names)}
            about |= {"directions": list(self.directions), "parameters": task.space.distributions}
            print_json({**about, "left_out": self._left_out(), "suspects": self._suspects()})
            return
        objectives = zip(task.objective_names, self.directions, strict=True)
        rows = [(name, "objective", direction) for name, direction in objectives]
        for name, distribution in task.space.distributions.items():
            rows.append((name, shown(distribution), self._how_known(name)))
        rows += [(name, "left out", reason) for name, reason in self._left_out().items()]
        console.print(table_of(["column", "is", ""], rows))
        for name, what in self._suspects().items():
            say(
                f"{name!r} looks like {what}; if it is not a parameter, add "
                f"--ignore {quote(name)}.",
                err=True,
            )

    def _how_known(self, name: str) -> str:
        return "given" if name in self.given else "inferred"

    def _suspects(self) -> dict[str, str]:
        inferred = [name for name in self.task.space.names if name not in self.given]
        return suspects(
            {name: self.columns[_column_called(name, self.columns)] for name in inferred}, inferred
        )

    def _left_out(self) -> dict[str, str]:
        """Return the columns that are neither parameters nor objectives, and why."""
        _, ids = candidates(self.columns, self.task.objective_names)
        used = {_column_called(name, self.columns) for name in self.task.space.names}
        used |= {*self.task.objective_names}
        return {
            name: "ignored"
            if name in self.ignored
            else "different in every row"
            if name in ids
            else "no parameter"
            for name in self.columns
            if name not in used
        }


def _write_study(task: Task, storage: str, directions: Sequence[str], rows: list[int]) -> None:
    opened = open_storage(storage, create=True)
    errors = Terminal(stderr=True)
    with progress_bar(errors) as progress:
        bar = progress.add_task("writing", total=len(rows))

        def step(n: int) -> None:
            progress.update(bar, completed=n)

        store_task(task, opened, task.name, directions, rows=rows, step=step)
    message = (
        f"{counted(len(rows), 'trial')} written to the study {task.name!r} of {masked(storage)}"
    )
    errors.print(message, markup=False, highlight=False, soft_wrap=True)
