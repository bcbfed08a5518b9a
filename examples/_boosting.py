"""The problem of the examples about batches and workers: fit and size of gradient boosting.

The past studies are Friedman's three regression problems, and the new one is scikit-learn's
diabetes dataset. R² is maximised, and the size of the model in kB is minimised. Both depend only
on the parameters, so workers that share a processor measure the same values.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import FloatDistribution, IntDistribution
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import train_test_split

DIRECTIONS = ["maximize", "minimize"]
SPACE = {
    "n_estimators": IntDistribution(10, 200, log=True),
    "learning_rate": FloatDistribution(0.01, 1.0, log=True),
    "max_depth": IntDistribution(1, 8),
    "min_samples_leaf": IntDistribution(1, 50, log=True),
    "subsample": FloatDistribution(0.3, 1.0),
}
PAST = {
    "friedman-1": lambda: make_friedman1(400, noise=1.0, random_state=0),
    "friedman-2": lambda: make_friedman2(400, noise=100.0, random_state=0),
    "friedman-3": lambda: make_friedman3(400, noise=0.1, random_state=0),
}


def evaluate(params: Mapping[str, Any], dataset: str = "diabetes") -> tuple[float, float]:
    """Train a model; return R² of held-out data and the size in kB."""
    X, y = PAST[dataset]() if dataset in PAST else load_diabetes(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
    model = GradientBoostingRegressor(**params, random_state=0).fit(X_train, y_train)
    return float(model.score(X_test, y_test)), len(pickle.dumps(model)) / 1000


def store_past_studies(storage: str, n_trials: int) -> None:
    """Store a study of random trials of each past dataset, as far as it is not there."""
    for name in PAST:
        study = optuna.create_study(
            study_name=name,
            storage=storage,
            directions=DIRECTIONS,
            sampler=optuna.samplers.RandomSampler(seed=0),
            load_if_exists=True,
        )
        for _ in range(n_trials - len(study.trials)):
            trial = study.ask(SPACE)
            study.tell(trial, evaluate(trial.params, name))
