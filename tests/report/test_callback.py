"""`TransferCallback`: what is written into a study, when, and how long it takes."""

import contextlib
from pathlib import Path
from typing import Any

import optuna
import pytest
from studies import answer_of, new_study, past_study, start_python
from transferred import (
    GRAPHS,
    OLD_RECORDS,
    objective,
    recorded_study,
    saved_figures,
    system_attributes_of,
    transferred,
)

from metatpe import MetaTPESampler, TransferCallback
from metatpe.past.read.storage import open_storage
from metatpe.report.callback import SHARE, Pace, publish

dashboard = pytest.importorskip("optuna_dashboard")


class Clock:
    """Time that passes only where a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


# The pace


def test_updates_take_at_most_their_share_of_the_time() -> None:
    clock = Clock()
    pace, spent, last = Pace(clock), 0.0, 0.0
    for i in range(1000):
        clock.now += 0.1  # a trial
        if not pace.wait:
            with pace.update():
                last = 0.01 * (1 + i % 7) * 5
                clock.now += last
            spent += last
    assert spent > 0
    assert spent - last <= SHARE * (clock.now - 100.0)


def test_the_first_update_comes_at_once_and_the_next_after_its_share() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.wait == 0.0
    with pace.update():
        clock.now += 1.0
    assert pace.wait == pytest.approx(1.0 / SHARE - 1.0)
    clock.now += 1.0 / SHARE - 1.0
    assert pace.wait == 0.0


def test_an_update_that_fails_costs_its_time_too() -> None:
    clock = Clock()
    pace = Pace(clock)
    with contextlib.suppress(OSError), pace.update():
        clock.now += 1.0
        raise OSError
    assert pace.wait == pytest.approx(1.0 / SHARE - 1.0)


def test_trials_that_follow_closely_wait_and_are_caught_up_with() -> None:
    clock = Clock()
    callback = TransferCallback()
    callback._pace = Pace(clock)
    study, _ = transferred(6)
    callback(study, study.trials[-1])  # at once; by the clock it took no time
    assert "6 trials" in dashboard.get_note(study)
    with callback._pace.update():
        clock.now += 1e6
    for _ in range(3):
        study.tell(study.ask(), [1.0, 1.0])
        callback(study, study.trials[-1])
    assert "6 trials" in dashboard.get_note(study)
    callback.flush()
    assert "9 trials" in dashboard.get_note(study)
    assert callback._timer is None


def test_what_waits_is_caught_up_with_in_time() -> None:
    callback = TransferCallback()
    study, _ = transferred(6)
    callback(study, study.trials[-1])
    study.tell(study.ask(), [1.0, 1.0])
    callback._pace._next = callback._pace._clock() + 0.2
    callback(study, study.trials[-1])
    timer = callback._timer
    assert timer is not None
    timer.join()
    assert "7 trials" in dashboard.get_note(study)


def test_the_last_trials_are_there_when_python_has_ended(tmp_path: Path) -> None:
    path = str(tmp_path / "studies.log")
    past_study(name="past", storage=open_storage(path, create=True))
    code = f"""
import optuna
from metatpe import MetaTPESampler, TransferCallback, load_tasks
from metatpe.past.read.storage import open_storage
from transferred import objective
study = optuna.create_study(
    storage=open_storage({path!r}), study_name="new", directions=["minimize"] * 2,
    sampler=MetaTPESampler(load_tasks({path!r}, "past"), seed=0),
)
study.optimize(objective, n_trials=8, callbacks=[TransferCallback()])
print("[]")
"""
    assert answer_of(start_python(code)) == []
    study = optuna.load_study(study_name="new", storage=open_storage(path))
    assert "8 trials" in dashboard.get_note(study)
    assert saved_figures(study).keys() == GRAPHS


def test_threads_may_share_a_callback() -> None:
    past = past_study()
    study = new_study(MetaTPESampler([past], seed=0))
    callback = TransferCallback()
    study.optimize(objective, n_trials=12, n_jobs=4, callbacks=[callback])
    callback.flush()
    assert "12 trials" in dashboard.get_note(study)


def test_an_update_that_fails_ends_no_run(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(optuna.storages.InMemoryStorage):
        def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
            if key.startswith("dashboard:"):
                raise OSError("disk full at mysql://me:geheim@host/x")
            super().set_study_system_attr(study_id, key, value)

    study = new_study(MetaTPESampler([past_study()], seed=0), storage=Broken(), name="new")
    study.optimize(objective, n_trials=2, callbacks=[TransferCallback()])
    assert len(study.trials) == 2
    assert "the plots of study 'new' were not updated: disk full" in caplog.text
    assert "geheim" not in caplog.text


# What is written


def test_plots_and_note_tell_of_the_transfer() -> None:
    study, _ = transferred(15)
    assert publish(study)
    figures = saved_figures(study)
    assert figures.keys() == GRAPHS
    names = {trace.get("name") for trace in figures["metatpe-weights"]["data"]}
    assert {"past", "warm start"} <= names
    assert "the study itself" not in names  # a card has no room for the panel of shares
    note = dashboard.get_note(study)
    assert "It used 1 past study" in note
    assert "| past |" in note


def test_nothing_is_written_twice() -> None:
    study, _ = transferred(8)
    assert publish(study)
    before = dict(system_attributes_of(study))
    assert not publish(study)
    assert system_attributes_of(study) == before
    study.tell(study.ask(), [1.0, 1.0])
    assert publish(study)
    assert dashboard.get_note(study).count("What was transferred") == 1


def test_what_users_have_written_stays() -> None:
    study, _ = transferred(8)
    dashboard.save_note(study, "Mine, with \\1 and `code`.")
    publish(study)
    dashboard.save_note(study, f"{dashboard.get_note(study)}\n\nMore of mine.")
    study.tell(study.ask(), [1.0, 1.0])
    publish(study)
    note = dashboard.get_note(study)
    assert note.startswith("Mine, with \\1 and `code`.\n")
    assert note.endswith("\nMore of mine.")
    assert "9 trials" in note
    assert "8 trials" not in note


def test_a_study_of_another_sampler_is_left_alone() -> None:
    study = past_study()
    assert not publish(study)
    assert not system_attributes_of(study)


def test_the_note_says_what_to_run_next_with_the_past_of_the_storage() -> None:
    study, _ = transferred(20, storage=optuna.storages.InMemoryStorage())
    publish(study)
    note = dashboard.get_note(study)
    assert "What to run next" in note
    assert "The next 10 are expected to add" in note
    assert "| past | 30 | " in note
    assert "Optuna's importances explain the spread of all values" in note


def test_a_study_recorded_before_there_were_reasons_is_published() -> None:
    study = recorded_study(*OLD_RECORDS)
    assert publish(study)
    assert saved_figures(study).keys() == GRAPHS
    assert "It is unknown how 2 trials were chosen." in dashboard.get_note(study)
