"""Values of every kind: maximised, infinite, tied, huge."""

from __future__ import annotations

import warnings

import pytest
from studies import (
    ONE,
    SQUARE,
    Losses,
    Params,
    asked,
    evaluate,
    frozen,
    in_space,
    new_study,
    random_sampler,
    spread,
    suggestions,
    two_losses,
)

from metatpe import Task, transfer_history
from samplers.five import Make, learning, modelling, pasts, with_and_without

INF = float("inf")
PATHOLOGICAL: dict[str, list[list[float]]] = {
    "constant": [[1.0, 1.0]] * 8,
    "one constant": [[1.0, 0.1 * i] for i in range(8)],
    "infinite": [[INF, 1.0], [-INF, 1.0]] * 4,
    "all infinite": [[INF, INF]] * 8,
    "all minus infinite": [[-INF, -INF]] * 8,
    "one infinite": [[float(i), INF] for i in range(8)],
    "mixed": [[-INF, INF], [INF, -INF], [1.0, 2.0], [2.0, 1.0]],
    "huge": [[1e300, -1e300], [-1e300, 1e300], [0.0, 0.0]],
    "one": [[1.0, 2.0]],
}


@learning
@pytest.mark.parametrize("values", PATHOLOGICAL.values(), ids=list(PATHOLOGICAL))
@pytest.mark.parametrize("is_one_place", [True, False])
def test_after_a_pathological_history_the_acquisition_chooses_without_a_warning(
    make: Make, values: list[list[float]], is_one_place: bool
) -> None:
    points = [{"x": 0.5, "y": 0.5}] * 8 if is_one_place else spread(8)
    trials = [frozen(p, v) for p, v in zip(points, values, strict=False)]
    past = Task.from_study(new_study(random_sampler(0), trials=trials * 2), name="past")
    study = new_study(make.at_once([past], start="random"), trials=trials)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (params,) = evaluate(study, 1, space=SQUARE)
    assert transfer_history(study)[-1].origin == "acquisition"
    assert in_space(params, SQUARE)


@modelling
def test_minus_infinity_is_the_best_and_infinity_the_worst(make: Make) -> None:
    def distance(value: float) -> float:
        """Return how far the next suggestion is from a spot with such a value."""
        spot = {"x": 0.8, "y": 0.8}
        trials = [frozen(p, two_losses(p)[0]) for p in spread(10)] + [frozen(spot, value)] * 2
        (params,) = asked(new_study(make.at_once(), ONE, trials=trials), 1)
        return abs(params["x"] - 0.8) + abs(params["y"] - 0.8)

    assert distance(-INF) < 0.5 < distance(INF)


@with_and_without
@pytest.mark.parametrize("signs", [(-1,), (1, -1), (-1, -1)])
def test_negating_a_maximised_objective_changes_no_suggestion(
    make: Make, signs: tuple[int, ...], n_sources: int
) -> None:
    def losses(params: Params) -> list[float]:
        return [s * v for s, v in zip(signs, two_losses(params), strict=False)]

    def run(losses: Losses, directions: list[str]) -> list[Params]:
        sources = pasts(n_sources, losses=losses, directions=directions, n=10)
        sampler = make(sources, n_startup_trials=3)
        return suggestions(sampler, 5, losses=losses, directions=directions)

    maximised = run(losses, ["maximize" if s < 0 else "minimize" for s in signs])
    assert maximised == run(two_losses, ["minimize"] * len(signs))


@learning
def test_the_scale_of_an_objective_changes_no_suggestion(make: Make) -> None:
    def even(params: Params) -> list[float]:
        """Return losses of both signs, which no logarithm is taken of."""
        return [f - 0.25 for f in two_losses(params)]

    def scaled(params: Params) -> list[float]:
        # Powers of two, so that no digit is rounded differently.
        first, second = even(params)
        return [2.0**60 * first, 2.0**-40 * second]

    def run(past: Losses, losses: Losses) -> list[Params]:
        sources = pasts(1, losses=past, space=SQUARE)
        return suggestions(make.at_once(sources), 4, losses=losses, space=SQUARE)

    plain = run(even, even)
    assert run(even, scaled) == plain
    assert run(scaled, even) == plain
