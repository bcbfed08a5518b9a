"""Which observations count as good with several objectives: four rules, beside Optuna's TPE.

    python benchmarks/split.py --seeds 20 --jobs 2
    python benchmarks/split.py --seeds 40 --problems hpolib,nmt

All runs are without a past and begin with the same five random configurations. The rules, for n
observations of m objectives:

    front      max(ceil(gamma * n), size of the first front) are good, as in the authors' code
    few        max(ceil(gamma * n), min(size of the first front, m + 1)), the sampler's own rule
               for two objectives
    fraction   ceil(gamma * n), the paper's text, and the sampler's own rule for more than two
    crowding   as many as with `few`, but chosen by crowding distance with any number of objectives

The first three choose within a front by crowding distance with two objectives and by hypervolume
with more. So `few` and `crowding` are the same with two objectives.

Problems are the suites of `metatpe bench` (the mean over their datasets), DTLZ2 in six dimensions
and bowls with an optimum for each objective, each with two, three and four objectives. Printed are
the normalised hypervolume after 10 to 100 evaluations (of DTLZ2 and the bowls the part of the box
below a reference point, so that 1 is out of reach), and how many standard errors over seeds that
is ahead of `crowding` and of Optuna's TPE.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import moocore
import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution

from metatpe import MetaTPESampler, Space
from metatpe.bench import get_problem, get_suite, hypervolume_curve
from metatpe.samplers.guards import Rules
from metatpe.tpe import pareto

AT = (10, 20, 30, 50, 100)
N_START, D = 5, 6
UNIT = FloatDistribution(0, 1)
CROWDING, OPTUNA = "crowding", "optuna-tpe-multivariate"
METHODS = ("front", "few", "fraction", CROWDING, OPTUNA)
SUITES = ("hpolib", "nmt")
FUNCTIONS = tuple(f"{name}-{m}" for name in ("dtlz2", "bowls") for m in (2, 3, 4))
PROBLEMS = (*SUITES, *FUNCTIONS)
N_GOOD, BY_VOLUME = pareto.n_good, pareto.BY_VOLUME


def whole_front(
    n: int, gamma: float, n_front: int, n_objectives: int, *, keeps_front: bool = True
) -> int:
    """Return how many are good by the rule of the authors' code."""
    fraction = N_GOOD(n, gamma, n_front, n_objectives, keeps_front=False)
    return min(n - 1, max(fraction, n_front)) if n > 1 else n


def few(n: int, gamma: float, n_front: int, n_objectives: int, *, keeps_front: bool = True) -> int:
    """Return how many are good with up to m + 1 of the first front."""
    fraction = N_GOOD(n, gamma, n_front, n_objectives, keeps_front=False)
    wanted = max(fraction, min(n_front, n_objectives + 1)) if keeps_front else fraction
    return min(n - 1, wanted) if n > 1 else n


def dtlz2(x: np.ndarray, m: int) -> np.ndarray:
    radius = 1.0 + float(np.sum((x[m - 1 :] - 0.5) ** 2))
    cosines, sines = np.cos(x[: m - 1] * math.pi / 2), np.sin(x[: m - 1] * math.pi / 2)
    return radius * np.append(np.cumprod([1.0, *cosines])[::-1][:-1], 1.0) * [1.0, *sines[::-1]]


def bowls(X: np.ndarray, m: int, seed: int) -> np.ndarray:  # (..., D) -> (..., m)
    rng = np.random.default_rng([seed, 1])
    centres, scales = rng.random((m, D)), 10.0 ** (2.0 * rng.random((m, D)))
    return np.sum(scales * (X[..., None, :] - centres) ** 2, axis=-1)


class Function:
    """A continuous problem; each seed makes another one of the bowls."""

    def __init__(self, name: str, seed: int) -> None:
        self.space: dict[str, BaseDistribution] = {f"x{j}": UNIT for j in range(D)}
        self._kind, m = name.split("-")
        self.directions, self._seed = ["minimize"] * int(m), seed
        some = np.random.default_rng([seed, 2]).random((500, D))
        values = np.array([self.values(x) for x in some])
        self._reference = np.quantile(values, 0.9, axis=0)

    def values(self, x: np.ndarray) -> np.ndarray:
        m = len(self.directions)
        return dtlz2(x, m) if self._kind == "dtlz2" else bowls(x, m, self._seed)

    def evaluate(self, params: dict[str, float], seed: int) -> Sequence[float]:
        return self.values(np.array([params[name] for name in self.space])).tolist()

    def curve(self, values: np.ndarray) -> np.ndarray:
        volumes = [moocore.hypervolume(values[:n], ref=self._reference) for n in AT]
        return np.array(volumes) / np.prod(self._reference)


def run(job: tuple[str, str, int]) -> np.ndarray:  # (AT,)
    """Return the hypervolume of a run on one problem."""
    method, name, seed = job
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pareto.n_good = whole_front if method == "front" else few
    pareto.BY_VOLUME = 99 if method == CROWDING else BY_VOLUME
    problem = Function(name, seed) if name in FUNCTIONS else get_problem(name)
    study = optuna.create_study(directions=problem.directions, sampler=sampler_of(method, seed))
    space = Space(problem.space)
    start = np.random.default_rng([seed, 3]).random((N_START, len(space)))
    for configuration in space.decode(space.columns.snap(start)):
        study.enqueue_trial(configuration)
    for _ in range(AT[-1]):
        trial = study.ask(problem.space)
        study.tell(trial, problem.evaluate(trial.params, seed))
    values = np.array([trial.values for trial in study.trials])
    if isinstance(problem, Function):
        return problem.curve(values)
    return hypervolume_curve(problem, values)[[n - 1 for n in AT]]


def sampler_of(method: str, seed: int) -> optuna.samplers.BaseSampler:
    if method == OPTUNA:
        return optuna.samplers.TPESampler(multivariate=True, n_startup_trials=N_START, seed=seed)
    sampler = MetaTPESampler(n_startup_trials=N_START, seed=seed)
    sampler.rules = Rules(front=method != "fraction")
    return sampler


def ahead(curves: np.ndarray, others: np.ndarray) -> np.ndarray:  # (seeds, AT) each -> (AT,)
    """Return by how many standard errors over seeds the curves are ahead."""
    gap = curves - others
    error = gap.std(axis=0, ddof=1) / len(gap) ** 0.5
    return gap.mean(axis=0) / np.maximum(error, 1e-12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="%(default)s, or some")
    args = parser.parse_args()
    if args.seeds < 2:
        parser.error("--seeds must be 2 or more: one says nothing of standard errors.")
    if unknown := [name for name in args.problems.split(",") if name not in PROBLEMS]:
        parser.error(f"there is no {', '.join(unknown)}, but {', '.join(PROBLEMS)}.")
    width = max(map(len, METHODS))
    columns = " ".join(f"{n:>6}" for n in AT)
    print(f"{'':<9}{'':<{width}} {columns}   ahead of crowding (SE)          ahead of Optuna (SE)")
    for suite in args.problems.split(","):
        names = [p.name for p in get_suite(suite)] if suite in SUITES else [suite]
        jobs = [(m, name, s) for m in METHODS for name in names for s in range(args.seeds)]
        with ProcessPoolExecutor(args.jobs) as pool:
            found = np.array(list(pool.map(run, jobs, chunksize=4)))
        curves = found.reshape(len(METHODS), len(names), args.seeds, len(AT)).mean(axis=1)
        reached = dict(zip(METHODS, curves, strict=True))
        for method, own in reached.items():
            means = " ".join(f"{x:.4f}" for x in own.mean(axis=0))
            gaps = [
                " ".join(f"{x:+5.1f}" for x in ahead(own, reached[other]))
                for other in (CROWDING, OPTUNA)
            ]
            print(f"{suite:<9}{method:<{width}} {means}  ", "   ".join(gaps), flush=True)


if __name__ == "__main__":
    main()
