"""What Optuna's distributions lack: which are the same, where a choice is, which are too wide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)


def is_same(a: BaseDistribution, b: BaseDistribution) -> bool:
    """Return whether two distributions have the same values in the same places.

    Optuna takes the choices (0, False) and (False, 0) for the same. It also compares them one by
    one in Python, which takes long where there are many.
    """
    if isinstance(a, CategoricalDistribution) and isinstance(b, CategoricalDistribution):
        return a.choices is b.choices or (
            len(a.choices) == len(b.choices) and [*map(repr, a.choices)] == [*map(repr, b.choices)]
        )
    return a is b or a == b


def are_same(a: Mapping[str, BaseDistribution], b: Mapping[str, BaseDistribution]) -> bool:
    """Return whether two spaces have the same parameters, in any order."""
    return a.keys() == b.keys() and all(is_same(a[name], b[name]) for name in a)


def require_range(
    name: str, distribution: FloatDistribution | IntDistribution
) -> FloatDistribution | IntDistribution:
    """Return a distribution; refuse a range that is too wide to compute with."""
    try:
        width = float(distribution.high) - float(distribution.low)
    except OverflowError:  # an int beyond float64
        width = math.inf
    if not math.isfinite(width):
        raise ValueError(
            f"parameter {name!r}: the range of {distribution} is too wide to compute with; "
            "choose bounds that differ by less than 1.7e308."
        )
    return distribution


class Positions:
    """The position of each choice.

    Choices that compare equal but are of different types, such as 1 and 1.0 or 0 and False, are
    different ones. Of those that are the same the first counts, and NaN is a choice like any
    other. A value of a type that no choice has is the first choice that it is equal to.
    """

    def __init__(self, choices: Sequence[Any]) -> None:
        self._exact: dict[tuple[type, Any], float] = {}
        self._equal: dict[Any, float] = {}
        self.first = np.arange(len(choices))  # (K,), the position of the first that is the same
        for i, choice in enumerate(choices):
            if is_hashable(choice):
                key = _NAN if _is_nan(choice) else choice
                self.first[i] = self._exact.setdefault((type(key), key), float(i))
                self._equal.setdefault(key, float(i))

    @property
    def has_repeats(self) -> bool:
        """Whether a choice is listed twice."""
        return bool((self.first != np.arange(len(self.first))).any())

    def get(self, value: Any) -> float:
        """Return the position of a value, NaN where it is no choice."""
        key = _NAN if _is_nan(value) else value
        exact = self._exact.get((type(key), key))
        return self._equal.get(key, math.nan) if exact is None else exact


_NAN = object()  # stands for any NaN, none of which is equal to another


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
