"""The README's Python is run as it stands, one block after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import ROOT, python_blocks, run, store_past

README = ROOT / "README.md"


def test_the_code_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    store_past(tmp_path)
    run(README)
    printed = capsys.readouterr().out
    assert len(python_blocks(README)) == 2
    assert re.search(r"\d+ configurations on the Pareto front", printed)
    assert "Task('runs', 2 observations, 2 parameters, 2 objectives)" in printed


def test_what_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", README.read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
