"""Which configurations of a finite space were evaluated."""

from typing import Any

import numpy as np
from studies import GRID, SQUARE

from metatpe import Space
from metatpe.study.seen import Seen

BRANCHES = Space({"kind": GRID["c"], "i": GRID["i"]})


def seen(params: list[dict[str, Any]], candidates: list[dict[str, Any]]) -> list[bool]:
    remembered = Seen(BRANCHES.columns)
    remembered.add(BRANCHES.encode(params))
    found: list[bool] = remembered.has(BRANCHES.encode(candidates)).tolist()
    return found


def test_a_configuration_is_compared_on_the_parameters_that_were_active() -> None:
    assert seen(
        [{"kind": "p"}, {"kind": "q", "i": 2}],
        [{"kind": k, "i": i} for k, i in [("p", 0), ("p", 3), ("q", 2), ("q", 1), ("r", 2)]],
    ) == [True, True, True, False, False]


def test_nothing_was_seen_at_first() -> None:
    assert seen([], [{"kind": "p", "i": 0}]) == [False]


def test_in_a_space_with_a_continuous_column_nothing_counts_as_seen() -> None:
    space = Space(SQUARE)
    remembered = Seen(space.columns)
    X = np.array([[0.5, 0.5]])
    remembered.add(X)
    assert not remembered.has(X).any()
