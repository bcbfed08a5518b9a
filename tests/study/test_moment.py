"""What one suggestion sees of its study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from helpers import NAN
from optuna.distributions import IntDistribution
from optuna.trial import FrozenTrial, TrialState
from studies import GRID, ONE, SQUARE, TWO, frozen, new_study, random_sampler

from metatpe import Space
from metatpe.study.history import History
from metatpe.study.moment import Moment, RepeatingMoment
from metatpe.study.record import Plan, system_attributes


def moment(
    trials: Sequence[FrozenTrial],
    space: Space | None = None,
    kind: type[Moment] = Moment,
    *,
    number: int = -1,
) -> Moment:
    """Return the moment at which one of the trials asks, by default the last one."""
    study = new_study(random_sampler(0), ONE, trials=trials)
    stored, history = study.trials, History(study.directions)
    history.update(stored)
    space = Space(SQUARE) if space is None else space
    return kind(study, history, stored, stored[number], space)


RUNNING = TrialState.RUNNING
LINE = {"z": SQUARE["x"]}
ASKING: dict[str, Any] = {"params": {}, "state": RUNNING}


def planned(params: dict[str, float], start: int | None = None, **given: Any) -> FrozenTrial:
    plan = system_attributes(Plan("warm_start", "best", params, start=start))
    return frozen({}, state=RUNNING, **given, **plan)


def test_what_runs_is_read_from_the_plan_and_from_the_parameters() -> None:
    here = moment(
        [
            planned({"x": 0.1, "y": 0.2}),
            frozen({"x": 0.3, "y": 0.4}, state=RUNNING),
            frozen({"x": 0.5}, state=RUNNING),
            frozen({}, state=RUNNING),  # has not asked yet
            frozen({"x": 0.9, "y": 0.9}, 1.0),
            frozen({"x": 0.7, "y": 0.7}, state=RUNNING),  # the one that asks
        ]
    )
    np.testing.assert_allclose(here.running, [[0.1, 0.2], [0.3, 0.4], [0.5, NAN]])


def test_what_runs_is_a_warm_start_where_it_has_the_index_of_one() -> None:
    x = {"x": 0.1, "y": 0.2}
    here = moment([planned(x, start=0), planned(x, start=3), planned(x), frozen(**ASKING)])
    assert here.is_running_start.tolist() == [True, True, False]
    unknown = frozen({}, state=RUNNING)  # has not asked yet
    assert moment([unknown, planned(x, start=0), frozen(**ASKING)]).is_running_start.tolist() == [
        True
    ]


def test_a_stored_parameter_wins_over_the_planned_one() -> None:
    trial = planned({"x": 0.1, "y": 0.2})
    trial.params, trial.distributions = {"x": 0.6}, {"x": SQUARE["x"]}
    np.testing.assert_allclose(moment([trial, frozen(**ASKING)]).running, [[0.6, 0.2]])


def test_the_kth_trial_that_was_not_enqueued_gets_the_kth_warm_start() -> None:
    enqueued = {**ASKING, "fixed_params": {"x": 0.5}}
    failed = {"params": {}, "state": TrialState.FAIL}
    trials = [frozen(**given) for given in (ASKING, enqueued, ASKING, failed)]
    indices = [moment(trials[: i + 1]).start_index(3) for i in range(len(trials))]
    assert indices == [0, None, 1, 2]
    assert moment([*trials, frozen(**ASKING)]).start_index(3) is None


def test_a_warm_start_that_was_left_behind_is_given_to_one_trial_only() -> None:
    stale = planned({"x": 0.1}, start=1, age=1000.0)
    done = [frozen({"x": 0.2}, 0.0), frozen({"x": 0.3}, 0.0)]
    here = moment([done[0], stale, done[1], frozen(**ASKING)])
    assert (here.start_index(2), here.abandoned_start) == (None, 1)
    assert not here.is_start_of_others(1)
    taken = [done[0], stale, done[1], planned({"x": 0.1}, start=1), frozen(**ASKING)]
    assert moment(taken).abandoned_start is None
    assert moment(taken).is_start_of_others(1)
    assert moment(taken).taken_starts == {1}
    by_hand = frozen(**ASKING, fixed_params={"x": 0.5})
    assert moment([done[0], stale, done[1], by_hand]).abandoned_start is None


def test_of_several_warm_starts_that_were_left_behind_the_first_comes_first() -> None:
    stale = [planned({"x": 0.1 * k}, start=k, age=1000.0) for k in range(3)]
    here = moment([*stale[::-1], frozen({"x": 0.5}, 0.0), frozen(**ASKING)])
    assert here.abandoned_start == 0


@pytest.mark.parametrize(
    ("longest", "age", "is_stale"),
    [(1.0, 59.5, False), (1.0, 60.5, True), (30.0, 299.0, False), (30.0, 301.0, True)],
)
def test_a_trial_is_left_behind_after_a_minute_and_ten_times_the_longest_evaluation(
    longest: float, age: float, is_stale: bool
) -> None:
    params = {"x": 0.1, "y": 0.2}
    done, other = frozen({"x": 0.5, "y": 0.5}, 1.0, age=longest), planned(params, age=age)
    here = moment([done, other, frozen(**ASKING)])
    assert len(here.running) == (not is_stale)
    assert len(here.tried) == 1 + (not is_stale)
    assert here.is_given_to_others(params) == (not is_stale)
    assert len(moment([other, frozen(**ASKING)]).running) == 1  # nobody knows how long it takes


def test_what_a_trial_was_given_itself_is_not_given_to_others() -> None:
    params = {"x": 0.1, "y": 0.2}
    assert not moment([frozen({"x": 0.5}, 1.0), planned(params)]).is_given_to_others(params)


def test_a_start_up_trial_waits_for_earlier_ones_that_have_chosen_nothing_yet() -> None:
    trials = [
        frozen(**ASKING, fixed_params={"x": 0.5}),  # by hand, so none of them
        frozen(**ASKING),
        frozen({"x": 0.5, "y": 0.5}, 1.0),
        planned({"x": 0.1, "y": 0.2}, start=0),
        frozen(**ASKING),  # the one that asks
        frozen(**ASKING),
    ]
    assert moment(trials, number=4).n_undecided(5) == 1
    assert moment(trials, number=5).n_undecided(5) == 2
    assert moment(trials, number=5).n_undecided(0) == 0


def test_a_trial_that_waits_for_a_worker_may_choose_at_any_time() -> None:
    done, waits = frozen({"x": 0.5}, 1.0), frozen({}, state=TrialState.WAITING)
    assert moment([done, frozen(**ASKING)]).is_alone
    assert not moment([waits, frozen(**ASKING)]).is_alone
    assert not moment([frozen(**ASKING), frozen(**ASKING)]).is_alone


@pytest.mark.parametrize(
    ("x", "is_there"),
    [
        ([0.25 + 5e-10, 0.5], True),
        ([0.25 + 5e-9, 0.5], False),
        ([0.25, 0.6], False),
        ([0.75, 0.5], True),  # is running
        ([0.1, NAN], True),
        ([0.1, 0.5], False),
        ([0.25, NAN], False),
    ],
)
def test_a_configuration_is_known_again_to_nine_digits(x: list[float], is_there: bool) -> None:
    done = [frozen({"x": 0.25, "y": 0.5}, 1.0), frozen({"x": 0.1}, 1.0)]
    here = moment([*done, planned({"x": 0.75, "y": 0.5}), frozen(**ASKING)])
    assert here.has(np.array(x)) == is_there


def test_values_that_were_enqueued_replace_those_that_were_drawn() -> None:
    here = moment([frozen({}, state=RUNNING, fixed_params={"y": 0.25, "other": 3})])
    X = np.array([[0.1, 0.9], [0.2, 0.8]])
    np.testing.assert_allclose(here.with_fixed(X), [[0.1, 0.25], [0.2, 0.25]])
    np.testing.assert_allclose(X, [[0.1, 0.9], [0.2, 0.8]])
    assert here.values(X[0])["y"] == 0.25


def test_a_value_that_the_space_lost_is_no_repeat() -> None:
    trials = [frozen({"i": 3, "c": "p"}, 0.0, space=GRID), frozen(**ASKING)]
    narrower = Space({"c": GRID["c"], "i": IntDistribution(0, 2)})
    here = moment(trials, narrower)
    assert here.is_new(narrower.encode([{"c": "p", "i": 2}])).all()


def test_what_runs_is_not_new() -> None:
    space = Space(GRID)
    running = frozen({"i": 1, "c": "p", "f": 0.5}, state=RUNNING, space=GRID)
    here = moment([running, frozen(**ASKING)], space)
    X = space.encode([{"i": 1, "c": "p", "f": 0.5}, {"i": 1, "c": "p", "f": 0.0}])
    assert here.is_new(X).tolist() == [False, True]


def test_what_was_evaluated_is_not_new() -> None:
    space = Space(GRID)
    done = frozen({"i": 1, "c": "p", "f": 0.5}, 0.0, space=GRID)
    here = moment([done, frozen(**ASKING)], space)
    X = space.encode([{"i": 1, "c": "p", "f": 0.5}])
    assert not here.is_new(X).any()
    assert moment([done, frozen(**ASKING)], space, RepeatingMoment).is_new(X).all()


def test_what_used_fewer_parameters_can_be_left_aside() -> None:
    space = Space(GRID)
    done = frozen({"i": 1}, 0.0, space=GRID)
    running = frozen({"i": 2}, state=RUNNING, space=GRID)
    here = moment([done, running, frozen(**ASKING)], space)
    X = space.encode([{"i": i, "c": "p", "f": 0.0} for i in range(3)])
    assert here.is_new(X).tolist() == [True, False, False]
    assert here.is_new(X, complete_only=True).all()


# The study ---------------------------------------------------------------------------------------


def test_the_same_moment_in_another_space_encodes_the_same_trials() -> None:
    here = moment([frozen({"x": 0.25, "y": 0.5}, 1.0), frozen({}, state=RUNNING)])
    here.attempt = 2
    there = here.in_space(Space({"x": SQUARE["x"]}))
    np.testing.assert_allclose(there.observations.X, [[0.25]])
    assert (there.trial, there.attempt) == (here.trial, 2)
    assert type(moment([frozen(**ASKING)], None, RepeatingMoment).in_space(here.space)) is (
        RepeatingMoment
    )


def test_trials_that_are_not_shown_count_for_the_start_and_not_as_observations() -> None:
    study = new_study(
        random_sampler(0),
        ONE,
        trials=[
            frozen({"x": 0.1, "y": 0.1}, 1.0),
            frozen({"x": 0.2, "y": 0.2}, 2.0),
            frozen(**ASKING),
        ],
    )
    shown, history = study.trials[1:], History(study.directions)
    history.update(shown)
    here = Moment(study, history, shown, shown[-1], Space(SQUARE))
    assert [t.number for t in here.everyone] == [0, 1, 2]
    assert here.start_index(5) == 2
    np.testing.assert_allclose(here.observations.losses, [[2.0]])


def test_the_names_of_the_objectives_are_those_of_the_study() -> None:
    study = new_study(random_sampler(0), TWO, trials=[frozen(**ASKING)])
    history = History(study.directions)
    here = Moment(study, history, study.trials, study.trials[0], Space(SQUARE))
    assert here.objective_names == ()
    study.set_metric_names(["error", "time"])
    assert here.in_space(Space({})).objective_names == ("error", "time")


@pytest.mark.parametrize(
    ("others", "is_known"),
    [
        ([], True),
        ([planned({"x": 0.1, "y": 0.2})], True),
        ([planned({"x": 0.1, "z": 0.2})], False),  # z may still be asked for
        ([planned({"x": 0.1, "z": 0.2}), frozen({"x": 0.5, "y": 0.5}, 1.0)], True),
        ([frozen({"z": 0.2}, state=RUNNING, space=LINE), planned({"x": 0.1, "z": 0.2})], True),
    ],
    ids=["nobody", "planned no more", "planned more", "one is complete", "asked for already"],
)
def test_the_space_is_known_unless_a_running_trial_was_planned_with_more(
    others: list[FrozenTrial], is_known: bool
) -> None:
    assert moment([*others, frozen(**ASKING)]).is_space_known == is_known
