"""How good: one objective, continuous parameters, with and without a past, beside Optuna's TPE.

    python benchmarks/continuous.py --seeds 20 --jobs 2

First without sources: the median of the best value after 200 evaluations. Then the paper's
ellipsoid: one past task of 100 random observations whose optimum is shifted by c*; the best value
after 25, 50, 100 and 200 evaluations, beside the run without a past.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import numpy as np
import optuna
from optuna.distributions import FloatDistribution

from metatpe import MetaTPESampler, Space, Task

AT = (25, 50, 100, 200)
Function = Callable[[np.ndarray], float]


def ellipsoid(x: np.ndarray, c: float = 0.0) -> float:
    return float(np.sum(5.0 ** np.arange(len(x)) * (x - c) ** 2))


def rosenbrock(x: np.ndarray) -> float:
    return float(np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2))


def ackley(x: np.ndarray) -> float:
    bowl = -20.0 * np.exp(-0.2 * np.sqrt(np.mean(x**2)))
    return float(bowl - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20.0 + np.e)


PROBLEMS: dict[str, tuple[Function, int, float]] = {  # function, dimensions, half width
    "4-D ellipsoid": (ellipsoid, 4, 5.0),
    "10-D ellipsoid": (ellipsoid, 10, 5.0),
    "5-D Ackley": (ackley, 5, 32.768),
    "4-D Rosenbrock": (rosenbrock, 4, 5.0),
}


def space_of(problem: str) -> dict[str, FloatDistribution]:
    _, d, width = PROBLEMS[problem]
    return {f"x{j}": FloatDistribution(-width, width) for j in range(d)}


def past_task(problem: str, c: float, seed: int) -> Task:
    space = Space(space_of(problem))
    X = np.random.default_rng([seed, 17]).random((100, len(space)))
    values = [ellipsoid(np.array(list(p.values())), c) for p in space.decode(X)]
    return Task(f"c* = {c:g}", space, X, np.array(values)[:, None])


def run(problem: str, method: str, c: float | None, seed: int) -> list[float]:
    """Return the best value so far after each evaluation."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sources = [] if c is None else [past_task(problem, c, seed)]
    sampler = {
        "metatpe": lambda: MetaTPESampler(sources, seed=seed),
        "naive": lambda: MetaTPESampler(sources, weights="uniform", seed=seed),
        "optuna-tpe": lambda: optuna.samplers.TPESampler(seed=seed),
    }[method]()
    study, best = optuna.create_study(sampler=sampler), []
    for _ in range(AT[-1]):
        trial = study.ask(space_of(problem))
        value = PROBLEMS[problem][0](np.array(list(trial.params.values())))
        study.tell(trial, value)
        best.append(min(value, best[-1] if best else value))
    return best


def row(name: str, curves: Sequence[Sequence[float]]) -> None:
    at = np.array(curves)[:, [n - 1 for n in AT]]
    cells = zip(np.median(at, axis=0), at.mean(axis=0), strict=True)
    print(f"  {name:<22}" + "".join(f"{median:12.4g} {mean:9.3g}" for median, mean in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    cases = [(p, m, None) for p in PROBLEMS for m in ("metatpe", "optuna-tpe")]
    cases += [("4-D ellipsoid", "metatpe", float(c)) for c in range(5)]
    with ProcessPoolExecutor(args.jobs) as pool:
        jobs = {case: [pool.submit(run, *case, s) for s in range(args.seeds)] for case in cases}
        print(f"{'median, mean after':<24}" + "".join(f"{n:>22}" for n in AT))
        previous = None
        for (problem, method, c), runs in jobs.items():
            if problem != previous:
                print(problem)
                previous = problem
            row(method + ("" if c is None else f", past c* = {c:g}"), [r.result() for r in runs])


if __name__ == "__main__":
    main()
