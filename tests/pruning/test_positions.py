import numpy as np
import pytest
from scipy.special import expit

from metatpe.pruning.curves import SHARES, Curves, Row
from metatpe.pruning.positions import (
    dominates,
    frame_of,
    n_best,
    phi,
    positions,
    replayed,
)

G = len(SHARES)


def study(levels: np.ndarray) -> Curves:
    """Return curves that keep their level, (n,), from 2 at the start."""
    n = len(levels)
    values = np.repeat(levels[:, None, None], G, axis=1)
    return Curves(values, values, np.full((n, 1), 2.0), levels[:, None], np.full(n, G - 1))


def row_with(values: np.ndarray) -> Row:
    """Return a running trial with these values, (G, m), which are its best so far."""
    m = values.shape[1]
    return Row(values, values, np.full(m, 2.0), np.full(m, np.nan), G - 1)


def test_one_in_twenty_is_among_the_best_and_always_one() -> None:
    assert [n_best(n) for n in (1, 20, 21, 100)] == [1, 1, 2, 5]


def test_phi_keeps_the_order_and_the_sign_and_is_clipped() -> None:
    u = np.array([-5.0, -1.0, -0.1, 0.0, 0.01, 1.0, 2.0, 1e18])
    assert (np.diff(phi(u)) >= 0.0).all()
    assert phi(np.array([0.0])) == 0.0
    assert phi(np.array([1e18])) == phi(np.array([2.0]))
    np.testing.assert_allclose(phi(u), np.arcsinh(np.clip(u, -1.0, 2.0) / 0.05) / np.arcsinh(20))


def test_losses_of_any_size_have_a_place_between_target_and_start() -> None:
    huge = 1.7e308
    for low, first in [(-huge, huge), (0.0, 1e-300), (huge, huge), (-1e-300, -1e-300)]:
        before = Curves(
            np.full((1, G, 1), low),
            np.full((1, G, 1), low),
            np.full((1, 1), first),
            np.full((1, 1), low),
            np.array([G - 1]),
        )
        frame = frame_of(before, np.array([first]))
        assert frame is not None
        with np.errstate(all="raise"):
            scaled = frame.phi(np.array([-huge, low, huge, np.inf]))
        assert scaled[1] == 0.0
        assert (np.diff(scaled) >= 0.0).all()
        with np.errstate(all="raise", under="ignore"):
            losses = [frame.loss(x) for x in (-2.0, 0.0, 4.0)]
        assert losses[1] == low
        assert np.isfinite(losses).all()


def test_a_study_that_starts_at_its_target_is_measured_in_parts_of_its_losses() -> None:
    frame = frame_of(ended(np.full((1, 1), 1000.0), np.full((1, 1), 1000.0)), np.array([1000.0]))
    assert frame is not None
    width = 1e-9 * (1.0 + 1000.0)
    scaled = frame.phi(np.array([1000.0 + 0.2 * width]))
    np.testing.assert_allclose(scaled, phi(np.array([0.2])), rtol=1e-4)


def test_the_position_depends_on_the_order_of_losses_and_not_on_their_unit() -> None:
    rng = np.random.default_rng(0)
    levels = rng.random(20)
    one, other = study(levels), study(levels)
    other = Curves(
        7.0 * other.values,
        7.0 * other.best,
        7.0 * other.first,
        7.0 * other.final,
        other.reached,
    )
    is_judged = np.ones(20, dtype=np.bool_)
    a, b = positions(one, is_judged), positions(other, is_judged)
    np.testing.assert_allclose(a.features, b.features, atol=1e-9)
    np.testing.assert_allclose(a.outcome, b.outcome, atol=1e-9)


def test_a_tie_is_half_a_win_and_of_several_objectives_all_count() -> None:
    losses = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    np.testing.assert_array_equal(dominates(losses, np.array([1.0, 1.0])), [1.0, 0.5, 0.0])


def test_a_stopped_trial_is_compared_where_it_was_stopped() -> None:
    before = study(np.array([0.5, 1.0]))
    values = before.values.copy()
    values[1, 4:] = np.nan
    final = np.array([[0.5], [np.inf]])
    stopped = Curves(values, values, before.first, final, np.array([G - 1, 3]))
    frame = frame_of(stopped, np.array([2.0]))
    assert frame is not None
    row = row_with(np.full((G, 1), 1.5))
    np.testing.assert_allclose(frame.position(row)[:, 0], np.minimum(np.log(2.5 / 0.5), 2.0))
    ahead = row_with(np.full((G, 1), 0.7))
    np.testing.assert_allclose(frame.position(ahead)[:, 0], 0.0, atol=1e-12)


def partly_stopped(values: np.ndarray, until: np.ndarray) -> Curves:
    """Return curves (n, G) of which some were stopped after a column; the others completed."""
    seen = np.where(np.arange(G) <= until[:, None], values, np.nan)[..., None]
    final = np.where(until < G - 1, np.inf, values[:, -1])[:, None]
    return Curves(seen, seen, np.full((len(values), 1), 2.0), final, until)


def test_a_late_starter_is_ahead_of_stopped_trials_once_it_is_ahead_of_those_that_went_on() -> (
    None
):
    levels = np.append([0.5, 0.6], np.linspace(0.7, 1.0, 8))
    until = np.append([G - 1, G - 1], np.full(8, 3))
    frame = frame_of(partly_stopped(np.repeat(levels[:, None], G, axis=1), until), np.array([2.0]))
    assert frame is not None
    late = np.where(np.arange(G) < 6, 1.5, 0.4)[:, None]  # behind all, then ahead of all
    rank = frame.position(row_with(late))[:, 0]
    np.testing.assert_allclose(rank[:6], 2.0)  # the worst there is
    np.testing.assert_allclose(rank[6:], np.log(0.5 / 10.5))


def test_a_trial_that_falls_behind_those_that_went_on_is_behind_the_better_of_the_stopped() -> (
    None
):
    levels = np.array([0.5, 0.6, 0.55, 0.9])  # two went on, one was stopped between them
    until = np.array([G - 1, G - 1, 3, 3])
    frame = frame_of(partly_stopped(np.repeat(levels[:, None], G, axis=1), until), np.array([2.0]))
    assert frame is not None
    falling = np.where(np.arange(G) < 6, 0.4, 0.7)[:, None]
    rank = frame.position(row_with(falling))[:, 0]
    np.testing.assert_allclose(rank[:6], np.log(0.5 / 4.5))
    # Both that went on and the one between them are ahead; where as many were ahead of a stopped
    # trial as are ahead of this one, what was seen last decides.
    np.testing.assert_allclose(rank[6:], np.log(3.5 / 1.5))


def better_by_loops(values: np.ndarray, until: np.ndarray, row: np.ndarray, g: int) -> float:
    """Return how many trials are better than a row at a column, ties one half."""
    went_on = [i for i in range(len(values)) if until[i] >= g]

    def count(others: list[int], loss: float, column: int) -> float:
        seen = [values[i, column] for i in others]
        return sum(1.0 if x < loss else 0.5 if x == loss else 0.0 for x in seen)

    n_now = count(went_on, row[g], g)
    total = n_now
    for i in set(range(len(values))) - set(went_on):
        n_before = count(went_on, values[i, until[i]], until[i])
        if n_before == n_now:
            total += count([i], row[until[i]], until[i])
        else:
            total += n_before < n_now
    return total


@pytest.mark.parametrize("seed", range(5))
def test_the_rank_among_stopped_trials_is_that_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    values = rng.integers(6, size=(n, G)).astype(np.float64)  # with ties
    until = np.where(rng.random(n) < 0.6, rng.integers(G, size=n), G - 1)
    until[0] = G - 1
    frame = frame_of(partly_stopped(values, until), np.array([9.0]))
    assert frame is not None
    row = rng.integers(6, size=G).astype(np.float64)
    share = np.array([(better_by_loops(values, until, row, g) + 0.5) / (n + 1) for g in range(G)])
    expected = np.minimum(np.log(share / (1.0 - share)), 2.0)
    np.testing.assert_allclose(frame.position(row_with(row[:, None]))[:, 0], expected)


def test_a_trial_counts_only_where_it_has_reported() -> None:
    levels = np.array([0.5, 0.6, 0.7, 0.8])
    until = np.array([G - 1, G - 1, 3, G - 1])
    before = partly_stopped(np.repeat(levels[:, None], G, axis=1), until)
    before.values[2] = np.nan  # stopped before its first report was on the grid
    before.values[3, 6:] = np.nan  # failed
    frame = frame_of(before, np.array([2.0]))
    assert frame is not None
    rank = frame.position(row_with(np.full((G, 1), 1.0)))[:, 0]
    np.testing.assert_allclose(rank[:6], np.minimum(np.log(3.5 / 0.5), 2.0))
    np.testing.assert_allclose(rank[6:], np.log(2.5 / 0.5))


def test_a_failed_trial_does_not_change_the_place_of_a_stopped_one() -> None:
    levels = np.array([0.5, 0.6, 0.55, 0.1])
    until = np.array([G - 1, G - 1, 3, G - 1])
    before = partly_stopped(np.repeat(levels[:, None], G, axis=1), until)
    before.values[3, 6:] = np.nan
    frame = frame_of(before, np.array([2.0]))
    assert frame is not None
    falling = np.where(np.arange(G) < 6, 0.4, 0.58)[:, None]  # ahead of the stopped one, then not
    # One went on ahead of both it and the stopped trial: what was seen last decides.
    np.testing.assert_allclose(frame.position(row_with(falling))[6:, 0], np.log(1.5 / 2.5))


def test_of_many_trials_that_went_on_a_hundred_are_enough(rng: np.random.Generator) -> None:
    n = 600
    levels = rng.permutation(np.linspace(0.1, 1.9, n))
    until = np.where(rng.random(n) < 0.5, 4, G - 1)
    curves = partly_stopped(np.repeat(levels[:, None], G, axis=1), until)
    frame = frame_of(curves, np.array([2.0]))
    assert frame is not None
    rank = frame.position(row_with(np.full((G, 1), 0.7)))[:, 0]
    # Curves that never cross: the order that was seen holds to the end.
    np.testing.assert_allclose(expit(rank), (levels < 0.7).mean(), atol=0.01)


def test_a_position_at_some_shares_is_a_part_of_the_whole(rng: np.random.Generator) -> None:
    until = np.where(rng.random(30) < 0.5, rng.integers(G, size=30), G - 1)
    frame = frame_of(partly_stopped(rng.random((30, G)), until), np.array([2.0]))
    assert frame is not None
    row = row_with(rng.random((G, 1)))
    for some in (slice(5, 6), slice(9)):
        np.testing.assert_array_equal(frame.position(row, some), frame.position(row)[some])


def test_a_completed_trial_is_compared_at_every_share_up_to_the_last(
    rng: np.random.Generator,
) -> None:
    values = rng.random((40, G, 1))
    before = Curves(values, values, np.full((40, 1), 2.0), values[:, -1], np.full(40, G - 1))
    frame = frame_of(before, np.array([2.0]))
    assert frame is not None
    row = row_with(rng.random((G, 1)))
    share = ((values < row.values).sum(axis=0)[:, 0] + 0.5) / 41.0
    expected = np.minimum(np.log(share / (1.0 - share)), 2.0)
    np.testing.assert_allclose(frame.position(row)[:, 0], expected)


def test_progress_is_what_a_trial_has_gained_since_half_its_share(
    rng: np.random.Generator,
) -> None:
    frame = frame_of(study(np.array([0.5, 1.0])), np.array([2.0]))
    assert frame is not None
    values = rng.uniform(0.4, 2.0, size=(G, 1))
    row = row_with(values)
    at_half = np.abs(np.log(SHARES / (0.5 * SHARES[:, None]))).argmin(axis=1)
    scaled = frame.phi(values)[:, 0]
    np.testing.assert_allclose(frame.position(row)[:, 2], scaled[at_half] - scaled)
    # None is known where the trial had not reported yet at half its share.
    late = np.where(np.arange(G)[:, None] < 5, np.nan, values)
    progress = frame.position(row_with(late))[5:, 2]
    is_known = at_half[5:] >= 5
    np.testing.assert_allclose(progress, np.where(is_known, (scaled[at_half] - scaled)[5:], 0.0))


def test_there_is_no_frame_before_a_trial_has_ended_well() -> None:
    curves = study(np.array([np.inf, np.inf]))
    assert frame_of(curves, np.array([2.0])) is None


def ended(final: np.ndarray, first: np.ndarray) -> Curves:
    """Return curves that have these ends and starts, (n, m) each."""
    values = np.repeat(final[:, None], G, axis=1)
    return Curves(values, values, first, final, np.full(len(final), G - 1))


def test_a_trial_is_measured_from_the_median_start_to_the_third_best_end_of_forty_one(
    rng: np.random.Generator,
) -> None:
    levels = rng.permutation(41)[:, None] * 1.0
    frame = frame_of(ended(levels, 100.0 + levels), np.array([500.0]))
    assert frame is not None
    # The median of the starts from 100 to 140, and of that of the trial itself.
    assert (frame.target.tolist(), frame.first.tolist()) == ([2.0], [120.5])
    assert frame.base == pytest.approx(3 / 42)


def test_where_fewer_have_ended_than_count_as_the_best_the_worst_of_them_is_the_target() -> None:
    final = np.full((41, 1), np.inf)
    final[[7, 20]] = [[4.0], [1.0]]
    frame = frame_of(ended(final, np.full((41, 1), 9.0)), np.array([9.0]))
    assert frame is not None
    assert frame.target.tolist() == [4.0]
    assert frame.base == pytest.approx(3 / 42)


def test_of_several_objectives_the_target_is_the_best_in_each_and_the_front_counts() -> None:
    final = np.array([[0.0, 2.0], [0.0, 2.0], [2.0, 0.5], [3.0, 3.0], [1.0, np.inf]])
    frame = frame_of(ended(final, final + 1.0), np.array([4.0, 4.0]))
    assert frame is not None
    assert frame.target.tolist() == [0.0, 0.5]
    assert frame.base == pytest.approx(3 / 6)  # of a point that occurs twice both


def test_what_is_expected_is_the_loss_of_that_place_between_target_and_start() -> None:
    levels = np.array([[1.0], [4.0], [2.0]])
    frame = frame_of(ended(levels, np.full((3, 1), 5.0)), np.array([5.0]))
    assert frame is not None
    for loss in (0.0, 1.0, 1.1, 3.0, 9.0):
        assert frame.loss(float(frame.phi(np.array([loss]))[0])) == pytest.approx(loss)


def test_a_trial_with_one_infinite_loss_does_not_improve_the_front() -> None:
    final = np.array([[0.0, 2.0], [2.0, 0.0]])
    frame = frame_of(ended(final, final + 1.0), np.array([3.0, 3.0]))
    assert frame is not None
    values = np.ones((G, 2))
    broken = Row(values, values, np.array([3.0, 3.0]), np.array([-1.0, np.inf]), G - 1)
    assert frame.outcome(broken) > 0.0


def test_a_trial_that_improves_the_front_is_among_the_best() -> None:
    final = np.array([[0.0, 2.0], [2.0, 0.0]])
    before = ended(final, final + 1.0)
    frame = frame_of(before, np.array([3.0, 3.0]))
    assert frame is not None
    values = np.ones((G, 2))
    better = Row(values, values, np.array([3.0, 3.0]), np.array([1.0, 1.0]), G - 1)
    worse = Row(values, values, np.array([3.0, 3.0]), np.array([2.5, 2.5]), G - 1)
    assert frame.outcome(better) < 0.0 < frame.outcome(worse)


def test_of_a_long_study_so_many_trials_are_replayed_that_more_would_change_little() -> None:
    levels = np.random.default_rng(0).random(250)
    orders = replayed(study(levels), np.ones(len(levels), dtype=np.bool_))
    # The first trial of an order has none before it, so it has no position.
    expected = [199] * 3 + [19] * 10
    assert [len(order.outcome) for order in orders] == expected


def test_a_trial_counts_half_in_long_and_half_in_short_studies() -> None:
    orders = replayed(study(np.random.default_rng(0).random(100)), np.ones(100, dtype=np.bool_))
    weight = np.concatenate([np.full(len(o.outcome), o.weight) for o in orders])
    size = np.concatenate([np.exp(o.features[:, 0, 3]) - 1.0 for o in orders])
    # 19 of 100 trials have fewer than 20 before them; of five times 20 trials, 95 have. Each
    # counts half in an order of all trials, and half in a short study.
    assert weight[size < 19.5].sum() == pytest.approx((19.0 + 95.0) / 2)
    assert weight[size > 19.5].sum() == pytest.approx(80.0 / 2)


def test_a_study_of_few_trials_has_no_short_ones() -> None:
    levels = np.random.default_rng(0).random(19)
    orders = replayed(study(levels), np.ones(len(levels), dtype=np.bool_))
    assert [order.weight for order in orders] == pytest.approx([1 / 3] * 3)


def test_a_trial_among_few_others_has_the_size_of_their_number() -> None:
    frame = frame_of(study(np.array([0.5, 1.0, 0.7])), np.array([2.0]))
    assert frame is not None
    row = row_with(np.full((G, 1), 0.6))
    np.testing.assert_allclose(frame.position(row)[:, 3], np.log(4.0))


def test_an_outlier_changes_the_rank_and_not_the_rank_of_the_best_so_far() -> None:
    frame = frame_of(study(np.array([0.5, 1.0, 1.2])), np.array([2.0]))
    assert frame is not None
    best = np.full((G, 1), 0.7)
    values = best.copy()
    values[6] = 1.9
    row = Row(values, best, np.array([2.0]), np.array([np.nan]), G - 1)
    rank, of_best, progress, _, level = frame.position(row).T
    assert rank[6] > rank[5] == rank[7]
    np.testing.assert_array_equal(of_best, rank[5])
    np.testing.assert_array_equal(progress[3:], 0.0)
    np.testing.assert_array_equal(level, frame.phi(best)[:, 0])


def test_a_position_keeps_the_probability_of_a_new_trial() -> None:
    found = positions(study(np.arange(41.0)), np.ones(41, dtype=np.bool_))
    expected = [n_best(n) / (n + 1) for n in range(1, 41)]
    np.testing.assert_allclose(found.base, expected)
