"""What past studies have saved, in words: the uncertainty stands in the same sentence."""

import dataclasses
import datetime

import pytest
from studies import past_study

from metatpe.report.blocks import Text
from metatpe.report.facts import Facts, facts_of
from metatpe.report.saved import AgainstRuns, ByTurns
from metatpe.report.savings import saved_sentence, savings

ESTIMATE = ByTurns(12, 3, 30, 40, 10, 40, 6)


def facts_with(saved: AgainstRuns | ByTurns | None, seconds: float = 0.0) -> Facts:
    """Return the facts of a study whose trials took so long."""
    found = facts_of(past_study(n=3))
    began = datetime.datetime(2026, 1, 1)
    for trial in found.trials:
        trial.datetime_start = began
        trial.datetime_complete = began + datetime.timedelta(seconds=seconds)
    return dataclasses.replace(found, saved=saved)


def texts(facts: Facts) -> str:
    return " ".join(block.text for block in savings(facts) if isinstance(block, Text))


def test_nothing_is_claimed_where_nothing_can_be_told() -> None:
    assert savings(facts_with(None)) == []
    assert saved_sentence(facts_with(None)) == ""


def test_an_estimate_has_its_interval_in_the_same_sentence() -> None:
    assert saved_sentence(facts_with(ESTIMATE)) == (
        "Without past studies it would have needed about 12 more trials (90 % interval: 3 to 30), "
        "estimated within this study."
    )


def test_one_run_may_be_chance() -> None:
    assert saved_sentence(facts_with(AgainstRuns([3], [9]))) == (
        "One run without past studies needed 6 more trials to get as far, which may be chance."
    )


def test_several_runs_have_a_range_and_no_headline_where_one_was_faster() -> None:
    found = saved_sentence(facts_with(AgainstRuns([3, 3, 3], [9, 5, 12])))
    assert (
        found == "3 runs without past studies needed 2 to 9 more trials to get as far (median 6)."
    )
    found = saved_sentence(facts_with(AgainstRuns([3, 3], [9, 2])))
    assert "do not show that trials were saved" in found
    assert "between -1 and 6 more" in found


def test_time_is_told_with_what_it_rests_on() -> None:
    found = texts(facts_with(ESTIMATE, 60.0))
    assert (
        "That is about 0:12:00 (0:03:00 to 0:30:00), based on the median duration of a trial of "
        "this study, 60 s, which includes the time of the sampler and depends on how busy the "
        "machines were."
    ) in found


def test_time_saved_against_one_run_says_so_in_the_same_sentence() -> None:
    found = texts(facts_with(AgainstRuns([3], [9]), 60.0))
    assert "That is about 0:06:00, based on one run and the median duration of a trial" in found


@pytest.mark.parametrize("saved", [ESTIMATE, AgainstRuns([3, 3], [9, 2])])
def test_time_is_left_out_where_it_says_nothing(saved: AgainstRuns | ByTurns) -> None:
    seconds = 60.0 if isinstance(saved, AgainstRuns) else 0.01
    assert "That is about" not in texts(facts_with(saved, seconds))
