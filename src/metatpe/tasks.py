"""Past problems as frozen arrays, and where they come from.

A `Task` is what the method sees of a finished study: points of the unit cube, losses that are
always minimised (this is the one place where a maximised objective gets its minus sign), and by
how much each observation violates its constraints.

Shapes: X (n, d), losses (n, m), violation (n,); one row an observation.
"""

from __future__ import annotations

import difflib
import fnmatch
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import BaseStorage, get_storage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from metatpe.space import Floats, Mask, Space

_logger = logging.getLogger(__name__)
_LEFT_OUT: Floats = np.empty(0)  # an argument that was not given


class Encoded(NamedTuple):
    """A task's observations in another space.

    A value that the other space does not have is missing there. An observation that has lost more
    than half of what it used of the shared parameters says too little, and so does one that used
    none of them.
    """

    X: Floats  # (n, d)
    says: Mask  # (n,), which observations still say something
    lost: dict[str, int]  # each shared parameter -> values that do not fit the space

    def describe(self) -> str:
        """Return what was lost, as a sentence; empty where nothing was."""
        n = len(self.X)
        if not self.lost:
            return "it has no parameter in common with the study."
        if not self.says.any():
            return "all of it lies outside of the study's space."
        parts = [f"{k} of {n} values of {name!r}" for name, k in self.lost.items() if k]
        if not self.says.all():
            parts.append(f"{n - int(self.says.sum())} of {n} observations as a whole")
        return f"outside of the study's space are {', '.join(parts)}." if parts else ""


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Finished evaluations of one problem.

    Args:
        name: What plots and records call it.
        space: The search space of the observations.
        X: (n, d) points in the cube of `space`; NaN where a parameter was not used.
        losses: (n, m), always minimised; inf is allowed, NaN is not.
        violation: (n,), 0 where feasible; left out, all are.
        objective_names: One name an objective, or none.
        numbers: (n, d), the values that X was made from, as `Space.numbers` has them; left out,
            they are decoded from X, which may differ from the original in the last digit.
    """

    name: str
    space: Space
    X: Floats
    losses: Floats
    violation: Floats = field(default_factory=lambda: _LEFT_OUT)
    objective_names: tuple[str, ...] = ()
    numbers: Floats = field(default_factory=lambda: _LEFT_OUT)

    def __post_init__(self) -> None:
        self._freeze("X", self.X)
        self._freeze("losses", self.losses)
        is_feasible = self.violation is _LEFT_OUT
        self._freeze("violation", np.zeros(len(self.X)) if is_feasible else self.violation)
        if self.X.ndim == 2 and self.X.shape[1] == len(self.space):
            is_decoded = self.numbers is _LEFT_OUT
            self._freeze(
                "numbers", self.space.decode_numbers(self.X) if is_decoded else self.numbers
            )
        self._check()

    def _freeze(self, name: str, array: Floats) -> None:
        frozen = np.array(array, dtype=np.float64)
        frozen.flags.writeable = False
        object.__setattr__(self, name, frozen)

    def _check(self) -> None:
        n = len(self.X)
        wanted = {"X": (n, len(self.space)), "numbers": (n, len(self.space)), "violation": (n,)}
        for name, shape in wanted.items():
            if getattr(self, name).shape != shape:
                raise ValueError(
                    f"task {self.name!r}: {name} must have the shape {shape}, "
                    f"but has {getattr(self, name).shape}."
                )
        if self.losses.ndim != 2 or len(self.losses) != n or self.losses.shape[1] == 0:
            raise ValueError(
                f"task {self.name!r}: losses must have {n} rows and one column an objective, "
                f"but have the shape {self.losses.shape}."
            )
        if n == 0:
            raise ValueError(f"task {self.name!r}: there is no observation; leave the task out.")
        self._check_values()

    def _check_values(self) -> None:
        bad = {
            "losses must be numbers, but NaN is": np.isnan(self.losses).any(axis=1),
            "X must lie in [0, 1] (or be NaN), but does not": (
                (self.X < 0.0) | (self.X > 1.0)
            ).any(axis=1),
            "violation must be 0 or more, but is not": ~(self.violation >= 0.0),
        }
        for what, rows in bad.items():
            if rows.any():
                some = ", ".join(map(str, np.flatnonzero(rows)[:5]))
                raise ValueError(
                    f"task {self.name!r}: {what} in {rows.sum()} rows (such as {some}); "
                    "correct or drop them before building a Task."
                )
        if self.objective_names and len(self.objective_names) != self.n_objectives:
            raise ValueError(
                f"task {self.name!r}: {self.n_objectives} objectives, "
                f"but {len(self.objective_names)} objective_names."
            )

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        return (
            f"Task({self.name!r}, {len(self)} observations, {len(self.space)} parameters, "
            f"{self.n_objectives} objectives)"
        )

    @property
    def n_objectives(self) -> int:
        """The number of objectives."""
        return int(self.losses.shape[1])

    @classmethod
    def from_study(cls, study: Study, *, name: str | None = None) -> Task:
        """Read the COMPLETE and PRUNED trials of a study.

        A pruned trial has the loss inf and stands behind all completed ones, those that came
        further before the others.

        Raises:
            ValueError: The study has no such trial, or none with a parameter.
        """
        name = study.study_name if name is None else name
        trials = [t for t in study.get_trials(deepcopy=False) if is_counted(t)]
        trials.sort(key=lambda t: (*lateness_of(t, study.directions), t.number))
        space = Space(used_distributions(trials))
        if not trials or not len(space):
            raise ValueError(
                f"study {name!r} has no finished trial{' with a parameter' if trials else ''}; "
                "leave it out."
            )
        numbers = space.numbers([t.params for t in trials])
        return cls(
            name=name,
            space=space,
            X=space.encode_numbers(numbers),
            losses=np.array([losses_of(t, study.directions) for t in trials]),
            violation=np.array([violation_of(t) for t in trials]),
            objective_names=tuple(study.metric_names or ()),
            numbers=numbers,
        )

    def configuration(self, row: int) -> dict[str, Any]:
        """Return the parameters of one observation, with the values that were stored."""
        return self.configurations([row])[0]

    def configurations(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return the parameters of some observations, with the values that were stored."""
        return self.space.values(self.numbers[list(rows)])

    def encode_in(self, space: Space) -> Encoded:
        """Return the observations in another space, and what was lost on the way."""
        X = np.full((len(self), len(space)), np.nan)
        n_lost, n_used = np.zeros((2, len(self)), dtype=np.int64)
        lost: dict[str, int] = {}
        for j, name in enumerate(space.names):
            if name in self.space.names:
                X[:, j] = self._column_in(space, name)
                used = ~np.isnan(self.X[:, self.space.names.index(name)])
                is_lost = used & np.isnan(X[:, j])
                n_used += used
                n_lost += is_lost
                lost[name] = int(is_lost.sum())
        return Encoded(X, (n_used > 0) & (2 * n_lost <= n_used), lost)

    def _column_in(self, space: Space, name: str) -> Floats:  # (n,)
        own, other = self.space.distributions[name], space.distributions[name]
        i = self.space.names.index(name)
        if own == other:
            return self.X[:, i]
        target = Space({name: other})
        numbers = self.numbers[:, i]
        if isinstance(own, CategoricalDistribution) or isinstance(other, CategoricalDistribution):
            # Through the values themselves, each distinct one once.
            distinct, inverse = np.unique(numbers, return_inverse=True)
            values = Space({name: own}).values(distinct[:, None])
            numbers = target.numbers(values)[inverse, 0]
        return target.encode_numbers(numbers[:, None])[:, 0]

    def to(self, space: Space) -> Task:
        """Return this task in another space; what was lost is said through `logging`.

        Raises:
            ValueError: Nothing is left.
        """
        encoded = self.encode_in(space)
        X, says = encoded.X, encoded.says
        if not says.any():
            raise ValueError(
                f"task {self.name!r}: nothing is left in the other space; "
                f"the parameters in common are {list(encoded.lost)}."
            )
        if lost := encoded.describe():
            _logger.info("task %r: %s", self.name, lost)
        return Task(
            name=self.name,
            space=space,
            X=X[says],
            losses=self.losses[says],
            violation=self.violation[says],
            objective_names=self.objective_names,
            numbers=self._numbers_in(space, X)[says],
        )

    def _numbers_in(self, space: Space, X: Floats) -> Floats:  # (n, d)
        """Return the numbers of X in another space: the stored ones where that is the same."""
        numbers = space.decode_numbers(X)
        for j, name in enumerate(space.names):
            if self.space.distributions.get(name) == space.distributions[name]:
                numbers[:, j] = self.numbers[:, self.space.names.index(name)]
        return numbers

    def describe(self) -> str:
        """Return a few lines about the task: its parameters, and its smallest losses."""
        parameters = "\n".join(f"  {n}: {d}" for n, d in self.space.distributions.items())
        return f"{self!r}\n{parameters}\n  smallest losses: {self.losses.min(axis=0).tolist()}"


def is_counted(trial: FrozenTrial) -> bool:
    """Return whether a trial is an observation: completed with numbers, or pruned."""
    if trial.state == TrialState.COMPLETE:
        return not any(np.isnan(trial.values))
    return trial.state == TrialState.PRUNED


def n_usable(study: Study) -> int:
    """Return how many of a study's trials are observations with a parameter."""
    return sum(is_counted(t) and bool(t.params) for t in study.get_trials(deepcopy=False))


def losses_of(trial: FrozenTrial, directions: Sequence[StudyDirection]) -> list[float]:
    """Return a trial's values as losses; inf for a pruned one."""
    if trial.state != TrialState.COMPLETE:
        return [float("inf")] * len(directions)
    return [
        -value if direction == StudyDirection.MAXIMIZE else value
        for value, direction in zip(trial.values, directions, strict=True)
    ]


def violation_of(trial: FrozenTrial) -> float:
    """Return the sum of a trial's violated constraints."""
    return float(sum(max(0.0, value) for value in trial.constraints.values()))


def lateness_of(
    trial: FrozenTrial, directions: Sequence[StudyDirection]
) -> tuple[float, float, float]:
    """Return zeros for a completed trial; pruned ones are sorted by it, the best first.

    One objective: the later the last report the better, then its value. Several: all alike.
    """
    if trial.state == TrialState.COMPLETE:
        return 0.0, 0.0, 0.0
    if len(directions) > 1 or trial.last_step is None:
        return 1.0, 1.0, 0.0
    value = trial.intermediate_values[trial.last_step]
    loss = -value if directions[0] == StudyDirection.MAXIMIZE else value
    return 1.0, -float(trial.last_step), float("inf") if np.isnan(loss) else loss


def used_distributions(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return every parameter that trials have used; a range that changed covers all of them."""
    found: dict[str, list[BaseDistribution]] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            known = found.setdefault(name, [])
            if not known or known[-1] != distribution:
                known.append(distribution)
    return {name: joined(found[name]) for name in sorted(found)}


def joined(distributions: Sequence[BaseDistribution]) -> BaseDistribution:
    """Return one distribution with the values of all; if kinds differ, of the last one's kind."""
    last = distributions[-1]
    if all(d == last for d in distributions):
        return last
    if isinstance(last, CategoricalDistribution):
        found = [d.choices for d in distributions if isinstance(d, CategoricalDistribution)]
        distinct = {repr(choice): choice for choices in reversed(found) for choice in choices}
        order = dict.fromkeys(repr(choice) for choices in found for choice in choices)
        return CategoricalDistribution([distinct[key] for key in order])
    if isinstance(last, FloatDistribution):
        floats = [d for d in distributions if isinstance(d, FloatDistribution)]
        low, high = min(d.low for d in floats), max(d.high for d in floats)
        return FloatDistribution(low, high, log=last.log and low > 0)
    assert isinstance(last, IntDistribution)
    ints = [d for d in distributions if isinstance(d, IntDistribution)]
    lowest, highest = min(d.low for d in ints), max(d.high for d in ints)
    return IntDistribution(lowest, highest, log=last.log and lowest > 0)


def load_tasks(storage: str | BaseStorage, names: str | Sequence[str] = "*") -> list[Task]:
    """Read past studies out of an Optuna storage.

    Args:
        storage: A storage URL such as ``"sqlite:///studies.db"``, or a storage object.
        names: A study's name, a pattern such as ``"resnet-*"``, or several of them.

    Returns:
        One task a study, in the order of the names; studies with fewer than two finished
        trials are left out, and that is said through `logging`.

    Raises:
        ValueError: A name fits no study; the message lists the close ones.

    Example:
        >>> sources = load_tasks("sqlite:///studies.db", "resnet-*")  # doctest: +SKIP
    """
    storage = get_storage(storage)  # opened once for all studies
    stored = optuna.study.get_all_study_names(storage)
    tasks = []
    for name in _matching(stored, [names] if isinstance(names, str) else names):
        study = optuna.load_study(study_name=name, storage=storage)
        if (n := n_usable(study)) < 2:
            _logger.warning(
                "study %r is left out: it has %d finished trials with a parameter.", name, n
            )
            continue
        tasks.append(Task.from_study(study))
    return tasks


def _matching(stored: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the stored names that fit a pattern, each once, sorted within a pattern."""
    found: dict[str, None] = {}
    for pattern in patterns:
        hits = [pattern] if pattern in stored else fnmatch.filter(sorted(stored), pattern)
        if not hits:
            close = difflib.get_close_matches(pattern, stored, n=3) or sorted(stored)[:3]
            raise ValueError(
                f"no study is called {pattern!r}; "
                + (f"close are {close}." if close else "the storage has no study.")
            )
        found.update(dict.fromkeys(hits))
    return list(found)
