"""The command as a whole: its help, its version, and how fast it is there."""

import inspect
import subprocess
import sys

import pytest
import typer
from commands import metatpe

import metatpe as package
from metatpe.cli import command_names

# Whatever takes time to import, and is not needed to parse.
SLOW = {"numpy", "scipy", "optuna", "sqlalchemy", "metatpe.bench", "metatpe.samplers"}


def loaded_by(*arguments: str) -> set[str]:
    """Return the modules that a command loads."""
    code = (
        "import sys; from metatpe.cli import main; import atexit\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"sys.argv = ['metatpe', *{arguments!r}]; main()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(run.stderr.split())


def test_the_version_is_printed_without_loading_anything_slow() -> None:
    assert metatpe("--version").out == f"metatpe {package.__version__}\n"
    assert not loaded_by("--version") & SLOW


def test_a_command_does_not_load_the_experiments() -> None:
    assert not loaded_by("tasks", "--help") & {"metatpe.bench", "metatpe.cli.tune"}


@pytest.mark.parametrize("command", ["metatpe", "metatpe bench", *command_names()])
def test_help_has_no_type_beside_a_flag(command: str) -> None:
    answer = metatpe(*command.split()[1:], "--help")
    assert answer.code == 0
    assert "--help" in answer.out
    assert "<bool>" not in answer.out


@pytest.mark.skipif(
    "suggest_commands" not in inspect.signature(typer.Typer).parameters,
    reason="typer corrects commands from 0.20 on",
)
@pytest.mark.parametrize(
    ("words", "meant"), [(["tun"], "tune"), (["bench", "tabel"], "table"), (["benhc"], "bench")]
)
def test_a_misspelled_command_is_corrected(words: list[str], meant: str) -> None:
    answer = metatpe(*words)
    assert answer.code == 2
    assert f"Did you mean '{meant}'?" in answer.err


@pytest.mark.parametrize("command", command_names())
def test_an_option_that_may_be_repeated_says_what_it_takes(command: str) -> None:
    answer = metatpe(*command.split()[1:], "--help")
    options = answer.out[answer.out.find("Options") :]
    assert "list[str]" not in options
