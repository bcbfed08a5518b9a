"""TaskSet with its learning curves: a trial reports 51 validation losses and may be pruned.

The suite `taskset` (see there for the data) with `Problem.curve`: the validation losses of the
nearest setting that was trained, NaN from where training diverged.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from metatpe.bench.families import taskset
from metatpe.bench.problems import Floats, Params, Problem

_PREFIX = "taskset-curves/"
NAMES = tuple(name.replace("taskset/", _PREFIX) for name in taskset.NAMES)


def load(name: str) -> Problem:
    """Return one problem of the suite."""
    own = taskset.load(name.replace(_PREFIX, "taskset/"))
    return replace(own, name=name, curve=partial(_curve, taskset.curves(own.name)))


def _curve(curves: Floats, params: Params) -> Floats:
    return np.asarray(curves[taskset.nearest(params)])
