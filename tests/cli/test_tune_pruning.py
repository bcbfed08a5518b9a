"""`metatpe tune` stops evaluations early: of commands that print values, and of functions."""

import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import optuna
import pytest
from commands import Answer, ended, metatpe, refusal, running
from optuna.study import Study
from optuna.trial import TrialState

from metatpe import pruning_history

URL = "sqlite:///studies.db"
# After its last epoch, a bad configuration does nothing for an hour: only a pruner ends it.
COMMAND = """
import os, signal, sys, time
x = float(sys.argv[1])
Path = __import__("pathlib").Path
def end(*_):
    Path("told-to-end").touch()
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
for epoch in range(12):
    print(f"epoch {epoch} loss {x + 0.5 ** epoch:.6f}")
if x > 0.5 and int(os.environ["METATPE_TRIAL"]) > 2:
    time.sleep(3600)
print(x)
"""
FUNCTION = """
import optuna
def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    for epoch in range(12):
        trial.report(x + 0.5 ** epoch, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x
"""
REPORT = ("--report", "epoch {step} loss {value}")


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        yield
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def arguments(*more: object) -> list[object]:
    Path("train.py").write_text(COMMAND)
    words = ["--", sys.executable, "train.py", "{x:float:0:1}"]
    return ["tune", "--study", "new", "--storage", URL, "--seed", 0, *more, *words]


def tune(*more: object) -> Answer:
    return metatpe(*arguments(*more))


def study_of(name: str = "new") -> Study:
    return optuna.load_study(study_name=name, storage=URL)


def past_with_curves() -> None:
    """Make a past study whose curves never cross, so that the first epochs say everything."""
    distribution = optuna.distributions.FloatDistribution(0, 1)
    trials = [
        optuna.create_trial(
            params={"x": x},
            distributions={"x": distribution},
            value=x,
            intermediate_values={epoch: x + 0.5**epoch for epoch in range(12)},
        )
        for x in np.random.default_rng(1).random(40).tolist()
    ]
    optuna.create_study(study_name="old", storage=URL).add_trials(trials)


def enqueued(*values: float) -> None:
    study = optuna.create_study(study_name="new", storage=URL)
    for x in values:
        study.enqueue_trial({"x": x})


def test_a_command_is_ended_at_a_step_that_past_curves_speak_against() -> None:
    past_with_curves()
    enqueued(0.1, 0.2, 0.3, 0.9, 0.4, 0.95)
    answer = tune(*REPORT, "--from", "old", "--jobs", 2, "--trials", 6)
    assert answer.code == 0, answer
    assert "pruner: TransferPruner, learning curves of 1 past study" in answer.out
    trials = study_of().trials
    pruned = {t.number for t in trials if t.state == TrialState.PRUNED}
    assert {3, 5} <= pruned
    for record in pruning_history(study_of()):
        trial = trials[record.number]
        assert trial.state == TrialState.PRUNED
        assert max(trial.intermediate_values) == record.step < 11
        assert record.expected is not None
        assert f"pruned at step {record.step}: expected {record.expected:.5g}" in answer.out
    assert Path("told-to-end").exists()
    assert len(trials[0].intermediate_values) == 12  # of one that ended before it was looked at


def test_values_are_kept_without_a_pruner() -> None:
    enqueued(0.1, 0.2)
    answer = tune(*REPORT, "--pruner", "none", "--trials", 2)
    assert answer.code == 0, answer
    assert "pruner: none" in answer.out
    for trial in study_of().trials:
        assert trial.state == TrialState.COMPLETE
        assert len(trial.intermediate_values) == 12


def test_a_pattern_that_matches_no_line_is_mentioned_once() -> None:
    answer = tune("--report", "Step {step}: {value}", "--jobs", 2, "--trials", 4)
    assert answer.code == 0, answer
    (line,) = (x for x in answer.out.splitlines() if "--report" in x)
    assert line.startswith("--report 'Step {step}: {value}' matches no line of the output")
    assert "'epoch " in line


def test_a_pattern_that_matches_is_not_mentioned() -> None:
    answer = tune(*REPORT, "--pruner", "none", "--trials", 1)
    assert answer.code == 0, answer
    assert "--report" not in answer.out


@pytest.mark.slow
def test_a_function_that_reports_is_pruned_as_well() -> None:
    past_with_curves()
    enqueued(0.0, 0.1, 0.2, 0.8, 0.9)
    Path("train.py").write_text(FUNCTION)
    given = ("--study", "new", "--storage", URL, "--from", "old", "--trials", 5, "--json")
    answer = metatpe("tune", "train.py:objective", *given)
    assert answer.code == 0, answer
    states = [t.state for t in study_of().trials]
    assert states[3:] == [TrialState.PRUNED] * 2
    assert [record.number for record in pruning_history(study_of())][-2:] == [3, 4]
    assert f'"pruned": {states.count(TrialState.PRUNED)}' in answer.out


@pytest.mark.slow
def test_a_command_whose_values_are_read_ends_with_ctrl_c() -> None:
    enqueued(0.1, 0.2, 0.3, 0.9)
    with running(*arguments(*REPORT, "--pruner", "none", "--trials", 4)) as command:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and len(study_of().trials[3].intermediate_values) < 12:
            time.sleep(0.1)
        os.killpg(command.pid, signal.SIGINT)
        answer = ended(command)
    assert answer.code == 130, answer
    assert Path("told-to-end").exists()
    *complete, stopped, waiting = study_of().trials
    assert [t.state.name for t in complete] == ["COMPLETE"] * 3
    assert (stopped.state, waiting.state) == (TrialState.FAIL, TrialState.WAITING)
    assert len(stopped.intermediate_values) == 12


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--report", "epoch {step}"), "there is no {value}"),
        (("--report", "{value} {value}"), "has 2 values, but the study has 1 objective"),
    ],
)
def test_a_wrong_pattern_gets_one_sentence_and_nothing_is_written(
    given: tuple[str, ...], sentence: str
) -> None:
    assert sentence in refusal(*arguments(*given))
    assert not Path("studies.db").exists()
