"""Who evaluates a trial, and whether that process is still there.

A trial that runs has a system attribute with the host, the process and the time when the process
started, because a process number alone is given out again. On the same machine this is enough to
know. Of another machine or container, only a sign of life tells: the parent writes the time to its
running trials every minute, and a trial without one for ten minutes has no owner.
"""

from __future__ import annotations

import functools
import os
import socket
import subprocess
import time
import uuid
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial

_OWNER = "metatpe:owner"  # system attributes begin with it
ALIVE = "metatpe:alive"  # a system attribute: the time of the last sign of life
SIGN_OF_LIFE = 60.0  # seconds between two of them
_GONE_AFTER = 600.0  # seconds without one
_PROC = Path("/proc")


@dataclass(frozen=True)
class Owner:
    """The process that evaluates a trial."""

    host: str
    machine: str  # its identifier, which hosts with the same name do not share
    boot: str  # of this start of the machine; another one means that all processes are gone
    container: str  # in which the process has its number
    pid: int
    started: str
    run: str  # of `metatpe tune` that the process belongs to


def this_process(run: str) -> Owner:
    """Return the process that calls this as an owner."""
    return Owner(*_here(), os.getpid(), _started(os.getpid()), run)


def claim(owner: Owner) -> dict[str, Any]:
    """Return the system attributes that say who evaluates a trial from now on.

    Each owner has a key of its own: where two processes want one enqueued trial, the one that does
    not get it must not remove the name of the other.
    """
    key = f"{_OWNER}:{owner.run}:{owner.pid}"
    return {key: asdict(owner), ALIVE: time.time()}


def owners_of(trial: FrozenTrial) -> list[Owner]:
    """Return who may be evaluating a trial; nobody if `metatpe tune` did not begin it."""
    names = {field.name for field in fields(Owner)}
    found = [v for key, v in trial.system_attrs.items() if key.startswith(_OWNER)]
    return [Owner(**v) for v in found if isinstance(v, dict) and set(v) == names]


def is_abandoned(trial: FrozenTrial) -> bool:
    """Return whether all processes that may have been evaluating a trial are gone."""
    owners = owners_of(trial)
    return bool(owners) and all(_is_gone(owner, trial) for owner in owners)


def is_alive(owner: Owner) -> bool:
    """Return whether the process of an owner runs on this machine."""
    is_here = (owner.host, owner.machine, owner.boot, owner.container) == _here()
    return is_here and bool(owner.started) and _started(owner.pid) == owner.started


def _is_gone(owner: Owner, trial: FrozenTrial) -> bool:
    host, machine, boot, container = _here()
    if (owner.host, owner.machine) == (host, machine):
        if boot and owner.boot and owner.boot != boot:
            return True
        if owner.container == container and owner.started:
            return _started(owner.pid) != owner.started
    return time.time() - float(trial.system_attrs.get(ALIVE, 0.0)) > _GONE_AFTER


@functools.cache
def _here() -> tuple[str, str, str, str]:
    try:
        container = os.readlink("/proc/self/ns/pid")
    except OSError:
        container = ""
    boot = _text("/proc/sys/kernel/random/boot_id")
    # Where there is no such file, the address of the network card. If there is none either, the
    # number is another one in every process: then nothing is known, and signs of life tell.
    machine = _text("/etc/machine-id") or f"{uuid.getnode():x}"
    return socket.gethostname(), machine, boot, container


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return when a process started, as the system writes it; nothing if it has ended."""
    if (_PROC / "self" / "stat").exists():
        # The second field is the program's name in brackets, which may hold spaces and brackets.
        after_name = _text(f"{_PROC}/{pid}/stat").rpartition(")")[2].split()
        is_dead = not after_name or after_name[0] in "ZX"  # it ended, and nobody has asked for it
        return "" if is_dead else after_name[19]
    state, _, started = _listed(pid).partition(" ")
    return "" if state[:1] in "ZX" else started.strip()


def _listed(pid: int) -> str:
    """Return state and start of a process as `ps` of macOS and BSD prints them."""
    command = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)]
    # Two processes that ask must get the same text, whatever their languages and time zones.
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        found = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""  # Windows: not known; then signs of life tell
    return found.stdout.strip()
