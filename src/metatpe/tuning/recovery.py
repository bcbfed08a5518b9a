"""What runs of `metatpe tune` left behind: results in files, and trials that nobody evaluates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optuna.study import Study

from metatpe.tuning.claims import abandoned, unfinished, withdraw
from metatpe.tuning.outcome import restore
from metatpe.tuning.owner import owners_of


def recover(study: Study, run: str, say: Callable[[str], None]) -> None:
    """Store results of other runs, and enqueue what their dead processes were evaluating.

    Args:
        study: The study.
        run: This run, whose own trials are left alone.
        say: Called with a line about what was done.
    """
    say_stored(restore(study), say)
    numbers = [t.number for t in abandoned(study, run) if withdraw(study, t)]
    if numbers:
        say(f"{_trials(numbers)}: the process has ended; marked as failed and enqueued again.")


def clear(study: Study, run: str, pid: int | None = None) -> list[int]:
    """Store results of a run whose workers have ended, and enqueue what they were evaluating.

    Args:
        study: The study.
        run: The run.
        pid: One of its processes, if the others have not ended.

    Returns:
        The numbers of the trials whose results were stored.
    """
    stored = restore(study)
    for trial in unfinished(study, run):
        if pid is None or any(owner.pid == pid for owner in owners_of(trial)):
            withdraw(study, trial)
    return stored


def say_stored(numbers: Sequence[int], say: Callable[[str], None]) -> None:
    """Say that results of earlier runs were stored, if there were any."""
    if numbers:
        say(f"{_trials(numbers)}: stored the result that was kept in a file.")


def _trials(numbers: Sequence[int]) -> str:
    """Return the numbers of trials in words, the first ten of them."""
    shown = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
    return f"trial {shown}" if len(numbers) == 1 else f"{len(numbers)} trials ({shown})"
