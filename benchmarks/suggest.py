"""How fast: the time of one suggestion, against Optuna's own samplers in the same run.

    python benchmarks/suggest.py [--json suggest.json]

An in-memory study with ten floats and two objectives; timed is `study.ask()` with its ten suggest
calls, the median over trials that are told in between. Every sampler gets the same finished trials
first, of two kinds: those of a real search, whose best are close together, so that past tasks lose
their weight and cost little; and broad ones, random around the optimum, where all past tasks keep
a weight. In brackets are ratios to `TPESampler(multivariate=True)` at the same number of trials,
without any past.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from functools import cache

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core for everyone, before numpy is loaded

import numpy as np
import optuna
from optuna.distributions import FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from metatpe import MetaTPESampler, Space, Task

N_DIMENSIONS, N_TRIALS = 10, (100, 1000, 3000)
SPACE = {f"x{d}": FloatDistribution(0.0, 1.0) for d in range(N_DIMENSIONS)}
RIVAL = "optuna TPE multivariate"


def losses(X: np.ndarray, shift: float) -> np.ndarray:
    """Return two conflicting objectives of points (n, d)."""
    return np.stack([((X - 0.4 - shift) ** 2).sum(1), ((X - 0.6 - shift) ** 2).sum(1)], axis=1)


def past_tasks(n_tasks: int, n_trials: int) -> list[Task]:
    rng = np.random.default_rng(7)
    tasks = []
    for m in range(n_tasks):
        X = rng.random((n_trials, N_DIMENSIONS))
        tasks.append(Task(f"past {m}", Space(SPACE), X, losses(X, 0.02 * m)))
    return tasks


@cache
def search() -> list[optuna.trial.FrozenTrial]:
    """Return the trials of a real search, so that histories are as a search makes them."""
    study = optuna.create_study(directions=["minimize"] * 2, sampler=MetaTPESampler(seed=1))
    for _ in range(max(N_TRIALS)):
        trial = study.ask(SPACE)
        study.tell(trial, losses(np.array([list(trial.params.values())]), 0.0)[0].tolist())
    return study.trials


def trials_of(history: str, n: int) -> list[optuna.trial.FrozenTrial]:
    """Return n finished trials: the first of the search, or random ones around the optimum."""
    if history == "search":
        X = np.array([list(trial.params.values()) for trial in search()[:n]])
    else:
        noise = np.random.default_rng(3).normal(size=(n, N_DIMENSIONS))
        X = np.clip(0.5 + 0.25 * noise, 0.0, 1.0)
    return [
        optuna.create_trial(
            params=dict(zip(SPACE, x.tolist(), strict=True)),
            distributions=SPACE,
            values=f.tolist(),
        )
        for x, f in zip(X, losses(X, 0.0), strict=True)
    ]


def filled_study(history: str, n: int) -> optuna.Study:
    """Return a study with n finished trials."""
    study = optuna.create_study(directions=["minimize", "minimize"])
    study.add_trials(trials_of(history, n))
    return study


def time_suggestions(study: optuna.Study, sampler: BaseSampler, n: int) -> list[float]:
    """Return the seconds of `ask` and ten suggest calls, n times."""
    study.sampler = sampler
    seconds = []
    for _ in range(n + 2):
        start = time.perf_counter()
        trial = study.ask()
        x = np.array([[trial.suggest_float(name, 0.0, 1.0) for name in SPACE]])
        seconds.append(time.perf_counter() - start)
        study.tell(trial, losses(x, 0.0)[0].tolist())
    return seconds[2:]  # the first ones fill caches


def compare(
    makers: dict[str, Callable[[], BaseSampler]], history: str, n_trials: int, repeats: int
) -> dict[str, float]:
    """Return the median of each sampler, which take turns: a slow moment hits them all."""
    studies = {name: filled_study(history, n_trials) for name in makers}
    samplers = {name: make() for name, make in makers.items()}
    seconds: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(repeats):
        for name, sampler in samplers.items():
            seconds[name] += time_suggestions(studies[name], sampler, 8)
    return {name: float(np.median(times)) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", help="write the times to this file")
    parser.add_argument(
        "--repeats", type=int, default=4, help="turns of 8 suggestions that each sampler takes"
    )
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    samplers: dict[str, Callable[[], BaseSampler]] = {
        "metatpe": lambda: MetaTPESampler(seed=0),
        "metatpe, 5 x 200": lambda: MetaTPESampler(past_tasks(5, 200), seed=0),
        "metatpe, 20 x 1000": lambda: MetaTPESampler(past_tasks(20, 1000), seed=0),
        RIVAL: lambda: TPESampler(multivariate=True, seed=0),
        "optuna TPE": lambda: TPESampler(seed=0),
        "optuna random": lambda: RandomSampler(seed=0),
    }
    results = {}
    for history in ("search", "broad"):
        by_n = {n: compare(samplers, history, n, args.repeats) for n in N_TRIALS}
        results[history] = {name: {n: by_n[n][name] for n in N_TRIALS} for name in samplers}
        show(history, results[history])
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)


def show(history: str, times: dict[str, dict[int, float]]) -> None:
    print(f"{history + ', ms (ratio)':<26}" + "".join(f"{f'{n} trials':>20}" for n in N_TRIALS))
    for name, row in times.items():
        cells = "".join(f"{1e3 * t:11.2f} ({t / times[RIVAL][n]:6.3f})" for n, t in row.items())
        print(f"{name:<26}{cells}")


if __name__ == "__main__":
    main()
