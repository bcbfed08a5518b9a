"""The facts of a report: a study, its trials, and what came from past studies.

A past study is identified by its name. Whether it was borrowed from is read from the records that
samplers leave with each trial (`transfer_history`) and from nothing else, so that a note, which
has only the records, and a report, which also has the past studies, agree. The size, the space and
the similarity of a past study come from its trials, where they are at hand.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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
from metatpe.study.record import REST, TARGET, Reason, TransferRecord, transfer_history, turn_of
from metatpe.study.trials import front_of, n_usable, used_distributions
from metatpe.tpe.hypervolume import is_improving
from metatpe.viz.runs import plain_names, run_of
from metatpe.viz.weights import LANES, reason_of
from metatpe.words import counted

SMALL = 0.1  # of an equal share; a smaller weight does not count
_INFLUENCED: tuple[Reason, ...] = ("weighed", "densities")  # where weights had an influence
# Where weights were computed.
_COMPARED: tuple[Reason, ...] = (*_INFLUENCED, "own", "no_weight", "unknown")


@dataclass(frozen=True)
class Source:
    """What came from one past task."""

    name: str
    observations: int | None  # None: neither the study nor the task is at hand
    left: Left | None
    similarity: float | None  # gamma-similarity to the study as it is now
    obstacle: str  # why it cannot help this study; empty where it can
    weights: Mapping[int, float]  # trial number -> weight, where it was large enough to be listed
    starts: Sequence[int]  # the trials that were warm starts of it
    influenced: Sequence[int]  # the trials that its weight influenced
    unknown: Sequence[int]  # the trials where it had a weight, but no reason was recorded
    small_from: int | None  # the trial from which on its weight is small; None where it is not

    @property
    def is_used(self) -> bool:
        """Whether the study has borrowed from it, as far as the records tell."""
        return bool(self.starts or self.influenced)


@dataclass(frozen=True, eq=False)
class Facts:
    """The facts of a report on a study."""

    study: Study
    task: Task | None  # the study as a task; None while it has too few trials for one
    trials: Sequence[FrozenTrial]
    records: Sequence[TransferRecord]
    front: Sequence[FrozenTrial]
    sources: Sequence[Source]
    least: float  # the smallest weight that counts
    tasks: Mapping[str, Task]  # of the sources that are at hand
    without: Sequence[Study]  # runs of the same problem without a past
    saved: AgainstRuns | ByTurns | None

    @property
    def objectives(self) -> list[tuple[str, str]]:
        """Name and direction of each objective."""
        directions = [direction.name.lower() for direction in self.study.directions]
        names = self.study.metric_names or plain_names(len(directions))
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
    def attributes(self) -> dict[str, str]:
        """The user attributes of the study; a URL without its password."""
        return {name: masked(str(value)) for name, value in self.study.user_attrs.items()}

    @property
    def span(self) -> tuple[datetime.datetime, datetime.datetime] | None:
        """The time when the first trial started and the time when the last one ended."""
        began = [t.datetime_start for t in self.trials if t.datetime_start]
        ended = [t.datetime_complete for t in self.trials if t.datetime_complete]
        return (min(began), max(ended)) if began and ended else None

    @property
    def seconds(self) -> float | None:
        """The median duration of a trial."""
        found = [t.duration.total_seconds() for t in self.trials if t.duration]
        return float(np.median(found)) if found else None

    @property
    def used(self) -> list[Source]:
        """The past tasks that the study has borrowed from."""
        return [source for source in self.sources if source.is_used]

    @property
    def at_hand(self) -> list[Task]:
        """The tasks that the study has borrowed from, those that are at hand."""
        return [self.tasks[source.name] for source in self.used if source.name in self.tasks]

    @property
    def reasons(self) -> dict[Reason, int]:
        """Reason -> number of trials, those that there are, in the order of `LANES`."""
        counted = Counter(map(reason_of, self.records))
        return {reason: counted[reason] for reason in LANES if counted[reason]}

    @property
    def samplers(self) -> list[str]:
        """The samplers that suggested trials, in the order in which they did."""
        return list(dict.fromkeys(record.sampler for record in self.records))

    @property
    def starts(self) -> list[TransferRecord]:
        """The warm starts."""
        return [record for record in self.records if record.origin == "warm_start"]

    @property
    def is_weighed(self) -> bool:
        """Whether a trial has weights of past tasks on record."""
        return any(source.weights for source in self.sources)

    @property
    def silent_from(self) -> int | None:
        """The trial from which on there are too few good trials to compare; None where not."""
        marks = ((r, r.reason == "silent") for r in self.records)
        return _since((r.number, is_silent) for r, is_silent in marks if is_silent or r.weights)

    @cached_property
    def improving(self) -> set[int]:
        """The trials that brought progress: no earlier one is as good in every objective."""
        run = run_of(self.study)
        is_hit = np.isfinite(run.losses).all(axis=1) & is_improving(run.losses)
        return {int(number) for number in run.numbers[is_hit]}

    @cached_property
    def importances(self) -> dict[str, float]:
        """Parameter -> importance, the largest first; empty where nothing is known yet."""
        return importance(self.task) if self.task else {}


def facts_of(
    study: Study, past: Sequence[Study | Task] = (), without: Sequence[Study] = ()
) -> Facts:
    """Gather the facts of a study.

    Args:
        study: The study; of any sampler, in any state.
        past: Past studies or tasks, those that the sampler had and others to compare with.
        without: Runs of the same problem without a past, to measure the gain.

    Raises:
        ValueError: A run without past studies has other objectives.
    """
    trials, records = study.get_trials(deepcopy=False), transfer_history(study)
    for other in without:
        if other.directions != study.directions:
            raise ValueError(
                f"study {other.study_name!r} cannot be compared with {study.study_name!r}: "
                "their objectives differ."
            )
    tasks, obstacles = _at_hand(study, past)
    own = Task.from_study(study) if n_usable(study) > 1 else None
    least = SMALL / (len(_recorded_names(records)) + 1)  # from the records alone, see above
    return Facts(
        study=study,
        task=own,
        trials=trials,
        records=records,
        front=front_of(study),
        sources=_sources(own, trials, records, tasks, obstacles, least),
        least=least,
        tasks=tasks,
        without=without,
        saved=_saved(study, without),
    )


def _recorded_names(records: Sequence[TransferRecord]) -> list[str]:
    """Return the past tasks that the records name."""
    named = [name for record in records for name in (*record.sources, *record.weights)]
    return [name for name in dict.fromkeys(named) if name not in (TARGET, REST)]


def _at_hand(study: Study, past: Sequence[Study | Task]) -> tuple[dict[str, Task], dict[str, str]]:
    """Return the past tasks that can help the study by name, and why the others cannot."""
    tasks: dict[str, Task] = {}
    obstacles: dict[str, str] = {}
    for one in past:
        name = one.study_name if isinstance(one, Study) else one.name
        obstacle = why_not(one, study) if isinstance(one, Study) else _why_not_table(one, study)
        if not obstacle:
            task = Task.from_study(one) if isinstance(one, Study) else one
            tasks[name], obstacle = task, why_not_task(task, study)
        obstacles[name] = obstacle
    return {name: task for name, task in tasks.items() if not obstacles[name]}, obstacles


def _why_not_table(task: Task, study: Study) -> str:
    if (n := len(study.directions)) != task.n_objectives:
        return f"it has {counted(task.n_objectives, 'objective')}, but the new study has {n}."
    return ""


def _sources(
    own: Task | None,
    trials: Sequence[FrozenTrial],
    records: Sequence[TransferRecord],
    tasks: Mapping[str, Task],
    obstacles: Mapping[str, str],
    least: float,
) -> list[Source]:
    """Return the past tasks that the records or the user name, the most influential first."""
    space = Space(used_distributions(trials))
    found = []
    for name in dict.fromkeys([*_recorded_names(records), *obstacles]):
        task = tasks.get(name)
        large = [r for r in records if r.weights.get(name, 0.0) >= least]
        found.append(
            Source(
                name=name,
                observations=None if task is None else len(task),
                left=None if task is None or not len(space) else Left.of(task, space),
                similarity=None if task is None or own is None else gamma_similarity(own, task),
                obstacle=obstacles.get(name, ""),
                weights={r.number: r.weights[name] for r in records if name in r.weights},
                starts=[r.number for r in records if name in r.sources],
                influenced=[r.number for r in large if r.reason in _INFLUENCED],
                unknown=[r.number for r in large if r.reason == "unknown"],
                small_from=_small_from(records, name, least),
            )
        )
    return sorted(found, key=lambda s: (not s.is_used, -sum(s.weights.values()), s.name))


def _small_from(records: Sequence[TransferRecord], name: str, least: float) -> int | None:
    """Return the trial from which on the weight of a task is small; None where it is not."""
    compared = (r for r in records if r.weights and r.reason in _COMPARED)
    return _since((r.number, r.weights.get(name, 0.0) < least) for r in compared)


def _since(trials: Iterable[tuple[int, bool]]) -> int | None:
    """Return the trial from which on something holds; None where it does not hold at the end."""
    first = None
    for number, holds in trials:
        first = (number if first is None else first) if holds else None
    return first


def _saved(study: Study, without: Sequence[Study]) -> AgainstRuns | ByTurns | None:
    run = run_of(study)
    if without:
        return against_runs(run.losses, [run_of(other).losses for other in without])
    trials = study.get_trials(deepcopy=False)
    return by_turns(run.losses, np.array([turn_of(trials[number]) for number in run.numbers]))
