"""Which runs an experiment consists of, as values.

A `Run` says everything that its result depends on: problem, method, seed, number of evaluations,
the past, and settings that differ from the method's own. Equal runs have equal keys, whoever made
them and whenever; `plan` is the product of problems, seeds and methods.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, NamedTuple

from metatpe.bench.methods import get_method
from metatpe.bench.problems import expand, past_names, problem_names, suite_of

N_EVALUATIONS, N_START, N_PAST = 100, 5, 100  # the paper's
AT = (5, 10, 20, 30, 50, 100)  # evaluations after which methods are compared
Setting = tuple[str, float | int | str]


class PastProblem(NamedTuple):
    """One past task of a run."""

    problem: str
    stream: int  # of its random configurations, see `past`


@dataclass(frozen=True)
class Run:
    """One search, completely described.

    Attributes:
        problem: The name of the problem that is searched.
        method: The name of the method.
        seed: Seed of the past tasks, the first configurations, the noise and the sampler.
        n_evaluations: The budget.
        n_start: How many of them are first configurations.
        past: The past tasks; none for a method that does not look at them.
        n_past: Observations of each past task.
        settings: Settings of the sampler that differ from its defaults, sorted by name.
        pruner: The name of the pruner; empty where trials have no learning curves.
        batch: How many configurations are asked for before their results are told.

    Example:
        >>> run = Run("ellipsoid4", "mo-tpe", seed=0, n_evaluations=20)
        >>> run == Run("ellipsoid4", "mo-tpe", 0, 20)
        True
    """

    problem: str
    method: str
    seed: int
    n_evaluations: int = N_EVALUATIONS
    n_start: int = N_START
    past: tuple[PastProblem, ...] = ()
    n_past: int = 0
    settings: tuple[Setting, ...] = ()
    pruner: str = ""
    batch: int = 1

    def __post_init__(self) -> None:
        numbers = {"seed": 0, "n_evaluations": 1, "n_start": 0, "batch": 1}
        for name, least in {**numbers, **({"n_past": 2} if self.past else {})}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be {least} or more, but is {getattr(self, name)}.")
        get_method(self.method).check(dict(self.settings))

    @property
    def key(self) -> str:
        """A short name that only equal runs share."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """The method and what is unusual about it: the name of a curve."""
        unusual = {**dict(self.settings), "past": self._unusual_past()}
        unusual["n_start"] = "" if self.n_start == N_START else self.n_start
        unusual["n_past"] = "" if self.n_past in (0, N_PAST) else self.n_past
        unusual["pruner"] = self.pruner
        unusual["batch"] = "" if self.batch == 1 else self.batch
        shown = "".join(f" {name}={value}" for name, value in unusual.items() if value != "")
        return f"{self.method}{shown}"

    def _unusual_past(self) -> str:
        if not self.past or self.past == past_of(self.problem):
            return ""
        counts = Counter(past.problem for past in self.past)
        return "+".join(name if k == 1 else f"{k}×{name}" for name, k in counts.items())

    def to_json(self) -> dict[str, Any]:
        """Return the run as what JSON can hold."""
        past = [list(entry) for entry in self.past]
        entries = {**asdict(self), "past": past, "settings": dict(self.settings)}
        # So that the keys of runs without curves, and of one at a time, stay as they were.
        if not self.pruner:
            del entries["pruner"]
        if self.batch == 1:
            del entries["batch"]
        return entries

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> Run:
        """Return the run that `to_json` described."""
        past = tuple(PastProblem(problem, stream) for problem, stream in entries["past"])
        return cls(**{**entries, "past": past, "settings": sorted_settings(entries["settings"])})


def sorted_settings(settings: Mapping[str, Any]) -> tuple[Setting, ...]:
    """Return settings as a value that can be compared."""
    return tuple(sorted(settings.items()))


def past_of(problem: str, names: Sequence[str] | None = None) -> tuple[PastProblem, ...]:
    """Return the past tasks of a problem.

    Args:
        problem: The name of the problem that is searched.
        names: The past problems, one of them perhaps several times; left out, the suite decides.

    Returns:
        Each with a stream of its own. A member of the suite has the same one in every experiment.
    """
    names = past_names(problem) if names is None else names
    members = problem_names(suite_of(problem))
    for name in names:
        suite_of(name)  # an unknown one is refused here
    return tuple(
        PastProblem(name, 1 + members.index(name))
        if name in members and name not in names[:position]
        else PastProblem(name, 1 + len(members) + position)
        for position, name in enumerate(names)
    )


def plan(
    problems: Sequence[str],
    methods: Sequence[str],
    seeds: Iterable[int],
    *,
    n_evaluations: int = N_EVALUATIONS,
    n_start: int = N_START,
    n_past: int = N_PAST,
    past: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    pruners: Sequence[str] = ("",),
    batch: int = 1,
) -> tuple[Run, ...]:
    """Return the runs of an experiment, seed by seed, so that what is broken off can be compared.

    Args:
        problems: Names of problems and suites.
        methods: Names of methods.
        seeds: One run each for every problem and method.
        n_evaluations: The budget of each run.
        n_start: First configurations.
        n_past: Observations of each past task.
        past: The past problems; left out, the others of the suite.
        settings: Of the samplers; every method has to have them.
        pruners: Names of pruners, for problems with learning curves.
        batch: How many configurations are asked for before their results are told.

    Raises:
        ValueError: If a name or a setting is not known, or a number is too small.
    """
    members = dict.fromkeys(member for name in problems for member in expand(name))
    of_past = {member: past_of(member, past) for member in members}
    own_settings = sorted_settings(settings or {})
    runs = []
    axes = (seeds, members, dict.fromkeys(methods), dict.fromkeys(pruners))
    for seed, member, method, pruner in product(*axes):
        tasks = of_past[member] if pruner or _looks_back(method) else ()
        runs.append(
            Run(
                problem=member,
                method=method,
                seed=seed,
                n_evaluations=n_evaluations,
                n_start=n_start,
                past=tasks,
                n_past=n_past if tasks else 0,
                settings=own_settings,
                pruner=pruner,
                batch=batch,
            )
        )
    return tuple(runs)


def _looks_back(method: str) -> bool:
    entry = get_method(method)
    return entry.uses_past or entry.first == "warm"
