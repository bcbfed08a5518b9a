"""A new problem tuned with a past study of a similar one, loaded through OptunaHub.

From the registry: `optunahub.load_module(package="samplers/metatpe")`. Here the module is loaded
from the folder that this file is in.
"""

from __future__ import annotations

from pathlib import Path

import optuna
import optunahub

module = optunahub.load_local_module(
    package="samplers/metatpe", registry_root=str(Path(__file__).parents[2])
)


def objective(trial: optuna.Trial, best_lr: float = 1e-3) -> tuple[float, float]:
    """Return an error and a cost."""
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    depth = trial.suggest_int("depth", 1, 8)
    return (lr / best_lr - 1) ** 2 + 1 / depth, float(depth)


optuna.logging.set_verbosity(optuna.logging.WARNING)
past = optuna.create_study(
    study_name="past",
    directions=["minimize", "minimize"],
    sampler=optuna.samplers.RandomSampler(seed=0),
)
past.optimize(lambda trial: objective(trial, best_lr=2e-3), n_trials=50)

study = optuna.create_study(
    directions=["minimize", "minimize"], sampler=module.TransferSampler([past], seed=0)
)
study.optimize(objective, n_trials=30)
for record in module.transfer_history(study):
    print(record.number, study.trials[record.number].values, record.origin, record.weights)
