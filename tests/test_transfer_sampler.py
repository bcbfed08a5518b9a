"""TransferSampler: Optuna's contract, the rules of the other samplers, and what is its own."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import moocore
import numpy as np
import optuna
import pytest
from hypothesis import given
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, PartialFixedSampler
from optuna.study import Study
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)
from optuna.trial import FrozenTrial, TrialState
from studies import (
    GRID,
    ONE,
    SQUARE,
    TWO,
    Losses,
    Params,
    answer_of,
    asked,
    evaluate,
    frozen,
    in_space,
    new_study,
    past_study,
    random_sampler,
    spread,
    start_python,
    suggestions,
    two_losses,
)
from test_contract import PASTS, past_tasks
from test_sampler_properties import cases, check_suggestions, few

from metatpe import (
    MetaTPESampler,
    Space,
    Task,
    TransferSampler,
    transfer_history,
    transfer_sampler,
)
from metatpe.gp.informed import inform
from metatpe.gp.transform import all_scores
from metatpe.samplers.transfer import MAX_TASKS, _best_on_its_scale, _doubt
from metatpe.study.record import Plan
from metatpe.tpe.pareto import levels

INF = float("inf")


def bowls(params: Params) -> list[float]:
    """Return four losses, each best at another place."""
    x, y = params["x"], params["y"]
    centres = [(0.2, 0.3), (0.4, 0.5), (0.2, 0.5), (0.4, 0.3)]
    return [(x - a) ** 2 + (y - b) ** 2 for a, b in centres]


def bowl(params: Params) -> list[float]:
    """Return two losses with a front between (0.2, 0.3) and (0.4, 0.5)."""
    return bowls(params)[:2]


def upside_down(params: Params) -> list[float]:
    return [-f for f in bowls(params)]


def unrelated(params: Params) -> list[float]:
    x, y = params["x"], params["y"]
    return [np.sin(9 * x) * np.cos(7 * y), np.cos(11 * x + 3 * y)]


def past_of(losses: Losses, name: str = "past", *, n_objectives: int = 2, **kwargs: Any) -> Study:
    directions = ["minimize"] * n_objectives
    return past_study(
        lambda params: losses(params)[:n_objectives],
        space=SQUARE,
        name=name,
        directions=directions,
        **{"n": 40, **kwargs},
    )


def at_once(sources: Sequence[Study | Task] = (), **settings: Any) -> TransferSampler:
    """Return a seeded sampler without a start-up."""
    return TransferSampler(sources, **{"seed": 0, "n_startup_trials": 0, **settings})


def after(
    trials: Sequence[FrozenTrial],
    sources: Sequence[Study | Task] = (),
    *,
    directions: Sequence[str] = TWO,
    n: int = 1,
) -> list[Params]:
    """Return what is suggested after a given history, while nobody finishes."""
    return asked(new_study(at_once(sources), directions, trials=trials), n)


def history(n: int = 12) -> list[FrozenTrial]:
    return [frozen(p, bowl(p)) for p in spread(n)]


def reached(study: Study, reference: float = 0.3) -> float:
    """Return the dominated hypervolume."""
    values = np.array([trial.values for trial in study.trials])
    return float(moocore.hypervolume(values, ref=np.full(values.shape[1], reference)))


# Optuna's contract -------------------------------------------------------------------------------


class _Sampler:
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return sampler_of("same names, defaults", 1)


class TestBasic(_Sampler, BasicSamplerTestCase):
    pass


class TestRelative(_Sampler, RelativeSamplerTestCase):
    pass


class _AnySampler:
    @pytest.fixture(
        params=[
            "no sources, no start-up",
            "same names, no start-up",
            "other ranges, defaults",
            "other choices, no start-up",
            "nothing in common, defaults",
        ]
    )
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        return sampler_of(request.param, 1)


def sampler_of(case: str, n_objectives: int) -> Callable[[], BaseSampler]:
    past, start = case.split(", ")
    sources = past_tasks(PASTS[past], n_objectives)
    if start == "defaults":
        return lambda: TransferSampler(sources)
    return lambda: TransferSampler(sources, n_startup_trials=0)


@pytest.mark.slow
class TestBasicOfAnyPast(_AnySampler, BasicSamplerTestCase):
    pass


@pytest.mark.slow
class TestRelativeOfAnyPast(_AnySampler, RelativeSamplerTestCase):
    pass


@pytest.mark.slow
class TestMultiObjective(MultiObjectiveSamplerTestCase):
    @pytest.fixture(params=["same names, defaults", "other choices, no start-up"])
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        return sampler_of(request.param, 2)


# Transfer ----------------------------------------------------------------------------------------


def test_the_first_trials_are_the_warm_starts_and_then_the_acquisition_decides() -> None:
    past = past_of(bowl)
    study = new_study(TransferSampler([past], seed=0))
    given = evaluate(study, 12, space=SQUARE, losses=bowl)
    warm = suggestions(MetaTPESampler([past], seed=0), 5, losses=bowl, space=SQUARE)
    assert given[:5] == warm
    origins = [r.origin for r in transfer_history(study)]
    assert origins == ["warm_start"] * 5 + ["acquisition"] * 7


@pytest.mark.parametrize("warm_start", [True, False])
@pytest.mark.parametrize("n_objectives", [1, 2, 3, 4])
def test_weights_name_every_source_and_sum_to_one(n_objectives: int, warm_start: bool) -> None:
    sources = [past_of(bowls, f"past {i}", seed=i, n_objectives=n_objectives) for i in range(3)]
    sampler = TransferSampler(sources, seed=0, n_startup_trials=3, warm_start=warm_start)
    study = new_study(sampler, ["minimize"] * n_objectives)
    evaluate(study, 8, space=SQUARE, losses=bowls)
    records = [r for r in transfer_history(study) if r.origin == "acquisition"]
    assert len(records) >= 3
    for record in records:
        assert set(record.weights) == {"target", "past 0", "past 1", "past 2"}
        assert sum(record.weights.values()) == pytest.approx(1.0, abs=1e-5)
        assert min(record.weights.values()) >= 0.0


@pytest.mark.parametrize("n_objectives", [1, 2])
def test_from_the_fiftieth_observation_on_some_choices_are_made_as_if_there_were_no_past(
    n_objectives: int,
) -> None:
    directions, past = ["minimize"] * n_objectives, past_of(bowls, n_objectives=n_objectives)
    failed = [frozen({"x": 0.5, "y": 0.5}, state=TrialState.FAIL)] * 10  # no observations
    trials = failed + [frozen(p, bowls(p)[:n_objectives]) for p in spread(62)]
    is_alone, is_led = [], []
    for n in range(58, 72):
        study = new_study(TransferSampler([past], seed=0), directions, trials=trials[:n])
        alone = new_study(TransferSampler(seed=0), directions, trials=trials[:n])
        is_alone.append(study.ask(SQUARE).params == alone.ask(SQUARE).params)
        is_led.append(bool(transfer_history(study)[-1].weights))
        assert transfer_history(alone)[-1].weights == {"target": 1.0}
    assert is_led == [not own for own in is_alone]
    assert is_led[:2] == [True, True]
    assert any(is_alone)


def test_one_of_two_choices_after_the_fiftieth_is_made_without_the_past_by_chance() -> None:
    study = new_study(sampler := TransferSampler([past_of(bowl)], seed=0))
    study.add_trials([frozen(p, bowl(p)) for p in spread(300)])
    is_own = []
    for trial in study.trials[50:]:
        moment = sampler._moment(study, trial, Space(SQUARE))
        is_own.append(sampler._is_own_turn(moment))
    assert 0.4 < np.mean(is_own) < 0.6
    is_other = np.diff(np.array(is_own, dtype=int)) != 0
    assert 0.4 < is_other.mean() < 0.6  # not in turn


@pytest.fixture
def by_densities(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """What densities have chosen, one after the other."""
    plans: list[Plan] = []
    chosen = MetaTPESampler._by_densities

    def watched(*args: Any, **kwargs: Any) -> Plan:
        plans.append(chosen(*args, **kwargs))
        return plans[-1]

    monkeypatch.setattr(MetaTPESampler, "_by_densities", watched)
    return plans


def noisy(params: Params) -> list[float]:
    """Return two losses, the second of which has nothing to do with the parameters."""
    return [bowl(params)[0], float(np.random.default_rng([int(1e9 * params["x"])]).normal())]


@pytest.mark.parametrize(("losses", "fewest", "most"), [(bowl, 0, 2), (noisy, 8, 20)])
def test_what_the_model_cannot_order_is_left_to_densities_after_the_fiftieth_observation(
    losses: Losses, fewest: int, most: int, by_densities: list[Plan]
) -> None:
    trials = [frozen(p, losses(p)) for p in spread(70)]
    n_chosen = []
    for n in range(45, 70):
        before = len(by_densities)
        params = new_study(TransferSampler(seed=0), trials=trials[:n]).ask(SQUARE).params
        n_chosen.append(len(by_densities) - before)
        assert not n_chosen[-1] or params == by_densities[-1].params
    assert sum(n_chosen[:5]) == 0
    assert fewest <= sum(n_chosen[5:]) <= most


def test_densities_choose_without_the_past_where_the_model_would(by_densities: list[Plan]) -> None:
    past, turns, is_alone = past_of(bowl), [], []
    for n in range(50, 80):
        trials = [frozen(p, noisy(p)) for p in spread(n)]
        before = len(by_densities)
        study = new_study(TransferSampler([past], seed=0), trials=trials)
        params = study.ask(SQUARE).params
        if len(by_densities) > before:
            plan, (record,) = by_densities[before], transfer_history(study)
            turns.append(plan.turn)
            assert (record.turn, record.kept) == (None, ())
            assert (plan.turn == "own") == (not record.weights)
            assert record.weights != plan.weights  # but those of the model
            alone = new_study(TransferSampler(seed=0), trials=trials)
            is_alone.append(params == alone.ask(SQUARE).params)
    assert {*turns} == {"own", "past"}
    assert all(same for same, turn in zip(is_alone, turns, strict=True) if turn == "own")
    assert not all(is_alone)


def test_densities_choose_nothing_that_was_evaluated_while_there_is_something_new(
    by_densities: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_sampler, "_doubt", lambda models: 1.0)
    study = new_study(TransferSampler(seed=0), ONE)
    space = {"a": IntDistribution(0, 5), "b": CategoricalDistribution(("u", "v"))}
    suggested = evaluate(study, 12, space=space, losses=lambda p: [float(p["a"])])
    assert len({tuple(params.values()) for params in suggested}) == 12
    assert len(by_densities) == 7


def test_densities_do_not_evaluate_a_finite_branch_over_and_over(
    by_densities: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_sampler, "_doubt", lambda models: 1.0)

    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("kind", ["tree", "net"]) == "tree":  # six, and the best ones
            return 0.1 * trial.suggest_int("depth", 1, 6)
        return 1.5 + trial.suggest_float("width", 0.0, 1.0)

    study = new_study(TransferSampler(seed=0), ONE)
    study.optimize(objective, n_trials=40)
    found = [tuple(trial.params.values()) for trial in study.trials]
    assert len(by_densities) == 35
    assert {(("tree", depth)) for depth in range(1, 7)} <= {*found}
    assert len({*found[15:]}) == 25  # once it is known which parameters a branch has


@pytest.mark.parametrize("n_objectives", [1, 2])
def test_while_no_trial_is_feasible_the_search_goes_to_where_less_is_violated(
    n_objectives: int,
) -> None:
    def objective(trial: optuna.Trial) -> list[float]:
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        trial.set_constraint("c", abs(x - 0.3) + abs(y - 0.6) + 0.1)  # never below 0
        return [x, y][:n_objectives]

    study = new_study(TransferSampler(seed=0), ["minimize"] * n_objectives)
    study.optimize(objective, n_trials=40)  # type: ignore[arg-type]
    off = np.abs([[t.params["x"] - 0.3, t.params["y"] - 0.6] for t in study.trials]).sum(axis=1)
    assert len({*off.round(6)}) == 40
    assert np.median(off[20:]) < 0.7 * np.median(off[:10])


@pytest.mark.parametrize("n_objectives", [1, 2, 3, 4])
def test_a_past_that_fits_leads_to_the_best_at_once(n_objectives: int) -> None:
    past = past_of(bowls, n=60, n_objectives=n_objectives)
    study = new_study(at_once([past]), ["minimize"] * n_objectives)
    evaluate(study, 5, space=SQUARE, losses=bowls)
    # All is dominated outside of the square between the four centres, which is 1/25 of the space.
    places = np.array([[t.params["x"], t.params["y"]] for t in study.trials])
    off = np.maximum(np.abs(places - [0.3, 0.4]) - 0.1, 0.0).max(axis=1)
    assert np.median(off) < 0.1


@pytest.mark.parametrize("n_objectives", [1, 2, 3, 4])
def test_without_sources_the_study_alone_finds_the_best(n_objectives: int) -> None:
    study = new_study(TransferSampler(seed=0), ["minimize"] * n_objectives)
    evaluate(study, 20, space=SQUARE, losses=bowls)
    by_chance = new_study(random_sampler(0), ["minimize"] * n_objectives)
    evaluate(by_chance, 40, space=SQUARE, losses=bowls)
    assert reached(study) > reached(by_chance)
    assert all(r.weights == {"target": 1.0} for r in transfer_history(study) if r.weights)


def test_the_same_study_has_most_of_the_weight_and_an_unrelated_one_little() -> None:
    sources = [past_of(bowl, "same", n=60), past_of(unrelated, "unrelated", n=60, seed=1)]
    study = new_study(at_once(sources), trials=history(10))
    evaluate(study, 4, space=SQUARE, losses=bowl)
    weights = next(r for r in transfer_history(study) if r.origin == "acquisition").weights
    assert weights["same"] > 0.7
    assert weights["unrelated"] < 0.1


@pytest.mark.parametrize("losses", [upside_down, unrelated])
def test_a_past_that_does_not_fit_does_no_harm(losses: Losses) -> None:
    sources = [past_of(losses, f"past {i}", seed=i, n_objectives=1) for i in range(2)]
    for seed in range(3):
        best = []
        for past in (sources, []):
            study = new_study(TransferSampler(past, seed=seed), ONE)
            evaluate(study, 20, space=SQUARE, losses=bowl)
            best.append(study.best_value)
        # Twenty random ones reach 2e-3 to 6e-2.
        assert best[0] < 1e-3
        assert best[0] < 5.0 * best[1] + 2e-4


def test_two_objectives_upside_down_cost_little_of_the_front() -> None:
    sources = [past_of(upside_down, f"past {i}", seed=i) for i in range(2)]
    for seed in range(2):
        found = []
        for past in (sources, []):
            study = new_study(TransferSampler(past, seed=seed))
            evaluate(study, 20, space=SQUARE, losses=bowl)
            found.append(reached(study))
        assert found[0] > 0.97 * found[1]


def test_objectives_are_matched_by_their_names_whatever_their_order() -> None:
    def swapped(params: Params) -> list[float]:
        return bowl(params)[::-1]

    found = []
    for losses, names in ((bowl, ["f", "g"]), (swapped, ["g", "f"])):
        past = past_of(losses)
        past.set_metric_names(names)
        study = new_study(at_once([past], warm_start=False))
        study.set_metric_names(["f", "g"])
        found.append(evaluate(study, 3, space=SQUARE, losses=bowl))
    assert found[0] == found[1]


def test_studies_and_tasks_are_the_same_sources() -> None:
    past = past_of(bowl)
    as_task = Task.from_study(past, name="past")
    of_study, of_task = (
        suggestions(at_once([source]), 3, losses=bowl, space=SQUARE) for source in (past, as_task)
    )
    assert of_study == of_task


@pytest.mark.parametrize(
    "space",
    [
        {"x": FloatDistribution(0.1, 3.0, log=True), "y": IntDistribution(0, 4)},
        {"x": CategoricalDistribution((0.0, 0.25, "none")), "y": FloatDistribution(0.3, 0.9)},
        {"p": FloatDistribution(0.0, 1.0), "q": CategoricalDistribution(("a", "b"))},
        {"x": FloatDistribution(0.0, 1.0), "new": IntDistribution(1, 1000, log=True)},
    ],
    ids=["other ranges", "other choices", "nothing in common", "one in common"],
)
@pytest.mark.parametrize("n_startup_trials", [0, 5])
def test_a_past_of_another_space_is_used_as_far_as_it_goes(
    space: dict[str, Any], n_startup_trials: int
) -> None:
    study = new_study(at_once([past_of(bowl)], n_startup_trials=n_startup_trials))
    for params in evaluate(study, 9, space=space, losses=two_losses):
        assert set(params) == set(space)
        assert in_space(params, space)


# More than ten sources ---------------------------------------------------------------------------


def many_sources(n: int) -> list[Study]:
    """Return sources of which the last one alone fits."""
    kinds = (unrelated, upside_down)
    past = [past_of(kinds[i % 2], f"past {i}", n=25, seed=i) for i in range(n - 1)]
    return [*past, past_of(bowl, "fits", n=25, seed=n)]


def test_of_many_sources_the_one_that_fits_is_among_the_chosen() -> None:
    study = new_study(at_once(many_sources(14)), trials=history(8))
    evaluate(study, 6, space=SQUARE, losses=bowl)
    records = [r for r in transfer_history(study) if r.origin == "acquisition"]
    assert len(records) >= 4
    for record in records:
        assert len(record.weights) == 15
        assert sum(record.weights.values()) == pytest.approx(1.0, abs=1e-5)
        assert sum(w > 0.0 for name, w in record.weights.items() if name != "target") <= MAX_TASKS
        assert record.weights["fits"] > 0.05


def test_agreement_is_how_well_a_past_task_orders_the_observations() -> None:
    sampler = at_once([past_of(bowl, "same"), past_of(upside_down, "reversed", seed=1)])
    past, points = sampler._past(Space(SQUARE)), spread(20)
    X = np.array([[p["x"], p["y"]] for p in points])
    losses = np.array([bowl(p) for p in points])
    level = levels(losses, np.zeros(20), np.zeros((20, 3)))
    same, reverse = past.agreement(X, level)
    assert 0.4 < same <= 1.0
    assert -1.0 <= reverse < -0.4
    np.testing.assert_allclose(past.agreement(X, -level), [-same, -reverse])
    np.testing.assert_array_equal(past.agreement(X[:0], np.zeros(0, dtype=np.int64)), [0.0, 0.0])


def test_many_sources_before_any_observation_are_no_reason_for_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(suggestions(at_once(many_sources(12)), 3, losses=bowl, space=SQUARE)) == 3


# Seeds -------------------------------------------------------------------------------------------


def seeded(seed: int | None = 3) -> TransferSampler:
    return TransferSampler([past_of(bowl, n=20)], seed=seed, n_startup_trials=2)


def eight(sampler: BaseSampler) -> list[Params]:
    return suggestions(sampler, 8, losses=bowl, space=SQUARE)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_the_same_seed_gives_the_same_suggestions_to_copies_too(
    copied: Callable[[BaseSampler], BaseSampler],
) -> None:
    sampler = seeded()
    first = eight(sampler)
    assert eight(copied(sampler)) == first
    assert eight(seeded(4))[2:] != first[2:]


def test_the_same_seed_gives_the_same_suggestions_in_other_processes() -> None:
    code = "import json, test_transfer_sampler as t; print(json.dumps(t.eight(t.seeded())))"
    processes = [start_python(code, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    here = json.loads(json.dumps(eight(seeded())))
    for process in processes:
        assert answer_of(process) == here


def test_a_sampler_that_comes_in_later_suggests_what_the_first_one_would() -> None:
    study = new_study(seeded())
    evaluate(study, 9, space=SQUARE, losses=bowl)
    later = new_study(seeded(), trials=study.trials[:8])
    assert evaluate(later, 1, space=SQUARE, losses=bowl) == [study.trials[8].params]


def test_reseeding_changes_the_suggestions() -> None:
    reseeded = [seeded(), seeded()]
    for sampler in reseeded:
        sampler.reseed_rng()
    plain, first, second = (eight(s)[2:] for s in (seeded(), *reseeded))
    assert not any(params in plain for params in first)
    assert not any(params in second for params in first)


def test_a_sampler_serves_studies_in_turn_as_a_fresh_one_would() -> None:
    sampler = seeded()
    one, other = new_study(sampler), new_study(sampler)
    in_turn = [
        evaluate(study, 1, space=space, losses=two_losses)[0]
        for _ in range(5)
        for study, space in ((one, SQUARE), (other, GRID))
    ]
    assert in_turn[::2] == suggestions(seeded(), 5, space=SQUARE)
    assert in_turn[1::2] == suggestions(seeded(), 5, space=GRID)


def test_a_pickle_does_not_grow_when_the_sampler_is_used() -> None:
    sampler = seeded()
    before = len(pickle.dumps(sampler))
    eight(sampler)
    assert len(pickle.dumps(sampler)) == before


# States ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_sources", [0, 1])
def test_failed_trials_are_ignored(n_sources: int) -> None:
    found = []
    for where in ({"x": 0.1, "y": 0.1}, {"x": 0.9, "y": 0.2}):
        trials = history()
        trials.insert(5, frozen(where, state=TrialState.FAIL))
        found.append(after(trials, [past_of(bowl)] * n_sources))
    assert found[0] == found[1]


def test_a_pruned_trial_is_as_bad_as_the_worst() -> None:
    trials = history()
    spot = {"x": 0.3, "y": 0.4}  # in the middle of the front
    worst = np.max([t.values for t in trials], axis=0).tolist()
    pruned, bad = (
        after([*trials, trial])
        for trial in (frozen(spot, state=TrialState.PRUNED), frozen(spot, worst))
    )
    assert pruned == bad
    assert after([*trials, frozen(spot, bowl(spot))]) != bad


def test_an_objective_that_prunes_is_served_under_hyperband() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(9):
            trial.report((x - 0.3) ** 2 + 0.1 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return (x - 0.3) ** 2

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study = optuna.create_study(sampler=TransferSampler(seed=0), pruner=pruner)
    study.optimize(objective, n_trials=25)
    assert any(t.state == TrialState.PRUNED for t in study.trials)
    assert study.best_value < 0.01


@pytest.mark.parametrize("n_sources", [0, 1])
def test_ten_trials_that_run_at_the_same_time_differ(n_sources: int) -> None:
    given = after(history(), [past_of(bowl)] * n_sources, n=10)
    points = np.array([[params["x"], params["y"]] for params in given])
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)[np.triu_indices(10, k=1)]
    assert apart.min() > 0.01
    assert apart.max() > 0.1


def test_a_running_trial_that_was_left_behind_does_not_count() -> None:
    running = {"x": 0.3, "y": 0.4}
    left_behind, there, elsewhere = (
        after([*history(), trial])
        for trial in (
            frozen(running, state=TrialState.RUNNING, age=1e6),
            frozen({"x": 0.9, "y": 0.9}, state=TrialState.RUNNING, age=1e6),
            frozen(running, state=TrialState.RUNNING),
        )
    )
    assert left_behind == there
    assert left_behind != elsewhere


@pytest.mark.parametrize("best", [0.2, 0.8])
def test_what_was_enqueued_is_kept_and_the_rest_is_chosen_for_it(best: float) -> None:
    trials = [frozen(p, (p["y"] - best) ** 2) for p in spread(15)]
    study = new_study(at_once(), ONE, trials=trials)
    study.enqueue_trial({"x": 0.75})
    params = study.ask(SQUARE).params
    assert params["x"] == 0.75
    assert params["y"] == pytest.approx(best, abs=0.1)


def test_a_partial_fixed_sampler_fixes_its_parameters_and_the_rest_is_chosen() -> None:
    sampler = PartialFixedSampler({"x": 0.6}, TransferSampler([past_of(bowl)], seed=0))
    given = suggestions(sampler, 9, losses=bowl, space=SQUARE)
    assert {params["x"] for params in given} == {0.6}
    assert len({params["y"] for params in given}) == 9


@pytest.mark.parametrize("n_sources", [0, 1])
def test_a_finite_space_is_explored_without_a_repeat(n_sources: int) -> None:
    past = [past_study(space=GRID, n=24)] * n_sources
    tried = suggestions(TransferSampler(past, seed=0), 24, space=GRID)
    assert len({repr(sorted(params.items())) for params in tried}) == 24


def test_four_threads_share_a_sampler() -> None:
    study = new_study(TransferSampler([past_of(bowl)], seed=0))

    def objective(trial: optuna.Trial) -> list[float]:
        return bowl({name: trial.suggest_float(name, 0.0, 1.0) for name in ("x", "y")})

    study.optimize(objective, n_trials=20, n_jobs=4)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    assert len({tuple(t.params.values()) for t in study.trials}) == 20


@pytest.mark.parametrize("n_sources", [0, 1])
def test_branches_are_learned(n_sources: int) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.suggest_categorical("branch", ("left", "right")) == "left":
            return x + 1.0 + trial.suggest_float("left", 0.0, 1.0)
        return x + abs(trial.suggest_int("right", 1, 50) - 30) / 50

    past = optuna.create_study(study_name="past", sampler=random_sampler(0))
    past.optimize(objective, n_trials=30)
    study = new_study(TransferSampler([past] * n_sources, seed=0), ONE)
    study.optimize(objective, n_trials=25)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    assert sum(t.params["branch"] == "right" for t in study.trials[10:]) >= 10
    assert study.best_value < 0.25


def test_ranges_that_move_with_every_trial_are_served() -> None:
    study = new_study(TransferSampler([past_of(bowl)], seed=0))
    for i in range(12):
        x, y = FloatDistribution(0.0, 0.5 + 0.1 * i), IntDistribution(0, 1 + i)
        trial = study.ask({"x": x, "y": y})
        study.tell(trial, bowl(trial.params))
        assert in_space(trial.params, {"x": x, "y": y})


# Values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        [[1.0, 1.0]] * 8,
        [[1.0, 0.1 * i] for i in range(8)],
        [[INF, 1.0], [-INF, 1.0]] * 4,
        [[INF, INF]] * 8,
        [[-INF, INF], [1.0, 2.0], [2.0, 1.0]],
        [[1e300, -1e300], [-1e300, 1e300], [0.0, 0.0]],
        [[1.0, 2.0]],
    ],
    ids=["constant", "one constant", "infinite", "all infinite", "mixed", "huge", "one"],
)
@pytest.mark.parametrize("is_one_place", [True, False])
def test_a_pathological_history_gives_a_suggestion(
    values: list[list[float]], is_one_place: bool
) -> None:
    points = [{"x": 0.5, "y": 0.5}] * 8 if is_one_place else spread(8)
    trials = [frozen(p, v) for p, v in zip(points, values, strict=False)]
    past = Task.from_study(new_study(random_sampler(0), trials=trials * 2), name="past")
    study = new_study(at_once([past]), trials=trials)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (params,) = evaluate(study, 1, space=SQUARE, losses=bowl)
    assert transfer_history(study)[-1].origin == "acquisition"
    assert in_space(params, SQUARE)


SETTINGS = ("sources", "n_startup_trials", "warm_start", "search_space", "seed")


@few
@given(case=cases())
def test_every_suggestion_lies_in_the_space_and_weights_sum_to_one(
    case: tuple[dict[str, BaseDistribution], Study, dict[str, Any]],
) -> None:
    space, study, settings = case
    study.sampler = TransferSampler(**{name: settings[name] for name in SETTINGS})
    check_suggestions(study, space)


def test_minus_infinity_is_the_best_and_infinity_the_worst() -> None:
    def nearest(value: float) -> float:
        """Return how near to a spot with such a value the next suggestion is."""
        spot = {"x": 0.8, "y": 0.8}
        trials = [frozen(p, bowl(p)[0]) for p in spread(10)] + [frozen(spot, value)] * 2
        (params,) = after(trials, directions=ONE)
        return abs(params["x"] - 0.8) + abs(params["y"] - 0.8)

    assert nearest(-INF) < 0.5 < nearest(INF)


@pytest.mark.parametrize("n_sources", [0, 1])
def test_how_good_the_values_of_infeasible_trials_are_changes_nothing(n_sources: int) -> None:
    def suggested(values: list[float], of_past: list[float]) -> list[Params]:
        def trials(points: list[Params], bad: list[float]) -> list[FrozenTrial]:
            return [
                frozen(p, bowl(p) if i % 3 else bad, constraint=-1.0 if i % 3 else 1.0)
                for i, p in enumerate(points)
            ]

        past = new_study(random_sampler(0), trials=trials(spread(30, 0.1), of_past), name="past")
        return after(trials(spread(12), values), [past] * n_sources, n=2)

    plain = suggested([100.0, 100.0], [100.0, 100.0])
    assert suggested([-100.0, -100.0], [100.0, 100.0]) == plain
    assert suggested([100.0, 100.0], [-100.0, -100.0]) == plain


@pytest.mark.parametrize("n_sources", [0, 1])
def test_constraints_that_an_objective_sets_are_learned(n_sources: int) -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        """Best at small x, which is forbidden below 0.6."""
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        trial.set_constraint("x is large", 0.6 - x)
        return x + y, x - y

    past = new_study(random_sampler(1), name="past")
    past.optimize(objective, n_trials=40)
    study = new_study(TransferSampler([past] * n_sources, seed=0))
    study.optimize(objective, n_trials=25)
    later = [t.params["x"] for t in study.trials[8:]]
    assert np.mean([x >= 0.55 for x in later]) > 0.6
    assert any(0.6 <= x < 0.68 for x in later)


@pytest.mark.parametrize(
    "directions", [("maximize", "minimize"), ("minimize", "maximize"), ("maximize", "maximize")]
)
def test_maximising_is_minimising_the_negative(directions: tuple[str, ...]) -> None:
    signs = [-1.0 if d == "maximize" else 1.0 for d in directions]

    def signed(params: Params) -> list[float]:
        return [sign * f for sign, f in zip(signs, bowl(params), strict=True)]

    past = past_study(signed, space=SQUARE, directions=directions)
    found = suggestions(at_once([past]), 4, losses=signed, space=SQUARE, directions=directions)
    same = past_study(bowl, space=SQUARE)
    assert found == suggestions(at_once([same]), 4, losses=bowl, space=SQUARE)


def test_the_scale_of_an_objective_changes_no_suggestion() -> None:
    # Powers of two, so that no digit is rounded differently.
    def scaled(params: Params) -> list[float]:
        first, second = even(params)
        return [2.0**60 * first, 2.0**-40 * second]

    def even(params: Params) -> list[float]:
        """Return losses of both signs, which no logarithm is taken of."""
        return [f - 0.25 for f in bowl(params)]

    past, past_scaled = past_of(even), past_of(scaled)
    plain = suggestions(at_once([past]), 4, losses=even, space=SQUARE)
    assert suggestions(at_once([past]), 4, losses=scaled, space=SQUARE) == plain
    assert suggestions(at_once([past_scaled]), 4, losses=even, space=SQUARE) == plain


SCALES: dict[
    str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]
] = {
    "a bowl, as it is": (lambda X: ((X - 0.3) ** 2).sum(axis=1), np.asarray),
    "orders of magnitude, as logarithms": (
        lambda X: np.exp(6.0 * np.sin(3.0 * X[:, 0]) + 4.0 * X[:, 1]),
        np.log,
    ),
}


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("seed", range(3))
def test_the_scale_is_the_one_on_which_the_losses_are_smooth(name: str, seed: int) -> None:
    losses, scale = SCALES[name]
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.random((15, 2)), 0.3 + 0.05 * rng.normal(size=(25, 2))])  # of a search
    (scores,) = all_scores(losses(X)[:, None], np.zeros(len(X)))
    is_used = np.ones(2, dtype=np.bool_)
    chosen = _best_on_its_scale(inform([], X, scores, np.arange(2), is_used))
    expected = scale(losses(X))
    np.testing.assert_allclose(chosen.y, (expected - expected.mean()) / expected.std())


@pytest.mark.parametrize(
    ("losses", "low", "high"),
    [
        (lambda X, rng: X, 0.0, 0.1),
        (lambda X, rng: X + 0.3 * rng.normal(size=X.shape), 0.2, 0.6),
        (lambda X, rng: np.column_stack([X[:, 0], rng.normal(size=len(X))]), 0.6, 1.0),
        (lambda X, rng: np.column_stack([rng.normal(size=len(X)), X[:, 0]]), 0.6, 1.0),
        (lambda X, rng: np.column_stack([X[:, 0], np.ones(len(X))]), 0.0, 0.1),
        (lambda X, rng: np.minimum(X, 0.1), 0.0, 0.1),
        (lambda X, rng: np.ones(X.shape), 1.0, 1.0),
    ],
    ids=["smooth", "noisy", "one is noise", "other", "one is constant", "ties", "constant"],
)
def test_doubt_is_what_the_worst_ordered_objective_leaves_to_the_best_possible_order(
    losses: Callable[[np.ndarray, np.random.Generator], np.ndarray], low: float, high: float
) -> None:
    rng = np.random.default_rng(0)
    X, is_used = rng.random((60, 2)), np.ones(2, dtype=np.bool_)
    scales = all_scores(losses(X, rng), np.zeros(len(X)))
    models = [inform([], X, own, np.arange(2), is_used)[0] for own in scales]
    assert low <= _doubt(models) <= high


@pytest.mark.parametrize(("n", "doubt"), [(0, 0.0), (1, 0.0), (2, 1.0), (20, 1.0)])
def test_where_all_observations_are_the_same_there_is_nothing_but_doubt(
    n: int, doubt: float
) -> None:
    X, is_used = np.random.default_rng(0).random((n, 2)), np.ones(2, dtype=np.bool_)
    assert _doubt(inform([], X, [np.zeros(n)], np.arange(2), is_used)) == doubt


# Other -------------------------------------------------------------------------------------------


def test_a_given_search_space_is_known_from_the_first_trial() -> None:
    study = new_study(at_once([past_of(bowl)], search_space=SQUARE))
    evaluate(study, 1, space=SQUARE, losses=bowl)
    assert transfer_history(study)[0].origin == "acquisition"


def test_another_number_of_objectives_is_refused_by_the_name_of_the_source() -> None:
    study = new_study(TransferSampler([past_of(bowl)]), ONE)
    with pytest.raises(ValueError, match="source 'past' has 2 objectives, but this study has 1"):
        study.ask(SQUARE)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_startup_trials": -1}, "n_startup_trials must be 0 or more, but is -1"),
        ({"seed": "a"}, "seed must be a whole number, but is 'a'"),
        ({"search_space": ["x"]}, "search_space must be a dictionary of Optuna distributions"),
        ({"sources": "sqlite:///x"}, "sources must be a list of studies or tasks"),
    ],
)
def test_a_setting_out_of_its_range_is_refused_by_name_and_value(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        TransferSampler(**settings)


def test_a_sampler_says_what_it_is() -> None:
    assert str(TransferSampler(seed=1)) == "TransferSampler(0 sources, seed=1)"
