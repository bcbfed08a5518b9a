"""Constraints: the error and the prediction time of a random forest that has to be small.

    pip install metatpe scikit-learn
    python examples/constraints.py

A forest of more than 100 kB is infeasible. The objective sets this constraint with
`trial.set_constraint`; its value is 0 or less if the trial is feasible. Feasible trials rank ahead
of infeasible ones, in the new study and in past ones. Of two infeasible trials, the one that
exceeds the limit by less ranks first. The past studies are on three other datasets, whose forests
are nearly all small enough. The forests of the new dataset, the digits, are larger.
"""

from __future__ import annotations

import argparse
import pickle

import optuna
from _gain import print_gain
from _timing import prediction_time
from optuna.samplers import BaseSampler, RandomSampler
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from metatpe import TransferSampler

PAST = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
LIMIT = 100  # kB


class Objective:
    """The validation error and the microseconds per prediction on one dataset."""

    def __init__(self, load) -> None:
        X, y = load(return_X_y=True)
        self.parts = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)

    def __call__(self, trial: optuna.Trial) -> tuple[float, float]:
        model = RandomForestClassifier(
            n_estimators=trial.suggest_int("trees", 2, 100, log=True),
            max_depth=trial.suggest_int("depth", 2, 16),
            max_features=trial.suggest_float("features", 0.05, 1.0, log=True),
            min_samples_leaf=trial.suggest_int("leaf", 1, 16, log=True),
            criterion=trial.suggest_categorical("criterion", ["gini", "entropy"]),
            random_state=0,
        )
        X_train, X_test, y_train, y_test = self.parts
        model.fit(X_train, y_train)
        trial.set_constraint("size", len(pickle.dumps(model)) / 1000 - LIMIT)
        return 1.0 - model.score(X_test, y_test), prediction_time(model, X_test)


def search(objective: Objective, n_trials: int, sampler: BaseSampler, name: str) -> optuna.Study:
    """Tune the forest."""
    study = optuna.create_study(
        study_name=name,
        directions=["minimize", "minimize"],
        sampler=sampler,
    )
    study.optimize(objective, n_trials=n_trials)
    return study


def n_feasible(study: optuna.Study) -> int:
    return sum(trial.constraints["size"] <= 0 for trial in study.trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20, help="of each new study")
    parser.add_argument("--past-trials", type=int, default=40, help="of each past study")
    parser.add_argument(
        "--seeds", type=int, default=3, help="searches with and without past studies"
    )
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    sources = []
    for name, load in PAST.items():
        study = search(Objective(load), args.past_trials, RandomSampler(seed=0), name)
        sources.append(study)
        print(f"past study: {name}, {n_feasible(study)} of {args.past_trials} trials feasible")

    digits = Objective(load_digits)
    with_past, without = [], []
    for seed in range(args.seeds):
        print(f"new study: digits, seed {seed}, with and without past studies", flush=True)
        sampler = TransferSampler(sources, seed=seed)
        with_past.append(search(digits, args.trials, sampler, f"with {seed}"))
        sampler = TransferSampler(seed=seed)
        without.append(search(digits, args.trials, sampler, f"without {seed}"))

    print(f"\nfeasible trials with past studies: {[n_feasible(s) for s in with_past]}, without: "
          f"{[n_feasible(s) for s in without]}")  # fmt: skip
    print("error, microseconds and kB on the front of the first study with past studies:")
    for trial in sorted(with_past[0].best_trials, key=lambda t: t.values):
        size = trial.constraints["size"] + LIMIT
        print(f"  {trial.values[0]:.3f}  {trial.values[1]:6.2f}  {size:4.0f}  {trial.params}")
    print_gain(with_past, without)


if __name__ == "__main__":
    main()
