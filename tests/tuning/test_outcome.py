"""Results that are on their way into a storage: none is lost, none is stored twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.study import Study
from optuna.trial import TrialState

from metatpe.tuning.outcome import Outcome, keep, restore
from metatpe.tuning.owner import this_process
from metatpe.tuning.patience import Patience, PatientStorage

GONE = replace(this_process("run"), started="before")


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)


def new_study(folder: Path, name: str = "studies.db") -> Study:
    """Return a study whose trials belong to a process that is gone."""
    patience = Patience(0.0, lambda _: None, lambda: None)
    storage = PatientStorage(f"sqlite:///{folder / name}", patience, GONE, create=True)
    return optuna.create_study(study_name="new", storage=storage)


def kept(folder: Path) -> list[Path]:
    return [*(folder / "state").rglob("*.json"), *(folder / "tmp").rglob("*.json")]


def outcome(**changes: Any) -> Outcome:
    return replace(Outcome("new", 0, GONE, "COMPLETE", 0.5), **changes)


def begin(study: Study) -> None:
    study.ask().suggest_float("x", 0, 1)


@pytest.mark.parametrize(
    ("changes", "state", "value"),
    [
        ({}, TrialState.COMPLETE, 0.5),
        ({"values": [float("inf")]}, TrialState.COMPLETE, float("inf")),
        ({"state": "PRUNED", "values": None}, TrialState.PRUNED, None),
        ({"state": "FAIL", "values": None, "attributes": {"a": "ü\ud800"}}, TrialState.FAIL, None),
    ],
)
def test_what_was_kept_is_stored_once(
    changes: dict[str, Any], state: TrialState, value: float | None, tmp_path: Path
) -> None:
    study = new_study(tmp_path)
    begin(study)
    path = keep(outcome(**changes))
    assert path is not None
    assert kept(tmp_path) == [path]
    assert path.parent.stat().st_mode & 0o077 == 0  # output may be private
    assert restore(study) == [0]
    (trial,) = study.trials
    assert (trial.state, trial.value) == (state, value)
    assert trial.user_attrs == changes.get("attributes", {})
    assert kept(tmp_path) == []
    assert restore(study) == []


def test_the_result_of_a_process_that_lives_is_left_to_it(tmp_path: Path) -> None:
    study = new_study(tmp_path)
    begin(study)
    keep(outcome(owner=this_process("run")))
    assert restore(study) == []
    assert len(kept(tmp_path)) == 1


def test_a_study_with_the_same_name_in_another_storage_gets_nothing(tmp_path: Path) -> None:
    study, other = new_study(tmp_path), new_study(tmp_path, "other.db")
    begin(study)
    keep(outcome(owner=replace(GONE, run="another")))
    keep(outcome(number=7))
    assert restore(other) == restore(study) == []
    assert len(kept(tmp_path)) == 2


def test_the_result_of_a_trial_that_was_taken_for_dead_is_added(tmp_path: Path) -> None:
    study = new_study(tmp_path)
    begin(study)
    study.tell(0, state=TrialState.FAIL)
    keep(outcome())
    assert restore(study) == [0]
    assert [t.state for t in study.trials] == [TrialState.FAIL, TrialState.COMPLETE]
    assert study.trials[1].value == 0.5
    assert study.trials[1].params == study.trials[0].params


def test_a_result_that_the_storage_has_is_not_stored_again(tmp_path: Path) -> None:
    study = new_study(tmp_path)
    begin(study)
    study.tell(0, 0.5)
    keep(outcome())
    assert restore(study) == []
    assert len(study.trials) == 1
    assert kept(tmp_path) == []


def test_values_that_the_study_does_not_take_stop_no_later_run(tmp_path: Path) -> None:
    study = new_study(tmp_path)
    begin(study)
    keep(outcome(values=[1.0, 2.0]))
    assert restore(study) == []
    assert kept(tmp_path) == []
    assert not study.trials[0].state.is_finished()


def test_a_damaged_file_is_passed_over(tmp_path: Path) -> None:
    study = new_study(tmp_path)
    begin(study)
    path = keep(outcome())
    assert path is not None
    path.write_text(path.read_text()[:20])
    assert restore(study) == []
    assert path.exists()


def test_a_home_that_cannot_be_written_is_replaced_by_a_temporary_folder(tmp_path: Path) -> None:
    study = new_study(tmp_path)
    begin(study)
    (tmp_path / "state").write_text("a file, and not a folder")
    (tmp_path / "tmp").mkdir()
    path = keep(outcome())
    assert path is not None
    assert path.is_relative_to(tmp_path / "tmp")
    assert restore(study) == [0]


@pytest.mark.parametrize("values", ["much", [None], [10**400]])
def test_values_that_no_study_takes_are_not_kept(values: Any, tmp_path: Path) -> None:
    assert keep(outcome(values=values)) is None
    assert kept(tmp_path) == []
