"""One rugged objective: boosted trees fitted to the twelve tables of TaskSet.

    python benchmarks/rugged.py --seeds 4 --jobs 2

The objective of a task is the prediction of boosted trees for the last validation loss, on a log
scale and with the worst 15 % cut off, in eight continuous parameters. It is piecewise constant and
has many local minima. The past are 100 random configurations of each of the eleven other tasks.
The rivals of `transfer`, TransferSampler, start with the best configurations of five random past
tasks. Needs the data of TaskSet (see `metatpe bench list`) and scikit-learn.

Printed is the share of the way from the median of random configurations to the best value that is
known, the mean over tasks and seeds, and in brackets the lead of `transfer` in standard errors
over runs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import Any, NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import numpy as np
import optuna
from _runs import in_errors, names_of
from optuna.samplers import BaseSampler, GPSampler, TPESampler

from metatpe import MetaTPESampler, Space, Task, TransferSampler
from metatpe.baselines import RGPESampler
from metatpe.bench import get_problem
from metatpe.bench.families import taskset
from metatpe.bench.past import random_configurations
from metatpe.cli.bench import seeds_of

N_PAST, N_WARM = 100, 5
AT = (5, 10, 20, 30, 50, 100)
SAMPLERS: dict[str, Callable[..., BaseSampler]] = {
    "transfer": TransferSampler,
    "rgpe+warm": partial(RGPESampler, n_startup_trials=0),
    "meta-tpe+warm": partial(MetaTPESampler, n_startup_trials=0),
    "optuna-tpe-multivariate+warm": lambda past, seed: TPESampler(
        multivariate=True, n_startup_trials=N_WARM, seed=seed
    ),
    "optuna-gp+warm": lambda past, seed: GPSampler(n_startup_trials=N_WARM, seed=seed),
}


class Landscape(NamedTuple):
    """The objective of a task."""

    model: Any  # boosted trees
    best: float
    median: float


@cache
def landscape(i: int) -> Landscape:
    """Return the objective of the task with an index."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    losses = taskset.curves(taskset.NAMES[i])[:, -1]
    worst = np.quantile(losses[np.isfinite(losses)], 0.85)
    losses = np.minimum(np.where(np.isfinite(losses), losses, worst), worst)
    width = worst - losses.min()
    y = np.log(losses - losses.min() + 0.02 * width)
    settings = taskset.settings()
    trees = {"max_iter": 400, "max_leaf_nodes": 24, "min_samples_leaf": 3, "random_state": 0}
    model = HistGradientBoostingRegressor(learning_rate=0.08, **trees).fit(settings, y)
    rng = np.random.default_rng(0)
    anywhere = rng.random((100_000, settings.shape[1]))
    found = model.predict(anywhere)
    good = anywhere[np.argsort(found)[:200]]
    near = good[rng.integers(len(good), size=50_000)]
    near = np.clip(near + 0.05 * rng.normal(size=near.shape), 0.0, 1.0)
    best = min(found.min(), model.predict(near).min())
    return Landscape(model, float(best), float(np.median(found)))


def past_of(i: int, seed: int) -> list[Task]:
    """Return the past of a task."""
    space, tasks = Space(taskset.SPACE), []
    for j, name in enumerate(taskset.NAMES):
        if j != i:
            configurations = random_configurations(get_problem(name), N_PAST, (seed, 1 + j))
            X = space.encode(configurations)
            tasks.append(Task(name, space, X, landscape(j).model.predict(X)[:, None]))
    return tasks


def run(case: tuple[int, int], method: str, n: int) -> np.ndarray:  # (n,)
    """Return the score of a method on a task after each evaluation."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    i, seed = case
    own, past, space = landscape(i), past_of(i, seed), Space(taskset.SPACE)
    study = optuna.create_study(sampler=SAMPLERS[method](past, seed=seed))
    if method.endswith("+warm"):
        for m in np.random.default_rng(seed).permutation(len(past))[:N_WARM]:
            best = past[m].X[[np.argmin(past[m].losses[:, 0])]]
            study.enqueue_trial(space.decode(best)[0])
    values = np.empty(n)
    for k in range(n):
        trial = study.ask(taskset.SPACE)
        values[k] = own.model.predict(space.encode([trial.params]))[0]
        study.tell(trial, values[k])
    return (own.median - np.minimum.accumulate(values)) / (own.median - own.best)


def show(method: str, scores: np.ndarray, first: np.ndarray, at: Sequence[int]) -> None:
    """Print the line of a method, from the scores (runs, n) of it and of the first one."""
    columns = [n - 1 for n in at]
    means, ahead = scores.mean(axis=0)[columns], in_errors((first - scores)[:, columns])
    cells = (f"{mean:.3f} ({z:+.1f})" for mean, z in zip(means, ahead, strict=True))
    print(f"{method:<30}" + "".join(f"{cell:>15}" for cell in cells), flush=True)


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--methods", type=names_of, default=list(SAMPLERS), metavar="NAME,...")
    add("--seeds", type=seeds_of, default=range(2), metavar="N", help="how many, or 20-39")
    add("--evaluations", type=int, default=100, metavar="N", help="of each run")
    add("--jobs", type=int, default=2, metavar="N", help="processes")
    args = parser.parse_args()
    if unknown := [method for method in args.methods if method not in SAMPLERS]:
        parser.error(f"{unknown[0]!r} is none of {', '.join(SAMPLERS)}")
    cases = [(i, seed) for seed in args.seeds for i in range(len(taskset.NAMES))]
    at = [n for n in AT if n <= args.evaluations]
    print(f"{f'{len(cases)} runs':<30}" + "".join(f"{n:>15}" for n in at))
    first: np.ndarray | None = None
    with ProcessPoolExecutor(args.jobs) as pool:
        for method in args.methods:
            one = partial(run, method=method, n=args.evaluations)
            scores = np.array(list(pool.map(one, cases)))
            first = scores if first is None else first
            show(method, scores, first, at)


if __name__ == "__main__":
    main()
