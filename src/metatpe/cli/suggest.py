"""`metatpe suggest`."""

from __future__ import annotations

import csv
import io
import keyword
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import optuna
import typer
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from rich.table import Table
from rich.text import Text

from metatpe.cli.common import (
    AsJson,
    Defaults,
    Storage,
    Terminal,
    console,
    load_stored,
    load_study,
    plain_failures,
    print_json,
    table_of,
)
from metatpe.cli.completion import complete_study
from metatpe.cli.tasks import parse_default
from metatpe.past.known import Past
from metatpe.past.portfolio import Member, joined_space, portfolio
from metatpe.past.ranges import GoodRange, good_ranges, volume_left
from metatpe.past.read.storage import masked, open_storage, plain_errors, study_errors
from metatpe.past.read.studies import as_tasks, load_tasks, study_names
from metatpe.past.read.summary import (
    Objectives,
    Summary,
    agreed_objectives,
    nothing_left,
    summarise,
)
from metatpe.past.task import Task
from metatpe.space import Space, shown
from metatpe.study.trials import signs_of, used_distributions
from metatpe.tuning.batch import Choice, next_batch
from metatpe.tuning.setup import SamplerName
from metatpe.viz.style import value_text
from metatpe.viz.weights import described
from metatpe.words import counted, listed

_FEW = 3  # past studies that are listed one by one
_N_LEFT_OUT = 5  # studies that are named when they are left out
_STDOUT = Path("-")


PastStudies = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="STUDY",
        help="Past studies of the storage: names or patterns; all if none.",
        autocompletion=complete_study,
    ),
]
Number = Annotated[int, typer.Option("--k", "-n", min=1, help="How many configurations.")]
Ranges = Annotated[
    bool, typer.Option("--ranges", help="Print the ranges worth searching instead.")
]
Mass = Annotated[float, typer.Option(help="Share of the good trials that a range holds.")]
RunningStudy = Annotated[
    str | None,
    typer.Option(
        metavar="STUDY",
        help="Print the next configurations of this study instead.",
        autocompletion=complete_study,
    ),
]
OfStudy = Annotated[
    SamplerName, typer.Option(help="The sampler of `--study`, as in `metatpe tune`.")
]
Seed = Annotated[int | None, typer.Option(min=0, help="Makes the suggestions reproducible.")]
Enqueue = Annotated[
    str | None,
    typer.Option(
        metavar="STUDY",
        help="Enqueue the configurations in this study, which is created if needed.",
        autocompletion=complete_study,
    ),
]
CsvFile = Annotated[
    Path | None,
    typer.Option(
        "--csv", metavar="FILE", help="Write the configurations to a CSV file; `-` prints them."
    ),
]


def suggest(
    storage: Storage,
    past: PastStudies = None,
    k: Number = 5,
    ranges: Ranges = False,
    mass: Mass = 0.9,
    study: RunningStudy = None,
    sampler: OfStudy = "transfer",
    seed: Seed = None,
    enqueue: Enqueue = None,
    csv_file: CsvFile = None,
    default: Defaults = None,
    as_json: AsJson = False,
) -> None:
    """Suggest configurations and ranges from past studies, before the first trial.

    By default, the command prints configurations that together do well on the past studies, the
    most useful one first. For each it shows the values that models of the past studies predict,
    and the past studies that it was chosen for. `--enqueue STUDY` adds them to a study. If the
    study does not exist, it is created with the objectives of the past studies.

    `--ranges` prints for each parameter the interval or the choices that hold 90 % (`--mass`) of
    the good trials of the past studies, and Python code that asks for them.

    `--study STUDY` prints the next configurations of a running study. Each is chosen as if the
    ones before were running. The storage is not changed.

    Examples:

    `metatpe suggest --storage sqlite:///studies.db --from 'resnet-*' --k 5 --enqueue new`

    `metatpe suggest --storage sqlite:///studies.db --from 'resnet-*' --ranges`

    `metatpe suggest --storage sqlite:///studies.db --from 'resnet-*' --study new -n 4 --json`
    """
    with plain_failures():
        _check_options(ranges, study, enqueue, csv_file, as_json)
        opened = open_storage(storage)
        like = _like(opened, study, enqueue)
        defaults = dict(parse_default(text) for text in default or ())
        sources = _read(opened, past, like, defaults)
        if study is not None and like is not None:
            _suggest_next(like, sources, k, sampler, seed, csv_file, as_json=as_json)
        elif ranges:
            _suggest_ranges(sources, mass, as_json=as_json)
        else:
            members = _portfolio(sources, k, like)
            creation = _Creation.of(enqueue, sources) if enqueue and like is None else None
            _show_portfolio(members, sources, csv_file, as_json=as_json)
            if len(members) < k:
                n = counted(len(members), "configuration")
                _say(f"{n} instead of {k}: another one would add less than 1 %.")
            if enqueue:
                _enqueue(members, like, creation, opened, storage)


def _check_options(
    ranges: bool, study: str | None, enqueue: str | None, csv_file: Path | None, as_json: bool
) -> None:
    """Refuse options that exclude each other."""
    if study is not None and (ranges or enqueue is not None):
        raise ValueError(
            "--study cannot be combined with --ranges or --enqueue; choose one of them."
        )
    if ranges and (enqueue is not None or csv_file is not None):
        raise ValueError(
            "--ranges cannot be combined with --enqueue or --csv; choose one of them."
        )
    if as_json and csv_file == _STDOUT:
        raise ValueError("--json and --csv - both print; choose one of them.")
    if csv_file is not None and not csv_file.parent.is_dir():
        raise ValueError(f"there is no folder {csv_file.parent}.")


def _like(storage: BaseStorage, study: str | None, enqueue: str | None) -> Study | None:
    """Return the study that configurations are for, None where there is none yet."""
    if study is not None:
        return load_study(storage, study)
    with plain_errors(storage):
        is_stored = enqueue in optuna.get_all_study_names(storage)
    return load_stored(storage, enqueue) if enqueue and is_stored else None


# The past ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """A past study: its task, and the objectives as the study has them."""

    name: str  # in the storage; a task has another one where the samplers use that for the study
    task: Task
    objectives: tuple[str, ...]  # empty where they have no names
    directions: tuple[str, ...]

    def values(self, losses: Sequence[float]) -> list[float | None]:
        """Return losses as values of the objectives; None where there is no number."""
        values = (np.array(losses) * signs_of(self.directions) + 0.0).tolist()  # no -0.0
        return [value if math.isfinite(value) else None for value in values]

    @property
    def labels(self) -> list[str]:
        """The names of the objectives, or their numbers."""
        return list(self.objectives) or [str(i) for i in range(len(self.directions))]


def _read(
    storage: BaseStorage, names: Sequence[str] | None, like: Study | None, defaults: dict[str, Any]
) -> list[_Source]:
    """Return the past studies that can be used; what is left out is said.

    Raises:
        ValueError: There is none (for a study with trials: none of those that were named), or
            they have different numbers of objectives.
    """
    own = None if like is None else like.study_name
    wanted = names or [name for name in study_names(storage, "*") if name != own]
    found = summarise(storage, wanted, like=like, defaults=defaults)
    usable = {s.study: s for s in found if not s.left_out}
    left_out = [s for s in found if s.left_out]
    if not usable and (names or like is None):
        raise ValueError(nothing_left(left_out))
    _say_left_out(left_out)
    loaded = load_tasks(storage, list(usable), defaults=defaults) if usable else []
    _check_objectives(loaded)
    return [
        _Source(stored.name, task, task.objective_names, tuple(usable[stored.name].directions))
        for stored, task in zip(loaded, as_tasks(loaded), strict=True)
    ]


def _say_left_out(left_out: Sequence[Summary]) -> None:
    for summary in left_out[:_N_LEFT_OUT]:
        _say(f"left out: {summary.study}: {summary.left_out}")
    if more := left_out[_N_LEFT_OUT:]:
        _say(f"left out: {len(more)} more")


def _check_objectives(tasks: Sequence[Task]) -> None:
    examples = {task.n_objectives: task.name for task in reversed(tasks)}
    if len(examples) > 1:
        found = " and ".join(f"{m} (such as {examples[m]!r})" for m in sorted(examples))
        raise ValueError(
            f"the past studies have {found} objectives; choose those that agree with --from."
        )


def _say(text: str) -> None:
    Terminal(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)


# Configurations that serve the past studies -----------------------------------------------------


def _portfolio(sources: Sequence[_Source], k: int, like: Study | None) -> list[Member]:
    """Return the portfolio, within the ranges of the study where it has used any."""
    tasks = [source.task for source in sources]
    if not tasks:
        raise ValueError("there is no past study.")
    space = joined_space(tasks).distributions
    used = used_distributions(like.get_trials(deepcopy=False)) if like else {}
    own = {name: used[name] for name in space if name in used}
    return portfolio(tasks, k, space={**space, **own})


def _show_portfolio(
    members: Sequence[Member],
    sources: Sequence[_Source],
    csv_file: Path | None,
    *,
    as_json: bool,
) -> None:
    by_name = {source.task.name: source for source in sources}
    found = [_as_dict(member, by_name) for member in members]
    if csv_file is not None:
        _write_csv(csv_file, [_as_row(each) for each in found])
    if as_json:
        past = [
            {
                "study": source.name,
                "objectives": source.labels,
                "directions": list(source.directions),
            }
            for source in sources
        ]
        print_json({"past": past, "configurations": found})
    elif csv_file != _STDOUT:
        console.print(_table_of_members(members, by_name))


def _as_dict(member: Member, sources: Mapping[str, _Source]) -> dict[str, Any]:
    reached = [(sources[name], losses) for name, losses in member.expected.items()]
    expected = {
        source.name: dict(zip(source.labels, source.values(losses), strict=True))
        for source, losses in reached
    }
    serves = [sources[name].name for name in member.serves]
    return {"params": dict(member.params), "serves": serves, "expected": expected}


def _as_row(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as a row of a table; parameters are named as Optuna names them."""
    params = {f"params_{name}": value for name, value in found["params"].items()}
    expected = {
        f"expected_{study}_{objective}": value
        for study, values in found["expected"].items()
        for objective, value in values.items()
    }
    return {**params, "serves": "; ".join(found["serves"]), **expected}


def _table_of_members(members: Sequence[Member], sources: Mapping[str, _Source]) -> Table:
    rows = []
    for i, member in enumerate(members, 1):
        serves = listed([sources[name].name for name in member.serves], _FEW)
        rows.append([str(i), _params_text(member.params), _expected(member, sources), serves])
    n = len(members[0].expected) if members else 0
    title = f"{counted(len(members), 'configuration')} for {counted(n, 'past study')}"
    return table_of(["", "configuration", "expected", "chosen for"], rows, title)


def _expected(member: Member, sources: Mapping[str, _Source]) -> str:
    """Return the expected values of each past study, of many the range of each objective."""
    reached = [(sources[name], sources[name].values(e)) for name, e in member.expected.items()]
    if len(reached) <= _FEW:
        lines = []
        for source, values in reached:
            texts = [_named(source, i, _number(value)) for i, value in enumerate(values)]
            lines.append(f"{source.name}: {', '.join(texts)}")
        return "\n".join(lines)
    by_objective: dict[str, list[float]] = {}
    for source, values in reached:
        for i, value in enumerate(values):
            known = by_objective.setdefault(_named(source, i, ""), [])
            known.extend([] if value is None else [value])
    return "\n".join(f"{name}{_span(values)}" for name, values in by_objective.items())


def _named(source: _Source, i: int, text: str) -> str:
    return f"{source.objectives[i]} {text}" if source.objectives else text


def _span(values: Sequence[float]) -> str:
    if not values:
        return "?"
    low, high = _number(min(values)), _number(max(values))
    return low if low == high else f"{low} to {high}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"


def _params_text(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value_text(value)}" for name, value in params.items())


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    found = dict.fromkeys(column for row in rows for column in row)
    # A parameter that the first configurations do not use still stands beside the others.
    columns = ["number", *sorted(found, key=lambda column: not column.startswith("params_"))]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({"number": i, **row} for i, row in enumerate(rows, 1))
    if path == _STDOUT:
        sys.stdout.write(text.getvalue())
        return
    path.write_text(text.getvalue(), "utf-8")
    _say(f"{path}, {counted(len(rows), 'configuration')}")


# Enqueueing -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Creation:
    """What a new study is to have."""

    name: str
    directions: tuple[str, ...]
    objectives: tuple[str, ...]  # empty where past studies have no names, or differ

    @classmethod
    def of(cls, name: str, sources: Sequence[_Source]) -> _Creation:
        """Take over what past studies agree on.

        Raises:
            ValueError: They have different directions.
        """
        advice = (
            f"create the study {name!r} with those that it is to have, or choose past studies "
            "that agree with --from."
        )
        past = {s.name: Objectives(s.directions, s.objectives) for s in sources}
        return cls(name, *agreed_objectives(past, advice))

    def study(self, storage: BaseStorage) -> Study:
        """Create the study."""
        with plain_errors(storage):
            study = optuna.create_study(
                study_name=self.name,
                storage=storage,
                directions=[StudyDirection[d.upper()] for d in self.directions],
            )
            if self.objectives:
                study.set_metric_names(list(self.objectives))
        names = self.objectives or [""] * len(self.directions)
        texts = [f"{d} {n}".strip() for d, n in zip(self.directions, names, strict=True)]
        _say(f"study {self.name!r} was created: {', '.join(texts)}")
        return study


def _enqueue(
    members: Sequence[Member],
    study: Study | None,
    creation: _Creation | None,
    storage: BaseStorage,
    url: str,
) -> None:
    if study is None:
        assert creation is not None
        study = creation.study(storage)
    with study_errors(storage, study.study_name, doing="written"):
        n_before = len(study.get_trials(deepcopy=False))
        for member in members:
            study.enqueue_trial(dict(member.params), skip_if_exists=True)
        n = len(study.get_trials(deepcopy=False)) - n_before
    known = f", {len(members) - n} existed already" if n < len(members) else ""
    count = counted(n, "configuration")
    _say(f"{count} enqueued in study {study.study_name!r} of {masked(url)}{known}")


# Ranges -----------------------------------------------------------------------------------------


def _suggest_ranges(sources: Sequence[_Source], mass: float, *, as_json: bool) -> None:
    tasks = [source.task for source in sources]
    past = Past(tasks, joined_space(tasks))
    found = good_ranges(past, mass)
    # What every configuration uses comes first: conditional parameters depend on some of it.
    ranges = dict(sorted(found.items(), key=lambda item: item[1].usage < 1.0))
    if as_json:
        print_json(
            {
                "past": [source.name for source in sources],
                "mass": mass,
                "volume": volume_left(ranges),
                "parameters": {
                    name: {
                        "searched": past.space.distributions[name],
                        "good": found.distribution,
                        "volume": found.volume,
                        "usage": found.usage,
                    }
                    for name, found in ranges.items()
                },
                "snippet": snippet(ranges),
            }
        )
        return
    console.print(_table_of_ranges(past.space, ranges, mass, len(past.names)))
    left = _percent(volume_left(ranges))
    console.print(Text(f"These ranges hold {left} of the volume of the searched space.\n"))
    typer.echo(snippet(ranges))


def _table_of_ranges(
    space: Space, ranges: Mapping[str, GoodRange], mass: float, n_past: int
) -> Table:
    rows = []
    for name, found in ranges.items():
        good = shown(found.distribution) if found.usage else "no good configuration uses it"
        searched = shown(space.distributions[name])
        rows.append([name, searched, good, _percent(found.volume), _percent(found.usage)])
    regions = f"{_percent(mass)} of the good regions of {counted(n_past, 'past study')}"
    return table_of(["parameter", "searched", "worth searching", "left", "used"], rows, regions)


def _percent(part: float) -> str:
    return f"{100 * part:.2g} %" if part < 0.995 else "100 %"


def snippet(ranges: Mapping[str, GoodRange]) -> str:
    """Return lines of Python that ask a trial for the parameters in their good ranges."""
    lines = []
    for variable, (name, found) in zip(_variables(ranges), ranges.items(), strict=True):
        line = f"{variable} = trial.{_call(name, found.distribution)}"
        if not found.usage:
            line = f"# {line}  # no good configuration uses it"
        elif found.usage < 1.0:
            line += f"  # used by {_percent(found.usage)} of the good configurations"
        lines.append(line)
    return "\n".join(lines)


def _variables(names: Iterable[str]) -> list[str]:
    """Return a name of a variable for each parameter, no two alike."""
    variables: list[str] = []
    for name in names:
        variable = re.sub(r"\W", "_", name)
        is_name = variable.isidentifier() and not keyword.iskeyword(variable)
        variable = variable if is_name else f"p_{variable}"
        while variable in (*variables, "trial"):
            variable += "_"
        variables.append(variable)
    return variables


def _call(name: str, distribution: BaseDistribution) -> str:
    if isinstance(distribution, CategoricalDistribution):
        choices = ", ".join(map(_literal, distribution.choices))
        return f"suggest_categorical({_literal(name)}, [{choices}])"
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    kind = "int" if isinstance(distribution, IntDistribution) else "float"
    arguments = [_literal(name), repr(distribution.low), repr(distribution.high)]
    if distribution.step not in (None, 1) or (kind == "float" and distribution.step):
        arguments.append(f"step={distribution.step!r}")
    if distribution.log:
        arguments.append("log=True")
    return f"suggest_{kind}({', '.join(arguments)})"


def _literal(value: Any) -> str:
    """Return Python for a value; a string in double quotes where nothing in it is escaped."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    text = repr(value)
    is_plain = isinstance(value, str) and text == f"'{value}'" and '"' not in value
    return f'"{value}"' if is_plain else text


# The next configurations of a study --------------------------------------------------------------


def _suggest_next(
    study: Study,
    sources: Sequence[_Source],
    n: int,
    sampler: SamplerName,
    seed: int | None,
    csv_file: Path | None,
    *,
    as_json: bool,
) -> None:
    tasks = [source.task for source in sources]
    chosen = next_batch(study, tasks, n, sampler=sampler, seed=seed)
    if csv_file is not None:
        _write_csv(csv_file, [_row_of_choice(choice) for choice in chosen])
    if as_json:
        names = [task.name for task in tasks]
        found = [_choice_as_dict(choice) for choice in chosen]
        head = {"study": study.study_name, "sampler": sampler, "past": names}
        print_json({**head, "configurations": found})
    elif csv_file != _STDOUT:
        console.print(_table_of_choices(chosen, study.study_name))


def _choice_as_dict(choice: Choice) -> dict[str, Any]:
    record = choice.record
    return {
        "params": choice.params,
        "reason": record.reason,
        "chosen": described(record),
        "sources": list(record.sources),
        "weights": record.weights,
    }


def _row_of_choice(choice: Choice) -> dict[str, Any]:
    params = {f"params_{name}": value for name, value in choice.params.items()}
    return {**params, "chosen": described(choice.record)}


def _table_of_choices(chosen: Sequence[Choice], name: str) -> Table:
    rows = []
    for i, choice in enumerate(chosen, 1):
        largest = list(choice.record.weights.items())[:_FEW]
        weights = ", ".join(f"{study} {weight:.2f}" for study, weight in largest)
        rows.append([str(i), _params_text(choice.params), described(choice.record), weights])
    title = Text(f"The next {counted(len(chosen), 'configuration')} of {name}")
    return table_of(["", "configuration", "chosen", "weights"], rows, title)
