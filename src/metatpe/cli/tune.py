"""`metatpe tune`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Annotated

import typer
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from metatpe.cli.common import (
    AsJson,
    Defaults,
    Directions,
    Storage,
    Terminal,
    console,
    plain_failures,
    print_json,
    require_name,
    table_of,
)
from metatpe.cli.tasks import parse_default
from metatpe.past.read.storage import masked
from metatpe.past.read.tables import directions_of
from metatpe.study.record import record_of
from metatpe.study.trials import front_of
from metatpe.tuning.claims import is_done
from metatpe.tuning.hope import HopelessError
from metatpe.tuning.objective import parse
from metatpe.tuning.patience import DEFAULT_PATIENCE
from metatpe.tuning.tuner import SAMPLERS, SamplerChoice, Tuner, Tuning
from metatpe.tuning.worker import ERROR
from metatpe.viz.style import value_text
from metatpe.viz.weights import described

_ROWS = 15  # of the live table
_LINES = 15  # of the output of an evaluation that failed
_N_WEIGHTS = 3  # the largest ones are shown


def tune(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE.py:FUNCTION | -- COMMAND", help="What to tune.", show_default=False
        ),
    ],
    storage: Storage,
    study: Annotated[str, typer.Option(help="The study to begin, or to go on with.")],
    past: Annotated[
        list[str] | None,
        typer.Option(
            "--from", metavar="STUDY", help="Past studies of the storage: names or patterns."
        ),
    ] = None,
    sampler: Annotated[
        SamplerChoice,
        typer.Option(
            help="`transfer` (TransferSampler) makes the most of each evaluation, `meta-tpe` "
            "(MetaTPESampler) suggests in milliseconds. `auto` is `transfer`, but `meta-tpe` for "
            "more than 1000 trials, or where evaluations of the study took less than 0.5 s."
        ),
    ] = "auto",
    direction: Directions = None,
    objective: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="What the objectives are called.")
    ] = None,
    trials: Annotated[
        int, typer.Option(min=1, help="How many the study is to have, with those of earlier runs.")
    ] = 100,
    jobs: Annotated[
        int, typer.Option(min=1, help="Processes that evaluate at the same time.")
    ] = 1,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Begin no trial after so many seconds.")
    ] = None,
    default: Defaults = None,
    logs: Annotated[
        Path | None, typer.Option(help="A folder to keep what the evaluations print.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Makes suggestions reproducible, with one job.")
    ] = None,
    storage_patience: Annotated[
        float,
        typer.Option(min=0, help="Seconds to wait for a storage that is away; results are kept."),
    ] = DEFAULT_PATIENCE,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Go on if the first three trials fail in the same way."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tune a function or a command, using what past studies have learned.

    The function takes an Optuna trial and returns the values of the objectives. In a command, the
    parts in braces are chosen for each trial: `{lr:log:1e-5:1e-1}`, `{layers:int:1:8}` or
    `{act:relu|tanh}` (kinds are float, log, int and logint; `{lr}` is the same value again). The
    last line of its output must be JSON: a number, a list, or an object with the values by name.
    If the exit code is not 0, the trial has failed and keeps the end of the output.

    What is not said about the objectives of a new study, how many there are, their names and
    directions, is taken from the past studies.

    The same command continues an existing study. Ctrl-C stops the running evaluations: those
    trials are marked as failed and do not count, and their configurations are enqueued, so that
    the study continues with them. The same is done for trials of an earlier run whose processes
    are gone.

    A storage that is away for a while is waited for. If it stays away for longer than
    `--storage-patience`, results are kept in files that the next run stores.

    Examples:

    `metatpe tune train.py:objective --study new --storage sqlite:///studies.db --from 'resnet-*'
    --trials 100 --jobs 4`

    `metatpe tune --study new --storage sqlite:///studies.db -- python train.py
    --lr {lr:log:1e-5:1e-1} --layers {layers:int:1:8} --act '{act:relu|tanh}'`
    """
    with plain_failures():
        require_name(study)
        tuning = Tuning(
            objective=parse(words),
            storage=storage,
            study=study,
            sampler=sampler,
            past=tuple(past or ()),
            directions=_directions(direction, objective),
            names=tuple(objective or ()),
            n_trials=trials,
            n_jobs=jobs,
            timeout=timeout,
            seed=seed,
            defaults=dict(parse_default(text) for text in default or ()),
            logs=logs,
            patience=storage_patience,
            keep_going=keep_going,
        )
        shown_on = Terminal(stderr=True) if as_json else console
        view = _View(tuning, shown_on)
        tuner = Tuner(tuning, view.finished, view.message)
        view.begin(tuner)
        with view.live(), view.hopeless():
            tuned = tuner.run()
        _report(tuned, tuning, shown_on, as_json=as_json)
    if tuner.is_stopped:
        view.message("stopped; the same command goes on with the study.")
        raise typer.Exit(130)
    if not any(t.state == TrialState.COMPLETE for t in tuned.get_trials(deepcopy=False)):
        raise typer.Exit(1)


def _directions(given: Sequence[str] | None, names: Sequence[str] | None) -> tuple[str, ...]:
    if not given:
        return ()
    return tuple(directions_of(list(given), len(names) if names else len(given)))


class _View:
    """The output during a run: a live table in a terminal, one line per trial elsewhere."""

    def __init__(self, tuning: Tuning, shown_on: Console) -> None:
        self._tuning = tuning
        self._console = shown_on
        self._live: Live | None = None
        self._last: list[FrozenTrial] = []
        self._n_failed = 0
        self._n_finished = 0

    def begin(self, tuner: Tuner) -> None:
        past = ", ".join(tuner.sources) if tuner.sources else "none"
        where = f"{self._tuning.study} in {masked(self._tuning.storage)}"
        self.message(f"study {where}, past studies: {past}")
        self.message(f"sampler: {SAMPLERS[tuner.sampler].__name__}, {tuner.why}")
        directions, names = tuner.objectives
        named = [f"{way} {name}" for way, name in zip(directions, names, strict=False)]
        self.message(f"objectives: {', '.join(named or directions)}")
        for remark in tuner.left_out:
            self.message(remark)

    @contextlib.contextmanager
    def live(self) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        with Live(self._table(), console=self._console, auto_refresh=False) as self._live:
            yield

    @contextlib.contextmanager
    def hopeless(self) -> Iterator[None]:
        """Show the end of what the last evaluation printed, if the run has no hope."""
        try:
            yield
        except HopelessError as error:
            lines = error.output.splitlines()[-_LINES:]
            if lines:
                self.message("\n".join(["the last of them printed:", *lines]))
            raise

    def message(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def finished(self, trial: FrozenTrial, study: Study) -> None:
        """Show a trial that has ended."""
        self._n_finished += 1
        self._n_failed += trial.state == TrialState.FAIL
        self._last = [*self._last, trial][-_ROWS:]
        front = {t.number for t in front_of(study)}
        if self._live is not None:
            rows = [[str(t.number), *row_of(t, study, front)] for t in self._last]
            self._live.update(self._table(rows, len(front)), refresh=True)
            return
        cells = [cell for cell in row_of(trial, study, front) if cell]
        self.message(" | ".join([f"trial {trial.number}", *cells, f"front of {len(front)}"]))

    def _table(self, rows: Sequence[Sequence[str]] = (), n_front: int = 0) -> Group:
        columns = ("trial", "values", "front", "chosen", "weights")
        table = table_of(columns, rows, Text(self._tuning.study))
        done = f"{self._n_finished} evaluated, {self._n_failed} of them failed"
        return Group(table, Text(f"{done}; front of {n_front}; Ctrl-C stops"))


def row_of(trial: FrozenTrial, study: Study, front: Set[int]) -> list[str]:
    """Return values (or the error), whether it is on the front, how it was chosen, and weights."""
    record = record_of(trial)
    largest = list(record.weights.items())[:_N_WEIGHTS] if record else []
    return [
        _values(trial, study),
        "on the front" if trial.number in front else "",
        described(record) if record else "enqueued",
        ", ".join(f"{name} {weight:.2f}" for name, weight in largest),
    ]


def _values(trial: FrozenTrial, study: Study) -> str:
    if trial.state != TrialState.COMPLETE:
        error = trial.user_attrs.get(ERROR, "")
        return f"{trial.state.name.lower()}{': ' if error else ''}{error}"
    values = [f"{value:.5g}" for value in trial.values]
    if study.metric_names:
        values = [f"{n}={v}" for n, v in zip(study.metric_names, values, strict=True)]
    return " ".join(values)


def _report(study: Study, tuning: Tuning, shown_on: Console, *, as_json: bool) -> None:
    trials, front = study.get_trials(deepcopy=False), front_of(study)
    if as_json:
        best = [{"trial": t.number, "values": t.values, "params": t.params} for t in front]
        n_trials = sum(is_done(t) for t in trials)
        n_complete = sum(t.state == TrialState.COMPLETE for t in trials)
        counts = {"trials": n_trials, "complete": n_complete}
        print_json({"study": tuning.study, **counts, "front": best})
        return
    rows = []
    for trial in front:
        params = ", ".join(f"{name}={value_text(v)}" for name, v in trial.params.items())
        rows.append((str(trial.number), _values(trial, study), params))
    title = f"Best trials ({len(front)})"
    shown_on.print(table_of(("trial", "values", "configuration"), rows, title))
