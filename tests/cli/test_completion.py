"""Completion in a real shell: what the Tab key offers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

METATPE = Path(sys.executable).with_name("metatpe")
pytestmark = pytest.mark.skipif(not METATPE.exists(), reason="metatpe is not installed here")

PRESS_TAB = """
eval "$(_METATPE_COMPLETE=source_bash metatpe)"
COMP_WORDS=({words}); COMP_CWORD={at}
$(complete -p metatpe | sed 's/.*-F \\([^ ]*\\).*/\\1/') metatpe
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def offered(line: str) -> list[str]:
    """Return what bash offers after this line, whose last word is not finished."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    script = PRESS_TAB.format(words=quoted, at=len(words) - 1)
    path = f"{METATPE.parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        [bash, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path},
    )
    return run.stdout.split()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("metatpe t", ["tune", "tasks"]),
        ("metatpe bench re", ["reproduce"]),
        ("metatpe tune --samp", ["--sampler"]),
        ("metatpe tune --sampler m", ["meta-tpe"]),
    ],
)
def test_bash_completes_commands_options_and_choices(line: str, wanted: list[str]) -> None:
    assert offered(line) == wanted


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell: str) -> None:
    environment = {**os.environ, "_METATPE_COMPLETE": f"source_{shell}"}
    run = subprocess.run([METATPE], capture_output=True, text=True, check=False, env=environment)
    assert "_METATPE_COMPLETE=complete_" in run.stdout
