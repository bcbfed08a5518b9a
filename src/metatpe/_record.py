"""What a sampler leaves behind with each trial, and how it is read again.

Two things, each in attributes that stay under the 2,046 characters that every relational storage
takes:

    user attribute     metatpe             origin, weights, kept parameters: for people and plots
    system attributes  metatpe:plan:0 ...  the configuration that was chosen, which other workers
                                           read while the trial runs and has no parameters yet
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from optuna.study import Study
from optuna.trial import FrozenTrial

MAX_CHARACTERS = 2000
_CHUNK = MAX_CHARACTERS - 100  # of parameters in one attribute
_MAX_NAMES = MAX_CHARACTERS // 10  # more than fit, however short they are
TARGET = "target"
REST = "rest"
_KEY = "metatpe"
_PLAN = "metatpe:plan"

Origin = Literal["warm_start", "random", "epsilon", "acquisition", "independent"]
Turn = Literal["past", "own"]


@dataclass(frozen=True)
class Plan:
    """A configuration that was chosen for a trial, and why."""

    origin: Origin
    params: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    warm_index: int | None = None
    turn: Turn | None = None


@dataclass(frozen=True)
class TransferRecord:
    """Where one trial's configuration came from.

    Attributes:
        number: The trial's number.
        origin: "warm_start" (a past task's best; its worst where the past has turned out upside
            down), "random" (start-up), "epsilon" (the random part of the epsilon-greedy choice),
            "acquisition", or "independent" (nothing was known of the study's space yet; the value
            of each parameter is chosen when it is asked for).
        weights: Task name -> weight, the largest first; the task of the study itself is called
            "target", and what was too small to be listed is summed up in "rest". Empty where no
            weights were computed, also where `TransferSampler` has chosen without the past.
            `MetaTPESampler` weighs by similarity; of the samplers with Gaussian processes, a
            weight is a task's share in what their model predicts, also of a trial that
            `TransferSampler` has left to densities.
        kept: The parameters that the similarity was measured on; empty where there was no
            observation yet, no source, or no similarity.
        turn: Of an acquisition of `MetaTPESampler` with sources that have a weight: "past" where
            all tasks decided together, "own" where the study's own observations decided alone
            (which is tried now and then, to see whether the past pays); otherwise None.

    Example:
        >>> TransferRecord(7, "acquisition", {"target": 0.8, "resnet-18": 0.2}, ("lr",), "past")
        TransferRecord(number=7, origin='acquisition', ...)
    """

    number: int
    origin: Origin
    weights: dict[str, float]
    kept: tuple[str, ...]
    turn: Turn | None = None


def transfer_history(study: Study) -> list[TransferRecord]:
    """Return where each trial of a study came from, as its sampler recorded it.

    Trials without a record (made by another sampler, added or entirely enqueued by hand) are left
    out.

    Example:
        >>> for record in transfer_history(study):  # doctest: +SKIP
        ...     print(record.number, record.origin, record.weights)
    """
    return [
        TransferRecord(
            number=trial.number,
            origin=trial.user_attrs[_KEY]["origin"],
            weights=dict(trial.user_attrs[_KEY]["weights"]),
            kept=tuple(trial.user_attrs[_KEY]["kept"]),
            turn=trial.user_attrs[_KEY].get("turn"),
        )
        for trial in study.get_trials(deepcopy=False)
        if _KEY in trial.user_attrs
    ]


def user_attributes(plan: Plan) -> dict[str, Any]:
    """Return the attributes for people: the largest weights that fit, the target's always."""
    room = MAX_CHARACTERS - 200  # for the target, the rest and the brackets
    kept, room = _fitting(plan.kept, room // 2), room // 2
    largest = sorted(plan.weights, key=lambda name: -plan.weights[name])
    listed = set(_fitting((name for name in largest if name != TARGET), room))
    weights = {n: _rounded(plan.weights[n]) for n in largest if n in listed or n == TARGET}
    rest = sum(weight for name, weight in plan.weights.items() if name not in weights)
    if rest:
        weights[REST] = _rounded(rest)
    record = {"origin": plan.origin, "weights": weights, "kept": kept}
    return {_KEY: record if plan.turn is None else {**record, "turn": plan.turn}}


def _fitting(names: Iterable[str], room: int) -> list[str]:
    """Return the names that fit into so many characters, with a number each."""
    fitting = []
    for name in islice(names, _MAX_NAMES):
        length = _length(name) + 16
        if length <= room:
            fitting.append(name)
            room -= length
    return fitting


def _rounded(weight: float) -> float:
    return float(f"{weight:.6g}")


def system_attributes(plan: Plan) -> dict[str, Any]:
    """Return the attributes for other workers; a value that JSON does not have is left out."""
    first: dict[str, Any] = {"origin": plan.origin, "warm": plan.warm_index, "n_chunks": 1}
    if plan.turn is not None:
        first["turn"] = plan.turn
    params = {name: value for name, value in plan.params.items() if _is_plain(value)}
    if _length(params) <= _CHUNK:  # nearly always
        return {f"{_PLAN}:0": {**first, "params": params}}
    chunks: list[dict[str, Any]] = [{}]
    room = _CHUNK
    for name, value in params.items():
        length = _length(name) + _length(value) + 4
        if length > _CHUNK:
            continue
        if length > room:
            chunks.append({})
            room = _CHUNK
        room -= length
        chunks[-1][name] = value
    first["n_chunks"] = len(chunks)
    written = [{**(first if i == 0 else {}), "params": chunk} for i, chunk in enumerate(chunks)]
    return {f"{_PLAN}:{i}": chunk for i, chunk in enumerate(written)}


def read_plan(trial: FrozenTrial) -> Plan | None:
    """Return what was chosen for a trial, None where nothing was chosen yet."""
    attributes = trial.system_attrs
    first = attributes.get(f"{_PLAN}:0")
    if first is None:
        return None
    params = dict(first["params"])
    for i in range(1, first["n_chunks"]):
        params.update(attributes.get(f"{_PLAN}:{i}", {"params": {}})["params"])
    return Plan(
        origin=first["origin"], params=params, warm_index=first["warm"], turn=first.get("turn")
    )


def turn_of(trial: FrozenTrial) -> float:
    """Return whose turn a trial was: 1 the past's, -1 the study's own, 0 nobody's."""
    turn = trial.system_attrs.get(f"{_PLAN}:0", {}).get("turn")
    return {"past": 1.0, "own": -1.0}.get(turn, 0.0)


def warm_index_of(trial: FrozenTrial) -> int:
    """Return which of the past's configurations a trial was given, -1 where none."""
    index = trial.system_attrs.get(f"{_PLAN}:0", {}).get("warm")
    return -1 if index is None else index


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _length(value: Any) -> int:
    return len(json.dumps(value))
