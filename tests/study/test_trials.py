"""Trials as the method sees them."""

from helpers import INF, NAN
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection
from optuna.trial import TrialState, create_trial
from studies import SQUARE

from metatpe.distributions import is_same
from metatpe.study.stops import PruningRecord, stop_attributes
from metatpe.study.trials import (
    REPORT,
    curve_of,
    expected_loss_of,
    is_counted,
    joined,
    lateness_of,
)


def test_a_completed_trial_without_a_number_is_no_observation() -> None:
    trial = create_trial(value=0.0, params={"x": 0.2}, distributions={"x": SQUARE["x"]})
    assert is_counted(trial)
    trial.values = [NAN]
    assert not is_counted(trial)


def test_completed_trials_stand_before_pruned_ones_and_those_that_came_further_before_others() -> (
    None
):
    curves: list[dict[int, float]] = [{4: 1.0}, {4: 2.0}, {4: NAN}, {3: 0.0}, {0: -1.0}, {}]
    pruned = [create_trial(state=TrialState.PRUNED, intermediate_values=curve) for curve in curves]
    completed = create_trial(value=9.0)
    minimize, maximize = StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE
    late = [lateness_of(t, [minimize]) for t in [completed, *pruned]]
    assert late[0] == (0.0, 0.0, 0.0)
    assert late == sorted(late)
    assert lateness_of(pruned[1], [maximize]) < lateness_of(pruned[0], [maximize])
    assert len({lateness_of(t, [minimize, minimize]) for t in pruned}) == 1


def test_a_loss_is_expected_of_a_pruned_trial_of_one_objective_alone() -> None:
    record = PruningRecord(0, 4, "curve", expected=0.4, deviation=0.1)
    attributes, minimize = stop_attributes(record), StudyDirection.MINIMIZE
    pruned = create_trial(state=TrialState.PRUNED, user_attrs=attributes)
    assert expected_loss_of(pruned, [minimize]) == (0.4, 0.1)
    assert expected_loss_of(pruned, [StudyDirection.MAXIMIZE]) == (-0.4, 0.1)
    assert expected_loss_of(pruned, [minimize, minimize]) is None
    # One that is not finite is not written down.
    unsure = stop_attributes(PruningRecord(0, 4, "curve", expected=0.4, deviation=INF))
    pruned = create_trial(state=TrialState.PRUNED, user_attrs=unsure)
    assert expected_loss_of(pruned, [minimize]) == (0.4, 0.0)
    completed = create_trial(value=1.0, user_attrs=attributes)
    assert expected_loss_of(completed, [minimize]) is None


def test_a_curve_of_several_objectives_has_its_steps_in_order() -> None:
    reports = {f"{REPORT}{step}": [float(step), 1.0] for step in (100, 9, 10)}
    reports |= {f"{REPORT}11": [1.0], "other": [1.0, 2.0]}  # of another number of objectives
    curve = curve_of(
        create_trial(values=[0.0, 0.0], system_attrs=reports),
        [StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE],
    )
    assert list(curve.items()) == [(9, [9.0, -1.0]), (10, [10.0, -1.0]), (100, [100.0, -1.0])]


def test_a_range_that_reaches_zero_has_no_log_scale() -> None:
    ints = [IntDistribution(0, 5), IntDistribution(1, 9, log=True)]
    assert joined(ints) == IntDistribution(0, 9)
    assert joined([IntDistribution(2, 5), ints[1]]) == IntDistribution(1, 9, log=True)
    floats = [FloatDistribution(0.0, 0.5), FloatDistribution(0.1, 9.0, log=True)]
    assert joined(floats) == FloatDistribution(0.0, 9.0)
    assert joined([FloatDistribution(0.2, 0.5), floats[1]]) == floats[1]


def test_joined_choices_stand_in_the_order_in_which_they_were_first_listed() -> None:
    one, other = (
        CategoricalDistribution(("b", 1, NAN)),
        CategoricalDistribution((NAN, "a", "b", 1.0)),
    )
    both = CategoricalDistribution(("b", 1, NAN, "a", 1.0))
    assert is_same(joined([one, IntDistribution(0, 5), other]), both)
