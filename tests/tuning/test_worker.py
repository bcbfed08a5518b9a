"""A worker of `metatpe tune`, with a parent that is played by the test."""

from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial
from studies import past_study

from metatpe import TransferSampler
from metatpe.study.record import record_of
from metatpe.tuning.objective import Function
from metatpe.tuning.worker import Asked, Open, _serve

URL = "sqlite:///studies.db"


class Parent:
    """Lets a worker ask for one trial, and looks at it before the next worker may ask."""

    def __init__(self) -> None:
        self.answers = [True, False, False]
        self.asked: FrozenTrial | None = None

    def send(self, message: Any) -> None:
        if isinstance(message, Asked):
            self.asked = optuna.load_study(study_name="new", storage=URL).trials[message.number]

    def recv(self) -> bool:
        return self.answers.pop(0)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> optuna.Study:
    monkeypatch.chdir(tmp_path)
    return optuna.create_study(study_name="new", storage=URL, directions=["minimize"] * 2)


def asked_trial() -> FrozenTrial:
    sampler = TransferSampler([past_study(n=10, name="old")], seed=0)
    given = Open(URL, "new", sampler, optuna.pruners.NopPruner(), (), Path(), "run", 1.0)
    parent = Parent()
    _serve(parent, Function("train.py", "objective"), given)  # type: ignore[arg-type]
    assert parent.asked is not None
    return parent.asked


def test_a_configuration_is_chosen_before_the_next_worker_may_ask(study: optuna.Study) -> None:
    record = record_of(asked_trial())
    assert record is not None
    assert record.origin == "warm_start"


def test_an_enqueued_trial_needs_no_choice(study: optuna.Study) -> None:
    study.enqueue_trial({"x": 0.5})
    assert record_of(asked_trial()) is None
