"""The parameters of an objective, found by calling it.

An objective says what its parameters are only while it runs. So a process of its own calls it with
random values, sends each parameter as it is asked for, and is ended when no new one has come for a
while: the objective need not finish. It is called several times where it is fast, to see more than
one branch of a conditional space. Nothing is stored, and what it prints is dropped.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from metatpe.tuning.objective import Function, Output

SECONDS = 5.0  # without a new parameter, after which there is none
_N_CALLS = 20


def parameters_of(function: Function, seconds: float = SECONDS) -> dict[str, BaseDistribution]:
    """Call an objective and return the parameters that it asks for.

    Args:
        function: The objective.
        seconds: How long to wait for the next parameter.

    Raises:
        ValueError: It does not import, fails, or asks for none.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_probe, args=(theirs, function), daemon=True)
    process.start()
    theirs.close()
    try:
        found, error = _collect(ours, seconds)
    finally:
        process.kill()
        process.join()
    if not found:
        reason = error or f"it did not within {seconds:g} s"
        raise ValueError(f"{function.where}:{function.name} asked for no parameter: {reason}.")
    return found


def _collect(connection: Connection, seconds: float) -> tuple[dict[str, BaseDistribution], str]:
    """Return what is asked for until nothing new comes, and the last error."""
    found: dict[str, BaseDistribution] = {}
    error = ""
    if not isinstance(loaded := _received(connection, None), str):
        return found, "importing it ended the process"
    if loaded:
        raise ValueError(loaded)
    until = time.monotonic() + seconds
    while (message := _received(connection, until - time.monotonic())) is not None:
        if isinstance(message, str):
            error = message.rstrip(".")
            continue
        name, distribution = message
        if name not in found:
            until = time.monotonic() + seconds
        found[name] = distribution
    return found, error


def _received(connection: Connection, seconds: float | None) -> Any:
    """Return the next message; None where there is none in time, or no more."""
    if seconds is not None and not connection.poll(max(0.0, seconds)):
        return None
    try:
        return connection.recv()
    except EOFError:
        return None


class _Telling(RandomSampler):
    """Sends each parameter that is asked for."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(seed=0)
        self._connection = connection

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        self._connection.send((param_name, param_distribution))
        return super().sample_independent(study, trial, param_name, param_distribution)


def _probe(connection: Connection, function: Function) -> None:
    """Call the objective several times: the work of the process."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    nowhere = Path(os.devnull)
    with nowhere.open("w") as dropped:
        os.dup2(dropped.fileno(), 1)
        os.dup2(dropped.fileno(), 2)
    try:
        function.load()
    except ValueError as error:
        connection.send(str(error))
        return
    connection.send("")
    study = optuna.create_study(sampler=_Telling(connection))
    for _ in range(_N_CALLS):
        trial = study.ask()
        try:
            function.evaluate(trial, Output(nowhere, nowhere), None)
        except Exception as error:
            connection.send(f"{type(error).__name__}: {error}")
        for item in trial.distributions.items():  # those with one value need no sampler
            connection.send(item)
