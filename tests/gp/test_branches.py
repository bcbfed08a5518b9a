"""Branches: what a configuration will use is learned from those that were evaluated."""

import numpy as np
import optuna
import pytest
from helpers import NAN, locked
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from metatpe import MetaTPESampler, Space, TransferSampler
from metatpe.baselines import RGPESampler
from metatpe.gp.branches import Branches, _some_of_each
from metatpe.space import Floats, Mask

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
OPT, MOMENTUM = SPACE.names.index("opt"), SPACE.names.index("momentum")


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


def learned(X: Floats) -> Branches:
    return Branches.of(SPACE.columns, X, X[:0])


def test_a_candidate_loses_what_its_branch_does_not_use(rng: np.random.Generator) -> None:
    branches = learned(observed(120, rng))
    X = candidates(200, rng)
    expected = SPACE.encode([used(p) for p in SPACE.decode(X)])
    np.testing.assert_array_equal(branches(X), expected)


def test_without_branches_a_candidate_stays_as_it_is(rng: np.random.Generator) -> None:
    X = candidates(50, rng)
    for known in (X, X[:1], X[:0]):
        np.testing.assert_array_equal(learned(known)(X), X)


def test_what_was_used_before_a_parameter_was_added_is_no_branch(
    rng: np.random.Generator,
) -> None:
    known = candidates(60, rng).copy()
    known[:30, SPACE.names.index("rate")] = np.nan
    X = candidates(50, rng)
    np.testing.assert_array_equal(learned(locked(known))(X), X)


def is_sgd(X: Floats) -> Mask:
    found: Mask = SPACE.columns.cells(X[:, OPT], OPT) == 1
    return found


def assert_momentum_is_sgds(branches: Branches, X: Floats) -> None:
    np.testing.assert_array_equal(~np.isnan(branches(X)[:, MOMENTUM]), is_sgd(X))


@pytest.mark.parametrize("missing", [slice(1, OPT), slice(1, None), slice(None)])
def test_single_trials_that_ended_early_do_not_hide_the_branches(
    missing: slice, rng: np.random.Generator
) -> None:
    known = observed(100, rng).copy()
    known[:2, missing] = NAN
    assert_momentum_is_sgds(learned(locked(known)), candidates(100, rng))


def test_a_branch_that_was_left_long_ago_is_still_known(rng: np.random.Generator) -> None:
    known = observed(1000, rng)
    left = np.vstack([known[:20], known[~is_sgd(known)]])
    assert_momentum_is_sgds(learned(locked(left)), candidates(100, rng))


def test_a_branch_that_was_tried_once_is_known(rng: np.random.Generator) -> None:
    known = observed(100, rng)
    once = np.vstack([known[~is_sgd(known)], known[is_sgd(known)][:1]])
    assert_momentum_is_sgds(learned(locked(once)), candidates(100, rng))


def test_a_choice_that_was_never_tried_keeps_its_values() -> None:
    space = Space({"opt": CategoricalDistribution(["adam", "sgd", "rms"]), "x": UNIT})
    known = space.encode([{"opt": "adam"}] * 12 + [{"opt": "sgd", "x": 0.3}] * 8)
    X = locked(space.encode([{"opt": opt, "x": 0.5} for opt in ("adam", "sgd", "rms")]))
    found = Branches.of(space.columns, locked(known), X[:0])(X)
    np.testing.assert_array_equal(np.isnan(found[:, 1]), [True, False, False])


def test_what_is_being_evaluated_is_not_new(rng: np.random.Generator) -> None:
    known, X = observed(100, rng), candidates(1, rng)
    other = X.copy()
    other[~is_sgd(X), MOMENTUM] = 1.0 - X[~is_sgd(X), MOMENTUM]  # which it does not use
    assert learned(known).is_new(X).all()
    assert not Branches.of(SPACE.columns, known, locked(other)).is_new(X).any()


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


def test_a_column_whose_observations_are_divided_does_not_tell_the_use_of_another() -> None:
    space = Space({"kind": CategoricalDistribution("ab"), "m": UNIT})
    known = space.encode([{"kind": "a", "m": 0.1}, {"kind": "a", "m": 0.2}, {"kind": "a"}])
    known = np.vstack([known, space.encode([{"kind": "b"}] * 20)])
    # Of the others of its kind, as many use m as do not: the first two are told by neither.
    X = locked(space.encode([{"kind": kind, "m": 0.5} for kind in "ab"]))
    np.testing.assert_array_equal(Branches.of(space.columns, known, X[:0])(X), X)


def test_branches_that_were_tried_once_each_do_not_hide_the_others() -> None:
    space = Space(
        {
            "algorithm": CategoricalDistribution(["boost", "forest", "knn", "linear"]),
            "depth": IntDistribution(1, 6),
            "k": IntDistribution(1, 40),
            "penalty": UNIT,
            "trees": IntDistribution(3, 40),
        }
    )
    of_boost = [{"algorithm": "boost", "depth": 1 + i % 6} for i in range(17)]
    of_linear = [{"algorithm": "linear", "penalty": i / 10} for i in range(10)]
    once = [{"algorithm": "forest", "trees": 9}, {"algorithm": "knn", "k": 16}]
    known = locked(space.encode([*of_boost, *of_linear, *once]))
    whole = {"depth": 2, "k": 9, "penalty": 0.5, "trees": 7}
    names = ["boost", "forest", "knn", "linear"]
    X = locked(space.encode([{"algorithm": name, **whole} for name in names]))
    found = Branches.of(space.columns, known, X[:0])(X)
    used = [
        {name for name, x in zip(space.names, row, strict=True) if not np.isnan(x)}
        for row in found
    ]
    uses = ["depth", "trees", "k", "penalty"]
    assert used == [{"algorithm", own} for own in uses]


def test_what_each_observation_does_alone_is_no_rule(rng: np.random.Generator) -> None:
    space = Space({"id": CategoricalDistribution([f"c{i}" for i in range(40)]), "m": UNIT})
    X = space.columns.snap(np.stack([(np.arange(40) + 0.5) / 40, rng.random(40)], axis=1))
    X[rng.permutation(40)[:20], 1] = NAN
    candidates = np.where(np.isnan(X), 0.5, X)
    np.testing.assert_array_equal(Branches.of(space.columns, X, X[:0])(candidates), candidates)


@pytest.mark.parametrize(("n_wrong", "is_branch"), [(5, True), (6, False)])
def test_a_branch_may_be_wrong_for_one_observation_in_twenty(
    n_wrong: int, is_branch: bool
) -> None:
    space = Space({"kind": CategoricalDistribution("ab"), "m": UNIT})
    rows = [{"kind": "a", "m": 0.1}] * (60 - n_wrong) + [{"kind": "a"}] * n_wrong
    known = locked(space.encode([*rows, *[{"kind": "b"}] * 40]))
    X = locked(space.encode([{"kind": kind, "m": 0.5} for kind in "ab"]))
    found = Branches.of(space.columns, known, X[:0])(X)
    np.testing.assert_array_equal(np.isnan(found[:, 1]), [False, is_branch])


@pytest.mark.parametrize(("n_without", "decides"), [(5, True), (6, False)])
def test_what_nineteen_in_twenty_observations_use_may_decide(
    n_without: int, decides: bool
) -> None:
    space = Space({"kind": CategoricalDistribution("ab"), "m": UNIT, "x": UNIT})
    rows = [{"kind": "a", "m": 0.1, "x": 0.5}] * 50 + [{"kind": "b", "x": 0.5}] * (50 - n_without)
    known = locked(space.encode([*rows, *[{"x": 0.5}] * n_without]))
    X = locked(space.encode([{"kind": kind, "m": 0.5, "x": 0.5} for kind in "ab"]))
    found = Branches.of(space.columns, known, X[:0])(X)
    np.testing.assert_array_equal(np.isnan(found[:, 1]), [False, decides])


@pytest.mark.parametrize(("n_alone", "is_told"), [(10, True), (11, False)])
def test_a_column_most_of_whose_values_occur_once_tells_nothing(
    n_alone: int, is_told: bool
) -> None:
    names = ["a", "b", *map(str, range(n_alone))]
    space = Space({"kind": CategoricalDistribution(names), "m": UNIT})
    rows = [{"kind": "a", "m": 0.1}] * 5 + [{"kind": "b"}] * 5
    rows += [{"kind": name} for name in names[2:]]
    X = locked(space.encode([{"kind": kind, "m": 0.5} for kind in "ab"]))
    found = Branches.of(space.columns, locked(space.encode(rows)), X[:0])(X)
    np.testing.assert_array_equal(np.isnan(found[:, 1]), [False, is_told])


def test_of_each_branch_so_many_are_known_that_there_are_three_hundred_and_at_least_five() -> None:
    both = np.repeat([[0.1, NAN], [0.1, 0.2]], [400, 400], axis=0)
    both[:, 0] = np.arange(800)
    kept = _some_of_each(both)
    np.testing.assert_array_equal(kept[:, 0], [*range(250, 400), *range(650, 800)])
    kinds = np.where(np.arange(64)[:, None] >> np.arange(6) & 1, 0.5, NAN)  # as many as there are
    X = np.column_stack([np.arange(64 * 9) / 1000, np.tile(kinds, (9, 1))])
    kept = _some_of_each(X)
    np.testing.assert_array_equal(kept, X[-300:])


def left_out(space: Space, rows: list[dict[str, object]], wanted: list[dict[str, object]]) -> Mask:
    """Return which of some configurations lose their value of m after these observations."""
    X = locked(space.encode([{**params, "m": 0.5} for params in wanted]))
    found = Branches.of(space.columns, locked(space.encode(rows)), X[:0])(X)
    lost: Mask = np.isnan(found[:, space.names.index("m")])
    return lost


def test_a_column_that_is_wrong_as_often_as_a_constant_guess_tells_nothing() -> None:
    space = Space({"kind": CategoricalDistribution("abc"), "m": UNIT})
    # Two do not use m; of the column both of kind b are wrong, and the one of kind c is alone.
    rows = [{"kind": "a", "m": 0.1}] * 60 + [{"kind": "b", "m": 0.1}, {"kind": "b"}]
    lost = left_out(space, [*rows, {"kind": "c"}], [{"kind": kind} for kind in "abc"])
    assert lost.tolist() == [False] * 3
    lost = left_out(space, [*rows, *[{"kind": "c"}] * 2], [{"kind": kind} for kind in "abc"])
    assert lost.tolist() == [False, False, True]


def test_a_value_that_half_of_its_observations_use_is_kept() -> None:
    space = Space({"kind": CategoricalDistribution("abc"), "m": UNIT})
    rows = [{"kind": "a", "m": 0.1}] * 60 + [{"kind": "b"}] * 40
    halves = [{"kind": "c", "m": 0.1}, {"kind": "c"}]
    lost = left_out(space, [*rows, *halves], [{"kind": kind} for kind in "abc"])
    assert lost.tolist() == [False, True, False]


def test_of_columns_that_are_never_wrong_the_one_with_fewer_single_values_decides() -> None:
    space = Space(
        {
            "first": CategoricalDistribution("abc"),
            "m": UNIT,
            "other": CategoricalDistribution("pq"),
        }
    )
    rows = [{"first": "a", "m": 0.1, "other": "p"}] * 10 + [{"first": "b", "other": "q"}] * 9
    wanted = [{"first": "a", "other": "q"}, {"first": "b", "other": "p"}]
    lost = left_out(space, [*rows, {"first": "c", "other": "q"}], wanted)
    assert lost.tolist() == [True, False]
