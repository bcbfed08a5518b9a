"""TSTRSampler: no task is closer to the study than itself, and a far one has no weight."""

from __future__ import annotations

import pytest
from studies import SQUARE, Params, evaluate, new_study, past_study

from metatpe import transfer_history
from metatpe.baselines import TSTRSampler


def bowl(params: Params) -> list[float]:
    x, y = params["x"], params["y"]
    return [(x - 0.2) ** 2 + (y - 0.3) ** 2, (x - 0.4) ** 2 + (y - 0.5) ** 2]


def test_the_study_has_the_largest_weight_a_like_one_nearly_as_much_and_a_reversed_one_none() -> (
    None
):
    same = past_study(bowl, space=SQUARE, n=60, name="same")
    reverse = past_study(
        lambda p: [-f for f in bowl(p)], space=SQUARE, n=60, name="reversed", seed=1
    )
    trials = past_study(bowl, space=SQUARE, n=10, seed=2).trials
    study = new_study(TSTRSampler([same, reverse], seed=0, n_startup_trials=0), trials=trials)
    evaluate(study, 3, space=SQUARE, losses=bowl)
    for record in transfer_history(study):
        assert record.weights["target"] >= record.weights["same"] > 0.4
        assert record.weights["reversed"] == 0.0
        assert sum(record.weights.values()) == pytest.approx(1.0, abs=1e-5)
