"""Which sampler `metatpe tune` takes if none is named."""

from datetime import datetime, timedelta

import optuna
import pytest
from optuna.trial import TrialState, create_trial

from metatpe.tuning.objective import Function
from metatpe.tuning.setup import SamplerChoice, Tuning, choose_sampler


def tuning(n_trials: int = 100, sampler: SamplerChoice = "auto") -> Tuning:
    objective = Function("train.py", "objective")
    return Tuning(objective, "sqlite:///x.db", "new", sampler=sampler, n_trials=n_trials)


def timed_study(seconds: float, n: int = 5) -> optuna.Study:
    study, begin = optuna.create_study(), datetime(2026, 1, 1)
    for _ in range(n):
        trial = create_trial(state=TrialState.COMPLETE, value=0.0)
        trial.datetime_start, trial.datetime_complete = begin, begin + timedelta(seconds=seconds)
        study.add_trial(trial)
    return study


def test_it_is_the_transfer_sampler() -> None:
    assert choose_sampler(tuning(), None)[0] == "transfer"
    assert choose_sampler(tuning(), timed_study(60.0))[0] == "transfer"


@pytest.mark.parametrize("sampler", ["meta-tpe", "transfer"])
def test_it_is_the_one_that_is_named(sampler: SamplerChoice) -> None:
    assert choose_sampler(tuning(5000, sampler), timed_study(0.01)) == (sampler, "as asked for")


def test_a_long_study_is_for_the_fast_sampler() -> None:
    assert choose_sampler(tuning(1000), None)[0] == "transfer"
    name, why = choose_sampler(tuning(1001), None)
    assert (name, why) == ("meta-tpe", "because the study will have more than 1000 trials")


def test_evaluations_that_are_faster_than_suggestions_are_for_the_fast_sampler() -> None:
    name, why = choose_sampler(tuning(), timed_study(0.02))
    assert (name, why) == ("meta-tpe", "because a trial takes only 0.02 s")
    assert choose_sampler(tuning(), timed_study(0.02, n=4))[0] == "transfer"  # too few to tell
