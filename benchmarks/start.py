"""The first evaluations: a portfolio against the paper's draw, alone and with what follows.

    python benchmarks/start.py --suites hpolib,nmt --seeds 20 --jobs 2
    python benchmarks/start.py --suites hpolib,nmt --kinds noise,other,reverse --at 5,10,20,50
    python benchmarks/start.py --suites held-out --tasks 30 --seeds 50 --at 1,2,3,5,10

Printed is the normalised hypervolume, the mean over problems and seeds, and in brackets by how
many standard errors over runs it is ahead of the first arm. An arm is SAMPLER:START or
SAMPLER:START:N, with N first trials. `_pasts.py` has the kinds of past.

`held-out` are 50 data sets of oboe, one for each seed, and `--tasks` of the others as the past,
drawn at random. There `limit` is the greedy choice on the true table of the data set, which no
method can know, and `optuna` Optuna's multivariate TPE, which has no past.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import numpy as np
import optuna
from _pasts import past_tasks
from _runs import SAMPLERS, in_errors, names_of

from metatpe import Task
from metatpe.bench import Problem, get_problem, hypervolume_curve
from metatpe.bench.families import oboe
from metatpe.bench.past import past_task
from metatpe.bench.problems import expand
from metatpe.cli.bench import seeds_of
from metatpe.past.portfolio import greedy, spread_directions

ARMS = "meta-tpe:draw,meta-tpe:portfolio,transfer:draw,transfer:portfolio"
HELD_OUT, LIMIT, OPTUNA = "held-out", "limit", "optuna"
N_HELD_OUT, N_PAST = 50, 100


def run(problem: Problem, past: Sequence[Task], arm: str, seed: int, n: int) -> np.ndarray:
    """Return the hypervolume after each of n evaluations."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if arm == LIMIT:
        values = best_choices(problem)
        return hypervolume_curve(problem, np.vstack([values, np.repeat(values[-1:], n, axis=0)]))[
            :n
        ]
    if arm == OPTUNA:
        sampler = optuna.samplers.TPESampler(multivariate=True, n_startup_trials=5, seed=seed)
    else:
        name, start, *number = arm.split(":")
        settings = {"n_startup_trials": int(number[0])} if number else {}
        sampler = SAMPLERS[name](past, start=start, seed=seed, **settings)
    study = optuna.create_study(directions=problem.directions, sampler=sampler)
    found = []
    for _ in range(n):
        trial = problem.ask(study)
        found.append(problem.evaluate(trial.params, seed))
        study.tell(trial, found[-1])
    return hypervolume_curve(problem, np.array(found))


def best_choices(problem: Problem) -> np.ndarray:  # (5, m)
    """Return the values of five rows of the table that dominate the most, chosen one by one."""
    assert problem.table is not None
    values = problem.table[:, 0]
    is_log = np.array(problem.log_objectives)
    losses = problem.losses(np.where(is_log, np.log(np.where(is_log, values, 1.0)), values))
    low, high = losses.min(axis=0), losses.max(axis=0)
    Y = (losses - low) / np.where(high > low, high - low, 1.0)
    return values[greedy(Y[None], spread_directions(Y.shape[1], 256), 5)]


def held_out(seed: int, n_tasks: int) -> tuple[Problem, list[Task]]:
    """Return a data set of oboe, and others as its past."""
    rng = np.random.default_rng(5)
    names = [f"oboe/{i}" for i in rng.permutation(oboe.data_sets())]
    targets, others = names[:N_HELD_OUT], names[N_HELD_OUT:]
    own = np.random.default_rng([7, seed])
    chosen = own.choice(len(others), min(n_tasks, len(others)), replace=False)
    past = [past_task(get_problem(others[i]), N_PAST, seed, s) for s, i in enumerate(chosen, 1)]
    return get_problem(targets[seed % N_HELD_OUT]), past


def curves(
    name: str, seed: int, *, kind: str, arms: Sequence[str], n: int, tasks: int
) -> np.ndarray:
    """Return the curves of all arms on one problem, (arms, n)."""
    if name == HELD_OUT:
        problem, past = held_out(seed, tasks)
    else:
        problem, past = get_problem(name), past_tasks(kind, name, seed)
    return np.stack([run(problem, past, arm, seed, n) for arm in arms])


def show(title: str, arms: Sequence[str], found: np.ndarray, at: Sequence[int]) -> None:
    """Print the table of one suite and kind of past; found is (runs, arms, n)."""
    print(f"\n{title}, {len(found)} runs")
    print(f"{'':<24}" + "".join(f"{n:>15}" for n in at))
    for i, arm in enumerate(arms):
        ahead = in_errors((found[:, i] - found[:, 0])[:, [n - 1 for n in at]])
        means = found[:, i].mean(axis=0)[[n - 1 for n in at]]
        cells = (f"{mean:.3f} {f'({z:+.1f})':>7}" for mean, z in zip(means, ahead, strict=True))
        print(f"{arm:<24}" + "".join(f"{cell:>15}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suites", type=names_of, default=["hpolib", "nmt"], metavar="NAME,...")
    parser.add_argument("--kinds", type=names_of, default=["like"], metavar="NAME,...")
    parser.add_argument("--arms", type=names_of, default=names_of(ARMS), metavar="ARM,...")
    parser.add_argument("--seeds", type=seeds_of, default=range(20), metavar="N")
    parser.add_argument("--tasks", type=int, default=30, metavar="N", help="past of held-out")
    parser.add_argument(
        "--at", type=lambda text: [int(n) for n in names_of(text)], default=[1, 2, 3, 5, 10]
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes")
    args = parser.parse_args()
    with ProcessPoolExecutor(args.jobs) as pool:
        for suite in args.suites:
            arms = [*args.arms, LIMIT, OPTUNA] if suite == HELD_OUT else args.arms
            members = [HELD_OUT] if suite == HELD_OUT else expand(suite)
            for kind in ["like"] if suite == HELD_OUT else args.kinds:
                one = partial(curves, kind=kind, arms=arms, n=max(args.at), tasks=args.tasks)
                names, seeds = zip(*[(n, s) for s in args.seeds for n in members], strict=True)
                found = np.stack(list(pool.map(one, names, seeds)))
                show(f"{suite}, past: {kind}", arms, found, args.at)


if __name__ == "__main__":
    main()
