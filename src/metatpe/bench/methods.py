"""The methods that are compared, by name. Adding one is one entry of `_METHODS`.

A method is a sampler and the terms that it runs under. What goes in is a `Setup`: the problem, the
past tasks and the seed of one run; what comes out is an Optuna sampler. The terms: which
configurations come first, whether objectives are told as logarithms, which settings a run may
change, and which package the method cannot do without.

First configurations, the same for every method with one seed:

    "own"       the sampler makes its own; those of MetaTPESampler are the warm starts
    "warm"      the warm starts are enqueued; `NAME+warm` is this for each method without a past
    "random"    random ones are enqueued
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.samplers import BaseSampler

from metatpe.baselines import RGPESampler, TSTRSampler, WarmStartSampler
from metatpe.bench.past import random_configurations
from metatpe.bench.problems import Problem, unknown_name
from metatpe.extras import install_command
from metatpe.past.start import draw
from metatpe.past.task import Task
from metatpe.samplers.meta_tpe import MetaTPESampler
from metatpe.samplers.transfer import TransferSampler

First = Literal["own", "warm", "random"]
_TPE_SETTINGS = frozenset({"gamma", "eta", "epsilon", "n_ei_candidates", "n_mc_samples"})
_TPE_SETTINGS_WITHOUT_WEIGHING = _TPE_SETTINGS - {"eta", "n_mc_samples"}


@dataclass(frozen=True, eq=False)
class Setup:
    """What a method knows before the first evaluation of a run."""

    problem: Problem
    past: tuple[Task, ...]
    seed: int
    n_start: int  # first configurations
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A sampler and the terms that it runs under.

    Attributes:
        name: As the command knows it.
        about: What it is, in a few words.
        make: Returns the sampler of one run.
        first: Where the first configurations come from.
        uses_past: Whether the sampler is given the past tasks.
        is_told_log: Whether it is told the logarithm of objectives that are positive everywhere.
        settings: The names that `Setup.settings` may have.
        needs: The module that it cannot do without, and the extra that brings it.
    """

    name: str
    about: str
    make: Callable[[Setup], BaseSampler]
    first: First = "random"
    uses_past: bool = False
    is_told_log: bool = False
    settings: frozenset[str] = frozenset()
    needs: tuple[str, str] | None = None

    @property
    def missing(self) -> str | None:
        """Why the method is not available here, as a sentence; None where it is."""
        if self.needs is None or importlib.util.find_spec(self.needs[0]) is not None:
            return None
        module, extra = self.needs
        return f"method {self.name!r} needs {module}: {install_command(extra)}"

    def check(self, settings: Mapping[str, Any]) -> None:
        """Refuse settings that the method does not have."""
        unknown = sorted(settings.keys() - self.settings)
        if unknown:
            has = ", ".join(sorted(self.settings)) or "none"
            raise ValueError(
                f"method {self.name!r} has no setting {unknown[0]!r}; its settings: {has}."
            )

    def first_configurations(self, start: Setup) -> tuple[dict[str, Any], ...]:
        """Return the configurations that are to be enqueued at the start of a run."""
        n = start.n_start
        if self.first == "random" or not start.past:
            return random_configurations(start.problem, n, (start.seed, 0))
        if self.first == "warm":
            return tuple(dict(c.params) for c in draw(start.past, n).configurations[:n])
        return ()

    def is_log(self, problem: Problem) -> NDArray[np.bool_]:  # (m,)
        """Return which objectives the method is told the logarithm of."""
        return problem.is_positive & self.is_told_log


def _maker(
    sampler: Callable[..., BaseSampler], *, has_past: bool = True
) -> Callable[[Setup], BaseSampler]:
    """Return what makes this sampler for a run, with the past tasks or without them."""

    def make(start: Setup) -> BaseSampler:
        past = (start.past,) if has_past else ()
        return sampler(*past, n_startup_trials=start.n_start, seed=start.seed, **start.settings)

    return make


_ACQUISITIONS: dict[Literal["ehvi", "parego"], str] = {
    "ehvi": "expected hypervolume improvement",
    "parego": "random scalarisations",
}
_transferring = partial(Method, first="own", uses_past=True)
_ENSEMBLES = tuple(
    _transferring(
        f"{name}-{acquisition}",
        f"{sampler.__name__}, {about}",
        _maker(partial(sampler, acquisition=acquisition, start="draw")),
    )
    for name, sampler in (("rgpe", RGPESampler), ("tstr", TSTRSampler))
    for acquisition, about in _ACQUISITIONS.items()
)
_WITH_PAST = (
    _transferring(
        "meta-tpe",
        "MetaTPESampler with the past tasks",
        _maker(partial(MetaTPESampler, start="draw")),
        settings=_TPE_SETTINGS,
    ),
    _transferring(
        "meta-tpe-portfolio",
        "the same, started by a portfolio",
        _maker(MetaTPESampler),
        settings=_TPE_SETTINGS,
    ),
    _transferring(
        "meta-tpe-paper",
        "the paper's text, without our rules",
        _maker(MetaTPESampler.as_published),
        settings=_TPE_SETTINGS,
    ),
    _transferring(
        "transfer",
        "TransferSampler with the past tasks",
        _maker(TransferSampler),
    ),
    _transferring(
        "transfer-draw",
        "the same, started by the paper's draw",
        _maker(partial(TransferSampler, start="draw")),
    ),
    _transferring(
        "naive-meta-tpe",
        "the same weight on every task",
        _maker(partial(MetaTPESampler, weights="uniform", start="draw")),
        settings=_TPE_SETTINGS_WITHOUT_WEIGHING,
    ),
    _transferring(
        "only-warm-start",
        "the best tenth of each past task, then random",
        lambda start: WarmStartSampler(start.past, seed=start.seed),
    ),
    *_ENSEMBLES,
)
_tpe, _gp = optuna.samplers.TPESampler, _maker(optuna.samplers.GPSampler, has_past=False)
_WITHOUT_PAST = (
    Method(
        "mo-tpe",
        "MetaTPESampler without past studies",
        _maker(MetaTPESampler, has_past=False),
        settings=_TPE_SETTINGS_WITHOUT_WEIGHING,
    ),
    Method(
        "transfer-alone",
        "TransferSampler without past studies",
        _maker(TransferSampler, has_past=False),
    ),
    Method(
        "random",
        "Optuna's RandomSampler",
        lambda start: optuna.samplers.RandomSampler(seed=start.seed),
    ),
    Method("optuna-tpe", "Optuna's TPESampler", _maker(_tpe, has_past=False)),
    Method(
        "optuna-tpe-multivariate",
        "Optuna's TPESampler, multivariate",
        _maker(partial(_tpe, multivariate=True), has_past=False),
    ),
    Method("optuna-gp", "Optuna's GPSampler", _gp, needs=("torch", "gp")),
    Method(
        "optuna-gp-log",
        "Optuna's GPSampler with the logarithm of the objectives",
        _gp,
        is_told_log=True,
        needs=("torch", "gp"),
    ),
    Method(
        "optuna-nsga2",
        "Optuna's NSGAIISampler",
        lambda start: optuna.samplers.NSGAIISampler(seed=start.seed),
    ),
)


def _with_warm_starts(method: Method) -> Method:
    about = f"{method.about}, after the warm starts"
    return replace(method, name=f"{method.name}+warm", about=about, first="warm")


_METHODS = {
    method.name: method
    for method in (*_WITH_PAST, *_WITHOUT_PAST, *map(_with_warm_starts, _WITHOUT_PAST))
}


def method_names() -> tuple[str, ...]:
    """Return the names of all methods, also of those that are not available here.

    Example:
        >>> {"meta-tpe", "mo-tpe"} <= set(method_names())
        True
    """
    return tuple(_METHODS)


def get_method(name: str) -> Method:
    """Return the method called `name`.

    Raises:
        ValueError: If there is none of that name; close ones are listed.

    Example:
        >>> get_method("mo-tpe").about
        'MetaTPESampler without past studies'
    """
    if name not in _METHODS:
        raise ValueError(unknown_name("method", name, method_names()))
    return _METHODS[name]
