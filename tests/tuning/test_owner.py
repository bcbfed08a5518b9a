"""Who evaluates a trial, and how it is known that this process is gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from optuna.trial import FrozenTrial, TrialState, create_trial

from metatpe.tuning import owner
from metatpe.tuning.owner import (
    ALIVE,
    Owner,
    claim,
    is_abandoned,
    is_alive,
    owners_of,
    this_process,
)

ME = this_process("run")


def owned(*owners: Owner, seen: float | None = None) -> FrozenTrial:
    """Return a running trial; the last sign of life was so many seconds ago."""
    attributes = {key: value for each in owners for key, value in claim(each).items()}
    if seen is not None:
        attributes[ALIVE] = time.time() - seen
    return create_trial(state=TrialState.RUNNING, system_attrs=attributes)


def elsewhere(pid: int = 1) -> Owner:
    return replace(ME, host="elsewhere", pid=pid)


def test_a_trial_names_its_owner() -> None:
    assert owners_of(owned(ME)) == [ME]
    assert ME.pid == os.getpid()
    assert owners_of(create_trial(state=TrialState.RUNNING)) == []


def test_a_trial_of_a_live_process_is_not_abandoned() -> None:
    assert is_alive(ME)
    assert not is_abandoned(owned(ME))
    assert not is_abandoned(owned(ME, seen=1e6))  # it is known to live: no sign is needed


def test_a_trial_of_nobody_is_not_abandoned() -> None:
    assert not is_abandoned(create_trial(state=TrialState.RUNNING))


def test_a_process_that_was_killed_is_gone_also_before_its_parent_has_noticed() -> None:
    code = "from metatpe.tuning.owner import *; import dataclasses, json, time\n"
    code += "print(json.dumps(dataclasses.asdict(this_process('run'))), flush=True)\n"
    code += "time.sleep(3600)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    its = Owner(**json.loads(child.stdout.readline()))
    assert is_alive(its)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but not forgotten
    assert not is_alive(its)
    assert is_abandoned(owned(its))
    child.communicate()
    assert is_abandoned(owned(its))


needs_ps = pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")


@needs_ps
def test_without_proc_the_list_of_processes_tells_who_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner, "_PROC", Path("/nowhere"))
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    its = replace(ME, pid=child.pid, started=owner._started(child.pid))
    assert is_alive(its)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but not forgotten
    assert not is_alive(its)
    child.communicate()
    assert not is_alive(its)
    assert is_abandoned(owned(its))


@needs_ps
def test_processes_in_other_time_zones_agree_when_one_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner, "_PROC", Path("/nowhere"))
    before = owner._started(os.getpid())
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert owner._started(os.getpid()) == before != ""


def test_where_nothing_lists_processes_signs_of_life_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "_PROC", Path("/nowhere"))
    monkeypatch.setenv("PATH", "/nowhere")
    its = this_process("run")
    assert its.started == ""
    assert not is_abandoned(owned(its, seen=60.0))
    assert is_abandoned(owned(its, seen=3600.0))


def test_another_process_with_the_same_number_is_not_the_owner() -> None:
    earlier = replace(ME, started=str(int(ME.started) - 1) if ME.started.isdigit() else "before")
    assert is_abandoned(owned(earlier))


def test_no_process_survives_a_restart_of_the_machine() -> None:
    if not ME.boot:
        pytest.skip("the system does not tell when it started")
    assert is_abandoned(owned(replace(ME, boot="before")))


@pytest.mark.parametrize("there", [elsewhere(), replace(ME, container="another", pid=1)])
def test_signs_of_life_tell_about_other_machines_and_containers(there: Owner) -> None:
    assert not is_abandoned(owned(there, seen=0.0))
    assert not is_abandoned(owned(there, seen=owner._GONE_AFTER - 60))
    assert is_abandoned(owned(there, seen=owner._GONE_AFTER + 60))


def test_a_trial_that_two_wanted_is_abandoned_when_both_are_gone() -> None:
    gone = replace(ME, pid=ME.pid + 1, started="before")
    assert is_abandoned(owned(gone))
    assert not is_abandoned(owned(gone, ME))
    assert len(owners_of(owned(gone, ME))) == 2
