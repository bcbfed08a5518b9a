"""The package for OptunaHub loads as the registry loads it, and has what the registry wants."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import optuna
import pytest
import yaml
from studies import past_study

import metatpe

optunahub = pytest.importorskip("optunahub")

ROOT = Path(__file__).parents[1]
REGISTRY = ROOT / "optunahub"
PACKAGE = REGISTRY / "samplers" / "metatpe"


def front_matter() -> dict[str, object]:
    _, header, body = (PACKAGE / "README.md").read_text().split("---\n", maxsplit=2)
    assert body.strip()
    return dict(yaml.safe_load(header))


@pytest.mark.parametrize("name", ["TransferSampler", "MetaTPESampler"])
def test_the_module_is_loaded_and_tunes_with_a_past(name: str) -> None:
    module = optunahub.load_local_module("samplers/metatpe", registry_root=str(REGISTRY))
    sampler = getattr(module, name)
    assert sampler is getattr(metatpe, name)
    study = optuna.create_study(
        directions=["minimize", "minimize"], sampler=sampler([past_study()], seed=0)
    )
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0.0), n_trials=3)
    assert {record.origin for record in module.transfer_history(study)} == {"warm_start"}


def test_the_front_matter_has_every_field_that_the_registry_wants() -> None:
    header = front_matter()
    assert set(header) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    tags, versions = header["tags"], header["optuna_versions"]
    assert isinstance(tags, list)
    assert isinstance(versions, list)
    assert tags[0] == "sampler"
    assert all(isinstance(entry, str) for entry in [*tags, *versions])
    assert header["license"] == "MIT License"
    assert (PACKAGE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_it_names_the_version_of_optuna_that_the_tests_run_with() -> None:
    assert optuna.__version__ in str(front_matter()["optuna_versions"])


def test_its_example_runs_as_it_is() -> None:
    result = subprocess.run(
        [sys.executable, str(PACKAGE / "example.py")], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 30
    assert "warm_start" in lines[0]


@pytest.mark.slow
def test_its_own_tests_pass() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(PACKAGE)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stdout
