"""What RGPESampler and TSTRSampler share: both acquisitions, and that there is no torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from studies import (
    GRID,
    ONE,
    SQUARE,
    Params,
    asked,
    evaluate,
    frozen,
    in_space,
    new_study,
    past_study,
    random_sampler,
    start_python,
    suggestions,
)

from metatpe import Task, transfer_history
from metatpe.baselines import RGPESampler, TSTRSampler

INF = float("inf")
Sampler = type[RGPESampler] | type[TSTRSampler]

both = pytest.mark.parametrize("sampler", [RGPESampler, TSTRSampler])
acquisitions = pytest.mark.parametrize("acquisition", ["ehvi", "parego"])

WITHOUT_TORCH = """
from importlib.machinery import PathFinder
from importlib.util import find_spec

find = PathFinder.find_spec
missing = ("torch", "botorch", "gpytorch")
PathFinder.find_spec = lambda name, *rest: None if name in missing else find(name, *rest)

from studies import past_study, suggestions
from metatpe.baselines import RGPESampler, TSTRSampler

print(find_spec("torch"), find_spec("botorch"))
for kind in (RGPESampler, TSTRSampler):
    for acquisition in ("ehvi", "parego"):
        sampler = kind([past_study()], acquisition=acquisition, n_startup_trials=2, seed=0)
        print(len(suggestions(sampler, 4)))
"""


def bowl(params: Params) -> list[float]:
    """Return two losses with a front between (0.2, 0.3) and (0.4, 0.5)."""
    x, y = params["x"], params["y"]
    return [(x - 0.2) ** 2 + (y - 0.3) ** 2, (x - 0.4) ** 2 + (y - 0.5) ** 2]


def test_the_ensembles_work_where_there_is_no_torch() -> None:
    out, err = start_python(WITHOUT_TORCH).communicate(timeout=120)
    assert out.split() == ["None", "None", "4", "4", "4", "4"], err


@both
@acquisitions
@pytest.mark.parametrize("n_objectives", [1, 2, 3])
def test_after_the_start_the_acquisition_decides_with_weights_that_sum_to_one(
    sampler: Sampler, acquisition: Any, n_objectives: int
) -> None:
    def losses(params: Params) -> list[float]:
        return [*bowl(params), (params["x"] - 0.9) ** 2][:n_objectives]

    directions = ["minimize"] * n_objectives
    past = past_study(losses, space=SQUARE, directions=directions)
    study = new_study(sampler([past], acquisition=acquisition, seed=0), directions)
    evaluate(study, 8, space=SQUARE, losses=losses)
    for record in transfer_history(study)[5:]:
        assert (record.origin, record.reason) == ("acquisition", "weighed")
        assert set(record.weights) == {"target", "past"}
        assert sum(record.weights.values()) == pytest.approx(1.0, abs=1e-5)


@both
@acquisitions
def test_a_past_that_fits_leads_to_the_front_at_once(sampler: Sampler, acquisition: Any) -> None:
    past = past_study(bowl, space=SQUARE, n=60)
    chosen = sampler([past], acquisition=acquisition, seed=0, n_startup_trials=0)
    first = suggestions(chosen, 4, losses=bowl, space=SQUARE)
    assert all(max(bowl(params)) < 0.15 for params in first)


@both
@acquisitions
def test_without_sources_the_study_alone_finds_the_front(
    sampler: Sampler, acquisition: Any
) -> None:
    study = new_study(sampler(acquisition=acquisition, seed=0))
    evaluate(study, 16, space=SQUARE, losses=bowl)
    assert {r.reason for r in transfer_history(study)[5:]} == {"no_past"}
    assert np.median([max(bowl(t.params)) for t in study.trials[8:]]) < 0.1


@both
def test_workers_at_the_same_time_are_not_sent_to_the_same_place(sampler: Sampler) -> None:
    line = {"x": SQUARE["x"]}
    history = [frozen({"x": x}, (x - 0.6) ** 2, space=line) for x in (0.0, 0.15, 0.3, 0.9, 1.0)]
    study = new_study(sampler(n_startup_trials=0, seed=0), ONE, trials=history)
    first, second, third = sorted(params["x"] for params in asked(study, 3, line))
    assert min(second - first, third - second) > 0.05


@both
def test_the_acquisitions_differ(sampler: Sampler) -> None:
    ehvi, parego = (
        suggestions(sampler(acquisition=a, seed=0), 8, losses=bowl, space=SQUARE)
        for a in ("ehvi", "parego")
    )
    assert ehvi[:5] == parego[:5]
    assert ehvi[5:] != parego[5:]


@both
def test_a_finite_space_is_explored_without_a_repeat_by_parego_too(sampler: Sampler) -> None:
    past = past_study(space=GRID, n=24)
    tried = suggestions(sampler([past], acquisition="parego", seed=0), 24, space=GRID)
    assert len({repr(sorted(params.items())) for params in tried}) == 24


@both
def test_objectives_are_matched_by_their_names_whatever_their_order(sampler: Sampler) -> None:
    found = []
    for losses, names in ((bowl, ["f", "g"]), (lambda p: bowl(p)[::-1], ["g", "f"])):
        past = past_study(losses, space=SQUARE, n=40)
        past.set_metric_names(names)
        study = new_study(sampler([past], seed=0, start="random", n_startup_trials=0))
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
@pytest.mark.parametrize(
    "values",
    [
        [[1.0, 1.0]] * 8,
        [[1.0, 0.1 * i] for i in range(8)],
        [[INF, 1.0], [-INF, 1.0]] * 4,
        [[INF, INF]] * 8,
        [[1e300, -1e300], [-1e300, 1e300], [0.0, 0.0]],
        [[1.0, 2.0]],
    ],
    ids=["constant", "one constant", "infinite", "all infinite", "huge", "one observation"],
)
def test_parego_chooses_after_a_pathological_history(
    sampler: Sampler, values: list[list[float]]
) -> None:
    trials = [frozen({"x": 0.5, "y": 0.5}, v) for v in values]
    past = Task.from_study(new_study(random_sampler(0), trials=trials * 2), name="past")
    chosen = sampler([past], acquisition="parego", seed=0, n_startup_trials=0, start="random")
    study = new_study(chosen, trials=trials)
    (params,) = evaluate(study, 1, space=SQUARE, losses=bowl)
    assert transfer_history(study)[-1].origin == "acquisition"
    assert in_space(params, SQUARE)


@both
def test_an_acquisition_that_there_is_not_is_refused(sampler: Sampler) -> None:
    with pytest.raises(ValueError, match='acquisition must be "ehvi" or "parego", but is \'ei\''):
        sampler(acquisition="ei")  # type: ignore[arg-type]


@both
def test_a_sampler_shows_its_acquisition(sampler: Sampler) -> None:
    assert str(sampler(seed=1)) == f"{sampler.__name__}(0 sources, ehvi, seed=1)"


def test_one_objective_needs_no_scalarisation() -> None:
    past = past_study(lambda p: bowl(p)[:1], space=SQUARE, n=40, directions=ONE)
    found = []
    for acquisition in ("ehvi", "parego"):
        sampler = RGPESampler([past], acquisition=acquisition, seed=0)  # type: ignore[arg-type]
        study = new_study(sampler, ONE)
        evaluate(study, 12, space=SQUARE, losses=bowl)
        found.append(study.best_value)
    assert max(found) < 1e-3
