"""A conditional space: choose a model, and the parameters that only this model has.

    pip install metatpe scikit-learn
    python examples/conditional_space.py

The objective chooses between a support vector machine, nearest neighbours and a random forest, and
asks for the parameters of the chosen model. You do not have to declare anything: a parameter that
a trial did not use is missing in that trial, in past studies and in the new one. The past studies
are on three other datasets, and their choices did not include the forest. The one objective is
the error.
"""

from __future__ import annotations

import argparse

import optuna
from _gain import print_gain
from optuna.samplers import BaseSampler, RandomSampler
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from metatpe import TransferSampler, transfer_history

PAST = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}


def model_of(trial: optuna.Trial, kinds: list[str]) -> ClassifierMixin:
    """Return an untrained model; each kind asks for parameters of its own."""
    kind = trial.suggest_categorical("model", kinds)
    if kind == "svm":
        return SVC(
            C=trial.suggest_float("svm_C", 1e-3, 1e3, log=True),
            gamma=trial.suggest_float("svm_gamma", 1e-5, 1e1, log=True),
        )
    if kind == "neighbours":
        return KNeighborsClassifier(
            n_neighbors=trial.suggest_int("neighbours_k", 1, 50, log=True),
            weights=trial.suggest_categorical("neighbours_weights", ["uniform", "distance"]),
        )
    return RandomForestClassifier(
        n_estimators=20,
        max_depth=trial.suggest_int("forest_depth", 2, 16),
        max_features=trial.suggest_float("forest_features", 0.05, 1.0, log=True),
        random_state=0,
    )


class Objective:
    """The cross-validated error of the chosen model on one dataset."""

    def __init__(self, load, kinds: list[str]) -> None:
        self.X, self.y = load(return_X_y=True)
        self.kinds = kinds

    def __call__(self, trial: optuna.Trial) -> float:
        model = make_pipeline(StandardScaler(), model_of(trial, self.kinds))
        return 1.0 - cross_val_score(model, self.X, self.y, cv=3).mean()


def search(objective: Objective, n_trials: int, sampler: BaseSampler, name: str) -> optuna.Study:
    """Tune the choice of the model and its parameters."""
    study = optuna.create_study(study_name=name, sampler=sampler)
    study.optimize(objective, n_trials=n_trials)
    return study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20, help="of each new study")
    parser.add_argument("--past-trials", type=int, default=60, help="of each past study")
    parser.add_argument(
        "--seeds", type=int, default=3, help="searches with and without past studies"
    )
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    sources = []
    for name, load in PAST.items():
        print(f"past study: {name}, {args.past_trials} trials", flush=True)
        objective = Objective(load, ["svm", "neighbours"])
        sources.append(search(objective, args.past_trials, RandomSampler(seed=0), name))

    objective = Objective(load_digits, ["svm", "neighbours", "forest"])
    with_past, without = [], []
    for seed in range(args.seeds):
        print(f"new study: digits, seed {seed}, with and without past studies", flush=True)
        sampler = TransferSampler(sources, seed=seed)
        with_past.append(search(objective, args.trials, sampler, f"with {seed}"))
        sampler = TransferSampler(seed=seed)
        without.append(search(objective, args.trials, sampler, f"without {seed}"))

    print("\nthe first study with past studies, trial by trial:")
    for record in transfer_history(with_past[0]):
        trial = with_past[0].trials[record.number]
        print(f"  {record.number:2d}  {trial.value:.3f}  {record.origin:11s}  {trial.params}")
    print_gain(with_past, without)


if __name__ == "__main__":
    main()
