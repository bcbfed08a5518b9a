"""Regret against the epochs spent."""

from pathlib import Path

import numpy as np
import pytest

from metatpe.bench import spending as module
from metatpe.bench.families import ellipsoid
from metatpe.bench.plan import Run
from metatpe.bench.records import Evaluation, Record
from metatpe.bench.spending import regret_at, spending

WORST = float(ellipsoid.load("ellipsoid4").worst[0])


@pytest.fixture(autouse=True)
def _scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_scale", lambda name: (0.0, 10.0))


def record(values: list[float], epochs: list[int], seed: int = 0) -> Record:
    found = [
        Evaluation({}, (value,), "sampler", {}, 0.0, n)
        for value, n in zip(values, epochs, strict=True)
    ]
    run = Run("ellipsoid4", "random", seed, pruner="median")
    return Record(run, ("minimize",), tuple(found))


def test_the_regret_is_that_of_completed_trials_when_their_epochs_are_spent() -> None:
    (curve,) = spending([record([5.0, WORST, 2.0], [10, 5, 10])])
    assert curve.until == 2.5
    assert curve.name == "random, median"
    assert [curve.at(t) for t in (0.5, 1.0, 2.25, 2.5)] == [1.0, 0.5, 0.5, 0.2]
    assert curve.at(3.0) is None


def test_the_regret_of_one_run() -> None:
    one = record([5.0, WORST, 2.0], [10, 5, 10])
    assert [regret_at(one, t) for t in (0.5, 1.0, 2.5, 9.0)] == [1.0, 0.5, 0.2, 0.2]


def test_what_it_takes_to_a_regret() -> None:
    (curve,) = spending([record([5.0, WORST, 2.0], [10, 5, 10])])
    assert curve.needed(0.5) == 1.0
    assert curve.needed(0.3) == 2.5
    assert curve.needed(0.1) is None


def test_a_mean_goes_as_far_as_half_of_the_runs() -> None:
    short, long = record([4.0], [10]), record([8.0, WORST, 2.0], [10, 10, 10], seed=1)
    (curve,) = spending([short, long])
    assert (curve.n_runs, curve.until) == (2, 2.0)
    assert curve.at(2.0) == pytest.approx((0.4 + 0.8) / 2)
    np.testing.assert_allclose(curve.se[-1], 0.2)


def test_without_learning_curves_there_is_nothing_to_show() -> None:
    with pytest.raises(ValueError, match="run one with --pruner"):
        spending([Record(Run("ellipsoid4", "random", 0))])


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra bench")
    from metatpe.bench.figures.spending import draw_spending

    draw_spending(spending([record([5.0, 2.0], [10, 10])]), tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 5000
