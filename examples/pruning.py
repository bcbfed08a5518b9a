"""Stop bad trials early: a neural network on the digits, with past learning curves.

The past studies trained the same network on three parts of the digits. Both searches train the
same random configurations; one of them stops trials that are expected to end badly, judging by
past learning curves.

    python examples/pruning.py --plot curves.png
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from metatpe import TransferPruner, pruning_history, viz

PAST = {"digits 0 to 4": range(5), "digits 5 to 9": range(5, 10), "even digits": range(0, 10, 2)}


def objective(trial: optuna.Trial, digits: Sequence[int], n_epochs: int) -> float:
    """Train a network on some digits; return the error on held-out images."""
    X, y = load_digits(return_X_y=True)
    X, y = X[np.isin(y, list(digits))] / 16.0, y[np.isin(y, list(digits))]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
    model = MLPClassifier(
        (trial.suggest_int("width", 4, 64, log=True),),
        solver="sgd",
        alpha=trial.suggest_float("alpha", 1e-6, 1.0, log=True),
        learning_rate_init=trial.suggest_float("learning_rate", 1e-4, 1.0, log=True),
        momentum=trial.suggest_float("momentum", 0.0, 0.99),
        random_state=0,
    )
    error = 1.0
    for epoch in range(n_epochs):
        model.partial_fit(X_train, y_train, classes=list(digits))
        error = 1.0 - float(model.score(X_test, y_test))
        trial.report(error, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return error


def search(
    name: str,
    digits: Sequence[int],
    pruner: optuna.pruners.BasePruner,
    n_trials: int,
    n_epochs: int,
    seed: int,
) -> optuna.Study:
    """Return a study of random trials."""
    sampler = optuna.samplers.RandomSampler(seed=seed)
    study = optuna.create_study(study_name=name, sampler=sampler, pruner=pruner)
    study.optimize(lambda trial: objective(trial, digits, n_epochs), n_trials=n_trials)
    return study


def main() -> None:
    """Print epochs and errors of both searches, and why trials were stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--plot", help="file for a picture of the learning curves")
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")  # of trainings that overflow
    size = args.trials, args.epochs
    nothing = optuna.pruners.NopPruner()
    past = [search(*part, nothing, *size, seed=i) for i, part in enumerate(PAST.items(), 1)]
    for name, pruner in (("without", nothing), ("with", TransferPruner(past))):
        study = search("all digits", range(10), pruner, *size, seed=0)
        n_epochs = sum(len(trial.intermediate_values) for trial in study.trials)
        print(f"{name} pruning: {n_epochs} epochs, best error {study.best_value:.4f}")
    for record in pruning_history(study)[:5]:
        expected = "" if record.expected is None else f", expected to reach {record.expected:.3f}"
        print(
            f"trial {record.number} was stopped in epoch {record.step} ({record.reason}{expected})"
        )
    if args.plot:
        viz.matplotlib.plot_curves(study, past).savefig(args.plot, dpi=110)


if __name__ == "__main__":
    main()
