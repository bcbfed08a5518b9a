"""Ranks and rank correlation, against SciPy."""

import numpy as np
import pytest
from helpers import locked
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata, spearmanr

from metatpe.space import Floats
from metatpe.tpe.ranking import dense_ranks, mid_ranks, rank_correlation

# Few different values: ties are the normal case.
rows = arrays(np.float64, (3, 9), elements=st.sampled_from([-1.0, 0.0, 0.5, 2.0, np.inf]))


@given(rows)
@settings(derandomize=True)
def test_ranks_are_those_of_scipy(values: Floats) -> None:
    np.testing.assert_array_equal(mid_ranks(locked(values)) + 0.5, rankdata(values, axis=1))
    dense = rankdata(values, method="dense", axis=1) - 1
    np.testing.assert_array_equal(dense_ranks(locked(values)), dense)


@pytest.mark.parametrize("n", [0, 1])
def test_few_values_have_ranks_too(n: int) -> None:
    assert mid_ranks(np.zeros((2, n))).tolist() == [[0.5] * n] * 2
    assert dense_ranks(np.zeros((2, n))).tolist() == [[0] * n] * 2


@given(rows)
@settings(derandomize=True)
def test_the_correlation_is_spearmans_and_zero_where_either_is_constant(values: Floats) -> None:
    *A, b = locked(values)
    for a, correlation in zip(A, rank_correlation(np.stack(A), b), strict=True):
        if len({*a}) > 1 and len({*b}) > 1:
            expected = spearmanr(rankdata(a), rankdata(b)).statistic
            assert correlation == pytest.approx(expected, abs=1e-12)
        else:
            assert correlation == 0.0


def test_monotone_values_and_the_order_of_rows_do_not_matter(rng: np.random.Generator) -> None:
    A, b = rng.normal(size=(4, 12)), rng.integers(0, 5, 12).astype(float)
    correlation = rank_correlation(A, b)
    np.testing.assert_array_equal(rank_correlation(np.exp(A), b**3), correlation)
    np.testing.assert_array_equal(rank_correlation(A[::-1], b), correlation[::-1])
