"""The paper's experiments: problems, methods, runs, and how good a run is.

    problems ─┐
    methods ──┴─ plan ─▶ Run ─ run ─▶ Record ─ records, compact ─▶ Trace ─ summary ─▶ tables

Needs the extra `bench`; without it, listing and the problems without a table still work.
"""

from metatpe.bench.compact import read_results, write_compact
from metatpe.bench.families.ellipsoid import ellipsoid
from metatpe.bench.methods import get_method, method_names
from metatpe.bench.metrics import attainment_surfaces, best_curve, hypervolume_curve
from metatpe.bench.plan import Run
from metatpe.bench.problems import Problem, get_problem, get_suite, problem_names, suite_names
from metatpe.bench.run import execute, run_all
from metatpe.tpe.hypervolume import standard_error

__all__ = [
    "Problem",
    "Run",
    "attainment_surfaces",
    "best_curve",
    "ellipsoid",
    "execute",
    "get_method",
    "get_problem",
    "get_suite",
    "hypervolume_curve",
    "method_names",
    "problem_names",
    "read_results",
    "run_all",
    "standard_error",
    "suite_names",
    "write_compact",
]
