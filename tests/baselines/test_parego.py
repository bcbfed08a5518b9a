"""ParEGO: the expected improvement of a random scalarisation."""

import numpy as np
import pytest
from helpers import locked

from metatpe.baselines.parego import Scalarisation
from metatpe.space import Floats


def test_parego_is_the_expected_improvement_of_the_scalarised_samples(
    rng: np.random.Generator,
) -> None:
    points = locked(rng.normal(size=(10, 2)))
    parego = Scalarisation.of(points, rng)
    assert parego.weights.sum() == pytest.approx(1.0)
    mean, sd = points[:3] - 0.5, np.full((3, 2), 0.4)
    length = points.max(axis=0) - points.min(axis=0)

    def g(f: Floats) -> Floats:
        scaled = parego.weights * (f - points.min(axis=0)) / length
        return scaled.max(axis=-1) + 0.05 * scaled.sum(axis=-1)

    samples = mean[:, None] + sd[:, None] * parego.normal
    expected = np.maximum(g(points).min() - g(samples), 0.0).mean(axis=1)
    np.testing.assert_allclose(
        np.exp(parego.log_improvement(mean, sd)), expected, rtol=0.05, atol=1e-3
    )


def test_parego_orders_hopeless_candidates_and_takes_a_constant_objective() -> None:
    parego = Scalarisation.of(np.array([[0.0, 1.0], [1.0, 1.0]]), np.random.default_rng(0))
    log_ei = parego.log_improvement(np.array([[1.0, 2.0], [10.0, 20.0]]), np.full((2, 2), 1e-3))
    assert np.isfinite(log_ei).all()
    assert log_ei[0] > log_ei[1]
