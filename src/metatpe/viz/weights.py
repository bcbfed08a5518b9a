"""What is drawn of a study's transfer history: weights over trials, and how trials were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from optuna.study import Study

from metatpe.space import Floats, Ints
from metatpe.study.record import REST, TARGET, Origin, Reason, TransferRecord, transfer_history
from metatpe.viz import style
from metatpe.viz.style import ALL_COLOURS, GREY, MAX_SHOWN, Look, Shown, look, shortened

# Reason -> what the lane of such trials is called, the first one on top. "alone": the study alone.
LANES: dict[Reason, str] = {
    "portfolio": "portfolio",
    "best": "warm start",
    "reversed": "warm start, reversed",
    "startup": "random start-up",
    "no_start_left": "random, no start left",
    "unknown_space": "search space unknown",
    "epsilon": "random, to explore",
    "weighed": "with past studies",
    "own": "alone, to compare",
    "silent": "alone, few good trials",
    "no_weight": "alone, no weight",
    "densities": "by densities",
    "no_past": "alone, no past study",
    "unknown": "unknown",
}
_OLD: dict[Origin, Reason] = {  # these origins have one reason only
    "warm_start": "best",
    "epsilon": "epsilon",
    "independent": "unknown_space",
}
NO_RECORD = "no record"  # trials of other samplers, and those added by hand
# Reasons of one kind share a colour, and each has a marker of its own: orange are configurations
# of the past, blue those that it influenced, green those of the study alone, purple random ones.
_KINDS: dict[str, tuple[Reason, ...]] = {
    ALL_COLOURS[1]: ("portfolio", "best", "reversed"),
    ALL_COLOURS[0]: ("weighed",),
    ALL_COLOURS[4]: ("densities",),
    ALL_COLOURS[2]: ("own", "silent", "no_weight", "no_past"),
    ALL_COLOURS[3]: ("epsilon", "startup", "no_start_left", "unknown_space"),
    GREY: ("unknown",),
}
_MARKERS = {"portfolio": 1, "weighed": 0, "densities": 4, "own": 2, "epsilon": 3, "unknown": 5}


def _looks() -> dict[str, Look]:
    """Return how the trials of each lane are drawn, in every plot."""
    found = {}
    for colour, reasons in _KINDS.items():
        first = _MARKERS[reasons[0]]
        for i, reason in enumerate(reasons):
            found[LANES[reason]] = look(first + 3 * i)._replace(colour=colour)
    return {**found, NO_RECORD: look(6)._replace(colour=GREY)}


LOOKS = _looks()


@dataclass(frozen=True, eq=False)
class Weights(Shown):
    """The weights of n trials, those that have any."""

    trials: Ints  # (n,) their numbers
    past: dict[str, Floats]  # (n,) each; NaN where it is hidden in the rest; the largest first
    rest: Floats  # (n,) of all other past tasks together
    target: Floats  # (n,)
    lanes: dict[str, list[int]]  # how trials were chosen -> their numbers

    @property
    def shares(self) -> list[tuple[str, Floats, tuple[str, float]]]:
        """How the whole weight is divided: name, weights (n,), and colour with its opacity."""
        if not len(self.trials):
            return []
        listed = enumerate(self.past.items())
        past = [(name, np.nan_to_num(w), (look(i).colour, 0.8)) for i, (name, w) in listed]
        rest = [(style.REST, self.rest, (GREY, 0.7))] if self.rest.any() else []
        return [*past, *rest, (style.TARGET, self.target, (GREY, 0.25))]


def weights_of(study: Study) -> Weights:
    """Read the weights of the largest past tasks, and how each trial was chosen."""
    history = transfer_history(study)
    weighed = [record for record in history if record.weights]
    names = _largest(weighed)
    target = np.array([record.weights[TARGET] for record in weighed])
    past = {name: np.array([_weight(record, name) for record in weighed]) for name in names}
    listed = [sum(record.weights.get(name, 0.0) for name in names) for record in weighed]
    # Weights are stored in six digits: what is left may be a trace of that.
    rest = (1.0 - target - listed).round(5) if weighed else target
    return Weights(
        title="Weights of the past studies",
        about=shortened(study.study_name),
        trials=np.array([record.number for record in weighed], dtype=np.int64),
        past=past,
        rest=np.maximum(rest, 0.0),
        target=target,
        lanes=_lanes(history),
        note=_note(history, past),
    )


def _largest(weighed: Sequence[TransferRecord]) -> list[str]:
    """Return the past tasks with the largest weights over all trials."""
    total: dict[str, float] = {}
    for record in weighed:
        for name, weight in record.weights.items():
            if name not in (TARGET, REST):
                total[name] = total.get(name, 0.0) + weight
    return sorted(total, key=lambda name: -total[name])[:MAX_SHOWN]


def _weight(record: TransferRecord, name: str) -> float:
    """Return the weight of a past task; one that is not listed has none, or is in the rest."""
    return record.weights.get(name, np.nan if REST in record.weights else 0.0)


def reason_of(record: TransferRecord) -> Reason:
    """Return the reason of a trial, in an old record the one that its origin implies."""
    return _OLD.get(record.origin, "unknown") if record.reason == "unknown" else record.reason


def described(record: TransferRecord) -> str:
    """Return in words how a trial was chosen; of a warm start, also the past studies it is of."""
    lane = LANES[reason_of(record)]
    if record.origin != "warm_start":
        return lane
    return f"{lane} of {', '.join(record.sources) or 'unknown'}"


def _lanes(history: Sequence[TransferRecord]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {name: [] for name in LANES.values()}
    for record in history:
        found[LANES[reason_of(record)]].append(record.number)
    return {name: numbers for name, numbers in found.items() if numbers}


def _note(history: Sequence[TransferRecord], past: dict[str, Floats]) -> str:
    if not history:
        return "no trial of this study was suggested by a sampler of metatpe"
    return "" if past else "no past task has had a weight yet"
