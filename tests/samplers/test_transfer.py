"""TransferSampler: that transfer helps and does no harm, its turns, its doubt, its ten tasks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import moocore
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
from scipy.stats import spearmanr
from studies import (
    ONE,
    SQUARE,
    Losses,
    Params,
    asked,
    evaluate,
    frozen,
    in_space,
    new_study,
    past_study,
    random_sampler,
    spread,
    suggestions,
    two_losses,
)

from metatpe import Space, Task, TransferSampler, transfer_history
from metatpe.gp.informed import inform
from metatpe.gp.models import Observed
from metatpe.gp.process import Encoder, squared_distances
from metatpe.gp.transform import all_scores
from metatpe.past.known import Past
from metatpe.samplers.transfer import _best_on_its_scale, _fitted, _plateaus, _surrogate
from metatpe.space import Floats


def bowls(params: Params) -> list[float]:
    """Return four losses, each best at another place."""
    x, y = params["x"], params["y"]
    centres = [(0.2, 0.3), (0.4, 0.5), (0.2, 0.5), (0.4, 0.3)]
    return [(x - a) ** 2 + (y - b) ** 2 for a, b in centres]


def bowl(params: Params) -> list[float]:
    """Return two losses with a front between (0.2, 0.3) and (0.4, 0.5)."""
    return bowls(params)[:2]


def reverse(params: Params) -> list[float]:
    return [-f for f in bowls(params)]


def unrelated(params: Params) -> list[float]:
    x, y = params["x"], params["y"]
    return [np.sin(9 * x) * np.cos(7 * y), np.cos(11 * x + 3 * y)]


def noisy(params: Params) -> list[float]:
    """Return two losses, the second of which has nothing to do with the parameters."""
    return [bowl(params)[0], float(np.random.default_rng([int(1e9 * params["x"])]).normal())]


def past_of(losses: Losses, name: str = "past", *, n_objectives: int = 2, **kwargs: Any) -> Study:
    return past_study(
        lambda params: losses(params)[:n_objectives],
        space=SQUARE,
        name=name,
        directions=["minimize"] * n_objectives,
        **{"n": 40, **kwargs},
    )


def at_once(sources: Sequence[Study | Task] = (), **settings: Any) -> TransferSampler:
    """Return a seeded sampler without a start-up."""
    return TransferSampler(sources, **{"seed": 0, "n_startup_trials": 0, **settings})


def history(n: int = 12, losses: Losses = bowl) -> list[FrozenTrial]:
    return [frozen(p, losses(p)) for p in spread(n)]


def reached(study: Study, reference: float = 0.3) -> float:
    """Return the dominated hypervolume."""
    values = np.array([trial.values for trial in study.trials])
    return float(moocore.hypervolume(values, ref=np.full(values.shape[1], reference)))


# What transfer is worth --------------------------------------------------------------------------


@pytest.mark.parametrize("n_objectives", [1, 2, 3, 4])
def test_a_past_that_fits_leads_to_the_best_at_once(n_objectives: int) -> None:
    past = past_of(bowls, n=60, n_objectives=n_objectives)
    study = new_study(at_once([past]), ["minimize"] * n_objectives)
    evaluate(study, 5, space=SQUARE, losses=bowls)
    # All is dominated outside of the square between the four centres, which is 1/25 of the space.
    places = np.array([[t.params["x"], t.params["y"]] for t in study.trials])
    off = np.maximum(np.abs(places - [0.3, 0.4]) - 0.1, 0.0).max(axis=1)
    assert np.median(off) < 0.1


def test_workers_at_the_same_time_are_not_sent_to_the_same_place() -> None:
    line = {"x": SQUARE["x"]}
    history = [frozen({"x": x}, (x - 0.6) ** 2, space=line) for x in (0.0, 0.15, 0.3, 0.9, 1.0)]
    study = new_study(at_once([]), ["minimize"], trials=history)
    first, second, third = sorted(params["x"] for params in asked(study, 3, line))
    assert min(second - first, third - second) > 0.05


@pytest.mark.parametrize("n_objectives", [1, 2, 3, 4])
def test_without_sources_the_study_alone_finds_the_best(n_objectives: int) -> None:
    study = new_study(TransferSampler(seed=0), ["minimize"] * n_objectives)
    evaluate(study, 20, space=SQUARE, losses=bowls)
    by_chance = new_study(random_sampler(0), ["minimize"] * n_objectives)
    evaluate(by_chance, 40, space=SQUARE, losses=bowls)
    assert reached(study) > reached(by_chance)


@pytest.mark.parametrize("losses", [reverse, unrelated])
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


def test_two_reversed_objectives_cost_little_of_the_front() -> None:
    sources = [past_of(reverse, f"past {i}", seed=i) for i in range(2)]
    for seed in range(2):
        found = []
        for past in (sources, []):
            study = new_study(TransferSampler(past, seed=seed))
            evaluate(study, 20, space=SQUARE, losses=bowl)
            found.append(reached(study))
        assert found[0] > 0.97 * found[1]


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
    space: dict[str, BaseDistribution], n_startup_trials: int
) -> None:
    study = new_study(at_once([past_of(bowl)], n_startup_trials=n_startup_trials))
    for params in evaluate(study, 7, space=space, losses=two_losses):
        assert set(params) == set(space)
        assert in_space(params, space)
    assert ("past" in transfer_history(study)[-1].weights) == ("x" in space)


# Weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_objectives", [1, 3, 4])
def test_weights_of_any_number_of_objectives_sum_to_one(n_objectives: int) -> None:
    sources = [past_of(bowls, f"past {i}", seed=i, n_objectives=n_objectives) for i in range(3)]
    sampler = at_once(sources, start="random", search_space=SQUARE)
    study = new_study(sampler, ["minimize"] * n_objectives)
    evaluate(study, 5, space=SQUARE, losses=bowls)
    for record in transfer_history(study):
        assert set(record.weights) == {"target", "past 0", "past 1", "past 2"}
        assert sum(record.weights.values()) == pytest.approx(1.0, abs=1e-5)
        assert min(record.weights.values()) >= 0.0


def test_the_same_study_has_most_of_the_weight_and_an_unrelated_one_little() -> None:
    sources = [past_of(bowl, "same", n=60), past_of(unrelated, "unrelated", n=60, seed=1)]
    study = new_study(at_once(sources, start="random"), trials=history(10))
    study.ask(SQUARE)
    weights = transfer_history(study)[-1].weights
    assert weights["same"] > 0.7
    assert weights["unrelated"] < 0.1


def test_objectives_are_matched_by_their_names_whatever_their_order() -> None:
    found = []
    for losses, names in ((bowl, ["f", "g"]), (lambda p: bowl(p)[::-1], ["g", "f"])):
        past = past_of(losses)
        past.set_metric_names(names)
        study = new_study(at_once([past], start="random"))
        study.set_metric_names(["f", "g"])
        found.append(evaluate(study, 3, space=SQUARE, losses=bowl))
    assert found[0] == found[1]


# After fifty observations: choices without the past ----------------------------------------------


@pytest.mark.parametrize("n_objectives", [1, 2])
def test_from_the_fiftieth_observation_on_some_choices_are_made_as_if_there_were_no_past(
    n_objectives: int,
) -> None:
    directions, past = ["minimize"] * n_objectives, past_of(bowls, n_objectives=n_objectives)
    failed = [frozen({"x": 0.5, "y": 0.5}, state=TrialState.FAIL)] * 10  # no observations
    trials = failed + [frozen(p, bowls(p)[:n_objectives]) for p in spread(60)]
    is_alone, is_led = [], []
    for n in range(58, 70):
        study = new_study(TransferSampler([past], seed=0), directions, trials=trials[:n])
        alone = new_study(TransferSampler(seed=0), directions, trials=trials[:n])
        is_alone.append(study.ask(SQUARE).params == alone.ask(SQUARE).params)
        is_led.append(bool(transfer_history(study)[-1].weights))
        assert transfer_history(alone)[-1].weights == {"target": 1.0}
    assert is_led == [not own for own in is_alone]
    assert is_led[:2] == [True, True]
    assert any(is_alone)


@pytest.fixture
def sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that has no doubts, whatever it has observed."""
    monkeypatch.setattr(TransferSampler, "_doubt", lambda self, models: 0.0)


@pytest.mark.usefixtures("sure")
def test_one_of_two_choices_after_the_fiftieth_is_made_without_the_past_by_chance() -> None:
    study = new_study(TransferSampler([past_of(bowl)], seed=0), trials=history(50))
    for _ in range(24):
        study.ask(SQUARE)
    reasons = [record.reason for record in transfer_history(study)]
    assert set(reasons) == {"own", "weighed"}
    assert 7 <= reasons.count("own") <= 17
    n_changes = sum(a != b for a, b in pairwise(reasons))
    assert 7 <= n_changes <= 16  # not in turn


@pytest.mark.usefixtures("sure")
def test_without_the_rule_the_past_informs_every_choice() -> None:
    sampler = TransferSampler([past_of(bowl)], seed=0)
    sampler.rules = replace(sampler.rules, alternate=False)
    study = new_study(sampler, trials=history(50))
    for _ in range(8):
        study.ask(SQUARE)
    assert [record.reason for record in transfer_history(study)] == ["weighed"] * 8


# Densities where the model has doubts ------------------------------------------------------------


def reasons_after(sampler: TransferSampler, losses: Losses, numbers: Sequence[int]) -> list[str]:
    """Return why configurations are chosen after as many trials."""
    trials, reasons = history(max(numbers), losses), []
    for n in numbers:
        study = new_study(sampler, trials=trials[:n])
        study.ask(SQUARE)
        reasons.append(transfer_history(study)[-1].reason)
    return reasons


@pytest.mark.parametrize(("losses", "fewest", "most"), [(bowl, 0, 2), (noisy, 8, 20)])
def test_what_the_model_cannot_order_is_left_to_densities_after_the_fiftieth_observation(
    losses: Losses, fewest: int, most: int
) -> None:
    reasons = reasons_after(TransferSampler(seed=0), losses, range(47, 70))
    assert reasons[:3] == ["no_past"] * 3
    assert fewest <= reasons[3:].count("densities") <= most


def test_without_the_rule_the_model_makes_every_choice() -> None:
    sampler = TransferSampler(seed=0)
    sampler.rules = replace(sampler.rules, densities=False)
    assert reasons_after(sampler, noisy, range(50, 60)) == ["no_past"] * 10


def test_densities_choose_without_the_past_where_the_model_would() -> None:
    past, is_own, is_alone = past_of(bowl), [], []
    for n in range(50, 76):
        trials = history(n, noisy)
        study = new_study(TransferSampler([past], seed=0), trials=trials)
        params = study.ask(SQUARE).params
        (record,) = transfer_history(study)
        if record.reason == "densities":
            assert record.kept == ()
            is_own.append(record.weights.get("past", 0.0) == 0.0)
            alone = new_study(TransferSampler(seed=0), trials=trials)
            is_alone.append(params == alone.ask(SQUARE).params)
    assert {*is_own} == {True, False}
    assert all(same for same, own in zip(is_alone, is_own, strict=True) if own)
    assert not all(is_alone)


@pytest.fixture
def doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that knows nothing, whatever it has observed."""
    monkeypatch.setattr(TransferSampler, "_doubt", lambda self, models: 1.0)


@pytest.mark.usefixtures("doubtful")
def test_densities_choose_nothing_that_was_evaluated_while_there_is_something_new() -> None:
    study = new_study(TransferSampler(seed=0), ONE)
    space = {"a": IntDistribution(0, 5), "b": CategoricalDistribution(("u", "v"))}
    suggested = evaluate(study, 12, space=space, losses=lambda p: [float(p["a"])])
    assert len({tuple(params.values()) for params in suggested}) == 12
    assert [r.reason for r in transfer_history(study)[5:]] == ["densities"] * 7


@pytest.mark.usefixtures("doubtful")
def test_densities_do_not_evaluate_a_finite_branch_over_and_over() -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("kind", ["tree", "net"]) == "tree":  # six, and the best ones
            return 0.1 * trial.suggest_int("depth", 1, 6)
        return 1.5 + trial.suggest_float("width", 0.0, 1.0)

    study = new_study(TransferSampler(seed=0), ONE)
    study.optimize(objective, n_trials=40)
    found = [tuple(trial.params.values()) for trial in study.trials]
    assert [r.reason for r in transfer_history(study)[5:]] == ["densities"] * 35
    assert {("tree", depth) for depth in range(1, 7)} <= {*found}
    assert len({*found[15:]}) == 25  # once it is known which parameters a branch has


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
    assert low <= TransferSampler()._doubt(models) <= high


@pytest.mark.parametrize(
    ("n", "order", "doubt"), [(50, 1.0, 0.0), (50, -1.0, 1.0), (49, -1.0, 0.0)]
)
def test_a_model_that_orders_fifty_observations_right_has_no_doubt_and_a_reversed_one_nothing_else(
    n: int, order: float, doubt: float
) -> None:
    y = 0.01 * np.arange(float(n))
    found = TransferSampler()._doubt([Scaled(y, order * y)])  # type: ignore[list-item]
    assert found == pytest.approx(doubt)


@pytest.mark.parametrize(("n", "doubt"), [(0, 0.0), (1, 0.0), (2, 1.0), (20, 1.0)])
def test_where_all_observations_are_the_same_there_is_nothing_but_doubt(
    n: int, doubt: float
) -> None:
    X, is_used = np.random.default_rng(0).random((n, 2)), np.ones(2, dtype=np.bool_)
    models = inform([], X, [np.zeros(n)], np.arange(2), is_used)
    assert TransferSampler()._doubt(models) == doubt


# More than ten sources ---------------------------------------------------------------------------


def many_sources(n: int) -> list[Study]:
    """Return sources of which the last one alone fits."""
    kinds = (unrelated, reverse)
    past = [past_of(kinds[i % 2], f"past {i}", n=25, seed=i) for i in range(n - 1)]
    return [*past, past_of(bowl, "fits", n=25, seed=n)]


def n_informing(weights: dict[str, float]) -> int:
    return sum(weight > 0.0 for name, weight in weights.items() if name != "target")


def test_of_many_sources_the_one_that_fits_is_among_the_chosen() -> None:
    study = new_study(at_once(many_sources(14), start="random"), trials=history(8))
    evaluate(study, 5, space=SQUARE, losses=bowl)
    for record in transfer_history(study):
        assert len(record.weights) == 15
        assert sum(record.weights.values()) == pytest.approx(1.0, abs=1e-5)
        assert n_informing(record.weights) <= 10
        assert record.weights["fits"] > 0.05


@pytest.mark.parametrize("n", [10, 11])
def test_of_sources_that_all_fit_no_more_than_ten_inform(n: int) -> None:
    sources = [past_of(bowl, str(i), n=12, seed=i) for i in range(n)]
    study = new_study(at_once(sources, start="random"), trials=history(8))
    study.ask(SQUARE)
    assert n_informing(transfer_history(study)[-1].weights) == 10


def test_without_the_rule_all_of_many_sources_inform() -> None:
    sampler = at_once([past_of(bowl, str(i), n=25, seed=i) for i in range(14)], start="random")
    sampler.rules = replace(sampler.rules, ten=False)
    study = new_study(sampler, trials=history(8))
    study.ask(SQUARE)
    assert n_informing(transfer_history(study)[-1].weights) > 10


def test_many_sources_before_any_observation_are_no_reason_for_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        suggested = suggestions(at_once(many_sources(12)), 3, losses=bowl, space=SQUARE)
    assert len({str(params) for params in suggested}) == 3


# The scale of a model ----------------------------------------------------------------------------

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


def test_four_threads_share_a_sampler_and_repeat_nothing() -> None:
    study = new_study(TransferSampler([past_of(bowl)], seed=0))

    def objective(trial: optuna.Trial) -> list[float]:
        return bowl({name: trial.suggest_float(name, 0.0, 1.0) for name in ("x", "y")})

    study.optimize(objective, n_trials=20, n_jobs=4)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    assert len({tuple(t.params.values()) for t in study.trials}) == 20


@dataclass(frozen=True)
class Scaled:
    """Observations, and what the others predict of each."""

    y: Floats
    left_out_mean: Floats


def test_another_scale_is_taken_only_if_it_is_clearly_better() -> None:
    y, n = np.arange(12.0), 12
    noisy, better = y.copy(), y.copy()
    noisy[[2, 9]], better[[2, 8]] = noisy[[9, 2]], better[[8, 2]]
    first, slightly, clearly = (Scaled(y, p) for p in (noisy, better, y))
    z = [np.arctanh(spearmanr(model.left_out_mean, y)[0]) for model in (first, slightly)]
    assert 0.0 < z[1] - z[0] < 1.0 / np.sqrt(n - 3)
    assert _best_on_its_scale([first, slightly]) is first  # type: ignore[list-item]
    assert _best_on_its_scale([first, clearly]) is clearly  # type: ignore[list-item]
    few = [(Scaled(y[:k], -y[:k]), Scaled(y[:k], y[:k])) for k in (4, 5)]
    taken = [_best_on_its_scale(pair) for pair in few]  # type: ignore[arg-type]
    assert taken == [few[0][0], few[1][1]]  # fewer than five say nothing


def test_of_few_observations_another_scale_has_to_be_better_by_a_larger_margin() -> None:
    y = np.arange(5.0)
    first, other = (Scaled(y, np.array(p)) for p in ([0.0, 1, 4, 2, 3], [1.0, 0, 2, 3, 4]))
    z = [np.arctanh(spearmanr(model.left_out_mean, y)[0]) for model in (first, other)]
    assert 1.0 / np.sqrt(5) < z[1] - z[0] < 1.0 / np.sqrt(5 - 3)
    assert _best_on_its_scale([first, other]) is first  # type: ignore[list-item]


def test_of_scales_with_hardly_an_observation_out_of_order_the_first_is_taken() -> None:
    y = np.arange(100.0)
    nearly = y.copy()
    nearly[[40, 41]] = nearly[[41, 40]]
    first, perfect = Scaled(y, nearly), Scaled(y, y)
    assert _best_on_its_scale([first, perfect]) is first  # type: ignore[list-item]


def test_the_distance_on_a_plateau_is_the_mean_of_those_of_all_objectives(
    rng: np.random.Generator,
) -> None:
    X, columns = rng.random((20, 2)), Space(SQUARE).columns
    losses = np.stack([X[:, 0], np.sin(9.0 * X[:, 1])], axis=1)
    nothing = np.empty((0, 2))
    study = Observed.of(columns, Encoder(columns), X, losses, np.zeros(20), nothing)
    models = [
        inform([], study.features, scales, np.arange(2), study.is_used)[0]
        for scales in study.scales
    ]
    scaled = [study.features * model.settings.scale for model in models]
    points = _plateaus(study, models).points
    np.testing.assert_allclose(
        squared_distances(points, points),
        np.mean([squared_distances(own, own) for own in scaled], axis=0),
        atol=1e-9,
    )


def test_what_was_reached_are_the_feasible_losses_and_what_is_expected_of_running_trials(
    rng: np.random.Generator,
) -> None:
    space, X = Space(SQUARE), rng.random((12, 2))
    past = Past([], space).models(())
    violation = np.where(np.arange(12) < 3, 1.0, 0.0)
    running = np.array([[0.5, 0.5]])
    study = Observed.of(space.columns, past.encoder, X, X[:, :1], violation, running)
    nothing = np.arange(0)
    fitted = _fitted(study, past, nothing)
    reached = _surrogate(study, past, nothing, fitted).reached
    assert reached.shape == (9 + 1, 1)
    np.testing.assert_array_equal(reached[:9], study.y[study.is_valid])
    np.testing.assert_allclose(reached[9], fitted[0].predict(study.running)[0], atol=1e-6)


@pytest.mark.parametrize(
    ("violation", "deviation", "is_flat"),
    [(0.0, 0.0, True), (1.0, 0.0, False), (0.0, 0.1, False)],
    ids=["seen", "infeasible", "expected"],
)
def test_equal_losses_make_a_plateau_where_they_are_feasible_and_were_seen(
    violation: float, deviation: float, is_flat: bool, rng: np.random.Generator
) -> None:
    X, columns = rng.random((20, 2)), Space(SQUARE).columns
    losses, is_equal = rng.random((20, 1)), np.arange(20) < 4
    losses[is_equal] = 0.5
    off = (violation * is_equal, np.empty((0, 2)), deviation * is_equal)
    study = Observed.of(columns, Encoder(columns), X, losses, *off)
    models = inform([], study.features, study.scales[0][:1], np.arange(2), study.is_used)
    assert _plateaus(study, models).hold(study.features).any() == is_flat


@pytest.mark.usefixtures("sure")
def test_of_trials_that_start_before_the_next_result_each_has_the_models_of_its_own_turn() -> None:
    shared = TransferSampler([past_of(bowl)], seed=0)
    study, other = (new_study(shared, trials=history(50)) for _ in range(2))
    for _ in range(6):
        other.sampler = TransferSampler([past_of(bowl)], seed=0)  # which remembers nothing
        assert study.ask(SQUARE).params == other.ask(SQUARE).params
    reasons = {record.reason for record in transfer_history(study)}
    assert reasons == {"own", "weighed"}


def test_a_sampler_of_two_studies_has_models_for_the_objectives_of_each() -> None:
    past = past_of(bowl)
    past.set_metric_names(["far", "near"])
    shared = at_once([past], start="random")
    suggested = []
    for names in (["far", "near"], ["near", "far"]):
        for sampler in (shared, at_once([past], start="random")):
            study = new_study(sampler, trials=history(6))
            study.set_metric_names(names)
            suggested.append(study.ask(SQUARE).params)
    assert suggested[0] == suggested[1] != suggested[2] == suggested[3]


def test_a_sampler_of_two_studies_has_models_for_the_space_of_each() -> None:
    past = past_of(bowl)
    shared = at_once([past], start="random")
    suggested = []
    for high in (1.0, 2.0):  # the same places in the two spaces, and the same losses
        wide = {name: FloatDistribution(0.0, high) for name in SQUARE}
        params = [{name: high * x for name, x in p.items()} for p in spread(6)]
        trials = [frozen(p, bowl(q), space=wide) for p, q in zip(params, spread(6), strict=True)]
        for sampler in (shared, at_once([past], start="random")):
            suggested.append(new_study(sampler, trials=trials).ask(wide).params)
    assert suggested[0] == suggested[1] != suggested[2] == suggested[3]


def test_trials_that_start_before_the_next_result_share_the_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n_fits = 0

    def counted(*args: Any) -> Any:
        nonlocal n_fits
        n_fits += 1
        return inform(*args)

    monkeypatch.setattr("metatpe.samplers.transfer.inform", counted)
    study = new_study(TransferSampler([past_study(bowl, space=SQUARE)], seed=0))
    evaluate(study, 8, space=SQUARE, losses=bowl)
    n_fits = 0
    params = asked(study, 4)
    assert n_fits == 2  # one for each objective
    assert len({tuple(own.values()) for own in params}) == 4
    study.tell(study.trials[-1].number, bowl(params[-1]))
    asked(study, 1)
    assert n_fits == 4
