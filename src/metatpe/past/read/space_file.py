"""Search spaces in text files.

Either one parameter per line, as `metatpe import --param` and the placeholders of `metatpe tune`
have them,

    lr:log:1e-5:1e-1
    layers:int:1:8
    act:relu|tanh

or JSON, an object of distributions as Optuna and `metatpe tasks --json` write them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from optuna.distributions import BaseDistribution, json_to_distribution

from metatpe.past.read.infer import parse_parameter
from metatpe.space import Space
from metatpe.text import on_one_line, visible


def read_space(path: Path) -> Space:
    """Return the search space of a file.

    Raises:
        ValueError: It has no parameters, or one that cannot be read.
    """
    if path.suffix == ".py":
        raise ValueError(f"{path} is Python; name the objective in it: {path}:objective.")
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file.") from None
    found = _from_json(path, text) if text.lstrip().startswith("{") else _from_lines(path, text)
    if not found:
        raise ValueError(f"{path} has no parameter; write one per line, as in lr:log:1e-5:1e-1.")
    return Space(found)


def _from_lines(path: Path, text: str) -> dict[str, BaseDistribution]:
    found: dict[str, BaseDistribution] = {}
    for i, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not line or line.startswith("#"):
            continue
        try:
            name, distribution = parse_parameter(line)
        except ValueError as error:
            raise ValueError(visible(f"{path}, line {i}: {error}")) from None
        if not isinstance(distribution, BaseDistribution):
            example = f"{on_one_line(name)}:float:0:1"
            raise ValueError(f"{path}, line {i}: {line!r} has no range; write {example}.")
        found[name] = distribution
    return found


def _from_json(path: Path, text: str) -> dict[str, BaseDistribution]:
    try:
        entries: dict[str, Any] = json.loads(text)
        return {name: json_to_distribution(json.dumps(one)) for name, one in entries.items()}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is not an object of Optuna's distributions ({type(error).__name__}: {error})."
        ) from None
