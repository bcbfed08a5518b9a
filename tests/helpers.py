"""What several tests need: spaces of every kind, random tasks, and sums over whole spaces."""

import itertools
import warnings
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    DiscreteUniformDistribution,
    FloatDistribution,
    IntDistribution,
    IntLogUniformDistribution,
    IntUniformDistribution,
    LogUniformDistribution,
    UniformDistribution,
)
from oracle import reference

from metatpe import Space, Task
from metatpe.space import Columns, Floats
from metatpe.tpe.kde import Parzen, Points

NAN, INF = float("nan"), float("inf")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # some are deprecated, and some do not end on their step
    DISTRIBUTIONS: dict[str, BaseDistribution] = {
        "float": FloatDistribution(-3.0, 5.0),
        "log float": FloatDistribution(1e-5, 1e2, log=True),
        "stepped float": FloatDistribution(-10.2, 10.2, step=0.1),
        "stepped float that does not end on its step": FloatDistribution(0.0, 1.0, step=0.3),
        "fine grid of floats": FloatDistribution(0.0, 1.0, step=0.001),
        "int": IntDistribution(-2, 7),
        "stepped int": IntDistribution(3, 32, step=7),
        "int of many values": IntDistribution(0, 100_000),
        "stepped int of many values": IntDistribution(-500, 5_000, step=5),
        "log int": IntDistribution(1, 40, log=True),
        "log int of many values": IntDistribution(3, 200_000, log=True),
        "choices": CategoricalDistribution(("adam", "sgd", "lion")),
        "mixed choices": CategoricalDistribution((None, "a", 2, 2.5, False, NAN)),
        "truth": CategoricalDistribution((True, False)),
        "many choices": CategoricalDistribution([f"c{i}" for i in range(40)]),
        "one float": FloatDistribution(0.3, 0.3),
        "one log float": FloatDistribution(0.3, 0.3, log=True),
        "one stepped float": FloatDistribution(0.5, 0.9, step=1.0),
        "one int": IntDistribution(4, 4),
        "one log int": IntDistribution(1, 1, log=True),
        "one stepped int": IntDistribution(2, 4, step=5),
        "one choice": CategoricalDistribution((None,)),
        "deprecated float": UniformDistribution(0.0, 2.0),
        "deprecated log float": LogUniformDistribution(1e-3, 1.0),
        "deprecated stepped float": DiscreteUniformDistribution(0.0, 1.0, 0.25),
        "deprecated int": IntUniformDistribution(1, 9, step=2),
        "deprecated log int": IntLogUniformDistribution(1, 300),
    }

MIXED = Space(
    {
        "float": FloatDistribution(0.0, 1.0),
        "log": FloatDistribution(1e-3, 1e1, log=True),
        "grid": IntDistribution(0, 4),
        "log int": IntDistribution(1, 30, log=True),  # more than 16 values: looked up
        "choice": CategoricalDistribution(("a", "b", "c")),
    }
)


@st.composite
def distributions(draw: st.DrawFn) -> BaseDistribution:
    """Any distribution that Optuna has, with numbers of ordinary size."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not divisible by `step`")
        return _distribution(draw)


def _distribution(draw: st.DrawFn) -> BaseDistribution:
    kind = draw(st.sampled_from(["float", "log float", "step", "int", "log int", "categorical"]))
    if kind == "categorical":
        choice = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
        by_value = st.lists(choice, min_size=1, max_size=20, unique_by=lambda c: (str(c == c), c))
        return CategoricalDistribution(tuple(draw(by_value)))
    if kind.startswith("log"):
        low, high = sorted(draw(st.tuples(*[st.floats(1e-8, 1e8)] * 2)))
        if kind == "log int":
            return IntDistribution(max(1, int(low)), max(1, int(high)), log=True)
        return FloatDistribution(low, high, log=True)
    if kind == "int":
        low, high = sorted(draw(st.tuples(*[st.integers(-(10**6), 10**6)] * 2)))
        return IntDistribution(low, high, step=draw(st.integers(1, 1000)))
    low = draw(st.floats(-1e6, 1e6))
    if kind == "step":
        step = draw(st.floats(1e-3, 1e3))
        return FloatDistribution(low, low + step * draw(st.floats(0, 400)), step=step)
    return FloatDistribution(low, low + draw(st.floats(0, 1e6)))


def locked(array: Floats) -> Floats:
    """Return a copy of an array that raises when it is written to."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def random_points(
    columns: Columns, n: int, rng: np.random.Generator, missing: float = 0.0
) -> Floats:
    """Return n points, write-protected, with this fraction of the coordinates missing."""
    X = columns.snap(rng.random((n, len(columns))))
    return locked(np.where(rng.random(X.shape) < missing, np.nan, X))


def task_of(
    name: str, space: Space, n: int, loss: Callable[[Floats], Floats], rng: np.random.Generator
) -> Task:
    """Return a task with n random observations of a function of points of the unit cube."""
    X = random_points(space.columns, n, rng)
    return Task(name, space, X, loss(X).reshape(n, -1))


def whole_space(columns: Columns, n: int) -> tuple[Floats, Floats]:  # (S, d), (S,)
    """Return points all over a space and the volume around each; n points a continuous column."""
    axes, widths = [], []
    for edges, points in zip(columns.edges, columns.points, strict=True):
        borders = np.linspace(0.0, 1.0, n + 1) if edges is None else edges
        axes.append((borders[1:] + borders[:-1]) / 2 if points is None else points)
        widths.append(np.diff(borders))
    volumes = np.array(list(itertools.product(*widths))).prod(axis=1)
    return np.array(list(itertools.product(*axes))), volumes


def pdf(parzen: Parzen, X: Floats, *, uniform: bool = True) -> Floats:  # (C, d) -> (C,)
    """Return the density at some points, in double precision."""
    return np.exp(parzen.log_pdf(Points.of(parzen.columns, X), uniform=uniform))


def without(X: Floats, *columns: int) -> Floats:
    """Return points, write-protected, with all of some coordinates missing."""
    copy = np.array(X)
    copy[:, list(columns)] = np.nan
    return locked(copy)


def plain_columns(columns: Columns) -> list[reference.Column]:
    """Return columns as the reference has them."""
    edges = [None if e is None else e.tolist() for e in columns.edges]
    return list(zip(edges, columns.is_categorical.tolist(), strict=True))
