"""Random studies of every kind: spaces, histories, past studies, states, constraints, names."""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from metatpe import MetaTPESampler, Space, Task, TransferPruner, TransferSampler
from metatpe.baselines import RGPESampler, TSTRSampler, WarmStartSampler
from metatpe.samplers.base import PastSampler
from metatpe.study.trials import REPORT

Rng = np.random.Generator
KINDS: tuple[type[PastSampler], ...] = (
    MetaTPESampler,
    TransferSampler,
    RGPESampler,
    TSTRSampler,
    WarmStartSampler,
)
NAMES = (
    "x",
    "",
    " ",
    "a b",
    "größe",
    "日本",
    "<b>&amp;</b>",
    "$x^2$",
    "%{y}",
    "[red]x[/red]",
    "</script><script>alert(1)</script>",
    "--json",
    "a|b",
    "__init__",
    "params_x",
    "target",
    "x" * 300,
    "\x1b]52;c;aGk=\x07",
    "\x9b31m",
    "\u202eevil",
    "two\nlines",
    "tab\there",
    "\x00nul",
    "\ud800",
    "'\"\\",
)
HIDDEN = re.compile(  # line feeds and tabs belong to a document
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
VALUES = (0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, 1.7e308, -1.7e308, float("inf"))
_CHOICES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, 0.0, 1.0, 0.5, float("nan"), float("inf")),
    *("a", "b", "", "1", "True", "None", *NAMES),
)


def _float(rng: Rng) -> BaseDistribution:
    low = float(rng.choice([0.0, -1.0, 1e-8, -1e300, 5.0, 1e15]))
    return FloatDistribution(low, low + float(rng.choice([0.0, 1e-6, 1.0, 1e9, 1e300])))


def _log_float(rng: Rng) -> BaseDistribution:
    low = float(rng.choice([1e-300, 1e-8, 0.1, 3.0]))
    return FloatDistribution(low, low * float(rng.choice([1.0, 2.0, 1e8, 1e300])), log=True)


def _stepped(rng: Rng) -> BaseDistribution:
    low, step = float(rng.choice([0.0, -10.2, 1e6])), float(rng.choice([0.1, 0.25, 3.0]))
    return FloatDistribution(low, low + step * int(rng.integers(0, 400)), step=step)


def _int(rng: Rng) -> BaseDistribution:
    low = int(rng.choice([0, 1, -7, 10**6]))
    width = int(rng.choice([0, 1, 15, 16, 255, 256, 10**6, 2**53, 2**62]))
    # Optuna stores numbers as floats, which beyond 2**53 miss the values of a grid.
    step = 1 if width >= 2**53 else int(rng.choice([1, 1, 3]))
    return IntDistribution(low, low + width, step=step)


def _log_int(rng: Rng) -> BaseDistribution:
    return IntDistribution(1, 1 + int(rng.choice([0, 1, 20, 300, 2**31, 2**62])), log=True)


def _choices(rng: Rng) -> BaseDistribution:
    n = int(rng.choice([1, 2, 3, 16, 17]))
    return CategoricalDistribution([_CHOICES[i] for i in rng.integers(len(_CHOICES), size=n)])


def _many_choices(rng: Rng) -> BaseDistribution:
    return CategoricalDistribution(range(int(rng.choice([65, 257, 1000], p=[0.5, 0.4, 0.1]))))


_MAKERS: tuple[Callable[[Rng], BaseDistribution], ...] = (
    *(_float, _log_float, _stepped, _int, _log_int, _choices, _many_choices),
)
Distributions = dict[str, BaseDistribution]


def random_space(rng: Rng) -> Distributions:
    """Return one to four parameters."""
    names = rng.choice(len(NAMES), size=int(rng.integers(1, 5)), replace=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not divisible by `step`")
        return {NAMES[i]: _MAKERS[rng.integers(len(_MAKERS))](rng) for i in names}


def changed(space: Distributions, rng: Rng) -> Distributions:
    """Return the space of another study: some parameters are lacking, others have new ranges."""
    fresh = random_space(rng)
    kept = {name: d for name, d in space.items() if rng.random() < 0.7}
    moved = {name: next(iter(random_space(rng).values())) for name in kept if rng.random() < 0.2}
    return {**kept, **moved} or fresh


def _params(space: Distributions, rng: Rng) -> dict[str, Any]:
    (params,) = Space(space).decode(rng.random((1, len(space))))
    return {name: v for name, v in params.items() if rng.random() < 0.9}  # branches


def _value(rng: Rng) -> float:
    kind = rng.random()
    if kind < 0.7:
        return float(rng.normal())
    return float(rng.integers(3)) if kind < 0.9 else float(rng.choice(VALUES))


def random_name(rng: Rng) -> str:
    """Return the name of a study, a parameter, or a column."""
    return NAMES[rng.integers(len(NAMES))]


def random_curve(n_objectives: int, rng: Rng) -> dict[int, list[float]]:
    """Return what a trial reports: with gaps, of any length, falling or not, now and then NaN."""
    steps = np.unique(rng.integers(0, int(rng.choice([2, 12, 40, 10**9])), rng.integers(0, 9)))
    scale, odd = float(rng.choice([0.0, 1.0, 1e300])), float(rng.choice([0.0, 0.0, 0.3]))
    curve = {}
    for i, step in enumerate(steps.tolist()):
        values = [scale * float(rng.random()) / (i + 1) for _ in range(n_objectives)]
        if rng.random() < odd:
            values[rng.integers(n_objectives)] = rng.choice([np.nan, np.inf, -np.inf, 1.7e308])
        curve[step] = values
    return curve


def random_trial(
    space: Distributions, n_objectives: int, rng: Rng, *, reports: bool = False
) -> FrozenTrial:
    """Return a trial in any state, with a learning curve or without one."""
    states = [TrialState.COMPLETE] * 6 + [TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING]
    state = states[rng.integers(len(states))]
    params = _params(space, rng)
    attributes: dict[str, Any] = {}
    if rng.random() < 0.2:
        attributes["constraints:c"] = _value(rng)
    curve = random_curve(n_objectives, rng) if reports else {}
    if state == TrialState.PRUNED and not curve:
        curve = {0: [_value(rng)], 3: [_value(rng)]}
    if n_objectives > 1:
        attributes |= {f"{REPORT}{step}": values for step, values in curve.items()}
    began = datetime.datetime(2026, 1, 1) + datetime.timedelta(seconds=int(rng.integers(10**6)))
    trial = create_trial(
        state=state,
        params=params,
        distributions={name: space[name] for name in params},
        values=[_value(rng) for _ in range(n_objectives)]
        if state == TrialState.COMPLETE
        else None,
        intermediate_values={}
        if n_objectives > 1
        else {step: value for step, (value,) in curve.items()},
        system_attrs=attributes,
        user_attrs={random_name(rng): "\x1b[31m"} if rng.random() < 0.1 else {},
    )
    trial.datetime_start = began
    if state.is_finished():
        trial.datetime_complete = began + datetime.timedelta(seconds=1)
    return trial


def random_study(
    name: str, space: Distributions, directions: Sequence[str], n: int, rng: Rng
) -> Study:
    """Return a study with n trials."""
    study = optuna.create_study(study_name=name, directions=directions)
    if rng.random() < 0.5:
        study.set_metric_names([f"{i} {random_name(rng)}" for i in range(len(directions))])
    m, reports = len(directions), bool(rng.random() < 0.5)
    study.add_trials([random_trial(space, m, rng, reports=reports) for _ in range(n)])
    if rng.random() < 0.1:
        study.enqueue_trial(_params(space, rng))
    return study


@dataclass(frozen=True)
class Case:
    """A study with a sampler and a pruner, its past, and its space."""

    study: Study
    past: list[Study]
    space: Distributions


def random_case(rng: Rng) -> Case:
    """Return a study that has begun."""
    space = random_space(rng)
    directions = [str(rng.choice(["minimize", "maximize"])) for _ in range(rng.integers(1, 4))]
    past = [
        random_study(random_name(rng), changed(space, rng), directions, int(k), rng)
        for k in rng.choice([1, 2, 3, 4, 6, 8, 12, 30], size=rng.integers(0, 4))
    ]
    usable = [study for study in past if _n_observations(study) > 1]
    n = int(rng.choice([0, 1, 4, 15]))
    study = random_study(random_name(rng), space, directions, n, rng)
    study.sampler = _random_sampler(usable, space, rng)
    study.pruner = TransferPruner(
        usable,
        threshold=float(rng.choice([0.0, 0.45, 1.0])),
        n_startup_trials=int(rng.integers(1, 4)),
    )
    return Case(study, usable, space)


def _n_observations(study: Study) -> int:
    wanted = (TrialState.COMPLETE, TrialState.PRUNED)
    return sum(bool(t.params) for t in study.get_trials(states=wanted))


def _random_sampler(past: Sequence[Study | Task], space: Distributions, rng: Rng) -> PastSampler:
    kind = KINDS[rng.integers(len(KINDS))]
    settings: dict[str, Any] = {"seed": int(rng.integers(1000))}
    if rng.random() < 0.3:
        settings["search_space"] = space
    if kind is not WarmStartSampler:
        settings["n_startup_trials"] = int(rng.integers(0, 4))
        settings["start"] = str(rng.choice(["portfolio", "draw", "random"]))
    return kind(past, **settings)
