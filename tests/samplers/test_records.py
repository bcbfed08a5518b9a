"""What every sampler writes down about each trial."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.study import Study
from studies import (
    SPACE,
    answer_of,
    evaluate,
    new_study,
    past_study,
    start_python,
    suggestions,
)

from metatpe import Space, Task, transfer_history
from metatpe.study.record import read_plan
from samplers.five import EVERY, META_TPE, WARM_START, Make, learning, pasts, with_and_without

MAX_CHARACTERS = 2046  # what every relational storage takes for one attribute
PAST = {"target", "past 0", "past 1"}
AFTER_THE_START = {
    META_TPE: {
        ("acquisition", "silent"),
        ("acquisition", "weighed"),
        ("acquisition", "own"),
        ("epsilon", "epsilon"),
    },
    WARM_START: {("random", "no_start_left")},
}


def lengths(study: Study) -> list[int]:
    """Return the length of every attribute as a relational storage keeps it."""
    return [
        len(json.dumps(value))
        for trial in study.trials
        for value in [*trial.user_attrs.values(), *trial.system_attrs.values()]
    ]


def test_every_trial_has_a_record_of_who_chose_it_and_why(make: Make) -> None:
    study = new_study(make.drawing(sources := pasts(2), n_startup_trials=4))
    suggested = evaluate(study, 10)
    records = transfer_history(study)
    assert [record.number for record in records] == list(range(10))
    assert {record.sampler for record in records} == {make.kind.__name__}
    assert {record.reason for record in records[:4]} == {"best"}
    for record, params in zip(records[:4], suggested, strict=False):
        held = [s.study_name for s in sources if params in [t.params for t in s.trials]]
        assert list(record.sources) == held != []
    later = {(record.origin, record.reason) for record in records[4:]}
    assert later <= AFTER_THE_START.get(make, {("acquisition", "weighed")})
    assert not any(record.sources for record in records[4:])


@learning
def test_the_weights_of_a_choice_name_every_source_and_sum_to_one(make: Make) -> None:
    study = new_study(make.at_once(pasts(2), start="random", search_space=SPACE))
    evaluate(study, 8)
    for record in transfer_history(study):
        assert set(record.weights) == PAST
        assert sum(record.weights.values()) == pytest.approx(1.0, abs=1e-5)
        assert min(record.weights.values()) >= 0.0
        assert list(record.weights.values()) == sorted(record.weights.values(), reverse=True)


@learning
def test_without_a_past_the_study_has_all_the_weight(make: Make) -> None:
    study = new_study(make.at_once(search_space=SPACE))
    evaluate(study, 4)
    assert [(r.reason, r.weights) for r in transfer_history(study)] == [
        ("no_past", {"target": 1.0})
    ] * 4


@with_and_without
def test_what_was_not_weighed_has_no_weights(make: Make, n_sources: int) -> None:
    study = new_study(make(pasts(n_sources)))
    evaluate(study, 7)
    rest = [r for r in transfer_history(study) if r.origin != "acquisition"]
    assert len(rest) >= 2
    assert all(not r.weights and not r.kept for r in rest)


def test_a_configuration_of_two_sources_is_recorded_with_both(make: Make) -> None:
    twice = [past_study(name="one"), past_study(name="other")]
    study = new_study(make.drawing(twice, n_startup_trials=4))
    evaluate(study, 2)
    assert [record.sources for record in transfer_history(study)] == [("one", "other")] * 2


@learning
def test_the_names_of_the_weights_are_unique(make: Make) -> None:
    names = ["same", "same", "target", "rest"]
    sources = [past_study(seed=i, name=name, n=6) for i, name in enumerate(names)]
    study = new_study(make.at_once(sources, start="random", search_space=SPACE))
    evaluate(study, 2)
    weights = transfer_history(study)[-1].weights
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-5)
    assert set(weights) == {"target", "same", "same (2)", "target (2)", "rest (2)"}


def long_names(n: int) -> dict[str, BaseDistribution]:
    names = [f"a parameter with a long name, number {i}" for i in range(n)]
    return {name: FloatDistribution(0.0, 1.0) for name in names}


def long_sources(n: int, space: dict[str, BaseDistribution]) -> list[Task]:
    rng = np.random.default_rng(0)
    shape = (4, len(space))
    names = [f"täsk {'long ' * 20}{i}" for i in range(n)]
    return [Task(name, Space(space), rng.random(shape), rng.random((4, 2))) for name in names]


@pytest.mark.parametrize(("n_sources", "n_parameters"), [(60, 4), (2, 120)])
def test_records_stay_short_with_many_sources_and_with_many_parameters(
    make: Make, n_sources: int, n_parameters: int
) -> None:
    space = long_names(n_parameters)
    study = new_study(make(long_sources(n_sources, space), n_startup_trials=1))
    evaluate(study, 3, space=space, losses=lambda p: [sum(p.values()), min(p.values())])
    assert max(lengths(study)) <= MAX_CHARACTERS
    last = study.trials[-1]
    plan = read_plan(last)
    assert plan is not None
    assert plan.params == last.params
    chunks = [key for key in last.system_attrs if key.startswith("metatpe:plan")]
    assert (len(chunks) > 1) == (n_parameters == 120)


@learning
def test_weights_that_are_too_many_to_be_listed_are_added_up(make: Make) -> None:
    space = long_names(2)
    sampler = make.at_once(long_sources(60, space), start="random", search_space=space)
    study = new_study(sampler)
    evaluate(study, 1, space=space)
    weights = transfer_history(study)[-1].weights
    assert "target" in weights
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-4)
    listed = [weight for name, weight in weights.items() if name != "rest"]
    assert len(listed) < 61
    assert listed == sorted(listed, reverse=True)


RECORD = """
import json, dataclasses, metatpe, studies
from samplers.five import EVERY
records = {{}}
for make in EVERY:
    sources = metatpe.load_tasks({url!r}, "past *")
    study = studies.new_study(make(sources, n_startup_trials=2), storage={url!r}, name=str(make))
    studies.evaluate(study, 3)
    records[str(make)] = [dataclasses.asdict(r) for r in metatpe.transfer_history(study)]
print(json.dumps(records))
"""


def test_a_study_in_a_database_has_the_same_records_in_another_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    for source in (sources := pasts(2, n=4)):
        optuna.copy_study(
            from_study_name=source.study_name, from_storage=source._storage, to_storage=url
        )
    told = answer_of(start_python(RECORD.format(url=url)))
    for make in EVERY:
        study = optuna.load_study(study_name=str(make), storage=url)
        records = [
            (r.number, r.sampler, r.origin, r.reason, r.weights, list(r.sources))
            for r in transfer_history(study)
        ]
        names = ("number", "sampler", "origin", "reason", "weights", "sources")
        assert records == [tuple(r[name] for name in names) for r in told[str(make)]]
        in_memory = suggestions(make(sources, n_startup_trials=2), 3)
        assert [t.params for t in study.trials] == in_memory
