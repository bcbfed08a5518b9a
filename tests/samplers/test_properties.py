"""Hypothesis draws spaces, histories and sources: nothing crashes, and every suggestion fits."""

from __future__ import annotations

import json
import os
from typing import Any, get_args

import numpy as np
import optuna
import pytest
from helpers import distributions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study
from optuna.trial import TrialState
from studies import configurations, evaluate, in_space, new_study, random_sampler, suggestions

from metatpe import transfer_history
from metatpe.study.record import Origin, Reason
from samplers.five import META_TPE, WARM_START, Make

NAMES = "abcde"
# Few examples of many trials each: the time goes into the trials.
FACTOR = int(os.environ.get("METATPE_EXAMPLES", 1))
few = settings(max_examples=20 * FACTOR, suppress_health_check=list(HealthCheck))
fewer = settings(max_examples=10 * FACTOR, suppress_health_check=list(HealthCheck))

values = st.sampled_from([0.0, 1.0, -1.0, 0.5, float("inf"), float("-inf"), 1e300, -1e300])
endings = st.sampled_from(["complete"] * 6 + ["infeasible", "pruned", "fail", "running"])


def is_sound(distribution: BaseDistribution) -> bool:
    """Return whether Optuna knows all values of a grid; far from zero rounding costs it some."""
    if not isinstance(distribution, FloatDistribution) or distribution.step is None:
        return True
    return max(abs(distribution.low), abs(distribution.high)) < 1e6 * distribution.step


of_any_kind = distributions().filter(is_sound)


@st.composite
def spaces(draw: st.DrawFn) -> dict[str, BaseDistribution]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    return {name: draw(of_any_kind) for name in names}


@st.composite
def histories(
    draw: st.DrawFn, space: dict[str, BaseDistribution], directions: list[str], *, at_least: int
) -> Study:
    """Draw a study: trials that end in every way, some without some of the parameters."""
    study = new_study(random_sampler(draw(st.integers(0, 1000))), directions)
    ends = draw(st.lists(endings, max_size=12)) + ["complete"] * at_least
    for end in ends:
        is_partial = draw(st.integers(0, 5)) == 0
        used = dict(list(space.items())[:1]) if is_partial else space
        trial = study.ask(used)
        if end == "infeasible":
            trial.set_constraint("c", draw(st.sampled_from([0.5, 2.0, float("inf")])))
        if end == "pruned" and len(directions) == 1:
            for step in range(draw(st.integers(0, 2))):
                trial.report(draw(values | st.just(float("nan"))), step)
        if end in ("complete", "infeasible"):
            study.tell(trial, [draw(values) for _ in directions])
        elif end != "running":
            study.tell(trial, state=TrialState[end.upper()])
    return study


@st.composite
def source_spaces(
    draw: st.DrawFn, space: dict[str, BaseDistribution]
) -> dict[str, BaseDistribution]:
    """Draw the space of a past study: the same, or one with other parameters and distributions."""
    if draw(st.booleans()):
        return space
    other = draw(spaces())
    return {name: space.get(name, d) if draw(st.booleans()) else d for name, d in other.items()}


Case = tuple[dict[str, BaseDistribution], Study, dict[str, Any]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a space, a study on it, and settings of a sampler for it."""
    space = draw(spaces())
    directions = draw(st.lists(st.sampled_from(["minimize", "maximize"]), min_size=1, max_size=3))
    study = draw(histories(space, directions, at_least=0))
    sources = [
        draw(histories(draw(source_spaces(space)), directions, at_least=2))
        for _ in range(draw(st.integers(0, 2)))
    ]
    return space, study, {
        "sources": sources,
        "search_space": space if draw(st.booleans()) else None,
        "n_startup_trials": draw(st.sampled_from([0, 3])),
        "start": draw(st.sampled_from(["draw", "random"])),
        "n_ei_candidates": draw(st.sampled_from([1, 20])),
        "n_mc_samples": 50,
        "gamma": draw(st.sampled_from([0.1, 0.5, 0.9])),
        "eta": draw(st.sampled_from([1.1, 2.5])),
        "epsilon": draw(st.sampled_from([0.0, 0.5])),
        "weights": draw(st.sampled_from(["similarity", "uniform"])),
    }  # fmt: skip


SHARED = ("sources", "search_space")
OF_LEARNING = (*SHARED, "n_startup_trials", "start")


def made(make: Make, drawn: dict[str, Any]) -> optuna.samplers.BaseSampler:
    """Return a sampler with those of the settings that it has."""
    names = SHARED if make is WARM_START else drawn if make is META_TPE else OF_LEARNING
    return make.kind(seed=0, **{name: drawn[name] for name in names})


def check_records(study: Study) -> None:
    for record in transfer_history(study):
        assert record.origin in get_args(Origin)
        assert record.reason in get_args(Reason)
        if record.weights:
            assert sum(record.weights.values()) == pytest.approx(1.0, abs=1e-4)
            assert all(0.0 <= weight <= 1.0 for weight in record.weights.values())
            assert "target" in record.weights
    for trial in study.trials:
        for value in [*trial.user_attrs.values(), *trial.system_attrs.values()]:
            assert len(json.dumps(value)) <= 2046


@few
@given(case=cases())
def test_every_suggestion_lies_in_the_space_and_weights_sum_to_one(make: Make, case: Case) -> None:
    space, study, drawn = case
    study.sampler = made(make, drawn)
    study.enqueue_trial({})
    for i in range(5):
        asked_for = dict(list(space.items())[i % 2 :]) or space  # all, or without a parameter
        trial = study.ask(asked_for)
        assert set(trial.params) == set(asked_for)
        assert in_space(trial.params, space)
        if i % 2:
            study.tell(trial, [float(i)] * len(study.directions))
    check_records(study)


@fewer
@given(case=cases())
def test_the_same_seed_suggests_the_same_whatever_the_study_has_seen(
    make: Make, case: Case
) -> None:
    space, study, drawn = case
    finished = [t for t in study.trials if t.state.is_finished()]

    def suggested() -> list[Any]:
        directions = [d.name.lower() for d in study.directions]
        copy = new_study(made(make, drawn), directions, trials=finished)
        return [repr(copy.ask(space).params) for _ in range(3)]

    assert suggested() == suggested()


@fewer
@given(first=spaces(), second=spaces(), n_objectives=st.integers(1, 3))
def test_a_space_may_change_in_the_middle_of_a_study(
    make: Make,
    first: dict[str, BaseDistribution],
    second: dict[str, BaseDistribution],
    n_objectives: int,
) -> None:
    # Optuna itself allows another range under the same name, but not another kind.
    added = {name: d for name, d in second.items() if name not in first}
    study = new_study(make(n_startup_trials=2), ["minimize"] * n_objectives)
    for space in (first, {**first, **added}, added, first):
        for params in evaluate(
            study, 2, space=space, losses=lambda p: [float(len(str(p)))] * n_objectives
        ):
            assert set(params) == set(space)
            assert in_space(params, space)
    check_records(study)


small = st.one_of(
    st.integers(2, 4).map(lambda n: IntDistribution(0, n - 1)),
    st.integers(2, 4).map(lambda n: IntDistribution(1, n, log=True)),
    st.integers(2, 3).map(lambda n: FloatDistribution(-0.1, -0.1 + 0.1 * (n - 1), step=0.1)),
    st.integers(2, 4).map(lambda n: CategoricalDistribution(tuple("wxyz"[:n]))),
)


@fewer
@given(
    space=st.dictionaries(st.sampled_from(NAMES), small, min_size=1, max_size=2),
    seed=st.integers(0, 100),
    n_sources=st.integers(0, 2),
)
def test_a_finite_space_is_explored_without_a_repeat(
    make: Make, space: dict[str, BaseDistribution], seed: int, n_sources: int
) -> None:
    n = int(np.prod([n_values(distribution) for distribution in space.values()]))
    sources = [new_study(random_sampler(i)) for i in range(n_sources)]
    for source in sources:
        evaluate(source, 6, space=space)
    study = new_study(make(sources, seed=seed))
    evaluate(study, n, space=space)
    assert len(set(configurations(study))) == n


def n_values(distribution: BaseDistribution) -> int:
    if isinstance(distribution, CategoricalDistribution):
        return len(distribution.choices)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return round((distribution.high - distribution.low) / (distribution.step or 1)) + 1


@fewer
@given(
    space=st.dictionaries(st.sampled_from(NAMES), of_any_kind, min_size=1, max_size=3),
    order=st.permutations(range(6)),
)
def test_the_order_in_which_parameters_are_asked_for_changes_nothing_in_the_end(
    make: Make, space: dict[str, BaseDistribution], order: list[int]
) -> None:
    shuffled = dict(sorted(space.items(), key=lambda item: order[NAMES.index(item[0])]))

    def suggested(asked_for: dict[str, BaseDistribution]) -> list[str]:
        sampler = make(search_space=space, n_startup_trials=1)
        found = suggestions(sampler, 4, space=asked_for, losses=lambda p: [0.0, 1.0])
        return [repr(sorted(params.items())) for params in found]

    assert suggested(shuffled) == suggested(space)
