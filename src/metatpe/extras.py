"""How to add an extra to metatpe, in the way in which it was installed.

pip keeps the origin of a package in `direct_url.json` (PEP 610); a package from an index has none.
"""

from __future__ import annotations

import json
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

_PACKAGE = "metatpe"


def install_command(extra: str) -> str:
    """Return the command that installs metatpe again with an extra.

    >>> install_command("viz")  # doctest: +SKIP
    "pip install 'metatpe[viz]'"
    """
    return command_for(_origin(), extra)


def require(what: str, extra: str, *modules: str) -> None:
    """Check that an extra is installed, without loading it.

    Raises:
        ImportError: One of its modules is missing; the message says how to install them.
    """
    if any(find_spec(module) is None for module in modules):
        raise ImportError(f"{what} needs: {install_command(extra)}")


def command_for(origin: dict[str, Any], extra: str) -> str:
    """Return that command for an origin as PEP 610 has it; empty: a package index."""
    url, wanted = origin.get("url", ""), f"{_PACKAGE}[{extra}]"
    if "dir_info" in origin:
        folder = Path(url2pathname(urlsplit(url).path))
        if not (folder / "pyproject.toml").is_file():  # the copy is gone
            return f"pip install '{wanted}'"
        here = "." if folder == Path.cwd() else folder
        editable = "--editable " if origin["dir_info"].get("editable") else ""
        return f"pip install {editable}'{here}[{extra}]'"
    if "vcs_info" in origin:
        return f"pip install '{wanted} @ {origin['vcs_info']['vcs']}+{url}'"
    return f"pip install '{wanted} @ {url}'" if url else f"pip install '{wanted}'"


def _origin() -> dict[str, Any]:
    """Return where metatpe came from."""
    try:
        stored = metadata.distribution(_PACKAGE).read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # a copy on the path that was not installed
        copy = Path(__file__).parents[2]
        return {"url": copy.as_uri(), "dir_info": {"editable": True}}
    origin: dict[str, Any] = json.loads(stored) if stored else {}
    return origin
