r"""The ellipsoid of the paper: one objective, and a family of tasks of known similarity.

    f(x | c) = sum_{d=1}^{D} 5^(d - 1) * (x_d - c)^2,     x in [-5, 5]^D,  c in [-5, 5]

The best value is 0, at x = (c, ..., c); the worst is at the corner that is farthest from it. The
listed problems have c = 0. The past tasks of an experiment are other c, and have names too:
`ellipsoid4-c2.5` has 4 dimensions and c = 2.5.
"""

from __future__ import annotations

import re
from functools import partial

import numpy as np
from optuna.distributions import FloatDistribution

from metatpe.bench.problems import Params, Problem

_PREFIX = "ellipsoid"
NAMES = ("ellipsoid4", "ellipsoid10")
PATTERN = re.compile(rf"{_PREFIX}([1-9]\d*)(?:-c(-?\d+(?:\.\d+)?))?")

_BOUND = 5.0


def load(name: str) -> Problem:
    """Return one problem of the suite."""
    dim, c = _parse(name)
    return ellipsoid(dim, c)


def past(name: str) -> tuple[str, ...]:
    """Return the past of a problem: its neighbour, with the centre one further on."""
    dim, c = _parse(name)
    return (_name(dim, c + 1.0 if c + 1.0 <= _BOUND else c - 1.0),)


def _parse(name: str) -> tuple[int, float]:
    match = PATTERN.fullmatch(name)
    assert match, name  # the registry asks for no other
    return int(match[1]), float(match[2] or 0.0)


def _name(dim: int, c: float) -> str:
    return f"{_PREFIX}{dim}" if c == 0.0 else f"{_PREFIX}{dim}-c{c:g}"


def ellipsoid(dim: int, c: float = 0.0) -> Problem:
    """Return the ellipsoid of `dim` dimensions around (c, ..., c).

    Args:
        dim: The number of dimensions.
        c: The centre, the same in all dimensions; 0 is the paper's target.

    Raises:
        ValueError: If there is no dimension, or the centre is outside the search space.

    Example:
        >>> ellipsoid(2, c=1.0).evaluate({"x1": 1.0, "x2": 2.0}, seed=0)
        (5.0,)
    """
    if dim < 1:
        raise ValueError(f"an ellipsoid must have one dimension or more, but got dim={dim}.")
    if not -_BOUND <= c <= _BOUND:
        raise ValueError(f"the centre c must be in [{-_BOUND:g}, {_BOUND:g}], but got {c}.")
    corner = dict.fromkeys(_parameters(dim), -_BOUND if c > 0.0 else _BOUND)
    return Problem(
        name=_name(dim, c),
        space={name: FloatDistribution(-_BOUND, _BOUND) for name in _parameters(dim)},
        directions=("minimize",),
        objective_names=("f",),
        function=partial(_evaluate, dim, c),
        best=np.zeros(1),
        worst=np.array(_evaluate(dim, c, corner, 0)),
        log_objectives=(False,),
    )


def _parameters(dim: int) -> tuple[str, ...]:
    return tuple(f"x{d}" for d in range(1, dim + 1))


def _evaluate(dim: int, c: float, params: Params, seed: int) -> tuple[float, ...]:
    x = np.array([params[name] for name in _parameters(dim)], dtype=np.float64)
    return (float(5.0 ** np.arange(dim) @ (x - c) ** 2),)
