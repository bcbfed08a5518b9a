"""One command and its end."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from metatpe.tuning.running import ending, run

LOOP = "while :; do sleep 0.02; done"


def stopped(script: str, folder: Path) -> tuple[int | None, str]:
    """Return the exit code and the output of a script that is told to end when it is ready."""
    path = folder / "out"
    with path.open("wb") as out, (folder / "err").open("wb") as err:
        words = ["/bin/sh", "-c", f"{script}; echo ready; {LOOP}"]
        code = run(words, dict(os.environ), out, err, lambda: "ready" in path.read_text())
    return code, path.read_text()


def test_a_command_that_is_stopped_has_time_to_tidy_up(tmp_path: Path) -> None:
    began = time.monotonic()
    code, out = stopped("trap 'sleep 0.2; echo tidy; exit 0' TERM", tmp_path)
    assert (code, out) == (None, "ready\ntidy\n")
    assert time.monotonic() - began < 4.0  # less than it might have taken


def test_a_command_that_does_not_end_in_time_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatpe.tuning.running._SECONDS", 0.2)
    code, out = stopped("trap '' TERM; echo $$", tmp_path)
    assert code is None
    with pytest.raises(ProcessLookupError):
        os.kill(int(out.split()[0]), 0)


def test_a_signal_that_comes_while_a_command_starts_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, popen = [], subprocess.Popen

    def interrupted(words: list[str], **settings: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = popen(words, **settings)
        if words[-1] == LOOP:
            started.append(process)
            signal.raise_signal(signal.SIGTERM)
        return process

    def stop(*_: object) -> None:
        raise SystemExit(1)

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with (tmp_path / "out").open("wb") as out, pytest.raises(SystemExit):
            run(["/bin/sh", "-c", LOOP], dict(os.environ), out, out)
    finally:
        signal.signal(signal.SIGTERM, before)
    (process,) = started
    assert process.poll() is not None


def test_an_ending_is_a_signal_or_a_code() -> None:
    assert [ending(code) for code in (0, 3, -9, None)] == [
        "exit code 0",
        "exit code 3",
        "signal 9",
        "exit code None",
    ]
