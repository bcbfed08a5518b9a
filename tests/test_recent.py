"""The cache: it keeps what was used last, and makes each value once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metatpe.recent import Recent


def test_a_value_is_made_once_as_long_as_it_is_kept() -> None:
    made: list[str] = []
    recent = Recent[str, list[str]](2)

    def value(key: str) -> list[str]:
        return recent.get(key, lambda: made.append(key) or [key])  # type: ignore[func-returns-value]

    first = value("a")
    assert first == ["a"]
    assert value("b") == ["b"]
    assert value("a") is first
    assert value("c") == ["c"]  # b has not been used for longer than a
    assert value("a") is first
    assert made == ["a", "b", "c"]
    assert value("b") == ["b"]
    assert made == ["a", "b", "c", "b"]


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_the_keys_are_those_that_were_used_last(keys: list[int], size: int) -> None:
    recent = Recent[int, int](size)
    for key in keys:
        assert recent.get(key, lambda key=key: key**2) == key**2
    last = list(dict.fromkeys(reversed(keys)))[:size][::-1]
    assert list(recent) == last
    assert recent.values() == [key**2 for key in last]


def test_there_is_room_before_a_value_is_made() -> None:
    recent = Recent[str, int](1)
    recent.get("old", lambda: 1)
    seen: list[str] = []
    recent.get("new", lambda: seen.extend(recent) or 2)  # type: ignore[func-returns-value]
    assert seen == []


def test_a_value_can_be_replaced() -> None:
    recent = Recent[str, int](2)
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        recent.put(key, value)
    assert list(recent) == ["a", "c"]
    assert recent.get("a", lambda: 0) == 3


def test_what_could_not_be_made_is_not_kept() -> None:
    recent = Recent[str, float](2)
    with pytest.raises(ZeroDivisionError):
        recent.get("a", lambda: 1 / 0)
    assert recent.get("a", lambda: 5.0) == 5.0
