import numpy as np
import pytest

from metatpe.pruning.analogues import (
    Analogues,
    Positions,
    dominates,
    frame_of,
    n_best,
    phi,
    positions,
    replayed,
)
from metatpe.pruning.curves import SHARES, Curves, Row

G = len(SHARES)


def study(levels: np.ndarray) -> Curves:
    """Return curves that keep their level, (n,), from 2 at the start."""
    n = len(levels)
    values = np.repeat(levels[:, None, None], G, axis=1)
    return Curves(values, np.full((n, 1), 2.0), levels[:, None], np.full(n, G - 1))


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
    other = Curves(7.0 * other.values, 7.0 * other.first, 7.0 * other.final, other.reached)
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
    stopped = Curves(values, before.first, final, np.array([G - 1, 3]))
    frame = frame_of(stopped, np.array([2.0]))
    assert frame is not None
    row = Row(np.full((G, 1), 1.5), np.array([2.0]), np.array([np.nan]), G - 1)
    np.testing.assert_allclose(frame.position(row)[:, 0], np.minimum(np.log(2.5 / 0.5), 2.0))
    ahead = Row(np.full((G, 1), 0.7), np.array([2.0]), np.array([np.nan]), G - 1)
    np.testing.assert_allclose(frame.position(ahead)[:, 0], 0.0, atol=1e-12)


def test_a_completed_trial_is_compared_at_every_share_up_to_the_last(
    rng: np.random.Generator,
) -> None:
    values = rng.random((40, G, 1))
    before = Curves(values, np.full((40, 1), 2.0), values[:, -1], np.full(40, G - 1))
    frame = frame_of(before, np.array([2.0]))
    assert frame is not None
    row = Row(rng.random((G, 1)), np.array([2.0]), np.array([np.nan]), G - 1)
    share = ((values < row.values).sum(axis=0)[:, 0] + 0.5) / 41.0
    expected = np.minimum(np.log(share / (1.0 - share)), 2.0)
    np.testing.assert_allclose(frame.position(row)[:, 0], expected)


def test_progress_is_what_a_trial_has_gained_since_half_its_share(
    rng: np.random.Generator,
) -> None:
    frame = frame_of(study(np.array([0.5, 1.0])), np.array([2.0]))
    assert frame is not None
    values = rng.uniform(0.4, 2.0, size=(G, 1))
    row = Row(values, np.array([2.0]), np.array([np.nan]), G - 1)
    at_half = np.abs(np.log(SHARES / (0.5 * SHARES[:, None]))).argmin(axis=1)
    scaled = frame.phi(values)[:, 0]
    np.testing.assert_allclose(frame.position(row)[:, 1], scaled[at_half] - scaled)
    # None is known where the trial had not reported yet at half its share.
    late = np.where(np.arange(G)[:, None] < 5, np.nan, values)
    progress = frame.position(Row(late, row.first, row.final, G - 1))[5:, 1]
    is_known = at_half[5:] >= 5
    np.testing.assert_allclose(progress, np.where(is_known, (scaled[at_half] - scaled)[5:], 0.0))


def test_there_is_no_frame_before_a_trial_has_ended_well() -> None:
    curves = study(np.array([np.inf, np.inf]))
    assert frame_of(curves, np.array([2.0])) is None


def ended(final: np.ndarray, first: np.ndarray) -> Curves:
    """Return curves that have these ends and starts, (n, m) each."""
    return Curves(np.repeat(final[:, None], G, axis=1), first, final, np.full(len(final), G - 1))


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
    broken = Row(values, np.array([3.0, 3.0]), np.array([-1.0, np.inf]), G - 1)
    assert frame.outcome(broken) > 0.0


def test_a_trial_that_improves_the_front_is_among_the_best() -> None:
    final = np.array([[0.0, 2.0], [2.0, 0.0]])
    before = Curves(np.repeat(final[:, None], G, axis=1), final + 1.0, final, np.full(2, G - 1))
    frame = frame_of(before, np.array([3.0, 3.0]))
    assert frame is not None
    values = np.ones((G, 2))
    better = Row(values, np.array([3.0, 3.0]), np.array([1.0, 1.0]), G - 1)
    worse = Row(values, np.array([3.0, 3.0]), np.array([2.5, 2.5]), G - 1)
    assert frame.outcome(better) < 0.0 < frame.outcome(worse)


def test_without_analogues_a_trial_is_like_a_new_one() -> None:
    forecast = Analogues([]).forecast(np.array([3.0, 0.0, 2.0]), 5, 0.1)
    assert forecast.ratio == pytest.approx(1.0)


def test_where_ranks_last_the_worst_has_no_chance_and_the_best_a_good_one() -> None:
    rng = np.random.default_rng(1)
    past = [study(rng.random(100)) for _ in range(12)]
    everything = np.ones(100, dtype=np.bool_)
    analogues = Analogues([p for one in past for p in replayed(one, everything)])
    size = np.log(51.0)
    worst = analogues.forecast(np.array([2.0, 0.0, size]), 8, 0.05)
    best = analogues.forecast(np.array([-4.5, 0.0, size]), 8, 0.05)
    assert worst.ratio < 0.4 < 3.0 < best.ratio
    assert best.mean < worst.mean


def test_where_ranks_say_nothing_nobody_is_judged() -> None:
    rng = np.random.default_rng(2)
    sources = []
    for _ in range(10):
        one = study(rng.random(100))
        sources += replayed(
            Curves(rng.random((100, G, 1)), one.first, one.final, one.reached),
            np.ones(100, dtype=np.bool_),
        )
    analogues = Analogues(sources)
    ratios = [
        analogues.forecast(np.array([rank, 0.0, np.log(51.0)]), 8, 0.05).ratio
        for rank in (-2.0, 0.0, 2.0)
    ]
    assert min(ratios) > 0.4


def test_of_a_long_study_so_many_trials_are_replayed_that_more_would_change_little() -> None:
    levels = np.random.default_rng(0).random(250)
    orders = replayed(study(levels), np.ones(len(levels), dtype=np.bool_))
    # The first trial of an order has none before it, so it has no position.
    expected = [199] * 3 + [19] * 10
    assert [len(order.outcome) for order in orders] == expected


def test_positions_among_few_trials_are_counted_once_per_trial() -> None:
    orders = replayed(study(np.random.default_rng(0).random(100)), np.ones(100, dtype=np.bool_))
    weight = np.concatenate([np.full(len(o.outcome), o.weight) for o in orders])
    size = np.concatenate([np.exp(o.features[:, 0, 2]) - 1.0 for o in orders])
    # 19 of 100 trials have fewer than 20 before them; of five times 20 trials, 95 have.
    assert weight[size < 19.5].sum() == pytest.approx(19.0 + 95.0)
    assert weight[size > 19.5].sum() == pytest.approx(80.0)


def test_a_study_of_few_trials_has_no_short_ones() -> None:
    levels = np.random.default_rng(0).random(19)
    assert len(replayed(study(levels), np.ones(len(levels), dtype=np.bool_))) == 3


def test_a_study_longer_than_the_past_is_compared_with_its_largest_sizes() -> None:
    rng = np.random.default_rng(3)
    analogues = Analogues(replayed(study(rng.random(50)), np.ones(50, dtype=np.bool_)))
    position = [2.0, 0.0, np.log(50.0)]
    short = analogues.forecast(np.array(position), 8, 0.05)
    long = analogues.forecast(np.array([*position[:2], np.log(5000.0)]), 8, 0.05)
    assert long.ratio == pytest.approx(short.ratio)


def test_a_forecast_is_the_mean_and_the_deviation_of_what_became_of_the_analogues() -> None:
    position = np.zeros((4, G, 3))
    outcome = np.array([-0.5, 0.5, 0.5, 0.5])
    forecast = Analogues([Positions(position, outcome, 1 / 3)]).forecast(np.zeros(3), 8, 0.5)
    assert forecast.mean == pytest.approx(0.25)
    assert forecast.deviation == pytest.approx(outcome.std())
    # Four positions of a third of a trial each, of which a quarter succeeded.
    assert forecast.ratio == pytest.approx((1 / 3 + 1.0) / (4 / 3 + 2.0) / 0.5)


def test_the_rank_that_follows_has_the_mean_and_the_variance_of_the_analogues() -> None:
    position = np.zeros((6, G, 3))
    position[:, 10, 0] = later = np.array([0.0, 1.0, 1.0, 2.0, 2.0, np.nan])
    analogues = Analogues([Positions(position, np.zeros(6))])
    mean, variance = analogues.next_rank(np.zeros(3), 8) or (np.nan, np.nan)
    assert mean == pytest.approx(np.nanmean(later))
    assert variance == pytest.approx(np.nanvar(later))
    alone = Analogues([Positions(position[:2], np.zeros(2), 1 / 3)])
    assert alone.next_rank(np.zeros(3), 8) is None  # less than one trial


def test_one_trial_is_enough_for_the_rank_that_follows_and_a_part_of_one_for_a_forecast() -> None:
    position = np.zeros((1, G, 3))
    position[:, G - 1, 0] = 1.5
    whole, part = (Analogues([Positions(position, np.array([0.4]), w)]) for w in (1.0, 1 / 3))
    assert whole.next_rank(np.zeros(3), G - 3) == (1.5, 0.0)
    assert part.forecast(np.zeros(3), 8, 0.5).mean == pytest.approx(0.4)


def test_towards_the_end_the_last_rank_is_the_one_that_follows() -> None:
    position = np.zeros((2, G, 3))
    position[:, G - 1, 0], position[:, G - 2, 0] = 1.5, 0.5
    analogues = Analogues([Positions(position, np.zeros(2))])
    for column, rank in ((G - 4, 0.5), (G - 3, 1.5), (G - 2, 1.5), (G - 1, 1.5)):
        here = np.array([position[0, column, 0], 0.0, 0.0])
        assert analogues.next_rank(here, column) == (rank, 0.0)


@pytest.mark.parametrize(("n", "wider"), [(2000, 1.0), (20_000, 1.0), (20, 100 ** (1 / 7))])
def test_the_fewer_past_trials_the_wider_the_kernels(n: int, wider: float) -> None:
    position, outcome = np.zeros((n, G, 3)), np.zeros(n)
    position[: n // 2, :, 0], outcome[: n // 2] = 0.8, 1.0
    forecast = Analogues([Positions(position, outcome)]).forecast(np.zeros(3), 8, 0.5)
    weight = np.exp(-0.5 * (0.8 / (0.3 * wider)) ** 2)  # of those at the rank 0.8
    assert forecast.mean == pytest.approx(weight / (1.0 + weight))


@pytest.mark.parametrize(("feature", "bandwidth"), [(0, 0.3), (1, 0.15), (2, 0.5)])
def test_rank_progress_and_size_have_kernels_of_their_own_width(
    feature: int, bandwidth: float
) -> None:
    position, outcome = np.zeros((2000, G, 3)), np.zeros(2000)
    position[:1000, :, feature], outcome[:1000] = 0.4, 1.0
    forecast = Analogues([Positions(position, outcome)]).forecast(np.zeros(3), 8, 0.5)
    weight = np.exp(-0.5 * (0.4 / bandwidth) ** 2)
    assert forecast.mean == pytest.approx(weight / (1.0 + weight))


def test_a_trial_among_few_others_has_the_size_of_their_number() -> None:
    frame = frame_of(study(np.array([0.5, 1.0, 0.7])), np.array([2.0]))
    assert frame is not None
    row = Row(np.full((G, 1), 0.6), np.array([2.0]), np.array([np.nan]), G - 1)
    np.testing.assert_allclose(frame.position(row)[:, 2], np.log(4.0))
