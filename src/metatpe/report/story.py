"""The text of a report: facts go in, sections come out."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import partial
from itertools import compress

import numpy as np
from optuna.trial import FrozenTrial

from metatpe import viz
from metatpe.past.read.storage import masked
from metatpe.report import figures
from metatpe.report.blocks import Block, Items, Plot, Section, Table, Text
from metatpe.report.facts import SMALL, Facts, Source
from metatpe.report.saved import BLOCK, AgainstRuns, ByTurns
from metatpe.samplers.guards import MIN_GOOD
from metatpe.study.record import Reason, TransferRecord, record_of
from metatpe.viz.style import value_text
from metatpe.viz.weights import LANES, described
from metatpe.words import counted, listed

_N_FRONT = 100  # rows of the front's table
_N_COLUMNS = 12  # parameters with a column of their own in it
_N_SIMILARITY = 60  # tasks of the heat map
_WITH_MODELS = ("TransferSampler", "RGPESampler", "TSTRSampler")


def sections_of(facts: Facts) -> list[Section]:
    """Return the sections of a report, without those that would be empty."""
    return _with_content(
        Section("In short", _in_short(facts)),
        Section("What was tuned", _tuned(facts)),
        Section("Best value" if len(facts.objectives) == 1 else "Pareto front", _front(facts)),
        Section("What came from past studies", _transfer(facts)),
        Section("Past studies left aside", _left_aside(facts)),
        Section("Which parameters matter", _importances(facts)),
        Section("How many trials were saved", _saved(facts)),
        Section("How to read this", _reading(facts)),
    )


def summary_of(facts: Facts) -> list[Section]:
    """Return the part that fits into a note."""
    return _with_content(
        Section("In short", _in_short(facts)),
        Section("What came from past studies", _table_of_sources(facts)),
    )


def _with_content(*sections: Section) -> list[Section]:
    return [section for section in sections if section.blocks]


# In short -------------------------------------------------------------------------------------


def _in_short(facts: Facts) -> list[Block]:
    if not facts.trials:
        return [Text("The study has no trials yet.", "lead")]
    lead = [_counted(facts), _found(facts), _borrowed(facts), saved_sentence(facts)]
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
        sentences.append(f"It borrowed from {which}: {' and '.join(parts)}.")
    elif not n_unknown:
        sentences.append("It borrowed nothing from past studies.")
    if n_unknown:
        sentences.append(
            f"How {counted(n_unknown, 'trial was', 'trials were')} chosen is unknown."
        )
    return " ".join(sentences)


def saved_sentence(facts: Facts) -> str:
    """Return how many trials were saved, as a sentence; empty where nothing can be told."""
    saved = facts.saved
    if saved is None:
        return ""
    if saved.n < 1:
        return "Without transfer you would not have needed more trials."
    return f"Without transfer you would have needed about {counted(saved.n, 'more trial')}."


# What was tuned -------------------------------------------------------------------------------


def _tuned(facts: Facts) -> list[Block]:
    objectives = ", ".join(f"{name} ({direction})" for name, direction in facts.objectives)
    states = ", ".join(f"{n} {state}" for state, n in facts.states.items()) or "none"
    rows = [("objectives", objectives), ("trials", states)]
    if span := facts.span:
        began, ended = (f"{moment:%Y-%m-%d %H:%M:%S}" for moment in span)
        rows += [("first trial started", began), ("last trial ended", ended)]
    if facts.seconds is not None:
        rows.append(("duration of a trial (median)", _duration(facts.seconds)))
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
        "up to the worst value seen in each objective. Larger is better. An objective whose "
        "values span more than a decade is taken in logs."
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
        blocks.append(Text(f"{n_more} more are not listed; those listed are evenly spaced."))
    if same:
        shared = ", ".join(f"{name} = {value_text(trials[0].params.get(name))}" for name in same)
        blocks.append(Text(f"The same in all of them: {shared}."))
    return blocks


def _front_row(trial: FrozenTrial, names: Sequence[str], is_wide: bool) -> list[str]:
    cells = [value_text(trial.params[name]) if name in trial.params else "" for name in names]
    if is_wide:
        cells = [", ".join(f"{n} = {v}" for n, v in zip(names, cells, strict=True) if v)]
    origin = described(record) if (record := record_of(trial)) else "another sampler, or by hand"
    return [str(trial.number), *map(value_text, trial.values), *cells, origin]


def _notes(trial: FrozenTrial) -> str:
    """Return the user attributes of a trial other than our own."""
    attributes = {name: v for name, v in trial.user_attrs.items() if name != "metatpe"}
    return ", ".join(f"{name} = {masked(value_text(value))}" for name, value in attributes.items())


# What came from past studies ------------------------------------------------------------------


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
    """Return plots of the study beside the past studies that it has borrowed from."""
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
    "The weight of each past study at each trial for which weights were computed; with the weight "
    "of the study itself, they sum to one. The lowest panel shows how each trial was chosen."
)
_OVERLAP = "The regions of the best configurations of this study and of the past study"
_SIMILARITY = (
    "The similarity of the studies: 1 if the regions of their best configurations are the same, 0 "
    "if they do not overlap. Each row is measured on the most important parameters of its study."
)


def _table_of_sources(facts: Facts) -> list[Block]:
    """Return the past studies that were or may have been borrowed from, without empty columns."""
    head = ("past study", "trials", "warm starts", "influenced", "largest weight", "last weight")
    rows = [
        (
            source.name,
            "" if source.observations is None else str(source.observations),
            _starts(facts, source),
            _influence(source),
            *_weights(source),
        )
        for source in facts.sources
        if source.is_used or source.unknown
    ]
    if not rows:
        return []
    is_shown = [any(cells) for cells in zip(*rows, strict=True)]
    return [Table(list(compress(head, is_shown)), [list(compress(row, is_shown)) for row in rows])]


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
    last = list(source.weights.values())[-1]
    return f"{_weight(source.weights[largest])} (trial {largest})", _weight(last)


def _weight(weight: float) -> str:
    return f"{weight:.3f}"


# Past studies left aside ----------------------------------------------------------------------


def _left_aside(facts: Facts) -> list[Block]:
    if not facts.sources:
        return []
    rows = [row for source in facts.sources if (row := _why_left_aside(facts, source))]
    rows += [(s.name, "in part", text) for s in facts.sources if (text := _lost(s))]
    if rows:
        return [Table(("past study", "left aside", "why"), rows)]
    if not facts.is_weighed:
        return [Text("None so far: no trial has been chosen with weights yet.")]
    return [Text("None: every past study has a weight to the end.")]


def _why_left_aside(facts: Facts, source: Source) -> tuple[str, str, str] | None:
    """Return when and why a past study was left aside, as recorded; None if it was not."""
    if not source.is_used and not source.unknown:
        return source.name, "all along", source.obstacle or _why_never(facts, source)
    if facts.silent_from is not None:
        return source.name, f"from trial {facts.silent_from} on", _TOO_FEW
    if source.small_from is not None:
        return source.name, f"from trial {source.small_from} on", _small_weight(facts, source)
    return None


_TOO_FEW = "not compared yet: the study has too few good trials."


def _why_never(facts: Facts, source: Source) -> str:
    """Return why nothing was borrowed from a past study that could have helped."""
    if not facts.records:
        return "the study has no record of a transfer."
    if not source.weights and facts.is_weighed:
        return (
            "it was not among the sampler's sources, or its weight was too small to be recorded."
        )
    if not source.weights:
        return "it was not among the sampler's sources, or no weights have been computed yet."
    if max(source.weights.values()) >= facts.least:
        return "it had a weight only in trials that the study chose alone."
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
    head = ("parameter", "importance", *(["similarity measured on it"] if kept else []))
    draw = partial(viz.plot_importances, facts.study, facts.at_hand)
    return [Plot("importances", draw, _IMPORTANCES), Table(head, rows)]


_IMPORTANCES = (
    "How important each parameter is for being among the best tenth of the configurations "
    "(PED-ANOVA), in this study and in past studies."
)


def _kept(name: str, records: Sequence[TransferRecord]) -> str:
    return f"{sum(name in record.kept for record in records)} of {counted(len(records), 'trial')}"


# What was saved -------------------------------------------------------------------------------


def _saved(facts: Facts) -> list[Block]:
    if facts.saved is None:
        return []
    if isinstance(facts.saved, AgainstRuns):
        how = _measured(facts, facts.saved)
    else:
        how = _estimated(facts.saved)
    return [Text(saved_sentence(facts), "lead"), Text(how)]


def _measured(facts: Facts, saved: AgainstRuns) -> str:
    names = listed([study.study_name for study in facts.without])
    what = "best value" if len(facts.objectives) == 1 else "hypervolume"
    if len(saved.each) == 1:
        found = f"the run needed {saved.there[0]} trials, this study {saved.here[0]}"
    else:
        found = (
            f"the runs needed between {min(saved.each)} and {max(saved.each)} trials more than "
            f"this study (median {saved.n})"
        )
    return (
        f"Measured against {counted(len(saved.each), 'run')} of the same problem without a past "
        f"({names}). To reach the best {what} that both have reached, {found}. Runs vary by "
        "chance: another run may give another number."
    )


def _estimated(saved: ByTurns) -> str:
    return (
        "Estimated within this study. The sampler draws at random whether a trial is chosen with "
        "past studies or by the study alone, so the two kinds can be compared. Of "
        f"{saved.n_weighed} trials chosen with past studies, {saved.n_weighed_hits} found values "
        f"that no earlier trial had matched; of {saved.n_own} chosen alone, {saved.n_own_hits}. "
        f"Compared within blocks of {BLOCK} such trials (Mantel-Haenszel ratio of the rates), the "
        f"study alone would have needed about {saved.n} more trials for as many finds (90 % "
        f"interval: {saved.low} to {saved.high}). What the warm starts have saved is not "
        "included, and trials chosen alone benefit from earlier ones chosen with past studies."
    )


# How to read this -----------------------------------------------------------------------------


_MEANINGS: dict[Reason, str] = {
    "portfolio": "one of the configurations that serve the past studies together, so that each "
    "past study has one that does well there.",
    "best": "one of the best configurations of a past study.",
    "reversed": "one of the worst configurations of a past study, because the past studies put "
    "the trials in reverse order. Do the directions of the objectives agree?",
    "startup": "a random configuration, because the study had too few trials to model.",
    "no_start_left": "a random configuration, because no warm start was left that fits the search "
    "space.",
    "unknown_space": "chosen when no parameter of the study was known yet.",
    "epsilon": "a configuration drawn at random from the whole search space.",
    "weighed": "chosen from past studies and the study itself, each with its weight.",
    "own": "chosen from the study alone, although past studies have weights. This happens at "
    "random, so that trials chosen with and without past studies can be compared.",
    "silent": "chosen from the study alone. After the warm starts, past studies have no weight "
    f"until the study has {MIN_GOOD} good trials to compare them with.",
    "no_weight": "chosen from the study alone, because no past study has any weight left.",
    "densities": "chosen by densities, because the models do not order the trials well.",
    "no_past": "chosen from the study alone, because there is no past study to use.",
    "unknown": "recorded by an earlier version, which gave no reasons.",
}


def _reading(facts: Facts) -> list[Block]:
    texts = ["A trial is one evaluation of one configuration. Trials are numbered from 0."]
    if len(facts.objectives) > 1:
        texts.append(
            "The Pareto front contains the trials that no other trial dominates. Which of them is "
            "best for you depends on how you value the objectives."
        )
    lanes = {reason: LANES[reason][0].upper() + LANES[reason][1:] for reason in facts.reasons}
    texts += [f"{lane}: {_MEANINGS[reason]}" for reason, lane in lanes.items()]
    if any(record.kept for record in facts.records):
        texts.append(
            "The weight of a past study follows from its similarity: how far the region of its "
            "best configurations overlaps with that of this study, measured again before each "
            "trial."
        )
    if any(name in _WITH_MODELS for name in facts.samplers):
        texts.append(
            "The weight of a past study is its share in the predictions of the model, computed "
            "again before each trial."
        )
    if facts.is_weighed:
        texts.append(
            f"Weights below {SMALL:.0%} of an equal share, here {_weight(facts.least)}, do not "
            "count. A past study counts as borrowed from if it gave a warm start, or had at least "
            "this weight in a trial that was chosen with past studies."
        )
    return [Items(texts)]


# Words ----------------------------------------------------------------------------------------


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 120 else str(datetime.timedelta(seconds=round(seconds)))
