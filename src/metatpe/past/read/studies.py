"""Studies as past tasks: which of them can help, and why others cannot."""

from __future__ import annotations

import difflib
import fnmatch
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study

from metatpe.past.read.storage import StorageName, open_storage, plain_errors, study_errors
from metatpe.past.task import Task, own_names
from metatpe.space import Space
from metatpe.study.record import REST, TARGET
from metatpe.study.trials import n_usable, used_distributions
from metatpe.words import counted

_logger = logging.getLogger(__name__)
_N_NAMED = 5  # studies in a sentence about a name that none has


def load_tasks(
    storage: StorageName,
    names: str | Sequence[str] = "*",
    *,
    like: Study | str | Space | Mapping[str, BaseDistribution] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> list[Task]:
    """Read past studies from an Optuna storage.

    Args:
        storage: A storage URL such as ``"sqlite:///studies.db"``, ``"grpc://host:port"`` for
            Optuna's proxy, the path of a journal file, or a storage object.
        names: A study's name, a pattern such as ``"resnet-*"``, or several of them.
        like: The new study, its name in the storage, or its search space. Only tasks that can
            help it are kept: with as many objectives (and the same `metric_names`, where both
            have them), and with a parameter that the new study has used, if it has used any yet.
            The new study itself is never among them. Of a search space, only the parameters are
            compared.
        defaults: Parameters that past studies had fixed, and the value that each had; see
            `Task.with_defaults`.

    Returns:
        One task per study, in the order of the names. Studies with fewer than two finished
        trials, and those that do not fit `like`, are left out; a warning is logged for each.

    Raises:
        ValueError: A name fits no study (the message lists the close ones), or the storage is
            down, locked or damaged.

    Example:
        >>> load_tasks("sqlite:///studies.db", "resnet-*")
        [Task('resnet-18', ...), Task('resnet-50', ...)]
    """
    opened = open_storage(storage)  # once for all studies
    new = target_of(opened, like)
    tasks = []
    for name in study_names(opened, names):
        with study_errors(opened, name):
            study = optuna.load_study(study_name=name, storage=opened)
            reason = why_not(study, new)
            task = None if reason else Task.from_study(study).with_defaults(defaults or {})
        if task is not None and new is not None:
            reason = why_not_task(task, new)
        if reason:
            _logger.warning("study %r is left out: %s", name, reason)
        elif task is not None:
            tasks.append(task)
    return tasks


def target_of(
    storage: BaseStorage, like: Study | str | Space | Mapping[str, BaseDistribution] | None
) -> Study | Space | None:
    """Return the new study or its search space, however it was given.

    Raises:
        ValueError: It is something else, or the storage has no study with this name.
    """
    if like is None or isinstance(like, Study | Space):
        return like
    if isinstance(like, Mapping):
        return Space(like)
    if not isinstance(like, str):
        raise ValueError(
            f"like must be a study, the name of one, or a search space, but is {like!r}."
        )
    with plain_errors(storage):
        stored = optuna.study.get_all_study_names(storage)
    if like not in stored:
        raise ValueError(
            f"like={like!r}: {no_study(like, stored).rstrip('.')}. Give the new study itself, its "
            "search space as a dictionary of distributions, or leave `like` out."
        )
    with study_errors(storage, like):
        return optuna.load_study(study_name=like, storage=storage)


def as_tasks(sources: Sequence[Study | Task]) -> list[Task]:
    """Return the sources as tasks with names of their own, without those that are empty."""
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        raise ValueError(
            f"sources must be a list of studies or tasks, but is {_shown(sources)}; "
            "write [study], or load_tasks(url) for those of a storage."
        )
    tasks: list[Task] = []
    for source in sources:
        if isinstance(source, Study) and not n_usable(source):
            _logger.warning(
                "source %r is skipped: it has no finished trial with a parameter.",
                source.study_name,
            )
            continue
        if not isinstance(source, Study | Task):
            raise ValueError(f"a source must be a Study or a Task, but is {_shown(source)}.")
        task = Task.from_study(source) if isinstance(source, Study) else source
        if len(task) < 2:
            raise ValueError(
                f"source {task.name!r} has one observation, but at least two are needed to tell "
                "good from bad; leave it out."
            )
        tasks.append(task)
    names = own_names([task.name for task in tasks], (TARGET, REST))
    return [t if t.name == n else replace(t, name=n) for t, n in zip(tasks, names, strict=True)]


def _shown(value: Any) -> str:
    """Return a value for a message; a string may be a URL with a password in it."""
    return "a string" if isinstance(value, str) else repr(value)


def study_names(storage: BaseStorage, names: str | Sequence[str]) -> list[str]:
    """Return the names of the stored studies that fit a name, a pattern, or several.

    Raises:
        ValueError: One of them fits no study.
    """
    with plain_errors(storage):
        stored = optuna.study.get_all_study_names(storage)
    found: dict[str, None] = {}  # each once, sorted within a pattern
    for pattern in [names] if isinstance(names, str) else names:
        hits = [pattern] if pattern in stored else fnmatch.filter(sorted(stored), pattern)
        if not hits:
            raise ValueError(no_study(pattern, stored))
        found.update(dict.fromkeys(hits))
    return list(found)


def no_study(name: str, stored: Sequence[str]) -> str:
    """Return a sentence about a name that no study has: which are close, or which there are."""
    if close := difflib.get_close_matches(name, stored, n=3):
        return f"no study is called {name!r}; similar names are {close}."
    if not stored:
        return f"no study is called {name!r}; the storage has no study."
    more = f" and {len(stored) - _N_NAMED} more" if len(stored) > _N_NAMED else ""
    return f"no study is called {name!r}; the storage has {sorted(stored)[:_N_NAMED]}{more}."


def why_not(study: Study, like: Study | Space | None = None) -> str:
    """Return why a study cannot be a past one (for another study); empty where it can."""
    if (n := n_usable(study)) < 2:
        return f"it has {counted(n, 'finished trial')} with a parameter."
    if not isinstance(like, Study):
        return ""  # the parameters are compared later, see `why_not_task`
    if _is_same(study, like):
        return "it is the new study itself."
    if (n := len(study.directions)) != len(like.directions):
        return f"it has {counted(n, 'objective')}, but the new study has {len(like.directions)}."
    if study.metric_names and like.metric_names and study.metric_names != like.metric_names:
        return f"its objectives are {study.metric_names}, and not {like.metric_names}."
    return ""


def why_not_task(task: Task, like: Study | Space) -> str:
    """Return why the parameters of a task cannot help a study; empty where they can."""
    used = space_of(like).names
    if used and not {*used} & {*task.space.names}:
        return "it has no parameter in common with the new study."
    return ""


def space_of(like: Study | Space | None) -> Space:
    """Return the parameters that a study has used, or those of a search space."""
    if isinstance(like, Study):
        return Space(used_distributions(like.get_trials(deepcopy=False)))
    return like or Space({})


def _is_same(study: Study, other: Study) -> bool:
    """Return whether two studies are one, or a copy: by the name, and when their trials began.

    One storage may have many addresses, so these say nothing.
    """
    began, others = ({t.datetime_start for t in s.get_trials(False)} for s in (study, other))
    return study.study_name == other.study_name and bool(began & others - {None})
