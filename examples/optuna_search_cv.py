"""scikit-learn's interface: OptunaSearchCV, with past searches on other datasets.

    pip install metatpe scikit-learn optuna-integration
    python examples/optuna_search_cv.py

`OptunaSearchCV` is Optuna's counterpart of scikit-learn's `RandomizedSearchCV`: a fitted search is
a model. Pass it a study that uses the sampler. The past studies are searches for the same support
vector machine on three other datasets (iris, wine, breast cancer), and the new dataset is the
digits. The score is the accuracy in cross-validation.
"""

from __future__ import annotations

import argparse
import warnings

import optuna
from _gain import print_gain
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna_integration import OptunaSearchCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from metatpe import Task, TransferSampler

PAST = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
SPACE = {
    "svc__C": FloatDistribution(1e-3, 1e3, log=True),
    "svc__gamma": FloatDistribution(1e-5, 1e1, log=True),
    "svc__class_weight": CategoricalDistribution([None, "balanced"]),
}


def search(load, n_trials: int, sampler: BaseSampler) -> OptunaSearchCV:
    """Tune the model on half of a dataset."""
    X, y = load(return_X_y=True)
    X, _, y, _ = train_test_split(X, y, train_size=0.5, random_state=0, stratify=y)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    model = make_pipeline(StandardScaler(), SVC())
    with warnings.catch_warnings():
        # OptunaSearchCV is experimental, and uses a part of Optuna that will go.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        warnings.simplefilter("ignore", FutureWarning)
        found = OptunaSearchCV(model, SPACE, cv=3, n_trials=n_trials, study=study, random_state=0)
        return found.fit(X, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20, help="of each new search")
    parser.add_argument("--past-trials", type=int, default=40, help="of each past search")
    parser.add_argument(
        "--seeds", type=int, default=3, help="searches with and without past studies"
    )
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    sources = []
    for name, load in PAST.items():
        print(f"past search: {name}, {args.past_trials} trials", flush=True)
        found = search(load, args.past_trials, RandomSampler(seed=0))
        sources.append(Task.from_study(found.study_, name=name))

    with_past, without = [], []
    for seed in range(args.seeds):
        print(f"new search: digits, seed {seed}, with and without past studies", flush=True)
        with_past.append(search(load_digits, args.trials, TransferSampler(sources, seed=seed)))
        without.append(search(load_digits, args.trials, TransferSampler(seed=seed)))

    X, y = load_digits(return_X_y=True)
    _, X_test, _, y_test = train_test_split(X, y, train_size=0.5, random_state=0, stratify=y)
    print(f"\nbest parameters of the first search with past studies: {with_past[0].best_params_}")
    print(
        f"its accuracy on the other half of the digits: {with_past[0].score(X_test, y_test):.3f}"
    )
    print_gain([s.study_ for s in with_past], [s.study_ for s in without])


if __name__ == "__main__":
    main()
