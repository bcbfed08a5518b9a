"""The section of a report about trials that were pruned: what that saved, why, and at what risk.

A trial that was pruned is taken to be as long as the median completed one, in reports. The number
of the best among the pruned trials is a sum of independent events with the probabilities p_i that
`TransferPruner` wrote down: its mean is sum_i p_i, and its distribution the convolution of all
(1 - p_i, p_i).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from metatpe import viz
from metatpe.pruning.positions import BEST_SHARE
from metatpe.report.blocks import Block, Plot, Table, Text
from metatpe.report.facts import Facts
from metatpe.study.stops import PruningRecord, stop_of
from metatpe.study.trials import curve_of
from metatpe.words import counted

_SHARES = (0.1, 0.25, 0.5, 1.0)  # of the length: the rows of the table
_REASONS = {
    "curve": "past trials with such a curve seldom ended among the best",
    "diverged": "diverged: not finite after a finite value",
    "": "no record: stopped by the objective, or by another pruner",
}


@dataclass(frozen=True)
class Saved:
    """How much of the training was saved, in reports."""

    n_pruned: int
    made: int  # by pruned and completed trials
    lengths: Sequence[int]  # of completed trials

    @property
    def length(self) -> float:
        """Reports of the median completed trial."""
        return float(np.median(self.lengths))

    @property
    def share(self) -> float:
        """What was saved, as a share of the training without pruning."""
        whole = sum(self.lengths) + self.n_pruned * self.length
        return max(0.0, 1.0 - self.made / whole)


def saved_by_pruning(facts: Facts) -> Saved | None:
    """Return what pruning has saved; None where nothing was pruned or no length is known."""
    reports = {state: _lengths(facts, state) for state in (TrialState.PRUNED, TrialState.COMPLETE)}
    pruned, complete = reports.values()
    if not pruned or not complete:
        return None
    return Saved(len(pruned), sum(pruned) + sum(complete), complete)


def _lengths(facts: Facts, state: TrialState) -> list[int]:
    curves = [curve_of(t, facts.study.directions) for t in facts.trials if t.state == state]
    return [len(curve) for curve in curves if curve]


def stopped_sentence(facts: Facts) -> str:
    """Return what pruning has saved, as a sentence; empty where nothing was pruned."""
    saved = saved_by_pruning(facts)
    if saved is None:
        return ""
    n = saved.n_pruned + len(saved.lengths)
    saving = f"which saved about {saved.share:.0%} of the training"
    return f"{saved.n_pruned} of {n} trials were pruned, {saving}."


def stops(facts: Facts) -> list[Block]:
    """Return what pruning has saved, at which steps and why trials were stopped, and the risk."""
    saved = saved_by_pruning(facts)
    if saved is None:
        return []
    pruned = [t for t in facts.trials if t.state == TrialState.PRUNED]
    records = [record for trial in pruned if (record := stop_of(trial))]
    blocks: list[Block] = [Text(stopped_sentence(facts), "lead"), Text(_how_long(saved))]
    past = list(facts.tasks.values())
    blocks.append(Plot("curves", lambda: viz.plot_curves(facts.study, past), _CURVES))
    blocks.append(_steps(facts, pruned, saved))
    blocks.append(_reasons(pruned))
    return [*blocks, *_lost(facts, records)]


_CURVES = (
    "Learning curves of this study, and those of past studies in grey. A cross "
    "marks where a trial was pruned, a diamond the value that it was expected to reach."
)


def _how_long(saved: Saved) -> str:
    least, most = min(saved.lengths), max(saved.lengths)
    span = "" if least == most else f" (from {least} to {most})"
    whole = round(sum(saved.lengths) + saved.n_pruned * saved.length)
    return (
        f"The trials reported {saved.made:,} intermediate values. Without pruning it would have "
        f"been about {whole:,}, if each pruned trial had reported as often as the median "
        f"completed one: {saved.length:g} times{span}."
    )


def _steps(facts: Facts, pruned: Sequence[FrozenTrial], saved: Saved) -> Table:
    """Return how far trials had come when they were stopped."""
    rows, below = [], 0.0
    curves = {t.number: curve_of(t, facts.study.directions) for t in pruned}
    shares = {n: len(curve) / saved.length for n, curve in curves.items() if curve}
    for limit in _SHARES:
        upper = np.inf if limit == _SHARES[-1] else limit
        here = [n for n, share in shares.items() if below < share <= upper]
        steps = [max(curves[n]) for n in here]
        ends = sorted({min(steps), max(steps)}) if steps else []
        span = " to ".join(map(str, ends))
        rows.append((f"{below:.0%} to {limit:.0%}", str(len(here)), span))
        below = limit
    return Table(("stopped at this share of the training", "trials", "steps"), rows)


def _reasons(pruned: Sequence[FrozenTrial]) -> Table:
    found = Counter(record.reason if (record := stop_of(t)) else "" for t in pruned)
    rows = [(text, str(found[reason])) for reason, text in _REASONS.items() if found[reason]]
    return Table(("why", "trials"), rows)


def _lost(facts: Facts, records: Sequence[PruningRecord]) -> list[Block]:
    """Return how many of the best trials were probably pruned; nothing without records."""
    judged = [record for record in records if record.chance is not None]
    chances = [record.chance for record in judged if record.chance is not None]
    if not chances:
        return []
    mean, (low, high) = sum(chances), interval(chances)
    among = (
        f"among the best {BEST_SHARE:.0%} of the trials until then"
        if len(facts.objectives) == 1
        else "on the Pareto front of the trials until then"
    )
    influence = np.mean([record.influence or 0.0 for record in judged])
    bases = float(np.mean([record.base or 0.0 for record in judged]))
    return [
        Text(
            f"Of the {counted(len(judged), 'trial')} that were pruned because of their curves, "
            f"about {mean:.1f} would have ended {among} (90 % interval: {low} to {high}). The "
            f"same number of new trials would be expected to give {bases * len(judged):.1f}."
        ),
        Text(
            "This estimate uses the probability that the pruner gave each of them when it was "
            "stopped: how often earlier trials with the same rank and progress ended so well. "
            f"Past studies, and synthetic curves where there are few, determined {influence:.0%} "
            "of it, the study's own completed trials the rest. The interval covers only chance, "
            "not curves that behave differently from all earlier ones."
        ),
    ]


def interval(chances: Sequence[float], level: float = 0.9) -> tuple[int, int]:
    """Return an interval for the number of independent events with these probabilities."""
    mass = np.ones(1)
    for chance in chances:
        mass = np.convolve(mass, [1.0 - chance, chance])
    below = np.cumsum(mass)
    low, high = (int(np.searchsorted(below, q)) for q in ((1 - level) / 2, (1 + level) / 2))
    return low, min(high, len(chances))
