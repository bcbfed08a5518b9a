"""What the Tab key offers besides commands and options: the names of studies.

A shell runs the command for each press of the key, so nothing here may fail, print, wait for a
file that is not there, or create one.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import warnings
from collections.abc import MutableMapping

import typer

_HOW, _WORDS, _AT = "_METATPE_COMPLETE", "COMP_WORDS", "COMP_CWORD"
_PLAIN = re.compile(r"[\w@%+=:,./-]")  # what a shell leaves alone


def complete_study(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the studies of `--storage` that begin like this; none without a storage."""
    storage = ctx.params.get("storage")
    if not storage or "file:" in storage:  # SQLite creates the file of such a URL
        return []
    with (
        contextlib.suppress(Exception),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        names = [n for n in _stored(storage) if n.isprintable() and n.startswith(incomplete)]
        return [_escaped(n) for n in names] if os.environ.get(_HOW) == "complete_bash" else names
    return []


def _stored(storage: str) -> list[str]:
    import optuna

    from metatpe.past.read.storage import open_storage

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    return optuna.get_all_study_names(open_storage(storage))


def _escaped(name: str) -> str:
    r"""Return a name as it is typed in bash, which inserts what it is given: a\ b for "a b"."""
    return "".join(c if _PLAIN.match(c) else f"\\{c}" for c in name)


def mend_words(environment: MutableMapping[str, str]) -> None:
    """Join the words that bash has split, before the one that is to be completed.

    Bash splits words at colons and equals signs: `--storage sqlite:///a.db` is four words. They
    arrive one per line.
    """
    if environment.get(_HOW) != "complete_bash":
        return
    words = environment.get(_WORDS, "").split("\n")
    at = environment.get(_AT, "")
    if not at.isdigit() or int(at) >= len(words):
        return
    *typed, current = words[: int(at) + 1]
    joined: list[str] = []
    is_open = False  # whether the next word belongs to the last one
    for word in typed:
        if word == "=" and joined and joined[-1].startswith("--"):
            continue  # --study=new is --study new
        if joined and (is_open or word == ":"):
            joined[-1] += word
            is_open = word == ":"
        else:
            joined.append(word)
    environment[_WORDS] = "\n".join([*joined, current])
    environment[_AT] = str(len(joined))
