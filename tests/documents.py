"""Runs the blocks of a page as a reader would, and builds the documentation.

A page is read from top to bottom, in a folder that is empty at first. A block with a title is
saved as that file, Python blocks share one interpreter, and shell blocks run in bash, command by
command. A block of text is the output of the block before it.

Needs nothing but the package, so that a clean environment can run the Python of a page, too:
`python tests/documents.py README.md`.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r'^```(\w*)(?: title="([^"\n]+)")?\n(.*?)^```$', flags=re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[+-]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")
ANYTHING = "..."  # a line of a page that stands for any number of printed lines


@dataclass(frozen=True)
class Block:
    """A block of a page: its language, the file that it is to be saved as, and its text."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a Markdown page."""
    return [Block(*found) for found in FENCE.findall(page.read_text("utf-8"))]


def python_blocks(page: Path) -> list[str]:
    """Return the Python of a page that is pasted, not saved."""
    return [b.text for b in blocks(page) if b.language == "python" and not b.title]


def commands(text: str) -> list[str]:
    """Split a block of shell into commands; one may go on over several lines."""
    found: list[str] = []
    pending = ""
    for line in text.splitlines(keepends=True):
        pending += line
        if pending.strip() and not pending.endswith("\\\n") and _is_complete(pending):
            found.append(pending.strip())
            pending = ""
    assert not pending.strip(), f"not a complete command: {pending}"
    return [command for command in found if not command.startswith("#")]


def _is_complete(text: str) -> bool:
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True).returncode == 0


class Reader:
    """Somebody who pastes the blocks of a page.

    Args:
        folder: Where commands are run; the current folder for Python.
        skips: Whether a command is not run.
    """

    def __init__(self, folder: Path, skips: Callable[[str], bool] = lambda _: False) -> None:
        self.folder = folder
        self._skips = skips
        self._namespace: dict[str, object] = {"__name__": "__main__"}
        self._exports: list[str] = []

    def read(self, page: Path, languages: tuple[str, ...] = ("python", "bash")) -> int:
        """Run the blocks of a page, and compare what they print with what the page shows.

        Returns:
            How many blocks were run.
        """
        printed: str | None = None
        n_run = 0
        for block in blocks(page):
            if block.language == "text" and printed is not None:
                assert_shows(block.text, printed)
            printed = self._paste(block) if block.language in languages else None
            n_run += printed is not None
        return n_run

    def _paste(self, block: Block) -> str | None:
        """Return what a block prints, None if it is saved or not run."""
        if block.title:
            (self.folder / block.title).write_text(block.text)
            return None
        if block.language == "bash":
            return self.paste_shell(block.text)
        return None if self._skips(block.text) else self.paste_python(block.text)

    def paste_python(self, text: str) -> str:
        """Run Python in this process; print and return what it prints."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(text, "<page>", "exec"), self._namespace)
        print(out.getvalue(), end="")
        return out.getvalue()

    def paste_shell(self, text: str) -> str | None:
        """Run commands; return what they print, None if one of them is not run."""
        printed = [self.run(command) for command in commands(text) if not self._skips(command)]
        return "".join(printed) if len(printed) == len(commands(text)) else None

    def run(self, command: str) -> str:
        """Run a command; one that starts a server is stopped when it listens."""
        if command.startswith("export "):
            self._exports.append(command)
            return ""
        script = "\n".join(["set -euo pipefail", *self._exports, command])
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.folder,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        printed = "".join(_until_it_listens(process.stdout, process.pid))
        code = process.wait()
        assert code == 0 or "Ctrl-C ends it" in printed, f"{command}\n{printed}"
        return printed


def _environment() -> dict[str, str]:
    """Return the environment of a command: `metatpe` and `python` are those of the tests."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    sources = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PATH": path, "PYTHONPATH": sources, "COLUMNS": "100"}


def _until_it_listens(lines: io.TextIOBase, pid: int) -> Iterator[str]:
    for line in lines:
        yield str(line)
        if "Ctrl-C ends it" in str(line):
            os.killpg(pid, signal.SIGINT)


# What a page shows ----------------------------------------------------------------------------


def assert_shows(shown: str, printed: str) -> None:
    """Check that a page shows what was printed.

    Words have to be the same. Numbers may differ by 2 % or by 0.005, because their last digits
    depend on the versions of NumPy and SciPy. A line `...` stands for any lines.
    """
    pattern = [line.rstrip() for line in shown.strip().splitlines()]
    lines = [line.rstrip() for line in printed.strip().splitlines()]
    assert _matches(pattern, lines), f"the page shows\n{shown}\nbut this was printed:\n{printed}"


def _matches(pattern: list[str], lines: list[str]) -> bool:
    if not pattern:
        return not lines
    if pattern[0].strip() == ANYTHING:
        return any(_matches(pattern[1:], lines[i:]) for i in range(len(lines) + 1))
    return bool(lines) and _agrees(pattern[0], lines[0]) and _matches(pattern[1:], lines[1:])


def _agrees(shown: str, printed: str) -> bool:
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(math.isclose(_value(a), _value(b), rel_tol=0.02, abs_tol=0.005) for a, b in pairs)


def _value(number: str) -> float:
    return float(number.replace(",", ""))


# The site -------------------------------------------------------------------------------------


def build_site(folder: Path) -> None:
    """Build the documentation into a folder; a warning is an error."""
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stderr, result.stderr


if __name__ == "__main__":
    Reader(Path.cwd()).read(Path(sys.argv[1]), languages=("python",))
