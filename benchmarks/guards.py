"""What each rule beyond the paper is worth: the sampler with all of its rules, and without one.

    python benchmarks/guards.py --without guards --seeds 20 --jobs 2
    python benchmarks/guards.py --sampler transfer --without all --suites hpolib,nmt --kinds like
    python benchmarks/guards.py --without fewer --workers 8 --suites hpolib,nmt --kinds like
    python benchmarks/guards.py --read docs/guards/meta-suites.json --summary

A rule should cost nothing where the past fits, and help where it does not. For each suite and each
kind of past (`_pasts.py` has them) the normalised hypervolume after some evaluations is printed,
the mean over the suite's problems and over seeds. Below it is, for each rule, the mean of the
paired differences, with it minus without it, and in brackets how many of its standard errors over
seeds that is; positive where the rule helps. `_runs.py` says what can be named in `--without`.

`fewer` needs workers that collide (`--workers`), in a space that is finite, `ten` more than ten
past tasks (`--tasks 20 --suites oboe`), `column` a start without the past (`--start random`), and
`reserve` past tasks whose configurations do not fit (`--kinds renamed`).
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core a run, before numpy is loaded

import numpy as np
from _pasts import KINDS
from _runs import Case, arms_of, in_errors, names_of, parser_of, run_all

from metatpe.bench.problems import expand

AT = (10, 20, 30, 50, 100)
WITH = "all rules"
GROUPS = {  # columns of the summary -> kinds of past
    "related": ("like",),
    "noise, other problems": ("noise", "other"),
    "reversed": ("reverse",),
    "renamed parameters": ("renamed",),
}


def measure(args: Any) -> dict[str, Any]:
    """Return the means over problems, for each suite, kind of past, arm and seed."""
    arms = {WITH: (), **arms_of(args.sampler, args.without, args.workers)}
    at = [n for n in AT if n <= args.evaluations]
    settings = {"n_tasks": args.tasks, "n_workers": args.workers, "start": args.start}
    settings["n_evaluations"] = max(at)
    cells = list(itertools.product(args.suites, args.kinds, arms))
    members = {suite: expand(suite) for suite in args.suites}

    def case(name: str, kind: str, arm: str, seed: int) -> Case:
        return Case(args.sampler, name, kind, seed, arms[arm], **settings)

    curves = run_all(
        # Seed by seed, with all arms beside each other.
        [case(n, k, a, s) for s in args.seeds for suite, k, a in cells for n in members[suite]],
        args.jobs,
    )
    results = []
    for suite, kind, arm in cells:
        found = [[curves[case(n, kind, arm, s)] for n in members[suite]] for s in args.seeds]
        means = np.mean(found, axis=1)[:, [n - 1 for n in at]]
        results.append(
            {"suite": suite, "kind": kind, "arm": arm, "means": means.round(6).tolist()}
        )
    head = {"sampler": args.sampler, "seeds": list(args.seeds), "at": at}
    return {**head, "tasks": args.tasks, "workers": args.workers, "results": results}


def show(found: dict[str, Any]) -> None:
    """Print the table of a measurement."""
    means = {(r["suite"], r["kind"], r["arm"]): np.array(r["means"]) for r in found["results"]}
    workers = f", {found['workers']} workers" if found["workers"] > 1 else ""
    print(f"{found['sampler']}, {len(found['seeds'])} seeds{workers}")
    for (suite, kind, arm), values in means.items():
        if arm == WITH:
            numbers = "".join(f"{n:>18}" for n in found["at"])
            print(f"\n{f'{suite}, past: {kind}':<28}{numbers}")
            cells = [f"{mean:.4f}{'':8}" for mean in values.mean(axis=0)]
        else:
            gained = means[suite, kind, WITH] - values
            pairs = zip(gained.mean(axis=0), in_errors(gained), strict=True)
            cells = [f"{mean:+.4f} {f'({z:+.1f})':>7}" for mean, z in pairs]
        label = WITH if arm == WITH else f"  minus without {arm}"
        print(f"{label:<28}" + "".join(f"{cell:>18}" for cell in cells))


def summarise(found: dict[str, Any]) -> None:
    """Print a measurement as a Markdown table: the mean over suites and budgets, in one cell."""
    means = {(r["suite"], r["kind"], r["arm"]): np.array(r["means"]) for r in found["results"]}
    suites, kinds, arms = (list(dict.fromkeys(names)) for names in zip(*means, strict=True))
    columns = {title: own for title, own in GROUPS.items() if set(own) <= set(kinds)}
    print("\n| without | " + " | ".join(columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    for arm in arms[1:]:
        cells = []
        for group in columns.values():
            cases = itertools.product(suites, group)
            gained = np.mean([means[s, k, WITH] - means[s, k, arm] for s, k in cases], axis=(0, 2))
            z = in_errors(gained[:, None])[0]
            cells.append(f"{gained.mean():+.4f} ({z:+.1f})".replace("-", "−"))
        print(f"| `{arm}` | " + " | ".join(cells) + " |")


def main() -> None:
    parser = parser_of(__doc__, KINDS, "guards")
    parser.add_argument("--suites", type=names_of, default=["hpolib", "nmt", "oboe"])
    parser.add_argument("--tasks", type=int, metavar="N", help="past tasks; else the suite's own")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="asking together")
    parser.add_argument("--start", default="draw", metavar="NAME", help="of the sampler")
    parser.add_argument("--summary", action="store_true", help="one Markdown table a file")
    parser.add_argument("--read", nargs="+", type=Path, metavar="FILE", help="show these instead")
    args = parser.parse_args()
    try:
        found = [json.loads(path.read_text()) for path in args.read or ()] or [measure(args)]
    except ValueError as error:
        parser.error(str(error))
    if args.out:
        Path(args.out).write_text(json.dumps(found[0], indent=1))
    for one in found:
        if args.json:
            print(json.dumps(one))
        else:
            summarise(one) if args.summary else show(one)


if __name__ == "__main__":
    main()
