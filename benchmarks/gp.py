"""How fast and how good: samplers with Gaussian processes beside Optuna's GPSampler in one run.

    python benchmarks/gp.py --seeds 3 [--problem hpolib/slice_localization] [--json gp.json]

A run is 100 evaluations of a dataset of HPOlib, with 100 random configurations of each of the
other three as the past, on one core. Timed are the suggestions alone, the first ones included,
which fit the models of the past; both the time that passes and the time of the processor, which
does not count what others do on the machine. Before anything is timed, the posterior of our
models is compared with that of BoTorch. Printed are the seconds of a run, the milliseconds of its
last suggestions, the ratio to GPSampler, and the normalised hypervolume on the way.

Then the seconds of a suggestion of TransferSampler with ten past tasks of 200 trials each, after
100 and 500 trials in ten dimensions with two objectives, beside GPSampler without any past (after
100; the study is the "search" of benchmarks/suggest.py).
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core for everyone, before numpy is loaded

import numpy as np
import optuna
import suggest
import torch
from botorch.models import SingleTaskGP
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean

from metatpe import TransferSampler
from metatpe.bench import get_method, get_problem, hypervolume_curve
from metatpe.bench.methods import Setup
from metatpe.bench.past import past_task
from metatpe.bench.plan import plan
from metatpe.gp.process import fit

RIVAL = "optuna-gp-log"
METHODS = ("transfer", "rgpe-ehvi", "rgpe-parego", "tstr-ehvi", "tstr-parego", "optuna-gp", RIVAL)
N_EVALUATIONS, N_LAST = 100, 20
AT = (10, 20, 30, 50, 100)


def check_agreement() -> None:
    """Stop if our models predict something else than BoTorch's with the same settings."""
    rng = np.random.default_rng(0)
    X, Z, d = rng.random((50, 4)), rng.random((20, 4)), 4
    y = np.sin(4 * X[:, 0]) + X[:, 1]
    ours = fit(X, y, np.arange(d), np.ones(d, dtype=np.bool_))
    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=d))
    kernel.base_kernel.lengthscale = 1.0 / torch.from_numpy(ours.scale)
    kernel.outputscale = ours.amplitude
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(1e-8))
    likelihood.noise = ours.amplitude * ours.noise
    theirs = SingleTaskGP(
        torch.from_numpy(X),
        torch.from_numpy(y[:, None]),
        likelihood=likelihood.double(),
        covar_module=kernel.double(),
        mean_module=ZeroMean(),
        outcome_transform=None,
    )
    with torch.no_grad():
        posterior = theirs.posterior(torch.from_numpy(Z))
    mean, variance = ours.predict(Z)
    np.testing.assert_allclose(mean, posterior.mean[:, 0].numpy(), atol=1e-5)
    np.testing.assert_allclose(variance, posterior.variance[:, 0].numpy(), atol=1e-5)


def start_of(name: str, seed: int) -> Setup:
    """Return what the methods know before a run, as `metatpe bench run` gives it."""
    (run,) = plan([name], [METHODS[0]], [seed])
    past = tuple(
        past_task(get_problem(task.problem), run.n_past, seed, task.stream) for task in run.past
    )
    return Setup(get_problem(name), past, seed, run.n_start)


def search(name: str, start: Setup) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the hypervolume after each evaluation, and the seconds of each suggestion."""
    method, problem = get_method(name), start.problem
    study = optuna.create_study(directions=problem.directions, sampler=method.make(start))
    for configuration in method.first_configurations(start):
        study.enqueue_trial(configuration)
    is_log = method.is_log(problem)
    values, seconds = np.empty((N_EVALUATIONS, problem.n_objectives)), []
    for i in range(N_EVALUATIONS):
        began = time.perf_counter(), time.process_time()
        trial = problem.ask(study)
        seconds.append((time.perf_counter() - began[0], time.process_time() - began[1]))
        values[i] = problem.evaluate(trial.params, start.seed)
        study.tell(trial, np.where(is_log, np.log(np.abs(values[i])), values[i]).tolist())
    wall, cpu = np.array(seconds).T
    return hypervolume_curve(problem, values), wall, cpu


def seconds_of(sampler: optuna.samplers.BaseSampler, n_trials: int) -> float:
    """Return the median time of a suggestion after so many trials."""
    study = suggest.filled_study("search", n_trials)
    return float(np.median(suggest.time_suggestions(study, sampler, 5)))


def show_suggestions() -> None:
    for n in (100, 500):
        seconds = seconds_of(TransferSampler(suggest.past_tasks(10, 200), seed=0), n)
        print(f"TransferSampler, 10 x 200 past trials, after {n} trials: {seconds:.2f} s")
    rival = seconds_of(optuna.samplers.GPSampler(seed=0), 100)
    print(f"GPSampler, no past, after 100 trials: {rival:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problem", default="hpolib/slice_localization")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--json", help="write the numbers to this file")
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    torch.set_num_threads(1)
    check_agreement()
    starts = [start_of(args.problem, seed) for seed in range(args.seeds)]
    # Methods take turns: a slow moment of the machine hits them all.
    runs = [{name: search(name, start) for name in METHODS} for start in starts]
    results = {name: summary([run[name] for run in runs]) for name in METHODS}
    show(args.problem, results)
    show_suggestions()
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"problem": args.problem, "seeds": args.seeds, **results}, file, indent=1)


def summary(runs: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> dict[str, object]:
    curves, wall, cpu = (np.array(part) for part in zip(*runs, strict=True))
    return {
        "seconds": float(wall.sum(axis=1).mean()),
        "cpu_seconds": float(cpu.sum(axis=1).mean()),
        "last_ms": float(1e3 * np.median(cpu[:, -N_LAST:])),
        "hypervolume": {n: float(curves[:, n - 1].mean()) for n in AT},
    }


def show(problem: str, results: dict[str, dict[str, object]]) -> None:
    columns = ("s/run", "CPU s/run", "ratio", "last ms", *map(str, AT))
    print(f"{problem:<28}" + "".join(f"{column:>10}" for column in columns))
    for name, row in results.items():
        times = [row["seconds"], row["cpu_seconds"]]
        times += [row["cpu_seconds"] / results[RIVAL]["cpu_seconds"], row["last_ms"]]
        volumes = "".join(f"{v:10.3f}" for v in row["hypervolume"].values())
        print(f"{name:<28}" + "".join(f"{t:10.2f}" for t in times) + volumes)


if __name__ == "__main__":
    main()
