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
            return "One run without past studies did not need more trials to get as far."
        more = counted(most, "more trial")
        return f"One run without past studies needed {more} to get as far, which may be chance."
    runs = counted(len(facts.saved.each), "run")
    if least < 1:
        return (
            f"{runs} without past studies do not show that trials were saved: they needed between "
            f"{least} and {most} more trials to get as far."
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
    run = ""
    if isinstance(facts.saved, AgainstRuns) and len(facts.saved.each) == 1:
        run = "one run and "
    return (
        f"That is about {duration(middle * each)}{span}, based on {run}the median duration of a "
        f"trial of this study, {duration(each)}, which includes the time of the sampler and "
        "depends on how busy the machines were."
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
        f"Measured against {counted(len(saved.each), 'run')} of the same problem without past "
        f"studies ({names}). To reach the best {what} that both have reached, {found}. Runs are "
        "random, so another run may give another number."
    )


def _estimated(saved: ByTurns) -> str:
    return (
        "Estimated within this study. The sampler chose at random which trials to choose with "
        "past studies and which without, so the two kinds can be compared. Of "
        f"{saved.n_weighed} trials chosen with past studies, {saved.n_weighed_hits} found values "
        f"that no earlier trial had matched; of {saved.n_own} chosen without, "
        f"{saved.n_own_hits}. Compared within blocks of {BLOCK} such trials (Mantel-Haenszel "
        f"ratio of the rates), the study would have needed about {saved.n} more trials without "
        f"past studies for as many improvements (90 % interval: {saved.low} to {saved.high}). "
        "Savings by the warm starts are not included. Trials chosen without past studies still "
        "benefit from earlier ones chosen with them."
    )
