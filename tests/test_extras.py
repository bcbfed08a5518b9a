"""How to install an extra, for every way in which metatpe may have been installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from metatpe.extras import command_for

URL = "https://example.org/metatpe"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "a copy"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    return folder


def test_from_an_index_the_name_is_enough() -> None:
    assert command_for({}, "viz") == "pip install 'metatpe[viz]'"


def test_from_a_copy_the_folder_is_named(copy: Path) -> None:
    origin = {"url": copy.as_uri(), "dir_info": {}}
    assert command_for(origin, "viz") == f"pip install '{copy}[viz]'"


def test_in_the_folder_of_the_copy_a_dot_is_enough(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy)
    origin = {"url": copy.as_uri(), "dir_info": {}}
    assert command_for(origin, "viz") == "pip install '.[viz]'"


def test_an_editable_copy_stays_editable(copy: Path) -> None:
    origin = {"url": copy.as_uri(), "dir_info": {"editable": True}}
    assert command_for(origin, "gp") == f"pip install --editable '{copy}[gp]'"


def test_a_copy_that_is_gone_is_not_named(tmp_path: Path) -> None:
    origin = {"url": (tmp_path / "gone").as_uri(), "dir_info": {}}
    assert command_for(origin, "viz") == "pip install 'metatpe[viz]'"


def test_from_a_repository_or_a_file_the_address_is_named() -> None:
    git = {"url": URL, "vcs_info": {"vcs": "git", "commit_id": "0" * 40}}
    assert command_for(git, "viz") == f"pip install 'metatpe[viz] @ git+{URL}'"
    wheel = {"url": f"{URL}.whl", "archive_info": {}}
    assert command_for(wheel, "viz") == f"pip install 'metatpe[viz] @ {URL}.whl'"


def test_a_copy_on_the_path_that_was_not_installed_is_named(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    code = (
        "import sys; from importlib import metadata\n"
        f"sys.path.insert(0, {str(root / 'src')!r})\n"
        "def missing(name): raise metadata.PackageNotFoundError(name)\n"
        "metadata.distribution = missing\n"
        "from metatpe.extras import install_command; print(install_command('viz'))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == f"pip install --editable '{root}[viz]'"
