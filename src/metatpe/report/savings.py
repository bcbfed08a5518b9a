"""The section of a report about what past studies have saved, in trials and in time.

A headline has the uncertainty in the same sentence, and there is none that the data do not carry.
"""

from __future__ import annotations

from metatpe.report.blocks import Block, Text
from metatpe.report.facts import Facts
from metatpe.report.saved import BLOCK, AgainstRuns, ByTurns
from metatpe.words import counted, duration, listed

_MIN_SECONDS = 1.0  # of a trial; what takes less time is not worth counting in time


def savings(facts: Facts) -> list[Block]:
    """Return how many trials were saved, and how that is known."""
    if facts.saved is None:
        return []
    if isinstance(facts.saved, AgainstRuns):
        how = _measured(facts, facts.saved)
    else:
        how = _estimated(facts.saved)
    texts = [how, _in_time(facts)]
    return [Text(saved_sentence(facts), "lead"), *(Text(text) for text in texts if text)]


def saved_sentence(facts: Facts) -> str:
    """Return how many trials were saved, as a sentence; empty where nothing can be told."""
    if facts.saved is None:
        return ""
    if isinstance(facts.saved, ByTurns):
        found = facts.saved
        return (
            f"Without past studies it would have needed about {found.n} more trials (90 % "
            f"interval: {found.low} to {found.high}), estimated within this study."
        )
    least, most = min(facts.saved.each), max(facts.saved.each)
    if len(facts.saved.each) == 1:
        if most < 1:
            return "A run without past studies got as far in as few trials."
        more = counted(most, "more trial")
        return f"One run without past studies needed {more} to get as far, which may be chance."
    runs = counted(len(facts.saved.each), "run")
    if least < 1:
        return (
            f"{runs} without past studies do not show that trials were saved: to get as far, they "
            f"needed between {least} and {most} more."
        )
    return (
        f"{runs} without past studies needed {least} to {most} more trials to get as far (median "
        f"{facts.saved.n})."
    )


def _in_time(facts: Facts) -> str:
    """Return what was saved in time; empty where nothing was, or trials take no time."""
    each = facts.seconds
    if facts.saved is None or each is None or each < _MIN_SECONDS:
        return ""
    if isinstance(facts.saved, ByTurns):
        least, middle, most = facts.saved.low, facts.saved.n, facts.saved.high
    else:
        least, middle, most = min(facts.saved.each), facts.saved.n, max(facts.saved.each)
    if least < 1:
        return ""
    span = f" ({duration(least * each)} to {duration(most * each)})" if least < most else ""
    return (
        f"In time that is about {duration(middle * each)}{span} of evaluation, by the median "
        f"duration of a trial of this study, {duration(each)}, which depends on what else the "
        "machines were doing."
    )


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
