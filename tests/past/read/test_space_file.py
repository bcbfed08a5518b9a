"""Search spaces in text files."""

import json
from pathlib import Path

import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)

from metatpe.past.read.space_file import read_space

SPACE = {
    "lr": FloatDistribution(1e-5, 1e-1, log=True),
    "layers": IntDistribution(1, 8),
    "act": CategoricalDistribution(["relu", "tanh"]),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "space.txt"


def test_one_parameter_per_line(path: Path) -> None:
    path.write_text("# of the model\nlr:log:1e-5:1e-1\n\n layers:int:1:8\nact:relu|tanh\n")
    assert read_space(path).distributions == SPACE


def test_distributions_as_optuna_writes_them(path: Path) -> None:
    written = {name: json.loads(distribution_to_json(d)) for name, d in SPACE.items()}
    path.write_text(json.dumps(written))
    assert read_space(path).distributions == SPACE


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no parameter; write one per line, as in lr:log:1e-5:1e-1."),
        ("lr:log\n", "line 1: 'lr:log' has no range; write lr:float:0:1."),
        (
            "x:int:1:2\nlr:logarithmic:1:2",
            "line 2: 'lr:logarithmic:1:2': 'logarithmic' is not a type",
        ),
        ("\x1b[31m", "write \\x1b[31m:float:0:1."),
        ("\x1b[31m:int:2:1", "line 1: \\x1b[31m: "),
        ('{"lr": 1}', "is not an object of Optuna's distributions"),
        ('{"lr": ', "is not an object of Optuna's distributions"),
    ],
)
def test_what_cannot_be_read_is_named(path: Path, text: str, sentence: str) -> None:
    path.write_text(text)
    with pytest.raises(ValueError, match=r"space\.txt") as error:
        read_space(path)
    assert sentence in str(error.value)


def test_a_file_that_is_no_text_is_refused(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is not a text file"):
        read_space(path)


def test_a_python_file_wants_the_name_of_its_objective(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import argparse\n")
    with pytest.raises(ValueError, match=r"train\.py is Python; name the objective") as error:
        read_space(path)
    assert str(error.value).endswith("train.py:objective.")
