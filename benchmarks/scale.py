"""Scale: many past tasks, long histories, many parameters, several objectives.

    python benchmarks/scale.py --json docs/figures/scale.json --plot docs/figures/scale.png
    python benchmarks/scale.py --quick

From ten past tasks of 200 trials and a study of 300 trials in ten dimensions with two objectives,
one size at a time is varied. The study's trials are random around the optimum, so that all past
tasks keep a weight: the expensive case. Measured are, in a process of its own for each setting,

    suggest      the median time of `study.ask()` and its suggest calls, trials being told between
    first        the first suggestion, which makes the past tasks' models
    construct    `MetaTPESampler(tasks)`
    load         `Task.load` of all past tasks that `Task.save` wrote
    memory       the most that the process held, the past tasks included

and beside it the median of `TPESampler(multivariate=True)` without sources on the same history.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core for everyone, before numpy is loaded

import numpy as np
import optuna
from optuna.distributions import FloatDistribution
from optuna.samplers import TPESampler

from metatpe import MetaTPESampler, Space, Task


@dataclass(frozen=True)
class Size:
    """What is measured at once."""

    sources: int = 10
    source_trials: int = 200
    trials: int = 300
    dimensions: int = 10
    objectives: int = 2


BASE = Size()
VARIED: dict[str, tuple[Size, list[int]]] = {  # what is varied -> from where, to what
    "sources": (BASE, [1, 10, 100, 1000]),
    "source_trials": (replace(BASE, sources=1000), [100, 200, 500, 1000]),
    "trials": (replace(BASE, source_trials=1000), [100, 300, 1000, 3000, 10_000, 30_000]),
    "dimensions": (BASE, [5, 10, 20, 50, 100]),
    "objectives": (replace(BASE, trials=1000), [1, 2, 3, 4]),
}
QUICK: dict[str, tuple[Size, list[int]]] = {
    "sources": (BASE, [1, 10, 100]),
    "trials": (BASE, [100, 1000]),
    "objectives": (BASE, [1, 3]),
}
LABELS = {
    "sources": "past tasks × 200 trials",
    "source_trials": "trials of 1,000 past tasks",
    "trials": "trials of the study",
    "dimensions": "dimensions",
    "objectives": "objectives",
}


def distributions(size: Size) -> dict[str, FloatDistribution]:
    return {f"x{d}": FloatDistribution(0.0, 1.0) for d in range(size.dimensions)}


def losses(X: np.ndarray, shift: float, n_objectives: int) -> np.ndarray:
    """Return objectives of points (n, d) that want different things."""
    middles = np.linspace(0.4, 0.6, n_objectives) if n_objectives > 1 else np.array([0.5])
    return np.stack([((X - middle - shift) ** 2).sum(axis=1) for middle in middles], axis=1)


def past_tasks(size: Size) -> list[Task]:
    rng, space, tasks = np.random.default_rng(7), Space(distributions(size)), []
    for m in range(size.sources):
        X = rng.random((size.source_trials, size.dimensions))
        y = losses(X, rng.uniform(-0.1, 0.1), size.objectives)
        tasks.append(Task(f"past {m}", space, X, y))
    return tasks


def filled_study(size: Size) -> optuna.Study:
    noise = np.random.default_rng(3).normal(size=(size.trials, size.dimensions))
    X = np.clip(0.5 + 0.25 * noise, 0.0, 1.0)
    names = distributions(size)
    study = optuna.create_study(directions=["minimize"] * size.objectives)
    study.add_trials(
        optuna.create_trial(
            params=dict(zip(names, x.tolist(), strict=True)),
            distributions=names,
            values=y.tolist(),
        )
        for x, y in zip(X, losses(X, 0.0, size.objectives), strict=True)
    )
    return study


def time_suggestions(study: optuna.Study, size: Size, n: int) -> list[float]:
    seconds = []
    for _ in range(n):
        start = time.perf_counter()
        trial = study.ask()
        x = [trial.suggest_float(name, 0.0, 1.0) for name in distributions(size)]
        seconds.append(time.perf_counter() - start)
        study.tell(trial, losses(np.array([x]), 0.0, size.objectives)[0].tolist())
    return seconds


def measure(size: Size) -> dict[str, float]:
    """Return the seconds and megabytes of one setting; runs in a process of its own."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    tasks = past_tasks(size)
    study = filled_study(size)
    start = time.perf_counter()
    study.sampler = MetaTPESampler(tasks, seed=0)
    construct = time.perf_counter() - start
    first = time_suggestions(study, size, 5)[0]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**20 if sys.platform == "darwin" else 2**10
    )
    result = {"first": first, "construct": construct, "memory": memory}
    return {**result, **beside_the_rival(study, size), "load": time_to_load(tasks)}


def beside_the_rival(study: optuna.Study, size: Size) -> dict[str, float]:
    """Return the medians of both samplers, which take turns: a slow moment hits them both."""
    rival = filled_study(size)
    rival.sampler = TPESampler(multivariate=True, seed=0)
    time_suggestions(rival, size, 1)
    own, others = [], []
    for _ in range(4):
        own += time_suggestions(study, size, 6)
        others += time_suggestions(rival, size, 2)
    return {"suggest": float(np.median(own)), "rival": float(np.median(others))}


def time_to_load(tasks: list[Task]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{m}.task" for m in range(len(tasks))]
        for task, path in zip(tasks, paths, strict=True):
            task.save(path)
        start = time.perf_counter()
        for path in paths:
            Task.load(path)
        return time.perf_counter() - start


def in_own_process(function: Callable[[Size], dict[str, float]], size: Size) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(function, (size,))


def measure_all(varied: dict[str, tuple[Size, list[int]]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each setting, as it is measured."""
    done: dict[Size, dict[str, float]] = {}
    for name, (base, values) in varied.items():
        for value in values:
            size = replace(base, **{name: value})
            if size not in done:
                done[size] = in_own_process(measure, size)
            yield {"varied": name, **asdict(size), **done[size]}


def show(row: dict[str, Any]) -> None:
    print(
        f"{row['varied']:>13} {row[row['varied']]:>6}: {1e3 * row['suggest']:8.1f} ms "
        f"(TPE {1e3 * row['rival']:8.1f}, ratio {row['suggest'] / row['rival']:6.3f}), "
        f"first {row['first']:6.2f} s, construct {row['construct']:6.2f} s, "
        f"load {row['load']:5.2f} s, {row['memory']:6.0f} MB",
        flush=True,
    )


def plot(rows: list[dict[str, Any]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["varied"] for row in rows))
    figure, axes = plt.subplots(
        3, len(names), figsize=(2.6 * len(names), 6.4), sharey="row", squeeze=False
    )
    lines = [
        [("suggest", 1e3, "MetaTPESampler", "C0"), ("rival", 1e3, "TPE, no sources", "C1")],
        [("construct", 1, "construct", "C2"), ("first", 1, "first suggestion", "C3")],
        [("memory", 1, "memory", "C4")],
    ]
    for column, name in enumerate(names):
        own = [row for row in rows if row["varied"] == name]
        for axis, quantities in zip(axes[:, column], lines, strict=True):
            for key, factor, label, colour in quantities:
                x, y = [row[name] for row in own], [factor * row[key] for row in own]
                axis.plot(x, y, marker="o", markersize=3, color=colour, label=label)
            axis.set(xscale="linear" if name == "objectives" else "log", yscale="log")
            axis.set_xticks(x, [f"{value:,}" for value in x], fontsize=7)
            axis.minorticks_off()
            axis.grid(alpha=0.3)
        axes[-1, column].set_xlabel(LABELS[name])
    for axis, label in zip(axes[:, 0], ("ms a suggestion", "seconds", "MB"), strict=True):
        axis.set_ylabel(label)
        if label != "MB":
            axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few small settings, in a minute")
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--plot", help="draw them to this file (extra `bench`)")
    args = parser.parse_args()
    rows = []
    for row in measure_all(QUICK if args.quick else VARIED):
        show(row)
        rows.append(row)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)
    if args.plot:
        plot(rows, args.plot)


if __name__ == "__main__":
    main()
