"""Numbers, names and durations in sentences."""

from __future__ import annotations

import datetime
from collections.abc import Sequence


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun.

    >>> counted(1, "past study"), counted(2, "past study"), counted(0, "trial")
    ('1 past study', '2 past studies', '0 trials')
    """
    plural = many or (f"{one[:-1]}ies" if one.endswith("y") else f"{one}s")
    return f"{n:,} {one if n == 1 else plural}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and how many more there are.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def duration(seconds: float) -> str:
    """Return a duration in the unit that suits it.

    >>> duration(0.0123), duration(12.3456), duration(3723)
    ('12.3 ms', '12.3 s', '1:02:03')
    """
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 120 else str(datetime.timedelta(seconds=round(seconds)))
