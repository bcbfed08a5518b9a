"""What the sampler takes from the past, and what it writes down about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from studies import (
    GRID,
    ONE,
    SPACE,
    SQUARE,
    TWO,
    Params,
    answer_of,
    configurations,
    evaluate,
    frozen,
    in_space,
    new_study,
    next_suggestions,
    past_study,
    spread,
    start_python,
    suggestions,
    two_losses,
)

from metatpe import MetaTPESampler, Space, Task, transfer_history
from metatpe.study.moment import Moment
from metatpe.study.record import Plan, Turn, read_plan, system_attributes

MAX_CHARACTERS = 2046  # what every relational storage takes for one attribute
THREE = ("minimize", "minimize", "minimize")
UNIT = FloatDistribution(0.0, 1.0)


def three_losses(params: Params) -> list[float]:
    return [*two_losses(params), sum(len(str(v)) for v in params.values())]


def pasts(n_studies: int, **settings: Any) -> list[Study]:
    return [past_study(seed=i, name=f"past {i}", **settings) for i in range(n_studies)]


def origins(study: Study) -> list[str]:
    return [record.origin for record in transfer_history(study)]


# Warm starts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("directions", [ONE, TWO, THREE])
@pytest.mark.parametrize("n_sources", [1, 3])
def test_the_first_trials_of_a_fresh_study_are_configurations_of_the_past_to_the_last_digit(
    directions: tuple[str, ...], n_sources: int
) -> None:
    sources = pasts(n_sources, losses=three_losses, directions=directions)
    study = new_study(MetaTPESampler(sources, seed=0), directions)
    suggested = evaluate(study, 8, losses=three_losses)
    stored = [t.params for source in sources for t in source.trials]
    assert [params in stored for params in suggested] == [True] * 5 + [False] * 3
    assert origins(study)[:5] == ["warm_start"] * 5
    assert "warm_start" not in origins(study)[5:]


def test_the_warm_starts_are_the_best_of_each_source_and_given_out_once_each() -> None:
    sources = pasts(3, directions=ONE)
    best = [t.params for s in sources for t in sorted(s.trials, key=lambda t: t.values)[:2]]
    suggested = suggestions(MetaTPESampler(sources, n_startup_trials=6), 6, directions=ONE)
    assert sorted(map(str, suggested)) == sorted(map(str, best))


def test_of_several_objectives_the_first_front_is_given_out_first() -> None:
    source = past_study()
    front = [t.params for t in source.best_trials]
    suggested = suggestions(MetaTPESampler([source], n_startup_trials=len(front)), len(front))
    assert sorted(map(str, suggested)) == sorted(map(str, front))


def test_a_source_given_twice_gives_out_no_configuration_twice() -> None:
    suggested = suggestions(MetaTPESampler([past_study(), past_study()], seed=0), 5)
    assert len({str(params) for params in suggested}) == 5


def test_a_small_source_leaves_the_rest_of_the_start_to_chance() -> None:
    study = new_study(MetaTPESampler([past_study(n=3)], seed=0))
    evaluate(study, 6)
    assert origins(study)[:5] == ["warm_start"] * 3 + ["random"] * 2


def test_a_warm_start_that_was_evaluated_already_is_replaced_by_the_next_best() -> None:
    source = past_study(space=GRID, n=40)
    first = suggestions(MetaTPESampler([source], seed=0), 1, space=GRID)[0]
    study = new_study(MetaTPESampler([source], seed=0))
    study.enqueue_trial(first)
    evaluate(study, 6, space=GRID)
    assert len(set(configurations(study))) == 6
    assert origins(study) == ["warm_start"] * 5
    stored = configurations(source)
    assert all(c in stored for c in configurations(study))


def test_pruned_and_infeasible_observations_of_the_past_are_not_handed_out_first() -> None:
    points = spread(12)
    good = [frozen(p, [0.5, 0.5]) for p in points[:3]]
    infeasible = [frozen(p, [0.0, 0.0], constraint=1.0) for p in points[3:8]]
    pruned = [frozen(p, state=optuna.trial.TrialState.PRUNED) for p in points[8:]]
    source = new_study(optuna.samplers.RandomSampler(), trials=[*infeasible, *pruned, *good])
    sampler = MetaTPESampler([source], n_startup_trials=3)
    suggested = suggestions(sampler, 3, space=SQUARE)
    assert sorted(map(str, suggested)) == sorted(map(str, points[:3]))


@pytest.mark.parametrize("n_sources", [0, 2])
def test_without_warm_starts_the_first_trials_are_random(n_sources: int) -> None:
    sources = pasts(n_sources)
    study = new_study(MetaTPESampler(sources, warm_start=False, seed=0, epsilon=0.0))
    suggested = evaluate(study, 10)
    assert origins(study) == ["random"] * 5 + ["acquisition"] * 5
    stored = [t.params for source in sources for t in source.trials]
    assert not [params for params in suggested if params in stored]


def test_without_a_start_the_first_trial_is_chosen_by_the_past_alone() -> None:
    source = past_study(lambda p: [(p["x"] - 0.7) ** 2] * 2, n=60)
    study = new_study(MetaTPESampler([source], n_startup_trials=0, epsilon=0.0, seed=0))
    assert abs(evaluate(study, 1)[0]["x"] - 0.7) < 0.15
    assert origins(study) == ["independent"]


@pytest.mark.parametrize("eta", [1.5, 2.5, 5.0])
def test_after_its_warm_starts_the_past_is_silent_until_three_observations_are_good(
    eta: float,
) -> None:
    study = new_study(MetaTPESampler(pasts(2, directions=ONE), eta=eta, epsilon=0.0, seed=0), ONE)
    evaluate(study, 24, losses=lambda params: two_losses(params)[:1])
    records = transfer_history(study)
    assert all(r.weights["target"] == 1.0 for r in records[5:21])  # at most two of 20 are good
    assert all(r.weights["target"] < 1.0 for r in records[21:])


def test_without_warm_starts_the_past_speaks_from_the_first_choice_on() -> None:
    sampler = MetaTPESampler(pasts(2, directions=ONE), warm_start=False, epsilon=0.0, seed=0)
    study = new_study(sampler, ONE)
    evaluate(study, 8, losses=lambda params: two_losses(params)[:1])
    assert all(r.weights["target"] < 1.0 for r in transfer_history(study)[5:])


# A past that is upside down ----------------------------------------------------------------------


def negated(params: Params) -> list[float]:
    return [-loss for loss in two_losses(params)]


def upside_down(directions: tuple[str, ...] = TWO) -> list[Study]:
    return [
        past_study(negated, seed=i, name=f"past {i}", n=40, space=SQUARE, directions=directions)
        for i in range(3)
    ]


def warm_indices(study: Study) -> list[int]:
    plans = [read_plan(t) for t in study.trials]
    return [p.warm_index for p in plans if p is not None and p.warm_index is not None]


@pytest.mark.parametrize("directions", [ONE, TWO])
def test_a_past_that_is_upside_down_gives_its_worst_configurations_and_that_is_said_once(
    directions: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    sources = upside_down(directions)
    study = new_study(MetaTPESampler(sources, seed=0), directions)
    suggested = evaluate(study, 40, space=SQUARE)
    later = [r.number for r in transfer_history(study) if r.origin == "warm_start"][5:]
    assert len(later) == 5
    assert max(later) <= 25
    stored = [t for source in sources for t in source.trials]
    of_the_past = [next(t.values for t in stored if t.params == suggested[i]) for i in later]
    assert np.mean(of_the_past) > np.mean([t.values for t in stored])  # bad there
    values = np.array([t.values for t in study.trials])
    assert values[later].mean() < values[:5].mean()  # and good here
    assert caplog.text.count("wrong order") == 1
    assert len(set(warm_indices(study))) == 10


@pytest.mark.parametrize("seed", range(5))
def test_a_past_that_fits_is_never_turned_round(seed: int) -> None:
    sources = [past_study(seed=i, name=f"past {i}", n=40, space=SQUARE) for i in range(3)]
    study = new_study(MetaTPESampler(sources, seed=seed))
    evaluate(study, 30, space=SQUARE)
    assert len(warm_indices(study)) == 5


def test_a_past_whose_worst_is_bad_here_as_well_is_turned_round_once_and_nothing_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def to_the_corner(params: Params) -> list[float]:
        return [2.0 - params["x"] - params["y"]]

    def to_the_middle(params: Params) -> list[float]:
        return [abs(params["x"] - 0.5) + abs(params["y"] - 0.5)]

    source = past_study(to_the_corner, n=40, space=SQUARE, directions=ONE)
    study = new_study(MetaTPESampler([source], seed=0), ONE)
    evaluate(study, 30, space=SQUARE, losses=to_the_middle)
    assert len(warm_indices(study)) == 6
    assert "wrong order" not in caplog.text


@pytest.mark.parametrize("settings", [{"warm_start": False}, {"weights": "uniform"}])
def test_without_warm_starts_or_similarity_no_past_is_turned_round(
    settings: dict[str, Any],
) -> None:
    study = new_study(MetaTPESampler(upside_down(), seed=0, **settings))
    evaluate(study, 30, space=SQUARE)
    assert len(warm_indices(study)) == (5 if settings.get("warm_start", True) else 0)


def up_to_the_turn(sources: list[Study]) -> Study:
    """Return a study whose next trial is the first one of the past turned round."""
    study = new_study(MetaTPESampler(sources, seed=0))
    while len(warm_indices(study)) < 6:
        evaluate(study, 1, space=SQUARE)
    return new_study(MetaTPESampler(sources, seed=0), trials=study.trials[:-1])


def test_a_trial_enqueued_by_hand_keeps_what_was_enqueued_when_the_past_is_turned_round() -> None:
    study = up_to_the_turn(upside_down())
    study.enqueue_trial({"x": 0.123})
    assert study.ask(SQUARE).params["x"] == 0.123
    assert len(warm_indices(study)) == 5
    study.ask(SQUARE)
    assert len(warm_indices(study)) == 6  # it went to the next one


def test_workers_get_different_configurations_of_the_past_turned_round() -> None:
    study = up_to_the_turn(upside_down())
    asked = [study.ask(SQUARE).params for _ in range(4)]
    given = warm_indices(study)
    assert len(given) > 6
    assert len(set(given)) == len(given)
    assert len({str(params) for params in asked}) == 4


def test_of_two_workers_that_choose_the_same_at_once_one_chooses_again() -> None:
    study = up_to_the_turn(sources := upside_down())
    study.ask(SQUARE)
    taken = read_plan(study.trials[-1])
    assert taken is not None

    class Late(MetaTPESampler):
        def _plan(self, moment: Moment) -> Plan:
            return super()._plan(moment) if moment.attempt else taken

    study.sampler = Late(sources, seed=1)
    assert study.ask(SQUARE).params != taken.params
    assert len(set(warm_indices(study))) == len(warm_indices(study))


@pytest.mark.parametrize("n_before", [3, 12])  # a warm start, and by the acquisition
def test_what_another_worker_has_finished_meanwhile_is_not_repeated(n_before: int) -> None:
    study = new_study(MetaTPESampler(sources := [past_study(space=GRID, n=24)], seed=0))
    evaluate(study, n_before, space=GRID)
    planned: list[Plan] = []

    class Slow(MetaTPESampler):
        def _plan(self, moment: Moment) -> Plan:
            planned.append(super()._plan(moment))
            if len(planned) == 1:
                study.add_trial(frozen(planned[0].params, [0.5, 0.5], space=GRID))
            return planned[-1]

    study.sampler = Slow(sources, seed=0)
    assert study.ask(GRID).params == planned[1].params != planned[0].params
    assert len(planned) == 2


def test_once_everything_has_been_evaluated_a_repeat_is_chosen_once() -> None:
    study = new_study(MetaTPESampler(seed=0))
    evaluate(study, 12, space=SMALL)
    planned: list[Plan] = []

    class Counting(MetaTPESampler):
        def _plan(self, moment: Moment) -> Plan:
            planned.append(super()._plan(moment))
            return planned[-1]

    study.sampler = Counting(seed=0)
    asked = [study.ask(SMALL) for _ in range(14)]
    assert len(planned) == len(asked)


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_warm_start_is_no_repeat_of_trials_that_have_asked_for_one_parameter_so_far(
    has_failed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    study = new_study(MetaTPESampler([past_study(space=GRID, n=24)], seed=0))
    slow = study._storage.create_new_trial(study._study_id)  # number 0, which asks last
    others = [study.ask() for _ in range(20)]
    assert {trial.suggest_int("i", 0, 3) for trial in others} == {0, 1, 2, 3}
    if has_failed:
        study.tell(others[-1], state=TrialState.FAIL)
    optuna.Trial(study, slow).suggest_int("i", 0, 3)
    study.ask().suggest_int("i", 0, 3)
    assert len(set(warm_indices(study))) == len(warm_indices(study)) == 5
    assert warm_indices(study)[0] == 0  # its own, and none further down
    assert not caplog.records  # least of all that everything has been evaluated


SMALL = {name: GRID[name] for name in ("i", "c")}  # 12 configurations
ONE_CHOICE: dict[str, BaseDistribution] = {"net": CategoricalDistribution(("resnet",))}


@pytest.mark.parametrize("past", [None, SMALL, {**SMALL, "dropped": UNIT}])
@pytest.mark.parametrize("asked_for", [SMALL, {**SMALL, **ONE_CHOICE}])
@pytest.mark.parametrize("n_startup_trials", [0, 5])
def test_the_first_trials_of_many_workers_differ_in_a_finite_space(
    past: dict[str, BaseDistribution] | None,
    asked_for: dict[str, BaseDistribution],
    n_startup_trials: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sources = [] if past is None else [past_study(space=past, n=30)]
    sampler = MetaTPESampler(sources, seed=0, n_startup_trials=n_startup_trials)
    study = new_study(sampler)
    chosen = {str(study.ask(asked_for).params) for _ in range(10)}
    assert len(chosen) == 10
    assert not caplog.records


def test_in_a_space_that_was_given_a_warm_start_is_no_repeat_of_what_runs() -> None:
    done = [{"i": k % 2, "c": "p", "dropped": k / 10} for k in range(10)]  # two that are left here
    trials = [frozen(p, two_losses(p), space={**SMALL, "dropped": UNIT}) for p in done]
    source = new_study(optuna.samplers.RandomSampler(), trials=trials)
    study = new_study(MetaTPESampler([source], seed=0, search_space=SMALL))
    assert len({str(study.ask(SMALL).params) for _ in range(5)}) == 5
    assert origins(study) == ["warm_start"] * 2 + ["random"] * 3


def left_behind(trial: FrozenTrial) -> FrozenTrial:
    """Return a trial as a worker leaves it that died an hour ago."""
    trial.state, trial.values, trial.datetime_complete = TrialState.RUNNING, None, None
    trial.datetime_start = datetime.now() - timedelta(hours=1)
    return trial


@pytest.mark.parametrize("which", [2, 5])  # a warm start, and the first of the past turned round
def test_a_warm_start_that_a_dead_worker_was_given_is_taken_up_once(which: int) -> None:
    sources = upside_down()
    begun = up_to_the_turn(sources)
    evaluate(begun, 2, space=SQUARE)
    warm = [t.number for t in begun.trials if (p := read_plan(t)) and p.warm_index is not None]
    trials = begun.trials
    index = warm_indices(begun)[which]
    trials[warm[which]] = left_behind(trials[warm[which]])
    study = new_study(MetaTPESampler(sources, seed=0), trials=trials)
    evaluate(study, 4, space=SQUARE)
    assert warm_indices(study).count(index) == 2  # the dead worker's, and once more
    assert study.trials[len(trials)].params == trials[warm[which]].params


def test_a_dead_workers_warm_start_that_was_evaluated_since_brings_no_other_ones() -> None:
    source = past_study(space=GRID, n=40)
    begun = new_study(MetaTPESampler([source], seed=0))
    evaluate(begun, 6, space=GRID)
    again = frozen(begun.trials[2].params, [0.5, 0.5], space=GRID)
    trials = [left_behind(t) if t.number == 2 else t for t in begun.trials]
    study = new_study(MetaTPESampler([source], seed=0), trials=[*trials, again])
    evaluate(study, 8, space=GRID)
    assert "warm_start" not in origins(study)[6:]


# What the objective asks for decides -------------------------------------------------------------

KINDS: dict[str, BaseDistribution] = {
    "float": FloatDistribution(-1.0, 4.0),
    "narrow float": FloatDistribution(1.5, 2.5),
    "far float": FloatDistribution(100.0, 101.0),
    "log float": FloatDistribution(1e-3, 10.0, log=True),
    "stepped float": FloatDistribution(0.0, 3.0, step=0.25),
    "int": IntDistribution(-2, 5),
    "log int": IntDistribution(1, 1000, log=True),
    "stepped int": IntDistribution(0, 12, step=4),
    "large int": IntDistribution(0, 10**6),
    "one int": IntDistribution(2, 2),
    "numbers": CategoricalDistribution((1, 2, 4)),
    "other numbers": CategoricalDistribution((4, 2, 8, 16)),
    "words": CategoricalDistribution(("1", "2", "adam")),
    "mixed": CategoricalDistribution((None, True, 1.5, "adam", 2)),
    "one choice": CategoricalDistribution(("adam",)),
}


@pytest.mark.parametrize("asked_for", KINDS)
@pytest.mark.parametrize("in_past", KINDS)
def test_an_objective_may_ask_for_another_distribution_than_the_past_had(
    in_past: str, asked_for: str
) -> None:
    past = {"p": KINDS[in_past], "x": SQUARE["x"]}
    target = {"x": SQUARE["x"], "p": KINDS[asked_for]}
    sources = [past_study(space=past, n=8), past_study(space={"p": KINDS[in_past]}, n=4)]
    study = new_study(MetaTPESampler(sources, n_startup_trials=2, seed=0))
    suggested = evaluate(study, 5, space=target)
    assert all(in_space(params, target) for params in suggested)
    assert origins(study)[:2] == ["warm_start"] * 2


@pytest.mark.parametrize("asked_for", ["narrow float", "stepped float", "int", "log int"])
def test_a_past_value_is_used_where_it_has_a_place(asked_for: str) -> None:
    source = past_study(lambda p: [(p["p"] - 2.0) ** 2] * 2, space={"p": KINDS["float"]}, n=30)
    suggested = suggestions(MetaTPESampler([source]), 1, space={"p": KINDS[asked_for]})
    assert 1.5 <= suggested[0]["p"] <= 2.5


def test_sources_that_disagree_about_a_parameter_are_used_together() -> None:
    sources = [past_study(space={"p": KINDS[kind]}, n=6, name=kind) for kind in KINDS]
    study = new_study(MetaTPESampler(sources, n_startup_trials=0, seed=0))
    target = {"p": KINDS["int"]}
    assert all(in_space(p, target) for p in evaluate(study, 6, space=target))


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
def test_choices_that_cannot_be_hashed_may_differ_between_sources() -> None:
    spaces = [
        {"layers": CategoricalDistribution(c)} for c in ([[64], [64, 64]], [[64], [32]], [[7]])
    ]
    sources = [past_study(lambda p: [len(p["layers"]), 0.0], space=s, n=8) for s in spaces]
    sampler = MetaTPESampler(sources, n_startup_trials=0, seed=0)
    suggested = suggestions(sampler, 2, space=spaces[0], losses=lambda _: [0.0, 0.0])
    assert all(in_space(params, spaces[0]) for params in suggested)


@pytest.mark.parametrize("space", [SPACE, {"x": SQUARE["x"]}, {**SPACE, "never": GRID["i"]}])
def test_a_given_search_space_is_known_from_the_first_trial(
    space: dict[str, BaseDistribution],
) -> None:
    sampler = MetaTPESampler(search_space=space, n_startup_trials=0, epsilon=0.0, seed=0)
    study = new_study(sampler)
    suggested = evaluate(study, 6)
    assert origins(study) == ["acquisition"] * 6
    assert all(in_space(params, SPACE) for params in suggested)


def test_what_is_asked_for_wins_over_the_given_range() -> None:
    given = {"x": FloatDistribution(5.0, 6.0), "lr": SPACE["lr"]}
    suggested = suggestions(MetaTPESampler(search_space=given, seed=0), 10)
    assert all(in_space(params, SPACE) for params in suggested)


def test_a_given_search_space_changes_no_warm_start() -> None:
    given = MetaTPESampler([past_study()], search_space=SPACE, seed=0)
    assert suggestions(given, 5) == suggestions(MetaTPESampler([past_study()], seed=0), 5)


# Weights -----------------------------------------------------------------------------------------


def corner(x: float, y: float) -> Callable[[Params], list[float]]:
    """Return losses whose front lies close to one point of SQUARE."""

    def losses(params: Params) -> list[float]:
        return [
            abs(params["x"] - x - 0.02) + abs(params["y"] - y),
            abs(params["x"] - x + 0.02) + abs(params["y"] - y),
        ]

    return losses


@pytest.mark.parametrize("directions", [ONE, TWO])
def test_in_the_end_a_similar_source_has_more_weight_than_a_reversed_one(
    directions: tuple[str, ...],
) -> None:
    sources = [
        past_study(corner(x, y), space=SQUARE, n=80, name=name, directions=directions)
        for name, x, y in [("reverse", 0.8, 0.9), ("similar", 0.2, 0.3)]
    ]
    study = new_study(MetaTPESampler(sources, seed=0, epsilon=0.0), directions)
    evaluate(study, 60, space=SQUARE, losses=corner(0.2, 0.3))
    weights = transfer_history(study)[-1].weights
    assert weights["similar"] > 3 * weights["reverse"]
    late = [t.params for t in study.trials[40:]]
    assert sum(abs(p["x"] - 0.2) < 0.2 and abs(p["y"] - 0.3) < 0.2 for p in late) > 15


def test_uniform_weights_are_the_same_for_every_task_whatever_it_is_like() -> None:
    sources = [past_study(corner(v, v), space=SQUARE, name=str(v)) for v in (0.1, 0.5, 0.9)]
    study = new_study(MetaTPESampler(sources, weights="uniform", epsilon=0.0, seed=0))
    evaluate(study, 30, space=SQUARE, losses=corner(0.1, 0.1))
    for record in transfer_history(study)[5:]:
        assert record.weights == {"target": 0.25, "0.1": 0.25, "0.5": 0.25, "0.9": 0.25}
        assert record.kept == ()


def turns_of(past: Study, n: int) -> list[str]:
    """Return whose turn the acquisitions of a study were whose target is the corner (0, 0)."""
    study = new_study(MetaTPESampler([past], epsilon=0.0, seed=0))
    evaluate(study, n, space=SQUARE, losses=corner(0.0, 0.0))
    records = [r for r in transfer_history(study) if r.origin == "acquisition"]
    assert all((r.turn is None) == (r.weights["target"] >= 1.0) for r in records)
    return [r.turn for r in records if r.turn is not None]


def test_the_past_gets_most_turns_where_it_fits_and_the_study_some() -> None:
    turns = turns_of(past_study(corner(0.0, 0.0), space=SQUARE, n=50), 60)
    assert 0.5 < turns.count("past") / len(turns) < 1.0


def test_naive_weights_take_no_turns() -> None:
    study = new_study(MetaTPESampler([past_study(space=SQUARE)], weights="uniform", seed=0))
    evaluate(study, 15, space=SQUARE, losses=corner(0.0, 0.0))
    assert {r.turn for r in transfer_history(study)} == {None}


@pytest.mark.parametrize("better", ["past", "own"])
def test_turns_go_to_whom_they_have_paid(better: Turn) -> None:
    def told(turn: Turn) -> FrozenTrial:
        x = 0.1 if turn == better else 0.9
        trial = frozen({"x": x, "y": x}, [x, x], space=SQUARE)
        trial.system_attrs.update(system_attributes(Plan("acquisition", turn=turn)))
        return trial

    past = past_study(corner(0.1, 0.1), space=SQUARE, n=50)
    sampler = MetaTPESampler([past], epsilon=0.0, warm_start=False, n_startup_trials=0, seed=0)
    study = new_study(sampler, trials=[told(turn) for turn in ("past", "own") * 20])
    for _ in range(20):
        study.ask(SQUARE)
    assert [r.turn for r in transfer_history(study)] == [better] * 20


def history(losses: Callable[[Params], list[float]], n: int = 40) -> list[FrozenTrial]:
    return [frozen(p, losses(p), space={**SQUARE, "z": SQUARE["x"]}) for p in spread(n)]


def test_a_source_of_weight_zero_changes_no_suggestion() -> None:
    trials = history(corner(0.1, 0.1), n=60)
    rng = np.random.default_rng(0)
    X = np.vstack([0.99 + 0.001 * rng.random((12, 2)), 0.5 * rng.random((48, 2))])
    far = Task("past", Space(SQUARE), X, np.repeat([[0.0, 0.0], [1.0, 1.0]], [12, 48], axis=0))
    settings: dict[str, Any] = {"warm_start": False, "n_startup_trials": 0, "epsilon": 0.0}
    study = new_study(MetaTPESampler([far], **settings), trials=trials)
    study.ask(SQUARE)
    assert transfer_history(study)[0].weights == {"target": 1.0, "past": pytest.approx(0.0)}
    given: dict[str, Any] = {"directions": TWO, "space": SQUARE}
    assert next_suggestions(trials, sources=[far], **given) == next_suggestions(trials, **given)


@pytest.mark.parametrize("where", [{"other": SQUARE["x"]}, {"x": FloatDistribution(7.0, 8.0)}])
def test_a_source_without_a_value_in_the_space_changes_no_suggestion(
    where: dict[str, BaseDistribution],
) -> None:
    source = past_study(space=where)
    trials = history(corner(0.2, 0.3))
    assert next_suggestions(trials, directions=TWO, sources=[source]) == next_suggestions(
        trials, directions=TWO
    )


def test_the_order_of_the_sources_changes_no_weight() -> None:
    sources = [past_study(corner(v, v), space=SQUARE, name=str(v), n=40) for v in (0.1, 0.3, 0.9)]
    weights = []
    for ordered in (sources, sources[::-1]):
        study = new_study(
            MetaTPESampler(ordered, n_startup_trials=0, epsilon=0.0, seed=0),
            trials=history(corner(0.1, 0.1)),
        )
        study.ask(SQUARE)
        weights.append(transfer_history(study)[0].weights)
    assert weights[0] == pytest.approx(weights[1])


def test_studies_and_tasks_are_the_same_sources() -> None:
    sources = pasts(2)
    as_studies = suggestions(MetaTPESampler(sources, seed=0), 20)
    assert as_studies == suggestions(MetaTPESampler(map(Task.from_study, sources), seed=0), 20)  # type: ignore[arg-type]
    assert as_studies == suggestions(
        MetaTPESampler([Task.from_study(sources[0]), sources[1]], seed=0), 20
    )


def test_a_task_of_literals_is_a_source() -> None:
    X = np.array([[0.1, 0.2], [0.5, 0.5], [0.9, np.nan]])
    task = Task("literal", Space(SQUARE), X, np.array([[1.0, 0.0], [0.0, 1.0], [2.0, np.inf]]))
    suggested = suggestions(MetaTPESampler([task], n_startup_trials=2), 2, space=SQUARE)
    assert sorted(p["x"] for p in suggested) == pytest.approx([0.1, 0.5])


def test_later_trials_of_a_source_study_are_not_read() -> None:
    source = past_study()
    sampler = MetaTPESampler([source], seed=0)
    evaluate(source, 10)
    assert suggestions(sampler) == suggestions(MetaTPESampler([past_study()], seed=0))


# Spaces that overlap in part, or not at all ------------------------------------------------------


def test_a_partial_overlap_is_used_and_needs_no_word(caplog: pytest.LogCaptureFixture) -> None:
    past = {"x": SPACE["x"], "kind": SPACE["kind"], "gone": IntDistribution(0, 5)}
    source = past_study(lambda p: [abs(p["x"] - 0.7)] * 2, space=past, n=60)
    study = new_study(MetaTPESampler([source], seed=0, epsilon=0.0))
    suggested = evaluate(study, 10, losses=lambda p: [abs(p["x"] - 0.7)] * 2)
    assert all(set(p) == set(SPACE) and in_space(p, SPACE) for p in suggested)
    stored = [(t.params["x"], t.params["kind"]) for t in source.trials]
    assert all((p["x"], p["kind"]) in stored for p in suggested[:5])
    assert caplog.text == ""


def test_a_source_with_nothing_in_common_is_skipped_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = past_study(space={"other": SQUARE["x"]}, name="stranger")
    study = new_study(MetaTPESampler([source], seed=0, epsilon=0.0))
    suggested = evaluate(study, 12)
    assert all(in_space(params, SPACE) for params in suggested)
    assert transfer_history(study)[-1].weights == {"target": 1.0}
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "'stranger'" in said[0]
    assert "skipped" in said[0]


def test_a_source_that_is_skipped_takes_no_warm_start_from_the_others() -> None:
    sources = [past_study(), past_study(space={"other": SQUARE["x"]}, name="stranger")]
    suggested = suggestions(MetaTPESampler(sources, search_space=SPACE, seed=0), 5)
    stored = [t.params for t in sources[0].trials]
    assert all(params in stored for params in suggested)


@pytest.mark.parametrize("seed", range(3))
def test_warm_starts_are_given_out_once_each_while_the_space_grows(seed: int) -> None:
    sources = [
        past_study(space={name: SQUARE[name]}, n=12, seed=seed, name=name) for name in SQUARE
    ]
    study = new_study(MetaTPESampler(sources, n_startup_trials=8, seed=0))
    suggested = evaluate(study, 3, space={"x": SQUARE["x"]}) + evaluate(study, 5, space=SQUARE)
    for source, name in zip(sources, SQUARE, strict=True):
        stored = [t.params[name] for t in source.trials]
        given = [p[name] for p in suggested if p.get(name) in stored]
        assert len(set(given)) == len(given)


def test_a_source_that_lies_outside_of_every_range_is_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = past_study(space={"x": FloatDistribution(7.0, 8.0)}, name="far away")
    study = new_study(MetaTPESampler([source], seed=0, epsilon=0.0))
    suggested = evaluate(study, 12)
    assert all(in_space(params, SPACE) for params in suggested)
    assert transfer_history(study)[-1].weights == {"target": 1.0}
    assert "'far away' is skipped" in caplog.text


def test_of_a_source_outside_of_every_range_it_is_not_said_that_it_shares_no_parameter(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = past_study(space={"x": FloatDistribution(7.0, 8.0)})
    suggestions(MetaTPESampler([source], seed=0), 12)
    assert "no parameter in common" not in caplog.text


def test_observations_that_lost_most_of_their_values_are_counted_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    past = {"x": FloatDistribution(0.0, 2.0)}
    source = past_study(space=past, n=30)
    n_outside = sum(t.params["x"] > 1.0 for t in source.trials)
    suggestions(MetaTPESampler([source], seed=0), 12)
    assert f"{n_outside} of 30" in caplog.text
    assert len(caplog.records) == 1


def test_values_of_the_past_that_lie_outside_of_a_range_are_counted_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Each observation keeps y, so that none is dropped.
    source = past_study(space={"x": FloatDistribution(0.0, 2.0), "y": SQUARE["y"]}, n=30)
    n_outside = sum(t.params["x"] > 1.0 for t in source.trials)
    suggestions(MetaTPESampler([source], seed=0), 12, space=SQUARE)
    assert "'x'" in caplog.text
    assert f"{n_outside} of 30" in caplog.text


# No wasted evaluation ----------------------------------------------------------------------------


def branches(trial: optuna.Trial) -> list[float]:
    """Evaluate one of 4 * 3 + 2 * 3 * 2 = 24 configurations."""
    if trial.suggest_categorical("kind", ["tree", "net"]) == "tree":
        trial.suggest_int("depth", 1, 4)
        trial.suggest_categorical("split", ["a", "b", "c"])
    else:
        trial.suggest_int("layers", 1, 2)
        trial.suggest_float("dropout", 0.0, 0.5, step=0.25)
        trial.suggest_categorical("norm", [True, False])
    return two_losses(trial.params)


def flat(trial: optuna.Trial) -> list[float]:
    trial.suggest_int("i", 0, 3)
    trial.suggest_categorical("c", ("p", "q", "r"))
    trial.suggest_float("f", 0.0, 0.5, step=0.5)
    return two_losses(trial.params)


@pytest.mark.parametrize("objective", [flat, branches])
@pytest.mark.parametrize("n_sources", [0, 2])
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_a_finite_space_is_explored_without_a_repeat_and_then_repeats_are_said_once(
    objective: Callable[[optuna.Trial], list[float]],
    n_sources: int,
    epsilon: float,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sources = []
    for i in range(n_sources):
        source = new_study(optuna.samplers.RandomSampler(seed=i))
        source.optimize(objective, n_trials=15)
        sources.append(source)
    study = new_study(MetaTPESampler(sources, epsilon=epsilon, seed=0))
    study.optimize(objective, n_trials=24)
    assert len(set(configurations(study))) == 24
    assert "every configuration" not in caplog.text
    study.optimize(objective, n_trials=8)
    assert len(set(configurations(study))) == 24
    assert caplog.text.count("every configuration") == 1


def test_enqueued_and_added_configurations_are_not_suggested_again() -> None:
    study = new_study(MetaTPESampler([past_study(space=GRID)], seed=0))
    study.add_trial(frozen({"i": 1, "c": "q", "f": 0.5}, [0.0, 0.0], space=GRID))
    study.enqueue_trial({"i": 2, "c": "p", "f": 0.0})
    evaluate(study, 23, space=GRID)
    assert len(set(configurations(study))) == 24


def test_one_continuous_parameter_makes_a_space_infinite(
    caplog: pytest.LogCaptureFixture,
) -> None:
    space = {"n": IntDistribution(0, 1), "x": SQUARE["x"]}
    suggested = suggestions(MetaTPESampler(seed=0), 30, space=space)
    assert {p["n"] for p in suggested} == {0, 1}
    assert caplog.text == ""


# What is written down ----------------------------------------------------------------------------


def lengths(study: Study) -> list[int]:
    """Return the length of every attribute as a relational storage keeps it."""
    return [
        len(json.dumps(value))
        for trial in study.trials
        for value in [*trial.user_attrs.values(), *trial.system_attrs.values()]
    ]


@pytest.mark.parametrize(("n_sources", "n_parameters"), [(300, 4), (2, 200)])
def test_records_stay_short_with_many_sources_and_with_many_parameters(
    n_sources: int, n_parameters: int
) -> None:
    names = [f"a parameter with a long name, number {i}" for i in range(n_parameters)]
    space: dict[str, BaseDistribution] = {name: FloatDistribution(0.0, 1.0) for name in names}
    rng = np.random.default_rng(0)
    sources = [
        Task(
            f"täsk {'long ' * 20}{i}",
            Space(space),
            rng.random((4, n_parameters)),
            rng.random((4, 2)),
        )
        for i in range(n_sources)
    ]
    sampler = MetaTPESampler(
        sources,
        eta=1.01,  # keeps every parameter
        gamma=0.9,  # three of four are good, and the past is not silent
        epsilon=0.0,
        n_startup_trials=1,
        n_ei_candidates=1,
        n_mc_samples=10,
        seed=0,
    )
    study = new_study(sampler)
    evaluate(study, 5, space=space, losses=lambda p: [sum(p.values()), p[names[0]]])
    assert max(lengths(study)) <= MAX_CHARACTERS
    record = transfer_history(study)[-1]
    assert "target" in record.weights
    assert ("rest" in record.weights) == (n_sources == 300)
    assert sum(record.weights.values()) == pytest.approx(1.0, abs=1e-4)
    listed = [weight for name, weight in record.weights.items() if name != "rest"]
    assert listed == sorted(listed, reverse=True)
    assert record.kept
    assert read_plan(study.trials[-1]).params == study.trials[-1].params  # type: ignore[union-attr]
    chunks = [key for key in study.trials[-1].system_attrs if key.startswith("metatpe:plan")]
    assert len(chunks) > 1 or n_parameters < 200


def test_every_record_is_complete() -> None:
    study = new_study(MetaTPESampler(pasts(3), seed=0, gamma=0.3, epsilon=0.2))
    evaluate(study, 40)
    records = transfer_history(study)
    assert [record.number for record in records] == list(range(40))
    assert {record.origin for record in records} == {"warm_start", "epsilon", "acquisition"}
    for record in records:
        if record.origin == "acquisition":
            assert set(record.weights) == {"target", "past 0", "past 1", "past 2"}
            assert sum(record.weights.values()) == pytest.approx(1.0, abs=1e-5)
            assert list(record.weights.values()) == sorted(record.weights.values(), reverse=True)
            assert set(record.kept) <= set(SPACE)
        else:
            assert record.weights == {}
            assert record.kept == ()
    assert any(record.kept for record in records)


def test_the_names_of_the_weights_are_unique() -> None:
    names = ["same", "same", "target", "rest"]
    sources = [past_study(seed=i, name=name) for i, name in enumerate(names)]
    study = new_study(MetaTPESampler(sources, seed=0, epsilon=0.0))
    evaluate(study, 6)
    weights = transfer_history(study)[-1].weights
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-5)
    assert set(weights) == {"target", "same", "same (2)", "target (2)", "rest (2)"}


def test_a_study_in_a_database_says_the_same_in_a_new_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    for source in pasts(2, n=6):
        optuna.copy_study(
            from_study_name=source.study_name, from_storage=source._storage, to_storage=url
        )
    code = (
        "import json, dataclasses, optuna, metatpe, studies;"
        f"sources = metatpe.load_tasks({url!r}, 'past *');"
        "sampler = metatpe.MetaTPESampler(sources, n_startup_trials=2, epsilon=0.0, seed=0);"
        f"study = studies.new_study(sampler, storage={url!r}, name='new');"
        "studies.evaluate(study, 4);"
        "print(json.dumps([dataclasses.asdict(r) for r in metatpe.transfer_history(study)]))"
    )
    told = answer_of(start_python(code))
    study = optuna.load_study(study_name="new", storage=url)
    records = transfer_history(study)
    assert [(r.number, r.origin, r.weights) for r in records] == [
        (r["number"], r["origin"], r["weights"]) for r in told
    ]
    in_memory = MetaTPESampler(pasts(2, n=6), n_startup_trials=2, epsilon=0.0, seed=0)
    assert [t.params for t in study.trials] == suggestions(in_memory, 4)
