"""Which trials count towards those that a study is to have, and who may begin the next."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState, create_trial
from studies import start_python

from metatpe.tuning.claims import (
    STOPPED,
    Turn,
    abandoned,
    give_sign_of_life,
    is_surplus,
    trials_that_count,
    withdraw,
)
from metatpe.tuning.owner import ALIVE, Owner, claim, this_process

OTHER = this_process("other")
GONE = replace(OTHER, pid=OTHER.pid + 1, started="before")
COMPLETE, FAIL = TrialState.COMPLETE, TrialState.FAIL
RUNNING, WAITING = TrialState.RUNNING, TrialState.WAITING


def trial(number: int, state: TrialState, owner: Owner | None = None, **user: bool) -> FrozenTrial:
    value = 1.0 if state == COMPLETE else None
    attributes = claim(owner) if owner else {}
    made = create_trial(state=state, value=value, system_attrs=attributes, user_attrs=user)
    made.number = number
    return made


def test_what_has_ended_and_what_runs_counts() -> None:
    trials = [
        trial(0, COMPLETE),
        trial(1, FAIL),
        trial(2, FAIL, **{STOPPED: True}),
        trial(3, WAITING),
        trial(4, RUNNING, OTHER),
        trial(5, RUNNING, GONE),
        trial(6, RUNNING, this_process("own")),
        trial(7, RUNNING, this_process("own")),
        trial(8, RUNNING),
    ]
    assert [t.number for t in trials_that_count(trials, "own", own=[6])] == [0, 1, 4, 6]


def test_of_trials_that_begin_together_the_first_ones_stay() -> None:
    begun = [trial(number, RUNNING, OTHER) for number in range(5)]
    assert [is_surplus(number, begun, 3) for number in range(5)] == [False] * 3 + [True] * 2


def test_an_enqueued_trial_gives_way() -> None:
    begun = [trial(number, RUNNING, OTHER) for number in range(4)]
    begun[1].system_attrs = {**begun[1].system_attrs, "fixed_params": {"x": 0.5}}
    assert is_surplus(1, begun, 3)
    assert not is_surplus(1, begun, 4)


def test_a_trial_without_a_worker_is_enqueued_with_all_that_is_known_of_it() -> None:
    study = optuna.create_study()
    study.enqueue_trial({"x": 0.25, "y": 0.75})
    begun = study.ask()
    begun.suggest_float("x", 0, 1)
    assert withdraw(study, study.trials[0])
    assert not withdraw(study, study.trials[0])  # another run was faster
    assert [t.state for t in study.trials] == [FAIL, WAITING]
    again = study.ask()
    assert (again.suggest_float("x", 0, 1), again.suggest_float("y", 0, 1)) == (0.25, 0.75)


def test_only_trials_of_other_runs_that_are_gone_are_abandoned() -> None:
    study = optuna.create_study()
    for owner in (OTHER, GONE, replace(GONE, run="own"), None):
        study.add_trial(trial(0, RUNNING, owner))
    assert [t.number for t in abandoned(study, "own")] == [1]


def test_a_sign_of_life_keeps_a_trial_from_being_taken_for_dead() -> None:
    study = optuna.create_study()
    for run in ("own", "other"):
        there = trial(0, RUNNING, replace(OTHER, host="elsewhere", run=run))
        there.system_attrs = {**there.system_attrs, ALIVE: 0.0}
        study.add_trial(there)
    give_sign_of_life(study, "own")
    assert [t.number for t in abandoned(study, "third")] == [1]


HOLDING = """
from metatpe.tuning.claims import Turn
turn = Turn("studies.log", "new")
assert turn.take()
print("taken", flush=True)
input()
"""


def test_one_run_has_its_turn_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    other = start_python(HOLDING)
    assert other.stdout is not None
    assert other.stdout.readline() == "taken\n"
    turn = Turn(str(tmp_path / "studies.log"), "new")
    assert not turn.take()
    assert Turn("studies.log", "old").take()
    other.kill()  # a run that dies does not keep its turn
    other.communicate()
    assert turn.take()
    assert turn.take()
    turn.give_back()
    assert Turn("studies.log", "new").take()


def test_where_files_cannot_be_locked_no_run_waits_for_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    one, other = Turn("sqlite:///studies.db", "new"), Turn("sqlite:///studies.db", "new")
    assert one.take()
    assert other.take()
    one.give_back()
    other.give_back()
