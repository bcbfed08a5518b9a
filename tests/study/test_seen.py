"""Which configurations were evaluated."""

from typing import Any

import numpy as np
from helpers import NAN
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


def test_values_of_a_continuous_column_are_the_same_up_to_rounding() -> None:
    space = Space(SQUARE)
    remembered = Seen(space.columns)
    remembered.add(np.array([[0.0, 0.5]]))
    X = np.array([[0.0, 0.5], [1e-9, 0.5 - 1e-9], [1e-5, 0.5], [0.0, 0.6]])
    assert remembered.has(X).tolist() == [True, True, False, False]
    # Of a range, a millionth.
    millionths = np.array([[0.0, 0.5 + k * 1e-6] for k in (0.45, -0.45, 1.0, -1.0)])
    assert remembered.has(millionths).tolist() == [True, True, False, False]


def test_a_continuous_parameter_that_was_not_used_may_have_any_value() -> None:
    remembered = Seen(Space(SQUARE).columns)
    remembered.add(np.array([[0.5, NAN]]))
    X = np.array([[0.5, 0.0], [0.5, 0.7], [0.4, 0.0]])
    assert remembered.has(X).tolist() == [True, True, False]
    assert not remembered.has_complete
    assert not remembered.has(X, complete_only=True).any()
    remembered.add(np.array([[0.4, 0.0]]))
    assert remembered.has_complete
    assert remembered.has(X, complete_only=True).tolist() == [False, False, True]


def test_what_is_added_once_more_is_remembered_as_before() -> None:
    a, b = {"kind": "q", "i": 1}, {"kind": "q", "i": 2}
    assert seen([a, b, a], [a, b]) == [True, True]


def test_what_is_added_once_more_beside_another_branch_hides_nothing() -> None:
    a, b, other = {"kind": "q", "i": 1}, {"kind": "q", "i": 2}, {"kind": "p"}
    wanted = [a, b, {"kind": "p", "i": 0}]
    assert seen([other, a, b, a], wanted) == [True, True, True]
    assert seen([a, b, other, {"kind": "r"}, other], wanted) == [True, True, True]


def test_without_a_parameter_nothing_was_seen() -> None:
    assert seen([{}], [{"kind": "p", "i": 0}]) == [False]


def test_branches_without_a_common_parameter_are_compared_each_on_its_own() -> None:
    space = Space(GRID)
    remembered = Seen(space.columns)
    remembered.add(space.encode([{"i": 0, "c": "p"}, {"f": 0.5}]))
    X = [{"i": 0, "c": "p", "f": 0.0}, {"i": 1, "c": "q", "f": 0.5}, {"i": 1, "c": "p", "f": 0.0}]
    assert remembered.has(space.encode(X)).tolist() == [True, True, False]


def test_a_trial_that_ended_early_is_no_branch_and_one_that_agrees_in_part_is() -> None:
    space = Space(GRID)
    remembered = Seen(space.columns)
    remembered.add(space.encode([{"i": 0, "c": "p", "f": 0.0}, {"i": 1, "c": "p", "f": 0.0}]))
    remembered.add(space.encode([{"i": 0, "c": "p"}, {"i": 2, "c": "p"}]))
    candidates = [{"i": i, "c": "p", "f": 0.5} for i in range(4)]
    assert remembered.has(space.encode(candidates)).tolist() == [False, False, True, False]
