"""When a run has no chance: its first trials fail with one message."""

from __future__ import annotations

import pytest
from optuna.trial import FrozenTrial, TrialState, create_trial

from metatpe.tuning.hope import FirstTrials, HopelessError


def ended(error: str | None) -> FrozenTrial:
    if error is None:
        return create_trial(value=1.0)
    attributes = {"metatpe:error": error, "metatpe:output": "the end"}
    return create_trial(state=TrialState.FAIL, user_attrs=attributes)


def is_hopeless(errors: list[str | None]) -> bool:
    first = FirstTrials()
    try:
        for error in errors:
            first.add(ended(error))
    except HopelessError:
        return True
    return False


def test_the_third_failure_with_one_message_is_hopeless() -> None:
    first = FirstTrials()
    first.add(ended("no memory."))
    first.add(ended("no memory."))
    with pytest.raises(HopelessError, match=r"same way: no memory; correct this") as info:
        first.add(ended("no memory."))
    assert info.value.output == "the end"


@pytest.mark.parametrize(
    "errors",
    [
        ["a", "a", "b", "a", "a", "a"],
        [None, "a", "a", "a", "a"],
        ["a", "a", None, "a", "a", "a"],
    ],
)
def test_a_run_with_anything_else_among_its_first_trials_goes_on(errors: list[str | None]) -> None:
    assert not is_hopeless(errors)
    assert is_hopeless(["a", "a", "a", *errors])


def test_another_number_of_values_is_corrected_by_directions() -> None:
    first = FirstTrials()
    error = "The number of the values 2 did not match the number of the objectives 1"
    first.add(ended(error))
    first.add(ended(error))
    with pytest.raises(HopelessError, match="objectives 1; give --direction once per value"):
        first.add(ended(error))
