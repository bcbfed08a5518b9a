"""Sampler and pruner together: what TransferSampler with TransferPruner needs, in full trainings.

    metatpe bench run --problem taskset-curves --method transfer --pruner transfer \
        --evaluations 60 --seeds 5 --jobs 8 --out results/joint
    metatpe bench run --problem taskset-curves --method optuna-tpe,random --evaluations 300 \
        --pruner none,median-10,percentile-25-10,halving-4,hyperband-4 --seeds 5 --jobs 8 \
        --out results/joint
    python benchmarks/joint.py results/joint --budget 50

Printed is the mean regret of each method and pruner with the epochs of `--budget` full trainings
(see `metatpe.bench.spending`), and how many trainings ours needs for the same. `distinct` is the
share of trials that trained a setting which the run had not trained before. Read it first: TaskSet
has 1,000 settings, and a configuration is evaluated at the nearest. A sampler that stays in one
cell of this step function gets the same curve again and again, which no real training would give
it. A rival with few distinct settings is weaker here than elsewhere, so that the comparison with
the strongest rival, random search among them, says more than that with TPE.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from metatpe.bench.families.taskset import nearest
from metatpe.bench.records import Record, read_records
from metatpe.bench.spending import Spending, spending

OURS = ("transfer", "transfer")  # pruner and method
Key = tuple[str, str]


def distinct_shares(records: Sequence[Record]) -> dict[Key, float]:
    """Return the mean share of different settings among the trials of each pruner and method."""
    found: dict[Key, list[float]] = {}
    for record in records:
        settings = [nearest(e.params) for e in record.evaluations]
        key = (record.run.pruner, record.run.method)
        found.setdefault(key, []).append(len(set(settings)) / len(settings))
    return {key: float(np.mean(shares)) for key, shares in found.items()}


def line(rival: Spending, ours: Spending, distinct: float, budget: float) -> str:
    """Return the line of a rival."""
    reached = rival.at(budget)
    if reached is None:
        return f"{rival.name:34} runs end after {rival.until:.0f} trainings, before the budget"
    needed = ours.needed(reached)
    text = f"more than {ours.until:.1f}" if needed is None else f"{needed:.2f}"
    return f"{rival.name:34}{rival.n_runs:6}{distinct:10.0%}{reached:10.3f}{text:>16}"


def main() -> None:
    """Print what each rival reaches, and what ours needs for it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--budget", type=float, default=50.0, metavar="TRAININGS")
    args = parser.parse_args()
    records = [r for r in read_records(args.results) if isinstance(r, Record) and not r.error]
    curves = {(c.pruner, c.method): c for c in spending(records)}
    distinct = distinct_shares(records)
    ours = curves.pop(OURS)
    at = {n: ours.at(n) for n in (5, 10, 20)}
    known = ", ".join(f"{value:.3f} with {n}" for n, value in at.items() if value is not None)
    print(f"ours: {ours.n_runs} runs, {distinct[OURS]:.0%} distinct, regret {known} trainings")
    print(f"{'rival':34}{'runs':>6}{'distinct':>10}{'regret':>10}{'ours needs':>16}")
    order = sorted(curves, key=lambda key: curves[key].at(args.budget) or 2.0)
    for key in order:
        print(line(curves[key], ours, distinct[key], args.budget))


if __name__ == "__main__":
    main()
