"""Runs the Python of a page, and builds the documentation.

Needs nothing but Optuna and the package, so that a clean environment can run a page, too:
`python tests/documents.py README.md`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import optuna

ROOT = Path(__file__).parents[1]


def python_blocks(page: Path) -> list[str]:
    """Return the blocks of Python code of a Markdown page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def run(page: Path) -> None:
    """Run the blocks of a page one after the other, as a reader would."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), namespace)


def store_past(folder: Path) -> None:
    """Put into a folder what the README takes for granted: two past studies and a table."""
    (folder / "runs.csv").write_text("lr,depth,error,cost\n0.1,2,0.5,2\n0.001,4,0.3,4\n")
    for name in ("resnet-18", "resnet-50"):
        study = optuna.create_study(
            study_name=name,
            storage=f"sqlite:///{folder / 'studies.db'}",
            directions=["minimize", "minimize"],
            sampler=optuna.samplers.RandomSampler(seed=0),
        )
        for _ in range(8):
            trial = study.ask()
            lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
            study.tell(trial, [lr, trial.suggest_int("depth", 1, 8)])


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
    store_past(Path.cwd())
    run(Path(sys.argv[1]))
