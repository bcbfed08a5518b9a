"""How fast: one update of the task weights, in the paper's setting.

    python benchmarks/task_kernel.py

Ten dimensions, two objectives, 200 observations of each task, five past tasks, S = 1,000 points,
three kept dimensions. Timed is all that has to be done after a new good observation of the current
task: ranking, split, the density of its good observations, importances and similarities. Then the
same with 10,000 observations of each past task: from scratch, and later. One core, medians;
`metatpe bench reproduce task-kernel-time` draws it over the number of observations and of tasks.
"""

from __future__ import annotations

from functools import partial

from metatpe.bench.figures.task_kernel import measure_update
from metatpe.bench.run import in_one_thread

N_TIMES = 5


def main() -> None:
    for n_past in (200, 10_000):
        runs = [in_one_thread(partial(measure_update, 5, n_past)) for _ in range(N_TIMES)]
        first, update = (sorted(1000 * s[i] for s in runs) for i in (0, 1))
        print(
            f"5 past tasks of {n_past:,} observations, {runs[0].n_kept} kept dimensions: "
            f"from scratch {first[N_TIMES // 2]:.1f} ms, "
            f"an update {update[N_TIMES // 2]:.2f} ms ({update[0]:.2f} to {update[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
