"""TransferSampler and its rivals on the development suites, run by run.

    metatpe bench run --problem oboe --method METHODS --seeds 3 --evaluations 50 --out runs/
    metatpe bench run --problem taskset --method METHODS --seeds 4 --out runs/
    python benchmarks/development.py docs/development
    python benchmarks/development.py runs/ --suites oboe,taskset --at 5,10,20

Without past studies, and with four evaluations at the same time:

    metatpe bench run --problem hpobench,nasbench201 --seeds 2 --evaluations 200 --out alone/ \\
        --method transfer-alone,optuna-gp,optuna-tpe-multivariate
    metatpe bench run --problem hpobench,nasbench201 --seeds 3 --batch 4 --out batch/ \\
        --method METHODS
    python benchmarks/development.py docs/development/no-past --suites hpobench,nasbench201 \\
        --first transfer-alone --at 5,10,20,30,50,100,200
    python benchmarks/development.py docs/development/batch-4 --suites hpobench,nasbench201 \\
        --at 4,12,20,32,52,100 --picture docs/figures/batch-4.png

Printed is the mean over all runs of a suite that every method has finished, as a Markdown table,
and in brackets by how many standard errors over runs the first method is ahead. With two
objectives the score is the normalised hypervolume; with one it is the share of the way from the
median configuration of the table to the best one, 0 for anything worse.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from _runs import in_errors, names_of

from metatpe.bench import get_problem, hypervolume_curve, read_results
from metatpe.bench.families.taskset import curves as taskset_curves
from metatpe.bench.figures.style import (
    base,
    count_axis,
    draw_curve,
    legend_below,
    method_lines,
    panels,
    style,
)
from metatpe.bench.problems import suite_of
from metatpe.bench.records import Trace

AT = (1, 3, 5, 10, 20, 30, 50, 100)
Scores = dict[tuple[str, int], np.ndarray]  # problem and seed -> the score after each evaluation


def score(trace: Trace) -> np.ndarray:  # (n,)
    """Return how good a run is after each evaluation, from 0 to 1."""
    problem = get_problem(trace.run.problem)
    if problem.n_objectives > 1:
        return hypervolume_curve(problem, trace.values)
    if problem.table is None:  # TaskSet's configurations are no grid
        losses = taskset_curves(problem.name)[:, -1]
    else:
        losses = problem.losses(problem.table.reshape(-1, 1))[:, 0]
    middle, best = np.nanmedian(losses), np.nanmin(losses)
    reached = np.fmin.accumulate(problem.losses(trace.values)[:, 0])
    return (middle - np.fmin(reached, middle)) / (middle - best)


def scores_of(folder: Path, suite: str) -> dict[str, Scores]:
    """Return the scores of each method, on the runs that all methods have finished."""
    found: dict[str, Scores] = {}
    for trace in read_results(folder).traces:
        if suite_of(trace.run.problem) == suite:
            own = found.setdefault(trace.run.method, {})
            own[trace.run.problem, trace.run.seed] = score(trace)
    shared = set.intersection(*map(set, found.values())) if found else set()
    return {method: {run: own[run] for run in sorted(shared)} for method, own in found.items()}


def show(suite: str, found: dict[str, Scores], first: str, at: Sequence[int]) -> None:
    """Print the table of a suite, the method that the others are compared with first."""
    stacked = {method: np.stack([*own.values()]) for method, own in found.items()}
    at = [n for n in at if n <= stacked[first].shape[1]]
    means = {method: own[:, [n - 1 for n in at]] for method, own in stacked.items()}
    print(f"\n{suite}, {len(means[first])} runs of each method\n")
    print("| method | " + " | ".join(map(str, at)) + " |")
    print("|---" * (1 + len(at)) + "|")
    for method in sorted(means, key=lambda m: (m != first, -means[m].mean())):
        ahead = in_errors(means[first] - means[method])
        pairs = zip(means[method].mean(axis=0), ahead, strict=True)
        cells = [f"{mean:.3f}" + ("" if method == first else f" ({z:+.1f})") for mean, z in pairs]
        print(f"| {method} | " + " | ".join(cells).replace("-", "−") + " |")


def draw(found: dict[str, dict[str, Scores]], file: Path) -> None:
    """Draw the means of all methods with their standard errors, one panel per suite."""
    with style():
        picture, (axes,) = panels(1, len(found), 3.4)
        for axis, (suite, of_method) in zip(axes, found.items(), strict=True):
            lines = method_lines(list(of_method))
            for method in of_method:
                if base(method) != method and base(method) in lines:  # they look alike
                    lines[method] = lines[method]._replace(colour="#D55E00", marker="v")
            for i, (method, own) in enumerate(of_method.items()):
                scores = np.stack([*own.values()])
                error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
                x = np.arange(1, scores.shape[1] + 1)
                draw_curve(axis, x, scores.mean(axis=0), error, lines[method], label=method, nth=i)
            count_axis(axis, [n for n in (1, 2, 5, 10, 20, 50, 100, 200) if n <= len(x)])
            axis.set(title=suite, xlabel="evaluations", ylim=(0.5, 1.0))
        axes[0].set_ylabel("normalised hypervolume")
        legend_below(picture, 3)
        picture.savefig(file, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="of records or compact files")
    parser.add_argument("--suites", type=names_of, default=["oboe", "taskset"], metavar="NAME,...")
    parser.add_argument("--first", default="transfer", metavar="METHOD", help="is compared")
    parser.add_argument("--at", type=names_of, default=list(AT), metavar="N,...")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the curves, too")
    args = parser.parse_args()
    found = {suite: scores_of(args.folder, suite) for suite in args.suites}
    for suite, own in found.items():
        if args.first not in own:
            parser.error(f"{args.folder} has no run of {args.first} on {suite}.")
        show(suite, own, args.first, [int(n) for n in args.at])
    if args.picture:
        draw(found, args.picture)


if __name__ == "__main__":
    main()
