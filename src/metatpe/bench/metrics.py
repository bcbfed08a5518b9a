r"""How good a run is after each evaluation.

With losses f_i (minimised), t_i the identity or the logarithm, HV the volume that points dominate
within a reference point, f^worst and f^best the extremes over all configurations and repeats:

    hypervolume_n = HV({t(f(x_1)), ..., t(f(x_n))}; t(f^worst)) / HV(t(true front); t(f^worst))

so that 1 is the true front (the authors' code). The paper's text divides by the box between the
extremes instead, prod_i (t_i(f_i^worst) - t_i(f_i^best)); that is `raw`, the true front below 1.

    scale "paper"    t_i = log for the problem's `log_objectives`: HPOlib's loss
    scale "log"      t_i = log for every objective that is positive everywhere; not BLEU, which
                     may be 0

Shapes: values (n, m), one row per evaluation, in the problem's own units and directions;
curves (n,); several runs of one method are curves (s, n), one row per seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import moocore
import numpy as np
from numpy.typing import NDArray

from metatpe.bench.problems import Floats, Problem
from metatpe.tpe.hypervolume import attainment_surface, running_hypervolume

Scale = Literal["paper", "log"]


def hypervolume_curve(
    problem: Problem,
    values: Floats,  # (n, m)
    *,
    scale: Scale = "paper",
    raw: bool = False,
) -> Floats:  # (n,)
    """Return the normalised hypervolume of a run after each of its evaluations.

    Values worse than the worst that the problem knows, infinite ones too, add nothing.

    Args:
        problem: The problem that was run; two objectives or more.
        values: The objectives of each evaluation, in the order of the run.
        scale: Which objectives are taken in log scale.
        raw: Divide by the box between best and worst values instead of by the true front.

    Example:
        >>> from metatpe.bench import get_problem
        >>> problem = get_problem("hpolib/protein_structure")
        >>> hypervolume_curve(problem, np.array([[0.3, 100.0], [0.25, 90.0]])).round(2)
        array([0.95, 0.97])
    """
    _check_values(problem, values)
    if problem.n_objectives < 2:
        raise ValueError(
            f"problem {problem.name!r} has one objective and no hypervolume; use best_curve."
        )
    is_log = _is_log(problem, scale)
    reference = _scaled(problem, problem.worst, is_log)
    if raw:
        whole = float(np.prod(reference - _scaled(problem, problem.best, is_log)))
    elif problem.front is None:
        raise ValueError(f"the true front of problem {problem.name!r} is not known; use raw=True.")
    else:
        front = _scaled(problem, problem.front, is_log)
        whole = float(moocore.hypervolume(front, ref=reference))
    return running_hypervolume(_scaled(problem, values, is_log), reference) / whole


def _is_log(problem: Problem, scale: Scale) -> NDArray[np.bool_]:  # (m,)
    if scale not in get_args(Scale):
        raise ValueError(f"scale must be one of {get_args(Scale)}, but got {scale!r}.")
    if scale == "paper":
        return np.array(problem.log_objectives)
    return problem.is_positive


def _scaled(problem: Problem, values: Floats, is_log: NDArray[np.bool_]) -> Floats:
    scaled = np.array(values, dtype=np.float64)
    scaled[..., is_log] = np.log(scaled[..., is_log])
    return problem.losses(scaled)


def best_curve(problem: Problem, values: Floats) -> Floats:  # (n, 1) -> (n,)
    """Return the best value of a run with one objective after each of its evaluations.

    The curve is in the problem's own units and direction.

    Args:
        problem: The problem that was run; one objective.
        values: The objective of each evaluation, in the order of the run.

    Example:
        >>> from metatpe.bench import ellipsoid
        >>> best_curve(ellipsoid(4), np.array([[3.0], [5.0], [1.0]]))
        array([3., 3., 1.])
    """
    _check_values(problem, values)
    if problem.n_objectives != 1:
        raise ValueError(
            f"problem {problem.name!r} has {problem.n_objectives} objectives and no single best "
            "value; use hypervolume_curve."
        )
    best: Floats = problem.losses(np.minimum.accumulate(problem.losses(values)))[:, 0]
    return best


def progress_curve(
    problem: Problem, values: Floats, *, scale: Scale = "paper", raw: bool = False
) -> Floats:  # (n, m) -> (n,)
    """Return the hypervolume of a run with several objectives, the best value of one with one.

    Args:
        problem: The problem that was run.
        values: The objectives of each evaluation, in the order of the run.
        scale: Of the hypervolume.
        raw: The same.
    """
    if problem.n_objectives == 1:
        return best_curve(problem, values)
    return hypervolume_curve(problem, values, scale=scale, raw=raw)


def attainment_surfaces(
    problem: Problem, runs: Sequence[Floats], percentiles: Sequence[float] = (25, 50, 75)
) -> dict[float, Floats]:
    """Return the points that given percentages of the runs have reached, by percentage.

    Args:
        problem: The problem that was run; two or three objectives.
        runs: The values (n, m) of each run.
        percentiles: The percentages, above 0 and at most 100.

    Returns:
        For each percentage the corners (k, m) of its surface, in the problem's own units and
        directions, sorted by the first objective.

    Example:
        >>> from metatpe.bench import get_problem
        >>> problem = get_problem("hpolib/protein_structure")
        >>> runs = [np.array([[0.3, 100.0]]), np.array([[0.4, 90.0]]), np.array([[0.25, 95.0]])]
        >>> attainment_surfaces(problem, runs, [50])
        {50: array([[...]])}
    """
    for values in runs:
        _check_values(problem, values)
    losses = [problem.losses(values) for values in runs]
    surfaces = {}
    for percentile in percentiles:
        corners = problem.losses(attainment_surface(losses, percentile))
        surfaces[percentile] = corners[np.lexsort(corners.T[::-1])]
    return surfaces


def _check_values(problem: Problem, values: Floats) -> None:
    if values.ndim != 2 or values.shape[1] != problem.n_objectives:
        raise ValueError(
            f"problem {problem.name!r}: values must have the shape (n, {problem.n_objectives}), "
            f"but got {values.shape}."
        )
    # Written so that NaN fails too.
    is_possible = (problem.losses(values) >= problem.losses(problem.best)).all(axis=1)
    if not is_possible.all():
        rows = np.flatnonzero(~is_possible)
        raise ValueError(
            f"problem {problem.name!r}: values must be numbers no better than "
            f"{problem.best.tolist()}, but evaluation {rows[0]} has {values[rows[0]].tolist()}; "
            "check the problem and the order of the objectives."
        )
