"""How fast: one update of the task weights, in the paper's setting.

    python benchmarks/task_kernel.py [--json task_kernel.json]

Ten dimensions, two objectives, 200 observations of each task, five past tasks, S = 1,000 points,
three kept dimensions. Timed is all that has to be done after a new observation of the current
task: ranking, split, the density of its good observations, importances and similarities. Then the
same with 10,000 observations per past task: once from scratch (the past tasks' models included),
then an update.
"""

from __future__ import annotations

import argparse
import json
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core, before numpy is loaded

import numpy as np
from optuna.distributions import FloatDistribution

from metatpe import Space, Task
from metatpe._pareto import levels, split
from metatpe._transfer import Past, Settings
from metatpe._trust import N_JUDGED

SPACE = Space({f"x{d}": FloatDistribution(0.0, 1.0) for d in range(10)})
SETTINGS = Settings(gamma=0.1, eta=2.5, n_mc_samples=1000, is_naive=False)


def observations(n: int, shift: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n points and their two losses."""
    X = np.random.default_rng(seed).random((n, 10))
    slope = np.linspace(0.1, 1.0, 10)
    centres = (0.4 + shift, 0.6 + shift)
    return X, np.stack([(slope * (X - c) ** 2).sum(axis=1) for c in centres], axis=1)


def past_tasks(n: int) -> list[Task]:
    return [Task(f"past {m}", SPACE, *observations(n, 0.02 * m, m)) for m in range(5)]


def update(X: np.ndarray, losses: np.ndarray, past: Past) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return weights and kept columns from the current task's observations."""
    is_good = split(losses, np.zeros(len(X)), SETTINGS.gamma)
    judged = slice(N_JUDGED)
    level = levels(losses[judged], np.zeros(len(X))[judged])
    _, weights, kept = past.weigh(X[is_good], X[judged], level)
    return weights, kept


def measure(n_past: int, n_target: int = 200, repeats: int = 100) -> dict[str, float]:
    """Return the seconds of the first update from scratch, and the median of later ones."""
    X, losses = observations(n_target + repeats, 0.0, 99)
    tasks = past_tasks(n_past)
    start = time.perf_counter()
    past = Past(tasks, SPACE, SETTINGS)
    update(X[:n_target], losses[:n_target], past)
    from_scratch = time.perf_counter() - start
    seconds, n_kept = [], []
    for n in range(n_target, n_target + repeats):
        start = time.perf_counter()
        _, kept = update(X[n - n_target : n], losses[n - n_target : n], past)
        seconds.append(time.perf_counter() - start)
        n_kept.append(len(kept))
    return {
        "from_scratch": from_scratch,
        "update": float(np.median(seconds)),
        "n_kept": float(np.median(n_kept)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", help="write the times to this file")
    args = parser.parse_args()
    results = {n: measure(n) for n in (200, 10_000)}
    for n, times in results.items():
        scratch, later = 1e3 * times["from_scratch"], 1e3 * times["update"]
        print(f"5 past tasks x {n} observations, {times['n_kept']:.0f} dimensions kept:")
        print(f"  from scratch {scratch:.2f} ms, an update {later:.3f} ms")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
