"""The README's Python is run as it stands, one block after the other."""

from __future__ import annotations

import re
from pathlib import Path

import optuna
import pytest

README = Path(__file__).parents[1] / "README.md"


def store_past_studies(url: str) -> None:
    for name in ("resnet-18", "resnet-50"):
        study = optuna.create_study(
            study_name=name,
            storage=url,
            directions=["minimize", "minimize"],
            sampler=optuna.samplers.RandomSampler(seed=0),
        )
        for _ in range(8):
            trial = study.ask()
            lr, depth = (
                trial.suggest_float("lr", 1e-5, 1e-1, log=True),
                trial.suggest_int("depth", 1, 8),
            )
            study.tell(trial, [lr, depth])


def test_the_code_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    store_past_studies("sqlite:///studies.db")
    (tmp_path / "runs.csv").write_text("lr,depth,error,cost\n0.1,2,0.5,2\n0.001,4,0.3,4\n")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(block, namespace)
    printed = capsys.readouterr().out
    assert len(blocks) == 3
    assert "warm_start" in printed
    assert "resnet-18" in printed
    assert "Task('runs', 2 observations, 2 parameters, 2 objectives)" in printed
