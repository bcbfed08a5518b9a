"""No wasted evaluation: nothing is suggested again while there is something new."""

from __future__ import annotations

from collections.abc import Callable

import optuna
import pytest
from optuna.distributions import IntDistribution
from optuna.study import Study
from optuna.trial import TrialState
from studies import (
    GRID,
    ONE,
    SPACE,
    SQUARE,
    configurations,
    evaluate,
    frozen,
    new_study,
    past_study,
    random_sampler,
    suggestions,
    two_losses,
)

from metatpe.study.moment import Moment
from metatpe.study.record import Plan, read_plan, start_of
from samplers.five import WARM_START, Make, modelling, pasts, with_and_without

Objective = Callable[[optuna.Trial], list[float]]
SMALL = {name: GRID[name] for name in ("i", "c")}  # 12 configurations
ALL_EVALUATED = "every configuration of the space has been evaluated"


def flat(trial: optuna.Trial) -> list[float]:
    """Evaluate one of 4 * 3 = 12 configurations."""
    trial.suggest_int("i", 0, 3)
    trial.suggest_categorical("c", ("p", "q", "r"))
    return two_losses(trial.params)


def branches(trial: optuna.Trial) -> list[float]:
    """Evaluate one of 2 * 3 + 3 * 2 = 12 configurations."""
    if trial.suggest_categorical("kind", ["tree", "net"]) == "tree":
        trial.suggest_int("depth", 1, 2)
        trial.suggest_categorical("split", ["a", "b", "c"])
    else:
        trial.suggest_float("dropout", 0.0, 0.5, step=0.25)
        trial.suggest_categorical("norm", [True, False])
    return two_losses(trial.params)


def pasts_of(objective: Objective, n_sources: int) -> list[Study]:
    sources = [new_study(random_sampler(i), name=f"past {i}") for i in range(n_sources)]
    for source in sources:
        source.optimize(objective, n_trials=10)
    return sources


@pytest.mark.parametrize("objective", [flat, branches])
@with_and_without
def test_a_finite_space_is_explored_without_a_repeat_and_then_repeats_are_logged_once(
    make: Make, objective: Objective, n_sources: int, caplog: pytest.LogCaptureFixture
) -> None:
    study = new_study(make(pasts_of(objective, n_sources)))
    study.optimize(objective, n_trials=12)
    assert len(set(configurations(study))) == 12
    assert ALL_EVALUATED not in caplog.text
    study.optimize(objective, n_trials=4)
    assert len(set(configurations(study))) == 12
    assert caplog.text.count(ALL_EVALUATED) == 1


def test_enqueued_and_added_configurations_are_not_suggested_again(make: Make) -> None:
    study = new_study(make(pasts(1, space=GRID)))
    study.add_trial(frozen({"i": 1, "c": "q", "f": 0.5}, [0.0, 0.0], space=GRID))
    study.enqueue_trial({"i": 2, "c": "p", "f": 0.0})
    evaluate(study, 23, space=GRID)
    assert len(set(configurations(study))) == 24


def test_once_everything_has_been_evaluated_a_repeat_is_chosen_once(make: Make) -> None:
    study = new_study(make())
    evaluate(study, 12, space=SMALL)
    planned: list[Plan] = []

    class Counting(make.kind):  # type: ignore[name-defined, misc]
        def _plan(self, moment: Moment) -> Plan:
            planned.append(super()._plan(moment))
            return planned[-1]

    study.sampler = Counting(seed=0)
    asked = [study.ask(SMALL) for _ in range(5)]
    assert len(planned) == len(asked)


# What is not a repeat ----------------------------------------------------------------------------


def test_one_continuous_parameter_makes_a_space_infinite(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    space = {"n": IntDistribution(0, 1), "x": SQUARE["x"]}
    suggested = suggestions(make(), 12, space=space)
    assert {p["n"] for p in suggested} == {0, 1}
    assert caplog.text == ""


@modelling
def test_the_best_corner_of_a_continuous_space_is_evaluated_once(make: Make) -> None:
    study = new_study(make(), ONE)
    evaluate(study, 12, space=SQUARE, losses=lambda p: [p["x"] + p["y"]])
    assert len(set(configurations(study))) == 12


def test_a_finite_space_with_a_late_parameter_is_explored_without_repeats(make: Make) -> None:
    study = new_study(make())
    evaluate(study, 4, space={"i": GRID["i"]})
    suggested = evaluate(study, 12, space=SMALL)
    assert len({tuple(p.items()) for p in suggested}) == 12


def test_a_trial_from_before_a_parameter_was_added_hides_no_configuration_for_good(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    before = frozen({"i": 0}, [1.0, 1.0], space=SMALL)
    others = [{"i": i, "c": c} for i in (1, 2, 3) for c in "pqr"]
    trials = [before, *(frozen(p, two_losses(p), space=SMALL) for p in others)]
    suggested = evaluate(new_study(make(), trials=trials), 3, space=SMALL)
    assert sorted(tuple(p.values()) for p in suggested) == [(0, "p"), (0, "q"), (0, "r")]
    assert ALL_EVALUATED not in caplog.text


def test_a_trial_without_parameters_does_not_count_as_every_configuration(make: Make) -> None:
    study = new_study(make())
    study.add_trial(frozen({}, [1.0, 1.0]))
    suggested = evaluate(study, 12, space=SMALL)
    assert len({tuple(p.items()) for p in suggested}) == 12


@pytest.mark.parametrize("seed", range(2))
def test_a_trial_that_ends_before_it_asked_for_everything_hides_no_configuration(
    make: Make, seed: int
) -> None:
    def objective(trial: optuna.Trial) -> list[float]:
        if trial.suggest_categorical("kind", ["tree", "net"]) == "tree":
            names = ["depth", "leaves"]
        else:
            names = ["layers", "units"]
        if trial.number == 8:
            raise optuna.TrialPruned
        for name in names:
            trial.suggest_int(name, 1, 3)
        return two_losses(trial.params)

    study = new_study(make(seed=seed))
    study.optimize(objective, n_trials=19)
    assert len(set(configurations(study))) == 19


def test_a_late_parameter_is_no_reason_to_log_that_all_was_evaluated(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    study = new_study(make(), ONE)
    evaluate(study, 6, space=SQUARE)
    evaluate(study, 2, space={**SQUARE, "n": IntDistribution(0, 9)})
    assert ALL_EVALUATED not in caplog.text


def test_a_moving_range_beside_a_continuous_parameter_is_never_used_up(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    study = new_study(make(), ONE)
    for i in range(12):
        evaluate(study, 1, space={"x": SQUARE["x"], "n": IntDistribution(0, 2 + i % 2)})
    assert ALL_EVALUATED not in caplog.text


# Workers that choose at the same time ------------------------------------------------------------


@pytest.mark.parametrize("n_before", [0, 2, 9])  # before a space is known, a warm start, later
@pytest.mark.parametrize("values", [[0.5, 0.5], None], ids=["finished", "chosen"])
def test_what_another_worker_has_taken_meanwhile_is_not_repeated(
    make: Make, n_before: int, values: list[float] | None
) -> None:
    sources = [past_study(space=GRID, n=24)]
    study = new_study(make(sources))
    evaluate(study, n_before, space=GRID)
    planned: list[Plan] = []
    state = TrialState.RUNNING if values is None else TrialState.COMPLETE

    class Slow(make.kind):  # type: ignore[name-defined, misc]
        def _plan(self, moment: Moment) -> Plan:
            planned.append(super()._plan(moment))
            if len(planned) == 1:
                study.add_trial(frozen(planned[0].params, values, space=GRID, state=state))
            return planned[-1]

    study.sampler = Slow(sources, seed=0)
    assert study.ask(GRID).params == planned[1].params != planned[0].params
    assert len(planned) == 2


def test_after_five_collisions_a_worker_keeps_what_it_has(make: Make) -> None:
    study = new_study(make(pasts(1, space=GRID)))
    evaluate(study, 9, space=GRID)
    planned: list[Plan] = []

    class Unlucky(make.kind):  # type: ignore[name-defined, misc]
        def _plan(self, moment: Moment) -> Plan:
            planned.append(super()._plan(moment))
            assert moment.attempt == len(planned) - 1
            study.add_trial(frozen(planned[-1].params, [0.5, 0.5], space=GRID))
            return planned[-1]

    study.sampler = Unlucky(pasts(1, space=GRID), seed=0)
    assert study.ask(GRID).params == planned[-1].params
    assert len({str(plan.params) for plan in planned}) == len(planned) == 5


def test_of_two_workers_that_choose_the_same_warm_start_one_chooses_again(make: Make) -> None:
    sources = [past_study()]
    study = new_study(make(sources))
    evaluate(study, 2)
    study.ask(SPACE)
    taken = read_plan(study.trials[-1])
    assert taken is not None

    class Late(make.kind):  # type: ignore[name-defined, misc]
        def _plan(self, moment: Moment) -> Plan:
            return super()._plan(moment) if moment.attempt else taken

    settings = {"fraction": 0.25} if make is WARM_START else {"n_startup_trials": 5}
    study.sampler = Late(sources, **settings)
    assert study.ask(SPACE).params != taken.params
    assert len({start_of(t) for t in study.trials} - {-1}) == 4
