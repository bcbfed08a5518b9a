"""Where tables that belong to others, and are not part of the package, are looked for."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def data_folders(name: str) -> tuple[Path, ...]:
    """Return the folders of the data called `name`, in the order in which they are searched."""
    given = os.environ.get("METATPE_DATA")
    roots = ([Path(given).expanduser()] if given else []) + [_cache_folder() / "metatpe"]
    return tuple(root / name for root in roots)


def find_file(folders: tuple[Path, ...], *names: str) -> Path | None:
    """Return the first file of one of these names; None where there is none."""
    paths = (folder / name for folder in folders for name in names)
    return next((path for path in paths if path.is_file()), None)


def _cache_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
