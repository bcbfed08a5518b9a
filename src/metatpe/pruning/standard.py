"""Made-up studies that stand in where there are few past curves.

A curve falls as a power of time, from one towards its own asymptote, after a plateau:

    u(t) = a + (1 - a) (1 + max(0, t - d) / tau)^-c + noise

Asymptote a, time scale tau, exponent c and plateau d are independent, so curves cross: the first
reports say little about the end. This is deliberately cautious. The study's own curves decide how
far it holds (`judge`).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from metatpe.pruning.curves import completed, length_of, stacked
from metatpe.pruning.positions import Positions, replayed
from metatpe.space import Floats

_N_STUDIES, _N_TRIALS, _N_STEPS = 5, 100, 50
NOISE = (0.0, 0.01, 0.02, 0.05, 0.1)


def standard_positions(n_known: int) -> list[Positions]:
    """Return positions of so many made-up studies that there are 500 trials with known ones."""
    n_missing = _N_STUDIES - n_known // _N_TRIALS
    return [p for i in range(n_missing) for p in _made_up(i)]


def made_up_losses(index: int) -> Floats:  # (trials, steps)
    """Return the curves of one made-up study."""
    rng = np.random.default_rng(index)
    t = np.linspace(0.0, 1.0, _N_STEPS)[None]
    asymptote = rng.random((_N_TRIALS, 1))
    scale = 10.0 ** rng.uniform(-2.0, 0.0, (_N_TRIALS, 1))
    exponent = rng.uniform(0.5, 2.0, (_N_TRIALS, 1))
    plateau = np.maximum(0.0, rng.uniform(-0.4, 0.3, (_N_TRIALS, 1)))
    fallen = (1.0 + np.maximum(0.0, t - plateau) / scale) ** -exponent
    losses = asymptote + (1.0 - asymptote) * fallen
    losses += NOISE[index] * rng.normal(size=losses.shape)
    return np.asarray(losses)


@cache
def _made_up(index: int) -> tuple[Positions, ...]:
    rows = made_up_losses(index).tolist()
    curves = [{step: [loss] for step, loss in enumerate(row)} for row in rows]
    length = length_of(curves)
    assert length is not None
    ended = [completed(curve, curve[_N_STEPS - 1], length) for curve in curves]
    return tuple(replayed(stacked(ended), np.ones(_N_TRIALS, dtype=np.bool_)))
