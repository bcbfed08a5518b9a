"""Random studies against all samplers, the readers of tasks, and the report."""

from __future__ import annotations

import logging
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from fuzzing import Case, random_case
from optuna.distributions import BaseDistribution

from metatpe import Task
from metatpe.html import table
from metatpe.report import markdown_report, note

# Line feeds and tabs belong to a document.
HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def check_suggestions(case: Case) -> None:
    for _ in range(2):
        trial = case.study.ask()
        for name, distribution in case.space.items():
            value = trial._suggest(name, distribution)
            assert is_in(value, distribution), (name, value, distribution)
        case.study.tell(trial, [float(len(trial.params))] * len(case.study.directions))


def is_in(value: object, distribution: BaseDistribution) -> bool:
    return bool(distribution._contains(distribution.to_internal_repr(value)))


def check_readers(case: Case, folder: Path) -> str:
    """Read the study in all ways; return what was said about it."""
    task = Task.from_study(case.study)
    task.save(folder / "task")
    again = Task.load(folder / "task")
    np.testing.assert_array_equal(again.X, task.X)
    assert repr(again.configurations(range(len(again)))) == repr(
        task.configurations(range(len(task)))
    )
    rows = {
        "\x1b x": np.arange(len(task)),
        "kind": ["\x9b a", "b"] * len(task),
        "error": task.losses[:, 0].clip(-1e9, 1e9),
    }
    rows["kind"] = rows["kind"][: len(task)]
    read = Task.from_dataframe(rows, objectives="error", name=task.name)
    assert len(read) == len(task)
    about = [task.describe(), read.describe(), repr(case.study.sampler), repr(task)]
    return "\n".join([*about, table(task.name, [], ()), case.study.sampler._repr_html_()])


def check(seed: int, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Fail if one case crashes, warns, leaves its space, or writes a control character."""
    caplog.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Optuna's own words about what we ask of it.
        warnings.filterwarnings("ignore", module=r"optuna\..*")
        warnings.filterwarnings("ignore", category=UserWarning, message=".*(step|metric|Choices)")
        warnings.filterwarnings("ignore", message=".*experimental")
        case = random_case(np.random.default_rng(seed))
        check_suggestions(case)
        text = check_readers(case, folder)
        text += markdown_report(case.study, case.past) + note(case.study, case.past)
    assert not HIDDEN.search(text), HIDDEN.findall(text)
    for record in caplog.records:
        if record.name.startswith("metatpe"):
            assert not HIDDEN.search(record.getMessage())


def run(first: int, n: int, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="metatpe")
    for seed in range(first, first + n):
        try:
            check(seed, folder, caplog)
        except BaseException:
            print(f"case {seed}: METATPE_FUZZ={seed} METATPE_FUZZ_CASES=1 repeats it")
            raise


def test_a_hundred_random_studies(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(0, 100, tmp_path, caplog)


@pytest.mark.slow
def test_ten_thousand_random_studies(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # New cases in every run, unless a run is to be repeated.
    first = int(os.environ.get("METATPE_FUZZ", np.random.SeedSequence().generate_state(1)[0]))
    n = int(os.environ.get("METATPE_FUZZ_CASES", 10_000))
    print(f"METATPE_FUZZ={first} METATPE_FUZZ_CASES={n}")
    run(first, n, tmp_path, caplog)
