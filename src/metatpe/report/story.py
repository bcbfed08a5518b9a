"""The text of a report: facts go in, sections come out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import compress

import numpy as np
from optuna.trial import FrozenTrial

from metatpe import viz
from metatpe.past.read.storage import masked
from metatpe.report import figures
from metatpe.report.advice import forecast_of, next_steps, next_trials
from metatpe.report.blocks import Block, Plot, Section, Table, Text
from metatpe.report.facts import Facts, Source
from metatpe.report.glossary import reading
from metatpe.report.savings import saved_sentence, savings
from metatpe.report.stops import stopped_sentence, stops
from metatpe.study.record import REST, TransferRecord, record_of
from metatpe.viz.style import value_text
from metatpe.viz.weights import LANES, described
from metatpe.words import counted, duration, listed

_N_FRONT = 100  # rows of the front's table
_N_COLUMNS = 12  # parameters with a column of their own in it
_N_SIMILARITY = 60  # tasks of the heat map


def sections_of(facts: Facts) -> list[Section]:
    """Return the sections of a report, without those that would be empty."""
    forecast = forecast_of(facts)
    return _with_content(
        Section("In short", _in_short(facts)),
        Section("Best value" if len(facts.objectives) == 1 else "Pareto front", _front(facts)),
        Section("What to run next", next_steps(facts, forecast)),
        Section("Contribution of past studies", _transfer(facts)),
        Section("Past studies that were not used", _not_used(facts)),
        Section("Which parameters matter", _importances(facts)),
        Section("What was saved", savings(facts)),
        Section("Trials stopped early", stops(facts)),
        Section("What was tuned", _tuned(facts)),
        Section("How to read this", reading(facts, forecast)),
    )


def summary_of(facts: Facts) -> list[Section]:
    """Return the part that fits into a note."""
    return _with_content(
        Section("In short", _in_short(facts)),
        Section("What to run next", next_trials(facts, forecast_of(facts))),
        Section("Contribution of past studies", _table_of_sources(facts)),
        Section("Importances", [Text(_OPTUNAS)] if facts.importances else []),
    )


def _with_content(*sections: Section) -> list[Section]:
    return [section for section in sections if section.blocks]


# In short -------------------------------------------------------------------------------------


def _in_short(facts: Facts) -> list[Block]:
    if not facts.trials:
        return [Text("The study has no trials yet.", "lead")]
    lead = [_counted(facts), _found(facts), _borrowed(facts), saved_sentence(facts)]
    lead.append(stopped_sentence(facts))
    return [Text(" ".join(filter(None, lead)), "lead")]


def _counted(facts: Facts) -> str:
    n, d, m = len(facts.trials), len(facts.parameters), len(facts.objectives)
    running = " The study is still running." if "running" in facts.states else ""
    counts = f"{counted(n, 'trial')}, {counted(d, 'parameter')}, {counted(m, 'objective')}"
    return f"The study has {counts}.{running}"


def _found(facts: Facts) -> str:
    if not facts.front:
        return "No trial is finished and feasible yet."
    if len(facts.objectives) == 1:
        best = facts.front[0]
        return f"The best value is {value_text(best.values[0])} (trial {best.number})."
    return f"The Pareto front has {counted(len(facts.front), 'point')}."


def _borrowed(facts: Facts) -> str:
    if not facts.records:
        return (
            "There is no record of a transfer: another sampler suggested the trials, or they were "
            "added by hand."
        )
    influenced = {number for source in facts.used for number in source.influenced}
    parts = [counted(len(facts.starts), "warm start")] if facts.starts else []
    parts += (
        [f"{counted(len(influenced), 'trial')} chosen with past studies"] if influenced else []
    )
    n_unknown = facts.reasons.get("unknown", 0)
    sentences = []
    if parts:
        which = (
            counted(len(facts.used), "past study", "past studies")
            if facts.used
            else "past studies"
        )
        sentences.append(f"It used {which}: {' and '.join(parts)}.")
    elif not n_unknown:
        sentences.append("It used no past study.")
    if n_unknown:
        sentences.append(
            f"It is unknown how {counted(n_unknown, 'trial was', 'trials were')} chosen."
        )
    return " ".join(sentences)


# What was tuned -------------------------------------------------------------------------------


def _tuned(facts: Facts) -> list[Block]:
    objectives = ", ".join(f"{name} ({direction})" for name, direction in facts.objectives)
    states = ", ".join(f"{n} {state}" for state, n in facts.states.items()) or "none"
    rows = [("objectives", objectives), ("trials", states)]
    if span := facts.span:
        began, ended = (f"{moment:%Y-%m-%d %H:%M:%S}" for moment in span)
        rows += [("first trial started", began), ("last trial ended", ended)]
    if facts.seconds is not None:
        rows.append(("duration of a trial (median)", duration(facts.seconds)))
    if facts.samplers:
        rows.append(("sampler", ", ".join(facts.samplers)))
    rows += list(facts.attributes.items())
    blocks: list[Block] = [Table(("study", facts.study.study_name), rows)]
    if facts.parameters:
        blocks.append(Table(("parameter", "range"), list(facts.parameters.items())))
    return blocks


# The front ------------------------------------------------------------------------------------


def _front(facts: Facts) -> list[Block]:
    if not facts.front:
        return []
    blocks: list[Block] = []
    if len(facts.objectives) > 1:
        blocks.append(Plot("front", lambda: figures.front(facts), _FRONT))
    blocks.append(Plot("progress", lambda: figures.progress(facts), _progress_caption(facts)))
    return [*blocks, *_front_table(facts)]


_FRONT = (
    "Each point is a finished trial; colour and marker show how its configuration was chosen. The "
    "line is the Pareto front: no other trial is better in every objective. Hover over a point on "
    "it to see the configuration."
)


def _progress_caption(facts: Facts) -> str:
    if len(facts.objectives) == 1:
        return "The best value so far."
    return (
        "The hypervolume of the Pareto front so far: the volume of the values that it dominates, "
        "up to the worst value seen in each objective. Larger is better. If the values of an "
        "objective span more than a factor of ten, its logarithm is used."
    )


def _front_table(facts: Facts) -> list[Block]:
    """Return the front with the parameters that differ in it; the others are listed below."""
    front = sorted(facts.front, key=lambda t: (t.values, t.number))
    chosen = np.linspace(0, len(front) - 1, min(len(front), _N_FRONT)).round()
    trials = [front[int(i)] for i in chosen]
    names = [name for name in facts.parameters if any(name in t.params for t in trials)]
    texts = {n: {value_text(t.params.get(n)) for t in trials} for n in names}
    same = [name for name in names if len(texts[name]) == 1] if len(trials) > 1 else []
    differing = [name for name in names if name not in same]
    is_wide = len(differing) > _N_COLUMNS
    columns = ["configuration"] if is_wide else differing
    head = ["trial", *(name for name, _ in facts.objectives), *columns, "how it was chosen"]
    rows = [_front_row(trial, differing, is_wide) for trial in trials]
    if any(notes := [_notes(trial) for trial in trials]):
        head, rows = [*head, "notes"], [[*r, n] for r, n in zip(rows, notes, strict=True)]
    blocks: list[Block] = [Table(head, rows)]
    if n_more := len(facts.front) - len(trials):
        blocks.append(Text(f"{n_more} more are not listed. The listed ones are evenly spaced."))
    if same:
        shared = ", ".join(f"{name} = {value_text(trials[0].params.get(name))}" for name in same)
        blocks.append(Text(f"The same in all of them: {shared}."))
    return blocks


def _front_row(trial: FrozenTrial, names: Sequence[str], is_wide: bool) -> list[str]:
    cells = [value_text(trial.params[name]) if name in trial.params else "" for name in names]
    if is_wide:
        cells = [", ".join(f"{n} = {v}" for n, v in zip(names, cells, strict=True) if v)]
    origin = (
        described(record) if (record := record_of(trial)) else "another sampler, or added by hand"
    )
    return [str(trial.number), *map(value_text, trial.values), *cells, origin]


def _notes(trial: FrozenTrial) -> str:
    """Return the user attributes of a trial other than our own."""
    attributes = {name: v for name, v in trial.user_attrs.items() if name != "metatpe"}
    return ", ".join(f"{name} = {masked(value_text(value))}" for name, value in attributes.items())


# Contribution of past studies -----------------------------------------------------------------


def _transfer(facts: Facts) -> list[Block]:
    if not facts.records:
        return []
    blocks: list[Block] = []
    if facts.is_weighed:
        blocks.append(Plot("weights", lambda: viz.plot_task_weights(facts.study), _WEIGHTS))
    blocks += _table_of_sources(facts)
    counts = sorted(facts.reasons.items(), key=lambda entry: -entry[1])
    rows = [(LANES[reason], str(n)) for reason, n in counts]
    return [*blocks, Table(("how trials were chosen", "trials"), rows), *_comparisons(facts)]


def _comparisons(facts: Facts) -> list[Block]:
    """Return plots of the study and of the past studies that it has used."""
    if facts.task is None or not facts.at_hand:
        return []
    nearest, some = facts.at_hand[0], facts.at_hand[:_N_SIMILARITY]
    caption = f"{_OVERLAP} {nearest.name}."
    blocks: list[Block] = [Plot("overlap", lambda: figures.overlap(facts, nearest), caption)]
    if len(some) > 1:
        draw = partial(viz.plot_similarity, [facts.study, *some])
        blocks.append(Plot("similarity", draw, _SIMILARITY))
    return blocks


_WEIGHTS = (
    "The weight of each past study at each trial for which weights were computed. Together with "
    "the weight of the study itself they sum to one. The lowest panel shows how each trial was "
    "chosen."
)
_OVERLAP = "The regions of the best configurations of this study and of the past study"
_SIMILARITY = (
    "The similarity of the studies: 1 if the regions of their best configurations are the same, 0 "
    "if they do not overlap. Each row is measured on the most important parameters of its study."
)


def _table_of_sources(facts: Facts) -> list[Block]:
    """Return the past studies that were used or may have been, without empty columns."""
    head = (
        "past study",
        "trials",
        "warm starts",
        "influenced",
        "progress",
        *_WEIGHTED,
    )
    rows = [
        (
            source.name,
            "" if source.observations is None else str(source.observations),
            _starts(facts, source),
            _influence(source),
            _won(facts, source),
            *_weights(source),
        )
        for source in facts.sources
        if source.is_used or source.unknown
    ]
    if not rows:
        return []
    is_shown = [any(cells) for cells in zip(*rows, strict=True)]
    return [Table(list(compress(head, is_shown)), [list(compress(row, is_shown)) for row in rows])]


_WEIGHTED = ("largest weight", "weight over time")


def _won(facts: Facts, source: Source) -> str:
    """Return how many of the trials that a past study gave or influenced brought progress."""
    word = "start" if len(source.starts) == 1 else "starts"
    kinds = {word: source.starts, "influenced": source.influenced}
    parts = [
        f"{len(facts.improving & {*numbers})} of {len(numbers)} {kind}"
        for kind, numbers in kinds.items()
        if numbers
    ]
    return ", ".join(parts)


def _starts(facts: Facts, source: Source) -> str:
    if not source.starts:
        return "unknown" if any(not record.sources for record in facts.starts) else ""
    word = "trial" if len(source.starts) == 1 else "trials"
    return f"{word} {listed([str(number) for number in source.starts], 10)}"


def _influence(source: Source) -> str:
    if not source.unknown:
        return counted(len(source.influenced), "trial")
    return (
        f"at least {counted(len(source.influenced), 'trial')}" if source.influenced else "unknown"
    )


def _weights(source: Source) -> tuple[str, str]:
    if not any(source.weights.values()):
        return "", ""
    largest = max(source.weights, key=lambda number: source.weights[number])
    thirds = np.array_split(np.array([*source.weights.values()]), 3)
    over_time = " → ".join(_weight(float(part.mean())) for part in thirds if len(part))
    return f"{_weight(source.weights[largest])} (trial {largest})", over_time


def _weight(weight: float) -> str:
    return f"{weight:.3f}"


# Past studies that were not used --------------------------------------------------------------


def _not_used(facts: Facts) -> list[Block]:
    if not facts.sources:
        return []
    rows = [row for source in facts.sources if (row := _why_not_used(facts, source))]
    rows += [(s.name, "in part", text) for s in facts.sources if (text := _lost(s))]
    if rows:
        return [Table(("past study", "not used", "why"), rows)]
    if not facts.is_weighed:
        return [Text("None so far: no weights have been computed yet.")]
    return [Text("None: every past study had weight until the end.")]


def _why_not_used(facts: Facts, source: Source) -> tuple[str, str, str] | None:
    """Return when and why a past study was not used, as recorded; None if it was used."""
    if not source.is_used and not source.unknown:
        return source.name, "in any trial", source.obstacle or _why_never(facts, source)
    if facts.silent_from is not None:
        return source.name, f"from trial {facts.silent_from} on", _TOO_FEW
    if source.small_from is not None:
        return source.name, f"from trial {source.small_from} on", _small_weight(facts, source)
    return None


_TOO_FEW = "not compared yet: the study has too few good trials."


def _why_never(facts: Facts, source: Source) -> str:
    """Return why a past study was not used although it could have helped."""
    if not facts.records:
        return "the study has no record of a transfer."
    if not source.weights and any(REST in record.weights for record in facts.records):
        return (
            "its weight was among the smallest, which are only recorded as a sum, or it was not "
            "among the sampler's sources."
        )
    if not source.weights and facts.is_weighed:
        return "it was not among the sampler's sources."
    if not source.weights:
        return "no weights have been computed yet, or it was not among the sampler's sources."
    if max(source.weights.values()) >= facts.least:
        return "it only had weight in trials chosen without past studies."
    if facts.silent_from is not None and source.small_from is None:
        return _TOO_FEW
    return _small_weight(facts, source)


def _small_weight(facts: Facts, source: Source) -> str:
    if not source.weights:
        return "its weight was too small to be recorded."
    what = "fell" if max(source.weights.values()) >= facts.least else "was always"
    now = "" if source.similarity is None else f" (similarity now {source.similarity:.2f})"
    return f"its weight {what} below {_weight(facts.least)}{now}."


def _lost(source: Source) -> str:
    """Return which part of a past study does not fit the search space of this one."""
    left = source.left
    if left is None or not source.is_used:
        return ""
    parts = [f"{counted(n, 'value')} of {name} out of range" for name, n in left.outside.items()]
    if left.dropped:
        parts.append(f"this study does not have {listed(left.dropped)}")
    if left.lacking:
        parts.append(f"it lacks {listed(left.lacking)}")
    return f"search space: {'; '.join(parts)}." if parts else ""


# Importances ----------------------------------------------------------------------------------


def _importances(facts: Facts) -> list[Block]:
    if not facts.importances:
        return []
    whole = sum(facts.importances.values()) or 1.0
    kept = [record for record in facts.records if record.kept]
    rows = [
        (name, f"{value / whole:.0%}", *([_kept(name, kept)] if kept else []))
        for name, value in facts.importances.items()
    ]
    head = ("parameter", "importance", *(["past studies compared on it"] if kept else []))
    draw = partial(viz.plot_importances, facts.study, facts.at_hand)
    blocks: list[Block] = [Plot("importances", draw, _IMPORTANCES), Table(head, rows)]
    return [*blocks, Text(_COMPARED)] if kept else blocks


_IMPORTANCES = (
    "How important each parameter is for being among the best tenth of the configurations "
    "(PED-ANOVA), in this study and in past studies. The parameters of a study sum to 100 %. "
    "Optuna's importances, as in its dashboard, explain the spread of all values, including bad "
    "ones, so the two may differ."
)
_OPTUNAS = (
    "The plot of metatpe shows how important a parameter is for being among the best tenth of the "
    "configurations (PED-ANOVA). Optuna's importances explain the spread of all values, "
    "including bad ones, so the two may differ."
)
_COMPARED = (
    "Past studies are compared with this one on a few parameters only: those that were most "
    "important at the time, on average over this study and the past studies. With more good "
    "trials, more parameters are compared. So an important parameter may never have been compared."
)


def _kept(name: str, records: Sequence[TransferRecord]) -> str:
    return f"{sum(name in record.kept for record in records)} of {counted(len(records), 'trial')}"
