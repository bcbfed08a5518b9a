"""The history of a study: each trial is read once, and nothing is lost or taken for another."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

import numpy as np
import pytest
from helpers import INF, NAN
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from studies import ONE, SPACE, SQUARE, TWO, evaluate, frozen, new_study, random_sampler, spread

from metatpe import Space
from metatpe.study.history import History, Observations
from metatpe.study.record import Plan, system_attributes


def random_study(directions: tuple[str, ...] = ONE, trials: Iterable[FrozenTrial] = ()) -> Study:
    return new_study(random_sampler(0), directions, trials=list(trials))


def read(study: Study) -> History:
    history = History(study.directions)
    history.update(study.trials)
    return history


def assert_same(a: Observations, b: Observations) -> None:
    for name in ("X", "losses", "violation", "turns", "start", "lateness"):
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
    assert grown.n_observations == 80
    assert_same(
        grown.observations(space, study.trials), read(study).observations(space, study.trials)
    )


def test_a_trial_that_finishes_late_is_read_then() -> None:
    study = random_study()
    early, late = study.ask(SQUARE), study.ask(SQUARE)
    study.tell(late, 1.0)
    history = read(study)
    assert history.n_observations == 1
    study.tell(early, 2.0)
    history.update(study.trials)
    observed = history.observations(Space(SQUARE), study.trials)
    np.testing.assert_array_equal(observed.losses[:, 0], [2.0, 1.0])
    assert history.results() == [(early.params, [2.0]), (late.params, [1.0])]


def test_an_infeasible_result_is_as_bad_as_can_be() -> None:
    trials = [frozen({"x": 0.1}, 1.0, constraint=c) for c in (-1.0, 0.0, 1e-9)]
    assert [own for _, own in read(random_study(trials=trials)).results()] == [[1.0], [1.0], [INF]]


def test_a_trial_that_waits_is_unfinished_and_does_not_run() -> None:
    waits, runs = (frozen({}, state=s) for s in (TrialState.WAITING, TrialState.RUNNING))
    study = random_study(trials=[frozen({"x": 0.1}, 1.0), waits, runs])
    history = read(study)
    assert [t.number for t in history.unfinished(study.trials)] == [1, 2]
    assert [t.number for t in history.running(study.trials)] == [2]
    assert history.running([]) == []


def test_a_maximised_objective_is_a_loss() -> None:
    trials = (frozen(params, [1.0, 2.0]) for params in spread(3))
    study = random_study(("minimize", "maximize"), trials)
    losses = read(study).observations(Space(SQUARE), study.trials).losses
    np.testing.assert_array_equal(losses, [[1.0, -2.0]] * 3)


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


def test_parameters_are_listed_by_name_whatever_was_asked_for_first() -> None:
    study = random_study()
    trial = study.ask()
    for name in "zxy":
        trial.suggest_float(name, 0, 1)
    assert list(read(study).distributions(study.trials)) == ["x", "y", "z"]


def test_a_trial_that_asks_late_does_not_bring_an_older_distribution_back() -> None:
    study = random_study()
    first, second = study.ask(), study.ask()
    second.suggest_float("x", 0, 2)
    history = read(study)
    first.suggest_float("x", 0, 1)
    history.update(study.trials)
    assert history.distributions(study.trials) == {"x": FloatDistribution(0, 2)}


def test_a_trial_that_asks_after_the_next_one_has_finished_brings_nothing_older_back() -> None:
    study = random_study()
    first, second = study.ask(), study.ask()
    second.suggest_float("x", 0, 2)
    study.tell(second, 1.0)
    history = read(study)
    first.suggest_float("x", 0, 1)
    assert history.distributions(study.trials[:1]) == {"x": FloatDistribution(0, 2)}
    study.tell(first, 1.0)
    history.update(study.trials)
    assert history.distributions([]) == {"x": FloatDistribution(0, 2)}


def test_an_observation_is_encoded_in_the_space_that_is_asked_for() -> None:
    study = random_study(trials=(frozen({"x": x}, 0.0) for x in (0.25, 0.75)))
    history = read(study)
    for high, wanted in [(1.0, [0.25, 0.75]), (0.5, [0.5, NAN]), (2.0, [0.125, 0.375])]:
        space = Space({"x": FloatDistribution(0.0, high)})
        np.testing.assert_allclose(history.observations(space, study.trials).X[:, 0], wanted)


def test_many_spaces_are_encoded_right_although_few_are_remembered() -> None:
    study = random_study()
    history = History(study.directions)
    for high in [1.0, 2.0, 4.0, 5.0, 8.0, 10.0] * 2:
        study.add_trial(frozen({"x": 0.5}, 0.0))
        history.update(study.trials)
        space = Space({"x": FloatDistribution(0.0, high)})
        X = history.observations(space, study.trials).X
        assert len(X) == len(study.trials)
        np.testing.assert_allclose(X, 0.5 / high)


def test_the_longest_duration_is_that_of_a_finished_trial() -> None:
    trials = [
        frozen({"x": 0.1}, 0.0, age=30.0),
        frozen({"x": 0.1}, state=TrialState.PRUNED, age=50.0),
        frozen({"x": 0.1}, 0.0, age=40.0),
        frozen({"x": 0.1}, state=TrialState.RUNNING, age=500.0),
    ]
    longest = read(random_study(trials=trials)).longest
    assert datetime.timedelta(seconds=49) < longest < datetime.timedelta(seconds=51)


@pytest.mark.parametrize(
    ("params", "state", "is_known"),
    [
        ({"x": 0.1}, TrialState.COMPLETE, True),
        ({}, TrialState.COMPLETE, False),
        ({"x": 0.1}, TrialState.PRUNED, False),
        ({"x": 0.1}, TrialState.RUNNING, False),
    ],
)
def test_one_complete_trial_with_parameters_shows_what_the_objective_asks_for(
    params: dict[str, float], state: TrialState, is_known: bool
) -> None:
    value = 0.0 if state == TrialState.COMPLETE else None
    study = random_study(trials=[frozen(params, value, state=state)])
    assert read(study).has_complete == is_known


def test_turns_and_starts_are_read_from_the_plans() -> None:
    plans = [
        Plan("warm_start", "best", {"x": 0.1}, start=3),
        Plan("acquisition", "weighed"),
        Plan("acquisition", "own"),
        Plan("epsilon", "epsilon"),
    ]
    trials = [frozen({"x": 0.1}, 0.0, **system_attributes(plan)) for plan in plans]
    study = random_study(trials=[*trials, frozen({"x": 0.1}, 0.0)])
    observed = read(study).observations(Space(SQUARE), study.trials)
    assert observed.turns.tolist() == [0.0, 1.0, -1.0, 0.0, 0.0]
    assert observed.start.tolist() == [3.0, -1.0, -1.0, -1.0, -1.0]


def test_pruned_trials_are_told_from_completed_ones_whatever_they_reported() -> None:
    pruned = [
        frozen({"x": 0.1}, state=TrialState.PRUNED, reports=reports)
        for reports in ({0: 0.0}, {0: 1.0, 4: -2.0}, {})
    ]
    study = random_study(trials=[frozen({"x": 0.1}, 0.0), *pruned])
    observed = read(study).observations(Space(SQUARE), study.trials)
    expected = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, -4.0, -2.0], [1.0, 1.0, 0.0]]
    np.testing.assert_array_equal(observed.lateness, expected)
    assert observed.losses.ravel().tolist() == [0.0, INF, INF, INF]
    assert not observed.deviation.any()


# Whose history it is -----------------------------------------------------------------------------


def test_a_history_is_continued_by_its_study_as_long_as_that_grows() -> None:
    study = random_study()
    history = History(study.directions)
    for _ in range(5):
        assert history.is_continued_by(study.trials)
        history.update(study.trials)
        assert history.is_continued_by(study.trials)
        evaluate(study, 1, space=SQUARE)
    assert history.is_continued_by(study.trials)
    assert history.is_continued_by(study.trials[1::2])  # another bracket of Hyperband


def test_an_empty_a_shorter_and_a_later_study_do_not_continue_a_history() -> None:
    study = random_study()
    evaluate(study, 5, space=SQUARE)
    history = read(study)
    later = random_study()
    evaluate(later, 8, space=SQUARE)
    assert not history.is_continued_by([])
    assert not history.is_continued_by(study.trials[:3])
    assert not history.is_continued_by(study.trials[:4])
    assert not history.is_continued_by(later.trials)


def test_a_history_that_has_read_nothing_is_continued_by_any_study() -> None:
    study = random_study()
    history = read(study)
    evaluate(study, 2, space=SQUARE)
    assert history.is_continued_by(study.trials)


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


def test_a_bracket_in_which_nothing_has_finished_has_no_observation() -> None:
    running = frozen({"x": 0.2}, state=TrialState.RUNNING)
    study = random_study(trials=[frozen({"x": 0.1}, 1.0), running])
    observed = read(study).observations(Space(SQUARE), study.trials[1:])
    assert observed.X.shape == (0, 2)


def test_a_study_that_is_no_longer_filtered_is_read_as_a_whole() -> None:
    study = random_study()
    evaluate(study, 9, space=SQUARE)
    history = History(study.directions)
    history.update(study.trials[::2])
    history.update(study.trials)
    assert history.n_observations == 9


def test_open_trials_of_another_bracket_may_lie_beyond_the_trials_at_hand() -> None:
    study = random_study()
    first, second = study.ask(SQUARE), study.ask(SQUARE)
    history = History(study.directions)
    history.update(study.trials[1:])  # Hyperband shows the second trial its own bracket
    history.update(study.trials)
    alone = study.trials[:1]  # and then the first one, which looks like the whole study
    history.update(alone)
    assert [t.number for t in history.running(alone)] == [first.number]
    assert [t.number for t in history.running(study.trials)] == [first.number, second.number]
