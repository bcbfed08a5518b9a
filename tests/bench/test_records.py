"""Records: written whole, read as they were written, and never taken for what they are not."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from metatpe.bench.compact import read_results, write_compact
from metatpe.bench.plan import Run
from metatpe.bench.records import (
    MARKER,
    Corrupt,
    Evaluation,
    Record,
    VersionError,
    path_of,
    prepare,
    read_finished,
    read_record,
    read_records,
    write_record,
)

RUN = Run("nmt/so-en", "random", 3, n_evaluations=2)
RECORD = Record(
    run=RUN,
    directions=("maximize", "minimize"),
    evaluations=(
        Evaluation({"bpe": 2, "kind": "a"}, (1 / 3, 1e-7 / 3), "random", {}, 0.25),
        Evaluation({"bpe": 0, "kind": None}, (0.0, 2e9 / 3), "acquisition", {"a": 2 / 3}, 0.5),
    ),
    n_evaluated=2,
    versions={"numpy": "2.0"},
    data="abc",
)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_record(write_record(tmp_path, RECORD)) == RECORD


def test_a_failed_run_keeps_its_error(tmp_path: Path) -> None:
    failed = Record(RUN, error="ValueError: no")
    assert read_record(write_record(tmp_path, failed)) == failed


def test_the_same_record_makes_the_same_file(tmp_path: Path) -> None:
    files = [write_record(tmp_path / name, RECORD) for name in "ab"]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_path_tells_problem_method_and_seed(tmp_path: Path) -> None:
    path = path_of(tmp_path, RUN).relative_to(tmp_path)
    assert str(path.parent) == os.path.join("nmt_so-en", "random")
    assert path.name == f"0003-{RUN.key}.json.gz"


def test_a_trace_has_values_weights_and_the_time_of_all_suggestions() -> None:
    trace = RECORD.trace
    np.testing.assert_array_equal(trace.values, [[1 / 3, 1e-7 / 3], [0.0, 2e9 / 3]])
    np.testing.assert_array_equal(trace.weights["a"], [np.nan, 2 / 3])
    assert trace.seconds == 0.75


def test_corrupt_files_are_named_and_skipped(tmp_path: Path) -> None:
    prepare(tmp_path)
    whole = write_record(tmp_path, RECORD).read_bytes()
    broken = {
        "half": whole[: len(whole) // 2],
        "empty": b"",
        "text": b"no record",
        "list": gzip.compress(b"[]"),
        "other": gzip.compress(b'{"schema": 1, "run": {}}'),
        "json": gzip.compress(b"{"),
        "flipped": whole[:60] + bytes([whole[60] ^ 255]) + whole[61:],
    }
    for i, (name, content) in enumerate(broken.items(), 1):
        (path_of(tmp_path, RUN).parent / f"000{i}-{name}.json.gz").write_bytes(content)
    read = list(read_records(tmp_path))
    corrupt = [entry for entry in read if isinstance(entry, Corrupt)]
    assert [entry for entry in read if isinstance(entry, Record)] == [RECORD]
    assert [entry.path.name.split("-")[1].split(".")[0] for entry in corrupt] == list(broken)
    assert f"{corrupt[0].path} is corrupt and was skipped (EOFError" in str(corrupt[0])
    assert len(read_results(tmp_path).corrupt) == len(broken)


def test_results_of_another_version_are_refused_with_the_reason(tmp_path: Path) -> None:
    prepare(tmp_path)
    path = write_record(tmp_path, RECORD)
    (tmp_path / MARKER).write_text('{"schema": 0}')
    for refused in (prepare, read_results, lambda folder: list(read_records(folder))):
        with pytest.raises(VersionError, match=r"was written in version 0 .* this is version 1; "):
            refused(tmp_path)
    (tmp_path / MARKER).write_text("what?")
    with pytest.raises(VersionError, match="is not readable, so the version of the results"):
        prepare(tmp_path)
    entries = json.loads(gzip.decompress(path.read_bytes()))
    path.write_bytes(gzip.compress(json.dumps({**entries, "schema": 2}).encode()))
    with pytest.raises(VersionError, match=f"{path.name} was written in version 2"):
        read_record(path)


def test_a_folder_may_hold_other_things_too(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    prepare(tmp_path)
    prepare(tmp_path)
    assert list(read_records(tmp_path)) == []


@pytest.mark.parametrize("name", ["nothing", "."])
def test_a_folder_without_results_is_answered_with_the_command(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match="metatpe bench run --problem hpolib"):
        read_results(tmp_path / name)


def test_failed_runs_do_not_count_as_finished(tmp_path: Path) -> None:
    other = replace(RUN, seed=4)
    write_record(tmp_path, RECORD)
    write_record(tmp_path, Record(other, error="no"))
    assert list(read_finished(tmp_path, [RUN, other, replace(RUN, seed=5)])) == [RECORD]


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from metatpe.bench.plan import Run
from metatpe.bench.records import Evaluation, Record, prepare, write_record

prepare(Path(sys.argv[1]))
evaluation = Evaluation({"x": 0.1}, (1.0,), "random", {}, 0.1)
for i in range(10**6):
    run = Run("ellipsoid4", "random", i % 3, n_evaluations=2000)
    record = Record(run, ("minimize",), (evaluation,) * 2000, n_evaluated=i)
    write_record(Path(sys.argv[1]), record)
"""


def test_a_writer_killed_at_any_moment_leaves_whole_records_only(tmp_path: Path) -> None:
    for attempt in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)])
        while len(list(tmp_path.glob("*/*/*.json.gz"))) < 3:
            assert writer.poll() is None
            time.sleep(0.01)
        time.sleep(0.007 * attempt)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        read = list(read_records(tmp_path))
        assert len(read) == 3
        assert all(isinstance(entry, Record) for entry in read)


def test_the_compact_form_keeps_seven_digits_and_three_of_the_weights(tmp_path: Path) -> None:
    (path,) = write_compact([RECORD.trace], tmp_path)
    (trace,) = read_results(tmp_path).traces
    assert path.name == "nmt_so-en.json.gz"
    assert trace.run == RUN
    assert trace.directions == RECORD.directions
    np.testing.assert_allclose(trace.values, RECORD.trace.values, rtol=1e-6)
    np.testing.assert_array_equal(trace.weights["a"], [np.nan, 0.667])
    assert trace.seconds == 0.75


def test_the_compact_form_rounds_to_the_worse_side(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    evaluations = tuple(
        Evaluation({}, tuple(rng.random(2) * 10.0 ** rng.integers(-8, 8)), "random", {}, 0.0)
        for _ in range(200)
    )
    trace = replace(RECORD, evaluations=evaluations).trace
    write_compact([trace], tmp_path)
    (compact,) = read_results(tmp_path).traces
    assert (compact.values[:, 0] <= trace.values[:, 0]).all()  # maximised
    assert (compact.values[:, 1] >= trace.values[:, 1]).all()
    write_compact([compact], tmp_path / "again")
    again = read_results(tmp_path / "again").traces[0].values
    np.testing.assert_array_equal(again, compact.values)


def test_the_compact_form_of_the_same_results_is_the_same_file(tmp_path: Path) -> None:
    traces = [replace(RECORD, run=replace(RUN, seed=seed)).trace for seed in range(5)]
    paths = [
        write_compact(order, tmp_path / name)[0]
        for name, order in (("a", traces), ("b", traces[::-1]))
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_corrupt_compact_file_is_named(tmp_path: Path) -> None:
    (path,) = write_compact([RECORD.trace], tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    assert [entry.path for entry in read_results(tmp_path).corrupt] == [path]
