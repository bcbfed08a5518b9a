"""The picture of `metatpe bench pruning`: regret against the epochs spent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from metatpe.bench.figures import style
from metatpe.bench.spending import Spending


def draw_spending(curves: Sequence[Spending], path: Path) -> None:
    """Draw mean regrets by what was spent; a dot where half of the runs have ended."""
    has_one_method = len({curve.method for curve in curves}) == 1
    lines = _lines(curves)
    with style.style():
        picture, axes = style.panels(1, 1, 3.8)
        axis = axes[0, 0]
        for nth, (curve, line) in enumerate(zip(curves, lines, strict=True)):
            label = curve.pruner if has_one_method else curve.name
            values = (curve.trainings, curve.regret, curve.se)
            style.draw_curve(axis, *values, line, label=label, nth=nth)
            axis.plot(curve.trainings[-1:], curve.regret[-1:], "o", color=line.colour)
        axis.set(yscale="log", xlabel="epochs spent, in full trainings", ylabel="mean regret")
        style.count_axis(axis, (1, 2, 5, 10, 20, 50, 100))
        axis.set_xlim(left=1.0)
        least = min(float(curve.regret.min()) for curve in curves)
        style.log_ticks(axis.yaxis, np.array([max(least, 1e-3), 1.0]))
        style.legend_below(picture, 4)
        picture.savefig(path, dpi=110)


def _lines(curves: Sequence[Spending]) -> list[style.Line]:
    """Return a look for each curve: what transfers is thick, no pruning is grey."""
    others = [line for name, line in style.METHODS.items() if name not in ("transfer", "random")]
    found, nth = [], 0
    for curve in curves:
        if curve.pruner == "transfer":
            found.append(style.METHODS["transfer"])
        elif curve.pruner == "none":
            found.append(style.METHODS["random"])
        else:
            found.append(others[nth % len(others)]._replace(width=1.1))
            nth += 1
    return found
