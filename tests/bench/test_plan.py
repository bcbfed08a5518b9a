"""Runs as values: equal ones are equal everywhere, different ones never share a key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from metatpe.bench.plan import PastProblem, Run, past_of, plan

PATH = os.pathsep.join(sys.path)
SLICE = "hpolib/slice_localization"
RUN = Run(SLICE, "meta-tpe", 3, past=past_of(SLICE), n_past=100)


def test_two_calls_give_equal_plans() -> None:
    def make() -> tuple[Run, ...]:
        return plan(["hpolib"], ["meta-tpe", "mo-tpe"], range(3), settings={"gamma": 0.2})

    assert make() == make()
    assert [run.key for run in make()] == [run.key for run in make()]


def test_a_plan_is_the_product_of_problems_methods_and_seeds() -> None:
    runs = plan(["hpolib", SLICE], ["meta-tpe", "random", "random"], range(5))
    assert len(set(runs)) == len(runs) == 4 * 2 * 5
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)


def test_the_past_of_a_problem_are_the_others_of_its_suite_with_streams_of_their_own() -> None:
    (run,) = plan([SLICE], ["meta-tpe"], [0])
    assert run.past == (
        PastProblem("hpolib/naval_propulsion", 2),
        PastProblem("hpolib/parkinsons_telemonitoring", 3),
        PastProblem("hpolib/protein_structure", 4),
    )
    assert run.n_past == 100


def test_a_member_of_the_suite_has_the_same_stream_in_every_experiment() -> None:
    assert past_of(SLICE, ["hpolib/protein_structure"]) == (
        PastProblem("hpolib/protein_structure", 4),
    )


def test_past_tasks_of_one_problem_have_streams_of_their_own() -> None:
    for name in ("ellipsoid10", "ellipsoid10-c2"):
        past = past_of("ellipsoid10", [name] * 8)
        assert {entry.problem for entry in past} == {name}
        assert len({entry.stream for entry in past}) == 8
        assert past[:4] == past_of("ellipsoid10", [name] * 4)


def test_the_past_of_an_ellipsoid_is_its_neighbour() -> None:
    assert [past.problem for past in past_of("ellipsoid4")] == ["ellipsoid4-c1"]
    assert [past.problem for past in past_of("ellipsoid4-c5")] == ["ellipsoid4-c4"]


@pytest.mark.parametrize("method", ["mo-tpe", "random", "optuna-tpe"])
def test_a_method_that_does_not_look_back_is_the_same_run_whatever_the_past(method: str) -> None:
    (run,) = plan(["ellipsoid4"], [method], [0])
    (other,) = plan(["ellipsoid4"], [method], [0], past=["ellipsoid4-c3"], n_past=50)
    assert run == other
    (warm,) = plan(["ellipsoid4"], [f"{method}+warm"], [0])
    assert warm.past


@pytest.mark.parametrize(
    "change",
    [
        {"problem": "hpolib/naval_propulsion"},
        {"method": "naive-meta-tpe"},
        {"seed": 4},
        {"n_evaluations": 50},
        {"n_start": 10},
        {"past": RUN.past[:2]},
        {"n_past": 50},
        {"settings": (("eta", 2.0),)},
    ],
)
def test_a_run_that_differs_in_anything_has_another_key(change: dict[str, Any]) -> None:
    assert replace(RUN, **change).key != RUN.key


def test_a_key_does_not_depend_on_the_process() -> None:
    code = (
        "from metatpe.bench.plan import *\n"
        f"print(Run({SLICE!r}, 'meta-tpe', 3, past=past_of({SLICE!r}), n_past=100).key)"
    )
    for hash_seed in ("1", "2"):
        result = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": PATH},
            capture_output=True,
            text=True,
        )
        assert result.stdout.strip() == RUN.key == "8eb11968e1d4", result.stderr


def test_a_run_survives_json() -> None:
    run = replace(RUN, settings=(("eta", 1.5), ("gamma", 0.2)))
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run


@pytest.mark.parametrize(
    ("run", "label"),
    [
        (RUN, "meta-tpe"),
        (replace(RUN, settings=(("eta", 1.5),)), "meta-tpe eta=1.5"),
        (Run("ellipsoid4", "mo-tpe", 0), "mo-tpe"),
        (Run("ellipsoid4", "mo-tpe", 0, n_start=10), "mo-tpe n_start=10"),
        (
            Run(
                "ellipsoid4",
                "meta-tpe",
                0,
                past=past_of("ellipsoid4", ["ellipsoid4-c3"] * 4),
                n_past=9,
            ),
            "meta-tpe past=4×ellipsoid4-c3 n_past=9",
        ),
    ],
)
def test_the_label_says_what_is_unusual(run: Run, label: str) -> None:
    assert run.label == label


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (["hpolb"], ["meta-tpe"], [0]),
            "unknown problem or suite 'hpolb'; did you mean 'hpolib'",
        ),
        (([SLICE], ["mo-tpee"], [0]), "unknown method 'mo-tpee'; did you mean 'mo-tpe'"),
        (([SLICE], ["mo-tpe"], [-1]), "seed must be 0 or more, but is -1"),
    ],
)
def test_bad_input_is_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"past": ["elipsoid4"]}, "unknown problem 'elipsoid4'"),
        ({"settings": {"etaa": 2}}, "method 'meta-tpe' has no setting 'etaa'; its settings: eps"),
        ({"n_evaluations": 0}, "n_evaluations must be 1 or more, but is 0"),
        ({"n_past": 1}, "n_past must be 2 or more, but is 1"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan([SLICE], ["meta-tpe"], [0], **options)
