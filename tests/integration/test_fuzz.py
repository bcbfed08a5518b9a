"""Random studies and files against all samplers, the pruner, readers, reports and commands."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import optuna
import pytest
from commands import metatpe
from fuzzing import Case, random_case, random_curve, random_name
from hostile_files import hidden_in, write_csv, write_damaged_task, write_space
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study

from metatpe import Task, pruning_history, report_values
from metatpe.html import table
from metatpe.past.read.space_file import read_space
from metatpe.past.read.storage import open_storage
from metatpe.report import html_report, markdown_report, note

Rng = np.random.Generator


@pytest.fixture(autouse=True)
def _logging(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    caplog.set_level(logging.INFO, logger="metatpe")
    yield
    optuna.logging.set_verbosity(level)  # commands quieten Optuna


# One check each: return all that was said -----------------------------------------------------


def suggestions(case: Case, rng: Rng) -> str:
    """Ask for one or two trials, which report until the pruner stops them."""
    m = len(case.study.directions)
    for _ in range(rng.integers(1, 3)):
        trial = case.study.ask()
        for name, distribution in case.space.items():
            value = trial._suggest(name, distribution)
            assert is_in(value, distribution), (name, value, distribution)
        curve = random_curve(m, rng)
        if any(report_values(trial, values, step) for step, values in curve.items()):
            case.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            case.study.tell(trial, [float(len(trial.params))] * m)
    records = pruning_history(case.study)
    assert all(record.step in range(10**9) for record in records)
    return repr(records) + repr(case.study.pruner)


def is_in(value: object, distribution: BaseDistribution) -> bool:
    return bool(distribution._contains(distribution.to_internal_repr(value)))


def readers(case: Case, folder: Path) -> str:
    """Read the study in all ways."""
    task = Task.from_study(case.study)
    task.save(folder / "task")
    again = Task.load(folder / "task")
    np.testing.assert_array_equal(again.X, task.X)
    np.testing.assert_array_equal(again.curves, task.curves)
    every = range(len(task))
    assert repr(again.configurations(every)) == repr(task.configurations(every))
    rows = {
        "\x1b x": np.arange(len(task)),
        "kind": (["\x9b a", "b"] * len(task))[: len(task)],
        "error": task.losses[:, 0].clip(-1e9, 1e9),
    }
    read = Task.from_dataframe(rows, objectives="error", name=task.name)
    assert len(read) == len(task)
    about = [task.describe(), read.describe(), repr(case.study.sampler), repr(task)]
    return "\n".join([*about, table(task.name, [], ()), case.study.sampler._repr_html_()])


def odd_files(case: Case, folder: Path, rng: Rng) -> str:
    """Read a table, a saved task and a search space that may be odd."""
    objective = write_csv(folder / "rows.csv", rng)
    write_damaged_task(Task.from_study(case.study), folder / "damaged", rng)
    write_space(folder / "space", rng)
    ways: list[Callable[[], object]] = [
        lambda: Task.from_csv(folder / "rows.csv", objectives=objective).describe(),
        lambda: Task.load(folder / "damaged").describe(),
        lambda: read_space(folder / "space"),
    ]
    said = []
    for read in ways:
        try:
            said.append(str(read()))
        except ValueError as error:
            said.append(str(error))
    return "\n".join(said)


def page(case: Case) -> str:
    """Return the HTML report, with what its plots hold; no name becomes a script."""
    text = html_report(case.study, case.past)
    assert text.count("<script") == 3
    (packed,) = re.findall(r'<script id="figures"[^>]*>([^<]*)<', text)
    return text + shown(json.loads(gzip.decompress(base64.b64decode(packed)), parse_constant=fail))


def shown(value: object) -> str:
    """Return all texts of a value that was read from JSON."""
    if isinstance(value, dict):
        return "".join(map(shown, [*value.keys(), *value.values()]))
    return "".join(map(shown, value)) if isinstance(value, list) else str(value)


def fail(constant: str) -> None:
    raise AssertionError(f"JSON has no {constant}")


def command(case: Case, folder: Path, rng: Rng) -> str:
    """Run one command on a storage with the studies of a case."""
    path = folder / str(rng.choice(["s.log", "s.db"], p=[0.9, 0.1]))
    path.unlink(missing_ok=True)
    opened = open_storage(path, create=True)
    names = [store(study, opened) for study in (case.study, *case.past)]
    arguments = random_command(next(filter(None, names), ""), folder, rng)
    answer = metatpe(arguments[0], f"--storage={path}", *arguments[1:])
    assert answer.code == 0 or (answer.code == 2 and "metatpe: " in answer.err), answer
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" in options and answer.code == 0:
        json.loads(answer.out, parse_constant=fail)
    return answer.out + answer.err


def store(study: Study, storage: BaseStorage) -> str:
    """Copy a study; return its name there, nothing where SQLite does not take its text."""
    for i in count():
        name = f"{i} {study.study_name}" if i else study.study_name
        with contextlib.suppress(optuna.exceptions.DuplicatedStudyError):
            try:
                optuna.copy_study(
                    from_study_name=study.study_name,
                    from_storage=study._storage,
                    to_storage=storage,
                    to_study_name=name,
                )
            except UnicodeEncodeError:
                return ""
            return name
    raise AssertionError


def random_command(name: str, folder: Path, rng: Rng) -> list[str]:
    """Return a command about a study."""
    as_json = ["--json"] if rng.random() < 0.5 else []
    file = folder / "rows.csv"
    objective = write_csv(file, rng)
    options = [f"--study={random_name(rng)}", f"--objective={objective}"]
    every = [
        ["tasks", *as_json],
        ["tasks", f"--like={name}", *as_json],
        ["similarity", *as_json],
        ["suggest", "-n", "2", *as_json],
        ["suggest", "--ranges", *as_json],
        ["suggest", "-n", "2", f"--csv={folder / 'out.csv'}"],
        ["suggest", "-n", "1", f"--enqueue={random_name(rng)}"],
        ["suggest", "-n", "2", f"--study={name}", *as_json],
        ["report", f"--from={random_name(rng)}", "--format=md", "--", name],
        ["import", str(file), *options, *as_json],
    ]
    return every[rng.integers(len(every))]


# All of them ----------------------------------------------------------------------------------


def said_about(case: Case, folder: Path, rng: Rng) -> Iterator[str]:
    """Run all checks; the dear ones on some cases."""
    yield suggestions(case, rng)
    yield readers(case, folder)
    yield odd_files(case, folder, rng)
    yield markdown_report(case.study, case.past)
    yield note(case.study, case.past)
    if rng.random() < 0.05:
        yield page(case)
    if rng.random() < 0.15:
        yield command(case, folder, rng)


def check(seed: int, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Fail if one case crashes, warns, leaves its space, or writes a control character."""
    caplog.clear()
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Optuna's own words about what we ask of it.
        warnings.filterwarnings("ignore", module=r"optuna\..*")
        warnings.filterwarnings("ignore", category=UserWarning, message=".*(step|metric|Choices)")
        warnings.filterwarnings("ignore", message=".*experimental")
        for text in said_about(random_case(rng), folder, rng):
            assert not hidden_in(text), hidden_in(text)
    for record in caplog.records:
        if record.name.startswith("metatpe"):
            assert not hidden_in(record.getMessage())


def failures(first: int, n: int, folder: Path, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what went wrong, and how to repeat it."""
    found = []
    for seed in range(first, first + n):
        try:
            check(seed, folder, caplog)
        except Exception as error:
            again = f"METATPE_FUZZ={seed} METATPE_FUZZ_CASES=1"
            found.append(f"{again}: {error!r:.300}")
            print(found[-1], flush=True)
            traceback.print_exc(file=sys.stdout)
        if (n_done := seed - first + 1) % 500 == 0:
            print(f"{n_done} cases, {len(found)} of them failed", flush=True)
    return found


def test_sixty_random_studies(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert failures(0, 60, tmp_path, caplog) == []


@pytest.mark.slow
def test_ten_thousand_random_studies(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # New cases in every run, unless a run is to be repeated.
    first = int(os.environ.get("METATPE_FUZZ", np.random.SeedSequence().generate_state(1)[0]))
    n = int(os.environ.get("METATPE_FUZZ_CASES", 10_000))
    print(f"METATPE_FUZZ={first} METATPE_FUZZ_CASES={n}")
    assert failures(first, n, tmp_path, caplog) == []
