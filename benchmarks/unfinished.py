"""What unfinished curves teach a sampler: the same pruner with and without its expectations.

    python benchmarks/unfinished.py --samplers transfer,meta-tpe-portfolio --seeds 5 --jobs 8 \
        --out results/unfinished

TransferPruner stops trials on TaskSet, leave one task out. What a sampler learns of a stopped
trial:

    silent   that it was pruned: it stands behind all completed trials
    sure     the value that it was expected to reach, as if it had been seen
    whole    the same with its standard deviation, which TransferSampler uses

Printed is the mean regret with the epochs of some full trainings (see `metatpe.bench.spending`),
and the difference to `silent` in standard errors over runs of the same task and seed; negative is
better. Runs that are finished are skipped, so that the same command goes on.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import numpy as np
from _runs import in_errors, names_of

from metatpe.bench.plan import plan
from metatpe.bench.records import Record, read_finished
from metatpe.bench.run import run_all
from metatpe.bench.spending import regret_at
from metatpe.cli.bench import seeds_of

ARMS = {"silent": "transfer-silent", "sure": "transfer-sure", "whole": "transfer"}


def show_progress(n_done: int, n_runs: int, _: Record | None) -> None:
    """Print how far it is."""
    print(f"{n_done} of {n_runs} runs", file=sys.stderr)


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--samplers", type=names_of, default=["transfer"], metavar="NAME,...")
    add("--seeds", type=seeds_of, default=range(5), metavar="N", help="how many, or 20-39")
    add("--evaluations", type=int, default=60, metavar="N", help="of each run")
    add("--at", type=names_of, default=["5", "10", "15"], metavar="N,...", help="trainings")
    add("--jobs", type=int, default=2, metavar="N", help="processes")
    add("--out", type=Path, default=Path("results/unfinished"), help="folder of the records")
    args = parser.parse_args()
    budgets = [float(text) for text in args.at]
    for sampler in args.samplers:
        names = (["taskset-curves"], [sampler], args.seeds)
        runs = plan(*names, n_evaluations=args.evaluations, pruners=list(ARMS.values()))
        run_all(runs, args.out, jobs=args.jobs, on_progress=show_progress)
        records = [r for r in read_finished(args.out, runs) if isinstance(r, Record)]
        found = {
            (r.run.pruner, r.run.problem, r.run.seed): [regret_at(r, t) for t in budgets]
            for r in records
            if not r.error
        }
        print(f"{sampler:24}" + "".join(f"{'at ' + text:>18}" for text in args.at))
        pairs = sorted({(problem, seed) for _, problem, seed in found})
        regret = {
            arm: np.array([found[pruner, *pair] for pair in pairs]) for arm, pruner in ARMS.items()
        }
        for arm, values in regret.items():
            errors = in_errors(values - regret["silent"])
            cells = zip(values.mean(axis=0), errors, strict=True)
            print(f"  {arm:22}" + "".join(f"{mean:10.3f} ({e:+5.1f})" for mean, e in cells))


if __name__ == "__main__":
    main()
