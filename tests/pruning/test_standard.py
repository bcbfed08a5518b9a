"""The made-up studies that stand in where there are few past curves."""

import numpy as np
import pytest

from metatpe.pruning.standard import NOISE, made_up_losses, standard_positions


def test_there_are_made_up_studies_for_what_is_missing_of_five_hundred_trials() -> None:
    orders = len(standard_positions(0)) // 5
    found = [len(standard_positions(n)) // orders for n in (0, 99, 100, 450, 500, 10_000)]
    assert found == [5, 5, 4, 1, 0, 0]


@pytest.mark.parametrize("index", range(5))
def test_their_curves_fall_from_one_to_asymptotes_below_it_with_noise(index: int) -> None:
    losses = made_up_losses(index)
    noise = NOISE[index]
    assert losses[:, 0].mean() == pytest.approx(1.0, abs=3 * noise / 10 + 1e-12)
    assert losses[:, 0].std() == pytest.approx(noise, rel=0.3)
    assert (losses[:, -1] < losses[:, 0] + 5 * noise).all()
    assert losses[:, -1].min() > -5 * noise


def test_the_first_of_them_has_no_noise() -> None:
    assert NOISE[0] == 0.0
    assert (np.diff(made_up_losses(0), axis=1) <= 0.0).all()


def test_a_curve_falls_as_a_power_of_time_after_a_plateau() -> None:
    rng = np.random.default_rng(0)
    asymptote, scale = rng.random(100), 10.0 ** rng.uniform(-2.0, 0.0, 100)
    exponent, plateau = rng.uniform(0.5, 2.0, 100), rng.uniform(-0.4, 0.3, 100)
    for i, curve in enumerate(made_up_losses(0)):
        assert len(curve) == 50
        for t, loss in zip(np.linspace(0.0, 1.0, 50), curve, strict=True):
            fallen = (1.0 + max(0.0, t - max(0.0, plateau[i])) / scale[i]) ** -exponent[i]
            assert loss == pytest.approx(asymptote[i] + (1.0 - asymptote[i]) * fallen)


def test_all_trials_of_a_made_up_study_have_run_to_their_end() -> None:
    for positions in standard_positions(400):  # one study, in three orders and five short ones
        assert not np.isnan(positions.features[:, 1:]).any()
    assert sum(len(p.outcome) for p in standard_positions(400)) == 3 * 99 + 5 * 19
