"""No harm: sources that do not fit, against the same sampler without any.

    python benchmarks/no_harm.py --seeds 20 --jobs 2
    python benchmarks/no_harm.py --sampler transfer --against meta-tpe

Three past tasks of 100 random configurations each, in the target's own space, that are

    noise      random numbers as results
    reverse    the target upside down: worst where the target is best
    other      another problem: a bowl around a random point, another one for each objective

on the 4-D ellipsoid, two HPOlib datasets and NMT-Bench's tl-en. Printed is, after 25, 50 and 100
evaluations, the paired difference over seeds from the run without a past: normalised hypervolume,
or orders of magnitude of the best value for the ellipsoid; positive where the past has helped. At
the end the mean over the twelve, each in units of its standard error. `like` is the other side of
the coin, three tasks that do fit: the other datasets of the suite, or ellipsoids with shifts of
0.25, 0.5 and 1. `--against` names another sampler for the run without a past: meta-tpe is MO-TPE.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import numpy as np
import optuna

from metatpe import MetaTPESampler, Space, Task, TransferSampler
from metatpe.bench import Problem, best_curve, ellipsoid, get_problem, get_suite, hypervolume_curve

AT = (25, 50, 100)
TARGETS = ("ellipsoid", "hpolib/slice_localization", "hpolib/protein_structure", "nmt/tl-en")
SAMPLERS = {"meta-tpe": MetaTPESampler, "transfer": TransferSampler}
HARMFUL = ("noise", "reverse", "other")
Losses = Callable[[np.ndarray, np.random.Generator], np.ndarray]  # points (n, d) -> (n, m)


def problem_of(name: str) -> Problem:
    return ellipsoid(4, 0.0) if name == "ellipsoid" else get_problem(name)


def losses_of(problem: Problem, seed: int, sign: float = 1.0) -> Losses:
    space = Space(problem.space)

    def losses(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        values = np.array([problem.evaluate(c, seed) for c in space.decode(X)])
        return sign * problem.losses(values)

    return losses


def bowls(X: np.ndarray, rng: np.random.Generator, m: int) -> np.ndarray:
    return np.sum((X[:, None] - rng.random((m, X.shape[1]))) ** 2, axis=2)


def past_losses(kind: str, name: str, seed: int) -> list[Losses]:
    """Return what three past tasks of a kind measure."""
    problem = problem_of(name)
    m = problem.n_objectives
    if kind == "noise":
        return 3 * [lambda X, rng: rng.normal(size=(len(X), m))]
    if kind == "reverse":
        return 3 * [losses_of(problem, seed, -1.0)]
    if kind == "other":
        return 3 * [lambda X, rng: bowls(X, rng, m)]
    others = [p for p in get_suite(name.split("/")[0]) if p.name != name] if "/" in name else []
    return [losses_of(p, seed) for p in others or [ellipsoid(4, c) for c in (0.25, 0.5, 1.0)]]


def past_tasks(kind: str, name: str, seed: int) -> list[Task]:
    space, tasks = Space(problem_of(name).space), []
    for i, losses in enumerate(past_losses(kind, name, seed)):
        rng = np.random.default_rng([seed, i, 4])
        X = space.columns.snap(rng.random((100, len(space))))
        tasks.append(Task(f"{kind} {i}", space, X, losses(X, rng)))
    return tasks


def run(sampler_name: str, name: str, kind: str | None, seed: int) -> np.ndarray:
    """Return how good a run is after each evaluation; the more the better."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    problem = problem_of(name)
    past = past_tasks(kind, name, seed) if kind else ()
    sampler = SAMPLERS[sampler_name](past, seed=seed)
    study = optuna.create_study(directions=problem.directions, sampler=sampler)
    values = []
    for _ in range(AT[-1]):
        trial = study.ask(problem.space)
        values.append(problem.evaluate(trial.params, seed))
        study.tell(trial, values[-1])
    if problem.n_objectives > 1:
        return hypervolume_curve(problem, np.array(values))
    return -np.log10(best_curve(problem, np.array(values)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", default=",".join((*HARMFUL, "like")))
    parser.add_argument("--sampler", choices=SAMPLERS, default="meta-tpe")
    parser.add_argument("--against", choices=SAMPLERS, help="without a past; else the same one")
    args = parser.parse_args()
    own = {None: args.against or args.sampler}
    kinds, at = args.kinds.split(","), [n - 1 for n in AT]
    with ProcessPoolExecutor(args.jobs) as pool:
        jobs = {
            (name, kind): [
                pool.submit(run, own.get(kind, args.sampler), name, kind, seed)
                for seed in range(args.seeds)
            ]
            for name in TARGETS
            for kind in (None, *kinds)
        }
        runs = {case: np.array([j.result() for j in futures]) for case, futures in jobs.items()}
    print(f"{'difference after':<34}" + "".join(f"{n:>20}" for n in AT))
    in_errors: dict[str, list[np.ndarray]] = {"harmful": [], "like": []}
    for (name, kind), curves in runs.items():
        if kind is None:
            continue
        difference = (curves - runs[name, None])[:, at]
        mean, error = difference.mean(axis=0), difference.std(axis=0, ddof=1) / args.seeds**0.5
        in_errors["like" if kind == "like" else "harmful"].append(mean / error)
        cells = "".join(f"{m:+12.4f} ± {e:.4f}" for m, e in zip(mean, error, strict=True))
        print(f"{name:<26}{kind:<8}{cells}", flush=True)
    for label, rows in in_errors.items():
        if rows:
            mean = np.mean(rows, axis=0)
            title = f"mean of {len(rows)} {label}, in standard errors"
            print(f"{title:<42}" + "".join(f"{value:+.2f}{'':15}" for value in mean))


if __name__ == "__main__":
    main()
