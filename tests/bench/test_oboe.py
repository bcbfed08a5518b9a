"""oboe: what its tables hold, its conditional space, and what is said about bad files."""

import ast
import csv
import gzip
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metatpe.bench import Problem, execute, get_problem, problem_names
from metatpe.bench.families import oboe
from metatpe.bench.past import past_task, random_configurations
from metatpe.bench.plan import past_of, plan

NAMES = problem_names("oboe")
GRIDS: dict[str, dict[str, list[Any]]] = {  # of the made-up matrices
    "Bayes": {},
    "Forest": {"criterion": ["gini", "entropy"], "split": [16, 2, 0.1]},
    "Net": {"rate": ["adaptive"], "width": [None, "log2"]},
}
Rows = list[list[str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder where the matrices are looked for, and nowhere else."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("METATPE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data" / "oboe").mkdir(parents=True)
    return tmp_path / "data" / "oboe"


@pytest.fixture
def matrices() -> dict[str, Rows]:
    """Made-up matrices of two data sets: errors count the columns up, times count them down."""
    columns = [
        str({"algorithm": algorithm, "hyperparameters": dict(zip(grid, values, strict=True))})
        for algorithm, grid in GRIDS.items()
        for values in itertools.product(*grid.values())
    ]
    n = len(columns)
    errors = [["00003", *map(str, range(n))], ["00012", *map(str, range(1, n + 1))]]
    times = [[i, *map(str, range(n, 0, -1))] for i in ("00003", "00012")]
    return {"error": [["", *columns], *errors], "runtime": [["", *columns], *times]}


def write(folder: Path, matrices: dict[str, Rows]) -> None:
    for name, rows in matrices.items():
        with (folder / f"{name}_matrix.csv").open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows(rows)


# The made-up matrices ---------------------------------------------------------------------------


def test_the_space_has_a_branch_for_each_algorithm(
    folder: Path, matrices: dict[str, Rows]
) -> None:
    write(folder, matrices)
    problem = oboe.load("oboe/3")
    choices = {n: getattr(d, "choices", None) for n, d in problem.space.items()}
    assert choices == {
        "algorithm": ("Bayes", "Forest", "Net"),
        "Forest.criterion": ("entropy", "gini"),
        "Forest.split": None,
        "Net.width": (None, "log2"),
    }
    assert problem.levels == {"Forest.split": (0.1, 2, 16)}
    assert problem.conditions == {
        "Forest.criterion": ("algorithm", "Forest"),
        "Forest.split": ("algorithm", "Forest"),
        "Net.width": ("algorithm", "Net"),
    }


def test_a_configuration_has_what_its_column_has(folder: Path, matrices: dict[str, Rows]) -> None:
    write(folder, matrices)
    problem = oboe.load("oboe/12")
    forest = {"algorithm": "Forest", "Forest.criterion": "gini", "Forest.split": 2}  # 16
    assert problem.evaluate({"algorithm": "Bayes"}, seed=0) == (1.0, 9.0)
    assert problem.evaluate(forest, seed=0) == (2.0, 8.0)
    assert problem.evaluate({"algorithm": "Net", "Net.width": None}, seed=0) == (8.0, 2.0)
    assert problem.directions == ("minimize", "minimize")


@pytest.mark.parametrize(
    "params",
    [
        {"algorithm": "Forest", "Forest.criterion": "gini"},
        {"algorithm": "Bayes", "Net.width": None},
        {"Net.width": None},
    ],
)
def test_parameters_of_another_branch_are_refused(
    params: dict[str, Any], folder: Path, matrices: dict[str, Rows]
) -> None:
    write(folder, matrices)
    with pytest.raises(ValueError, match=r"needs the parameters \[.*\], but got"):
        oboe.load("oboe/3").evaluate(params, seed=0)


def test_the_order_of_the_columns_does_not_matter(
    folder: Path, matrices: dict[str, Rows], rng: np.random.Generator
) -> None:
    write(folder, matrices)
    before = oboe.load("oboe/3")
    order = [0, *(1 + rng.permutation(len(matrices["error"][0]) - 1))]
    shuffled = {name: [[row[i] for i in order] for row in m] for name, m in matrices.items()}
    other = folder.parent / "other" / "oboe"
    other.mkdir(parents=True)
    write(other, shuffled)
    after = oboe._table(3, other / "error_matrix.csv", other / "runtime_matrix.csv")
    assert after.space == before.space
    np.testing.assert_array_equal(after.values, before.table)


def test_a_compressed_matrix_is_read_too(folder: Path, matrices: dict[str, Rows]) -> None:
    write(folder, matrices)
    for name in matrices:
        plain = folder / f"{name}_matrix.csv"
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    assert oboe.load("oboe/3").evaluate({"algorithm": "Bayes"}, seed=0) == (0.0, 9.0)


def test_a_missing_matrix_is_answered_with_where_to_get_it_and_where_to_put_it(
    folder: Path,
) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        oboe.load("oboe/3")
    message = str(caught.value)
    cache = folder.parents[1] / "cache" / "metatpe" / "oboe"
    for part in (
        "error_matrix.csv of oboe is not in",
        str(folder),
        "pip download --no-deps oboe==0.2.0",
        f"oboe/defaults/Oboe into {cache}",
        "METATPE_DATA",
    ):
        assert part in message


def test_a_data_set_that_is_not_there_is_answered_with_its_neighbours(
    folder: Path, matrices: dict[str, Rows]
) -> None:
    write(folder, matrices)
    with pytest.raises(ValueError, match="oboe has no dataset 7; the nearest are 3 and 12"):
        oboe.load("oboe/7")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda rows: [], "ValueError: not enough values"),
        (lambda rows: rows[:1], "it must have rows"),
        (lambda rows: [rows[0], rows[1][:-1]], "all of the same length"),
        (lambda rows: [rows[0], ["00003", *(len(rows[0]) - 1) * ["-"]]], "could not convert"),
        (lambda rows: [rows[0], ["00003", *(len(rows[0]) - 1) * ["nan"]]], "must be finite"),
        (lambda rows: [["", *map(repr, rows[0][1:])], *rows[1:]], "TypeError"),
        (lambda rows: [["", "{", *rows[0][2:]], *rows[1:]], "SyntaxError"),
        (lambda rows: [row[:3] + row[4:] for row in rows], "Forest must have each of 6 .* 5 in 5"),
        (lambda rows: [row + row[-1:] for row in rows], "Net must have each of 2 .* 2 in 3"),
    ],
)
def test_a_damaged_matrix_is_named(
    change: Callable[[Rows], Rows], complaint: str, folder: Path, matrices: dict[str, Rows]
) -> None:
    write(folder, {name: change(rows) for name, rows in matrices.items()})
    with pytest.raises(ValueError, match=f"error_matrix.csv is not a matrix of oboe.*{complaint}"):
        oboe.load("oboe/3")


def test_matrices_of_different_columns_are_named(folder: Path, matrices: dict[str, Rows]) -> None:
    write(folder, {**matrices, "runtime": [row[:-1] for row in matrices["runtime"]]})
    with pytest.raises(ValueError, match=r"runtime_matrix\.csv has other columns than .*error_"):
        oboe.load("oboe/3")


CUT = gzip.compress(b"a" * 999)[:-12]


@pytest.mark.parametrize("content", [b"no gzip", CUT], ids=["no gzip", "cut"])
def test_a_broken_compressed_file_is_named(content: bytes, folder: Path) -> None:
    for name in ("error", "runtime"):
        (folder / f"{name}.csv.gz").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"error\.csv\.gz is not a matrix of oboe, download it again"
    ):
        oboe.load("oboe/3")


# The published matrices -------------------------------------------------------------------------


def published(objective: str) -> Rows:
    file = oboe._find(objective)
    content = file.read_bytes()
    text = (gzip.decompress(content) if file.suffix == ".gz" else content).decode()
    return list(csv.reader(text.splitlines()))


def test_every_entry_is_found_under_its_configuration(load: Callable[[str], Problem]) -> None:
    problem = load(NAMES[-1])
    errors, times = published("error"), published("run_time")
    row = next(i for i, r in enumerate(errors) if r[0] == NAMES[-1].removeprefix("oboe/"))
    for j, text in enumerate(errors[0][1:], start=1):
        column = ast.literal_eval(text)
        named = {f"{column['algorithm']}.{n}": v for n, v in column["hyperparameters"].items()}
        params = {
            name: problem.levels[name].index(value) if name in problem.levels else value
            for name, value in named.items()
            if name in problem.space
        }
        values = problem.evaluate({"algorithm": column["algorithm"], **params}, seed=j)
        assert values == (float(errors[row][j]), float(times[row][j]))


def test_the_matrices_are_those_of_twelve_algorithms(load: Callable[[str], Problem]) -> None:
    problem = load(NAMES[0])
    assert problem.table is not None
    assert problem.table.shape == (219, 1, 2)
    assert len(problem.space["algorithm"].choices) == 12  # type: ignore[attr-defined]
    assert len(problem.space) == 23
    assert "MLP.learning_rate" not in problem.space
    assert problem.levels["DT.min_samples_split"][:5] == (1e-5, 1e-4, 1e-3, 0.01, 2)


def test_the_suite_and_its_past_are_the_samples_that_the_module_describes(
    load: Callable[[str], Problem],
) -> None:
    load(NAMES[0])  # or skip
    names = [f"oboe/{i}" for i in sorted(int(row[0]) for row in published("error")[1:])]
    assert len(names) == 418
    assert list(NAMES) == names[::35]
    for name in NAMES:
        assert list(oboe.past(name)) == names[19::38][:10]


def test_a_data_set_is_never_its_own_past() -> None:
    for name in (*NAMES, *oboe.past(NAMES[0])):
        others = oboe.past(name)
        assert len(set(others)) == 10
        assert name not in others


def test_the_past_of_a_problem_has_the_same_streams_whatever_the_problem() -> None:
    assert len({past_of(name) for name in NAMES}) == 1
    assert len({past.stream for past in past_of(NAMES[0])}) == 10


def test_run_times_count_in_logs_and_errors_do_not(load: Callable[[str], Problem]) -> None:
    for name in NAMES:
        problem = load(name)
        assert problem.log_objectives == (False, True)
        assert problem.is_positive[1]


def test_random_configurations_are_different_ones_of_the_table(
    load: Callable[[str], Problem],
) -> None:
    problem = load(NAMES[0])
    drawn = random_configurations(problem, 100, (3, 1))
    assert len({problem.evaluate(c, 0) for c in drawn}) == 100
    assert {c["algorithm"] for c in drawn} == set(problem.space["algorithm"].choices)  # type: ignore[attr-defined]


def test_a_past_task_misses_what_its_configurations_do_not_use(
    load: Callable[[str], Problem],
) -> None:
    task = past_task(load(NAMES[0]), 50, seed=0, stream=1)
    for i, is_missing in enumerate(np.isnan(task.X)):
        branch = task.configuration(i)["algorithm"]
        for name, missing in zip(task.space.names, is_missing, strict=True):
            assert missing == (name != "algorithm" and not name.startswith(f"{branch}."))


@pytest.mark.parametrize(
    "method", ["meta-tpe", "transfer", "rgpe-ehvi", "optuna-tpe+warm", "only-warm-start"]
)
def test_methods_run_in_a_conditional_space(method: str, load: Callable[[str], Problem]) -> None:
    load(NAMES[0])
    (run,) = plan([NAMES[0]], [method], [0], n_evaluations=8, n_past=20)
    record = execute(run)
    assert record.error is None
    problem = get_problem(NAMES[0])
    for evaluation in record.evaluations:
        assert evaluation.values == problem.evaluate(evaluation.params, 0)
