"""What is drawn of learning curves: of past studies, of a study, and where it stopped trials.

Past studies may have other steps. Their curves are drawn over the steps of the study, by the share
of the length, see `pruning.curves`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from metatpe.past.curves import curves_in
from metatpe.past.read.studies import as_tasks
from metatpe.past.task import Task
from metatpe.pruning.curves import Length, length_of
from metatpe.space import Floats
from metatpe.study.stops import PruningRecord, stop_of
from metatpe.study.trials import curve_of, front_of, signs_of
from metatpe.viz.style import Shown, number, shortened
from metatpe.viz.ticks import spans_decades
from metatpe.words import counted

PAST, COMPLETE, BEST, RUNNING, PRUNED, STOP, EXPECTED = (
    "past studies",
    "completed",
    "best",
    "running or failed",
    "pruned",
    "where it was pruned",
    "expected end of pruned trials",
)
_MAX_PAST = 200  # curves of all past studies together; more are a grey area
_GROUPS = {TrialState.COMPLETE: COMPLETE, TrialState.PRUNED: PRUNED}
_LARGEST = 1e300  # of a value on an axis; there is room for a margin beyond it


class Drawn(NamedTuple):
    """One curve."""

    label: str
    steps: Floats
    values: Floats  # NaN where it is not finite


class Stop(NamedTuple):
    """Where a trial was pruned."""

    number: int
    step: float
    value: float
    end: float  # the last step of a completed trial
    expected: float | None
    deviation: float | None
    text: str


@dataclass(frozen=True, eq=False)
class Panel:
    """The curves of one objective, by the name of their group."""

    name: str
    groups: Mapping[str, Sequence[Drawn]]
    stops: Sequence[Stop]
    limits: tuple[float, ...] | None  # both ends of the axis
    is_log: bool


@dataclass(frozen=True, eq=False)
class LearningCurves(Shown):
    """Learning curves of past studies and of a study, one panel per objective."""

    panels: Sequence[Panel]


def joined(curves: Sequence[Drawn]) -> tuple[Floats, Floats]:
    """Return curves as one line with gaps between them."""
    gap = np.array([np.nan])
    xs = [part for curve in curves for part in (curve.steps, gap)]
    ys = [part for curve in curves for part in (curve.values, gap)]
    return np.concatenate([np.empty(0), *xs]), np.concatenate([np.empty(0), *ys])


def learning_curves_of(study: Study, sources: Sequence[Study | Task]) -> LearningCurves:
    """Return what is drawn of the learning curves of a study and of past studies."""
    directions = study.directions
    trials = [t for t in study.get_trials(deepcopy=False) if curve_of(t, directions)]
    best = {t.number for t in front_of(study)}
    ended = [curve_of(t, directions) for t in trials if t.state == TrialState.COMPLETE]
    length = length_of(ended)
    tasks = [t for t in as_tasks(sources) if len(t.curves) and t.n_objectives == len(directions)]
    panels = []
    for i, sign in enumerate(signs_of(directions).tolist()):
        groups: dict[str, list[Drawn]] = {PAST: _past(tasks, i, sign, length)}
        for trial in trials:
            group = BEST if trial.number in best else _GROUPS.get(trial.state, RUNNING)
            curve = {step: losses[i] for step, losses in curve_of(trial, directions).items()}
            groups.setdefault(group, []).append(_drawn(f"trial {trial.number}", curve, sign))
        stops = _stops(trials, groups.get(PRUNED, []), length)
        name = study.metric_names[i] if study.metric_names else "intermediate value"
        panels.append(_panel(name, groups, stops, sign))
    return LearningCurves(
        panels=panels,
        title="Learning curves",
        about=_about(study, trials, tasks),
        note="" if trials or tasks else "no intermediate values yet",
    )


def _drawn(label: str, curve: Mapping[int, float], sign: float) -> Drawn:
    steps = np.array(sorted(curve), dtype=np.float64)
    losses = np.array([curve[int(step)] for step in steps])
    return Drawn(label, steps, np.where(np.isfinite(losses), sign * losses, np.nan))


def _past(tasks: Sequence[Task], i: int, sign: float, length: Length | None) -> list[Drawn]:
    """Return some curves of each past study, over the steps of the study."""
    found = []
    for task in tasks:
        curves = curves_in(task.curves)
        own = length_of([c for row, c in curves.items() if np.isfinite(task.losses[row]).all()])
        numbers = np.linspace(0, len(curves) - 1, max(1, _MAX_PAST // len(tasks)))
        for row in [list(curves)[k] for k in np.unique(numbers.astype(np.int64))]:
            curve = {step: losses[i] for step, losses in curves[row].items()}
            drawn = _drawn(task.name, curve, sign)
            if own is not None and length is not None:
                drawn = drawn._replace(steps=_over(length, own.shares(sorted(curve))))
            found.append(drawn)
    return found


def _over(length: Length, shares: Floats) -> Floats:
    """Return the steps that lie at shares of a length."""
    whole = length.last - length.first + length.spacing
    return np.asarray(length.first - length.spacing + shares * whole)


def _stops(
    trials: Sequence[FrozenTrial], drawn: Sequence[Drawn], length: Length | None
) -> list[Stop]:
    """Return where trials were pruned; those of other pruners have no expectation."""
    pruned = [t for t in trials if t.state == TrialState.PRUNED]
    stops = []
    for trial, curve in zip(pruned, drawn, strict=True):
        record = stop_of(trial)
        is_known = ~np.isnan(curve.values)
        value = float(curve.values[is_known][-1]) if is_known.any() else np.nan
        step = float(curve.steps[-1])
        end = step if length is None else max(step, float(length.last))
        expected = (record.expected, record.deviation) if record else (None, None)
        stops.append(Stop(trial.number, step, value, end, *expected, _why(trial, step, record)))
    return stops


def _why(trial: FrozenTrial, step: float, record: PruningRecord | None) -> str:
    text = f"trial {trial.number}: pruned at step {step:.0f}"
    if record is None:
        return text
    if record.reason == "diverged":
        return f"{text}, it diverged"
    if record.expected is not None:
        spread = "" if record.deviation is None else f" ± {number(record.deviation)}"
        text += f", expected to reach {number(record.expected)}{spread}"
    if record.chance is not None and record.base is not None:
        text += f"; chance to be among the best {record.chance:.1%}, a new trial {record.base:.1%}"
    return text


def _panel(
    name: str, groups: Mapping[str, Sequence[Drawn]], stops: Sequence[Stop], sign: float
) -> Panel:
    own = [curve for group, curves in groups.items() for curve in curves if group != PAST]
    ends = [stop.expected for stop in stops if stop.expected is not None]
    values = np.concatenate([_finite(own or groups[PAST]), ends])
    if not len(values):
        return Panel(name, groups, stops, None, False)
    values = np.clip(values, -_LARGEST, _LARGEST)
    is_log = spans_decades(np.array([values.min(), np.quantile(values, 0.95)]))
    if not is_log:
        return Panel(name, groups, stops, tuple(_limits(values, sign)), is_log)
    limits = 10.0 ** np.clip(_limits(np.log10(values), sign), -300.0, 300.0)
    return Panel(name, groups, stops, tuple(limits), is_log)


def _limits(values: Floats, sign: float) -> Floats:  # (2,)
    """Return the ends of an axis on its scale; curves that diverge leave it."""
    best, most, worst = np.quantile(sign * values, [0.0, 0.95, 1.0])
    worst = min(worst, 2.0 * most - best)
    margin = 0.04 * (worst - best) or 0.04 * max(abs(best), 1.0)
    return np.asarray(np.sort(sign * np.array([best - margin, worst + margin])))


def _finite(curves: Sequence[Drawn]) -> Floats:
    values: Floats = np.concatenate([np.empty(0), *(curve.values for curve in curves)])
    return values[~np.isnan(values)]


def _about(study: Study, trials: Sequence[FrozenTrial], tasks: Sequence[Task]) -> str:
    n_pruned = sum(t.state == TrialState.PRUNED for t in trials)
    past = f", with curves of {counted(len(tasks), 'past study')}" if tasks else ""
    counts = f"{counted(len(trials), 'trial')}, {n_pruned} of them pruned"
    return f"{shortened(study.study_name)}: {counts}{past}"
