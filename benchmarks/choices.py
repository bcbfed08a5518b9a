"""Time and memory of a suggestion where a categorical parameter has very many choices.

    python benchmarks/choices.py --choices 100000

Each sampler runs in a process of its own: a past study of 30 random trials, then 15 trials of two
parameters. Optuna's TPE, which has no past, is what the others are compared with; much of the time
is Optuna's own, which compares and copies the choices. The memory is the largest that the process
had, Python and the packages included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from statistics import median

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import Trial

from metatpe import MetaTPESampler, TransferSampler
from metatpe.baselines import RGPESampler, TSTRSampler, WarmStartSampler

KINDS = (MetaTPESampler, TransferSampler, RGPESampler, TSTRSampler, WarmStartSampler)
NAMES = ("TPESampler", *(kind.__name__ for kind in KINDS))
N_PAST, N_TRIALS = 30, 15


def evaluated(study: Study, n: int, n_choices: int) -> list[float]:
    """Return the seconds of each of n suggestions."""
    space = {"c": CategoricalDistribution(range(n_choices)), "x": FloatDistribution(0, 1)}
    seconds = []
    for _ in range(n):
        start = time.perf_counter()
        trial = study.ask(space)
        seconds.append(time.perf_counter() - start)
        study.tell(trial, loss(trial, n_choices))
    return seconds


def loss(trial: Trial, n_choices: int) -> float:
    return float((trial.params["c"] / n_choices - 0.3) ** 2 + trial.params["x"])


def sampler_called(name: str, past: Study) -> BaseSampler:
    if name == "TPESampler":
        return TPESampler(seed=0)
    (kind,) = (kind for kind in KINDS if kind.__name__ == name)
    return kind([past], seed=0)


def measure(name: str, n_choices: int) -> dict[str, float]:
    """Return the seconds of a suggestion and the memory of this process in MB."""
    import resource

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    past = optuna.create_study(sampler=RandomSampler(seed=0))
    evaluated(past, N_PAST, n_choices)
    study = optuna.create_study(sampler=sampler_called(name, past))
    seconds = evaluated(study, N_TRIALS, n_choices)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"median": median(seconds), "largest": max(seconds), "MB": memory}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--choices", type=int, default=100_000)
    parser.add_argument("--only", help="measure one sampler in this process, and print JSON")
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(measure(arguments.only, arguments.choices)))
        return
    print(f"{'sampler':<18}{'median s':>10}{'largest s':>11}{'MB':>7}{'x TPE':>8}")
    first = None
    for name in NAMES:
        command = [sys.executable, __file__, "--choices", str(arguments.choices), "--only", name]
        found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        first = first or found["median"]
        times = f"{found['median']:>10.2f}{found['largest']:>11.2f}"
        print(f"{name:<18}{times}{found['MB']:>7.0f}{found['median'] / first:>8.1f}")


if __name__ == "__main__":
    main()
