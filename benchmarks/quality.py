"""How good: the sampler against its rivals on HPOlib and NMT-Bench, under the paper's protocol.

    python benchmarks/quality.py --seeds 20 --jobs 2

For each dataset the others of its suite are the past: 100 random configurations each. Five warm
starts (or five random configurations for methods without a past), 100 evaluations; the same past
and the same noise for every method with one seed. Printed is the normalised hypervolume after 5,
10, 20, 30, 50 and 100 evaluations, 1 being the true Pareto front: the mean over seeds, and paired
differences with standard errors. NMT-Bench needs METATPE_DATA (see the README); without it, it is
left out.
"""

from __future__ import annotations

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import optuna

from metatpe import MetaTPESampler, Space, Task
from metatpe._warm_start import first_configurations
from metatpe.bench import Problem, get_suite, hypervolume_curve, problem_names

AT = (5, 10, 20, 30, 50, 100)
N_PAST, N_START, N_EVALUATIONS = 100, 5, 100
METHODS = ("meta-tpe", "naive-meta-tpe", "mo-tpe", "optuna-tpe-mv", "optuna-tpe-mv+warm", "random")


def random_configurations(problem: Problem, n: int, key: tuple[int, ...]) -> list[dict]:
    """Return n distinct random configurations of a finite space."""
    space = Space(problem.space)
    rng = np.random.default_rng(np.random.SeedSequence(key))
    drawn = space.decode(space.columns.snap(rng.random((3 * n, len(space)))))
    distinct = list({json.dumps(c, sort_keys=True): c for c in drawn}.values())
    return distinct[:n]


@cache
def suite(name: str) -> tuple[Problem, ...]:
    return get_suite(name)


def past_task(problem: Problem, index: int, seed: int) -> Task:
    configurations = random_configurations(problem, N_PAST, (seed, 1 + index))
    space = Space(problem.space)
    values = np.array([problem.evaluate(c, seed) for c in configurations])
    return Task(problem.name, space, space.encode(configurations), problem.losses(values))


def make_sampler(method: str, past: list[Task], seed: int) -> optuna.samplers.BaseSampler:
    if method == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    if method.startswith("optuna"):
        return optuna.samplers.TPESampler(multivariate=True, n_startup_trials=N_START, seed=seed)
    if method == "mo-tpe":
        return MetaTPESampler(seed=seed)
    weights = "uniform" if method.startswith("naive") else "similarity"
    return MetaTPESampler(past, weights=weights, seed=seed)


def run(suite_name: str, target: int, method: str, seed: int) -> list[float]:
    """Return the hypervolume after each evaluation of one run."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    problems = suite(suite_name)
    problem = problems[target]
    past = [past_task(p, i, seed) for i, p in enumerate(problems) if i != target]
    study = optuna.create_study(
        directions=problem.directions, sampler=make_sampler(method, past, seed)
    )
    first: list[dict] = []
    if method.endswith("+warm"):
        first = [dict(c) for c in first_configurations(past, N_START)[:N_START]]
    elif "meta" not in method:
        first = random_configurations(problem, N_START, (seed, 0))
    for configuration in first:
        study.enqueue_trial(configuration)
    values = []
    for _ in range(N_EVALUATIONS):
        trial = study.ask(problem.space)
        values.append(problem.evaluate(trial.params, seed))
        study.tell(trial, values[-1])
    return hypervolume_curve(problem, np.array(values)).tolist()


def table(curves: dict[str, dict[str, np.ndarray]], methods: list[str]) -> None:
    """Print means, and each method's paired difference from the first one."""
    header = "".join(f"{at:>9}{'paired':>13}" for at in AT)
    columns = [at - 1 for at in AT]
    for row in [*curves, *sorted({name.split("/")[0] + " (mean)" for name in curves})]:
        print(f"\n{row:<22}{header}")
        members = [n for n in curves if row in (n, n.split("/")[0] + " (mean)")]
        by_method = {m: np.mean([curves[n][m] for n in members], axis=0) for m in methods}
        for method in methods:
            at = by_method[method][:, columns]
            difference = at - by_method[methods[0]][:, columns]
            se = difference.std(axis=0, ddof=1) / np.sqrt(len(at)) if len(at) > 1 else 0 * at[0]
            cells = zip(at.mean(axis=0), difference.mean(axis=0), se, strict=True)
            line = "".join(f"{a:9.4f} {d:+.3f}±{e:.3f}" for a, d, e in cells)
            print(f"  {method:<20}{line}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--methods", default=",".join(METHODS[:5]))
    parser.add_argument("--suites", default="hpolib,nmt")
    parser.add_argument("--out", type=Path, help="write the curves as JSON")
    args = parser.parse_args()
    methods, curves = args.methods.split(","), {}
    with ProcessPoolExecutor(args.jobs) as pool:
        for suite_name in args.suites.split(","):
            try:
                suite(suite_name)
            except FileNotFoundError as error:
                print(f"{suite_name} is left out: {error}")
                continue
            for target, name in enumerate(problem_names(suite_name)):
                jobs = {
                    m: [pool.submit(run, suite_name, target, m, s) for s in range(args.seeds)]
                    for m in methods
                }
                curves[name] = {m: np.array([j.result() for j in jobs[m]]) for m in methods}
                print(f"{name} done", flush=True)
    table(curves, methods)
    if args.out:
        rounded = {n: {m: c.round(5).tolist() for m, c in by.items()} for n, by in curves.items()}
        args.out.write_text(json.dumps(rounded))


if __name__ == "__main__":
    main()
