"""A real browser: Debian's Chromium (or another one that is there), driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from browsing import DESKTOP, Open, Visit

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Open:
    """Opens addresses: with a colour scheme, and at a width."""

    @contextmanager
    def opened(
        url: str, *, scheme: Literal["light", "dark"] = "light", width: int = DESKTOP
    ) -> Iterator[Visit]:
        context = chromium.new_context(
            color_scheme=scheme, viewport={"width": width, "height": 900}
        )
        try:
            seen = Visit(context.new_page())
            seen.page.goto(url)
            yield seen
        finally:
            context.close()

    return opened
