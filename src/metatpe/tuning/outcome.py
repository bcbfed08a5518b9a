"""How an evaluation ended, on its way into the storage.

A worker writes the outcome to a file of this machine before it tells the storage, and removes the
file afterwards. If the storage stays unavailable, or the worker is killed, the file stays, and
the next run of `metatpe tune` reads it. A file belongs to the trial with its number that has the
same owner, so that it is not taken for one of a study with the same name in another storage.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from metatpe.past.read.storage import StorageError
from metatpe.tuning.claims import end
from metatpe.tuning.owner import Owner, is_alive, owners_of


@dataclass(frozen=True)
class Outcome:
    """How the evaluation of one trial ended."""

    study: str
    number: int
    owner: Owner
    state: str  # the name of a `TrialState`
    values: Any = None  # as the objective returned them
    attributes: Mapping[str, str] = field(default_factory=dict)  # user attributes of the trial

    def store(self, study: Study) -> bool:
        """Tell the outcome to the storage; return whether the trial had not ended before.

        Raises:
            ValueError: The values are not what the study needs.
            StorageError: The storage is unavailable for too long.
        """
        trial = study.get_trials(deepcopy=False)[self.number]
        if end(study, trial, TrialState[self.state], self.values, self.attributes):
            return True
        trial = study.get_trials(deepcopy=False)[self.number]
        if self.state != TrialState.COMPLETE.name or trial.state == TrialState.COMPLETE:
            return False
        study.add_trial(self._again(trial))  # it was taken for dead; its result counts nonetheless
        return True

    def is_of(self, study: Study) -> bool:
        """Return whether the study has the trial, and not one of the same number."""
        trials = study.get_trials(deepcopy=False)
        return self.number < len(trials) and self.owner in owners_of(trials[self.number])

    def _again(self, trial: FrozenTrial) -> FrozenTrial:
        return create_trial(
            values=_floats(self.values),
            params=trial.params,
            distributions=trial.distributions,
            user_attrs={k: v for k, v in trial.user_attrs.items() if not k.startswith("metatpe:")},
        )


def _floats(values: Any) -> list[float]:
    return [float(v) for v in (values if isinstance(values, list | tuple) else [values])]


# Files ---------------------------------------------------------------------------------------


def keep(outcome: Outcome) -> Path | None:
    """Write an outcome to a file; return where, or None if that is not possible."""
    try:
        values = None if outcome.values is None else _floats(outcome.values)
        text = json.dumps(asdict(outcome) | {"values": values})
    except (TypeError, ValueError, OverflowError):
        return None  # values that the study will refuse
    name = f"{_begin(outcome.study)}{outcome.number}-{outcome.owner.pid}.json"
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return _write(folder / name, text)
    return None


def _write(path: Path, text: str) -> Path:
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")  # and closed: Windows moves no open file
    part.replace(path)  # first, because a worker is killed more often than the power goes
    with path.open("r+") as file:
        os.fsync(file.fileno())
    return path


def restore(study: Study) -> list[int]:
    """Store what earlier workers could not; return the numbers of those trials.

    Raises:
        StorageError: The storage is unavailable for too long.
    """
    restored = []
    for path, outcome in _kept(study.study_name):
        if is_alive(outcome.owner) or not outcome.is_of(study):
            continue
        try:
            if outcome.store(study):
                restored.append(outcome.number)
        except StorageError:
            raise
        except ValueError:
            pass  # the study does not take these values; the trial is one that never ended
        forget(path)
    return restored


def forget(path: Path | None) -> None:
    """Remove the file of an outcome that the storage has, or that nobody needs any more."""
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _kept(study: str) -> Iterator[tuple[Path, Outcome]]:
    for folder in _folders():
        for path in sorted(folder.glob(f"{_begin(study)}*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError):
                given = json.loads(path.read_text(encoding="utf-8"))
                yield path, Outcome(**given | {"owner": Owner(**given["owner"])})


def _begin(study: str) -> str:
    """Return how the names of the files of a study begin; a study's name may hold anything."""
    return hashlib.sha256(study.encode("utf-8", "surrogatepass")).hexdigest()[:16] + "-"


def _folders() -> list[Path]:
    """Return where files are looked for; they are written to the first that can be written."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return [
        Path(state) / "metatpe" / "results",
        Path(tempfile.gettempdir()) / f"metatpe-results-{user}",
    ]
