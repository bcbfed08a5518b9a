"""NMT-Bench: what its tables hold, where they are looked for, and what is said about bad ones."""

import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metatpe.bench import Problem, problem_names
from metatpe.bench.families import nmt

NAMES = problem_names("nmt")
LEVELS: dict[str, list[Any]] = {
    "bpe": [1000, 2000, 4000, 8000, 16000, 32000],
    "n_layers": [1, 2, 4],
    "n_embed": [256, 512, 1024],
    "n_hidden": [1024, 2048],
    "n_heads": [8, 16],
    "initial_lr": [0.0003, 0.0006, 0.001],
}


@pytest.fixture
def columns() -> dict[str, list[float]]:
    """A made-up table: BLEU counts the configurations up, time counts them down."""
    grid = list(itertools.product(*LEVELS.values()))
    table = {name: [float(x[j]) for x in grid] for j, name in enumerate(LEVELS)}
    return {**table, "bleu": list(range(648)), "decoding_time": list(range(648, 0, -1))}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder where the tables are looked for, and nowhere else."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("METATPE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data" / "nmt-bench").mkdir(parents=True)
    (tmp_path / "cache" / "metatpe" / "nmt-bench").mkdir(parents=True)
    return tmp_path


def write(file: Path, columns: dict[str, Any]) -> None:
    file.write_text(json.dumps(columns), "utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_of_the_file_is_found_under_its_configuration(
    name: str, load: Callable[[str], Problem]
) -> None:
    problem = load(name)
    file = next(f for d in nmt.data_folders() if (f := d / f"{name[4:]}.json").is_file())
    entries = json.loads(file.read_text("utf-8"))
    for i in range(648):
        params = {p: values.index(entries[p][i]) for p, values in LEVELS.items()}
        values = problem.evaluate(params, seed=i)
        assert values == (entries["bleu"][i], entries["decoding_time"][i])


@pytest.mark.parametrize(
    ("name", "n_failed", "n_zero"), [("so-en", 44, 44), ("sw-en", 32, 32), ("tl-en", 8, 9)]
)
def test_a_failed_training_has_both_worst_values(
    name: str, n_failed: int, n_zero: int, load: Callable[[str], Problem]
) -> None:
    problem = load(f"nmt/{name}")
    assert problem.worst.tolist() == [0.0, 1500.0]
    assert problem.table is not None
    bleu, seconds = problem.table[:, 0].T
    assert (seconds == 1500.0).sum() == n_failed
    assert (bleu[seconds == 1500.0] == 0.0).all()
    assert (bleu == 0.0).sum() == n_zero


# As the authors of the paper published it with their code.
def test_tagalog_has_the_published_front(load: Callable[[str], Problem]) -> None:
    bleu = [14.51, 15.93, 15.96, 16.13, 17.69, 19.16, 23.58, 24.71, 26.2, 26.52, 31.15, 31.55]
    front = load("nmt/tl-en").front
    assert front is not None
    assert front[:, 0].tolist() == bleu
    assert front[[0, -1], 1].tolist() == [354.0231, 660.9892]


def test_bleu_is_maximised_and_time_minimised(
    folder: Path, columns: dict[str, list[float]]
) -> None:
    write(folder / "data" / "nmt-bench" / "so-en.json", columns)
    problem = nmt.load("nmt/so-en")
    assert problem.directions == ("maximize", "minimize")
    assert problem.best.tolist() == [647.0, 1.0]
    assert problem.worst.tolist() == [0.0, 648.0]
    assert problem.front is not None
    assert problem.front.tolist() == [[647.0, 1.0]]


def test_the_order_of_the_entries_does_not_matter(
    folder: Path, columns: dict[str, list[float]], rng: np.random.Generator
) -> None:
    order = rng.permutation(648)
    write(folder / "data" / "nmt-bench" / "so-en.json", columns)
    write(
        folder / "data" / "nmt-bench" / "sw-en.json",
        {name: np.array(column)[order].tolist() for name, column in columns.items()},
    )
    tables = [nmt.load(f"nmt/{pair}").table for pair in ("so-en", "sw-en")]
    np.testing.assert_array_equal(tables[0], tables[1])


def test_the_given_folder_comes_before_the_cache(
    folder: Path, columns: dict[str, list[float]]
) -> None:
    write(folder / "cache" / "metatpe" / "nmt-bench" / "so-en.json", columns)
    assert nmt.load("nmt/so-en").best.tolist() == [647.0, 1.0]
    better = {**columns, "bleu": [b + 1.0 for b in columns["bleu"]]}
    write(folder / "data" / "nmt-bench" / "so-en.json", better)
    assert nmt.load("nmt/so-en").best.tolist() == [648.0, 1.0]


def test_a_missing_table_is_answered_with_where_to_get_it_and_where_to_put_it(
    folder: Path,
) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        nmt.load("nmt/tl-en")
    message = str(caught.value)
    for part in (
        "tl-en.json is not in",
        str(folder / "data" / "nmt-bench"),
        "https://github.com/Este1le/hpo_nmt",
        f"so-en.json, sw-en.json, tl-en.json into {folder / 'cache' / 'metatpe' / 'nmt-bench'}",
        "METATPE_DATA",
    ):
        assert part in message


def test_without_a_given_folder_only_the_cache_is_searched(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("METATPE_DATA")
    assert nmt.data_folders() == (folder / "cache" / "metatpe" / "nmt-bench",)


@pytest.mark.parametrize(
    ("platform", "cache"),
    [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
)
def test_the_cache_is_where_the_platform_has_it(
    platform: str, cache: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert nmt.data_folders()[-1] == Path.home() / cache / "metatpe" / "nmt-bench"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"bleu": None}, "TypeError|ValueError"),
        ({"bleu": [1.0] * 600}, "ValueError"),
        ({"bleu": [1.0], "decoding_time": [1.0]}, "ValueError"),
        ({"bleu": [float("nan")] * 648}, "a table must be finite"),
        ({"n_heads": [8] * 648}, "must be there once, but there are 324 in 648"),
        ({"n_heads": [12] * 648}, "not in tuple"),
        ({name: [] for name in LEVELS}, "but there are 0 in 0 entries"),
    ],
)
def test_a_damaged_table_is_named(
    change: dict[str, Any], complaint: str, folder: Path, columns: dict[str, Any]
) -> None:
    write(folder / "data" / "nmt-bench" / "so-en.json", {**columns, **change})
    with pytest.raises(ValueError, match=f"so-en.json is not a table of NMT-Bench.*({complaint})"):
        nmt.load("nmt/so-en")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"bpe": [1000'])
def test_a_file_that_is_something_else_is_named(text: str, folder: Path) -> None:
    (folder / "data" / "nmt-bench" / "so-en.json").write_text(text, "utf-8")
    with pytest.raises(
        ValueError, match=r"so-en\.json is not a table of NMT-Bench, download it again"
    ):
        nmt.load("nmt/so-en")
