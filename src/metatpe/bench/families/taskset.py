"""TaskSet: the optimiser settings of twelve recurrent networks for text classification.

Objective: `loss`, the last of 51 validation losses, minimised. The space has eight continuous
parameters on a log scale; beta1 and beta2 are searched as 1 - beta, which is how they were drawn.
A configuration is evaluated at the nearest of the 1,000 settings that were trained, the same ones
for every task: by Euclidean distance in the unit cube, without a surrogate. So the objective is a
step function of its parameters. A training that diverged has the worst loss of its task.

The settings and losses are data of others (Metz et al., "Using a thousand optimization tasks to
learn hyperparameter search strategies", 2020) and are read from an npz file: `names` of the
settings, `configurations` (1000, 8), and for each task `<task>/valid` (1000, 51), the curves of
validation losses, NaN where training diverged.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution

from metatpe.bench import data
from metatpe.bench.problems import Floats, Params, Problem
from metatpe.space import Space

_PREFIX = "taskset/"
_TASKS = (
    *("patch128_LSTM128_avg_bs64", "patch128_LSTM128_bs64", "patch128_LSTM128_embed128_bs64"),
    *("patch32_GRU128_bs128", "patch32_GRU64_avg_bs128", "patch32_IRNN64_relu_avg_bs128"),
    *("patch32_IRNN64_relu_last_bs128", "patch32_LSTM128_E128_bs128", "patch32_LSTM128_bs128"),
    *("patch32_VRNN128_tanh_bs128", "patch32_VRNN64_relu_avg_bs128"),
    "patch32_VRNN64_tanh_avg_bs128",
)
NAMES = tuple(_PREFIX + task for task in _TASKS)

_FILE = "taskset.npz"
_RANGES = {
    "learning_rate": (1e-8, 1e1),
    "beta1": (1e-4, 1.0),  # 1 - beta1
    "beta2": (1e-6, 1.0),  # 1 - beta2
    "epsilon": (1e-10, 1e3),
    "l1": (1e-8, 1e1),
    "l2": (1e-8, 1e1),
    "linear_decay": (1e-7, 1e-4),
    "exponential_decay": (1e-6, 1e-3),
}
_COMPLEMENTS = ("beta1", "beta2")
SPACE: dict[str, BaseDistribution] = {
    f"one_minus_{name}" if name in _COMPLEMENTS else name: FloatDistribution(*bounds, log=True)
    for name, bounds in _RANGES.items()
}


def load(name: str) -> Problem:
    """Return one problem of the suite.

    Raises:
        FileNotFoundError: If the file is in none of the places where it is looked for.
        ValueError: If it is not a file of this suite.
    """
    losses = curves(name)[:, -1]
    finite = losses[np.isfinite(losses)]
    losses = np.where(np.isfinite(losses), losses, finite.max())
    return Problem(
        name=name,
        space=SPACE,
        directions=("minimize",),
        objective_names=("loss",),
        function=partial(_evaluate, losses),
        best=losses.min(keepdims=True),
        worst=losses.max(keepdims=True),
        log_objectives=(False,),
    )


def curves(name: str) -> Floats:  # (n, steps)
    """Return the validation losses of all settings of a problem, NaN where training diverged."""
    return _read(_find())[1][name.removeprefix(_PREFIX)]


def settings() -> Floats:  # (n, d)
    """Return the settings that were trained, in the unit cube of `SPACE`."""
    return _read(_find())[0]


def nearest(params: Params) -> int:
    """Return which of the settings that were trained is nearest to a configuration."""
    return int(np.argmin(((settings() - Space(SPACE).encode([params])) ** 2).sum(axis=1)))


def data_folders() -> tuple[Path, ...]:
    """Return where the file is looked for, in this order."""
    return data.data_folders("taskset")


def _evaluate(losses: Floats, params: Params, seed: int) -> tuple[float, ...]:
    return (float(losses[nearest(params)]),)


def _find() -> Path:
    folders = data_folders()
    if found := data.find_file(folders, _FILE):
        return found
    raise FileNotFoundError(
        f"the file {_FILE} of TaskSet is not in {' or '.join(map(str, folders))}. It holds "
        "data of Metz et al. (2020); the tasks were selected in "
        "https://github.com/machinelearningnuremberg/DyHPO. Write the arrays that the "
        f"documentation of metatpe.bench.families.taskset lists into {folders[-1] / _FILE}, or "
        "into a folder taskset and set METATPE_DATA to the folder above it."
    )


@cache  # the problems of the suite share the file
def _read(file: Path) -> tuple[Floats, dict[str, Floats]]:
    """Return the settings in the unit cube, (n, d), and the curves (n, steps) of each task."""
    try:
        with np.load(file, allow_pickle=False) as found:
            settings = dict(zip(found["names"].tolist(), found["configurations"].T, strict=True))
            losses = {task: found[f"{task}/valid"].astype(np.float64) for task in _TASKS}
        columns = [1.0 - settings[n] if n in _COMPLEMENTS else settings[n] for n in _RANGES]
        rows = [dict(zip(SPACE, row, strict=True)) for row in np.stack(columns, axis=1).tolist()]
        X = Space(SPACE).encode(rows)
        if np.isnan(X).any() or any(len(own) != len(X) for own in losses.values()):
            raise ValueError("settings must be in their ranges, with a curve for each")
    except (ValueError, KeyError, OSError, EOFError, BadZipFile) as error:
        raise ValueError(
            f"{file} is not the file of TaskSet, download it again "
            f"({type(error).__name__}: {error})."
        ) from error
    return X, losses
