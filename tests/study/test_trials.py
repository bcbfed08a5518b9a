"""Trials as the method sees them."""

from helpers import NAN
from optuna.trial import create_trial
from studies import SQUARE

from metatpe.study.trials import is_counted


def test_a_completed_trial_without_a_number_is_no_observation() -> None:
    trial = create_trial(value=0.0, params={"x": 0.2}, distributions={"x": SQUARE["x"]})
    assert is_counted(trial)
    trial.values = [NAN]
    assert not is_counted(trial)
