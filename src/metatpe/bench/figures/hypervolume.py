"""The hypervolume over evaluations: all methods (hv-…), and one method with several η (eta-…)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from metatpe.bench.figures import style
from metatpe.bench.figures.curves import grouped, labelled, mean_curve
from metatpe.bench.figures.figure import SUITES, Figure, Measure, Table
from metatpe.bench.methods import get_method, method_names
from metatpe.bench.metrics import hypervolume_curve
from metatpe.bench.plan import N_START, Run, plan
from metatpe.bench.problems import get_problem, problem_names
from metatpe.bench.records import Trace
from metatpe.tpe.importance import ETA

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_QUICK = (
    "meta-tpe",
    "naive-meta-tpe",
    "only-warm-start",
    "mo-tpe",
    "random",
    "optuna-tpe-multivariate",
    "optuna-tpe-multivariate+warm",
)
# Other forms of a method that is shown: they are compared in tables, and would hide it here.
_VARIANTS = frozenset({"meta-tpe-portfolio", "meta-tpe-paper", "transfer-draw"})
_ETAS = (1.5, 2.0, 2.5, 5.0)
_FRONT = "true front"


def _plan_methods(suite: str, seeds: Iterable[int], quick: bool) -> tuple[Run, ...]:
    shown = [name for name in method_names() if name not in _VARIANTS]
    return plan([suite], _QUICK if quick else shown, seeds)


def _plan_etas(suite: str, seeds: Iterable[int], quick: bool) -> tuple[Run, ...]:
    seeds = list(seeds)
    settings: list[dict[str, float]] = [{} if eta == ETA else {"eta": eta} for eta in _ETAS]
    return tuple(run for s in settings for run in plan([suite], ["meta-tpe"], seeds, settings=s))


def _eta(run: Run) -> str:
    return str(dict(run.settings).get("eta", ETA))


def _table_of_curves(
    curve: str, name_of: Callable[[Run], str], traces: Sequence[Trace], measure: Measure
) -> Table:
    """Return the mean curves, the problems in the order of the suite, and the true front."""
    import pandas as pd

    groups = grouped(traces, lambda run: (run.problem, name_of(run)))
    names = _sorted({name for _, name in groups})
    parts = []
    for problem in problem_names():
        for name in [name for name in names if (problem, name) in groups]:
            part = mean_curve(groups[problem, name], measure)
            parts.append(labelled(part, problem=problem, **{curve: name}))
        if parts and problem == parts[-1]["problem"].iloc[0]:
            front = parts[-1].tail(1).assign(mean=_front(problem, measure), se=None, seeds=0)
            parts.append(front.assign(**{curve: _FRONT}))
    return pd.concat(parts, ignore_index=True).astype({"se": float})


def _sorted(names: Iterable[str]) -> list[str]:
    known = list(method_names())
    return sorted(names, key=lambda name: (known.index(name) if name in known else -1, name))


def _front(problem: str, measure: Measure) -> float:
    loaded = get_problem(problem)
    assert loaded.front is not None
    curve = hypervolume_curve(loaded, loaded.front, scale=measure.scale, raw=measure.raw)
    return float(curve[-1])


def _draw_methods(table: Table) -> Picture:
    """Draw a column a dataset; above what starts from the past, below what starts at random."""
    methods = [name for name in table["method"].unique() if name != _FRONT]
    lines = style.method_lines(methods)
    problems = table["problem"].unique()
    picture, axes = style.panels(2, len(problems), 4.5, sharex=True)
    for column, problem in enumerate(problems):
        here = table[table["problem"] == problem]
        for row, is_warm in enumerate((True, False)):
            # The best known is in both rows, to compare the rows by.
            looks = {m: lines[m] for m in methods if _is_warm(m) == is_warm or m == "meta-tpe"}
            _draw_panel(axes[row, column], here, "method", looks, style.base)
        _finish_column(axes[:, column], problem)
    axes[0, 0].set_ylabel("from warm starts\nnormalised hypervolume")
    axes[1, 0].set_ylabel("from random starts\nnormalised hypervolume")
    style.legend_below(picture, 5, [*dict.fromkeys(map(style.base, methods)), _FRONT])
    return picture


def _is_warm(method: str) -> bool:
    return get_method(method).first != "random"


def _draw_etas(table: Table) -> Picture:
    problems = table["problem"].unique()
    etas = [name for name in table["eta"].unique() if name != _FRONT]
    picture, axes = style.panels(1, len(problems), 2.3)
    for axis, problem in zip(axes[0], problems, strict=True):
        here = table[table["problem"] == problem]
        _draw_panel(axis, here, "eta", dict(zip(etas, style.ORDERED, strict=False)), _eta_label)
        _finish_column([axis], problem)
    axes[0, 0].set_ylabel("normalised hypervolume")
    style.legend_below(picture, 5, [*map(_eta_label, etas), _FRONT])
    return picture


def _eta_label(eta: str) -> str:
    return f"η = {eta}"


def _draw_panel(
    axis: Any, table: Table, curve: str, lines: dict[str, Any], label: Callable[[str], str]
) -> None:
    """Draw the curves of one problem from the first configurations on, and the true front."""
    after = table[table["evaluations"] >= min(N_START, table["evaluations"].max())]
    for nth, (name, line) in enumerate(lines.items()):
        rows = after[after[curve] == name]
        if len(rows):
            x, mean, se = (rows[c].to_numpy() for c in ("evaluations", "mean", "se"))
            style.draw_curve(axis, x, mean, se, line, label=label(name), nth=nth)
    front = float(table.loc[table[curve] == _FRONT, "mean"].iloc[0])
    axis.axhline(front, **style.FRONT.look, label=_FRONT)


def _finish_column(axes: Sequence[Any], problem: str) -> None:
    axes[0].set_title(style.title_of(problem))
    axes[-1].set_xlabel("evaluations")
    for axis in axes:
        style.count_axis(axis, (5, 10, 20, 50, 100))


_KINDS = (
    ("hv", "all methods over evaluations", "method", lambda run: run.method),
    ("eta", "meta-tpe with η = 1.5, 2, 2.5 and 5", "eta", _eta),
)
FIGURES = tuple(
    Figure(
        name=f"{kind}-{suite}",
        about=f"normalised hypervolume of {what} on {title}",
        numbers=partial(_table_of_curves, curve, name_of),
        draw=_draw_methods if kind == "hv" else _draw_etas,
        problems=problem_names(suite),
        plan=partial(_plan_methods if kind == "hv" else _plan_etas, suite),
        has_hypervolume=True,
    )
    for kind, what, curve, name_of in _KINDS
    for suite, title in SUITES.items()
)
