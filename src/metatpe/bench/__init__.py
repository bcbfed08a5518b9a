"""The paper's experiments: problems, and how good a run is.

Needs the extra `bench`; without it, listing and the problems without a table still work.
"""

from metatpe.bench.families.ellipsoid import ellipsoid
from metatpe.bench.metrics import (
    attainment_surfaces,
    best_curve,
    hypervolume_curve,
    standard_error,
)
from metatpe.bench.problems import (
    Problem,
    get_problem,
    get_suite,
    problem_names,
    suite_names,
)

__all__ = [
    "Problem",
    "attainment_surfaces",
    "best_curve",
    "ellipsoid",
    "get_problem",
    "get_suite",
    "hypervolume_curve",
    "problem_names",
    "standard_error",
    "suite_names",
]
