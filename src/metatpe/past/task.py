"""Past problems as frozen arrays, and where they come from.

A `Task` is what the method sees of a finished study: points of the unit cube, losses that are
always minimised, and by how much each observation violates its constraints.

Shapes: X (n, d), losses (n, m), violation (n,); one row per observation.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)
from optuna.study import Study

from metatpe.distributions import is_same
from metatpe.html import table
from metatpe.past.curves import check_table, table_of, taken
from metatpe.past.read import task_file
from metatpe.space import Floats, Mask, Space, shown
from metatpe.study.record import params_of
from metatpe.study.trials import (
    curve_of,
    is_counted,
    joined,
    lateness_of,
    losses_of,
    used_distributions,
    violation_of,
)
from metatpe.text import on_one_line
from metatpe.words import counted

if TYPE_CHECKING:
    from metatpe.past.read.infer import Given

_logger = logging.getLogger(__name__)
_ARRAYS = ("X", "losses", "violation", "numbers")  # of a task
_CURVES = "curves"  # an array that a saved task may lack
_LEFT_OUT: Floats = np.empty(0)  # an argument that was not given


class Encoded(NamedTuple):
    """A task's observations in another space.

    A value that the other space does not have is missing there. An observation that has lost more
    than half of what it used of the shared parameters is not usable, nor is one that used none of
    them.
    """

    X: Floats  # (n, d)
    is_usable: Mask  # (n,)
    is_whole: Mask  # (n,), whether nothing was lost
    lost: dict[str, int]  # each shared parameter -> values that do not fit the space

    def describe(self) -> str:
        """Return what was lost, as a sentence; empty where nothing was."""
        n = len(self.X)
        if not self.lost:
            return "it has no parameter in common with the study."
        if not self.is_usable.any():
            return "all of it lies outside of the study's space."
        parts = [f"{k} of {n} values of {name!r}" for name, k in self.lost.items() if k]
        if not self.is_usable.all():
            parts.append(f"{n - int(self.is_usable.sum())} of {n} observations as a whole")
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
        objective_names: One name per objective, or none.
        numbers: (n, d), the values that X was made from, as `Space.numbers` has them; left out,
            they are decoded from X, which may differ from the original in the last digit.
        curves: (r, 2 + m), the losses that observations reported on the way: the row of the
            observation, the step, and the losses; left out, there are none.

    Example:
        >>> space = Space({"lr": FloatDistribution(1e-4, 1e-2, log=True)})
        >>> task = Task("old", space, X=[[0.0], [0.5], [1.0]], losses=[[3.0], [1.0], [2.0]])
        >>> task
        Task('old', 3 observations, 1 parameter, 1 objective)
        >>> f"{task.configuration(1)['lr']:.4f}"
        '0.0010'
    """

    name: str
    space: Space
    X: Floats
    losses: Floats
    violation: Floats = field(default_factory=lambda: _LEFT_OUT)
    objective_names: tuple[str, ...] = ()
    numbers: Floats = field(default_factory=lambda: _LEFT_OUT)
    curves: Floats = field(default_factory=lambda: _LEFT_OUT)

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
        none = np.empty((0, 2 + self.losses.shape[-1]))
        self._freeze(_CURVES, none if self.curves is _LEFT_OUT else self.curves)
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
                f"task {self.name!r}: losses must have {n} rows and one column per objective, "
                f"but have the shape {self.losses.shape}."
            )
        check_table(self.name, self.curves, *self.losses.shape)
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
            "numbers must be values of the parameters, but are not": ~self.space.may_have(
                self.numbers
            ),
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
                f"task {self.name!r}: {counted(self.n_objectives, 'objective')}, "
                f"but {len(self.objective_names)} objective_names."
            )

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        return (
            f"Task({self.name!r}, {counted(len(self), 'observation')}, "
            f"{counted(len(self.space), 'parameter')}, "
            f"{counted(self.n_objectives, 'objective')})"
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
            ValueError: The study has no such trial, or none with a parameter, or is only a name.
        """
        if isinstance(study, str):
            raise ValueError(
                f"study must be an Optuna study, but is the string {study!r}; load_tasks(url, "
                "name) reads a study of a storage."
            )
        name = study.study_name if name is None else name
        trials = [t for t in study.get_trials(deepcopy=False) if is_counted(t)]
        trials.sort(key=lambda t: (*lateness_of(t, study.directions), t.number))
        space = Space(used_distributions(trials))
        if not trials or not len(space):
            raise ValueError(
                f"study {name!r} has no finished trial{' with a parameter' if trials else ''}; "
                "leave it out."
            )
        numbers = space.numbers([params_of(t) for t in trials])
        return cls(
            name=name,
            space=space,
            X=space.encode_numbers(numbers),
            losses=np.array([losses_of(t, study.directions) for t in trials]),
            violation=np.array([violation_of(t) for t in trials]),
            objective_names=tuple(study.metric_names or ()),
            numbers=numbers,
            curves=table_of([curve_of(t, study.directions) for t in trials], study.directions),
        )

    @classmethod
    def from_dataframe(
        cls,
        df: Any,
        *,
        objectives: str | Sequence[str],
        directions: str | Sequence[str] = "minimize",
        params: Sequence[str] | Mapping[str, Given] | None = None,
        name: str = "table",
    ) -> Task:
        """Read a table with one row per evaluation.

        Args:
            df: A data frame of pandas or Polars, or a mapping of column names to lists.
            objectives: The columns that hold the objectives' values. A row without one has
                failed, and is left out.
            directions: "minimize" or "maximize", one for all objectives or one for each.
            params: The columns that are parameters; left out, all others. As a mapping, with
                what is known of each: an Optuna distribution, "float", "log", "int", "logint",
                "choice", or None. What is not given is inferred from the values: whole numbers
                are ints, a column that spans three orders of magnitude is on a log scale, text is
                categorical. An empty cell is a parameter that was not used.
            name: The task's name.

        Returns:
            The task; `describe` shows what was inferred, and so does `logging`.

        Raises:
            ValueError: A column is missing, there twice, or mixes numbers and text.

        Example:
            >>> rows = {"lr": [0.1, 0.01, 0.5], "act": ["relu", "tanh", "relu"], "loss": [3, 1, 2]}
            >>> Task.from_dataframe(rows, objectives="loss", params={"lr": "log", "act": None})
            Task('table', 3 observations, 2 parameters, 1 objective)
        """
        from metatpe.past.read.frames import columns_of
        from metatpe.past.read.tables import task_of

        columns = columns_of(df, name)
        return task_of(columns, objectives, directions, params, name, name)

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        *,
        objectives: str | Sequence[str],
        directions: str | Sequence[str] = "minimize",
        params: Sequence[str] | Mapping[str, Given] | None = None,
        name: str | None = None,
    ) -> Task:
        """Read a CSV file with a header and one row per evaluation; see `from_dataframe`.

        A file that ``study.trials_dataframe().to_csv()`` wrote is understood, too.

        Example:
            >>> Task.from_csv("runs.csv", objectives=["error", "cost"])
            Task('runs', 2 observations, 2 parameters, 2 objectives)
        """
        from metatpe.past.read.frames import read_csv
        from metatpe.past.read.tables import task_of

        columns, source = read_csv(Path(path)), os.fspath(path)
        name = Path(path).stem if name is None else name
        return task_of(columns, objectives, directions, params, name, source)

    @classmethod
    def from_mlflow(
        cls,
        experiment: str,
        *,
        objectives: str | Sequence[str],
        directions: str | Sequence[str] = "minimize",
        params: Sequence[str] | Mapping[str, Given] | None = None,
        tracking_uri: str | None = None,
        name: str | None = None,
    ) -> Task:
        """Read the finished runs of an MLflow experiment (extra `mlflow`); see `from_dataframe`.

        Args:
            experiment: Its name.
            objectives: The metrics that are objectives; the last value of each counts.
            directions: "minimize" or "maximize", one for all objectives or one for each.
            params: The parameters; left out, all that a run has logged.
            tracking_uri: Where MLflow keeps its runs; left out, where MLflow itself would look.
            name: The task's name; left out, the experiment's.

        Example:
            >>> Task.from_mlflow("resnet", objectives="val_loss")  # doctest: +SKIP
        """
        from metatpe.past.read.mlflow import read_experiment
        from metatpe.past.read.tables import task_of

        names = [objectives] if isinstance(objectives, str) else list(objectives)
        columns = read_experiment(experiment, names, tracking_uri)
        name = experiment if name is None else name
        return task_of(columns, names, directions, params, name, experiment)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the task to a file that `load` reads: exact numbers, a checksum, no pickle.

        A file that is there is replaced, in one step.

        Raises:
            ValueError: A categorical parameter has a choice that JSON does not have.
        """
        header = {
            "name": self.name,
            "objective_names": list(self.objective_names),
            "distributions": [[n, _as_json(n, d)] for n, d in self.space.distributions.items()],
        }
        # Without curves, the file is one that earlier versions open too.
        names = (*_ARRAYS, _CURVES) if len(self.curves) else _ARRAYS
        task_file.write(Path(path), header, {name: getattr(self, name) for name in names})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Task:
        """Read a task that `save` wrote.

        Raises:
            ValueError: The file is damaged, of a newer version, or not a saved task.
        """
        header, arrays = task_file.read(
            Path(path), {"name", "objective_names", "distributions"}, set(_ARRAYS), {_CURVES}
        )
        try:
            written = {str(n): json_to_distribution(text) for n, text in header["distributions"]}
            space = Space(written)
            names = tuple(map(str, header["objective_names"]))
            return cls(str(header["name"]), space, objective_names=names, **arrays)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            # Its checksum is right, but it was not written by `save`.
            raise ValueError(f"{path} is not a task that metatpe saved: {error}") from None

    def with_defaults(self, defaults: Mapping[str, Any]) -> Task:
        """Return this task with the values of parameters that used to be fixed.

        Every observation that lacks a parameter gets its default; one that has it keeps its own.

        Args:
            defaults: Parameter -> the value that it had.

        Raises:
            ValueError: A value is of another kind than the parameter's own ones.

        Example:
            >>> task = Task.from_csv("runs.csv", objectives=["error", "cost"])
            >>> task.with_defaults({"momentum": 0.9}).configuration(0)
            {...'momentum': 0.9}
        """
        distributions = self.space.distributions
        numbers = dict(zip(distributions, self.numbers.T, strict=True))
        nothing = np.full(len(self), np.nan)
        for name, value in defaults.items():
            known = numbers.get(name, nothing)
            if np.isnan(known).any():
                distributions[name] = _holding(name, value, distributions.get(name))
                number = Space({name: distributions[name]}).numbers([{name: value}])[0, 0]
                numbers[name] = np.where(np.isnan(known), number, known)
        space = Space(distributions)
        filled = np.stack([numbers[name] for name in distributions], axis=1)
        return replace(self, space=space, numbers=filled, X=space.encode_numbers(filled))

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
        is_usable = (n_used > 0) & (2 * n_lost <= n_used)
        return Encoded(X, is_usable, is_usable & (n_lost == 0), lost)

    def _column_in(self, space: Space, name: str) -> Floats:  # (n,)
        own, other = self.space.distributions[name], space.distributions[name]
        i = self.space.names.index(name)
        if is_same(own, other):
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
        """Return this task in another space; what was lost is logged.

        Raises:
            ValueError: Nothing is left.
        """
        encoded = self.encode_in(space)
        X, is_usable = encoded.X, encoded.is_usable
        if not is_usable.any():
            raise ValueError(
                f"task {self.name!r}: nothing is left in the other space; "
                f"the parameters in common are {list(encoded.lost)}."
            )
        if lost := encoded.describe():
            _logger.info("task %r: %s", self.name, lost)
        arrays = {"X": X, "losses": self.losses, "violation": self.violation}
        arrays["numbers"] = self._numbers_in(space, X)
        usable = {name: array[is_usable] for name, array in arrays.items()}
        usable[_CURVES] = taken(self.curves, is_usable)
        return Task(self.name, space, objective_names=self.objective_names, **usable)

    def _numbers_in(self, space: Space, X: Floats) -> Floats:  # (n, d)
        """Return the numbers of X in another space: the stored ones where that is the same."""
        numbers = space.decode_numbers(X)
        for j, name in enumerate(space.names):
            own = self.space.distributions.get(name)
            if own is not None and is_same(own, space.distributions[name]):
                numbers[:, j] = self.numbers[:, self.space.names.index(name)]
        return numbers

    def describe(self) -> str:
        """Return a few lines about the task: its parameters, and its smallest losses."""
        lines = [f"  {on_one_line(name)}: {on_one_line(text)}" for name, text in self._rows()]
        return "\n".join([repr(self), *lines])

    def _repr_html_(self) -> str:
        title = f"{self.name}: {counted(len(self), 'observation')}"
        return table(title, self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        """Return the rows of `describe`: parameters and where they were used, losses."""
        n_used = np.count_nonzero(~np.isnan(self.X), axis=0)
        rows = []
        for (name, distribution), k in zip(self.space.distributions.items(), n_used, strict=True):
            used = "" if k == len(self) else f" (used in {k} of {len(self)})"
            rows.append((name, shown(distribution) + used))
        names = self.objective_names or [f"objective {i}" for i in range(self.n_objectives)]
        least = zip(names, self.losses.min(axis=0), strict=True)
        rows.append(("smallest losses", ", ".join(f"{n} {loss:.6g}" for n, loss in least)))
        if n_infeasible := np.count_nonzero(self.violation):
            rows.append(("infeasible", f"{n_infeasible} of {len(self)}"))
        return rows


def own_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return names that differ from each other: the second one of a name is "name (2)"."""
    used, own = set(taken), []
    for name in names:
        variants = (name if k == 1 else f"{name} ({k})" for k in count(1))
        own.append(next(variant for variant in variants if variant not in used))
        used.add(own[-1])
    return own


def _holding(name: str, value: Any, own: BaseDistribution | None) -> BaseDistribution:
    """Return a distribution that has a value, and all those of the parameter's own one."""
    if own is not None and Space({name: own}).fit({name: value}) == {name: value}:
        return own
    alone = _alone(value, own)
    if own is None:
        return alone
    if not isinstance(own, type(alone)):
        raise ValueError(f"the default {value!r} of {name!r} does not fit into {own}.")
    return joined([own, alone])


def _alone(value: Any, own: BaseDistribution | None) -> BaseDistribution:
    """Return a distribution of one value, of the kind of another one if it can be."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(own, CategoricalDistribution) or not is_number:
        return CategoricalDistribution((value,))
    if isinstance(value, int) and not isinstance(own, FloatDistribution):
        return IntDistribution(value, value)
    return FloatDistribution(value, value)


def _as_json(name: str, distribution: BaseDistribution) -> str:
    with contextlib.suppress(TypeError):
        text = distribution_to_json(distribution)
        if is_same(json_to_distribution(text), distribution):
            return text
    raise ValueError(f"parameter {name!r} cannot be saved: JSON does not have all of its choices.")
