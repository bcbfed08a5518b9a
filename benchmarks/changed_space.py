"""Does the past help when half of the parameters differ? Transfer against MO-TPE, paired by seed.

    python benchmarks/changed_space.py --seeds 20 --jobs 2

On the four datasets of HPOlib, each with the other three as its past (100 random configurations
of each), half of the parameters, others for each seed, have changed since:

    same       none, for comparison
    added      the past studies had them fixed, and nobody knows at which value
    renamed    they are called otherwise in the past studies
    ranges     the past studies had half of the values or choices

and on a space with branches, whose past tasks are three shifted ones:

    branches   optimizer=adam|sgd, each with parameters of its own: the same in the past
    grown      the same, but three of six parameters are new, one in each branch, one in both

Printed is, after 10, 20, 50 and 100 evaluations, the paired difference in normalised hypervolume
from the run without a past and its standard error; positive where the past has helped.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import Trial

from metatpe import MetaTPESampler, Space, Task
from metatpe.bench import Problem, get_suite, hypervolume_curve
from metatpe.tpe.pareto import ranks

AT = (10, 20, 50, 100)
N_PAST = 100
CHANGES = ("same", "added", "renamed", "ranges")
BRANCHES = ("branches", "grown")
Objective = Callable[[Trial], tuple[float, ...]]


# HPOlib ---------------------------------------------------------------------------------------


def half(distribution: BaseDistribution) -> BaseDistribution:
    """Return the first half of the values or choices."""
    if isinstance(distribution, CategoricalDistribution):
        return CategoricalDistribution(distribution.choices[: len(distribution.choices) // 2])
    assert isinstance(distribution, IntDistribution)
    return IntDistribution(distribution.low, (distribution.low + distribution.high) // 2)


def changed_task(problem: Problem, change: str, seed: int, stream: int) -> Task:
    """Return the past of another dataset, in the space that it had before the change."""
    of_seed = np.random.default_rng([seed, 5])  # the same for all past tasks
    n_changed = 0 if change == "same" else math.ceil(len(problem.space) / 2)
    changed = set(of_seed.choice(list(problem.space), n_changed, replace=False).tolist())
    defaults = Space(problem.space).decode(of_seed.random((1, len(problem.space))))[0]
    drawn_from = {
        name: half(d) if change == "ranges" and name in changed else d
        for name, d in problem.space.items()
    }
    space, rng = Space(drawn_from), np.random.default_rng([seed, stream, 6])
    configurations = space.decode(space.columns.snap(rng.random((N_PAST, len(space)))))
    if change == "added":
        fixed = {name: defaults[name] for name in changed}
        configurations = [{**c, **fixed} for c in configurations]
    values = np.array([problem.evaluate(c, seed) for c in configurations])
    kept = {
        name: f"old {name}" if change == "renamed" and name in changed else name
        for name in problem.space
        if not (change == "added" and name in changed)
    }
    old = Space({new: drawn_from[name] for name, new in kept.items()})
    renamed = [{new: c[name] for name, new in kept.items()} for c in configurations]
    return Task(problem.name, old, old.encode(renamed), problem.losses(values))


def objective_of(problem: Problem, seed: int) -> Objective:
    def objective(trial: Trial) -> tuple[float, ...]:
        return problem.evaluate(problem.suggest(trial), seed)

    return objective


# Branches -------------------------------------------------------------------------------------

NEW = {
    "decay": 1e-3,
    "beta": 0.9,
    "nesterov": False,
}  # parameters of `grown`, and their old values


def branched(trial: Trial, shift: float, fixed: Mapping[str, Any]) -> tuple[float, float]:
    """Return error and cost of a made-up training whose best settings move with `shift`."""

    def float_of(name: str, low: float, high: float, *, log: bool = False) -> float:
        return fixed[name] if name in fixed else trial.suggest_float(name, low, high, log=log)

    depth = trial.suggest_int("depth", 1, 10)
    is_adam = trial.suggest_categorical("optimizer", ["adam", "sgd"]) == "adam"
    rate = math.log10(trial.suggest_float("lr", 1e-5, 1.0, log=True))
    decay = math.log10(float_of("decay", 1e-6, 1e-1, log=True))
    error = 0.05 + 0.5 / (depth + shift) + 0.03 * (decay + 4.0 - shift) ** 2
    if is_adam:
        beta = float_of("beta", 0.5, 1.0)
        error += 0.1 * (rate + 3.0 - shift) ** 2 + 2.0 * (beta - 0.9 + 0.05 * shift) ** 2
        return error, 1.5 * depth
    momentum = trial.suggest_float("momentum", 0.0, 1.0)
    is_nesterov = (
        fixed["nesterov"]
        if "nesterov" in fixed
        else trial.suggest_categorical("nesterov", [False, True])
    )
    error += 0.1 * (rate + 1.5 - shift) ** 2 + (momentum - 0.8 + 0.1 * shift) ** 2
    return error + (0.02 if is_nesterov else 0.06), float(depth)


def branches_problem() -> Problem:
    """Return what the hypervolume needs to know of `branched` without a shift."""
    front = [(0.07 + 0.5 / depth, float(depth)) for depth in range(1, 11)]
    front += [(0.05 + 0.5 / depth, 1.5 * depth) for depth in range(1, 11)]
    points = np.array(front)
    return Problem(
        name="branches",
        space={},
        directions=("minimize", "minimize"),
        objective_names=("error", "cost"),
        function=lambda params, seed: (0.0, 0.0),
        best=np.array([0.1, 1.0]),
        worst=np.array([2.0, 15.0]),
        log_objectives=(True, False),
        front=points[ranks(points) == 0],
    )


def branched_task(change: str, seed: int, stream: int) -> Task:
    shift = (0.2, 0.5, 1.0)[stream]
    sampler = optuna.samplers.RandomSampler(seed=1000 * seed + stream)
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
    fixed = NEW if change == "grown" else {}
    study.optimize(lambda trial: branched(trial, shift, fixed), n_trials=N_PAST)
    return Task.from_study(study, name=f"shift {shift:g}")


# Runs -----------------------------------------------------------------------------------------


def run(name: str, change: str | None, seed: int) -> np.ndarray:
    """Return the normalised hypervolume after each evaluation."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    past: list[Task] = []
    if name in BRANCHES:
        problem, objective = branches_problem(), lambda trial: branched(trial, 0.0, {})
        if change is not None:
            past = [branched_task(change, seed, stream) for stream in range(3)]
    else:
        suite = {p.name: p for p in get_suite("hpolib")}
        problem = suite.pop(name)
        objective = objective_of(problem, seed)
        if change is not None:
            others = enumerate(suite.values())
            past = [changed_task(p, change, seed, stream) for stream, p in others]
    sampler = MetaTPESampler(past, seed=seed)
    study = optuna.create_study(directions=problem.directions, sampler=sampler)
    study.optimize(objective, n_trials=AT[-1])
    return hypervolume_curve(problem, np.array([t.values for t in study.trials]))


def row(label: str, differences: np.ndarray) -> None:  # (s, n)
    at = differences[:, [n - 1 for n in AT]]
    mean, error = at.mean(axis=0), at.std(axis=0, ddof=1) / math.sqrt(len(at))
    cells = "".join(f"{m:+12.4f} ± {e:.4f}" for m, e in zip(mean, error, strict=True))
    print(f"{label:<42}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    names = [problem.name for problem in get_suite("hpolib")]
    cases = [(name, change) for name in names for change in (None, *CHANGES)]
    cases += [("branches", change) for change in (None, *BRANCHES)]
    with ProcessPoolExecutor(args.jobs) as pool:
        jobs = {case: [pool.submit(run, *case, s) for s in range(args.seeds)] for case in cases}
        print(f"{'difference after':<42}" + "".join(f"{n:>21}" for n in AT))
        gained: dict[str, list[np.ndarray]] = {change: [] for change in CHANGES}
        for (name, change), futures in jobs.items():
            curves = np.array([job.result() for job in futures])
            if change is None:
                alone = curves
                continue
            row(f"{name}, {change}", curves - alone)
            if change in gained:
                gained[change].append(curves - alone)
        for change, differences in gained.items():
            row(f"hpolib, {change}, mean of the datasets", np.mean(differences, axis=0))


if __name__ == "__main__":
    main()
