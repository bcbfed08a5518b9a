"""Numbers as choices: what it is worth that sorted ones have an order.

    python benchmarks/ordered_choices.py --seeds 3 --jobs 2

People write `suggest_categorical("batch_size", [4, 6, 10])`. The tables of HPOBench are searched
with their values as choices, once as numbers, which are sorted, and once as text, which has no
order. Everything else is the same. Printed is the normalised hypervolume, the mean over the eight
datasets and the seeds, and in brackets the lead of numbers in standard errors over runs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import numpy as np
import optuna
from _runs import SAMPLERS, in_errors, names_of
from optuna.distributions import CategoricalDistribution

from metatpe.bench import Problem, get_problem, hypervolume_curve
from metatpe.bench.past import past_task
from metatpe.bench.problems import past_names, problem_names
from metatpe.cli.bench import seeds_of

KINDS: dict[str, Callable[[Any], Any]] = {"numbers": lambda value: value, "text": str}
AT = (1, 2, 3, 5, 10, 20, 30)
N_PAST = 100


def with_choices(name: str, kind: str) -> Problem:
    """Return a problem whose parameters are choices among their values."""
    problem, shown = get_problem(name), KINDS[kind]
    choices = {p: tuple(map(shown, levels)) for p, levels in problem.levels.items()}

    def evaluate(params: dict[str, Any], seed: int) -> tuple[float, ...]:
        return problem.function({p: choices[p].index(v) for p, v in params.items()}, seed)

    space = {p: CategoricalDistribution(values) for p, values in choices.items()}
    return replace(problem, space=space, levels={}, function=evaluate)


def run(task: tuple[str, str, str, int], n: int) -> np.ndarray:
    """Return the hypervolume after each of n evaluations."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    name, sampler, kind, seed = task
    problem = with_choices(name, kind)
    others = enumerate(past_names(name), 1)
    past = [past_task(with_choices(other, kind), N_PAST, seed, s) for s, other in others]
    study = optuna.create_study(
        directions=problem.directions, sampler=SAMPLERS[sampler](past, seed=seed)
    )
    found = []
    for _ in range(n):
        trial = problem.ask(study)
        found.append(problem.evaluate(trial.params, seed))
        study.tell(trial, found[-1])
    return hypervolume_curve(problem, np.array(found))


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samplers", type=names_of, default=list(SAMPLERS), metavar="NAME,...")
    parser.add_argument("--seeds", type=seeds_of, default=range(3), metavar="N")
    parser.add_argument("--evaluations", type=int, default=30, metavar="N")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes")
    args = parser.parse_args()
    at = [n for n in AT if n <= args.evaluations]
    cases = [(name, seed) for name in problem_names("hpobench") for seed in args.seeds]
    print(f"{f'{len(cases)} runs':<20}" + "".join(f"{n:>15}" for n in at))
    with ProcessPoolExecutor(args.jobs) as pool:
        for sampler in args.samplers:
            tasks = [(name, sampler, kind, seed) for kind in KINDS for name, seed in cases]
            curves = np.array(list(pool.map(partial(run, n=args.evaluations), tasks)))
            found = dict(zip(KINDS, np.split(curves[:, [n - 1 for n in at]], 2), strict=True))
            for kind, own in found.items():
                ahead = in_errors(found["numbers"] - own)
                cells = [f"{mean:.3f}" for mean in own.mean(axis=0)]
                if kind == "text":
                    cells = [f"{c} ({z:+.1f})" for c, z in zip(cells, ahead, strict=True)]
                row = "".join(f"{c:>15}" for c in cells)
                print(f"{sampler + ', ' + kind:<20}{row}", flush=True)


if __name__ == "__main__":
    main()
