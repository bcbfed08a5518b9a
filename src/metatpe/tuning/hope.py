"""Whether a run has a chance: not if its first trials all fail with the same message."""

from __future__ import annotations

from optuna.trial import FrozenTrial, TrialState

from metatpe.tuning.worker import ERROR, OUTPUT

_N_ALIKE = 3


class HopelessError(ValueError):
    """The first trials failed in the same way.

    Attributes:
        output: The end of what the last of them printed.
    """

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


def _correction(error: str) -> str:
    """Return what to do about an error."""
    if "did not match the number of the objectives" in error:  # as Optuna says it
        return "give --direction once per value that the objective returns"
    return "correct this"


class FirstTrials:
    """The trials of a run, as long as they fail in the same way."""

    def __init__(self) -> None:
        self._errors: list[str] | None = []  # None: there was something else

    def add(self, trial: FrozenTrial) -> None:
        """Take note of a trial that has ended.

        Raises:
            HopelessError: It is the third, and all have failed with the same message.
        """
        if self._errors is None:
            return
        self._errors.append(str(trial.user_attrs.get(ERROR, "no message")))
        if trial.state != TrialState.FAIL or len(set(self._errors)) > 1:
            self._errors = None
        elif len(self._errors) == _N_ALIKE:
            raise HopelessError(
                f"the first {_N_ALIKE} trials failed in the same way: "
                f"{self._errors[0].rstrip('.')}; {_correction(self._errors[0])}, or continue with "
                "--keep-going.",
                trial.user_attrs.get(OUTPUT, ""),
            )
