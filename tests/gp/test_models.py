"""The models of one task: which of very many observations they are fitted to."""

import numpy as np

from metatpe.gp.models import MAX_OBSERVATIONS, thinned


def test_of_very_many_observations_the_best_and_some_of_the_others_are_kept() -> None:
    kept = thinned(np.arange(5000))
    assert len(set(kept.tolist())) == len(kept) == MAX_OBSERVATIONS
    assert kept[: MAX_OBSERVATIONS // 2].tolist() == list(range(MAX_OBSERVATIONS // 2))
    assert kept[-1] == 4999
    few = np.arange(MAX_OBSERVATIONS)
    assert thinned(few) is few
