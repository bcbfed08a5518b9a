"""The attributes of trials: what fits into them, and that it is read as it was written."""

from __future__ import annotations

import json
from typing import Any, get_args

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, create_trial
from transferred import transferred

from metatpe import TransferRecord, pruning_history, transfer_history
from metatpe.study.record import (
    MAX_CHARACTERS,
    Plan,
    Reason,
    params_of,
    read_plan,
    start_of,
    system_attributes,
    turn_of,
    user_attributes,
)


def longest(attributes: dict[str, Any]) -> int:
    return max(len(json.dumps(value)) for value in attributes.values())


def record(plan: Plan) -> dict[str, Any]:
    attributes = user_attributes(plan)
    assert set(attributes) == {"metatpe"}
    written = json.loads(json.dumps(attributes["metatpe"]))
    assert isinstance(written, dict)
    return written


def stored(plan: Plan) -> FrozenTrial:
    """Return a trial with the plan, as it comes back from a storage."""
    return create_trial(value=0.0, system_attrs=json.loads(json.dumps(system_attributes(plan))))


def weights(n: int, name: str = "task {}") -> dict[str, float]:
    """Return the weights of a target and n - 1 past tasks, in no particular order."""
    raw = {"target" if i == n // 2 else name.format(i): float(i * 7 % n + 1) for i in range(n)}
    return {task: weight / sum(raw.values()) for task, weight in raw.items()}


# For people --------------------------------------------------------------------------------------


def test_a_record_says_who_chose_why_and_with_which_weights() -> None:
    given = {"target": 0.25, "past": 0.75}
    plan = Plan("acquisition", "weighed", {"x": 1}, given, ("lr", "x"), sampler="MetaTPESampler")
    assert record(plan) == {
        "sampler": "MetaTPESampler",
        "origin": "acquisition",
        "reason": "weighed",
        "weights": {"past": 0.75, "target": 0.25},
        "kept": ["lr", "x"],
    }


def test_a_record_of_a_start_names_the_past_studies_that_it_came_from() -> None:
    plan = Plan("warm_start", "best", {"x": 1}, start=0, sources=("a", "b"), sampler="S")
    assert record(plan) == {
        "sampler": "S",
        "origin": "warm_start",
        "reason": "best",
        "weights": {},
        "kept": [],
        "sources": ["a", "b"],
    }


def test_weights_are_listed_with_the_largest_first() -> None:
    listed = list(record(Plan("acquisition", "weighed", weights=weights(20)))["weights"].values())
    assert len(listed) == 20
    assert listed == sorted(listed, reverse=True)


@pytest.mark.parametrize("name", ["task {}", "täsk " + "long " * 30 + "{}", "任务" * 40 + "{}"])
@pytest.mark.parametrize("n", [2, 30, 300])
@pytest.mark.parametrize("n_kept", [0, 3, 200])
def test_a_record_is_never_too_long_and_its_weights_sum_to_one(
    name: str, n: int, n_kept: int
) -> None:
    kept = tuple(f"parameter with a long name {i}" for i in range(n_kept))
    plan = Plan(
        "acquisition",
        "weighed",
        weights=weights(n, name),
        kept=kept,
        sources=tuple(weights(n, name)),
        sampler="TransferSampler",
    )
    assert longest(user_attributes(plan)) <= MAX_CHARACTERS
    listed = record(plan)["weights"]
    assert sum(listed.values()) == pytest.approx(1.0, abs=1e-4)
    assert "target" in listed
    assert record(plan)["kept"] == list(kept)[: len(record(plan)["kept"])]


def test_what_does_not_fit_is_summed_up_at_the_end() -> None:
    given = weights(300)
    listed = record(Plan("acquisition", "weighed", weights=given))["weights"]
    assert list(listed)[-1] == "rest"
    largest = sorted(given, key=lambda task: -given[task])[: len(listed) - 2]
    assert list(listed)[: len(largest)] == largest
    left_out = sum(weight for task, weight in given.items() if task not in listed)
    assert listed["rest"] == pytest.approx(left_out, rel=1e-5)


@pytest.mark.parametrize("n_letters", [6, 50, 265])  # two of the longest fit exactly
def test_names_are_listed_as_long_as_they_fit_into_a_third_each(n_letters: int) -> None:
    # Of 1,700 characters, for weights, kept parameters and sources; a number takes up to 16.
    names = tuple(f"{i:0{n_letters}}" for i in range(50))
    given = dict.fromkeys(names, 1.0 / 50)
    plan = Plan("acquisition", "weighed", weights=given, kept=names, sources=names)
    written, n_listed = record(plan), 566 // (n_letters + 2 + 16)
    assert len(written["kept"]) == len(written["sources"]) == n_listed
    assert len(written["weights"]) == n_listed + 1  # and the rest


def test_weights_have_six_digits_and_a_small_rest_is_said_too() -> None:
    given = {"a": 1 / 3, "n" * 3000: 1e-9 / 3}
    listed = record(Plan("acquisition", "weighed", weights=given))["weights"]
    assert listed == {"a": 0.333333, "rest": 3.33333e-10}


def test_the_target_is_listed_even_if_its_weight_is_the_smallest() -> None:
    given = {f"task {i}": 1.0 / 300 for i in range(300)} | {"target": 1e-9}
    assert record(Plan("acquisition", "weighed", weights=given))["weights"]["target"] == 1e-9


def test_many_kept_parameters_leave_room_for_weights() -> None:
    kept = tuple(f"parameter with a long name {i}" for i in range(200))
    listed = record(Plan("acquisition", "weighed", weights=weights(50), kept=kept))["weights"]
    assert len(listed) > 10


def test_one_task_with_an_endless_name_does_not_hide_the_others() -> None:
    given = {"n" * 3000: 0.5, "target": 0.3, "past": 0.2}
    listed = record(Plan("acquisition", "weighed", weights=given))["weights"]
    assert listed == {"target": 0.3, "past": 0.2, "rest": 0.5}


def test_a_record_without_weights_has_no_rest() -> None:
    assert record(Plan("random", "startup"))["weights"] == {}


def test_the_history_of_a_study_leaves_out_trials_without_a_record() -> None:
    study = optuna.create_study()
    plans = [
        Plan("warm_start", "best", {"x": 1}, start=0, sources=("a",), sampler="S"),
        Plan("acquisition", "weighed", {}, {"target": 0.6, "a": 0.4}, ("x",), sampler="S"),
        Plan("random", "startup"),
    ]
    for attributes in [{}, *map(user_attributes, plans), {"other": 1}]:
        study.add_trial(create_trial(value=0.0, user_attrs=attributes))
    assert transfer_history(study) == [
        TransferRecord(1, "warm_start", "best", sources=("a",), sampler="S"),
        TransferRecord(
            2, "acquisition", "weighed", {"target": 0.6, "a": 0.4}, ("x",), sampler="S"
        ),
        TransferRecord(3, "random", "startup"),
    ]


OLD = {"origin": "acquisition", "weights": {"target": 0.6, "a": 0.4}, "kept": ["x"]}


@pytest.mark.parametrize(
    ("more", "reason", "turn"),
    [
        ({"turn": "past"}, "weighed", 1.0),
        ({"turn": "own"}, "own", -1.0),
        ({"turn": None}, "unknown", 0.0),
        ({}, "unknown", 0.0),
    ],
    ids=str,
)
def test_records_from_before_there_were_reasons_can_be_read(
    more: dict[str, Any], reason: Reason, turn: float
) -> None:
    study = optuna.create_study()
    plan = {"origin": "acquisition", "warm": None, "n_chunks": 1, "params": {"x": 0.5}, **more}
    study.add_trial(
        create_trial(
            value=0.0,
            user_attrs={"metatpe": {**OLD, **more}},
            system_attrs={"metatpe:plan:0": plan},
        )
    )
    assert transfer_history(study) == [
        TransferRecord(0, "acquisition", reason, {"target": 0.6, "a": 0.4}, ("x",), (), "unknown")
    ]
    (trial,) = study.trials
    assert read_plan(trial) == Plan("acquisition", reason, {"x": 0.5})
    assert (turn_of(trial), start_of(trial)) == (turn, -1)


def test_an_old_record_of_a_start_has_no_sources() -> None:
    study = optuna.create_study()
    old = {"origin": "warm_start", "weights": {}, "kept": []}
    plan = {"origin": "warm_start", "warm": 2, "n_chunks": 1, "params": {}}
    study.add_trial(
        create_trial(value=0.0, user_attrs={"metatpe": old}, system_attrs={"metatpe:plan:0": plan})
    )
    assert transfer_history(study) == [TransferRecord(0, "warm_start", "unknown")]
    assert start_of(study.trials[0]) == 2


def test_the_history_of_an_empty_study_is_empty() -> None:
    assert transfer_history(optuna.create_study()) == []


# For other workers -------------------------------------------------------------------------------

values = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300)
)


@given(
    params=st.dictionaries(st.text(max_size=200), values, max_size=40),
    start=st.none() | st.integers(0, 100),
)
def test_a_plan_is_read_as_it_was_written_and_no_part_of_it_is_too_long(
    params: dict[str, Any], start: int | None
) -> None:
    plan = Plan("warm_start", "best", params, start=start)
    assert longest(system_attributes(plan)) <= MAX_CHARACTERS
    assert read_plan(stored(plan)) == plan
    assert start_of(stored(plan)) == (-1 if start is None else start)


@pytest.mark.parametrize("n", [0, 1, 200, 2000])
def test_long_plans_are_written_in_several_parts(n: int) -> None:
    plan = Plan("acquisition", "own", {f"parameter {i}": i / 3 for i in range(n)})
    attributes = system_attributes(plan)
    assert longest(attributes) <= MAX_CHARACTERS
    assert sorted(attributes) == sorted(f"metatpe:plan:{i}" for i in range(len(attributes)))
    assert read_plan(stored(plan)) == plan


@pytest.mark.parametrize("value", [(1, 2), object(), {"a": 1}, "long" * 1000])
def test_a_value_that_has_no_place_in_an_attribute_is_left_out(value: Any) -> None:
    plan = read_plan(stored(Plan("random", "startup", {"odd": value, "x": 0.5})))
    assert plan is not None
    assert plan.params == {"x": 0.5}


def test_a_trial_without_a_plan_has_none() -> None:
    trial = create_trial(value=0.0, system_attrs={"other": 1})
    assert read_plan(trial) is None
    assert (turn_of(trial), start_of(trial)) == (0.0, -1)


def test_a_shorter_plan_that_replaces_a_longer_one_is_read_alone() -> None:
    # A retried trial starts with the attributes of the one that failed.
    long = Plan("acquisition", "own", {f"parameter {i}": 1.0 for i in range(300)})
    short = Plan("acquisition", "own", {f"parameter {i}": 2.0 for i in range(50)})
    both = {**system_attributes(long), **system_attributes(short)}
    plan = read_plan(create_trial(value=0.0, system_attrs=both))
    assert plan == short


@pytest.mark.parametrize("reason", get_args(Reason))
def test_a_reason_is_read_again_and_tells_weighed_choices_from_own_ones(
    reason: Reason,
) -> None:
    plan = Plan("acquisition", reason, {"x": 1}, {"target": 0.5, "a": 0.5})
    again = read_plan(stored(plan))
    assert again is not None
    assert again.reason == record(plan)["reason"] == reason
    assert turn_of(stored(plan)) == {"weighed": 1.0, "own": -1.0}.get(reason, 0.0)


# As a table


def test_records_are_a_table_that_joins_the_trials() -> None:
    pd = pytest.importorskip("pandas")
    study, _ = transferred(12)
    table = transfer_history(study, as_dataframe=True)
    records = transfer_history(study)
    assert table["number"].tolist() == [record.number for record in records]
    assert table["reason"].tolist() == [record.reason for record in records]
    assert table["sources"][0] == "past"
    for record, weight in zip(records, table["weight_past"], strict=True):
        assert pd.isna(weight) if not record.weights else weight == record.weights["past"]
    joined = study.trials_dataframe().merge(table, on="number")
    assert len(joined) == 12
    assert "params_x" in joined


def test_a_study_without_records_is_an_empty_table() -> None:
    pytest.importorskip("pandas")
    table = transfer_history(optuna.create_study(), as_dataframe=True)
    assert list(table.columns) == ["number", "sampler", "origin", "reason", "kept", "sources"]
    assert table.empty


@pytest.mark.parametrize("planned", [1, 1.0, True])
def test_of_choices_that_compare_equal_the_plan_tells_which_one_was_evaluated(
    planned: object,
) -> None:
    distributions: dict[str, BaseDistribution] = {
        "c": CategoricalDistribution([1, 1.0, True, "x"]),
        "n": IntDistribution(0, 3),
    }
    plan = Plan("acquisition", "weighed", {"c": planned, "n": 3})
    trial = create_trial(
        value=0.0,
        params={"c": 1, "n": 2},  # the study was given another n in the end
        distributions=distributions,
        system_attrs=system_attributes(plan),
    )
    assert repr(params_of(trial)) == repr({"c": planned, "n": 2})


def test_a_number_and_a_truth_may_be_equal_choices() -> None:
    distributions: dict[str, BaseDistribution] = {"c": CategoricalDistribution([1.0, True])}
    plan = system_attributes(Plan("acquisition", "own", {"c": True}))
    trial = create_trial(
        value=0.0, params={"c": 1.0}, distributions=distributions, system_attrs=plan
    )
    assert params_of(trial)["c"] is True


def test_where_choices_differ_the_parameters_are_those_of_the_trial() -> None:
    trial = create_trial(
        value=0.0,
        params={"c": 1, "n": 2},
        distributions={"c": CategoricalDistribution([1, 2]), "n": IntDistribution(0, 3)},
        system_attrs=system_attributes(Plan("acquisition", "weighed", {"c": 1.0, "n": 2.0})),
    )
    assert repr(params_of(trial)) == repr({"c": 1, "n": 2})


def test_parameters_are_those_of_the_storage_and_not_a_copy() -> None:
    # A sampler holds them for every trial of a study.
    trial = create_trial(params={"n": 2}, distributions={"n": IntDistribution(0, 9)}, value=0.0)
    assert params_of(trial) is trial.params


def test_the_name_of_a_study_is_no_study() -> None:
    for history in (transfer_history, pruning_history):
        with pytest.raises(TypeError, match="must be an Optuna study, but is 'new'"):
            history("new")  # type: ignore[operator]


def test_hundreds_of_short_parameters_fit_into_the_attributes_of_every_storage() -> None:
    params = {f"p{i}": i % 10 for i in range(800)}
    trial = create_trial(value=0.0)
    trial.system_attrs = written = system_attributes(Plan("acquisition", "own", params))
    assert longest(written) <= MAX_CHARACTERS
    plan = read_plan(trial)
    assert plan is not None
    assert plan.params == params
