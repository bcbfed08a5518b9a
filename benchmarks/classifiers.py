"""A conditional space in which real models are trained: five classifiers on 24 small datasets.

    python benchmarks/classifiers.py --datasets 10 --seeds 2 --evaluations 100 --jobs 8

The space has 14 parameters: `algorithm`, and those that one algorithm alone uses. Objectives are
the balanced error and the size of the fitted model, both on a log scale. The past of a dataset are
100 random trials on each of the 23 others. There are no tables: each evaluation trains a model, in
some hundredths of a second. Needs scikit-learn.

Printed is the hypervolume between the best values and the 95 % quantiles of all runs on a dataset,
as a share of what these runs reached together, and in brackets the lead over the first method in
standard errors over runs. `distinct` is the share of different results in a run: the error of a
small dataset is a step function, and a search that does not notice stays on a step.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import moocore
import numpy as np
import optuna
from _runs import in_errors, names_of
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, TPESampler

from metatpe import MetaTPESampler, Task, TransferSampler, portfolio
from metatpe.baselines import RGPESampler
from metatpe.bench import Problem
from metatpe.bench.past import past_task
from metatpe.cli.bench import seeds_of

N_DATASETS, N_PAST = 24, 100
AT = (5, 10, 20, 30, 50, 100)
SAMPLERS: dict[str, Callable[..., BaseSampler]] = {
    "transfer": TransferSampler,
    "meta-tpe": MetaTPESampler,
    "rgpe": RGPESampler,
    "optuna-tpe": lambda past, seed: TPESampler(multivariate=True, seed=seed),
}
BRANCHES: dict[str, dict[str, BaseDistribution]] = {
    "linear": {"penalty": FloatDistribution(1e-4, 1e3, log=True)},
    "svm": {
        "C": FloatDistribution(1e-2, 1e3, log=True),
        "gamma": FloatDistribution(1e-4, 1e1, log=True),
    },
    "neighbours": {
        "k": IntDistribution(1, 40, log=True),
        "p": FloatDistribution(1.0, 4.0),
        "weights": CategoricalDistribution(("uniform", "distance")),
    },
    "forest": {
        "trees": IntDistribution(3, 40, log=True),
        "features": FloatDistribution(0.1, 1.0),
        "leaf": IntDistribution(1, 20, log=True),
    },
    "boosting": {
        "rounds": IntDistribution(3, 40, log=True),
        "rate": FloatDistribution(0.02, 1.0, log=True),
        "depth": IntDistribution(1, 6),
        "subsample": FloatDistribution(0.3, 1.0),
    },
}


@cache
def dataset(i: int) -> tuple[np.ndarray, ...]:
    """Return the training and test parts of a dataset of scikit-learn, or of a made-up one."""
    from sklearn import datasets

    rng = np.random.default_rng([11, i])
    if i < 4:
        names = ("breast_cancer", "wine", "iris", "digits")
        X, y = getattr(datasets, f"load_{names[i]}")(return_X_y=True)
    elif i < 8:
        X, y = datasets.load_digits(return_X_y=True)
        is_kept = np.isin(y, [(3, 8), (4, 9), (1, 7), (5, 6, 8)][i - 4])
        X, y = X[is_kept] + rng.normal(0.0, 6.0, (is_kept.sum(), X.shape[1])), y[is_kept]
    elif i < 10:
        X, y = datasets.load_diabetes(return_X_y=True)
        y = (y > np.quantile(y, [0.5, 0.75][i - 8])).astype(int)
    elif i < 12:
        makers = (
            partial(datasets.make_moons, noise=0.3),
            partial(datasets.make_circles, noise=0.2),
        )
        X, y = makers[i - 10](1200, random_state=i)
    else:
        n_features = int(rng.integers(4, 30))
        X, y = datasets.make_classification(
            1200,
            n_features,
            n_informative=int(rng.integers(3, n_features)),
            n_redundant=0,
            n_classes=int(rng.integers(2, 4)),
            class_sep=float(rng.uniform(0.5, 1.5)),
            flip_y=float(rng.uniform(0.0, 0.2)),
            random_state=i,
        )
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    n = min(300, len(y) // 2)
    X = (X - X[:n].mean(axis=0)) / (X[:n].std(axis=0) + 1e-9)
    return X[:n], y[:n], X[n : n + 600], y[n : n + 600]


def fitted(params: Mapping[str, Any], X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """Return a fitted model, and how many numbers it keeps."""
    from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    p = dict(params)
    match p["algorithm"]:
        case "linear":
            return LogisticRegression(C=p["penalty"], max_iter=50).fit(X, y), X.shape[1]
        case "svm":
            model = SVC(C=p["C"], gamma=p["gamma"], max_iter=20_000).fit(X, y)
            return model, float(model.n_support_.sum() * X.shape[1])
        case "neighbours":
            k = min(p["k"], len(y) - 1)
            return KNeighborsClassifier(k, p=p["p"], weights=p["weights"]).fit(X, y), X.size
        case "forest":
            model = ExtraTreesClassifier(
                p["trees"], max_features=p["features"], min_samples_leaf=p["leaf"], random_state=0
            ).fit(X, y)
            return model, sum(tree.tree_.node_count for tree in model.estimators_)
        case _:
            model = GradientBoostingClassifier(
                n_estimators=p["rounds"],
                learning_rate=p["rate"],
                max_depth=p["depth"],
                subsample=p["subsample"],
                random_state=0,
            ).fit(X, y)
            return model, sum(tree.tree_.node_count for tree in model.estimators_.ravel())


def evaluate(i: int, params: Mapping[str, Any], seed: int) -> tuple[float, ...]:
    """Return the balanced error on the test part and the size of the model."""
    X, y, X_test, y_test = dataset(i)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a search tries settings that do not converge
        model, size = fitted(params, X, y)
    is_wrong = model.predict(X_test) != y_test
    error = np.mean([is_wrong[y_test == label].mean() for label in np.unique(y_test)])
    return float(error) + 1e-3, float(size)


def problem_of(i: int) -> Problem:
    """Return the problem of one dataset."""
    space: dict[str, BaseDistribution] = {"algorithm": CategoricalDistribution(tuple(BRANCHES))}
    for branch in BRANCHES.values():
        space |= branch
    return Problem(
        name=f"classifiers/{i}",
        space=space,
        directions=("minimize", "minimize"),
        objective_names=("error", "size"),
        function=partial(evaluate, i),
        best=np.array([1e-3, 1.0]),
        worst=np.array([1.001, 1e6]),
        log_objectives=(True, True),
        conditions={p: ("algorithm", name) for name, own in BRANCHES.items() for p in own},
    )


@cache
def past_of(i: int, seed: int) -> Task:
    """Return random trials on a dataset."""
    return past_task(problem_of(i), N_PAST, seed, i + 1)


def run(case: tuple[int, int], methods: list[str], n: int) -> np.ndarray:  # (methods, n, 2)
    """Return the logarithms of what each method finds on a dataset."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    i, seed = case
    problem, past = problem_of(i), [past_of(j, seed) for j in range(N_DATASETS) if j != i]
    found = []
    for method in methods:
        study = optuna.create_study(
            directions=problem.directions, sampler=SAMPLERS[method](past, seed=seed)
        )
        if method == "optuna-tpe":  # the same start as the others
            for member in portfolio(past, 5):
                study.enqueue_trial(dict(member.params))
        for _ in range(n):
            trial = problem.ask(study)
            study.tell(trial, problem.evaluate(trial.params, seed))
        found.append([trial.values for trial in study.get_trials(deepcopy=False)])
    return np.log(found)


def shares(curves: np.ndarray) -> np.ndarray:  # (methods, n, 2) -> (methods, n)
    """Return the hypervolume of each method as a share of what all reached together."""
    together = curves.reshape(-1, 2)
    low, high = together.min(axis=0), np.quantile(together, 0.95, axis=0)
    scaled = (curves - low) / np.maximum(high - low, 1e-6)
    whole = moocore.hypervolume(scaled.reshape(-1, 2), ref=[1.0, 1.0])
    n = curves.shape[1]
    return np.array(
        [
            [moocore.hypervolume(own[:k], ref=[1.0, 1.0]) / whole for k in range(1, n + 1)]
            for own in scaled
        ]
    )


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--methods", type=names_of, default=list(SAMPLERS), metavar="NAME,...")
    add("--datasets", type=int, default=N_DATASETS, metavar="N", help="the first N are tuned")
    add("--seeds", type=seeds_of, default=range(1), metavar="N")
    add("--evaluations", type=int, default=100, metavar="N")
    add("--jobs", type=int, default=2, metavar="N", help="processes")
    args = parser.parse_args()
    cases = [(i, seed) for seed in args.seeds for i in range(args.datasets)]
    with ProcessPoolExecutor(args.jobs) as pool:
        curves = list(pool.map(partial(run, methods=args.methods, n=args.evaluations), cases))
    found = np.array([shares(own) for own in curves])  # (runs, methods, n)
    at = [n for n in AT if n <= args.evaluations]
    print(f"{f'{len(cases)} runs':<14}{'distinct':>9}" + "".join(f"{n:>15}" for n in at))
    for m, method in enumerate(args.methods):
        distinct = np.mean([len(np.unique(own[m], axis=0)) / len(own[m]) for own in curves])
        ahead = in_errors((found[:, m] - found[:, 0])[:, [n - 1 for n in at]])
        means = found[:, m].mean(axis=0)[[n - 1 for n in at]]
        cells = (f"{mean:.3f} ({z:+.1f})" for mean, z in zip(means, ahead, strict=True))
        print(f"{method:<14}{distinct:>9.0%}" + "".join(f"{cell:>15}" for cell in cells))


if __name__ == "__main__":
    main()
