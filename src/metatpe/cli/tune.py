"""Tune a function or a command with the help of past studies.

The function takes an Optuna trial and returns the values of the objectives.

A command comes after `--`. Its parts in braces are replaced by values for each trial:
`{lr:log:1e-5:1e-1}`, `{depth:int:1:8}` or `'{act:relu|tanh}'`, which needs the quotes because of
the bar. Types are float, log, int and logint; `{lr}` repeats the same value. The last line of the
output must be JSON: a number, a list, or an object with the values by name. If the exit code is
not 0, the trial has failed, and the end of the output is stored.

Trials that are unlikely to end among the best are stopped early, if they report intermediate
values. A function calls `trial.report` and `trial.should_prune`. For a command, `--report`
describes the lines of its output that contain them: `{value}` is a number (once per objective),
`{step}` an integer, `{}` any text. Without `{step}` the lines are counted. A command that is
stopped is terminated, and killed after 5 s; its trial is pruned and keeps the values. The command
must not buffer its output. Buffering is switched off for Python; other programs may have to flush.

By default, a new study gets the number, names and directions of its objectives from the past
studies.

The same command continues an existing study. Ctrl-C stops the running evaluations: those
trials are marked as failed and do not count, and their configurations are enqueued, so that
the study continues with them. The same happens to trials of an earlier run whose processes
have ended.

If the storage is unavailable, the command waits for it. After `--storage-patience` seconds,
results are kept in files, and the next run stores them.

Examples:

`metatpe tune train.py:objective --study new --storage sqlite:///studies.db --from 'resnet-*'
--trials 50 --jobs 2`

`metatpe tune --study program --storage sqlite:///studies.db --from 'resnet-*' --trials 20 --
python train.py --lr {lr:log:1e-5:1e-1} --depth {depth:int:1:8}`

`metatpe tune --study pruned --storage sqlite:///studies.db --from 'resnet-*' --trials 20
--report 'epoch {step} error {value} cost {value}' -- python train.py --lr {lr:log:1e-5:1e-1}
--depth {depth:int:1:8}`
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence, Set

import typer
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from metatpe.cli.common import (
    AsJson,
    Defaults,
    Storage,
    Terminal,
    console,
    plain_failures,
    print_json,
    require_name,
    table_of,
)
from metatpe.cli.tasks import parse_default
from metatpe.cli.tune_options import (
    Directions,
    KeepGoing,
    Logs,
    NJobs,
    NTrials,
    ObjectiveNames,
    PastNames,
    Pruner,
    Report,
    Sampler,
    Seed,
    StoragePatience,
    StudyName,
    Timeout,
    Words,
)
from metatpe.past.read.storage import masked
from metatpe.past.read.tables import directions_of
from metatpe.pruning.pruner import TransferPruner
from metatpe.study.record import record_of
from metatpe.study.stops import stop_of
from metatpe.study.trials import front_of
from metatpe.tuning.claims import is_done
from metatpe.tuning.hope import HopelessError
from metatpe.tuning.objective import Command, parse
from metatpe.tuning.patience import DEFAULT_PATIENCE
from metatpe.tuning.setup import Setup, Tuning
from metatpe.tuning.tuner import Tuner
from metatpe.tuning.worker import ERROR
from metatpe.viz.style import value_text
from metatpe.viz.weights import described
from metatpe.words import counted

_ROWS = 15  # of the live table
_LINES = 15  # of the output of an evaluation that failed
_N_WEIGHTS = 3  # the largest ones are shown


def tune(
    words: Words,
    storage: Storage,
    study: StudyName,
    past: PastNames = None,
    sampler: Sampler = "auto",
    pruner: Pruner = "transfer",
    report: Report = None,
    direction: Directions = None,
    objective: ObjectiveNames = None,
    trials: NTrials = 100,
    jobs: NJobs = 1,
    timeout: Timeout = None,
    default: Defaults = None,
    logs: Logs = None,
    seed: Seed = None,
    storage_patience: StoragePatience = DEFAULT_PATIENCE,
    keep_going: KeepGoing = False,
    as_json: AsJson = False,
) -> None:
    with plain_failures():
        require_name(study)
        tuning = Tuning(
            objective=parse(words, report),
            storage=storage,
            study=study,
            sampler=sampler,
            pruner=pruner,
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
        _run(tuning, as_json=as_json)


# The help of the command is the text at the top of this file.
tune.__doc__ = __doc__


def _run(tuning: Tuning, *, as_json: bool) -> None:
    """Tune, show how it goes, and exit with the code that says how it ended."""
    shown_on = Terminal(stderr=True) if as_json else console
    view = _View(tuning, shown_on)
    tuner = Tuner(tuning, view.finished, view.message)
    view.begin(tuner.setup)
    with view.live(), view.hopeless():
        tuned = tuner.run()
    _report(tuned, tuning, shown_on, as_json=as_json)
    if tuner.is_stopped:
        view.message(_stopped_line(tuned, tuning.n_trials))
        raise typer.Exit(130)
    if not view.n_finished and tuning.timeout is None:
        view.message(
            f"no new trials: the study already has {counted(tuning.n_trials, 'trial')}; to "
            "continue it, give a larger number with --trials."
        )
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
        self._has_one_objective = False
        self._last: list[FrozenTrial] = []
        self._n_failed = 0
        self.n_finished = 0

    def begin(self, setup: Setup) -> None:
        """Show what the run starts with."""
        past = ", ".join(setup.sources) if setup.sources else "none"
        where = f"{self._tuning.study} in {masked(self._tuning.storage)}"
        self.message(f"study {where}, past studies: {past}")
        self.message(f"sampler: {type(setup.sampler).__name__}, {setup.why}")
        if not isinstance(setup.tuning.objective, Command) or setup.tuning.objective.report:
            self.message(_pruner_line(setup))
        directions, names = setup.objectives
        self._has_one_objective = len(directions) == 1
        named = [f"{way} {name}" for way, name in zip(directions, names, strict=False)]
        self.message(f"objectives: {', '.join(named or directions)}")
        for remark in setup.left_out:
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
        self.n_finished += 1
        self._n_failed += trial.state == TrialState.FAIL
        self._last = [*self._last, trial][-_ROWS:]
        best = front_of(study)
        front = {t.number for t in best}
        if self._live is not None:
            rows = [[str(t.number), *row_of(t, study, front)] for t in self._last]
            self._live.update(self._table(rows, _best_so_far(best, study)), refresh=True)
            return
        cells = [*row_of(trial, study, front), _best_so_far(best, study)]
        self.message(" | ".join([f"trial {trial.number}", *filter(None, cells)]))

    def _table(self, rows: Sequence[Sequence[str]] = (), best: str = "") -> Group:
        is_best = "best" if self._has_one_objective else "front"
        columns = ("trial", "values", is_best, "chosen", "weights")
        table = table_of(columns, rows, Text(self._tuning.study))
        done = f"{self.n_finished} evaluated, {self._n_failed} failed"
        return Group(table, Text("; ".join(filter(None, [done, best, "Ctrl-C stops"]))))


def _pruner_line(setup: Setup) -> str:
    name = type(setup.pruner).__name__
    if not isinstance(setup.pruner, TransferPruner):
        return "pruner: none" if setup.tuning.pruner == "none" else f"pruner: {name}"
    if not setup.n_curves:
        return f"pruner: {name}, no past learning curves"
    return f"pruner: {name}, learning curves of {counted(setup.n_curves, 'past study')}"


def _stopped_line(study: Study, n_trials: int) -> str:
    trials = study.get_trials(deepcopy=False)
    n_waiting = sum(t.state == TrialState.WAITING for t in trials)
    first = f", starting with {counted(n_waiting, 'enqueued configuration')}" if n_waiting else ""
    n = f"{sum(is_done(t) for t in trials)} of {counted(n_trials, 'trial')}"
    return f"stopped after {n}; the same command continues the study{first}."


def row_of(trial: FrozenTrial, study: Study, front: Set[int]) -> list[str]:
    """Return values (or the error), whether it is one of the best, how it was chosen, weights."""
    is_best = "best" if len(study.directions) == 1 else "on the front"
    record = record_of(trial)
    largest = list(record.weights.items())[:_N_WEIGHTS] if record else []
    return [
        _values(trial, study),
        is_best if trial.number in front else "",
        described(record) if record else "enqueued",
        ", ".join(f"{name} {weight:.2f}" for name, weight in largest),
    ]


def _best_so_far(best: Sequence[FrozenTrial], study: Study) -> str:
    """Return the best value of one objective, or the size of the front of several."""
    if len(study.directions) > 1:
        return f"Pareto front: {counted(len(best), 'trial')}"
    return f"best so far: {_values(best[0], study)} (trial {best[0].number})" if best else ""


def _values(trial: FrozenTrial, study: Study) -> str:
    if trial.state == TrialState.PRUNED:
        return _pruned(trial)
    if trial.state != TrialState.COMPLETE:
        error = trial.user_attrs.get(ERROR, "")
        return f"{trial.state.name.lower()}{': ' if error else ''}{error}"
    values = [f"{value:.5g}" for value in trial.values]
    if study.metric_names:
        values = [f"{n}={v}" for n, v in zip(study.metric_names, values, strict=True)]
    return " ".join(values)


def _pruned(trial: FrozenTrial) -> str:
    stop = stop_of(trial)
    step = trial.last_step if stop is None else stop.step
    where = "" if step is None else f" at step {step}"
    if stop is None:
        return f"pruned{where}"
    if stop.expected is None:
        return f"pruned{where}: {'it diverged' if stop.reason == 'diverged' else 'its curve'}"
    return f"pruned{where}: expected {stop.expected:.5g}"


def _report(study: Study, tuning: Tuning, shown_on: Console, *, as_json: bool) -> None:
    trials, front = study.get_trials(deepcopy=False), front_of(study)
    if as_json:
        best = [{"trial": t.number, "values": t.values, "params": t.params} for t in front]
        n_trials = sum(is_done(t) for t in trials)
        states = [t.state for t in trials]
        counts = {
            "trials": n_trials,
            "complete": states.count(TrialState.COMPLETE),
            "pruned": states.count(TrialState.PRUNED),
        }
        print_json({"study": tuning.study, **counts, "front": best})
        return
    if not front:
        is_any = any(t.state == TrialState.COMPLETE for t in trials)
        shown_on.print(f"No trial {'satisfies the constraints' if is_any else 'was completed'}.")
        return
    rows = []
    for trial in front:
        params = ", ".join(f"{name}={value_text(v)}" for name, v in trial.params.items())
        rows.append((str(trial.number), _values(trial, study), params))
    title = "Best trial" if len(front) == 1 else f"Best trials ({len(front)})"
    shown_on.print(table_of(("trial", "values", "configuration"), rows, title))
