"""RGPESampler and TSTRSampler: the rules of the other samplers, and what is their own."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)
from optuna.trial import TrialState
from studies import (
    GRID,
    SQUARE,
    Params,
    asked,
    evaluate,
    frozen,
    new_study,
    past_study,
    start_python,
    suggestions,
)
from test_contract import PASTS, past_tasks

from metatpe import MetaTPESampler, Task, transfer_history
from metatpe.baselines import RGPESampler, TSTRSampler

Sampler = type[RGPESampler] | type[TSTRSampler]

both = pytest.mark.parametrize("sampler", [RGPESampler, TSTRSampler])
acquisitions = pytest.mark.parametrize("acquisition", ["ehvi", "parego"])

WITHOUT_TORCH = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
missing = ("torch", "botorch", "gpytorch")
PathFinder.find_spec = lambda name, *rest: None if name in missing else find(name, *rest)
"""


def bowl(params: Params) -> list[float]:
    """Return two losses with a front between (0.2, 0.3) and (0.4, 0.5)."""
    x, y = params["x"], params["y"]
    return [(x - 0.2) ** 2 + (y - 0.3) ** 2, (x - 0.4) ** 2 + (y - 0.5) ** 2]


def upside_down(params: Params) -> list[float]:
    return [-f for f in bowl(params)]


def run(sampler: BaseSampler, n: int = 8, **kwargs: Any) -> optuna.Study:
    study = new_study(sampler)
    evaluate(study, n, space=SQUARE, losses=bowl, **kwargs)
    return study


# Without torch ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RGPESampler", "TSTRSampler"])
@acquisitions
def test_the_ensembles_work_where_there_is_no_torch(name: str, acquisition: str) -> None:
    script = f"""{WITHOUT_TORCH}
from importlib.util import find_spec
from studies import past_study, suggestions
from metatpe.baselines import {name}

sampler = {name}([past_study()], acquisition="{acquisition}", n_startup_trials=2, seed=0)
print(find_spec("torch"), find_spec("botorch"), len(suggestions(sampler, 4)))
"""
    process = start_python(script)
    out, err = process.communicate(timeout=120)
    assert out == "None None 4\n", err


# Optuna's contract ------------------------------------------------------------------------------


class _Sampler:
    n_objectives = 1

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        past = past_tasks(PASTS["same names"], self.n_objectives)
        return lambda: RGPESampler(past, n_startup_trials=0)


class TestBasic(_Sampler, BasicSamplerTestCase):
    pass


class TestRelative(_Sampler, RelativeSamplerTestCase):
    pass


@pytest.mark.slow
class TestMultiObjective(_Sampler, MultiObjectiveSamplerTestCase):
    n_objectives = 2


class _AnySampler:
    n_objectives = 1

    @pytest.fixture(
        params=[
            "rgpe, other choices",
            "rgpe, nothing in common",
            "tstr, no sources",
            "tstr, other ranges",
        ]
    )
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        name, past = request.param.split(", ")
        sources = past_tasks(PASTS[past], self.n_objectives)
        if name == "rgpe":
            return lambda: RGPESampler(sources)
        return lambda: TSTRSampler(sources, acquisition="parego", n_startup_trials=0)


@pytest.mark.slow
class TestBasicOfAnyPast(_AnySampler, BasicSamplerTestCase):
    pass


@pytest.mark.slow
class TestRelativeOfAnyPast(_AnySampler, RelativeSamplerTestCase):
    pass


@pytest.mark.slow
class TestMultiObjectiveOfAnyPast(_AnySampler, MultiObjectiveSamplerTestCase):
    n_objectives = 2


# Their own --------------------------------------------------------------------------------------


@both
@acquisitions
def test_the_first_trials_are_the_warm_starts_and_then_the_acquisition_decides(
    sampler: Sampler, acquisition: Any
) -> None:
    past = past_study(bowl, space=SQUARE)
    study = run(sampler([past], acquisition=acquisition, seed=0))
    warm = run(MetaTPESampler([past], seed=0), 5)
    assert [t.params for t in study.trials[:5]] == [t.params for t in warm.trials]
    records = transfer_history(study)
    assert [r.origin for r in records] == ["warm_start"] * 5 + ["acquisition"] * 3
    for record in records[5:]:
        assert set(record.weights) == {"target", "past"}
        assert sum(record.weights.values()) == pytest.approx(1.0, abs=1e-5)


@both
def test_the_same_study_gets_most_of_the_weight_and_the_reversed_one_nearly_none(
    sampler: Sampler,
) -> None:
    same = past_study(bowl, space=SQUARE, n=60, name="same")
    reverse = past_study(upside_down, space=SQUARE, n=60, name="reversed", seed=1)
    trials = past_study(bowl, space=SQUARE, n=10, seed=2).trials
    study = new_study(sampler([same, reverse], seed=0, n_startup_trials=0), trials=trials)
    evaluate(study, 1, space=SQUARE, losses=bowl)
    weights = transfer_history(study)[-1].weights
    # For TST-R no task is closer to the study than the study itself.
    past = {name: weight for name, weight in weights.items() if name != "target"}
    assert weights["same"] > (0.5 if sampler is RGPESampler else 0.4)
    assert past["reversed"] < 0.1 * past["same"]


@both
def test_a_past_that_fits_leads_to_the_front_at_once(sampler: Sampler) -> None:
    past = past_study(bowl, space=SQUARE, n=60)
    first = suggestions(sampler([past], seed=0, n_startup_trials=0), 4, losses=bowl, space=SQUARE)
    assert all(max(bowl(params)) < 0.15 for params in first)


@acquisitions
def test_without_sources_the_study_alone_finds_the_front(acquisition: Any) -> None:
    study = run(RGPESampler(acquisition=acquisition, seed=0), 16)
    assert {r.origin for r in transfer_history(study)[5:]} == {"acquisition"}
    later = [max(bowl(t.params)) for t in study.trials[8:]]
    assert np.median(later) < 0.1


@both
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_the_same_seed_gives_the_same_suggestions_to_copies_too(
    copied: Callable[[BaseSampler], BaseSampler], sampler: Sampler
) -> None:
    past = past_study()
    one = sampler([past], seed=3)
    first = suggestions(one, 8)
    assert suggestions(copied(one), 8) == first
    assert suggestions(sampler([past], seed=4), 8)[5:] != first[5:]


def test_a_sampler_that_comes_in_later_suggests_what_the_first_one_would() -> None:
    past = past_study(bowl, space=SQUARE)
    study = run(RGPESampler([past], seed=3), 9)
    later = new_study(RGPESampler([past], seed=3), trials=study.trials[:8])
    assert evaluate(later, 1, space=SQUARE, losses=bowl) == [study.trials[8].params]


@both
@acquisitions
def test_a_finite_space_is_explored_without_a_repeat(sampler: Sampler, acquisition: Any) -> None:
    past = past_study(space=GRID, n=24)
    tried = suggestions(sampler([past], acquisition=acquisition, seed=0), 24, space=GRID)
    assert len({repr(sorted(params.items())) for params in tried}) == 24


@both
def test_maximising_is_minimising_the_negative(sampler: Sampler) -> None:
    minimised = suggestions(sampler(seed=0), 9, losses=bowl, space=SQUARE)
    directions = ("maximize", "maximize")
    maximised = suggestions(
        sampler(seed=0), 9, losses=upside_down, space=SQUARE, directions=directions
    )
    assert maximised == minimised


def test_objectives_are_matched_by_their_names_whatever_their_order() -> None:
    def swapped(params: Params) -> list[float]:
        return bowl(params)[::-1]

    found = []
    for losses, names in ((bowl, ["f", "g"]), (swapped, ["g", "f"])):
        past = past_study(losses, space=SQUARE, n=40)
        past.set_metric_names(names)
        study = new_study(RGPESampler([past], seed=0, warm_start=False, n_startup_trials=0))
        study.set_metric_names(["f", "g"])
        found.append(evaluate(study, 3, space=SQUARE, losses=bowl))
    assert found[0] == found[1]


@both
@acquisitions
def test_infeasible_trials_never_count_as_good(sampler: Sampler, acquisition: Any) -> None:
    # The best losses are all where it is infeasible, x < 0.5.
    rng = np.random.default_rng(0)
    points = [{"x": float(x), "y": float(y)} for x, y in rng.random((20, 2))]
    trials = [frozen(p, bowl(p), constraint=0.5 - p["x"]) for p in points]
    study = new_study(sampler(acquisition=acquisition, seed=0), trials=trials)
    tried = []
    for _ in range(6):
        trial = study.ask(SQUARE)
        trial.set_constraint("c", 0.5 - trial.params["x"])
        study.tell(trial, bowl(trial.params))
        tried.append(trial.params["x"])
    assert np.mean([x >= 0.45 for x in tried]) > 0.6


@both
@acquisitions
@pytest.mark.parametrize(
    "values",
    [
        [[1.0, 1.0]] * 8,
        [[1.0, 0.1 * i] for i in range(8)],
        [[float("inf"), 1.0], [float("-inf"), 1.0]] * 4,
        [[float("inf"), float("inf")]] * 8,
        [[1e300, -1e300], [-1e300, 1e300], [0.0, 0.0]],
        [[1.0, 2.0]],
    ],
    ids=["constant", "one constant", "infinite", "all infinite", "huge", "one observation"],
)
def test_a_pathological_set_gives_a_suggestion(
    sampler: Sampler, acquisition: Any, values: list[list[float]]
) -> None:
    point = {"x": 0.5, "y": 0.5}  # the same one again and again
    trials = [frozen(point, v) for v in values]
    past = Task.from_study(new_study(MetaTPESampler(), trials=trials * 2), name="past")
    study = new_study(
        sampler([past], acquisition=acquisition, seed=0, n_startup_trials=0), trials=trials
    )
    (params,) = evaluate(study, 1, space=SQUARE, losses=bowl)
    assert transfer_history(study)[-1].origin == "acquisition"
    assert 0.0 <= params["x"] <= 1.0


@both
@acquisitions
@pytest.mark.parametrize("n_objectives", [1, 3])
def test_one_objective_and_three_of_them(
    sampler: Sampler, acquisition: Any, n_objectives: int
) -> None:
    def losses(params: Params) -> list[float]:
        return [*bowl(params), (params["x"] - 0.9) ** 2][:n_objectives]

    directions = ["minimize"] * n_objectives
    past = past_study(losses, space=SQUARE, directions=directions)
    chosen = sampler([past], acquisition=acquisition, seed=0)
    study = new_study(chosen, directions)
    evaluate(study, 9, space=SQUARE, losses=losses)
    assert [r.origin for r in transfer_history(study)[5:]] == ["acquisition"] * 4


@both
def test_trials_that_run_at_the_same_time_get_different_configurations(sampler: Sampler) -> None:
    trials = past_study(bowl, space=SQUARE, n=10).trials
    given = asked(new_study(sampler(seed=0), trials=trials), 4, SQUARE)
    points = np.array([[params["x"], params["y"]] for params in given])
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)[np.triu_indices(4, k=1)]
    assert apart.min() > 0.002
    assert apart.max() > 0.05


@both
def test_pruned_and_failed_trials_are_taken_in_stride(sampler: Sampler) -> None:
    trials = past_study(bowl, space=SQUARE, n=6).trials
    trials += [
        frozen({"x": 0.1, "y": 0.1}, state=TrialState.PRUNED),
        frozen({"x": 0.9, "y": 0.1}, state=TrialState.FAIL),
    ]
    assert suggestions(sampler(seed=0), 2, losses=bowl, space=SQUARE, trials=trials)


def test_branches_and_parameters_that_a_source_lacks_are_no_obstacle() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        x = trial.suggest_float("x", 0, 1)
        if trial.suggest_categorical("branch", ("left", "right")) == "left":
            return x, trial.suggest_float("left", 0, 1)
        return x + 0.1, trial.suggest_int("right", 1, 5) / 5

    past = past_study(bowl, space=SQUARE, n=30)  # knows x alone of these
    study = new_study(RGPESampler([past], seed=0))
    study.optimize(objective, n_trials=16)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    assert "acquisition" in {r.origin for r in transfer_history(study)}


def test_what_was_enqueued_is_kept_and_the_rest_is_chosen() -> None:
    study = run(RGPESampler(seed=0), 8)
    study.enqueue_trial({"x": 0.75})
    trial = study.ask(SQUARE)
    assert trial.params["x"] == 0.75
    assert 0.0 <= trial.params["y"] <= 1.0


def test_an_acquisition_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match='acquisition must be "ehvi" or "parego", but is \'ei\''):
        RGPESampler(acquisition="ei")  # type: ignore[arg-type]


def test_a_sampler_says_what_it_is() -> None:
    assert str(TSTRSampler(seed=1)) == "TSTRSampler(0 sources, ehvi, seed=1)"
