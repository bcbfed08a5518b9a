import numpy as np
import pytest

from metatpe.pruning.curves import SHARES, completed, length_of, pruned, row_of, stacked


def line(steps: range, value: float = 1.0) -> dict[int, list[float]]:
    return {step: [value * step] for step in steps}


def test_epochs_batches_and_seconds_of_the_same_curve_have_the_same_row() -> None:
    losses = 1.0 / np.arange(1, 41)
    rows = []
    for first, spacing in ((0, 1), (1, 1), (100, 100), (7, 30)):
        curve = {first + i * spacing: [loss] for i, loss in enumerate(losses.tolist())}
        length = length_of([curve])
        assert length is not None
        rows.append(completed(curve, [losses[-1]], length).values)
    for row in rows[1:]:
        np.testing.assert_array_equal(row, rows[0])


def test_the_length_is_that_of_the_longest_curve_and_unknown_without_two_reports() -> None:
    assert length_of([]) is None
    assert length_of([{3: [1.0]}]) is None
    assert length_of([{1: [1.0], 5: [1.0]}]) == (1, 5, 4.0)
    assert length_of([line(range(5)), line(range(1, 12))]) == (1, 11, 1.0)


def test_a_running_trial_has_no_values_beyond_its_last_report() -> None:
    length = length_of([line(range(100))])
    assert length is not None
    row = row_of(line(range(30)), length)
    assert SHARES[row.reached] == pytest.approx(0.3, rel=0.26)
    assert np.isnan(row.values[row.reached + 1 :]).all()
    assert not np.isnan(row.values[1 : row.reached + 1]).any()


def test_a_column_does_not_change_once_it_is_reached() -> None:
    length = length_of([line(range(100))])
    assert length is not None
    whole = row_of(line(range(100)), length).values
    for n in range(1, 100):
        row = row_of(line(range(n)), length)
        np.testing.assert_array_equal(
            row.values[: row.reached + 1], whole[: row.reached + 1], strict=True
        )


def test_a_pruned_trial_has_values_as_far_as_it_came_and_no_good_end() -> None:
    length = length_of([line(range(100))])
    assert length is not None
    row = pruned(line(range(10)), length)
    assert np.isnan(row.values[row.reached + 1 :]).all()
    assert np.isposinf(row.final).all()


def test_nan_and_infinite_losses_are_the_worst_ones() -> None:
    length = length_of([line(range(10))])
    assert length is not None
    curve = {step: [bad] for step, bad in enumerate([np.nan, np.inf, -np.inf] * 3 + [1.0])}
    values = completed(curve, [1.0], length).values
    assert np.isposinf(values[~np.isnan(values)][:-1]).all()


def test_a_report_is_current_until_the_next_one_is_due() -> None:
    length = length_of([{step: [0.0] for step in range(100)}])
    assert length is not None
    # Late reports, at each tenth of the length: the next one is due at 0.81.
    late = row_of({step: [1.0] for step in (50, 60, 70)}, length)
    assert late.reached == np.flatnonzero(SHARES < 0.72)[-1]


def test_a_single_report_is_current_for_as_long_as_it_took() -> None:
    length = length_of([{step: [0.0] for step in range(100)}])
    assert length is not None
    # After a fifth of the length; the next one is due after two fifths.
    alone = row_of({19: [1.0]}, length)
    assert alone.reached == np.flatnonzero(SHARES < 0.356)[-1]
    assert (alone.values[(SHARES > 0.2) & (SHARES < 0.356)] == 1.0).all()


def test_two_reports_say_when_the_next_one_is_due() -> None:
    length = length_of([{step: [0.0] for step in range(100)}])
    assert length is not None
    row = row_of({step: [1.0] for step in (50, 60)}, length)  # the next one at 0.71
    assert row.reached == np.flatnonzero(SHARES < 0.633)[-1]


def test_a_completed_trial_without_a_finite_end_is_behind_all_others() -> None:
    length = length_of([line(range(10))])
    assert length is not None
    for end in (-np.inf, np.nan):
        row = completed(line(range(5)), [end], length)
        assert np.isposinf(row.final).all()
        assert np.isposinf(row.values[-1]).all()


def test_a_stopped_trial_is_compared_up_to_where_it_came_and_others_to_the_end() -> None:
    length = length_of([line(range(100))])
    assert length is not None
    rows = [pruned(line(range(n)), length) for n in (1, 2, 3, 40)]
    reached = [row.reached for row in rows]
    assert 0 in reached
    until = stacked([*rows, completed(line(range(40)), [1.0], length)]).until
    # One that was stopped before the first share has nothing to compare.
    assert until.tolist() == [*(n if n >= 0 else len(SHARES) - 1 for n in reached), 15]


def test_the_best_so_far_is_the_smallest_loss_up_to_a_share() -> None:
    length = length_of([line(range(100))])
    assert length is not None
    losses = {step: 1.0 / (step + 1) for step in range(100)}
    losses[40] = 7.0  # an outlier
    row = row_of({step: [loss] for step, loss in losses.items()}, length)
    assert (np.diff(row.best[: row.reached + 1, 0]) <= 0.0).all()
    shorter = row_of({step: [losses[step]] for step in range(41)}, length)
    at_outlier = shorter.reached
    assert (shorter.values[at_outlier, 0], shorter.best[at_outlier, 0]) == (7.0, 1.0 / 40)
    assert np.isnan(shorter.best[at_outlier + 1 :]).all()


def test_the_best_so_far_of_several_objectives_is_the_present_point() -> None:
    length = length_of([{step: [0.0, 0.0] for step in range(50)}])
    assert length is not None
    row = row_of({step: [1.0 / (step + 1), 1.0 * step] for step in range(50)}, length)
    np.testing.assert_array_equal(row.best, row.values)


def test_a_curve_that_is_not_finite_has_no_best_so_far_there() -> None:
    length = length_of([line(range(100))])
    assert length is not None
    curve = {step: [1.0 if step < 50 else np.nan] for step in range(100)}
    row = row_of(curve, length)
    np.testing.assert_array_equal(np.isposinf(row.best), np.isposinf(row.values))


def test_a_completed_trial_has_its_end_as_its_best_in_later_columns() -> None:
    length = length_of([line(range(100))])
    assert length is not None
    row = completed({step: [1.0] for step in range(50)}, [3.0], length)
    assert row.best[-1, 0] == row.values[-1, 0] == 3.0
