"""What a sampler leaves behind with each trial, and how it is read again.

A `Plan` is a configuration and the reason why it was chosen. It is written in attributes that stay
under the 2,046 characters that every relational storage takes:

    user attribute     metatpe             sampler, origin, reason, weights, kept parameters and
                                           sources: for people and plots
    system attributes  metatpe:plan:0 ...  the configuration that was chosen, which other workers
                                           read while the trial runs and has no parameters yet
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, overload

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial

from metatpe.study.access import fixed_params
from metatpe.study.stops import trials_of

if TYPE_CHECKING:
    import pandas as pd

MAX_CHARACTERS = 2000
_CHUNK = MAX_CHARACTERS - 100  # of parameters in one attribute
_MAX_NAMES = MAX_CHARACTERS // 10  # more than fit, however short they are
TARGET = "target"
REST = "rest"
UNKNOWN = "unknown"  # in records that were written before samplers gave reasons
_KEY = "metatpe"
_PLAN = "metatpe:plan"

Origin = Literal["warm_start", "random", "epsilon", "acquisition", "independent"]
Reason = Literal[
    "portfolio",
    "best",
    "reversed",
    "startup",
    "no_start_left",
    "epsilon",
    "weighed",
    "own",
    "silent",
    "no_weight",
    "densities",
    "no_past",
    "unknown_space",
    "unknown",
]
# Records of earlier versions say whose turn a trial was, and nothing else.
_REASON_OF_TURN: dict[str | None, Reason] = {"past": "weighed", "own": "own", None: "unknown"}
_TURN_OF_REASON = {"weighed": 1.0, "own": -1.0}


@dataclass(frozen=True)
class Plan:
    """A configuration that was chosen for a trial, and why; see `TransferRecord`."""

    origin: Origin
    reason: Reason
    params: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    start: int | None = None  # which of the first configurations of the past this is
    sources: tuple[str, ...] = ()
    sampler: str = UNKNOWN


@dataclass(frozen=True)
class TransferRecord:
    """Where the configuration of one trial came from, and why.

    Attributes:
        number: The number of the trial.
        origin: "warm_start" (a configuration of a past study), "random" (at the start), "epsilon"
            (the random part of the epsilon-greedy choice), "acquisition", or "independent"
            (nothing was known of the search space yet; each value is chosen when it is asked for).
        reason: Why, one of

            - "portfolio": a warm start chosen for the past studies named in `sources`.
            - "best": a warm start that was among the best of a past study.
            - "reversed": a warm start that was among the worst of a past study, because the past
              studies order the trials in reverse.
            - "startup": random, because the study has too few trials to model.
            - "no_start_left": random, because there was no further warm start that fits.
            - "epsilon": random, to explore.
            - "weighed": past studies and the study itself, each with its weight.
            - "own": the study alone, although past studies have weight. A random share of the
              trials is chosen this way, to measure whether past studies help.
            - "silent": the study alone, because it has too few good trials for a comparison.
            - "no_weight": the study alone, because no past study has any weight.
            - "densities": by densities, as `MetaTPESampler` does it, because the models of
              `TransferSampler` do not order the trials well.
            - "no_past": the study alone, because there are no past studies.
            - "unknown_space": chosen when no parameter of the study was known yet.
            - "unknown": recorded before samplers gave reasons.
        weights: Name of the past study -> weight, the largest first. The study itself is called
            "target"; weights too small to be listed are added up in "rest". Empty if no weights
            were computed. Weights of `MetaTPESampler` come from the similarity, and are also
            recorded for choices without past studies. For samplers with Gaussian processes, a
            weight is the share of a past study in the predictions.
        kept: The parameters that the similarity was measured on.
        sources: The past studies that a warm start came from.
        sampler: The name of the sampler, "unknown" in old records.

    Example:
        >>> TransferRecord(7, "acquisition", "weighed", {"target": 0.8, "resnet-18": 0.2}, ("lr",))
        TransferRecord(number=7, origin='acquisition', reason='weighed', ...)
    """

    number: int
    origin: Origin
    reason: Reason
    weights: dict[str, float] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    sampler: str = UNKNOWN


@overload
def transfer_history(
    study: Study, *, as_dataframe: Literal[False] = False
) -> list[TransferRecord]: ...


@overload
def transfer_history(study: Study, *, as_dataframe: Literal[True]) -> pd.DataFrame: ...


def transfer_history(
    study: Study, *, as_dataframe: bool = False
) -> list[TransferRecord] | pd.DataFrame:
    """Return where each trial of a study came from, as its sampler recorded it.

    Trials without a record are left out: those of another sampler, and those added or entirely
    enqueued by hand.

    Args:
        study: The study.
        as_dataframe: Return a pandas DataFrame (extra `bench`, or pandas itself) with one row per
            record: `number`, `sampler`, `origin`, `reason`, `kept` and `sources` (names, separated
            by commas), and a column `weight_NAME` per past study, NaN where no weight was
            recorded. `number` is that of `study.trials_dataframe()`, to join the two.

    Example:
        >>> for record in transfer_history(study)[:1]:
        ...     print(record.number, record.origin, record.reason, record.weights)
        0 warm_start portfolio {}
        >>> trials = study.trials_dataframe()
        >>> table = trials.merge(transfer_history(study, as_dataframe=True), on="number")
    """
    found = map(record_of, trials_of(study))
    records = [record for record in found if record is not None]
    return _as_dataframe(records) if as_dataframe else records


def _as_dataframe(records: Sequence[TransferRecord]) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("as_dataframe=True needs pandas: pip install pandas") from None
    names = dict.fromkeys(name for record in records for name in record.weights)
    rows = [{**flat_record(record), **_weight_columns(record.weights)} for record in records]
    return pd.DataFrame(rows, columns=["number", *_FLAT, *_weight_columns(dict.fromkeys(names))])


_FLAT = ("sampler", "origin", "reason", "kept", "sources")


def flat_record(record: TransferRecord) -> dict[str, Any]:
    """Return a record as numbers and texts, without its weights."""
    texts = {"kept": ", ".join(record.kept), "sources": ", ".join(record.sources)}
    return {
        "number": record.number,
        "sampler": record.sampler,
        "origin": record.origin,
        "reason": record.reason,
        **texts,
    }


def _weight_columns(weights: Mapping[str, Any]) -> dict[str, Any]:
    return {f"weight_{name}": weight for name, weight in weights.items()}


def record_of(trial: FrozenTrial) -> TransferRecord | None:
    """Return where one trial came from, None where it has no record."""
    stored = trial.user_attrs.get(_KEY)
    if stored is None:
        return None
    return TransferRecord(
        number=trial.number,
        origin=stored["origin"],
        reason=_reason(stored),
        weights=dict(stored["weights"]),
        kept=tuple(stored["kept"]),
        sources=tuple(stored.get("sources", ())),
        sampler=stored.get("sampler", UNKNOWN),
    )


def user_attributes(plan: Plan) -> dict[str, Any]:
    """Return the attributes for people: the largest weights that fit, the target's always."""
    room = (MAX_CHARACTERS - 300) // 3  # without the target, the rest, the names and the brackets
    largest = sorted(plan.weights, key=lambda name: -plan.weights[name])
    listed = set(_fitting((name for name in largest if name != TARGET), room))
    weights = {n: _rounded(plan.weights[n]) for n in largest if n in listed or n == TARGET}
    rest = sum(weight for name, weight in plan.weights.items() if name not in weights)
    if rest:
        weights[REST] = _rounded(rest)
    record = {
        "sampler": plan.sampler,
        "origin": plan.origin,
        "reason": plan.reason,
        "weights": weights,
        "kept": _fitting(plan.kept, room),
    }
    if plan.sources:
        record["sources"] = _fitting(plan.sources, room)
    return {_KEY: record}


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
    """Return the attributes for other workers; values that do not fit into them are left out."""
    first: dict[str, Any] = {
        "origin": plan.origin,
        "reason": plan.reason,
        "warm": plan.start,
        "n_chunks": 1,
    }
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
    return Plan(first["origin"], _reason(first), params, start=first["warm"])


def params_of(trial: FrozenTrial) -> Mapping[str, Any]:
    """Return the parameters of a trial as the objective got them.

    Of choices that compare equal, such as 1 and 1.0 or 0 and False, Optuna stores the first one.
    Which one it was is known from the plan, or from what was enqueued.
    """
    if not any(map(_has_equal_choices, trial.distributions.values())):
        return trial.params
    plan = read_plan(trial)
    given = {**(plan.params if plan else {}), **fixed_params(trial)}
    return {n: given[n] if n in given and given[n] == v else v for n, v in trial.params.items()}


def _has_equal_choices(distribution: BaseDistribution) -> bool:
    if not isinstance(distribution, CategoricalDistribution):
        return False
    numbers = [c for c in distribution.choices if isinstance(c, bool | int | float)]
    return len({*numbers}) < len(numbers)


def _reason(stored: Mapping[str, Any]) -> Reason:
    reason: Reason = stored.get("reason") or _REASON_OF_TURN[stored.get("turn")]
    return reason


def turn_of(trial: FrozenTrial) -> float:
    """Return 1 for the reason "weighed", -1 for "own", 0 for any other."""
    return _TURN_OF_REASON.get(_reason(trial.system_attrs.get(f"{_PLAN}:0", {})), 0.0)


def start_of(trial: FrozenTrial) -> int:
    """Return which of the first configurations of the past a trial was given, -1 where none."""
    index = trial.system_attrs.get(f"{_PLAN}:0", {}).get("warm")
    return -1 if index is None else index


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _length(value: Any) -> int:
    return len(json.dumps(value))
