"""The history of a study: each trial is read once, and nothing is lost or taken for another."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from studies import GRID, ONE, SPACE, SQUARE, TWO, evaluate, frozen, new_study, spread

from metatpe import Space
from metatpe.study.history import History, Observations
from metatpe.study.moment import Moment
from metatpe.study.record import Plan, system_attributes
from metatpe.study.seen import Seen

MINIMIZE, MAXIMIZE = StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE
NAN = float("nan")


def random_study(directions: tuple[str, ...] = ONE) -> Study:
    return new_study(optuna.samplers.RandomSampler(seed=0), directions)


def read(study: Study) -> History:
    history = History(study.directions)
    history.update(study.trials)
    return history


def assert_same(a: Observations, b: Observations) -> None:
    for name in ("X", "losses", "violation", "lateness"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


# Reading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("directions", [ONE, TWO])
def test_a_history_that_grew_is_the_one_read_at_once(directions: tuple[str, ...]) -> None:
    study, space = random_study(directions), Space(SPACE)
    grown = History(study.directions)
    for i in range(100):  # beyond the size that the arrays begin with
        trial = study.ask(SPACE)
        grown.update(study.trials)
        if i % 10 == 3:
            study.tell(trial, state=TrialState.FAIL)
        elif i % 10 == 5:
            study.tell(trial, state=TrialState.PRUNED)
        elif i % 10 != 7:
            study.tell(trial, [float(i)] * len(directions))
        if i % 20 == 0:
            grown.observations(space, study.trials)
    grown.update(study.trials)
    assert grown.n_counted == 80
    assert_same(
        grown.observations(space, study.trials), read(study).observations(space, study.trials)
    )


def test_a_trial_that_finishes_late_is_read_then() -> None:
    study = random_study()
    early, late = study.ask(SQUARE), study.ask(SQUARE)
    study.tell(late, 1.0)
    history = read(study)
    assert history.n_counted == 1
    study.tell(early, 2.0)
    history.update(study.trials)
    observed = history.observations(Space(SQUARE), study.trials)
    np.testing.assert_array_equal(observed.losses[:, 0], [2.0, 1.0])


def test_a_maximised_objective_is_a_loss() -> None:
    history = History([MINIMIZE, MAXIMIZE])
    trials = numbered(frozen(p, [1.0, 2.0]) for p in spread(3))
    history.update(trials)
    losses = history.observations(Space(SQUARE), trials).losses
    np.testing.assert_array_equal(losses, [[1.0, -2.0]] * 3)


def numbered(trials: Any) -> list[FrozenTrial]:
    found = list(trials)
    for number, trial in enumerate(found):
        trial.number = number
    return found


def test_the_newest_distribution_of_each_name_is_known_whatever_the_trial_became() -> None:
    study = random_study()
    evaluate(study, 1, space={"x": FloatDistribution(0, 1), "n": IntDistribution(0, 3)})
    failed = study.ask({"x": FloatDistribution(0, 2)})
    study.tell(failed, state=TrialState.FAIL)
    study.ask({"y": FloatDistribution(5, 6)})
    running = [t for t in study.trials if t.state == TrialState.RUNNING]
    assert read(study).distributions(running) == {
        "n": IntDistribution(0, 3),
        "x": FloatDistribution(0, 2),
        "y": FloatDistribution(5, 6),
    }


def test_a_trial_that_asks_late_does_not_bring_an_older_distribution_back() -> None:
    study = random_study()
    first, second = study.ask(), study.ask()
    second.suggest_float("x", 0, 2)
    history = read(study)
    first.suggest_float("x", 0, 1)
    history.update(study.trials)
    assert history.distributions(study.trials) == {"x": FloatDistribution(0, 2)}


def test_an_observation_is_encoded_in_the_space_that_is_asked_for() -> None:
    trials = numbered(frozen({"x": x}, 0.0) for x in (0.25, 0.75))
    history = History([MINIMIZE])
    history.update(trials)
    for high, wanted in [(1.0, [0.25, 0.75]), (0.5, [0.5, NAN]), (2.0, [0.125, 0.375])]:
        space = Space({"x": FloatDistribution(0.0, high)})
        np.testing.assert_allclose(history.observations(space, trials).X[:, 0], wanted)


def test_many_spaces_are_encoded_right_although_few_are_remembered() -> None:
    trials = numbered(frozen({"x": 0.5}, 0.0) for _ in range(2))
    history = History([MINIMIZE])
    for high in [1.0, 2.0, 4.0, 5.0, 8.0, 10.0] * 2:
        history.update(trials)
        space = Space({"x": FloatDistribution(0.0, high)})
        np.testing.assert_allclose(history.observations(space, trials).X, 0.5 / high)


def test_the_longest_duration_is_that_of_a_finished_trial() -> None:
    trials = numbered(
        [
            frozen({"x": 0.1}, 0.0, age=30.0),
            frozen({"x": 0.1}, state=TrialState.PRUNED, age=50.0),
            frozen({"x": 0.1}, state=TrialState.RUNNING, age=500.0),
        ]
    )
    history = History([MINIMIZE])
    history.update(trials)
    assert datetime.timedelta(seconds=49) < history.longest < datetime.timedelta(seconds=51)


# Whose history it is -----------------------------------------------------------------------------


def test_a_history_belongs_to_its_study_as_long_as_that_grows() -> None:
    study = random_study()
    history = History(study.directions)
    for _ in range(5):
        assert history.belongs_to(study.trials)
        history.update(study.trials)
        evaluate(study, 1, space=SQUARE)
    assert history.belongs_to(study.trials)


def test_a_history_does_not_belong_to_an_empty_a_shorter_or_a_later_study() -> None:
    study = random_study()
    evaluate(study, 5, space=SQUARE)
    history = read(study)
    later = random_study()
    evaluate(later, 8, space=SQUARE)
    assert not history.belongs_to([])
    assert not history.belongs_to(study.trials[:3])
    assert not history.belongs_to(later.trials)


def test_a_history_that_has_read_nothing_belongs_to_any_study() -> None:
    study = random_study()
    history = read(study)
    evaluate(study, 2, space=SQUARE)
    assert history.belongs_to(study.trials)


# Filtered studies --------------------------------------------------------------------------------


def test_of_a_filtered_study_only_the_trials_that_are_shown_are_observed() -> None:
    study = random_study()
    evaluate(study, 9, space=SQUARE)
    history, space = History(study.directions), Space(SQUARE)
    for bracket in (0, 1, 2, 0, 1):
        shown = study.trials[bracket::3]
        history.update(shown)
        observed = history.observations(space, shown)
        np.testing.assert_array_equal(observed.losses[:, 0], [t.value for t in shown])


def test_a_study_that_is_no_longer_filtered_is_read_as_a_whole() -> None:
    study = random_study()
    evaluate(study, 9, space=SQUARE)
    history = History(study.directions)
    history.update(study.trials[::2])
    history.update(study.trials)
    assert history.n_counted == 9


# Running trials and warm starts ------------------------------------------------------------------


def moment(trials: Sequence[FrozenTrial], space: Space | None = None) -> Moment:
    """Return the moment at which the last of the trials asks."""
    ordered = numbered(trials)
    history = History([MINIMIZE])
    history.update(ordered)
    return Moment(history, ordered, ordered[-1], Space(SQUARE) if space is None else space)


RUNNING = TrialState.RUNNING
ASKING: dict[str, Any] = {"params": {}, "state": RUNNING}


def planned(params: dict[str, float], warm_index: int | None = None, **given: Any) -> FrozenTrial:
    plan = system_attributes(Plan("warm_start", params, warm_index=warm_index))
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


def test_a_stored_parameter_wins_over_the_planned_one() -> None:
    trial = planned({"x": 0.1, "y": 0.2})
    trial.params, trial.distributions = {"x": 0.6}, {"x": SQUARE["x"]}
    np.testing.assert_allclose(moment([trial, frozen(**ASKING)]).running, [[0.6, 0.2]])


def test_the_kth_trial_that_was_not_enqueued_gets_the_kth_warm_start() -> None:
    enqueued = {**ASKING, "fixed_params": {"x": 0.5}}
    failed = {"params": {}, "state": TrialState.FAIL}
    trials = [frozen(**given) for given in (ASKING, enqueued, ASKING, failed)]
    indices = [moment(trials[: i + 1]).warm_index(3) for i in range(len(trials))]
    assert indices == [0, None, 1, 2]
    assert moment([*trials, frozen(**ASKING)]).warm_index(3) is None


def test_a_warm_start_that_was_left_behind_is_given_to_one_trial_only() -> None:
    stale = planned({"x": 0.1}, warm_index=1, age=1000.0)
    done = [frozen({"x": 0.2}, 0.0), frozen({"x": 0.3}, 0.0)]
    here = moment([done[0], stale, done[1], frozen(**ASKING)])
    assert (here.warm_index(2), here.abandoned_warm_start) == (None, 1)
    assert not here.is_given_to_others(1)
    taken = [done[0], stale, done[1], planned({"x": 0.1}, warm_index=1), frozen(**ASKING)]
    assert moment(taken).abandoned_warm_start is None
    assert moment(taken).is_given_to_others(1)
    by_hand = frozen(**ASKING, fixed_params={"x": 0.5})
    assert moment([done[0], stale, done[1], by_hand]).abandoned_warm_start is None


def test_of_several_warm_starts_that_were_left_behind_the_first_comes_first() -> None:
    stale = [planned({"x": 0.1 * k}, warm_index=k, age=1000.0) for k in range(3)]
    here = moment([*stale[::-1], frozen({"x": 0.5}, 0.0), frozen(**ASKING)])
    assert here.abandoned_warm_start == 0


def test_values_that_were_enqueued_replace_those_that_were_drawn() -> None:
    here = moment([frozen({}, state=RUNNING, fixed_params={"y": 0.25, "other": 3})])
    X = np.array([[0.1, 0.9], [0.2, 0.8]])
    np.testing.assert_allclose(here.with_fixed(X), [[0.1, 0.25], [0.2, 0.25]])
    np.testing.assert_allclose(X, [[0.1, 0.9], [0.2, 0.8]])
    assert here.values(X[0])["y"] == 0.25


# Seen --------------------------------------------------------------------------------------------

BRANCHES = Space({"kind": GRID["c"], "i": GRID["i"]})


def seen(params: list[dict[str, Any]], candidates: list[dict[str, Any]]) -> list[bool]:
    remembered = Seen(BRANCHES.columns)
    remembered.add(BRANCHES.encode(params))
    found: list[bool] = remembered.has(BRANCHES.encode(candidates)).tolist()
    return found


def test_a_configuration_is_compared_on_the_parameters_that_were_active() -> None:
    assert seen(
        [{"kind": "p"}, {"kind": "q", "i": 2}],
        [{"kind": k, "i": i} for k, i in [("p", 0), ("p", 3), ("q", 2), ("q", 1), ("r", 2)]],
    ) == [True, True, True, False, False]


def test_nothing_was_seen_at_first() -> None:
    assert seen([], [{"kind": "p", "i": 0}]) == [False]


def test_in_a_space_with_a_continuous_column_nothing_counts_as_seen() -> None:
    space = Space(SQUARE)
    remembered = Seen(space.columns)
    X = np.array([[0.5, 0.5]])
    remembered.add(X)
    assert not remembered.has(X).any()


def test_a_value_that_the_space_lost_is_no_repeat() -> None:
    trials = numbered([frozen({"i": 3, "c": "p"}, 0.0, space=GRID), frozen(**ASKING)])
    narrower = Space({"c": GRID["c"], "i": IntDistribution(0, 2)})
    here = moment(trials, narrower)
    assert here.is_new(narrower.encode([{"c": "p", "i": 2}])).all()


def test_what_runs_is_not_new() -> None:
    space = Space(GRID)
    running = frozen({"i": 1, "c": "p", "f": 0.5}, state=RUNNING, space=GRID)
    here = moment([running, frozen(**ASKING)], space)
    X = space.encode([{"i": 1, "c": "p", "f": 0.5}, {"i": 1, "c": "p", "f": 0.0}])
    assert here.is_new(X).tolist() == [False, True]
    assert here.is_running(X).tolist() == [True, False]


def test_what_was_evaluated_is_not_new_and_does_not_run() -> None:
    space = Space(GRID)
    done = frozen({"i": 1, "c": "p", "f": 0.5}, 0.0, space=GRID)
    here = moment([done, frozen(**ASKING)], space)
    X = space.encode([{"i": 1, "c": "p", "f": 0.5}])
    assert not here.is_new(X).any()
    assert not here.is_running(X).any()
