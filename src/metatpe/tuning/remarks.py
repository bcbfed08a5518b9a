"""What a run says besides its trials: warnings, each once, and outages of the storage, each once.

Workers notice one outage at different times, and some say so when it is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

_SECONDS = 5.0  # what follows an outage sooner is a part of it


class Remarks:
    """Passes on what workers and the parent have to say.

    Args:
        say: Called with each line.
        patience: Seconds that the storage may be away, for the line that says so.
    """

    def __init__(self, say: Callable[[str], None], patience: float) -> None:
        self.say = say
        self._patience = patience
        self._said: set[str] = set()
        self._waiting: set[Hashable] = set()  # who cannot reach the storage
        self._is_away = False
        self._back_since = -_SECONDS

    def once(self, text: str) -> None:
        """Say something, unless it was said before."""
        if text not in self._said:
            self._said.add(text)
            self.say(text)

    def wait(self, text: str, who: Hashable = None) -> None:
        """Take note that somebody waits for the storage."""
        self._waiting.add(who)
        if not self._is_away and time.monotonic() > self._back_since + _SECONDS:
            self._is_away = True
            self.say(f"{text} Trying again for {self._patience:g} seconds; results are kept.")

    def resume(self, who: Hashable = None) -> None:
        """Take note that somebody can reach the storage again."""
        self.forget(who)
        if self._is_away and not self._waiting:
            self._is_away, self._back_since = False, time.monotonic()
            self.say("the storage answers again.")

    def forget(self, who: Hashable) -> None:
        """Take note that somebody has ended, who may have been waiting."""
        self._waiting.discard(who)
