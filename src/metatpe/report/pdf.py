"""A report as PDF, printed by a browser of the Chromium family."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-pdf-header-footer",
    "--virtual-time-budget=60000",  # until the plots are drawn, however slow the machine is
)
_SECONDS = 300


def browser() -> str:
    """Return the browser that prints.

    Raises:
        ValueError: There is none.
    """
    for name in _BROWSERS:
        if found := shutil.which(name):
            return found
    raise ValueError(
        "a PDF is printed by a browser, and there is no Chromium, Chrome or Edge here; install "
        "one, or open the HTML file in the browser that you have and print it there."
    )


def print_pdf(page: Path, out: Path, program: str) -> None:
    """Print an HTML file to a PDF file.

    Raises:
        ValueError: The browser did not print it.
    """
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder, "report.pdf")
        places = [f"--user-data-dir={folder}/profile", f"--print-to-pdf={printed}"]
        command = [program, *_FLAGS, *root, *places, page.resolve().as_uri()]
        try:
            subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise ValueError(f"{program} did not print within {_SECONDS} s.") from None
        if not printed.exists():
            raise ValueError(f"{program} did not print the report.")
        shutil.move(printed, out)
