"""The first trials: the best of the past studies, each once and exactly as stored."""

from __future__ import annotations

from datetime import datetime, timedelta

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from studies import (
    GRID,
    ONE,
    SPACE,
    SQUARE,
    TWO,
    Params,
    asked,
    configurations,
    evaluate,
    frozen,
    new_study,
    past_study,
    random_sampler,
    spread,
    suggestions,
    two_losses,
)

from metatpe import Space, portfolio, transfer_history
from metatpe.study.record import Plan, start_of, system_attributes
from samplers.five import LEARNING, Make, learning, pasts

THREE = ("minimize", "minimize", "minimize")
SMALL = {name: GRID[name] for name in ("i", "c")}  # 12 configurations
UNIT = FloatDistribution(0.0, 1.0)
ONE_CHOICE: dict[str, BaseDistribution] = {"net": CategoricalDistribution(("resnet",))}


def origins(study: Study) -> list[str]:
    return [record.origin for record in transfer_history(study)]


def starts(study: Study) -> list[int]:
    """Return which of the first configurations the trials were given, in order of the trials."""
    return [start for t in study.trials if (start := start_of(t)) >= 0]


def in_any_order(configurations: list[Params]) -> list[str]:
    return sorted(map(str, configurations))


# Which configurations ----------------------------------------------------------------------------


@pytest.mark.parametrize("directions", [ONE, TWO, THREE])
@pytest.mark.parametrize("n_sources", [1, 2])
def test_the_first_trials_of_a_fresh_study_are_configurations_of_the_past_to_the_last_digit(
    make: Make, directions: tuple[str, ...], n_sources: int
) -> None:
    def losses(params: Params) -> list[float]:
        return [*two_losses(params), float(len(str(params)))]

    sources = pasts(n_sources, losses=losses, directions=directions)
    study = new_study(make.drawing(sources, n_startup_trials=4), directions)
    suggested = evaluate(study, 6, losses=losses)
    stored = [t.params for source in sources for t in source.trials]
    assert all(params in stored for params in suggested[:4])
    assert origins(study)[:4] == ["warm_start"] * 4
    assert "warm_start" not in origins(study)[4:]


def test_they_are_the_best_of_each_source_once_each(make: Make) -> None:
    sources = pasts(3, directions=ONE)
    best = [t.params for s in sources for t in sorted(s.trials, key=lambda t: t.values)[:2]]
    suggested = suggestions(make.drawing(sources, n_startup_trials=6), 6, directions=ONE)
    assert in_any_order(suggested) == in_any_order(best)


def test_of_several_objectives_the_first_front_is_given_out_first(make: Make) -> None:
    source = past_study()
    front = [t.params for t in source.best_trials]
    suggested = suggestions(make.drawing([source], n_startup_trials=len(front)), len(front))
    assert in_any_order(suggested) == in_any_order(front)


def test_pruned_and_infeasible_trials_of_the_past_are_not_handed_out_first(make: Make) -> None:
    points = spread(12)
    good = [frozen(p, [0.5, 0.5]) for p in points[:3]]
    infeasible = [frozen(p, [0.0, 0.0], constraint=1.0) for p in points[3:8]]
    pruned = [frozen(p, state=TrialState.PRUNED) for p in points[8:]]
    source = new_study(random_sampler(0), trials=[*infeasible, *pruned, *good])
    suggested = suggestions(make([source], n_startup_trials=3), 3, space=SQUARE)
    assert in_any_order(suggested) == in_any_order(points[:3])


def test_a_source_given_twice_gives_out_no_configuration_twice(make: Make) -> None:
    suggested = suggestions(make([past_study(), past_study()], n_startup_trials=4), 4)
    assert len({str(params) for params in suggested}) == 4


def test_samplers_with_the_same_sources_start_alike() -> None:
    sources = pasts(2)
    first = [suggestions(make(sources), 5) for make in LEARNING]
    assert first == [first[0]] * len(LEARNING)


def test_a_given_search_space_changes_no_warm_start(make: Make) -> None:
    given, learned = (
        suggestions(make([past_study()], n_startup_trials=3, search_space=space), 3)
        for space in (SPACE, None)
    )
    assert given == learned


@learning
def test_a_small_source_leaves_the_rest_of_the_start_to_chance(make: Make) -> None:
    study = new_study(make.drawing([past_study(n=3)]))
    evaluate(study, 5)
    told = [(record.origin, record.reason) for record in transfer_history(study)]
    assert told == [("warm_start", "best")] * 3 + [("random", "no_start_left")] * 2


@learning
def test_a_warm_start_that_was_evaluated_already_is_replaced_by_the_next_best(make: Make) -> None:
    source = past_study(space=GRID, n=40)
    first = suggestions(make([source]), 1, space=GRID)[0]
    study = new_study(make([source]))
    study.enqueue_trial(first)
    evaluate(study, 6, space=GRID)
    assert len(set(configurations(study))) == 6
    assert origins(study) == ["warm_start"] * 5
    stored = configurations(source)
    assert all(c in stored for c in configurations(study))


@learning
@pytest.mark.parametrize("n_sources", [0, 2])
def test_a_random_start_is_random_whatever_the_past(make: Make, n_sources: int) -> None:
    sources = pasts(n_sources)
    study = new_study(make(sources, n_startup_trials=3, start="random"))
    suggested = evaluate(study, 4)
    told = [(record.origin, record.reason) for record in transfer_history(study)]
    assert told[:3] == [("random", "startup")] * 3
    assert told[3][0] != "random"
    stored = [t.params for source in sources for t in source.trials]
    assert not [params for params in suggested[:3] if params in stored]


@learning
def test_without_a_start_the_first_trial_is_chosen_by_the_past_alone(make: Make) -> None:
    source = past_study(lambda p: [(p["x"] - 0.7) ** 2] * 2, n=60)
    study = new_study(make.at_once([source]))
    assert abs(evaluate(study, 1)[0]["x"] - 0.7) < 0.15
    (record,) = transfer_history(study)
    assert (record.origin, record.reason) == ("independent", "unknown_space")


def test_a_source_that_is_skipped_takes_no_warm_start_from_the_others(make: Make) -> None:
    sources = [past_study(), past_study(space={"other": UNIT}, name="stranger")]
    suggested = suggestions(make.drawing(sources, search_space=SPACE, n_startup_trials=4), 2)
    stored = [t.params for t in sources[0].trials]
    assert all(params in stored for params in suggested)


@pytest.mark.parametrize("seed", range(3))
def test_warm_starts_are_given_out_once_each_while_the_space_grows(make: Make, seed: int) -> None:
    sources = [past_study(space={name: UNIT}, n=12, seed=seed, name=name) for name in SQUARE]
    study = new_study(make.drawing(sources, n_startup_trials=8))
    suggested = evaluate(study, 3, space={"x": UNIT}) + evaluate(study, 5, space=SQUARE)
    for source, name in zip(sources, SQUARE, strict=True):
        stored = [t.params[name] for t in source.trials]
        given = [p[name] for p in suggested if p.get(name) in stored]
        assert given
        assert len(set(given)) == len(given)


# The portfolio -----------------------------------------------------------------------------------


@learning
def test_the_first_trials_are_the_portfolio_of_the_past(make: Make) -> None:
    sources = [
        past_study(lambda p, c=c: [abs(p["x"] - c), p["y"]], space=SQUARE, name=f"past {c}")
        for c in (0.1, 0.5, 0.9)
    ]
    study = new_study(make(sources, n_startup_trials=3))
    members = portfolio(sources, k=3)
    assert evaluate(study, 3, space=SQUARE) == [dict(member.params) for member in members]
    records = transfer_history(study)
    assert [(r.origin, r.reason) for r in records] == [("warm_start", "portfolio")] * 3
    # The first serves all of them; what follows serves those that it adds most to.
    names = tuple(task.study_name for task in sources)
    assert [r.sources for r in records] == [names, *(m.serves for m in members[1:])]


@learning
def test_behind_a_short_portfolio_stand_the_best_of_the_past(make: Make) -> None:
    sources = pasts(2, losses=lambda p: [p["x"]], directions=ONE)  # agree, so one will do
    n = len(portfolio(sources))
    study = new_study(make(sources), ONE)
    suggested = evaluate(study, 5, losses=lambda p: [p["x"]])
    reasons = [record.reason for record in transfer_history(study)]
    assert n < 5
    assert reasons == ["portfolio"] * n + ["best"] * (5 - n)
    assert len({str(params) for params in suggested}) == 5


@learning
def test_a_portfolio_that_was_enqueued_by_hand_is_not_evaluated_twice(make: Make) -> None:
    study = new_study(make(sources := pasts(3)))
    for member in portfolio(sources, k=3):
        study.enqueue_trial(dict(member.params))
    evaluate(study, 10)
    assert len(set(configurations(study))) == 10


@learning
def test_after_a_portfolio_the_model_goes_on_at_once(make: Make) -> None:
    study = new_study(make.kind(pasts(2), seed=0))
    evaluate(study, 6)
    n_first = sum(record.origin == "warm_start" for record in transfer_history(study))
    assert n_first == 5


@learning
def test_the_portfolio_keeps_to_the_ranges_that_the_study_asks_for(make: Make) -> None:
    source = past_study(lambda p: [abs(p["x"] - 0.1)], space=SQUARE, directions=ONE, n=60)
    narrow = {**SQUARE, "x": FloatDistribution(0.5, 0.9)}
    study = new_study(make([source], search_space=narrow), ONE)
    params = evaluate(study, 4, space=narrow, losses=lambda p: [abs(p["x"] - 0.1)])
    assert transfer_history(study)[0].reason == "portfolio"
    assert all(0.5 <= p["x"] <= 0.9 for p in params)
    assert params[0]["x"] < 0.6  # as near as it may come to the best of the past


@learning
def test_a_portfolio_has_the_parameters_of_branches_that_the_study_has_not_used(
    make: Make,
) -> None:
    kind = CategoricalDistribution(("a", "b"))
    points = [{"kind": k, k: i / 20} for i in range(20) for k in ("a", "b")]
    sources = [  # one is good in branch a, the other one in branch b
        new_study(
            random_sampler(0),
            ONE,
            trials=[
                frozen(p, [p.get(good, 2.0)], space={"kind": kind, p["kind"]: UNIT})
                for p in points
            ],
        )
        for good in kind.choices
    ]
    study = new_study(make(sources, n_startup_trials=2), ONE)
    seen = []
    for _ in range(2):
        trial = study.ask()
        own = trial.suggest_categorical("kind", kind.choices)
        seen.append((own, trial.suggest_float(own, 0.0, 1.0) < 0.2))
        study.tell(trial, 1.0)
    assert sorted(seen) == [("a", True), ("b", True)]


@learning
def test_a_warm_start_is_no_repeat_of_a_trial_that_ended_early(make: Make) -> None:
    points = [{"i": i, "dropped": i / 10} for i in range(4)]
    space = {"i": SMALL["i"], "dropped": UNIT}
    trials = [frozen(p, float(p["i"]), space=space) for p in points]
    source = new_study(random_sampler(0), ONE, trials=trials)
    # Of the past the study has i alone, and a trial that asked for no more has had its best.
    whole = frozen({"i": 0, "c": "p"}, 1.0, space=SMALL)
    early = frozen({"i": 0}, space=SMALL, state=TrialState.PRUNED)
    study = new_study(make([source], search_space=SMALL), ONE, trials=[whole, early])
    params = study.ask(SMALL).params
    assert origins(study)[-1] == "warm_start"
    assert params["i"] != 0


# Trials that run at the same time ----------------------------------------------------------------


def test_trials_that_run_at_the_same_time_get_each_warm_start_once(make: Make) -> None:
    sources = pasts(2)
    given = asked(new_study(make(sources, n_startup_trials=4)), 4, SPACE)
    assert given == suggestions(make(sources, n_startup_trials=4), 4)


any_past = pytest.mark.parametrize("past", [None, SMALL, {**SMALL, "dropped": UNIT}])
any_space = pytest.mark.parametrize("asked_for", [SMALL, {**SMALL, **ONE_CHOICE}])


def past_of(space: dict[str, BaseDistribution] | None) -> list[Study]:
    return [] if space is None else [past_study(space=space, n=30)]


@any_past
@any_space
def test_the_first_trials_of_many_workers_differ_in_a_finite_space(
    make: Make,
    past: dict[str, BaseDistribution] | None,
    asked_for: dict[str, BaseDistribution],
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = new_study(make(past_of(past)))
    assert len({str(study.ask(asked_for).params) for _ in range(10)}) == 10
    assert not caplog.records


@learning
@any_past
@any_space
def test_the_first_trials_of_many_workers_differ_without_a_start_too(
    make: Make,
    past: dict[str, BaseDistribution] | None,
    asked_for: dict[str, BaseDistribution],
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = new_study(make.at_once(past_of(past)))
    assert len({str(study.ask(asked_for).params) for _ in range(10)}) == 10
    assert not caplog.records


@learning
@pytest.mark.parametrize("has_failed", [False, True])
def test_a_warm_start_is_no_repeat_of_trials_that_have_asked_for_one_parameter_so_far(
    make: Make, has_failed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    study = new_study(make([past_study(space=GRID, n=24)]))
    slow = study._storage.create_new_trial(study._study_id)  # number 0, which asks last
    others = [study.ask() for _ in range(20)]
    assert {trial.suggest_int("i", 0, 3) for trial in others} == {0, 1, 2, 3}
    if has_failed:
        study.tell(others[-1], state=TrialState.FAIL)
    optuna.Trial(study, slow).suggest_int("i", 0, 3)
    study.ask().suggest_int("i", 0, 3)
    assert len(set(starts(study))) == len(starts(study)) == 5
    assert starts(study)[0] == 0  # its own, and none further down
    assert not caplog.records  # least of all that everything has been evaluated


@learning
def test_in_a_space_that_was_given_a_warm_start_is_no_repeat_of_what_runs(make: Make) -> None:
    done = [{"i": k % 2, "c": "p", "dropped": k / 10} for k in range(10)]  # two that are left here
    trials = [frozen(p, two_losses(p), space={**SMALL, "dropped": UNIT}) for p in done]
    source = new_study(random_sampler(0), trials=trials)
    study = new_study(make([source], search_space=SMALL))
    assert len({str(study.ask(SMALL).params) for _ in range(5)}) == 5
    assert origins(study) == ["warm_start"] * 2 + ["random"] * 3


def test_warm_starts_are_given_out_once_each_under_hyperband(make: Make) -> None:
    source = past_study(space=SQUARE, directions=ONE)
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9, reduction_factor=3)
    study = optuna.create_study(sampler=make([source]), pruner=pruner, study_name="hyperband")

    def objective(trial: optuna.Trial) -> float:
        loss = two_losses({name: trial.suggest_float(name, 0, 1) for name in SQUARE})[0]
        trial.report(loss, step=1)
        if trial.should_prune():
            raise optuna.TrialPruned
        return loss

    study.optimize(objective, n_trials=8)
    assert len(set(starts(study))) == len(starts(study)) == 5
    assert len(set(configurations(study))) == 8


@learning
@pytest.mark.parametrize(("attempt", "start"), [(0, 5), (1, 12)])
def test_after_a_collision_each_trial_has_a_part_of_the_reserve_of_its_own(
    make: Make, attempt: int, start: int
) -> None:
    # The third of five trials; its own configuration and the first of its part are taken.
    plans = [Plan("warm_start", "best", start=index) for index in (2, 7)]
    points = past_study(seed=1, n=2).trials
    done = [
        frozen(t.params, [0.5, 0.5], space=SPACE, **system_attributes(plan))
        for t, plan in zip(points, plans, strict=True)
    ]
    study = new_study(sampler := make.drawing([past_study(n=40)]), trials=done)
    asks = frozen({}, state=TrialState.RUNNING)
    asks.number = 2
    moment = sampler._moment(study, asks, Space(SPACE), attempt)
    plan = sampler.first_trials.plan(sampler, moment)
    assert plan is not None
    assert plan.start == start


# Workers that died -------------------------------------------------------------------------------


def left_behind(trial: FrozenTrial) -> FrozenTrial:
    """Return a trial as a worker leaves it that died an hour ago."""
    trial.state, trial.values, trial.datetime_complete = TrialState.RUNNING, None, None
    trial.datetime_start = datetime.now() - timedelta(hours=1)
    return trial


@pytest.mark.parametrize("which", [0, 2])
def test_a_warm_start_that_a_dead_worker_was_given_is_taken_up_once(
    make: Make, which: int
) -> None:
    source = past_study()
    begun = new_study(make([source]))
    evaluate(begun, 6)
    trials = [left_behind(t) if t.number == which else t for t in begun.trials]
    study = new_study(make([source]), trials=trials)
    suggested = evaluate(study, 3)
    assert suggested[0] == begun.trials[which].params
    assert starts(study) == [*starts(begun), starts(begun)[which]]  # the dead worker's once more


def test_a_warm_start_that_may_still_be_evaluated_is_not_given_out_again(make: Make) -> None:
    begun = new_study(make([past_study()]))
    begun.ask(SPACE)
    first = begun.trials[0]
    running = frozen(first.params, state=TrialState.RUNNING, space=SPACE, **first.system_attrs)
    study = new_study(make([past_study()]), trials=[running])
    assert first.params not in evaluate(study, 6)
    assert len(set(starts(study))) == len(starts(study)) == 5


@learning
def test_a_dead_workers_warm_start_that_was_evaluated_since_brings_no_other_ones(
    make: Make,
) -> None:
    source = past_study(space=GRID, n=40)
    begun = new_study(make([source]))
    evaluate(begun, 6, space=GRID)
    again = frozen(begun.trials[2].params, [0.5, 0.5], space=GRID)
    trials = [left_behind(t) if t.number == 2 else t for t in begun.trials]
    study = new_study(make([source]), trials=[*trials, again])
    evaluate(study, 4, space=GRID)
    assert "warm_start" not in origins(study)[6:]


def test_before_any_trial_has_finished_no_running_one_counts_as_left_behind(make: Make) -> None:
    begun = new_study(make([past_study()]))
    asked(begun, 5, SPACE)
    # Trainings that take hours, on workers that were started one after the other.
    started = [
        frozen(t.params, state=TrialState.RUNNING, space=SPACE, age=600.0, **t.system_attrs)
        for t in begun.trials
    ]
    study = new_study(make([past_study()]), trials=started)
    assert asked(study, 1, SPACE)[0] not in [t.params for t in started]


# Trials that were enqueued -----------------------------------------------------------------------


@pytest.mark.parametrize("enqueued", [list(SPACE), ["x", "kind"]], ids=["fully", "partly"])
def test_enqueued_trials_use_up_no_warm_start(make: Make, enqueued: list[str]) -> None:
    by_hand = {"x": 0.123, "lr": 0.01, "depth": 3, "kind": "b"}
    study = new_study(make([past_study()]))
    for i in range(8):
        if i % 3 == 0:
            study.enqueue_trial({name: by_hand[name] for name in enqueued})
        evaluate(study, 1)
    chosen = [t.params for t in study.trials if t.params["x"] != 0.123]
    assert chosen == suggestions(make([past_study()]), 5)
