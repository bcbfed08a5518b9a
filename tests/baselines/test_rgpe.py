"""RGPESampler: the task that ranks the study's trials best has the weight."""

from __future__ import annotations

import pytest
from studies import SQUARE, Params, evaluate, new_study, past_study

from metatpe import transfer_history
from metatpe.baselines import RGPESampler


def bowl(params: Params) -> list[float]:
    x, y = params["x"], params["y"]
    return [(x - 0.2) ** 2 + (y - 0.3) ** 2, (x - 0.4) ** 2 + (y - 0.5) ** 2]


def weights_after(n: int) -> dict[str, float]:
    """Return the weights of the same study and of a reversed one after as many trials."""
    same = past_study(bowl, space=SQUARE, n=60, name="same")
    reverse = past_study(
        lambda p: [-f for f in bowl(p)], space=SQUARE, n=60, name="reversed", seed=1
    )
    trials = past_study(bowl, space=SQUARE, n=n, seed=2).trials
    study = new_study(RGPESampler([same, reverse], seed=0, n_startup_trials=0), trials=trials)
    evaluate(study, 1, space=SQUARE, losses=bowl)
    return transfer_history(study)[-1].weights


def test_the_same_study_has_most_of_the_weight_and_the_reversed_one_hardly_any() -> None:
    weights = weights_after(10)
    assert weights["same"] > 0.5
    assert weights["reversed"] < 0.1 * weights["same"]


def test_before_trials_can_be_ranked_no_task_is_preferred() -> None:
    assert list(weights_after(1).values()) == pytest.approx([1 / 3] * 3, abs=0.1)
