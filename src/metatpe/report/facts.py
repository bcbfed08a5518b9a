"""What a report is about: a study, what it was given, and what became of it; numbers, no words.

A past study is known by its name. What is told of it comes from the records that the sampler left
with each trial (`transfer_history`), and, where the study itself is at hand, from its trials.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from metatpe.past.read.storage import masked
from metatpe.past.read.studies import why_not, why_not_task
from metatpe.past.read.summary import Left
from metatpe.past.similarity import gamma_similarity, importance
from metatpe.past.task import Task
from metatpe.report.saved import AgainstRuns, ByTurns, against_runs, by_turns
from metatpe.space import Space, shown
from metatpe.study.record import REST, TARGET, TransferRecord, transfer_history, turn_of
from metatpe.study.trials import front_of, n_usable, used_distributions
from metatpe.tpe.pareto import order
from metatpe.viz.runs import run_of
from metatpe.viz.weights import lane_of

SMALL = 0.1  # of the weight of a past task that is just like the study; below, it says nothing
UNPREDICTED = "what it predicts does not go with how this study's trials turned out."
_N_WARM = 100  # a warm start is one of so many best configurations of a past task


@dataclass(frozen=True)
class WarmStart:
    """A trial whose configuration a past task gave."""

    number: int
    place: int  # in the order of the past task, 1 for its best


@dataclass(frozen=True)
class Source:
    """What one past task gave."""

    name: str
    observations: int | None  # None: neither the study nor the task is at hand
    left: Left | None
    alike: float | None  # gamma-similarity to the study as it is now
    weights: Mapping[int, float]  # trial number -> weight, where it was large enough to be listed
    warm_starts: Sequence[WarmStart]
    say: Sequence[int]  # the trials that the past had a part in choosing, and it among them
    until: int | None  # the first trial from which on it had next to no weight, for good
    reason: str  # why it was not used at all; empty where it was

    @property
    def is_used(self) -> bool:
        """Whether it gave anything."""
        return not self.reason


@dataclass(frozen=True, eq=False)
class Facts:
    """All that a report tells of a study."""

    study: Study
    trials: Sequence[FrozenTrial]
    records: Sequence[TransferRecord]
    front: Sequence[FrozenTrial]
    sources: Sequence[Source]
    tasks: Mapping[str, Task]  # of the sources that are at hand
    without: Sequence[Study]  # runs of the same problem without a past
    saved: AgainstRuns | ByTurns | None

    @property
    def name(self) -> str:
        """The study's name."""
        return self.study.study_name

    @property
    def objectives(self) -> list[tuple[str, str]]:
        """Name and direction of each objective."""
        n = len(self.study.directions)
        names = self.study.metric_names or (
            ["value"] if n == 1 else [f"objective {i}" for i in range(n)]
        )
        directions = (direction.name.lower() for direction in self.study.directions)
        return list(zip(names, directions, strict=True))

    @cached_property
    def parameters(self) -> dict[str, str]:
        """Each parameter with its range, in words."""
        return {name: shown(d) for name, d in used_distributions(self.trials).items()}

    @property
    def states(self) -> dict[str, int]:
        """State -> number of trials, those that there are."""
        counted = Counter(trial.state for trial in self.trials)
        return {state.name.lower(): counted[state] for state in TrialState if counted[state]}

    @property
    def is_running(self) -> bool:
        """Whether a trial is being evaluated."""
        return any(trial.state == TrialState.RUNNING for trial in self.trials)

    @property
    def attributes(self) -> dict[str, str]:
        """What users have written to the study; a URL without its password."""
        return {name: masked(str(value)) for name, value in self.study.user_attrs.items()}

    @property
    def span(self) -> tuple[datetime.datetime, datetime.datetime] | None:
        """When the first trial began and the last one ended."""
        began = [t.datetime_start for t in self.trials if t.datetime_start]
        ended = [t.datetime_complete for t in self.trials if t.datetime_complete]
        return (min(began), max(ended)) if began and ended else None

    @property
    def seconds(self) -> float | None:
        """How long a trial takes, in the middle."""
        found = [t.duration.total_seconds() for t in self.trials if t.duration]
        return float(np.median(found)) if found else None

    @property
    def origins(self) -> dict[str, int]:
        """Where configurations came from -> number of trials; turns of the past apart."""
        return dict(Counter(map(lane_of, self.records)))

    @property
    def has_turns(self) -> bool:
        """Whether a trial is the past's turn or the study's own."""
        return any(record.reason in ("weighed", "own") for record in self.records)

    @property
    def has_models(self) -> bool:
        """Whether past tasks were weighed by what models of them predict."""
        return any(map(is_modelled, self.records))

    @property
    def has_similarities(self) -> bool:
        """Whether past tasks were weighed by how alike they are."""
        if self.has_models:
            return self.has_turns
        return any(record.weights.keys() - {TARGET} for record in self.records)

    @cached_property
    def task(self) -> Task | None:
        """The study as a task; None while it has too few trials for one."""
        return Task.from_study(self.study) if n_usable(self.study) > 1 else None

    @cached_property
    def importances(self) -> dict[str, float]:
        """Parameter -> importance, the largest first; empty where nothing is known yet."""
        return importance(self.task) if self.task else {}

    def origin(self, number: int) -> str:
        """Return where a trial's configuration came from, and from which past task."""
        record = next((r for r in self.records if r.number == number), None)
        if record is None:
            return "another sampler, or by hand"
        givers = [s.name for s in self.sources if number in {w.number for w in s.warm_starts}]
        kind = lane_of(record)
        return f"{kind} of {givers[0]}" if givers else kind


def is_modelled(record: TransferRecord) -> bool:
    """Return whether the weights come from models of the objectives, not from similarities.

    With similarities, a past that has a weight makes a trial somebody's turn, unless all weigh the
    same.
    """
    if record.origin != "acquisition" or record.kept:
        return False
    past = [weight for name, weight in record.weights.items() if name not in (TARGET, REST)]
    return any(past) and len({record.weights[TARGET], *past}) > 1


def facts_of(
    study: Study, past: Sequence[Study | Task] = (), without: Sequence[Study] = ()
) -> Facts:
    """Gather what can be said of a study.

    Args:
        study: The study; of any sampler, in any state.
        past: Past studies or tasks, those that the sampler had and others to compare with.
        without: Runs of the same problem without a past, to measure the gain by.

    Raises:
        ValueError: A run without a past has other objectives.
    """
    trials, records = study.get_trials(deepcopy=False), transfer_history(study)
    for other in without:
        if other.directions != study.directions:
            raise ValueError(
                f"study {other.study_name!r} cannot be compared with {study.study_name!r}: "
                "its objectives are others."
            )
    tasks, reasons = _at_hand(study, past)
    return Facts(
        study=study,
        trials=trials,
        records=records,
        front=front_of(study),
        sources=_sources(study, trials, records, tasks, reasons),
        tasks=tasks,
        without=without,
        saved=_saved(study, without),
    )


def _at_hand(study: Study, past: Sequence[Study | Task]) -> tuple[dict[str, Task], dict[str, str]]:
    """Return the past tasks that could be of use by name, and why the others could not."""
    tasks: dict[str, Task] = {}
    reasons: dict[str, str] = {}
    for one in past:
        name = one.study_name if isinstance(one, Study) else one.name
        reason = why_not(one, study) if isinstance(one, Study) else _why_not_table(one, study)
        if not reason:
            task = Task.from_study(one) if isinstance(one, Study) else one
            tasks[name], reason = task, why_not_task(task, study)
        reasons[name] = reason
    return {name: task for name, task in tasks.items() if not reasons[name]}, reasons


def _why_not_table(task: Task, study: Study) -> str:
    if (n := len(study.directions)) != task.n_objectives:
        return f"it has {task.n_objectives} objectives, but the new study has {n}."
    return ""


def _sources(
    study: Study,
    trials: Sequence[FrozenTrial],
    records: Sequence[TransferRecord],
    tasks: Mapping[str, Task],
    reasons: Mapping[str, str],
) -> list[Source]:
    """Return the past tasks that the records or the user name, those that gave most first."""
    weighed = [name for record in records for name in record.weights]
    names = [n for n in dict.fromkeys([*weighed, *reasons]) if n not in (TARGET, REST)]
    own = Task.from_study(study) if n_usable(study) > 1 else None
    space = Space(used_distributions(trials))
    warm = _warm_starts(trials, records, tasks, space)
    full = 1.0 / (len(names) + 1)  # the weight of a past task that is just like the study
    found = []
    for name in names:
        task = tasks.get(name)
        weights = {r.number: r.weights[name] for r in records if name in r.weights}
        until = _until(records, name, SMALL * full)
        is_unused = not warm.get(name) and until == _first_weighed(records)
        found.append(
            Source(
                name=name,
                observations=None if task is None else len(task),
                left=None if task is None or not len(space) else Left.of(task, space),
                alike=None if task is None or own is None else gamma_similarity(own, task),
                weights=weights,
                warm_starts=warm.get(name, []),
                say=_say(records, name, SMALL * full),
                until=until,
                reason=reasons.get(name, "") or (_why_unused(records, name) if is_unused else ""),
            )
        )
    return sorted(found, key=lambda s: (not s.is_used, -sum(s.weights.values()), s.name))


def _say(records: Sequence[TransferRecord], name: str, least: float) -> list[int]:
    """Return the trials that were not the study's own turn and gave a task this weight."""
    return [
        record.number
        for record in records
        if record.origin == "acquisition"
        and record.reason == "weighed"
        and record.weights.get(name, 0.0) >= least
    ]


def _why_unused(records: Sequence[TransferRecord], name: str) -> str:
    if any(name in record.weights for record in records):
        is_by_model = any(map(is_modelled, records))
        why = UNPREDICTED if is_by_model else "its best region is elsewhere."
        return f"it never had a weight worth mentioning: {why}"
    if records and not any(record.weights for record in records):
        return "no trial so far was chosen with weights."
    return "it was not among the sampler's sources, or weighed too little to be recorded."


def _first_weighed(records: Sequence[TransferRecord]) -> int | None:
    return next((record.number for record in records if record.weights), None)


def _until(records: Sequence[TransferRecord], name: str, least: float) -> int | None:
    """Return from which trial on a task has weighed less than this; None if it still has more."""
    weighed = [record for record in records if record.weights]
    small = [record.weights.get(name, 0.0) < least for record in weighed]
    first = len(small) - next((i for i, is_small in enumerate(small[::-1]) if not is_small), 0)
    if small and all(small):
        first = 0
    return weighed[first].number if first < len(small) else None


def _warm_starts(
    trials: Sequence[FrozenTrial],
    records: Sequence[TransferRecord],
    tasks: Mapping[str, Task],
    space: Space,
) -> dict[str, list[WarmStart]]:
    """Return which warm starts each task gave.

    Records do not say. It is the task that has the configuration; of several, the one where it has
    the best place.
    """
    numbers = {record.number for record in records if record.origin == "warm_start"}
    best = {name: _best_of(task, space) for name, task in tasks.items()} if numbers else {}
    found: dict[str, list[WarmStart]] = {}
    for trial in trials:
        if trial.number in numbers:
            places = {name: _place(trial.params, ranked) for name, ranked in best.items()}
            giver = min(places, key=lambda name: places[name] or math.inf, default="")
            if place := places.get(giver):
                found.setdefault(giver, []).append(WarmStart(trial.number, place))
    return found


def _best_of(task: Task, space: Space) -> list[dict[str, Any]]:
    """Return the best configurations of a task, what of them fits into a space."""
    ranked = order(task.losses, task.violation)[:_N_WARM]
    return [space.fit(c) for c in task.configurations([int(row) for row in ranked])]


def _place(params: Mapping[str, Any], ranked: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the place of a configuration in a line; None where it is not in there."""
    for place, known in enumerate(ranked, 1):
        shared = known.keys() & params.keys()
        if shared and all(known[name] == params[name] for name in shared):
            return place
    return None


def _saved(study: Study, without: Sequence[Study]) -> AgainstRuns | ByTurns | None:
    run = run_of(study)
    if without:
        return against_runs(run.losses, [run_of(other).losses for other in without])
    trials = study.get_trials(deepcopy=False)
    return by_turns(run.losses, np.array([turn_of(trials[number]) for number in run.numbers]))
