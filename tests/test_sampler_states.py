"""What each kind of trial means to the sampler.

Most tests compare the next suggestions after two histories: they are the same exactly when both
histories have the same good and the same bad configurations.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import PartialFixedSampler
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
    in_space,
    new_study,
    next_suggestions,
    past_study,
    settled,
    spread,
    suggestions,
    two_losses,
)

from metatpe import MetaTPESampler, transfer_history

INF, NAN = float("inf"), float("nan")
PRUNED, RUNNING, FAIL = TrialState.PRUNED, TrialState.RUNNING, TrialState.FAIL
POINTS = spread(15)


def completed(order: Sequence[int]) -> list[FrozenTrial]:
    """Return trials of one objective at POINTS of which `order` has the numbers, best first."""
    return [frozen(POINTS[i], float(order.index(i))) for i in range(len(order))]


# FAIL and PRUNED ---------------------------------------------------------------------------------


@pytest.mark.parametrize("directions", [ONE, TWO])
def test_failed_trials_are_ignored(directions: tuple[str, ...]) -> None:
    def history(where: Params) -> list[FrozenTrial]:
        values = [[float(i), float(-i % 4)][: len(directions)] for i in range(12)]
        finished = [frozen(p, v) for p, v in zip(POINTS, values, strict=False)]
        return [*finished[:6], frozen(where, state=FAIL), *finished[6:]]

    here, there = history({"x": 0.1, "y": 0.1}), history({"x": 0.9, "y": 0.2})
    assert next_suggestions(here, directions=directions) == next_suggestions(
        there, directions=directions
    )


REPORTS: list[dict[int, float]] = [
    {1: 5.0}, {1: 4.0, 3: 9.0}, {}, {2: 1.0}, {1: NAN}, {2: 0.5},
    {3: 8.0, 1: 0.0}, {1: 6.0}, {0: -INF}, {3: INF}, {1: 5.0, 2: 0.5}, {0: 1.0},
]  # fmt: skip
LATE_THEN_SMALL = [6, 1, 9, 5, 10, 3, 0, 7, 4, 8, 11, 2]
LATE_THEN_LARGE = [9, 1, 6, 3, 5, 10, 7, 0, 4, 11, 8, 2]


@pytest.mark.parametrize(
    ("direction", "order"),
    [("minimize", LATE_THEN_SMALL), ("maximize", LATE_THEN_LARGE)],
)
@pytest.mark.parametrize("gamma", [0.1, 0.3, 0.5, 0.8])
def test_pruned_trials_of_one_objective_are_ordered_by_their_last_step_and_its_value(
    direction: str, order: list[int], gamma: float
) -> None:
    pruned = [frozen(p, state=PRUNED, reports=r) for p, r in zip(POINTS, REPORTS, strict=False)]
    assert next_suggestions(pruned, directions=[direction], gamma=gamma) == next_suggestions(
        completed(order), gamma=gamma
    )


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9])
def test_pruned_trials_stand_behind_completed_ones(gamma: float) -> None:
    trials = [
        frozen(p, state=PRUNED, reports={i: -100.0}) if i % 2 else frozen(p, float(i))
        for i, p in enumerate(POINTS[:12])
    ]
    order = [0, 2, 4, 6, 8, 10, 11, 9, 7, 5, 3, 1]
    assert next_suggestions(trials, gamma=gamma) == next_suggestions(completed(order), gamma=gamma)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9])
def test_pruned_trials_of_several_objectives_stand_behind_completed_ones_by_number(
    gamma: float,
) -> None:
    front = [[3.0, 0.0], [2.0, 1.0], [1.0, 2.0], [4.0, 4.0]]
    complete = [frozen(p, v) for p, v in zip(POINTS, front, strict=False)]
    pruned = [frozen(p, state=PRUNED, reports={9 - i: 0.0}) for i, p in enumerate(POINTS[4:12])]
    dominated = [frozen(p, [100.0 + i] * 2) for i, p in enumerate(POINTS[4:12])]
    assert next_suggestions([*complete, *pruned], directions=TWO, gamma=gamma) == next_suggestions(
        [*complete, *dominated], directions=TWO, gamma=gamma
    )


def test_an_objective_that_prunes_is_learned_from() -> None:
    study = new_study(MetaTPESampler(seed=0), ONE)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.report(x, step=1)
        if x > 0.3:
            raise optuna.TrialPruned
        return x

    study.optimize(objective, n_trials=40)
    late = [t.params["x"] for t in study.trials[20:]]
    assert sum(x < 0.3 for x in late) > 15


# RUNNING and WAITING -----------------------------------------------------------------------------


def test_a_running_trial_counts_as_bad() -> None:
    history = completed(range(14))  # 2 of 14 are good, and 2 of 15
    other = {"x": 0.45, "y": 0.55}
    running = next_suggestions([*history, frozen(other, state=RUNNING)])
    assert running == next_suggestions([*history, frozen(other, 1000.0)])
    assert running != next_suggestions([*history, frozen({"x": 0.0, "y": 1.0}, 1000.0)])


@pytest.mark.parametrize("space", [SPACE, GRID], ids=["continuous", "finite"])
@pytest.mark.parametrize("n_before", [0, 3, 12])
@pytest.mark.parametrize("n_sources", [0, 2])
def test_ten_trials_that_run_at_the_same_time_differ(
    space: dict[str, BaseDistribution], n_before: int, n_sources: int
) -> None:
    sources = [past_study(space=space, seed=i) for i in range(n_sources)]
    study = new_study(MetaTPESampler(sources, seed=0))
    evaluate(study, n_before, space=space)
    parallel = asked(study, 10, space)
    assert len({tuple(params.items()) for params in parallel}) == 10


def test_a_configuration_is_known_to_others_before_its_parameters_are_stored() -> None:
    study = new_study(settled())
    evaluate(study, 10, space=GRID)
    first = study.ask()
    i = first.suggest_int("i", 0, 3)  # the other two parameters are only planned
    others = asked(study, 13, GRID)
    c, f = first.suggest_categorical("c", "pqr"), first.suggest_float("f", 0, 0.5, step=0.5)
    assert {"i": i, "c": c, "f": f} not in others
    assert len(set(configurations(study))) == 24


def test_a_running_trial_that_was_left_behind_does_not_count() -> None:
    history = completed(range(14))
    stale = frozen({"x": 0.45, "y": 0.55}, state=RUNNING, age=100.0)
    elsewhere = frozen({"x": 0.9, "y": 0.1}, state=RUNNING, age=100.0)
    assert next_suggestions([*history, stale]) == next_suggestions([*history, elsewhere])


@pytest.mark.parametrize(
    ("longest", "age", "is_stale"),
    [(0.0, 50.0, False), (0.0, 70.0, True), (10.0, 90.0, False), (10.0, 110.0, True)],
)
def test_a_running_trial_is_left_behind_after_ten_times_the_longest_and_a_minute(
    longest: float, age: float, is_stale: bool
) -> None:
    def suggested(where: Params) -> list[Params]:
        history = [frozen(p, float(i), age=longest) for i, p in enumerate(POINTS[:14])]
        return next_suggestions([*history, frozen(where, state=RUNNING, age=age)])

    alike = suggested({"x": 0.45, "y": 0.55}) == suggested({"x": 0.9, "y": 0.1})
    assert alike == is_stale


def test_a_running_trial_that_was_left_behind_blocks_no_configuration() -> None:
    study = new_study(settled())
    stale = frozen({"i": 0, "c": "p", "f": 0.0}, state=RUNNING, space=GRID, age=100.0)
    study.add_trial(stale)
    evaluate(study, 24, space=GRID)
    finished = [t.params for t in study.trials if t.state == TrialState.COMPLETE]
    assert len({tuple(p.items()) for p in finished}) == 24


@pytest.mark.parametrize("age", [0.0, 100.0], ids=["still running", "left behind"])
def test_the_warm_start_of_a_trial_that_was_left_behind_is_given_out_again_once(
    age: float,
) -> None:
    source = past_study()
    donor = new_study(MetaTPESampler([source], seed=0))
    donor.ask(SPACE)
    first = donor.trials[0]
    study = new_study(MetaTPESampler([source], seed=0))
    study.add_trial(
        frozen(first.params, state=RUNNING, space=SPACE, age=age, **first.system_attrs)
    )
    suggested = evaluate(study, 10)
    assert suggested.count(first.params) == (1 if age else 0)
    origins = [record.origin for record in transfer_history(study)]
    assert origins.count("warm_start") == (5 if age else 4)


def test_before_any_trial_has_finished_no_running_one_counts_as_left_behind() -> None:
    study = new_study(MetaTPESampler([past_study()], seed=0))
    for _ in range(5):
        study.ask(SPACE)
    # Trainings that take hours, on workers that were started one after the other.
    started = [
        frozen(t.params, state=RUNNING, space=SPACE, age=600.0, **t.system_attrs)
        for t in study.trials
    ]
    other = new_study(MetaTPESampler([past_study()], seed=0), trials=started)
    assert asked(other, 1, SPACE)[0] not in [t.params for t in started]


def test_waiting_trials_do_not_count() -> None:
    history = completed(range(14))

    def suggested(*, enqueue: bool) -> Params:
        study = new_study(settled(), ONE, trials=history)
        trial = study.ask()
        if enqueue:
            study.enqueue_trial({"x": 0.45, "y": 0.55})
        return {name: trial.suggest_float(name, 0, 1) for name in SQUARE}

    assert suggested(enqueue=True) == suggested(enqueue=False)


def test_a_trial_that_is_tried_again_keeps_its_configuration() -> None:
    study = new_study(MetaTPESampler([past_study()], seed=0))
    evaluate(study, 7)
    trial = study.ask(SPACE)
    study.tell(trial, state=FAIL)
    optuna.storages.RetryHeartbeatStaleTrialCallback()(study, study.trials[-1])
    again = study.ask(SPACE)
    assert again.params == trial.params
    study.tell(again, two_losses(again.params))
    assert all(in_space(params, SPACE) for params in evaluate(study, 3))


# Enqueued trials ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_sources", [0, 1])
def test_an_enqueued_trial_gets_its_values_and_leaves_no_record(n_sources: int) -> None:
    study = new_study(MetaTPESampler([past_study()] * n_sources, seed=0))
    wanted = {"x": 0.123, "lr": 0.01, "depth": 3, "kind": "b"}
    study.enqueue_trial(wanted)
    assert evaluate(study, 2)[0] == wanted
    assert [record.number for record in transfer_history(study)] == [1]


@pytest.mark.parametrize("enqueued", [SPACE, ("x", "kind")], ids=["fully", "partly"])
def test_enqueued_trials_use_up_no_warm_start(enqueued: Any) -> None:
    by_hand = {"x": 0.123, "lr": 0.01, "depth": 3, "kind": "b"}
    study = new_study(MetaTPESampler([past_study()], seed=0))
    for i in range(8):
        if i % 3 == 0:
            study.enqueue_trial({name: by_hand[name] for name in enqueued})
        evaluate(study, 1)
    chosen = [p for p in (t.params for t in study.trials) if p["x"] != 0.123]
    assert chosen == suggestions(MetaTPESampler([past_study()], seed=0), 5)


@pytest.mark.parametrize("n_before", [0, 3, 20])
@pytest.mark.parametrize("n_sources", [0, 1])
@pytest.mark.parametrize("warm_start", [True, False])
def test_what_is_enqueued_is_kept_and_the_rest_is_chosen(
    n_before: int, n_sources: int, warm_start: bool
) -> None:
    sampler = MetaTPESampler([past_study()] * n_sources, seed=0, warm_start=warm_start)
    study = new_study(sampler)
    evaluate(study, n_before)
    study.enqueue_trial({"depth": 7, "kind": "c"})
    params = evaluate(study, 1)[0]
    assert (params["depth"], params["kind"]) == (7, "c")
    assert in_space(params, SPACE)


@pytest.mark.parametrize("n_sources", [0, 1])
def test_the_rest_of_a_partly_enqueued_trial_is_chosen_given_what_is_fixed(n_sources: int) -> None:
    # The best y is small where x is small, and large where x is large.
    def losses(params: Params) -> list[float]:
        return [abs(params["x"] - params["y"])]

    sources = [past_study(losses, space=SQUARE, n=80, directions=ONE)] * n_sources
    study = new_study(settled(sources=sources, gamma=0.2, warm_start=False), ONE)
    study.add_trials([frozen(p, losses(p)) for p in spread(80)])
    for x in (0.1, 0.9) * 5:
        study.enqueue_trial({"x": x})
        y = study.ask(SQUARE).params["y"]
        assert abs(y - x) < 0.3


def test_the_rest_of_an_enqueued_first_trial_is_chosen_from_the_past() -> None:
    def losses(params: Params) -> list[float]:
        return [abs(params["x"] - params["y"])]

    source = past_study(losses, space=SQUARE, n=80, directions=ONE)
    for x in (0.1, 0.9):
        study = new_study(settled(sources=[source], gamma=0.2), ONE)
        study.enqueue_trial({"x": x})
        assert abs(study.ask(SQUARE).params["y"] - x) < 0.3


def test_an_enqueued_value_outside_of_the_range_is_handed_out_as_optuna_does() -> None:
    study = new_study(settled(), ONE)
    evaluate(study, 5, space=SQUARE)
    study.enqueue_trial({"x": 5.0})
    with pytest.warns(UserWarning, match="out of range"):
        assert study.ask(SQUARE).params["x"] == 5.0


# Values, constraints and directions --------------------------------------------------------------


@pytest.mark.parametrize(("value", "like"), [(INF, 1e9), (-INF, -1e9)])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_an_infinite_value_is_one_that_is_larger_or_smaller_than_all_others(
    value: float, like: float, direction: str
) -> None:
    def history(extreme: float) -> list[FrozenTrial]:
        return [frozen(p, extreme if i in (3, 8) else float(i)) for i, p in enumerate(POINTS)]

    assert next_suggestions(history(value), directions=[direction]) == next_suggestions(
        history(like), directions=[direction]
    )


@pytest.mark.parametrize(
    "values",
    [
        [[INF, INF]] * 12,
        [[-INF, -INF]] * 12,
        [[INF, -INF], [-INF, INF], [0.0, 0.0]] * 4,
        [[1.0, 2.0]] * 12,
        [[float(i), INF] for i in range(12)],
        [[1e308, -1e308], [-1e308, 1e308]] * 6,
    ],
)
def test_histories_of_infinities_and_ties_are_served(values: list[list[float]]) -> None:
    history = [frozen(p, v) for p, v in zip(POINTS, values, strict=False)]
    assert all(in_space(p, SQUARE) for p in next_suggestions(history, directions=TWO))


@pytest.mark.parametrize("directions", [ONE, TWO])
def test_an_infeasible_trial_is_not_good_however_good_its_values(
    directions: tuple[str, ...],
) -> None:
    def history(infeasible: float) -> list[FrozenTrial]:
        return [
            frozen(
                p,
                [infeasible if i % 3 == 0 else float(i)] * len(directions),
                constraint=1.0 + i if i % 3 == 0 else -1.0,
            )
            for i, p in enumerate(POINTS)
        ]

    assert next_suggestions(history(-100.0), directions=directions) == next_suggestions(
        history(100.0), directions=directions
    )


@pytest.mark.parametrize("directions", [ONE, TWO])
def test_without_a_feasible_trial_the_smallest_violation_is_the_best(
    directions: tuple[str, ...],
) -> None:
    violations = [float(i * 7 % 15 + 1) for i in range(15)]
    infeasible = [
        frozen(p, [-v] * len(directions), constraint=v)
        for p, v in zip(POINTS, violations, strict=True)
    ]
    feasible = [frozen(p, [v] * len(directions)) for p, v in zip(POINTS, violations, strict=True)]
    assert next_suggestions(infeasible, directions=directions) == next_suggestions(
        feasible, directions=directions
    )


def test_constraints_that_an_objective_sets_are_learned() -> None:
    study = new_study(MetaTPESampler(seed=0))

    def objective(trial: optuna.Trial) -> list[float]:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_constraint("x is large", 0.6 - x)
        return [x + y, x - y]

    study.optimize(objective, n_trials=50)
    late = [t.params["x"] for t in study.trials[25:]]
    assert sum(x >= 0.6 for x in late) > 18


@pytest.mark.parametrize("n_sources", [0, 2])
@pytest.mark.parametrize("signs", [(-1,), (1, -1), (-1, 1), (-1, -1)])
def test_negating_a_maximised_objective_changes_no_suggestion(
    signs: tuple[int, ...], n_sources: int
) -> None:
    def losses(params: Params) -> list[float]:
        return [s * v for s, v in zip(signs, two_losses(params), strict=False)]

    def run(losses: Any, directions: list[str]) -> list[Params]:
        sources = [past_study(losses, seed=i, directions=directions) for i in range(n_sources)]
        sampler = MetaTPESampler(sources, seed=0)
        return suggestions(sampler, 20, losses=losses, directions=directions)

    maximised = run(losses, ["maximize" if s < 0 else "minimize" for s in signs])
    assert maximised == run(two_losses, ["minimize"] * len(signs))


# Parameters that are fixed, late, conditional or moving ------------------------------------------


@pytest.mark.parametrize("directions", [ONE, TWO])
@pytest.mark.parametrize("n_sources", [0, 1])
def test_a_partial_fixed_sampler_fixes_its_parameters_and_the_rest_is_chosen(
    directions: tuple[str, ...], n_sources: int
) -> None:
    sources = [past_study(directions=directions)] * n_sources
    fixed = {"depth": 2, "kind": "c"}
    sampler = PartialFixedSampler(fixed, MetaTPESampler(sources, seed=0))
    suggested = suggestions(sampler, 15, directions=directions)
    assert all({name: p[name] for name in fixed} == fixed for p in suggested)
    assert all(in_space(p, SPACE) for p in suggested)
    assert len({p["x"] for p in suggested}) == 15


def test_a_partial_fixed_sampler_may_come_later() -> None:
    study = new_study(MetaTPESampler(seed=0))
    evaluate(study, 8)
    study.sampler = PartialFixedSampler({"x": 0.25}, study.sampler)
    assert [p["x"] for p in evaluate(study, 8)] == [0.25] * 8


ONE_VALUE: dict[str, BaseDistribution] = {
    "float": FloatDistribution(1.5, 1.5),
    "log": FloatDistribution(1e-3, 1e-3, log=True),
    "int": IntDistribution(3, 3),
    "stepped": IntDistribution(3, 3, step=5),
    "choice": CategoricalDistribution(("only",)),
    "nothing": CategoricalDistribution((None,)),
}


@pytest.mark.parametrize("n_sources", [0, 1])
@pytest.mark.parametrize("others", [{}, SPACE], ids=["nothing else", "others"])
def test_parameters_with_one_value_get_it(
    n_sources: int, others: dict[str, BaseDistribution]
) -> None:
    space = {**ONE_VALUE, **others}
    sources = [past_study(space=space)] * n_sources
    suggested = suggestions(MetaTPESampler(sources, seed=0), 12, space=space)
    value = {"float": 1.5, "log": 1e-3, "int": 3, "stepped": 3, "choice": "only", "nothing": None}
    assert all({name: p[name] for name in ONE_VALUE} == value for p in suggested)
    assert all(in_space(p, space) for p in suggested)


def test_a_parameter_that_gets_a_range_later_is_served() -> None:
    study = new_study(MetaTPESampler(seed=0))
    evaluate(study, 8, space={**SQUARE, "n": IntDistribution(2, 2)})
    suggested = evaluate(study, 8, space={**SQUARE, "n": IntDistribution(2, 9)})
    assert all(2 <= p["n"] <= 9 for p in suggested)
    assert len({p["n"] for p in suggested}) > 1


@pytest.mark.filterwarnings("ignore:The distribution is specified by")
def test_a_fine_grid_far_from_zero_is_served() -> None:
    space = {"x": FloatDistribution(-524288.9999999999, -524288.9715, step=0.001)}
    suggested = suggestions(MetaTPESampler(seed=0), 20, space=space)
    assert all(-524289.0 < p["x"] < -524288.97 for p in suggested)


@pytest.mark.parametrize("late", list(SPACE))
@pytest.mark.parametrize("n_sources", [0, 1])
def test_a_parameter_that_appears_late_is_served_and_learned(late: str, n_sources: int) -> None:
    early = {name: d for name, d in SPACE.items() if name != late}
    study = new_study(MetaTPESampler([past_study(space=early)] * n_sources, seed=0))
    evaluate(study, 8, space=early)
    suggested = evaluate(study, 8)
    assert all(late in p and in_space(p, SPACE) for p in suggested)


def test_a_late_parameter_is_no_reason_to_say_that_all_was_evaluated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = new_study(settled(), ONE)
    evaluate(study, 8, space=SQUARE)
    evaluate(study, 3, space={**SQUARE, "n": IntDistribution(0, 9)})
    assert "every configuration" not in caplog.text


def test_a_late_parameter_that_the_past_lacks_is_no_reason_to_say_that_nothing_is_shared(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = past_study(space={"x": SQUARE["x"]}, directions=ONE)
    study = new_study(settled(sources=[source]), ONE)
    evaluate(study, 8, space={"x": SQUARE["x"]})
    evaluate(study, 3, space=SQUARE)
    assert "skipped" not in caplog.text


def test_a_finite_space_with_a_late_parameter_is_explored_without_repeats() -> None:
    study = new_study(MetaTPESampler(seed=0))
    evaluate(study, 4, space={"i": GRID["i"]})
    suggested = evaluate(study, 24, space=GRID)
    assert len({tuple(p.items()) for p in suggested}) == 24


def test_a_trial_without_parameters_does_not_count_as_every_configuration() -> None:
    study = new_study(MetaTPESampler(seed=0))
    study.add_trial(frozen({}, [1.0, 1.0]))
    suggested = evaluate(study, 24, space=GRID)
    assert len({tuple(p.items()) for p in suggested}) == 24


def conditional(trial: optuna.Trial) -> list[float]:
    kind = trial.suggest_categorical("kind", ["line", "plane"])
    x = trial.suggest_float("x", 0, 1)
    y = trial.suggest_float("y", 0, 1) if kind == "plane" else 0.9
    return two_losses({"x": x, "y": y})


@pytest.mark.parametrize("n_sources", [0, 1])
def test_parameters_of_a_branch_are_learned_from_the_trials_that_took_it(n_sources: int) -> None:
    sources = []
    for _ in range(n_sources):
        source = new_study(optuna.samplers.RandomSampler(seed=0))
        source.optimize(conditional, n_trials=30)
        sources.append(source)
    study = new_study(MetaTPESampler(sources, seed=0))
    study.optimize(conditional, n_trials=40)
    assert all(("y" in t.params) == (t.params["kind"] == "plane") for t in study.trials)
    ys = [t.params["y"] for t in study.trials[20:] if "y" in t.params]
    assert ys
    assert sum(0.1 < y < 0.6 for y in ys) > 0.6 * len(ys)


def test_a_trial_that_ends_before_it_asked_for_everything_hides_no_configuration() -> None:
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

    for seed in range(3):
        study = new_study(MetaTPESampler(seed=seed))
        study.optimize(objective, n_trials=19)
        assert len(set(configurations(study))) == 19


@pytest.mark.parametrize("n_sources", [0, 1])
def test_ranges_that_move_with_every_trial_are_served(n_sources: int) -> None:
    study = new_study(MetaTPESampler([past_study()] * n_sources, seed=0))
    for i in range(30):
        space = {
            "x": FloatDistribution(-i, i + 1),
            "lr": FloatDistribution(1e-4 * (i + 1), 1.0 + i, log=True),
            "depth": IntDistribution(1 + i % 3, 4 + i % 5),
        }
        assert all(in_space(p, space) for p in evaluate(study, 1, space=space))


def test_a_moving_range_beside_a_continuous_parameter_is_never_said_to_be_used_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = new_study(settled(), ONE)
    for i in range(20):
        evaluate(study, 1, space={"x": SQUARE["x"], "n": IntDistribution(0, 2 + i % 2)})
    assert "every configuration" not in caplog.text


# Hyperband, added trials, ask and tell -----------------------------------------------------------


def pruned_by_hyperband(sampler: MetaTPESampler, n: int) -> optuna.Study:
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9, reduction_factor=3)
    study = optuna.create_study(sampler=sampler, pruner=pruner, study_name="hyperband")

    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        for step in range(9):
            trial.report((x - 0.2) ** 2 + (y - 0.2) ** 2 + 0.01 * step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return (x - 0.2) ** 2 + (y - 0.2) ** 2

    study.optimize(objective, n_trials=n)
    return study


@pytest.mark.parametrize("n_sources", [0, 1])
def test_hyperband_is_served_and_every_bracket_learns(n_sources: int) -> None:
    sources = [past_study(space=SQUARE, directions=ONE)] * n_sources
    study = pruned_by_hyperband(MetaTPESampler(sources, seed=0), 60)
    states = {t.state for t in study.trials}
    assert states == {TrialState.COMPLETE, TrialState.PRUNED}
    assert len(set(configurations(study))) == 60 or n_sources
    late = study.trials[30:]
    assert sum(t.params["x"] < 0.5 and t.params["y"] < 0.5 for t in late) > 15


def test_the_same_seed_gives_the_same_suggestions_under_hyperband() -> None:
    a, b = (pruned_by_hyperband(MetaTPESampler(seed=0), 25) for _ in range(2))
    assert configurations(a) == configurations(b)


def test_warm_starts_are_given_out_once_each_under_hyperband() -> None:
    source = past_study(space=SQUARE, directions=ONE)
    study = pruned_by_hyperband(MetaTPESampler([source], seed=0), 20)
    assert len(set(configurations(study))) == 20


@pytest.mark.parametrize("n_sources", [0, 1])
def test_trials_that_were_added_count_like_those_that_were_run(n_sources: int) -> None:
    def sampler() -> MetaTPESampler:
        return MetaTPESampler([past_study()] * n_sources, seed=0)

    study = new_study(sampler())
    evaluate(study, 12)
    added = new_study(sampler(), trials=study.trials)
    assert evaluate(added, 6) == evaluate(study, 6)


@pytest.mark.parametrize("n_sources", [0, 1])
def test_ask_and_tell_with_a_given_space_suggests_what_optimize_does(n_sources: int) -> None:
    def sampler() -> MetaTPESampler:
        return MetaTPESampler([past_study()] * n_sources, seed=0)

    def objective(trial: optuna.Trial) -> list[float]:
        trial.suggest_float("x", 0, 1)
        trial.suggest_float("lr", 1e-4, 1, log=True)
        trial.suggest_int("depth", 1, 8)
        trial.suggest_categorical("kind", ("a", "b", "c"))
        return two_losses(trial.params)

    optimized = new_study(sampler())
    optimized.optimize(objective, n_trials=15)
    assert [t.params for t in optimized.trials] == suggestions(sampler(), 15)


def test_trials_may_be_told_in_another_order_than_they_were_asked() -> None:
    study = new_study(MetaTPESampler([past_study()], seed=0))
    trials = [study.ask(SPACE) for _ in range(10)]
    for trial in reversed(trials):
        study.tell(trial, two_losses(trial.params))
    straight = new_study(MetaTPESampler([past_study()], seed=0), trials=study.trials)
    assert evaluate(study, 3) == evaluate(straight, 3)


def test_an_ordinary_study_has_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        suggestions(MetaTPESampler([past_study()], seed=0), 20)
    assert caplog.text == ""
