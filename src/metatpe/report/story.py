"""The words of a report: facts in, sections out."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial

from metatpe.past.read.storage import masked
from metatpe.report import figures
from metatpe.report.blocks import Block, Items, Plot, Section, Table, Text
from metatpe.report.facts import SMALL, UNPREDICTED, Facts, Source
from metatpe.report.saved import BLOCK, AgainstRuns, ByTurns

_N_FRONT = 100  # rows of the front's table
_N_COLUMNS = 12  # parameters with a column of their own in it
_N_SIMILARITY = 60  # tasks of the heat map


def sections_of(facts: Facts) -> list[Section]:
    """Return all that can be said; a section that would be empty is left out."""
    return _with_content(
        Section("In short", _in_short(facts)),
        Section("What was tuned", _tuned(facts)),
        Section(_front_title(facts), _front(facts)),
        Section("What the past gave, and when", _given(facts)),
        Section("What was ignored, and why", _ignored(facts)),
        Section("Which parameters matter", _importances(facts)),
        Section("How many trials were saved", _saved(facts)),
        Section("How to read this", _reading(facts)),
    )


def summary_of(facts: Facts) -> list[Section]:
    """Return the part that fits into a note."""
    used = any(source.is_used for source in facts.sources)
    return _with_content(
        Section("In short", _in_short(facts)),
        Section("What the past gave", [_table_of_sources(facts)] if used else []),
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
    n = len(facts.trials)
    m, d = len(facts.objectives), len(facts.parameters)
    running = " It is still running." if facts.is_running else ""
    return f"{_n(n, 'trial')} of {_n(d, 'parameter')}, for {_n(m, 'objective')}.{running}"


def _found(facts: Facts) -> str:
    if not facts.front:
        return "None of them is finished and feasible yet."
    if len(facts.objectives) == 1:
        best = facts.front[0]
        return f"The best value, {_number(best.values[0])}, is that of trial {best.number}."
    return f"The front has {_n(len(facts.front), 'point')}."


def _borrowed(facts: Facts) -> str:
    if not facts.records:
        return "No record of a transfer: the trials are another sampler's, or were added by hand."
    used = [source for source in facts.sources if source.is_used]
    n_warm = facts.origins.get("warm start", 0)
    if not used and not n_warm:
        return "Nothing was borrowed from past studies."
    n_trials = len({number for source in used for number in source.say})
    parts = [f"began with {_n(n_warm, 'configuration')} of theirs"] if n_warm else []
    parts += [f"gave them a say in {_n(n_trials, 'more trial')}"] if n_trials else []
    who = f"from {_n(len(used), 'past study', 'past studies')}" if used else "from the past"
    return f"It borrowed {who}: it {' and '.join(parts)}." if parts else f"It borrowed {who}."


def saved_sentence(facts: Facts) -> str:
    """Return what the past has saved, as a sentence; empty where there is no telling."""
    saved = facts.saved
    if saved is None:
        return ""
    if saved.n < 1:
        return "Without transfer you would not have needed more trials."
    return f"Without transfer you would have needed about {_n(saved.n, 'more trial')}."


# What was tuned -------------------------------------------------------------------------------


def _tuned(facts: Facts) -> list[Block]:
    objectives = ", ".join(f"{name} ({direction})" for name, direction in facts.objectives)
    states = ", ".join(f"{n} {state}" for state, n in facts.states.items()) or "none"
    rows = [("objectives", objectives), ("trials", states)]
    if span := facts.span:
        rows += [("first trial began", _time(span[0])), ("last trial ended", _time(span[1]))]
    if facts.seconds is not None:
        rows.append(("a trial takes (median)", _duration(facts.seconds)))
    rows += list(facts.attributes.items())
    blocks: list[Block] = [Table(("study", facts.name), rows)]
    if facts.parameters:
        blocks.append(Table(("parameter", "range"), list(facts.parameters.items())))
    return blocks


# The front ------------------------------------------------------------------------------------


def _front_title(facts: Facts) -> str:
    return "The best value" if len(facts.objectives) == 1 else "The front"


def _front(facts: Facts) -> list[Block]:
    if not facts.front:
        return []
    blocks: list[Block] = []
    if len(facts.objectives) > 1:
        blocks.append(Plot("front", lambda: figures.front(facts), _FRONT))
    blocks.append(Plot("progress", lambda: figures.progress(facts), _progress_caption(facts)))
    return [*blocks, *_front_table(facts)]


_FRONT = (
    "Every finished trial, by where its configuration came from; the line is the front: what no "
    "other trial is better than in everything. Hover over a point for its configuration."
)


def _progress_caption(facts: Facts) -> str:
    if len(facts.objectives) == 1:
        return "The best value so far."
    return (
        "The hypervolume of the front so far: how much of the space of values it is better than, "
        "up to the worst value seen in each objective. More is better."
    )


def _front_table(facts: Facts) -> list[Block]:
    """Return the front with the parameters that differ in it; those that do not are said below."""
    front = sorted(facts.front, key=lambda t: (t.values, t.number))
    chosen = np.linspace(0, len(front) - 1, min(len(front), _N_FRONT)).round()
    trials = [front[int(i)] for i in chosen]
    names = [name for name in facts.parameters if any(name in t.params for t in trials)]
    same = [n for n in names if len({_value(t.params.get(n)) for t in trials}) == 1]
    same = same if len(trials) > 1 else []
    differing = [name for name in names if name not in same]
    is_wide = len(differing) > _N_COLUMNS
    columns = ["configuration"] if is_wide else differing
    rows = [
        (str(t.number), *map(_number, t.values), *_cells(t, differing, is_wide), *_last(facts, t))
        for t in trials
    ]
    head = ("trial", *(name for name, _ in facts.objectives), *columns, "came from")
    blocks: list[Block] = [Table((*head, *(["notes"] if _has_notes(trials) else [])), rows)]
    if len(facts.front) > len(trials):
        n_more = len(facts.front) - len(trials)
        blocks.append(Text(f"{n_more} more are not listed; these are evenly spread among them."))
    if same:
        shared = ", ".join(f"{name} = {_value(trials[0].params.get(name))}" for name in same)
        blocks.append(Text(f"In all of them: {shared}."))
    return blocks


def _cells(trial: FrozenTrial, names: Sequence[str], is_wide: bool) -> list[str]:
    values = [_value(trial.params.get(name)) if name in trial.params else "" for name in names]
    if not is_wide:
        return values
    return [", ".join(f"{n} = {v}" for n, v in zip(names, values, strict=True) if v)]


def _last(facts: Facts, trial: FrozenTrial) -> list[str]:
    has_notes = _has_notes(facts.front)
    return [facts.origin(trial.number), *([_notes(trial)] if has_notes else [])]


def _has_notes(trials: Iterable[FrozenTrial]) -> bool:
    return any(map(_notes, trials))


def _notes(trial: FrozenTrial) -> str:
    """Return the user attributes of a trial other than our own."""
    attributes = {name: v for name, v in trial.user_attrs.items() if name != "metatpe"}
    return ", ".join(f"{name} = {masked(_value(value))}" for name, value in attributes.items())


# What the past gave ---------------------------------------------------------------------------


def _given(facts: Facts) -> list[Block]:
    if not facts.records:
        return []
    blocks: list[Block] = []
    if any(source.weights for source in facts.sources):
        blocks.append(Plot("weights", lambda: figures.weights(facts), _WEIGHTS))
    used = [source for source in facts.sources if source.is_used]
    if used:
        blocks.append(_table_of_sources(facts))
    origins = sorted(facts.origins.items(), key=lambda entry: -entry[1])
    blocks.append(
        Table(("where configurations came from", "trials"), [(k, str(n)) for k, n in origins])
    )
    at_hand = [facts.tasks[s.name] for s in used if s.name in facts.tasks]
    if facts.task is not None and at_hand:
        nearest = at_hand[0]
        blocks.append(
            Plot("overlap", lambda: figures.overlap(facts, nearest), f"{_OVERLAP} {nearest.name}.")
        )
        if len(at_hand) > 1:
            some = at_hand[:_N_SIMILARITY]
            blocks.append(Plot("similarity", lambda: figures.similarity(facts, some), _ALIKE))
    return blocks


_WEIGHTS = (
    "What the past studies weighed at each trial that was chosen with weights; all of them, the "
    "study's own among them, sum to one. Below, where each trial's configuration came from."
)
_OVERLAP = "Where the best configurations lie: in this study, and in the past study"
_ALIKE = (
    "How alike the studies are: 1 where the regions of their best configurations are the same, 0 "
    "where they do not overlap. Each row is measured on that study's most important parameters."
)


def _table_of_sources(facts: Facts) -> Table:
    head = (
        "past study",
        "trials",
        "warm starts",
        "had a say in",
        "weight: first",
        "largest",
        "last",
    )
    rows = [
        (
            source.name,
            "" if source.observations is None else str(source.observations),
            _warm_starts(source),
            _n(len(source.say), "trial"),
            *_weights(source),
        )
        for source in facts.sources
        if source.is_used
    ]
    is_said = [any(cells) for cells in zip(*rows, strict=True)]
    return Table(list(compress(head, is_said)), [list(compress(row, is_said)) for row in rows])


def _warm_starts(source: Source) -> str:
    given = [f"trial {warm.number} (its {_place(warm.place)})" for warm in source.warm_starts]
    return ", ".join(given)


def _weights(source: Source) -> tuple[str, str, str]:
    if not source.weights:
        return "", "", ""
    numbers = list(source.weights)
    largest = max(numbers, key=lambda number: source.weights[number])
    at = f" (trial {largest})"
    first, last = source.weights[numbers[0]], source.weights[numbers[-1]]
    return _weight(first), _weight(source.weights[largest]) + at, _weight(last)


def _weight(weight: float) -> str:
    return f"{weight:.3f}"


def _place(place: int) -> str:
    if place == 1:
        return "best"
    ending = "th" if 10 < place % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending} best"


# What was ignored -----------------------------------------------------------------------------


def _ignored(facts: Facts) -> list[Block]:
    if not facts.sources:
        return []
    never = [(s.name, "all along", s.reason) for s in facts.sources if not s.is_used]
    later = [
        (s.name, f"trial {s.until} on", _why_dropped(facts, s))
        for s in facts.sources
        if s.is_used and s.until is not None
    ]
    partly = [(s.name, "in part", text) for s in facts.sources if (text := _lost(s))]
    rows = [*never, *later, *partly]
    if not rows:
        return [Text("None of the past studies: all of them had a weight to the end.")]
    return [Table(("past study", "ignored", "why"), rows)]


def _why_dropped(facts: Facts, source: Source) -> str:
    if facts.has_models:
        return UNPREDICTED
    if source.alike is not None and source.alike >= 0.5:
        return (
            "misleading: its best region overlaps with this study's "
            f"(similarity now {source.alike:.2f}), but it puts the trials there in the wrong "
            "order."
        )
    now = "" if source.alike is None else f" (similarity now {source.alike:.2f})"
    return f"dissimilar: its best region hardly overlaps with this study's{now}."


def _lost(source: Source) -> str:
    """Return what of a past study's space has no place in this one's."""
    left = source.left
    if left is None or source.reason:
        return ""
    parts = [f"{n} values of {name} are outside of the range" for name, n in left.outside.items()]
    if left.dropped:
        parts.append(f"this study does not have {_listed(left.dropped)}")
    if left.lacking:
        parts.append(f"it lacks {_listed(left.lacking)}")
    return f"space: {'; '.join(parts)}." if parts else ""


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
    head = ("parameter", "share of the importance", *(["kept in trials"] if kept else []))
    return [
        Plot("importances", lambda: figures.importances(facts), _IMPORTANCES),
        Table(head, rows),
    ]


_IMPORTANCES = (
    "How much each parameter decides whether a configuration is among the best tenth (PED-ANOVA), "
    "here and in past studies."
)


def _kept(name: str, records: Sequence[Any]) -> str:
    return f"{sum(name in record.kept for record in records)} of {len(records)}"


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
    names = _listed([study.study_name for study in facts.without])
    what = "best value" if len(facts.objectives) == 1 else "hypervolume"
    if len(saved.each) == 1:
        found = f"it took {saved.there[0]} trials, and this study {saved.here[0]}"
    else:
        found = (
            f"these runs took between {min(saved.each)} and {max(saved.each)} trials more than "
            f"this study (median {saved.n})"
        )
    return (
        f"Measured against {_n(len(saved.each), 'run')} of the same problem without the past "
        f"({names}). To come to the best {what} that both have reached, {found}. Runs differ by "
        "chance: another one may say something else."
    )


def _estimated(saved: ByTurns) -> str:
    return (
        "Estimated within this study. Whose turn a trial is, the past's or the study's own, is "
        f"drawn at random, so the two can be compared: of {saved.n_past} turns of the past, "
        f"{saved.n_past_hits} found something that no earlier trial had matched; of {saved.n_own} "
        f"turns of its own, {saved.n_own_hits}. Compared within blocks of {BLOCK} turns (the "
        "Mantel-Haenszel ratio of the rates), as many finds on its own would have taken about "
        f"{saved.n} turns more (90 % interval: {saved.low} to {saved.high}). What the warm starts "
        "have saved is not in this number, and own turns profit from what the past has found."
    )


# How to read this -----------------------------------------------------------------------------


def _reading(facts: Facts) -> list[Block]:
    texts = [
        "A trial is one evaluation of one configuration. Trials are numbered from 0.",
    ]
    if len(facts.objectives) > 1:
        texts.append(
            "The front holds the trials that no other one is better than in every objective: the "
            "choice among them is yours."
        )
    if facts.records:
        texts.append(
            "A warm start is a configuration that was among the best of a past study, or among "
            "the worst where the past turned out upside down."
        )
    if facts.has_turns:
        texts.append(
            "After the warm starts, a trial is either the past's turn, where all studies choose "
            "together, each with its weight, or the study's own turn, where it chooses as if "
            "there were no past. The better the past's turns have done, the more of them there "
            "are."
        )
    if facts.has_similarities:
        texts.append(
            "The weight of a past study follows from how much the region of its best "
            "configurations overlaps with that of this study, measured anew before each trial. At "
            "first, when nothing is known, all weigh the same. A study is called ignored from the "
            f"trial on where it has less than {SMALL:.0%} of the weight of one that is just like "
            "this study."
        )
    if facts.has_models:
        texts.append(
            "The trials of an acquisition were chosen by a model of the objectives that the past "
            "informs. The weight of a past study is its share in what the model predicts, found "
            "anew before each trial from how far its own predictions hold here. A study is "
            f"called ignored from the trial on where it has less than {SMALL:.0%} of an equal "
            "share."
        )
    if "own turn" in facts.origins and not facts.has_turns:
        texts.append(
            "From the fiftieth trial on about every other one is the study's own turn: chosen "
            "without the past, and so without weights. And the worse the model orders the trials, "
            "the more often densities choose instead of it; the weights are the model's all the "
            "same."
        )
    return [Items(texts)]


# Words ----------------------------------------------------------------------------------------


def _n(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _number(value: float) -> str:
    return f"{value:.5g}"


def _value(value: Any) -> str:
    return _number(value) if isinstance(value, float) else str(value)


def _listed(names: Sequence[str], most: int = 5) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _time(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 120 else str(datetime.timedelta(seconds=round(seconds)))
