"""Run the tutorial, and write its output and its pictures into the documentation.

    python docs/tutorial_page.py            # writes docs/tutorial.md and docs/figures/tutorial
    python docs/tutorial_page.py --check    # writes nothing; exit status 1 if the output differs

The blocks of the page are run in order, in an empty folder: a block of Python with a title is
written to the file of that name, other Python runs in one session, and the lines of a block "bash"
run in a shell. A block "text" is what the block before it printed. The picture of the report needs
Chromium.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "tutorial.md"
PICTURES = DOCS / "figures" / "tutorial"
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
ALIKE = 0.8  # values and choices may differ on another machine, the other words may not


class Session:
    """Runs the blocks of the page in the current folder."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.printed = ""

    def replace(self, block: re.Match[str]) -> str:
        """Run a block; return it as it is to stand on the page."""
        kind, options, content = block.groups()
        if kind == "text":
            return f"```text\n{self.printed}```"
        if content.startswith("pip install"):
            return block[0]  # the reader's environment is the one that runs this script
        if title := re.search(r'title="(.+?)"', options):
            Path(title[1]).write_text(content)
        else:
            print(content, file=sys.stderr, flush=True)
            self.printed = shell(content) if kind == "bash" else self.python(content)
        return block[0]

    def python(self, content: str) -> str:
        """Run Python; return what it printed."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(content, str(PAGE), "exec"), self.names)
        return printed.getvalue()


def shell(content: str) -> str:
    """Run commands; return what they printed, without spaces at the ends of lines."""
    bin_folder = str(Path(sys.executable).parent)
    environment = {"COLUMNS": "88", "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    result = subprocess.run(
        ["sh", "-e", "-c", content],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return "".join(f"{line.rstrip()}\n" for line in result.stdout.splitlines())


@contextlib.contextmanager
def empty_folder() -> Iterator[Path]:
    """Change into a new folder, as a reader would; its modules can be imported."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        sys.path.insert(0, name)
        try:
            yield Path(name)
        finally:
            sys.path.remove(name)


def photograph(report: Path, picture: Path) -> None:
    """Take a picture of the top of the report."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("The picture of the report needs Chromium: apt-get install chromium")
    options = "--headless --no-sandbox --hide-scrollbars --virtual-time-budget=60000"
    size = "--window-size=1000,1100 --force-device-scale-factor=0.8"
    subprocess.run(
        [browser, *options.split(), *size.split(), f"--screenshot={picture}", report.as_uri()],
        check=True,
        capture_output=True,
    )


def likeness(page: str, run: str) -> float:
    """Return how far two texts have the same words in the same order, from 0 to 1."""
    words = [re.findall(r"[^\W\d]+", text) for text in (page, run)]
    return difflib.SequenceMatcher(None, *words, autojunk=False).ratio()


def outputs(text: str) -> list[str]:
    """Return the blocks of output of a page."""
    return [content for kind, _, content in BLOCK.findall(text) if kind == "text"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    page = PAGE.read_text()
    os.environ["MPLBACKEND"] = "agg"
    with empty_folder() as folder:
        run = BLOCK.sub(Session().replace, page)
        if not args.check:
            PAGE.write_text(run)
            PICTURES.mkdir(exist_ok=True)
            photograph(folder / "report.html", folder / "report.png")
            for picture in folder.glob("*.png"):
                shutil.copy(picture, PICTURES)
            return
    for old, new in zip(outputs(page), outputs(run), strict=True):
        if likeness(old, new) < ALIKE:
            sys.exit(f"The page has:\n{old}\nbut this was printed:\n{new}\nRun {Path(__file__)}.")


if __name__ == "__main__":
    main()
