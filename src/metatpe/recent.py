"""The one cache of the package: what was used last."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The values of the keys that were asked for last, at most `size` of them.

    Example:
        >>> squares = Recent[int, int](size=2)
        >>> [squares.get(n, lambda: n * n) for n in (2, 3, 4)]
        [4, 9, 16]
        >>> list(squares)
        [3, 4]
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: dict[K, V] = {}  # the key that was asked for last is the last one

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key; `make` it where it is not there."""
        if key in self._values:
            value = self._values.pop(key)
        else:
            # Room first: the old values and the new one may be large.
            while len(self._values) >= self._size:
                del self._values[next(iter(self._values))]
            value = make()
        self._values[key] = value
        return value

    def put(self, key: K, value: V) -> None:
        """Replace the value of a key."""
        self._values.pop(key, None)
        self.get(key, lambda: value)

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def values(self) -> list[V]:
        """Return the values, those used last at the end."""
        return list(self._values.values())
