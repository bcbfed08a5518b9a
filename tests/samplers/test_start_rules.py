"""The number of first configurations, and the rules `reserve` and `contradicted`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from studies import GRID, SQUARE, evaluate, new_study, past_study

from metatpe import MetaTPESampler, Task, TransferSampler, transfer_history


def test_without_start_up_trials_the_past_has_weight_from_the_first_choice_on() -> None:
    sampler = MetaTPESampler([past_study(space=SQUARE, n=40)], n_startup_trials=0, epsilon=0.0)
    study = new_study(sampler)
    evaluate(study, 8, space=SQUARE)
    reasons = {record.reason for record in transfer_history(study)[1:]}
    assert reasons <= {"weighed", "own"}
    assert "weighed" in reasons


@pytest.mark.parametrize("has_reserve", [True, False])
def test_where_past_tasks_share_their_best_the_reserve_fills_up_or_random_ones_do(
    has_reserve: bool,
) -> None:
    task = Task.from_study(past_study(space=GRID, n=20))
    twins = [task, replace(task, name="twin")]
    sampler = MetaTPESampler(twins, start="draw", n_startup_trials=2, seed=0)
    sampler.rules = replace(sampler.rules, reserve=has_reserve)
    study = new_study(sampler)
    evaluate(study, 2, space=GRID)
    first, second = transfer_history(study)
    assert first.sources == (task.name, "twin")
    assert second.reason == ("best" if has_reserve else "no_start_left")


def test_a_value_enqueued_by_hand_does_not_make_the_space_look_used_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = new_study(MetaTPESampler(seed=0, search_space=GRID))
    for _ in range(8):  # six configurations have i = 1
        study.enqueue_trial({"i": 1})
        evaluate(study, 1, space=GRID)
    assert len({str(t.params) for t in study.trials}) == 6
    assert "every configuration" not in caplog.text


@pytest.mark.parametrize("make", [TransferSampler, MetaTPESampler])
def test_a_start_that_contradicts_all_past_tasks_ends_early_and_one_that_fits_does_not(
    make: Callable[..., MetaTPESampler | TransferSampler],
) -> None:
    task = Task.from_study(past_study(space=SQUARE, n=60))
    reverse = replace(task, losses=-task.losses)

    def n_warm_starts(past: Task, *, rule: bool) -> int:
        sampler = make([past], seed=0)
        sampler.rules = replace(sampler.rules, contradicted=rule, restart=False)
        study = new_study(sampler)
        evaluate(study, 5, space=SQUARE)
        return [record.origin for record in transfer_history(study)].count("warm_start")

    assert n_warm_starts(task, rule=True) == n_warm_starts(task, rule=False) == 5
    assert n_warm_starts(reverse, rule=False) == 5
    assert 2 <= n_warm_starts(reverse, rule=True) < 5
