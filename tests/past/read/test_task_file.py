"""Saved tasks: what comes back, and what is refused."""

import hashlib
import os
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import DISTRIBUTIONS, INF, MIXED, random_points
from optuna.distributions import CategoricalDistribution, FloatDistribution

from metatpe import Space, Task


@pytest.fixture
def task(rng: np.random.Generator) -> Task:
    X = random_points(MIXED.columns, 50, rng, 0.2)
    losses = rng.normal(size=(50, 2))
    losses[3] = [INF, -INF]
    return Task('it\'s "quoted" ü\ud800', MIXED, X, losses, rng.random(50), ("error", "größe"))


@pytest.fixture
def path(task: Task, tmp_path: Path) -> Path:
    found = tmp_path / "a task.ü"
    task.save(found)
    return found


def assert_same(task: Task, other: Task) -> None:
    for name in ("X", "losses", "violation", "numbers"):
        np.testing.assert_array_equal(getattr(task, name), getattr(other, name))
    assert (task.name, task.space) == (other.name, other.space)
    assert task.objective_names == other.objective_names


def test_a_saved_task_comes_back_bit_for_bit(task: Task, path: Path) -> None:
    assert_same(Task.load(path), task)
    assert_same(Task.load(str(path)), task)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # some distributions are deprecated
@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_every_distribution_can_be_saved(
    kind: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    space = Space({kind: DISTRIBUTIONS[kind]})
    task = Task("t", space, random_points(space.columns, 5, rng), rng.random((5, 1)))
    task.save(tmp_path / "t")
    again = Task.load(tmp_path / "t")
    assert_same(again, task)
    # As text, in which NaN is like itself.
    assert repr(again.configurations(range(5))) == repr(task.configurations(range(5)))


@pytest.mark.filterwarnings("ignore:Choices for a categorical")
def test_a_choice_that_json_does_not_have_is_refused(tmp_path: Path) -> None:
    space = Space({"c": CategoricalDistribution(((1, 2), (3, 4)))})  # type: ignore[arg-type]
    task = Task("t", space, np.array([[0.25]]), np.array([[0.0]]))
    with pytest.raises(ValueError, match="parameter 'c' cannot be saved"):
        task.save(tmp_path / "t")
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_whole_or_not_at_all(
    task: Task, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()

    def fails(handle: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="no space left"):
        task.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_file_has_the_rights_of_any_other(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_every_flipped_byte_is_noticed(path: Path, rng: np.random.Generator) -> None:
    content = path.read_bytes()
    for place in (*range(80), *rng.integers(80, len(content), size=200).tolist()):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(bytes(changed))
        with pytest.raises(ValueError, match=r"damaged|not a saved task|version"):
            Task.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a saved task"),
        (b"lr,error\n1,2\n", "is not a saved task"),
        (pickle.dumps({"a": 1}), "is not a saved task"),
        (
            b"metatpe-task 2 abc\n",
            "version '2', but this metatpe reads version 1; install a newer",
        ),
        (b"metatpe-task 1 abc\n{}", "is damaged: its checksum is wrong"),
    ],
)
def test_what_is_not_understood_is_refused(content: bytes, message: str, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Task.load(path)


@pytest.mark.parametrize("kept", [0, 1, 70, 100, 500, -8, -1])
def test_a_file_that_was_cut_off_is_refused(kept: int, path: Path) -> None:
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"damaged|not a saved task"):
        Task.load(path)


def test_unknown_parts_and_wrong_sizes_are_refused(path: Path) -> None:
    from metatpe.past.read import task_file

    task_file.write(path, {"name": "t", "colour": "red"}, {"X": np.zeros((1, 1))})
    with pytest.raises(ValueError, match=r"unknown or missing parts: \['colour', 'distrib"):
        Task.load(path)
    header = {"name": "t", "objective_names": [], "distributions": []}
    task_file.write(path, header, {"X": np.zeros((1, 1)), "Y": np.zeros(1)})
    with pytest.raises(ValueError, match=r"unknown or missing parts: \['Y', 'losses'"):
        Task.load(path)


def forged(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the arrays of a task, with some of them changed."""
    choices = '{"name": "CategoricalDistribution", "attributes": {"choices": ["a", "b"]}}'
    header = {"name": "t", "objective_names": ["e"], "distributions": [["c", choices]]}
    arrays = {"X": [[0.25]], "losses": [[1.0]], "violation": [0.0], "numbers": [[0.0]]}
    header |= {k: v for k, v in changes.items() if k in header}
    arrays |= {k: v for k, v in changes.items() if k in arrays}
    return header, {name: np.array(array) for name, array in arrays.items()}


@pytest.mark.parametrize(
    "changes",
    [
        {"numbers": [[7.0]]},  # of two choices
        {"numbers": [[0.5]]},
        {"numbers": [[-1.0]]},
        {"numbers": [[INF]]},
        {"X": [[7.0]]},
        {"losses": [1.0]},
        {"distributions": [["c", "{}"]]},
        {"distributions": [["c", "oops"]]},
        {"distributions": [["c", 3]]},
        {"distributions": 3},
        {"objective_names": 3},
        {"objective_names": ["a", "b"]},
    ],
    ids=str,
)
def test_a_forged_file_with_a_valid_checksum_is_refused(
    changes: dict[str, Any], path: Path
) -> None:
    from metatpe.past.read import task_file

    task_file.write(path, *forged())
    assert Task.load(path).configurations([0]) == [{"c": "a"}]
    task_file.write(path, *forged(**changes))
    with pytest.raises(ValueError, match="is not a task that metatpe saved"):
        Task.load(path)


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"3",
        b"{",
        b'{"arrays": 3}',
        b'{"arrays": [["X", [-1, 1]]]}',
        b'{"arrays": [["X", [0.0, 1]]]}',
    ],
)
def test_a_forged_header_is_refused(header: bytes, path: Path) -> None:
    digest = hashlib.sha256(header + b"\n").hexdigest().encode()
    path.write_bytes(b"metatpe-task 1 %s\n%s\n" % (digest, header))
    with pytest.raises(ValueError, match="is not a task that metatpe saved: its header"):
        Task.load(path)


def test_loading_is_quick(tmp_path: Path, rng: np.random.Generator) -> None:
    space = Space({f"x{i}": FloatDistribution(0, 1) for i in range(10)})
    task = Task("t", space, rng.random((1000, 10)), rng.random((1000, 2)))
    task.save(tmp_path / "t")
    start = time.process_time()
    for _ in range(100):
        Task.load(tmp_path / "t")
    assert time.process_time() - start < 1.0  # about 0.1 on a quiet machine
