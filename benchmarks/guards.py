"""What the guards cost where the past fits: the sampler beside the paper's method without them.

    python benchmarks/guards.py --seeds 100 --jobs 2
    python benchmarks/guards.py --seeds 20 --suites nmt

Both are run on the datasets of HPOlib and NMT-Bench with the same past (100 random configurations
of each other dataset of the suite), the same five warm starts and the same noise, 100 evaluations.
`plain` has the sampler's split and no guard (docs/method/guards.md): no silence after the warm
starts, no trust, no turns, nothing turned round, kernels of bad observations as wide as all of
them say, as many candidates of each task, and where no column is kept every past task counts as
the same.

Printed are the suites' means of the normalised hypervolume after 5 to 100 evaluations, the paired
difference of the sampler from `plain`, and how many standard errors over seeds that is. With forty
seeds and more, the last two lines of a suite have the lowest and the highest mean of `plain` over
twenty seeds in a row: how far two such means may be apart for no other reason than their draws.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from concurrent.futures import ProcessPoolExecutor

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import numpy as np
import optuna

from metatpe import MetaTPESampler
from metatpe.tpe.acquisition import Densities, score
from metatpe.study.moment import Moment
from metatpe.tpe.importance import importances, kept_columns, mean_importances
from metatpe.tpe.kde import Parzen, sample
from metatpe.tpe.kernel import similarities, task_weights
from metatpe.study.record import Plan
from metatpe.past.densities import Past
from metatpe.bench import get_problem, get_suite, hypervolume_curve
from metatpe.bench.past import past_task
from metatpe.bench.plan import plan

AT = (5, 10, 20, 30, 50, 100)
N_IN_A_ROW = 20
WAYS = ("plain", "guarded")


class Plain(MetaTPESampler):
    """The paper's method after its warm starts."""

    def _acquired(
        self, moment: Moment, *, rng: np.random.Generator, may_repeat: bool = False
    ) -> Plan:
        past, columns = self._past(moment.space), moment.space.columns
        X_good, X_bad, _ = self._split(moment)
        target = Densities(Parzen(columns, X_good), Parzen(columns, X_bad))
        tasks = [target, *past.densities]
        counts = np.full(len(tasks), self._n_ei_candidates)
        X = sample([task.good for task in tasks], counts, rng=rng)
        X = self._only_new(moment, X, moment.is_new)
        best = X[np.argmax(score(tasks, self._weights(target.good, past), X))]
        return Plan("acquisition", moment.values(best))

    def _weights(self, good: Parzen, past: Past) -> np.ndarray:
        """Return the task kernel; where no column would be kept, all tasks are the same."""
        gamma, eta, n_past = self._settings.gamma, self._settings.eta, len(past.densities)
        if len(good) < eta:
            return task_weights(np.ones(n_past))
        shared, total, counts = past.shared
        V = mean_importances(importances(good, gamma)[shared], total, counts)
        kept = tuple(int(shared[j]) for j in kept_columns(V, len(good), eta))
        return task_weights(similarities(good, past.nodes(kept, len(good)), n_past))


def run(name: str, way: str, seed: int) -> np.ndarray:
    """Return the hypervolume after each evaluation."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    problem = get_problem(name)
    (planned,) = plan([name], ["meta-tpe"], [seed])  # whose past the stored results have as well
    past = [
        past_task(get_problem(p.problem), planned.n_past, seed, p.stream) for p in planned.past
    ]
    sampler = (Plain if way == "plain" else MetaTPESampler)(past, seed=seed)
    study = optuna.create_study(directions=problem.directions, sampler=sampler)
    values = []
    for _ in range(AT[-1]):
        trial = study.ask(problem.space)
        values.append(problem.evaluate(trial.params, seed))
        study.tell(trial, values[-1])
    return hypervolume_curve(problem, np.array(values))


def show(suite: str, curves: dict[str, np.ndarray]) -> None:  # of each way (seeds, AT)
    difference = curves["guarded"] - curves["plain"]
    error = difference.std(axis=0, ddof=1) / math.sqrt(len(difference))
    in_errors = difference.mean(axis=0) / np.where(error > 0, error, 1.0)
    n_rows = len(difference) // N_IN_A_ROW * N_IN_A_ROW
    rows = [
        *((way, "{:.4f}", curves[way].mean(axis=0)) for way in WAYS),
        ("guarded - plain", "{:+.4f}", difference.mean(axis=0)),
        ("in standard errors", "{:+.1f}", in_errors),
    ]
    if n_rows > N_IN_A_ROW:
        blocks = curves["plain"][:n_rows].reshape(-1, N_IN_A_ROW, len(AT)).mean(axis=1)
        rows.append(("plain, lowest of twenty", "{:.4f}", blocks.min(axis=0)))
        rows.append(("plain, highest", "{:.4f}", blocks.max(axis=0)))
    print(f"{suite:24}" + "".join(f"{n:>9}" for n in AT))
    for label, form, row in rows:
        print(f"{label:24}" + "".join(f"{form.format(v):>9}" for v in row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--suites", default="hpolib,nmt")
    args = parser.parse_args()
    at = [n - 1 for n in AT]
    with ProcessPoolExecutor(args.jobs) as pool:
        for suite in args.suites.split(","):
            names = [problem.name for problem in get_suite(suite)]
            cases = [(n, way, s) for way in WAYS for s in range(args.seeds) for n in names]
            curves = np.array(list(pool.map(run, *zip(*cases, strict=True))))[:, at]
            means = curves.reshape(len(WAYS), args.seeds, len(names), len(AT)).mean(axis=2)
            show(suite, dict(zip(WAYS, means, strict=True)))


if __name__ == "__main__":
    main()
