"""What can be tuned from the command line: functions of files, and commands with placeholders."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FixedTrial
from studies import start_python

from metatpe.tuning.objective import (
    Command,
    EvaluationError,
    Function,
    Output,
    parse,
    parse_values,
)

PYTHON = sys.executable


@pytest.fixture(autouse=True)
def _modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test imports its objective anew."""
    monkeypatch.delitem(sys.modules, "metatpe_objective", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def output(tmp_path: Path) -> Output:
    return Output(tmp_path / "0.out", tmp_path / "0.err")


# Functions


def written(folder: Path, source: str) -> str:
    path = folder / "train.py"
    path.write_text(source)
    return str(path)


def test_a_function_of_a_file_is_imported_with_what_lies_beside_it(
    tmp_path: Path, output: Output, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "beside.py").write_text("FACTOR = 3\n")
    where = written(
        tmp_path,
        "import os, sys, beside\n"
        "def objective(trial):\n"
        "    print('one'); os.system('echo two'); print('three', file=sys.stderr)\n"
        "    return beside.FACTOR * trial.suggest_float('x', 0, 1)\n",
    )
    function = parse([f"{where}:objective"])
    assert function == Function(where, "objective")
    assert function.evaluate(FixedTrial({"x": 0.5}), output, None) == 1.5
    assert sorted(output.out.read_text().split()) == ["one", "two"]
    assert output.err.read_text() == "three\n"
    print("seen")
    assert capfd.readouterr().out == "seen\n"  # what is printed later is seen again


def test_a_function_of_a_module_is_imported() -> None:
    assert Function("math", "sqrt").load()(9.0) == 3.0  # type: ignore[arg-type]


def test_an_error_is_in_the_output_with_its_traceback(tmp_path: Path, output: Output) -> None:
    where = written(tmp_path, "def objective(trial):\n    return {}['key']\n")
    with pytest.raises(KeyError):
        Function(where, "objective").evaluate(FixedTrial({}), output, None)
    assert "line 2, in objective" in output.tail(2000)
    assert output.tail(2000).endswith("KeyError: 'key'")


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("\nimport nowhere_to_be_found", "No module named 'nowhere_to_be_found' (line 2)."),
        ("def objective(:", "SyntaxError: invalid syntax (train.py, line 1)."),
        ("x = 1\n\nraise SystemExit", "SystemExit: it stops (line 3)."),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero (line 1)."),
        ("def objectives(trial): ...", "has no function 'objective'; close are ['objectives']."),
        ("objective = 3", "has no function 'objective'."),
    ],
)
def test_a_file_that_does_not_import_is_said(tmp_path: Path, source: str, sentence: str) -> None:
    where = written(tmp_path, source)
    with pytest.raises(ValueError, match="train") as info:
        Function(where, "objective").load()
    assert str(info.value).endswith(sentence)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("train.py", "'train.py' is not an objective; write FILE.py:FUNCTION."),
        ("train.py:", "'train.py:' is not an objective; write FILE.py:FUNCTION."),
        ("nowhere/train.py:objective", "there is no file nowhere/train.py."),
    ],
)
def test_what_is_no_function_is_said(word: str, sentence: str) -> None:
    with pytest.raises(ValueError, match="train") as info:
        parse([word])
    assert str(info.value) == sentence


def test_of_functions_with_a_name_like_the_one_given_three_are_named(tmp_path: Path) -> None:
    names = ["train_a", "train_b", "train_c", "train_d", "evaluate", "_train_e"]
    where = written(tmp_path, "".join(f"def {name}(trial): ...\n" for name in names))
    with pytest.raises(ValueError, match=r"no function 'train_x'; close are \[") as info:
        Function(where, "train_x").load()
    assert [name in str(info.value) for name in names].count(True) == 3
    with pytest.raises(ValueError, match=r"has no function 'zzz'\.$"):
        Function(where, "zzz").load()


# Commands


def test_the_parameters_of_a_command_are_read() -> None:
    words = ["--lr={lr:log:1e-5:1e-1}", "{layers:int:1:8}", "{act:relu|tanh}", "{w:float:0:1}"]
    assert parse([PYTHON, *words]).space == {
        "lr": FloatDistribution(1e-5, 1e-1, log=True),
        "layers": IntDistribution(1, 8),
        "act": CategoricalDistribution(("relu", "tanh")),
        "w": FloatDistribution(0, 1),
    }


def test_a_command_gets_its_values_as_they_were_written(output: Output) -> None:
    code = "import sys, os, json; print(sys.argv[1:]); print(os.environ['METATPE_TRIAL'])"
    words = [
        *(PYTHON, "-c", code),
        *("{lr:log:1e-5:1e-1}/{lr}", "{amp:true|false}", "{n:016|32}", '{"a": {{lr}}}', "{{}}"),
    ]
    command = parse(words)
    assert isinstance(command, Command)
    trial = FixedTrial({"lr": 1e-3, "amp": True, "n": 16}, number=7)
    assert command.evaluate(trial, output, None) == 7
    assert output.out.read_text().splitlines()[0] == str(
        ["0.001/0.001", "true", "016", '{"a": {lr}}', "{}"]
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["no-such-command", "{x:int:1:2}"], "there is no command 'no-such-command'."),
        ([PYTHON, "train.py"], "the command has no parameter, such as {lr:log:1e-5:1e-1}."),
        ([PYTHON, "{x:int:1:2}", "{x:int:1:3}"], "x appears twice; write {x} the second time."),
        ([PYTHON, "{x:log}"], "{x:log} has no range; write {x:log:LOW:HIGH}."),
        ([PYTHON, "{x:log:0:1}"], "a log scale needs positive values, but there is 0."),
        (
            [PYTHON, "{x:odd:0:1}"],
            "'odd' is not a type; the types are float, log, int, logint, choice.",
        ),
        ([PYTHON, "{HOME}"], "{HOME} has no range or choices; write {HOME:float:0:1}"),
    ],
)
def test_a_command_that_cannot_be_tuned_is_said(words: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as info:
        parse(words)
    assert sentence in str(info.value)


def test_a_command_that_fails_keeps_its_output(output: Output) -> None:
    code = "import sys; print('{x:int:1:1}'); print('no memory', file=sys.stderr); sys.exit(3)"
    with pytest.raises(EvaluationError, match=r"^the command ended with exit code 3\.$"):
        parse([PYTHON, "-c", code]).evaluate(FixedTrial({"x": 1}), output, None)
    assert output.tail(100) == "1\nno memory"


RUNNING_A_COMMAND = """
import sys
import time
from pathlib import Path
from optuna.trial import FixedTrial
from metatpe.tuning.objective import Output, parse
command = parse([sys.executable, "slow.py", "{x:float:0:1}"])
command.evaluate(FixedTrial({"x": 0.5}), Output(Path("0.out"), Path("0.err")), None)
"""
SLOW_WITH_A_CHILD = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
print(os.getpid(), child.pid, flush=True)
time.sleep(3600)
"""


def test_a_command_and_its_children_end_with_a_worker_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("slow.py").write_text(SLOW_WITH_A_CHILD)
    worker = start_python(RUNNING_A_COMMAND)
    while len(pids := Path("0.out").read_text().split() if Path("0.out").exists() else []) < 2:
        assert worker.poll() is None, worker.communicate()
        time.sleep(0.02)
    assert all(map(is_running, pids))
    worker.kill()
    worker.communicate()
    deadline = time.monotonic() + 10
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_running, pids))


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("line", "names", "values"),
    [
        ("0.5", None, 0.5),
        ("[1, 2.5]", None, [1, 2.5]),
        ('{"b": 1, "a": 2}', None, [1, 2]),
        ('{"b": 1, "a": 2, "epoch": 3}', ["a", "b"], [2, 1]),
        ("[1, 2]", ["a", "b"], [1, 2]),
        ("Infinity", None, float("inf")),
    ],
)
def test_values_are_a_number_a_list_or_an_object(
    line: str, names: list[str] | None, values: Any
) -> None:
    assert parse_values(line, names) == values


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "the last line of output must be JSON, but is nothing."),
        ("loss: 3", "the last line of output must be JSON, but is 'loss: 3'."),
        ('{"b": 1}', "the last line of output has no value of 'a'."),
        ("[true]", "an objective's value must be a number, but is True."),
        ('{"a": "3"}', "an objective's value must be a number, but is '3'."),
        ("NaN", "an objective's value must be a number, but is nan."),
        ("null", "an objective's value must be a number, but is None."),
        (f"1{'0' * 400}", "an objective's value must be below 1e308, but has 401 digits."),
        ("[" * 9000, f"the last line of output must be JSON, but is {'[' * 80!r}."),
    ],
)
def test_other_values_are_refused(line: str, sentence: str) -> None:
    with pytest.raises(EvaluationError) as info:
        parse_values(line, ["a"])
    assert str(info.value) == sentence


# Output


@pytest.mark.parametrize("text", ["x" * 5000, "\n" * 500 + "ü\n" * 5000, '"\\\x00' * 3000, "a"])
def test_the_end_of_the_output_fits_into_an_attribute(text: str, output: Output) -> None:
    output.out.write_text(text + "the end")
    tail = output.tail(2000)
    assert tail.endswith("the end")
    assert len(json.dumps(tail)) <= 2000
    study = optuna.create_study(storage="sqlite:///:memory:")
    study.ask().set_user_attr("output", tail)


def test_an_evaluation_that_printed_nothing_has_no_output(output: Output) -> None:
    assert output.tail(2000) == ""


def test_output_that_is_no_text_is_kept(output: Output) -> None:
    output.out.write_bytes(os.urandom(5000) + b"end")
    assert output.tail(2000).endswith("end")
