"""The restart: what a study does with a past that is reversed."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from optuna.study import Study
from studies import (
    ONE,
    SQUARE,
    TWO,
    Params,
    evaluate,
    frozen,
    new_study,
    past_study,
    spread,
    two_losses,
)

from metatpe import MetaTPESampler, Space, Task, transfer_history
from metatpe.past.start import reversed_start
from metatpe.samplers.guards import is_reversed, may_restart
from metatpe.study.record import start_of


def negated(params: Params) -> list[float]:
    return [-loss for loss in two_losses(params)]


def reversed_past(directions: tuple[str, ...] = TWO) -> list[Study]:
    return [
        past_study(negated, seed=i, name=f"past {i}", n=40, space=SQUARE, directions=directions)
        for i in range(3)
    ]


def starts(study: Study) -> list[int]:
    return [start_of(t) for t in study.trials if start_of(t) >= 0]


@pytest.mark.parametrize("directions", [ONE, TWO])
def test_a_reversed_past_gives_its_worst_configurations_and_a_warning_once(
    directions: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    sources = reversed_past(directions)
    study = new_study(MetaTPESampler(sources, seed=0), directions)
    suggested = evaluate(study, 40, space=SQUARE)
    records = [r for r in transfer_history(study) if r.reason == "reversed"]
    later = [r.number for r in records]
    assert len(later) == 5
    assert max(later) <= 25
    assert all(r.origin == "warm_start" and r.sources for r in records)
    stored = [t for source in sources for t in source.trials]
    in_past = [next(t.values for t in stored if t.params == suggested[i]) for i in later]
    assert np.mean(in_past) > np.mean([t.values for t in stored])  # bad there
    values = np.array([t.values for t in study.trials])
    assert values[later].mean() < values[:5].mean()  # and good here
    assert caplog.text.count("in reverse: what was good") == 1
    assert len(set(starts(study))) == 3 + 5  # the start ends when it contradicts the past


@pytest.mark.parametrize("seed", range(5))
def test_a_past_that_fits_causes_no_restart(seed: int) -> None:
    sources = [past_study(seed=i, name=f"past {i}", n=40, space=SQUARE) for i in range(3)]
    study = new_study(MetaTPESampler(sources, seed=seed))
    evaluate(study, 30, space=SQUARE)
    assert len(starts(study)) == 5


def test_without_the_rule_new_a_reversed_past_still_causes_a_restart() -> None:
    sampler = MetaTPESampler(reversed_past(), seed=0)
    sampler.rules = replace(sampler.rules, new=False)
    study = new_study(sampler)
    evaluate(study, 25, space=SQUARE)
    assert "reversed" in [r.reason for r in transfer_history(study)]


def test_a_restart_that_turns_out_bad_costs_one_trial_and_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def to_the_corner(params: Params) -> list[float]:
        return [2.0 - params["x"] - params["y"]]

    def to_the_middle(params: Params) -> list[float]:
        return [abs(params["x"] - 0.5) + abs(params["y"] - 0.5)]

    source = past_study(to_the_corner, n=40, space=SQUARE, directions=ONE)
    study = new_study(MetaTPESampler([source], seed=0), ONE)
    evaluate(study, 30, space=SQUARE, losses=to_the_middle)
    assert len(starts(study)) == 3 + 1
    assert "in reverse: what was good" not in caplog.text


@pytest.mark.parametrize("settings", [{"start": "random"}, {"weights": "uniform"}])
def test_without_a_start_or_similarities_there_is_no_restart(settings: dict[str, Any]) -> None:
    study = new_study(MetaTPESampler(reversed_past(), seed=0, **settings))
    evaluate(study, 30, space=SQUARE)
    assert len(starts(study)) == (0 if "start" in settings else 3)


def test_the_rule_can_be_switched_off() -> None:
    sampler = MetaTPESampler(reversed_past(), seed=0)
    sampler.rules = replace(sampler.rules, restart=False)
    study = new_study(sampler)
    evaluate(study, 30, space=SQUARE)
    assert len(starts(study)) == 3


def up_to_the_restart(sources: list[Study]) -> Study:
    """Return a study whose next trial is the first one of the reversed past."""
    study = new_study(MetaTPESampler(sources, seed=0))
    while len(starts(study)) < 6:
        evaluate(study, 1, space=SQUARE)
    return new_study(MetaTPESampler(sources, seed=0), trials=study.trials[:-1])


def test_a_trial_enqueued_by_hand_keeps_what_was_enqueued() -> None:
    study = up_to_the_restart(reversed_past())
    study.enqueue_trial({"x": 0.123})
    assert study.ask(SQUARE).params["x"] == 0.123
    assert len(starts(study)) == 5
    study.ask(SQUARE)
    assert len(starts(study)) == 6  # it went to the next one


def test_workers_get_different_configurations_of_the_reversed_past() -> None:
    study = up_to_the_restart(reversed_past())
    asked = [study.ask(SQUARE).params for _ in range(4)]
    given = starts(study)
    assert len(given) > 6
    assert len(set(given)) == len(given)
    assert len({str(params) for params in asked}) == 4


@pytest.mark.parametrize(("n", "is_restarted"), [(25, True), (26, False)])
def test_a_restart_begins_within_five_times_the_length_of_the_start(
    n: int, is_restarted: bool
) -> None:
    def bowl(params: Params) -> float:
        return float((params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2)

    points = spread(60)
    X = np.array([[p["x"], p["y"]] for p in points])
    task = Task("past", Space(SQUARE), X, np.array([[bowl(p)] for p in points]))
    trials = [frozen(params, -bowl(params)) for params in spread(n, 0.05)]
    study = new_study(MetaTPESampler([task], epsilon=0.0, seed=0), ONE, trials=trials)
    study.ask(SQUARE)
    (record,) = transfer_history(study)
    assert (record.reason == "reversed") == is_restarted


def test_the_past_is_reversed_where_its_tasks_agree_on_that() -> None:
    assert is_reversed(np.array([-3.0, -3.0, -3.0]))
    assert not is_reversed(np.array([3.0, -3.0, -3.0]))
    assert is_reversed(np.array([-1.65]))  # which happens by chance once in twenty times
    assert not is_reversed(np.array([-1.64]))
    assert not is_reversed(np.array([3.0, 3.0]))
    assert not is_reversed(np.zeros(2))
    with np.errstate(all="raise"), warnings.catch_warnings(action="error"):
        assert not is_reversed(np.empty(0))


def test_a_restart_goes_on_while_its_configurations_do_better_than_the_others() -> None:
    start = np.array([0.0, 1.0, -1.0, 5.0])  # two first ones, an own one, one reversed
    assert may_restart(np.array([3, 2, 1, 0]), start, first=5)
    assert not may_restart(np.array([0, 1, 1, 3]), start, first=5)
    assert not may_restart(np.array([1, 1, 1, 1]), start, first=5)
    assert may_restart(np.array([0, 1, 1]), start[:3], first=5)  # none was given yet


def test_a_reversed_start_begins_with_the_worst_and_what_failed_stays_last() -> None:
    space = Space({"x": SQUARE["x"]})
    X = np.linspace(0.0, 1.0, 5)[:, None]
    losses = np.array([[1.0], [2.0], [3.0], [np.inf], [4.0]])
    start = reversed_start([Task("past", space, X, losses)], 2)
    found = [Space(SQUARE).encode([first.params])[0, 0] for first in start.configurations]
    assert sorted(found[:2]) == [0.5, 1.0]  # in random order
    assert found[2:] == [0.25, 0.0, 0.75]
