"""A page that is open in a browser, and what tests see of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

PHONE, DESKTOP = 390, 1100  # widths
SECONDS = 60  # to wait for anything; machines may be slow


class Visit:
    """A page that is open, and what was seen of it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []  # of the console
        self.requests: list[str] = []
        page.on("console", lambda m: m.type in ("error", "warning") and self._hear(m.text))
        page.on("pageerror", lambda error: self._hear(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.set_default_timeout(1000 * SECONDS)

    def _hear(self, text: str) -> None:
        self.complaints.append(text)

    def do(self, script: str, *arguments: Any) -> Any:
        """Return what a piece of JavaScript returns."""
        return self.page.evaluate(script, *arguments)

    @property
    def text(self) -> str:
        """Return all text that is to be seen."""
        return str(self.page.inner_text("body"))


Open = Callable[..., AbstractContextManager[Visit]]
