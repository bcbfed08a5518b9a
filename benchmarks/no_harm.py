"""No harm: sources that do not fit, against the same sampler without any.

    python benchmarks/no_harm.py --seeds 20 --jobs 2
    python benchmarks/no_harm.py --without guards
    python benchmarks/no_harm.py --sampler transfer --against meta-tpe

Three past tasks of each kind (`_pasts.py` has them; `like` is the other side of the coin, tasks
that do fit, of which NMT-Bench has two), on the 4-D ellipsoid, two datasets of HPOlib, NMT-Bench's
tl-en and two data sets of oboe. Printed is, after 25, 50 and 100 evaluations, the paired
difference over seeds from the run without a past: normalised hypervolume, or orders of magnitude
of the best value for the ellipsoid; positive where the past has helped. At the end are the means
over all problems and the kinds that do not fit, each in units of its standard error.

`--without` adds the same without some rules (`_runs.py` says which can be named); the run without
a past has all of them. `--against` names another sampler for that run: meta-tpe is MO-TPE.
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
from _pasts import HARMFUL
from _runs import SAMPLERS, Case, arms_of, in_errors, parser_of, run_all, standard_errors

AT = (25, 50, 100)
TARGETS = (
    *("ellipsoid4", "hpolib/slice_localization", "hpolib/protein_structure"),
    *("nmt/tl-en", "oboe/3", "oboe/40670"),
)
N_TASKS = 3
WITH = "all rules"


def measure(args: Any) -> dict[str, Any]:
    """Return the differences from the run without a past, for each target, kind, arm and seed."""
    arms = {WITH: (), **arms_of(args.sampler, args.without)}
    at = [n for n in AT if n <= args.evaluations] or [args.evaluations]
    settings = {"n_tasks": N_TASKS, "n_evaluations": max(at)}
    cells = list(itertools.product(TARGETS, arms, args.kinds))

    def alone(name: str, seed: int) -> Case:
        return Case(args.against or args.sampler, name, None, seed, **settings)

    def case(name: str, arm: str, kind: str, seed: int) -> Case:
        return Case(args.sampler, name, kind, seed, arms[arm], **settings)

    wanted = [(case(*cell, seed), alone(cell[0], seed)) for seed in args.seeds for cell in cells]
    curves = run_all([one for pair in wanted for one in pair], args.jobs)
    results = []
    for name, arm, kind in cells:
        pairs = [(curves[case(name, arm, kind, s)], curves[alone(name, s)]) for s in args.seeds]
        differences = np.array([own - other for own, other in pairs])[:, [n - 1 for n in at]]
        results.append(
            {"target": name, "kind": kind, "arm": arm, "differences": differences.tolist()}
        )
    return {"sampler": args.sampler, "seeds": list(args.seeds), "at": at, "results": results}


def show(found: dict[str, Any]) -> None:
    """Print the differences, and their means over targets and kinds."""
    print(f"{'difference after':<58}" + "".join(f"{n:>22}" for n in found["at"]))
    ratios: dict[tuple[str, str], list[np.ndarray]] = {}
    for r in found["results"]:
        differences = np.array(r["differences"])
        pairs = zip(differences.mean(axis=0), standard_errors(differences), strict=True)
        cells = "".join(f"{f'{m:+.4f} ± {e:.4f}':>22}" for m, e in pairs)
        print(f"{r['target']:<28}{r['kind']:<12}{label(r['arm']):<18}{cells}")
        group = "harmful" if r["kind"] in HARMFUL else r["kind"]
        ratios.setdefault((group, r["arm"]), []).append(in_errors(differences))
    for (group, arm), rows in ratios.items():
        cells = "".join(f"{f'{z:+.2f}':>22}" for z in np.mean(rows, axis=0))
        title = f"mean of {len(rows)} {group}, in standard errors"
        print(f"{title:<40}{label(arm):<18}{cells}")


def label(arm: str) -> str:
    return "" if arm == WITH else f"without {arm}"


def main() -> None:
    parser = parser_of(__doc__, (*HARMFUL, "like"), "")
    parser.add_argument("--against", choices=SAMPLERS, help="without a past; else the same one")
    args = parser.parse_args()
    try:
        found = measure(args)
    except ValueError as error:
        parser.error(str(error))
    if args.out:
        Path(args.out).write_text(json.dumps(found, indent=1))
    print(json.dumps(found)) if args.json else show(found)


if __name__ == "__main__":
    main()
