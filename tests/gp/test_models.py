"""The models of one task: which observations they are fitted to, and which count as good."""

import numpy as np
import pytest
from studies import SQUARE

from metatpe import Space
from metatpe.gp.models import Observed, thinned
from metatpe.gp.process import Encoder
from metatpe.space import Floats

INF = float("inf")


def observed(losses: list[list[float]], violation: list[float], X: Floats) -> Observed:
    columns = Space(SQUARE).columns
    nothing = np.empty((0, 2))
    return Observed.of(
        columns, Encoder(columns), X, np.array(losses), np.array(violation), nothing
    )


def test_of_very_many_observations_the_best_and_some_of_the_others_are_kept() -> None:
    kept = thinned(np.arange(5000))
    assert len(set(kept.tolist())) == len(kept) == 300
    assert kept[:150].tolist() == list(range(150))
    assert kept[-1] == 4999
    few = np.arange(300)
    assert thinned(few) is few


@pytest.mark.parametrize(
    ("losses", "violation", "good"),
    [
        ([[1.0, 4.0], [2.0, INF], [3.0, 3.0], [0.0, 0.0]], [0.0, 0.0, -1.0, 1e-9], [0, 2]),
        ([[1.0, 4.0], [2.0, INF], [3.0, 3.0], [0.0, 0.0]], [0.1, 0.0, 2.0, 0.5], [0, 1, 2, 3]),
    ],
    ids=["some", "none"],
)
def test_valid_are_the_feasible_and_finished_or_all_where_there_is_none(
    losses: list[list[float]], violation: list[float], good: list[int], rng: np.random.Generator
) -> None:
    X = rng.random((4, 2))
    study = observed(losses, violation, X)
    assert sorted(study.X[study.is_valid].tolist()) == sorted(X[good].tolist())
    assert len(study.reached_features) == len(good)


def test_an_observation_without_any_parameter_is_left_out(rng: np.random.Generator) -> None:
    X = rng.random((3, 2))
    X[0], X[1, 0] = np.nan, np.nan
    study = observed([[1.0], [2.0], [3.0]], [0.0] * 3, X)
    assert study.losses.tolist() == [[2.0], [3.0]]
    assert study.is_used.tolist() == [True, True]
    assert observed([[1.0], [2.0]], [0.0] * 2, X[:2]).is_used.tolist() == [False, True]


def with_deviation(deviation: list[float]) -> Observed:
    columns, X = Space(SQUARE).columns, np.arange(8).reshape(4, 2) / 8
    losses, nothing = np.array([[4.0], [1.0], [3.0], [2.0]]), np.empty((0, 2))
    return Observed.of(
        columns, Encoder(columns), X, losses, np.zeros(4), nothing, np.array(deviation)
    )


def test_what_was_expected_is_known_in_the_order_of_the_observations() -> None:
    study = with_deviation([0.5, 0.0, 0.0, 0.1])
    assert study.losses[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert study.is_seen.tolist() == [True, False, True, False]


def test_models_of_other_deviations_are_others() -> None:
    some, same, other = (with_deviation([0.5, 0.0, 0.0, d]) for d in (0.1, 0.1, 0.2))
    assert some.key == same.key != other.key
