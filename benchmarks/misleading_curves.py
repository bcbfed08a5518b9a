"""TransferPruner with past curves that mislead, beside the same pruner without a past.

    python benchmarks/misleading_curves.py --seeds 5 --jobs 2

A study has 100 random trials whose curves are replayed in their order. The kinds are

    like       TaskSet, the other tasks as the past, as `metatpe bench run --pruner transfer`
    shuffled   the same, but the final losses of the past trials belong to other curves
    foreign    a study of power laws without crossings, TaskSet as the past
    late       TaskSet, but the first 60 % of the study's own curves are random numbers

Printed are means over tasks and seeds, see `metatpe.bench.pruners`: the epochs as a share of those
without pruning, the regret and the share of the best five trials that was pruned. In brackets is
the standard error over seeds; for `with - without` it is that of the paired difference.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import numpy as np
import optuna
from _runs import names_of, standard_errors

from metatpe import Task, TransferPruner
from metatpe.bench import get_problem
from metatpe.bench.families import taskset_curves
from metatpe.bench.past import past_task
from metatpe.cli.bench import seeds_of
from metatpe.pruning.positions import n_best

KINDS = ("like", "shuffled", "foreign", "late")
N_TRIALS, N_STEPS = 100, 51
N_RANDOM_STEPS = round(0.6 * N_STEPS)


def curves_of(task: Task) -> np.ndarray:  # (n, steps)
    """Return the curves of a task whose trials all have the same steps."""
    return task.curves[:, 2].reshape(len(task.losses), -1)


def power_laws(rng: np.random.Generator) -> np.ndarray:  # (n, steps)
    """Return curves that keep their order."""
    t, level = np.linspace(0.0, 1.0, N_STEPS), rng.random((N_TRIALS, 1))
    return level + (1.0 - level) * (1.0 + t / 0.1) ** -1.0


def shuffled(task: Task, rng: np.random.Generator) -> Task:
    """Return a past task whose trials have the final losses of others."""
    order, table = rng.permutation(len(task.losses)), task.curves.copy()
    is_last = table[:, 1] == N_STEPS - 1
    table[is_last, 2:] = table[is_last, 2:][order]
    return replace(task, losses=task.losses[order], curves=table)


def case(kind: str, name: str, seed: int) -> tuple[np.ndarray, list[Task]]:
    """Return the curves of the study, (n, steps), and its past."""
    rng = np.random.default_rng([seed, taskset_curves.NAMES.index(name)])
    others = [other for other in taskset_curves.NAMES if other != name]
    past = [past_task(get_problem(o), N_TRIALS, seed, 1 + i) for i, o in enumerate(others)]
    if kind == "foreign":
        return power_laws(rng), past
    curves = curves_of(past_task(get_problem(name), N_TRIALS, seed, 0)).copy()
    if kind == "shuffled":
        past = [shuffled(task, rng) for task in past]
    if kind == "late":
        known = curves[np.isfinite(curves)]
        curves[:, :N_RANDOM_STEPS] = rng.choice(known, (N_TRIALS, N_RANDOM_STEPS))
    return curves, past


def replay(curves: np.ndarray, pruner: TransferPruner) -> np.ndarray:
    """Return epochs, regret and share of the best that is lost."""
    study = optuna.create_study(pruner=pruner)
    n_spent = np.array([_train(study, curve) for curve in curves.tolist()])
    finals = np.where(np.isfinite(curves[:, -1]), curves[:, -1], np.inf)
    is_whole, best = n_spent == N_STEPS, finals.min()
    found, width = finals[is_whole].min(), np.median(finals) - best
    top = np.argsort(finals, kind="stable")[: n_best(len(finals))]
    regret = min(1.0, (found - best) / width)
    return np.array([n_spent.mean() / N_STEPS, regret, 1.0 - is_whole[top].mean()])


def _train(study: optuna.Study, curve: Sequence[float]) -> int:
    """Replay a curve until it is stopped; return the steps."""
    trial = study.ask()
    for step, loss in enumerate(curve):
        trial.report(loss, step)
        if step + 1 < N_STEPS and trial.should_prune():
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return step + 1
    if np.isfinite(curve[-1]):
        study.tell(trial, curve[-1])
    else:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return N_STEPS


def run(arguments: tuple[str, str, int]) -> np.ndarray:  # (2, 3)
    """Return the three measures with and without the past."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    curves, past = case(*arguments)
    return np.stack([replay(curves, TransferPruner(past)), replay(curves, TransferPruner())])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--kinds", type=names_of, default=list(KINDS), metavar="NAME,...", help="of the past")
    add("--seeds", type=seeds_of, default=range(5), metavar="N", help="how many, or 20-39")
    add("--jobs", type=int, default=2, metavar="N", help="processes")
    args = parser.parse_args()
    if unknown := [kind for kind in args.kinds if kind not in KINDS]:
        parser.error(f"{unknown[0]!r} is none of {', '.join(KINDS)}")
    print(f"{'':28}{'epochs':>16}{'regret':>16}{'lost':>16}")
    with ProcessPoolExecutor(args.jobs) as pool:
        for kind in args.kinds:
            cases = [(kind, name, seed) for seed in args.seeds for name in taskset_curves.NAMES]
            found = np.array(list(pool.map(run, cases)))
            by_seed = found.reshape(len(args.seeds), -1, 2, 3).mean(axis=1)  # (seeds, 2, 3)
            show(f"{kind}, with", by_seed[:, 0])
            show(f"{kind}, without", by_seed[:, 1])
            show(f"{kind}, with - without", by_seed[:, 0] - by_seed[:, 1])


def show(name: str, rows: np.ndarray) -> None:  # (seeds, 3)
    """Print means and standard errors."""
    cells = zip(rows.mean(axis=0), standard_errors(rows), strict=True)
    print(f"{name:28}" + "".join(f"{mean:9.3f} ({error:.3f})" for mean, error in cells))


if __name__ == "__main__":
    main()
