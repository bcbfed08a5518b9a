r"""Problems to measure a sampler on, as values, and the names that they go by.

A problem maps a configuration x and a seed to m objectives, in their own units and directions:

    (y_1, ..., y_m) = evaluate(x, seed)      y_i is minimised or maximised, as `directions` says
    loss_i = s_i * y_i                       s_i = -1 where y_i is maximised, otherwise 1

The signs s are those of `study.trials.signs_of`.

Shapes: best and worst are (m,), the extremes over all configurations and repeats; front is (k, m),
the non-dominated values among them; table, where the problem is one, is (n, r, m) for n
configurations with r repeats each.

A space may be conditional: a parameter with an entry in `conditions` is used only where another
one, which stands before it in the space, has a given value. A configuration has the parameters
that it uses, and no others.

`hpolib` names a suite and `hpolib/slice_localization` one problem of it. A suite is a module of
`metatpe.bench.families`; a new module there is a new suite, and nothing else has to change. What
counts as the past of a problem are the others of its suite, unless the suite says otherwise.
"""

from __future__ import annotations

import difflib
import importlib
import numbers
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.study import Study
from optuna.trial import Trial

from metatpe.study.trials import signs_of
from metatpe.tuning.objective import suggest

Floats = NDArray[np.float64]
Params = Mapping[str, Any]
Direction = Literal["minimize", "maximize"]


@dataclass(frozen=True, eq=False)
class Problem:
    """One task to optimise.

    Attributes:
        name: As the registry knows it, `suite/dataset` or a single word.
        space: The search space. A parameter with ordered values is the index of its value.
        directions: Which way is better, for each objective.
        objective_names: What the objectives are called in tables and plots.
        function: What `evaluate` calls once the parameters have been checked.
        best: The best value of each objective over all configurations and repeats.
        worst: The worst one.
        log_objectives: Which objectives the authors' hypervolume takes in log scale.
        front: The true Pareto front, sorted by its first column; None where it is not known.
        levels: The values behind the indices of each ordered parameter.
        table: Every value that the problem can take; None where there are infinitely many.
        conditions: Where a parameter is used: the name and the value of the one that decides.
            A parameter without an entry is always used.
        curve: What a trial of one objective reports on the way, (steps,), the last value at its
            end, NaN where training diverged; None where there are no learning curves.

    Example:
        >>> problem = get_problem("ellipsoid4")
        >>> problem.evaluate({"x1": 1.0, "x2": 0.0, "x3": 0.0, "x4": 0.0}, seed=0)
        (1.0,)
    """

    name: str
    space: dict[str, BaseDistribution]
    directions: tuple[Direction, ...]
    objective_names: tuple[str, ...]
    function: Callable[[Params, int], tuple[float, ...]]
    best: Floats  # (m,)
    worst: Floats  # (m,)
    log_objectives: tuple[bool, ...]
    front: Floats | None = None  # (k, m)
    levels: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    table: Floats | None = None  # (n, r, m)
    conditions: dict[str, tuple[str, Any]] = field(default_factory=dict)
    curve: Callable[[Params], Floats] | None = None

    def __post_init__(self) -> None:
        for name in ("best", "worst", "front", "table"):
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, read_only(values))
        self._check_directions()
        self._check_objectives()
        self._check_levels()
        self._check_conditions()

    def _check_directions(self) -> None:
        unknown = [d for d in self.directions if d not in get_args(Direction)]
        if unknown or not self.directions:
            raise ValueError(
                f"problem {self.name!r}: directions must be one or more of {get_args(Direction)}, "
                f"but got {self.directions}."
            )

    def _check_objectives(self) -> None:
        m = self.n_objectives
        lengths = {
            "objective_names": len(self.objective_names),
            "log_objectives": len(self.log_objectives),
            "best": self.best.size,
            "worst": self.worst.size,
            "front": m if self.front is None else self.front.shape[-1],
            "table": m if self.table is None else self.table.shape[-1],
        }
        wrong = {name: length for name, length in lengths.items() if length != m}
        if wrong:
            raise ValueError(f"problem {self.name!r} has {m} directions, but {wrong} objectives.")
        if not (self.losses(self.best) < self.losses(self.worst)).all():
            raise ValueError(
                f"problem {self.name!r}: best must be better than worst in every objective, but "
                f"got best {self.best.tolist()} and worst {self.worst.tolist()}."
            )

    def _check_levels(self) -> None:
        for name, values in self.levels.items():
            if self.space.get(name) != IntDistribution(0, len(values) - 1):
                raise ValueError(
                    f"problem {self.name!r}: parameter {name!r} has {len(values)} levels, so it "
                    f"must be IntDistribution(0, {len(values) - 1}), but is "
                    f"{self.space.get(name)}."
                )

    def _check_conditions(self) -> None:
        names = list(self.space)
        for name, (other, value) in self.conditions.items():
            is_before = other in names[: names.index(name)] if name in names else False
            if not is_before or not _is_in(self.space[other], value):
                raise ValueError(
                    f"problem {self.name!r}: parameter {name!r} is used where {other!r} is "
                    f"{value!r}, but the space has no such value before it."
                )

    @property
    def n_objectives(self) -> int:
        """The number of objectives, m."""
        return len(self.directions)

    @property
    def is_positive(self) -> NDArray[np.bool_]:  # (m,)
        """Which objectives are positive everywhere, and so have a logarithm."""
        positive: NDArray[np.bool_] = np.minimum(self.best, self.worst) > 0.0
        return positive

    def losses(self, values: Floats) -> Floats:  # (..., m) -> (..., m)
        """Return objective values as losses to minimise, or such losses as values."""
        return values * signs_of(self.directions)

    def ask(self, study: Study) -> Trial:
        """Ask a study for a configuration; return the trial with the parameters it uses."""
        trial = study.ask()
        self.suggest(trial)
        return trial

    def suggest(self, trial: Trial) -> dict[str, Any]:
        """Ask a trial for a configuration, one parameter after the other, and return it."""
        return self._used(lambda name: suggest(trial, name, self.space[name]))

    def used(self, params: Params) -> dict[str, Any]:
        """Return the part of a point of the whole space that is a configuration."""
        return self._used(params.__getitem__)

    def _used(self, value_of: Callable[[str], Any]) -> dict[str, Any]:
        params: dict[str, Any] = {}
        for name in self.space:
            if self._is_used(name, params):
                params[name] = value_of(name)
        return params

    def _is_used(self, name: str, params: Params) -> bool:
        """Return whether a parameter is used, given those that stand before it."""
        if name not in self.conditions:
            return True
        other, value = self.conditions[name]
        return other in params and bool(params[other] == value)

    def evaluate(self, params: Params, seed: int) -> tuple[float, ...]:
        """Return the objectives of one configuration.

        Args:
            params: A value of `space` for each parameter that the configuration uses.
            seed: The seed of the run. The result depends on `params` and `seed` alone.
        """
        self._check_params(params)
        return self.function(params, seed)

    def show(self, params: Params) -> dict[str, Any]:
        """Return parameters with real values in place of indices, for tables and plots.

        Args:
            params: Some or all parameters of a configuration.
        """
        return {
            name: self.levels[name][value] if name in self.levels else value
            for name, value in params.items()
        }

    def _check_params(self, params: Params) -> None:
        names = [name for name in self.space if self._is_used(name, params)]
        if params.keys() != set(names):
            raise ValueError(
                f"problem {self.name!r} needs the parameters {sorted(names)}, "
                f"but got {sorted(params)}."
            )
        for name in names:
            if not _is_in(self.space[name], params[name]):
                raise ValueError(
                    f"problem {self.name!r}: parameter {name!r} must be in {self.space[name]}, "
                    f"but is {params[name]!r}."
                )


def read_only(values: Floats) -> Floats:
    """Return a view of values that cannot be written to."""
    view = values.view()
    view.flags.writeable = False
    return view


def _is_in(distribution: Any, value: Any) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return value in distribution.choices
    kind = numbers.Integral if isinstance(distribution, IntDistribution) else numbers.Real
    if not isinstance(value, kind) or isinstance(value, bool):
        return False
    return bool(distribution.low <= value <= distribution.high)


@cache
def _families() -> dict[str, ModuleType]:
    from metatpe.bench import families

    names = sorted(module.name for module in pkgutil.iter_modules(families.__path__))
    modules = [importlib.import_module(f"{families.__name__}.{name}") for name in names]
    return {name.replace("_", "-"): module for name, module in zip(names, modules, strict=True)}


def suite_names() -> tuple[str, ...]:
    """Return the names of all suites. Nothing is loaded.

    Example:
        >>> "hpolib" in suite_names()
        True
    """
    return tuple(_families())


def problem_names(suite: str | None = None) -> tuple[str, ...]:
    """Return the names of all problems, or of those of one suite. No table is loaded.

    Example:
        >>> problem_names("ellipsoid")
        ('ellipsoid4', 'ellipsoid10')
    """
    if suite is None:
        return tuple(name for family in _families().values() for name in family.NAMES)
    if suite not in _families():
        raise ValueError(unknown_name("suite", suite, suite_names()))
    return tuple(_families()[suite].NAMES)


@cache
def get_problem(name: str) -> Problem:
    """Return the problem called `name`. A table is read once per process.

    Raises:
        ValueError: If there is none of that name; close ones are listed.
        ImportError: If the package that carries its table is not installed.
        FileNotFoundError: If its table has to be fetched by hand and is not there.

    Example:
        >>> get_problem("ellipsoid4-c2.5").directions
        ('minimize',)
    """
    problem: Problem = _families()[suite_of(name)].load(name)
    return problem


def suite_of(name: str) -> str:
    """Return the suite of a problem. No table is loaded.

    Raises:
        ValueError: If there is no problem of that name; close ones are listed.
    """
    for suite, family in _families().items():
        pattern = getattr(family, "PATTERN", None)
        if name in family.NAMES or (pattern and pattern.fullmatch(name)):
            return suite
    raise ValueError(unknown_name("problem", name, problem_names()))


def past_names(name: str) -> tuple[str, ...]:
    """Return the problems that are the past of a problem. No table is loaded."""
    family = _families()[suite_of(name)]
    if hasattr(family, "past"):
        return tuple(family.past(name))
    return tuple(other for other in family.NAMES if other != name)


def get_suite(name: str) -> tuple[Problem, ...]:
    """Return the problems of a suite, or the one problem of that name.

    Raises:
        ValueError: If there is neither; close names are listed.

    Example:
        >>> [problem.name for problem in get_suite("ellipsoid")]
        ['ellipsoid4', 'ellipsoid10']
    """
    return tuple(get_problem(member) for member in expand(name))


def expand(name: str) -> tuple[str, ...]:
    """Return the names of the problems of a suite, or the one name of a problem.

    Raises:
        ValueError: If there is neither; close names are listed.
    """
    if name in suite_names():
        return problem_names(name)
    try:
        suite_of(name)
    except ValueError:
        known = suite_names() + problem_names()
        raise ValueError(unknown_name("problem or suite", name, known)) from None
    return (name,)


def unknown_name(kind: str, name: str, known: Sequence[str]) -> str:
    """Return the sentence about a name that nobody has, with those that are close."""
    close = [k for k in known if name in k] or difflib.get_close_matches(name, known, cutoff=0.5)
    if close:
        return f"unknown {kind} {name!r}; did you mean {' or '.join(map(repr, close))}?"
    return f"unknown {kind} {name!r}; there are {', '.join(known)}."
