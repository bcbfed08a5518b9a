"""scikit-learn: the error and the prediction time of a neural network on a new dataset.

    pip install metatpe scikit-learn
    python examples/scikit_learn.py

The past studies tuned the same network on three other datasets (iris, wine, breast cancer), and
the new dataset is the digits. Both objectives are minimised, so the result is a Pareto front: the
trade-off between error and speed. Every search is run with and without past studies, with the same
seeds.
"""

from __future__ import annotations

import argparse
import warnings

import optuna
from _gain import print_gain
from _timing import prediction_time
from optuna.samplers import BaseSampler, RandomSampler
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from metatpe import Task, TransferSampler, transfer_history

PAST = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
N_ITERATIONS = 10


class Objective:
    """The validation error and the microseconds per prediction on one dataset."""

    def __init__(self, load) -> None:
        X, y = load(return_X_y=True)
        self.parts = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)

    def __call__(self, trial: optuna.Trial) -> tuple[float, float]:
        layers = trial.suggest_int("layers", 1, 3)
        width = trial.suggest_int("width", 4, 128, log=True)
        model = MLPClassifier(
            hidden_layer_sizes=(width,) * layers,
            activation=trial.suggest_categorical("activation", ["relu", "tanh", "logistic"]),
            learning_rate_init=trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True),
            alpha=trial.suggest_float("alpha", 1e-6, 1e-1, log=True),
            batch_size=2 ** trial.suggest_int("log2_batch_size", 3, 7),
            max_iter=N_ITERATIONS,
            random_state=0,
        )
        X_train, X_test, y_train, y_test = self.parts
        scaler = StandardScaler().fit(X_train)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ten iterations are not meant to converge
            model.fit(scaler.transform(X_train), y_train)
        rows = scaler.transform(X_test)
        return 1.0 - model.score(rows, y_test), prediction_time(model, rows)


def search(objective: Objective, n_trials: int, sampler: BaseSampler) -> optuna.Study:
    """Tune the network."""
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=n_trials)
    return study


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
        print(f"past study: {name}, {args.past_trials} trials", flush=True)
        study = search(Objective(load), args.past_trials, RandomSampler(seed=0))
        sources.append(Task.from_study(study, name=name))

    digits = Objective(load_digits)
    with_past, without = [], []
    for seed in range(args.seeds):
        print(f"new study: digits, seed {seed}, with and without past studies", flush=True)
        with_past.append(search(digits, args.trials, TransferSampler(sources, seed=seed)))
        without.append(search(digits, args.trials, TransferSampler(seed=seed)))

    print("\nfinal weights of the past studies:")
    print(" ", [r.weights for r in transfer_history(with_past[0]) if r.weights][-1:])
    print("error and µs per prediction on the front of the first study with past studies:")
    for trial in sorted(with_past[0].best_trials, key=lambda t: t.values):
        print(f"  {trial.values[0]:.3f}  {trial.values[1]:6.2f}  {trial.params}")
    print_gain(with_past, without)


if __name__ == "__main__":
    main()
