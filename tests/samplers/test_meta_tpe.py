"""MetaTPESampler: the split, the task weights, silence, turns, and the method as published."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from studies import (
    GRID,
    ONE,
    SPACE,
    SQUARE,
    TWO,
    Losses,
    Params,
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
)

from metatpe import MetaTPESampler, Space, Task, TransferRecord, transfer_history
from metatpe.samplers import densities
from metatpe.study.record import Plan, system_attributes
from samplers.five import pasts

INF, NAN = float("inf"), float("nan")
PRUNED, RUNNING = TrialState.PRUNED, TrialState.RUNNING
POINTS = spread(15)


def completed(order: Sequence[int]) -> list[FrozenTrial]:
    """Return trials of one objective at POINTS of which `order` has the numbers, best first."""
    return [frozen(POINTS[i], float(order.index(i))) for i in range(len(order))]


def corner(x: float, y: float) -> Losses:
    """Return losses whose front lies close to one point of SQUARE."""

    def losses(params: Params) -> list[float]:
        return [
            abs(params["x"] - x - 0.02) + abs(params["y"] - y),
            abs(params["x"] - x + 0.02) + abs(params["y"] - y),
        ]

    return losses


def history(losses: Losses, n: int = 40) -> list[FrozenTrial]:
    return [frozen(p, losses(p)) for p in spread(n)]


def next_record(sampler: MetaTPESampler, trials: list[FrozenTrial]) -> TransferRecord:
    """Return the record of the trial that follows on a given history."""
    study = new_study(sampler, ["minimize"] * len(trials[0].values), trials=trials)
    study.ask(SQUARE)
    (record,) = transfer_history(study)
    return record


# Settings ----------------------------------------------------------------------------------------


def test_the_control_parameters_are_those_of_the_paper_unless_others_are_given() -> None:
    parameters = inspect.signature(MetaTPESampler).parameters
    paper = {
        "n_ei_candidates": 100,
        "gamma": 0.1,
        "eta": 2.5,
        "epsilon": 0.05,
        "n_mc_samples": 1000,
    }
    assert {name: parameters[name].default for name in paper} == paper


@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [
        ("n_ei_candidates", 0, "1 or more"),
        ("n_ei_candidates", -3, "1 or more"),
        ("n_ei_candidates", 10.5, "a whole number"),
        ("n_mc_samples", 0, "1 or more"),
        ("n_mc_samples", 99.5, "a whole number"),
        ("gamma", 0.0, "between 0 and 1"),
        ("gamma", 1.0, "between 0 and 1"),
        ("gamma", -0.1, "between 0 and 1"),
        ("gamma", NAN, "between 0 and 1"),
        ("eta", 1.0, "more than 1"),
        ("eta", 0.5, "more than 1"),
        ("eta", NAN, "more than 1"),
        ("eta", INF, "more than 1"),
        ("epsilon", -0.01, "from 0 to 1"),
        ("epsilon", 1.01, "from 0 to 1"),
        ("epsilon", NAN, "from 0 to 1"),
        ("weights", "equal", '"similarity" or "uniform"'),
        ("weights", None, '"similarity" or "uniform"'),
    ],
)
@pytest.mark.parametrize("made", [MetaTPESampler, MetaTPESampler.as_published])
def test_a_setting_out_of_its_range_is_refused_by_name_and_value(
    made: Callable[..., MetaTPESampler], setting: str, value: Any, wanted: str
) -> None:
    with pytest.raises(ValueError, match=f"^{setting} must be {wanted}, but is ") as error:
        made(**{setting: value})
    assert repr(value) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_startup_trials": 0, "n_ei_candidates": 1, "n_mc_samples": 1},
        {"gamma": 1e-6, "eta": 1.0001, "epsilon": 0.0},
        {"gamma": 1 - 1e-6, "eta": 1e6, "epsilon": 1.0},
        {"n_startup_trials": np.int64(3), "seed": np.int64(3), "gamma": np.float32(0.2)},
        {"seed": 2**70},
        {"seed": 0, "search_space": {}},
    ],
)
@pytest.mark.parametrize("n_sources", [0, 1])
def test_settings_at_the_ends_of_their_ranges_work(
    settings: dict[str, Any], n_sources: int
) -> None:
    suggested = suggestions(MetaTPESampler(pasts(n_sources), **settings), 10)
    assert all(in_space(params, SPACE) for params in suggested)
    assert len({str(params) for params in suggested}) == 10


@pytest.mark.parametrize(("epsilon", "n_random"), [(0.0, 0), (1.0, 20)])
def test_epsilon_is_how_often_a_configuration_is_random_after_the_start(
    epsilon: float, n_random: int
) -> None:
    study = new_study(MetaTPESampler(pasts(1), epsilon=epsilon, seed=0))
    evaluate(study, 25)
    told = [(r.origin, r.reason) for r in transfer_history(study)[5:]]
    assert told.count(("epsilon", "epsilon")) == n_random


# The split ---------------------------------------------------------------------------------------

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


def test_a_running_trial_counts_as_bad() -> None:
    trials = completed(range(14))  # 2 of 14 are good, and 2 of 15
    other = {"x": 0.45, "y": 0.55}
    running = next_suggestions([*trials, frozen(other, state=RUNNING)])
    assert running == next_suggestions([*trials, frozen(other, 1000.0)])
    assert running != next_suggestions([*trials, frozen({"x": 0.0, "y": 1.0}, 1000.0)])


@pytest.mark.parametrize(("value", "like"), [(INF, 1e9), (-INF, -1e9)])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_an_infinite_value_is_one_that_is_larger_or_smaller_than_all_others(
    value: float, like: float, direction: str
) -> None:
    def with_extremes(extreme: float) -> list[FrozenTrial]:
        return [frozen(p, extreme if i in (3, 8) else float(i)) for i, p in enumerate(POINTS)]

    assert next_suggestions(with_extremes(value), directions=[direction]) == next_suggestions(
        with_extremes(like), directions=[direction]
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


# Weights -----------------------------------------------------------------------------------------


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
        assert (record.reason, record.kept) == ("weighed", ())


def test_the_kept_parameters_are_those_that_matter() -> None:
    def by_x(params: Params) -> list[float]:
        return [(params["x"] - 0.3) ** 2, (params["x"] - 0.35) ** 2]

    source = past_study(by_x, space=SQUARE, n=60)
    record = next_record(settled(sources=[source], start="random"), history(by_x))
    assert record.kept == ("x",)


def test_a_source_of_weight_zero_changes_no_suggestion() -> None:
    trials = history(corner(0.1, 0.1), n=60)
    rng = np.random.default_rng(0)
    X = np.vstack([0.99 + 0.001 * rng.random((12, 2)), 0.5 * rng.random((48, 2))])
    far = Task("past", Space(SQUARE), X, np.repeat([[0.0, 0.0], [1.0, 1.0]], [12, 48], axis=0))
    record = next_record(settled(sources=[far], start="random"), trials)
    assert record.weights == {"target": 1.0, "past": pytest.approx(0.0)}
    assert next_suggestions(trials, directions=TWO, sources=[far]) == next_suggestions(
        trials, directions=TWO
    )


@pytest.mark.parametrize("where", [{"other": SQUARE["x"]}, {"x": FloatDistribution(7.0, 8.0)}])
def test_a_source_without_a_value_in_the_space_changes_no_suggestion(
    where: dict[str, BaseDistribution],
) -> None:
    trials = history(corner(0.2, 0.3))
    sources = [past_study(space=where)]
    assert next_suggestions(trials, directions=TWO, sources=sources) == next_suggestions(
        trials, directions=TWO
    )


def test_the_order_of_the_sources_changes_no_weight() -> None:
    sources = [past_study(corner(v, v), space=SQUARE, name=str(v), n=40) for v in (0.1, 0.3, 0.9)]
    one, other = (
        next_record(settled(sources=ordered), history(corner(0.1, 0.1))).weights
        for ordered in (sources, sources[::-1])
    )
    assert one == pytest.approx(other)


def test_a_task_of_literals_is_a_source() -> None:
    X = np.array([[0.1, 0.2], [0.5, 0.5], [0.9, np.nan]])
    task = Task("literal", Space(SQUARE), X, np.array([[1.0, 0.0], [0.0, 1.0], [2.0, np.inf]]))
    sampler = MetaTPESampler([task], start="draw", n_startup_trials=2)
    suggested = suggestions(sampler, 2, space=SQUARE)
    assert sorted(p["x"] for p in suggested) == pytest.approx([0.1, 0.5])


# Silence -----------------------------------------------------------------------------------------


def records_of(n: int, **settings: Any) -> list[TransferRecord]:
    """Return the records of a study of one objective."""
    sampler = MetaTPESampler(pasts(2, directions=ONE), epsilon=0.0, seed=0, **settings)
    study = new_study(sampler, ONE)
    evaluate(study, n)
    return transfer_history(study)


@pytest.mark.parametrize("eta", [1.5, 2.5, 5.0])
def test_after_its_warm_starts_the_past_is_silent_until_three_observations_are_good(
    eta: float,
) -> None:
    records = records_of(24, eta=eta)
    # At most two of 20 are good.
    assert [r.reason for r in records[5:21]] == ["silent"] * 16
    assert all(r.weights["target"] == 1.0 for r in records[5:21])
    assert {r.reason for r in records[21:]} <= {"weighed", "own"}
    assert all(r.weights["target"] < 1.0 for r in records[21:])


def test_after_a_random_start_the_past_has_weight_from_the_first_choice_on() -> None:
    records = records_of(8, start="random")
    assert all(r.weights["target"] < 1.0 for r in records[5:])


# Turns -------------------------------------------------------------------------------------------

Turn = Literal["weighed", "own"]


def turns_of(study: Study) -> list[str]:
    return [r.reason for r in transfer_history(study) if r.reason in ("weighed", "own")]


def chosen_before(turn: Turn, x: float) -> FrozenTrial:
    """Return a trial that was chosen in a turn, and ended well where x is small."""
    trial = frozen({"x": x, "y": x}, [x, x])
    trial.system_attrs.update(system_attributes(Plan("acquisition", turn)))
    return trial


def test_most_choices_are_weighed_where_the_past_fits_and_some_are_the_studys_own() -> None:
    past = past_study(corner(0.0, 0.0), space=SQUARE, n=50)
    study = new_study(MetaTPESampler([past], epsilon=0.0, seed=0))
    evaluate(study, 60, space=SQUARE, losses=corner(0.0, 0.0))
    records = [r for r in transfer_history(study) if r.origin == "acquisition"]
    assert all((r.reason in ("weighed", "own")) == (r.weights["target"] < 1.0) for r in records)
    turns = turns_of(study)
    assert 0.5 < turns.count("weighed") / len(turns) < 1.0


@pytest.mark.parametrize("better", ["weighed", "own"])
def test_turns_go_to_what_has_improved_the_front(better: Turn) -> None:
    turns: list[Turn] = ["weighed", "own"]
    trials = [chosen_before(turn, 0.1 if turn == better else 0.9) for turn in turns * 20]
    past = past_study(corner(0.1, 0.1), space=SQUARE, n=50)
    study = new_study(settled(sources=[past], start="random"), trials=trials)
    for _ in range(20):
        study.ask(SQUARE)
    assert turns_of(study) == [better] * 20


@pytest.mark.parametrize("settings", [{"weights": "uniform"}, {}], ids=["naive", "switched off"])
def test_without_turns_every_choice_is_weighed(settings: dict[str, Any]) -> None:
    sampler = settled(sources=pasts(1, space=SQUARE), start="random", **settings)
    if not settings:
        sampler.rules = replace(sampler.rules, turns=False)
    study = new_study(sampler)
    evaluate(study, 15, space=SQUARE, losses=corner(0.0, 0.0))
    assert turns_of(study) == ["weighed"] * 14  # nothing is known of the space of the first one


# As published ------------------------------------------------------------------------------------

published = MetaTPESampler.as_published


def published_at_once(sources: Sequence[Study | Task] = (), **settings: Any) -> MetaTPESampler:
    return published(sources, **{"n_startup_trials": 0, "epsilon": 0.0, "seed": 1, **settings})


def test_the_published_start_is_the_draw() -> None:
    study = new_study(published(sources := pasts(2), seed=0))
    assert evaluate(study, 5) == suggestions(MetaTPESampler(sources, start="draw", seed=0), 5)
    assert [r.reason for r in transfer_history(study)] == ["best"] * 5


def test_no_guard_takes_weight_from_a_reversed_past() -> None:
    def reverse(params: Params) -> list[float]:
        return [-loss for loss in corner(0.5, 0.5)(params)]

    # All evaluations are spent where the past was good, and those closest to it are the worst.
    points = [{"x": 0.3 + 0.4 * p["x"], "y": 0.3 + 0.4 * p["y"]} for p in spread(60)]
    trials = [frozen(p, reverse(p)) for p in points]
    past = past_study(corner(0.5, 0.5), space=SQUARE, n=100)
    guarded, plain = (
        next_record(sampler, trials).weights["past"]
        for sampler in (settled(sources=[past]), published_at_once([past]))
    )
    assert guarded < 0.01
    assert plain > 0.1


def test_as_published_no_choice_is_silent_or_made_without_the_past() -> None:
    study = new_study(published(pasts(2, space=SQUARE), epsilon=0.0, seed=0))
    evaluate(study, 40, space=SQUARE)
    assert [r.reason for r in transfer_history(study)[5:]] == ["weighed"] * 35


def with_front(n_front: int) -> list[FrozenTrial]:
    """Return 15 trials with a front, the ends of which are the first two of them."""
    step = 10.0 / (n_front - 1)
    inner = [[step * i, 10.0 - step * i] for i in range(1, n_front - 1)]
    dominated = [[50.0 + i, 50.0 + i] for i in range(15 - n_front)]
    front = [[0.0, 10.0], [10.0, 0.0], *inner]
    return [frozen(p, v) for p, v in zip(POINTS, [*front, *dominated], strict=True)]


def next_published(trials: list[FrozenTrial], **settings: Any) -> list[Params]:
    study = new_study(published_at_once(**settings), trials=trials)
    return [study.ask(SQUARE).params for _ in range(3)]


def test_the_published_split_is_a_fraction_however_long_the_front_is() -> None:
    # Two of 15 are good, and with our rule three where the front has so many.
    assert next_published(with_front(6)) == next_published(with_front(2))
    ours = [next_suggestions(with_front(n), directions=TWO) for n in (6, 2)]
    assert ours[0] != ours[1]


@pytest.mark.parametrize(("gamma", "n_good"), [(0.1, 2), (0.2, 3), (0.21, 4), (0.4, 6)])
def test_the_published_split_has_ceil_gamma_n_good_observations(gamma: float, n_good: int) -> None:
    same = [frozen(p, float(i)) for i, p in enumerate(POINTS)]

    def after(trials: list[FrozenTrial]) -> list[Params]:
        study = new_study(published_at_once(gamma=gamma), ONE, trials=trials)
        return [study.ask(SQUARE).params for _ in range(3)]

    # What counts is which are good, not their values; the last good one and the first bad one
    # change places in the second case.
    within, across = list(range(15)), list(range(15))
    within[0], within[n_good - 1] = within[n_good - 1], within[0]
    across[n_good - 1], across[n_good] = across[n_good], across[n_good - 1]
    assert after([frozen(p, float(i)) for i, p in zip(within, POINTS, strict=True)]) == after(same)
    assert after([frozen(p, float(i)) for i, p in zip(across, POINTS, strict=True)]) != after(same)


@pytest.mark.parametrize(
    ("n", "eta", "n_kept"),
    [(20, 2.5, 0), (21, 2.5, 1), (70, 2.5, 2), (20, 1.9, 1), (40, 4.1, 0), (50, 4.1, 1)],
)
def test_below_eta_good_observations_no_parameter_is_kept_and_all_tasks_weigh_the_same(
    n: int, eta: float, n_kept: int
) -> None:
    sources = [past_study(corner(v, v), space=SQUARE, name=str(v), n=40) for v in (0.1, 0.9)]
    record = next_record(published_at_once(sources, eta=eta), history(corner(0.1, 0.1), n))
    assert len(record.kept) == n_kept
    third = pytest.approx(1 / 3, abs=1e-5)
    if n_kept == 0:
        assert record.weights == {"target": third, "0.1": third, "0.9": third}
    else:
        assert record.weights["0.1"] > record.weights["0.9"]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The candidates of each choice, one after the other."""
    found: list[np.ndarray] = []
    draw_candidates = densities.draw_candidates

    def watched(*args: Any, **kwargs: Any) -> np.ndarray:
        found.append(draw_candidates(*args, **kwargs))
        return found[-1]

    monkeypatch.setattr(densities, "draw_candidates", watched)
    return found


def n_near(X: np.ndarray, x: float, y: float) -> int:
    return int((np.abs(X - [x, y]) < 0.25).all(axis=1).sum())


def test_as_published_each_task_gives_as_many_candidates(drawn: list[np.ndarray]) -> None:
    sources = [past_study(corner(v, v), space=SQUARE, name=str(v), n=200) for v in (0.1, 0.9)]
    for sampler in (published_at_once, settled):
        next_record(sampler(sources=sources, n_ei_candidates=50), history(corner(0.1, 0.1), 60))
    as_published, ours = drawn
    assert len(as_published) == 3 * 50
    assert 30 <= n_near(as_published, 0.9, 0.9) <= 60  # those of the task with little weight
    assert n_near(ours, 0.9, 0.9) < 15  # in proportion to the weights


def test_as_published_a_candidate_comes_from_one_observation(drawn: list[np.ndarray]) -> None:
    def two_corners(params: Params) -> list[float]:
        return [min(corner(v, v)(params)[0] for v in (0.1, 0.9))]

    for sampler in (published_at_once, settled):
        next_record(sampler(n_ei_candidates=1000), history(two_corners, 500))
    as_published, ours = (n_near(X, 0.1, 0.9) + n_near(X, 0.9, 0.1) for X in drawn)
    assert as_published < 30
    assert ours > 200  # column by column


def test_as_published_configurations_may_repeat_in_a_finite_space() -> None:
    study = new_study(published(pasts(1, space=GRID), seed=0))
    evaluate(study, 24, space=GRID)
    assert len(set(configurations(study))) < 20


@pytest.mark.parametrize(
    "copied",
    [lambda s: s, copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))],
    ids=["same", "copy", "deepcopy", "pickle"],
)
def test_copies_of_the_published_method_are_the_published_method(
    copied: Callable[[MetaTPESampler], MetaTPESampler],
) -> None:
    sources = pasts(1, space=GRID)
    sampler = copied(published(sources, seed=0))
    study = new_study(sampler)
    suggested = evaluate(study, 12, space=GRID)
    assert suggested == suggestions(published(sources, seed=0), 12, space=GRID)
    assert suggested != suggestions(MetaTPESampler(sources, seed=0), 12, space=GRID)
    assert {r.sampler for r in transfer_history(study)} == {"MetaTPESampler.as_published"}
    assert str(sampler) == "MetaTPESampler.as_published(1 source, seed=0)"


def test_the_published_method_changes_no_other_sampler() -> None:
    before = suggestions(MetaTPESampler(seed=0), 12)
    published(seed=0)
    study = new_study(MetaTPESampler(seed=0))
    assert evaluate(study, 12) == before
    assert {r.sampler for r in transfer_history(study)} == {"MetaTPESampler"}
