"""Intermediate values in the output of a command."""

import math
from pathlib import Path

import optuna
import pytest

from metatpe import TransferPruner
from metatpe.tuning.objective import parse
from metatpe.tuning.reports import ReportPattern, Reports, mismatch


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [
        ("epoch {step} loss {value}", "epoch 3 loss 0.25", (3, [0.25])),
        ("epoch {step} loss {value}", "[10:02] Epoch  3   loss -1.5e-3, lr 0.1", (3, [-0.0015])),
        ("epoch {step} loss {value}", "epoch 3 val_loss 0.25", None),
        ("loss {value}", "val_loss 0.5", None),
        ("loss {value}", "loss 0.5 and loss 0.7", (None, [0.5])),
        ("loss {value}", "loss .5", (None, [0.5])),
        ("loss {value}", "loss 5.", (None, [5.0])),
        ("loss {value}", "loss 0.5abc", None),
        ("loss={value}", "loss=inf", (None, [math.inf])),
        ("{step}/{}: loss {value}", "7/10: loss 0.5", (7, [0.5])),
        ("epoch {step}{} val {value}", "epoch 2 train 0.9 val 0.4", (2, [0.4])),
        ("{step} {value} {value}", "4 0.5 12", (4, [0.5, 12.0])),
        ("{value} {step}", "0.5 4", (4, [0.5])),
        ('{{"epoch": {step}, "loss": {value}}}', '{"epoch": 1, "loss": 2e0}', (1, [2.0])),
        ("a.b {value}", "axb 1", None),
        ("step {step} loss {value}", "step 12345678901 loss 1", None),
    ],
)
def test_a_pattern_finds_step_and_values(
    pattern: str, line: str, found: tuple[int | None, list[float]] | None
) -> None:
    assert ReportPattern.parse(pattern).find(line) == found


def test_a_value_may_be_no_number_at_all() -> None:
    found = ReportPattern.parse("loss {value}").find("loss nan")
    assert found is not None
    assert math.isnan(found[1][0])


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("", "--report '': there is no {value}; write for example --report"),
        ("epoch {step}", "there is no {value}"),
        ("{epoch} {value}", "{epoch} is not known, only {step}, {value} and {} for any text"),
        ("{step} {step} {value}", "{step} appears twice"),
        ("{step}{value}", "there must be text between the fields of {step}{value}"),
        ("loss {value", "a '{' is not part of a field; write {{ if a brace is meant."),
        ("loss} {value}", "a '}' is not part of a field"),
        ("loss {value:.3f}", "a '{' is not part of a field"),
    ],
)
def test_a_pattern_that_cannot_be_read_gets_a_sentence(pattern: str, sentence: str) -> None:
    with pytest.raises(ValueError, match="--report") as error:
        ReportPattern.parse(pattern)
    assert sentence in str(error.value)


def test_a_function_takes_no_pattern() -> None:
    with pytest.raises(ValueError, match="a function calls"):
        parse(["train.py:objective"], "loss {value}")


def reported(study: optuna.Study) -> dict[int, float]:
    return study.trials[-1].intermediate_values


def test_lines_are_reported_once_they_have_ended(tmp_path: Path) -> None:
    study, path = optuna.create_study(), tmp_path / "out"
    reports = Reports(ReportPattern.parse("loss {value}"), study.ask(), path)
    with path.open("wb") as file:
        for text, values in [
            (b"loss 1\nlo", [1.0]),
            (b"ss 0.5", [1.0]),
            (b"5\n\xff\xfe\nother\n", [1.0, 0.55]),
            (b"loss 4\rloss 3\r", [1.0, 0.55, 4.0, 3.0]),
            (b"loss 2", [1.0, 0.55, 4.0, 3.0]),
        ]:
            file.write(text)
            file.flush()
            assert not reports.is_stopped()
            assert reported(study) == dict(enumerate(values))
    reports.finish()
    assert reported(study) == dict(enumerate([1.0, 0.55, 4.0, 3.0, 2.0]))


def test_the_first_value_of_a_step_counts(tmp_path: Path) -> None:
    study, path = optuna.create_study(), tmp_path / "out"
    path.write_text("1: 0.5\n1: 0.7\n2: 0.4\n")
    Reports(ReportPattern.parse("{step}: {value}"), study.ask(), path).finish()
    assert reported(study) == {1: 0.5, 2: 0.4}


def test_values_after_the_step_at_which_a_trial_is_stopped_are_not_reported(
    tmp_path: Path,
) -> None:
    study = optuna.create_study(pruner=optuna.pruners.ThresholdPruner(upper=1.0))
    path = tmp_path / "out"
    path.write_text("1: 0.5\n2: 1.5\n3: 0.1\n")
    reports = Reports(ReportPattern.parse("{step}: {value}"), study.ask(), path)
    assert reports.is_stopped()
    assert reported(study) == {1: 0.5, 2: 1.5}


def test_several_objectives_are_reported(tmp_path: Path) -> None:
    study = optuna.create_study(directions=["minimize"] * 2, pruner=TransferPruner())
    path = tmp_path / "out"
    path.write_text("1: 0.5 3\n2: 0.4 2\n")
    reports = Reports(ReportPattern.parse("{step}: {value} {value}"), study.ask(), path)
    assert not reports.is_stopped()
    stored = study.trials[0].system_attrs
    assert stored == {"metatpe:report:1": [0.5, 3.0], "metatpe:report:2": [0.4, 2.0]}


def said(tmp_path: Path, out: str, err: str = "") -> str:
    (tmp_path / "out").write_text(out)
    (tmp_path / "err").write_text(err)
    pattern = ReportPattern.parse("epoch {step} loss {value}")
    return mismatch(pattern, tmp_path / "out", tmp_path / "err")


def test_a_pattern_that_matches_nothing_is_named_with_the_line_most_like_it(
    tmp_path: Path,
) -> None:
    sentence = said(tmp_path, "reading data\nEpoch 1: loss=0.5\nEpoch 2: loss=0.4\n0.4\n")
    assert sentence == (
        "--report 'epoch {step} loss {value}' matches no line of the output, so no trial is "
        "stopped early; a line of the output is 'Epoch 1: loss=0.5'."
    )


def test_lines_on_standard_error_are_named_as_such(tmp_path: Path) -> None:
    sentence = said(tmp_path, "0.4\n", "epoch 1 loss 0.5\n")
    assert sentence.endswith("'epoch 1 loss 0.5' is on stderr, but only stdout is read.")


def test_a_long_line_is_cut_and_control_characters_are_escaped(tmp_path: Path) -> None:
    assert said(tmp_path, "x" * 5000).endswith(f"'{'x' * 100}…'.")
    assert r"'\x1b[31mred'" in said(tmp_path, "\x1b[31mred\n")
