"""`metatpe tune`: real worker processes, real storages, Ctrl-C, and what goes wrong."""

import io
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from commands import Answer, ended, metatpe, refusal, running
from optuna.study import Study
from optuna.trial import TrialState
from rich.console import Console
from studies import past_study
from transferred import OLD_RECORDS, OLD_TURN, recorded_study, start_of, weighed

from metatpe import TransferSampler, load_tasks, transfer_history
from metatpe.cli.tune import row_of
from metatpe.viz.weights import described

FUNCTION = """
import os, signal, time
def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    {extra}
    return x, (1 - x) + (kind == "a")
"""
COMMAND = """
import json, sys, time
lr, layers, act = sys.argv[1:]
print("training")
if act == "true":
    sys.exit("no memory")
time.sleep({seconds})
print(json.dumps({{"cost": int(layers), "error": float(lr)}}))
"""
TWO = ("--direction", "minimize", "--direction", "minimize")
NEW = ("--study", "new", "--storage", "sqlite:///studies.db")


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A folder of its own; and Optuna, which the command makes quiet, is loud again afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("metatpe.cli.tune.console", Console(width=200))
    with warnings.catch_warnings():
        yield
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def write_function(extra: str = "") -> str:
    Path("train.py").write_text(FUNCTION.format(extra=extra))
    return "train.py:objective"


def write_command(seconds: float = 0.0) -> list[str]:
    Path("train.py").write_text(COMMAND.format(seconds=seconds))
    space = ["{lr:log:1e-5:1e-1}", "{layers:int:1:8}", "{amp:true|false}"]
    return ["--", sys.executable, "train.py", *space]


def tune(*arguments: object, storage: str = "sqlite:///studies.db") -> Answer:
    return metatpe("tune", "--study", "new", "--storage", storage, *arguments)


def study_of(storage: str = "sqlite:///studies.db") -> Study:
    return optuna.load_study(study_name="new", storage=storage)


def states(study: Study) -> list[str]:
    return [t.state.name for t in study.trials]


# Functions and commands


def test_a_function_is_tuned_with_the_past_and_the_study_goes_on() -> None:
    past_study(n=10, name="old 1", storage="sqlite:///studies.db")
    past_study(n=5, name="old one", storage="sqlite:///studies.db", directions=["minimize"])
    arguments = (write_function(), "--from", "old*", *TWO, "--jobs", 2, "--seed", 0)
    answer = tune(*arguments, "--trials", 6)
    assert answer.code == 0, answer
    lines = answer.out.splitlines()
    assert lines[0] == "study new in sqlite:///studies.db, past studies: old 1"
    assert sum(line.startswith("trial ") for line in lines) == 6
    assert any("| warm start of old 1 |" in line and "on the front" in line for line in lines)
    study = study_of()
    assert states(study) == ["COMPLETE"] * 6
    origins = [record.origin for record in transfer_history(study)]
    assert origins.count("warm_start") == 5
    answer = tune(*arguments, "--trials", 8, "--json")
    front = json.loads(answer.out)
    assert (front["study"], front["trials"], front["complete"]) == ("new", 8, 8)
    assert {row["trial"] for row in front["front"]} == {t.number for t in study.best_trials}
    for record in transfer_history(study)[6:]:
        (line,) = (x for x in answer.err.splitlines() if x.startswith(f"trial {record.number} |"))
        assert f"| {described(record)} |" in line
    assert len(study.trials) == 8


def test_a_study_that_has_its_trials_says_how_to_continue_it() -> None:
    arguments = (write_function(), *TWO, "--seed", 0, "--trials", 2)
    said = "no new trials: the study already has 2 trials; to continue it, give a larger number"
    assert said not in tune(*arguments).out
    assert said in tune(*arguments).out
    assert len(study_of().trials) == 2


def test_with_one_objective_the_best_trial_is_shown_instead_of_a_front() -> None:
    Path("train.py").write_text(
        'def objective(trial):\n    return trial.suggest_float("x", 0, 1)\n'
    )
    answer = tune("train.py:objective", "--trials", 5, "--seed", 0)
    assert answer.code == 0, answer
    assert "front" not in answer.out
    best = study_of().best_trial
    lines = [line for line in answer.out.splitlines() if line.startswith("trial ")]
    assert f"trial {best.number} | {best.value:.5g} | best | " in answer.out
    assert lines[-1].endswith(f"| best so far: {best.value:.5g} (trial {best.number})")
    assert "Best trial\n" in "\n".join(x.strip() for x in answer.out.splitlines()) + "\n"


def test_the_sampler_is_the_one_that_was_chosen() -> None:
    url = "sqlite:///studies.db"
    past_study(n=10, name="old", storage=url)
    arguments = (write_function(), "--from", "old", *TWO, "--seed", 0, "--trials", 7)
    assert tune(*arguments, "--sampler", "transfer").code == 0
    sampler = TransferSampler(load_tasks(url, "old"), seed=0)
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    namespace: dict[str, Callable[[optuna.Trial], tuple[float, float]]] = {}
    exec(Path("train.py").read_text(), namespace)
    study.optimize(namespace["objective"], n_trials=7)
    assert [t.params for t in study_of().trials] == [t.params for t in study.trials]
    assert transfer_history(study_of()) == transfer_history(study)
    assert "acquisition" in {record.origin for record in transfer_history(study)}


def test_another_name_of_a_sampler_is_said_with_those_that_there_are() -> None:
    answer = tune(write_function(), "--sampler", "tpe")
    assert answer.code == 2
    said = " ".join(answer.err.replace("│", "").split())  # out of its box
    assert "'tpe' is not one of 'auto', 'meta-tpe', 'transfer'." in said
    assert not Path("studies.db").exists()


def test_a_command_is_tuned_and_a_failed_one_keeps_its_output() -> None:
    storage = "studies.log"
    arguments = (*TWO, "--objective", "error", "--objective", "cost", "--logs", "logs")
    answer = tune(*arguments, "--trials", 8, "--seed", 1, *write_command(), storage=storage)
    assert answer.code == 0, answer
    study = study_of(optuna.storages.JournalStorage(_journal(storage)))  # type: ignore[arg-type]
    assert study.metric_names == ["error", "cost"]
    assert len(study.trials) == 8
    assert set(states(study)) == {"COMPLETE", "FAIL"}
    for trial in study.trials:
        if trial.state == TrialState.COMPLETE:
            assert trial.values == [trial.params["lr"], trial.params["layers"]]
            assert trial.params["amp"] is False
        else:
            assert trial.params["amp"] is True
            assert trial.user_attrs["metatpe:error"] == "the command ended with exit code 1."
            assert trial.user_attrs["metatpe:output"] == "training\nno memory"
    assert "fail: the command ended with exit code 1." in answer.out
    assert Path("logs/0.out").read_text().startswith("training\n")


def _journal(path: str) -> optuna.storages.journal.BaseJournalBackend:
    return optuna.storages.journal.JournalFileBackend(path)


def test_a_terminal_shows_a_live_table(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=120, _environ={})
    monkeypatch.setattr("metatpe.cli.tune.console", terminal)
    assert tune(write_function("assert x < 0.5"), *TWO, "--trials", 5, "--seed", 0).code == 0
    shown = screen.getvalue()
    assert all(name in shown for name in ("trial", "values", "front", "chosen", "weights"))
    assert "fail: AssertionError" in shown
    assert "5 evaluated, " in shown
    assert "\x1b[" in shown


@pytest.mark.parametrize(
    ("record", "chosen", "weights"),
    [
        (weighed({"target": 0.75, "old": 0.25}), "with past studies", "target 0.75, old 0.25"),
        (
            weighed({"target": 0.5, "old": 0.5}, "own"),
            "alone, to compare",
            "target 0.50, old 0.50",
        ),
        (weighed({}, "own"), "alone, to compare", ""),
        (weighed({}, "densities"), "by densities", ""),
        (
            weighed({"target": 1.0, "old": 0.0}, "silent"),
            "alone, few good trials",
            "target 1.00, o",
        ),
        (start_of("old", "older"), "warm start of old, older", ""),
        (OLD_RECORDS[1], "unknown", ""),
        (OLD_TURN, "with past studies", "target 0.60, past 0.40"),
        (None, "enqueued", ""),
    ],
)
def test_a_row_has_the_reason_in_words_and_the_weights(
    record: dict[str, Any] | None, chosen: str, weights: str
) -> None:
    study = recorded_study(record)
    cells = row_of(study.trials[0], study, set())
    assert cells[-2] == chosen
    assert cells[-1].startswith(weights)
    assert bool(cells[-1]) == bool(weights)


def test_failures_pruned_trials_and_wrong_values_do_not_stop_a_study() -> None:
    extra = """import optuna
    if trial.number == 0: raise ValueError("too\\nbad")
    if trial.number == 1: raise optuna.TrialPruned
    if trial.number == 2: return x
    if trial.number == 3: return "much", x
    if trial.number == 4: return float("nan"), x
    if trial.number == 5: os.kill(os.getpid(), signal.SIGKILL)"""
    answer = tune(write_function(extra), *TWO, "--trials", 8)
    assert answer.code == 0, answer
    study = study_of()
    assert states(study) == ["FAIL", "PRUNED", *["FAIL"] * 4, "COMPLETE", "COMPLETE"]
    errors = [t.user_attrs.get("metatpe:error") for t in study.trials[:6]]
    assert errors[0] == "ValueError: too"
    assert "ValueError: too\nbad" in study.trials[0].user_attrs["metatpe:output"]
    assert "The number of the values 1 did not match" in str(errors[2])
    assert "could not be cast to float" in str(errors[3])
    assert "nan" in str(errors[4])
    assert errors[5] == "the process ended with signal 9."


def test_no_result_at_all_is_no_success() -> None:
    answer = tune(write_function("raise ValueError('never')"), "--trials", 2)
    assert answer.code == 1
    assert answer.out.count("fail: ValueError: never") == 2


def test_no_trial_begins_when_the_time_is_over() -> None:
    answer = tune(write_function(), *TWO, "--trials", 50, "--timeout", 0)
    assert answer.code == 1
    assert study_of().trials == []


# Ctrl-C


def test_a_worker_that_is_told_twice_to_end_ends_without_a_word() -> None:
    what = write_function("time.sleep(3600)")
    with Path(what.partition(":")[0]).open("a") as file:  # its end takes long enough for both
        file.write("\nimport atexit\natexit.register(time.sleep, 1.0)\n")
    with running("tune", *NEW, *TWO, what) as command:
        while n_running() < 1:
            assert command.poll() is None, command.communicate()
            time.sleep(0.2)
        os.killpg(command.pid, signal.SIGTERM)  # the workers too, which the parent ends as well
        answer = ended(command)
    assert answer.code == 130, answer
    assert "SystemExit" not in answer.err


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("function", signal.SIGINT),
        ("command", signal.SIGINT),
        pytest.param("function", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("command", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_study_that_was_stopped_goes_on_with_what_was_being_evaluated(
    kind: str, number: signal.Signals
) -> None:
    what = write_command(3600) if kind == "command" else [write_function("time.sleep(3600)")]
    what = [w.replace("{amp:true|false}", "false") for w in what]
    with running("tune", *NEW, "--jobs", 2, *TWO, *what) as command:
        while n_running() < 2:
            assert command.poll() is None, command.communicate()
            time.sleep(0.2)
        # A terminal sends it to all processes of the group.
        os.killpg(command.pid, number)
        answer = ended(command)
    assert answer.code == 130, answer
    last = (
        "stopped after 0 of 100 trials; the same command continues the study, "
        "starting with 2 enqueued configurations."
    )
    assert answer.out.splitlines()[-1] == last
    assert "Best trial" not in answer.out
    assert "Traceback" not in answer.err
    study = study_of()
    assert states(study) == ["FAIL", "FAIL", "WAITING", "WAITING"]
    deadline = time.monotonic() + 10
    while still_running("train.py") and time.monotonic() < deadline:
        time.sleep(0.1)  # a command that was told to end takes a moment on a busy machine
    assert still_running("train.py") == []
    what = write_command() if kind == "command" else [write_function()]
    what = [w.replace("{amp:true|false}", "false") for w in what]
    assert tune("--trials", 3, *what).code == 0
    assert states(study) == ["FAIL", "FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]
    assert [t.params for t in study.trials[2:4]] == [t.params for t in study.trials[:2]]


def test_more_ctrl_c_while_a_run_stops_leave_no_trial_behind() -> None:
    Path("train.py").write_text(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1.5), sys.exit(1)))\n"
        "time.sleep(3600)\n"
    )
    what = ("--", sys.executable, "train.py", "{x:float:0:1}", "{y:float:0:1}")
    with running("tune", *NEW, *what) as command:
        while n_running() < 1:
            assert command.poll() is None, command.communicate()
            time.sleep(0.2)
        time.sleep(2)  # until the command has its handler
        for _ in range(3):
            os.killpg(command.pid, signal.SIGINT)
            time.sleep(0.3)
        answer = ended(command)
    assert answer.code == 130, answer
    assert "stopping the running trials" in answer.out
    assert "Traceback" not in answer.err
    assert states(study_of()) == ["FAIL", "WAITING"]


def n_running() -> int:
    """Return how many trials are being evaluated, and have asked for both parameters."""
    try:
        trials = study_of().trials
    except (KeyError, optuna.exceptions.StorageInternalError):
        return 0
    return sum(t.state == TrialState.RUNNING and len(t.params) == 2 for t in trials)


def still_running(word: str) -> list[str]:
    """Return the commands of this machine's processes that run a script of this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(path / "cwd") == os.getcwd() and word in (path / "cmdline").read_text():
                found.append((path / "cmdline").read_text())
        except OSError:
            continue
    return found


# What past studies say of the objectives


def named_past(name: str, directions: list[str], names: list[str] | None = None) -> Study:
    study = past_study(n=4, name=name, storage="sqlite:///studies.db", directions=directions)
    if names:
        study.set_metric_names(names)
    return study


def test_the_objectives_of_a_new_study_are_those_of_the_past_studies() -> None:
    named_past("old 1", ["minimize", "maximize"], ["error", "accuracy"])
    named_past("old 2", ["minimize", "maximize"])
    answer = tune(write_function(), "--from", "old*", "--trials", 2)
    assert answer.code == 0, answer
    assert "objectives: minimize error, maximize accuracy" in answer.out
    study = study_of()
    assert states(study) == ["COMPLETE"] * 2
    assert [d.name for d in study.directions] == ["MINIMIZE", "MAXIMIZE"]
    assert study.metric_names == ["error", "accuracy"]


def test_what_is_given_of_the_objectives_is_completed() -> None:
    named_past("old 1", ["minimize", "maximize"], ["error", "accuracy"])
    named_past("old 2", ["minimize", "minimize"], ["error", "cost"])
    answer = tune(write_function(), "--from", "old*", *TWO, "--trials", 2)
    assert "objectives: minimize error, minimize cost\nleft out: old 1: " in answer.out
    arguments = ("--objective", "error", "--objective", "accuracy", "--trials", 1)
    answer = metatpe(
        *("tune", write_function(), "--study", "other", "--storage", "sqlite:///studies.db"),
        *("--from", "old*", *arguments),
    )
    assert answer.code == 0, answer
    assert "objectives: minimize error, maximize accuracy\nleft out: old 2: " in answer.out


def test_past_studies_that_differ_are_named() -> None:
    named_past("old 1", ["minimize", "minimize"])
    named_past("old 2", ["maximize"])
    arguments = ("--study", "new", "--storage", "sqlite:///studies.db", "--from", "old*")
    assert refusal("tune", write_function(), *arguments) == (
        "the past studies have the directions ['minimize', 'minimize'] (such as 'old 1') and "
        "['maximize'] (such as 'old 2'); say with --direction, once per objective, what the new "
        "study is to have, or choose past studies that agree with --from."
    )
    assert "new" not in optuna.get_all_study_names("sqlite:///studies.db")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["train.py:objective", "--from", "old", "--direction", "minimize"],
            "the past study cannot be used; 'old' is left out because it has 2 objectives, but "
            "the new study has 1.",
        ),
        (
            ["train.py:objective", "--from", "*"],
            "none of the 2 past studies can be used; 'empty' is left out because it has 0 "
            "finished trials with a parameter.",
        ),
        (
            ["--from", "old", "--", sys.executable, "train.py", "{momentum:float:0:1}"],
            "no past study can be used; left out: old: it has no parameter in common with the "
            "new study.",
        ),
    ],
)
def test_a_past_of_which_nothing_is_left_is_refused(arguments: list[str], sentence: str) -> None:
    url = "sqlite:///studies.db"
    optuna.create_study(study_name="empty", storage=url)
    n = 1 if "*" in arguments else 4
    past_study(n=n, name="old", storage=url)
    write_function()
    assert refusal("tune", "--study", "new", "--storage", url, *arguments) == sentence
    assert optuna.get_all_study_names(url) == ["empty", "old"]


def test_an_objective_with_another_number_of_values_leaves_no_study_that_blocks_the_next() -> None:
    arguments = ("--study", "new", "--storage", "sqlite:///studies.db", "--trials", 50)
    said = refusal("tune", write_function(), *arguments)
    assert "The number of the values 2 did not match the number of the objectives 1" in said
    assert tune(write_function(), *arguments[:-1], 4, *TWO).code == 0
    assert len(study_of().trials) == 4


@pytest.mark.parametrize(
    ("returned", "what"),
    [("None", "nothing (None)"), ("{'error': x, 'cost': 1}", "a dict"), ("'good'", "a str")],
)
def test_an_objective_that_returns_no_values_is_told_what_to_return(
    returned: str, what: str
) -> None:
    function = write_function(f"return {returned}")
    said = refusal("tune", function, *NEW, *TWO, "--trials", 50)
    expected = "it must return a number, or a tuple with one number per objective; correct this"
    assert f"in the same way: the objective returned {what}; {expected}" in said


# Bad input


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.py:objective"], "there is no file nowhere.py."),
        (
            ["broken.py:objective"],
            "broken.py cannot be imported: ZeroDivisionError: division by zero",
        ),
        (["killed.py:objective"], "importing the objective ended the process with signal 9."),
        (["train.py"], "'train.py' is not an objective; write FILE.py:FUNCTION."),
        (["--", "no-such-command", "{x:int:1:2}"], "there is no command 'no-such-command'."),
        (["train.py:objective", "--direction", "down"], "a direction is minimize or maximize"),
        (["train.py:objective", "--objective", "a", *TWO], "2 directions for 1 objective"),
        (["train.py:objective", "--default", "x"], "--default 'x' is not NAME=VALUE."),
        (["train.py:objective", "--from", "old"], "there is no file studies.db."),
    ],
)
def test_bad_input_gets_one_sentence_and_nothing_is_written(
    arguments: list[str], sentence: str
) -> None:
    write_function()
    Path("broken.py").write_text("1 / 0")
    Path("killed.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    said = refusal("tune", "--study", "new", "--storage", "sqlite:///studies.db", *arguments)
    assert sentence in said
    assert not Path("studies.db").exists()


def test_a_study_with_other_objectives_is_not_gone_on_with() -> None:
    study = past_study(n=3, name="new", storage="sqlite:///studies.db")
    storage = ("--study", "new", "--storage", "sqlite:///studies.db")
    said = refusal("tune", write_function(), *storage, "--direction", "maximize")
    assert "its directions are ['minimize', 'minimize'], not ['maximize']" in said
    assert "has 2 objectives, but 1 are named" in refusal(
        "tune", write_function(), *storage, "--objective", "error"
    )
    study.set_metric_names(["a", "b"])
    said = refusal("tune", write_function(), *storage, "--objective", "a", "--objective", "c")
    assert "its objectives are ['a', 'b'], not ['a', 'c']" in said
    assert "no study is called 'oldest'; the storage has ['new']." in refusal(
        "tune", write_function(), *storage, "--from", "oldest"
    )
    assert len(study.trials) == 3


def test_a_storage_that_is_down_is_said_without_the_password() -> None:
    pytest.importorskip("psycopg")
    url = "postgresql+psycopg://me:secret@localhost:1/studies"
    said = refusal("tune", write_function(), "--study", "new", "--storage", url)
    assert "postgresql+psycopg://me:***@localhost:1/studies cannot be used" in said
    assert "secret" not in said


def test_a_study_that_is_deleted_under_way_is_said() -> None:
    extra = """import optuna
    if trial.number == 2: optuna.delete_study(study_name="new", storage="sqlite:///studies.db")"""
    what = write_function(extra)
    storage = ("--study", "new", "--storage", "sqlite:///studies.db")
    assert refusal("tune", what, *storage, *TWO) == "study 'new' was deleted while it was tuned."
    assert optuna.get_all_study_names("sqlite:///studies.db") == []
