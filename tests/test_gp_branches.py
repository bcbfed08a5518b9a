"""Branches: what a configuration will use is learned from those that were evaluated."""

import numpy as np
import optuna
import pytest
from helpers import locked
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from metatpe import MetaTPESampler, Space, TransferSampler
from metatpe._gp.branches import Branches
from metatpe.baselines import RGPESampler
from metatpe.space import Floats

UNIT = FloatDistribution(0.0, 1.0)
SPACE = Space(
    {
        "layers": IntDistribution(1, 3),
        "momentum": UNIT,
        "nesterov": CategoricalDistribution([True, False]),
        "opt": CategoricalDistribution(["adam", "sgd"]),
        "rate": UNIT,
        "units2": UNIT,
        "units3": UNIT,
        "warmup": UNIT,
    }
)
OPT, LAYERS = SPACE.names.index("opt"), SPACE.names.index("layers")


def used(params: dict[str, object]) -> dict[str, object]:
    """Return what an objective with two kinds of branches, and one in a branch, would use."""
    is_sgd, n_layers = params["opt"] == "sgd", int(str(params["layers"]))
    left_out = {"units2"} if n_layers < 2 else set()
    left_out |= {"units3"} if n_layers < 3 else set()
    left_out |= set() if is_sgd else {"momentum", "nesterov", "warmup"}
    left_out |= set() if params["nesterov"] else {"warmup"}
    return {name: value for name, value in params.items() if name not in left_out}


def candidates(n: int, rng: np.random.Generator) -> Floats:
    return locked(SPACE.columns.snap(rng.random((n, len(SPACE)))))


def observed(n: int, rng: np.random.Generator) -> Floats:
    return locked(SPACE.encode([used(p) for p in SPACE.decode(candidates(n, rng))]))


def test_a_candidate_loses_what_its_branch_does_not_use(rng: np.random.Generator) -> None:
    branches = Branches.of(SPACE.columns, observed(120, rng))
    X = candidates(200, rng)
    expected = SPACE.encode([used(p) for p in SPACE.decode(X)])
    np.testing.assert_array_equal(branches(X), expected)


def test_without_branches_a_candidate_stays_as_it_is(rng: np.random.Generator) -> None:
    X = candidates(50, rng)
    for known in (X, X[:1], X[:0]):
        np.testing.assert_array_equal(Branches.of(SPACE.columns, known)(X), X)


def test_what_was_used_before_a_parameter_was_added_is_no_branch(
    rng: np.random.Generator,
) -> None:
    known = candidates(60, rng).copy()
    known[:30, SPACE.names.index("rate")] = np.nan
    X = candidates(50, rng)
    np.testing.assert_array_equal(Branches.of(SPACE.columns, locked(known))(X), X)


def test_single_trials_that_ended_early_do_not_hide_the_branches(rng: np.random.Generator) -> None:
    known = observed(100, rng).copy()
    known[:3, 1:] = np.nan
    known[:3, [OPT, LAYERS]] = candidates(3, rng)[:, [OPT, LAYERS]]
    X = candidates(100, rng)
    is_adam = SPACE.columns.cells(X[:, OPT], OPT) == 0
    momentum = SPACE.names.index("momentum")
    found = Branches.of(SPACE.columns, locked(known))(X)
    np.testing.assert_array_equal(np.isnan(found[:, momentum]), is_adam)


def objectives(trial: optuna.Trial) -> tuple[float, float]:
    if trial.suggest_categorical("opt", ["adam", "sgd"]) == "adam":
        beta = trial.suggest_int("beta", 0, 100) / 100
        return (beta - 0.3) ** 2, (beta - 0.6) ** 2
    others = [trial.suggest_float(name, 0, 1) for name in ("momentum", "damping", "decay")]
    return 0.2 + sum(others), 0.2 + sum(others)


@pytest.mark.parametrize("sampler", [TransferSampler, RGPESampler])
def test_no_configuration_is_evaluated_over_and_over_in_a_branch(
    sampler: type[MetaTPESampler],
) -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler(seed=0))
    study.optimize(objectives, n_trials=40)
    assert len({tuple(t.params.values()) for t in study.trials}) >= 36
