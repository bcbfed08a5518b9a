"""Quality does not pay for speed: runs with and without the shortcuts that many sources need.

    python benchmarks/scale_quality.py --seeds 20 --jobs 16

Two cases on the seven datasets of HPOlib and NMT-Bench, 100 evaluations each:

    noise    100 past tasks of 100 random configurations: five draws of the other datasets of the
             suite, and 95 with random numbers as results; the shortcuts as they are
    paper    the other datasets with 100 random configurations each; that is too few for any
             shortcut, so they are made to begin with a thirty-second of what they begin with

Printed is the normalised hypervolume after some evaluations, the exact computation's and the
paired difference that the shortcuts make, with its standard error over seeds; at the end of a case
the mean over the datasets, and by how many of its standard errors it differs from zero.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import numpy as np
import optuna

from metatpe import MetaTPESampler, Task
from metatpe.bench import get_problem, get_suite, hypervolume_curve
from metatpe.bench.past import past_task
from metatpe.past import densities as past_densities
from metatpe.samplers import densities as own_densities
from metatpe.tpe import acquisition, kernel

AT = (10, 20, 30, 50, 100)
CASES = ("noise", "paper")
SUITES = ("hpolib", "nmt")
LIMITS = {  # where the shortcuts begin, and how far they go
    past_densities: ("MAX_KERNELS", "MAX_OWN", "_N_COMPARED", "_MAX_PAIRS"),
    acquisition: ("_N_FIRST", "_N_SECOND", "_N_BEST"),
    kernel: ("_MAX_ENTRIES",),
    own_densities: ("MAX_OWN",),
}
AS_THEY_ARE = {(m, name): getattr(m, name) for m, names in LIMITS.items() for name in names}


def set_limits(way: str, case: str) -> None:
    """Switch the shortcuts off, or let them begin with fewer sources than they would."""
    for (module, name), limit in AS_THEY_ARE.items():
        limit = max(1, limit // 32) if case == "paper" else limit
        setattr(module, name, sys.maxsize if way == "exact" else limit)


def past_tasks(case: str, name: str, seed: int) -> list[Task]:
    others = [p for p in get_suite(name.split("/")[0]) if p.name != name]
    if case == "paper":
        return [past_task(p, 100, seed, stream) for stream, p in enumerate(others, start=1)]
    drawn = [past_task(others[i % len(others)], 100, seed, 1 + i) for i in range(100)]
    rng = np.random.default_rng([seed, 9])
    noise = [
        Task(f"noise {i}", task.space, task.X, rng.normal(size=task.losses.shape))
        for i, task in enumerate(drawn[5:])
    ]
    return [*drawn[:5], *noise]


def run(case: str, name: str, way: str, seed: int) -> tuple[np.ndarray, float]:
    """Return the hypervolume after each evaluation, and the seconds of a suggestion."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    set_limits(way, case)
    problem = get_problem(name)
    searcher = MetaTPESampler(past_tasks(case, name, seed), seed=seed)
    study = optuna.create_study(directions=problem.directions, sampler=searcher)
    values = []
    for _ in range(AT[-1]):
        trial = problem.ask(study)
        values.append(problem.evaluate(trial.params, seed))
        study.tell(trial, values[-1])
    first, last = study.trials[5].datetime_start, study.trials[-1].datetime_complete
    seconds = (last - first).total_seconds() if first and last else float("nan")
    return hypervolume_curve(problem, np.array(values)), seconds / (AT[-1] - 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--json", help="write the curves to this file")
    args = parser.parse_args()
    names = [problem.name for suite in SUITES for problem in get_suite(suite)]
    cases, ways = args.cases.split(","), ("exact", "short")
    curves = {}
    with ProcessPoolExecutor(args.jobs) as pool:
        jobs = {
            (case, name, way): [pool.submit(run, case, name, way, s) for s in range(args.seeds)]
            for case in cases
            for name in names
            for way in ways
        }
        for key, futures in jobs.items():
            done = [future.result() for future in futures]
            curves[key] = np.array([curve for curve, _ in done])
            seconds = np.mean([s for _, s in done])
            print(f"{' '.join(key)}: {1e3 * seconds:.1f} ms an evaluation", flush=True)
    for case in cases:
        show(case, {name: [curves[case, name, way] for way in ways] for name in names})
    if args.json:
        rounded = {" ".join(key): value.round(6).tolist() for key, value in curves.items()}
        with open(args.json, "w") as file:
            json.dump(rounded, file)


def show(case: str, curves: dict[str, list[np.ndarray]]) -> None:
    at = [n - 1 for n in AT]
    print(f"{case + ', exact and difference':<34}" + "".join(f"{n:>26}" for n in AT))
    differences = []
    for name, (exact, short) in curves.items():
        difference = (short - exact)[:, at]
        differences.append(difference)
        print_row(name, exact[:, at].mean(axis=0), difference)
    mean = np.mean(differences, axis=0)
    print_row("mean", np.mean([exact[:, at] for exact, _ in curves.values()], axis=(0, 1)), mean)
    error = mean.std(axis=0, ddof=1) / len(mean) ** 0.5
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.nan_to_num(mean.mean(axis=0) / error)
    print(f"{'in standard errors':<34}" + "".join(f"{z:>+26.2f}" for z in ratios))


def print_row(label: str, level: np.ndarray, difference: np.ndarray) -> None:
    error = difference.std(axis=0, ddof=1) / len(difference) ** 0.5
    cells = zip(level, difference.mean(axis=0), error, strict=True)
    print(f"{label:<34}" + "".join(f"{v:>9.4f} {m:+.4f} ± {e:.4f}" for v, m, e in cells))


if __name__ == "__main__":
    main()
