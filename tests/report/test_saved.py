"""How many trials were saved: by hand-made runs, and by chance."""

from typing import Any

import numpy as np
import pytest

from metatpe.report.saved import BLOCK, AgainstRuns, ByTurns, against_runs, by_turns

INF = float("inf")


def column(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=float)[:, None]


def test_the_trials_saved_are_those_by_which_the_other_run_was_later() -> None:
    saved = against_runs(column(5, 1, 3, 2), [column(6, 5, 4, 3, 2, 1)])
    assert saved == AgainstRuns(here=[2], there=[6])
    assert saved.n == 4


def test_runs_are_compared_at_the_best_that_both_have_reached() -> None:
    saved = against_runs(column(5, 2, 1), [column(5, 4, 3)])
    assert saved == AgainstRuns(here=[2], there=[3])
    lost = against_runs(column(5, 4, 3), [column(5, 2, 1)])
    assert lost == AgainstRuns(here=[3], there=[2])
    assert lost.n == -1


def test_of_several_runs_the_middle_counts() -> None:
    here = column(1)
    saved = against_runs(here, [column(1), column(2, 2, 1), column(2, 2, 2, 2, 2, 1)])
    assert saved is not None
    assert saved.each == [0, 2, 5]
    assert saved.n == 2


def test_the_scale_of_an_objective_does_not_matter(rng: np.random.Generator) -> None:
    here, there = rng.random((30, 2)), rng.random((40, 2)) + 0.1
    scaled = [np.stack([np.exp(9 * run[:, 0]), run[:, 1] ** 3], axis=1) for run in (here, there)]
    assert against_runs(here, [there]) == against_runs(scaled[0], [scaled[1]])


def test_trials_that_do_not_count_reach_nothing() -> None:
    saved = against_runs(
        np.array([[INF, INF], [1.0, 1.0]]), [np.array([[2.0, 2.0], [INF, INF], [1.0, 1.0]])]
    )
    assert saved == AgainstRuns(here=[2], there=[3])
    assert against_runs(column(INF), [column(1)]) is None


def hits(which: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return losses that fall at every hit and rise elsewhere."""
    steps = np.arange(len(which), dtype=float)
    return np.where(which, -steps, steps + 1)[:, None]


def turns_and_hits() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return 60 weighed and 60 own turns, of which every second and every sixth is a hit."""
    turns = np.tile([1.0, -1.0], 60)
    which = np.zeros(120, dtype=bool)
    which[0::4] = True
    which[1::12] = True
    return turns, which


def counts_of(saved: ByTurns) -> tuple[int, int, int, int]:
    return saved.n_weighed, saved.n_weighed_hits, saved.n_own, saved.n_own_hits


def test_weighed_turns_save_what_own_turns_would_have_taken() -> None:
    turns, which = turns_and_hits()
    saved = by_turns(hits(which), turns)
    assert saved is not None
    assert counts_of(saved) == (59, 29, 59, 9)  # without those up to the first own turn
    assert saved.n == pytest.approx(59 * (29 / 9 - 1), abs=1)
    assert 0 < saved.low < saved.n < saved.high


@pytest.mark.parametrize("n_led", [1, 45, 57, 300])
def test_weighed_turns_before_the_first_own_one_change_nothing(n_led: int) -> None:
    """`TransferSampler` starts to draw late: what came before was not drawn."""
    turns, which = turns_and_hits()
    led = np.ones(n_led)
    late = by_turns(hits(np.append(led > 0, which)), np.append(led, turns))
    assert late == by_turns(hits(which), turns)


def test_blocks_of_one_kind_change_nothing() -> None:
    turns, which = turns_and_hits()
    fill, more = BLOCK - (len(turns) - 2) % BLOCK, 3 * BLOCK
    turns, which = np.append(turns, np.zeros(fill)), np.append(which, np.zeros(fill, bool))
    turns[-fill:] = [1.0, -1.0] * (fill // 2)  # the last block is full
    plain = by_turns(hits(which), turns)
    assert plain is not None
    later = by_turns(hits(np.append(which, np.ones(more, bool))), np.append(turns, np.ones(more)))
    assert later == plain


def test_trials_that_are_no_turn_change_nothing() -> None:
    turns, which = turns_and_hits()
    mixed, hit = np.zeros(2 * len(turns)), np.zeros(2 * len(turns), bool)
    mixed[::2], hit[::2] = turns, which
    assert by_turns(hits(hit), mixed) == by_turns(hits(which), turns)


def test_turns_that_found_too_little_say_nothing() -> None:
    turns = np.tile([1.0, -1.0], 60)
    which = np.zeros(120, dtype=bool)
    which[0::4] = True
    which[[1, 41, 81]] = True  # three hits are too few to divide by
    assert by_turns(hits(which), turns) is None
    assert by_turns(hits(which), np.ones(120)) is None
    assert by_turns(hits(which), np.zeros(120)) is None


def test_an_early_share_of_the_turns_is_not_taken_for_a_gain(rng: np.random.Generator) -> None:
    """Hits are frequent early, and so are weighed turns, for no common reason."""
    is_early = np.arange(200) < 60
    claims, ratios = 0, []
    for _ in range(100):
        which = rng.random(200) < np.where(is_early, 0.6, 0.1)
        turns = np.where(rng.random(200) < np.where(is_early, 0.8, 0.3), 1.0, -1.0)
        claims += by_turns(hits(which), turns) is not None
        ratios.append(which[turns > 0].mean() / which[turns < 0].mean())
    assert np.mean(ratios) > 1.7
    assert claims <= 12


def test_where_nothing_is_saved_that_is_rarely_claimed(rng: np.random.Generator) -> None:
    claims = 0
    for _ in range(200):
        which = rng.random(150) < 0.3
        turns = np.where(rng.random(150) < 0.6, 1.0, -1.0)
        claims += by_turns(hits(which), turns) is not None
    assert claims <= 20  # 5 % by the interval; 10 % leaves room for chance
