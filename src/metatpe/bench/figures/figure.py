"""What a figure is, and the way from results to its picture and its CSV file.

    runs ─▶ Trace ─ numbers ─▶ table ─ draw ─▶ picture
                                 └───────────▶ CSV

The table holds everything that is drawn and nothing else, so that the file beside a picture says
exactly what the picture shows. No optimiser is needed from the traces on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metatpe.bench.figures.style import style
from metatpe.bench.metrics import Scale
from metatpe.bench.plan import Run
from metatpe.bench.records import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

SUITES = {"hpolib": "HPOlib", "nmt": "NMT-Bench"}  # those of most figures, and their titles
Table = Any  # pandas.DataFrame, which is loaded only when something is drawn


@dataclass(frozen=True)
class Measure:
    """How a hypervolume is taken, see `metrics`."""

    scale: Scale = "paper"
    raw: bool = False

    @property
    def suffix(self) -> str:
        """What the names of files have, so that none replaces that of another measure."""
        return ("" if self.scale == "paper" else f"-{self.scale}") + ("-raw" if self.raw else "")


def _no_runs(seeds: Iterable[int], quick: bool) -> tuple[Run, ...]:
    return ()


@dataclass(frozen=True)
class Figure:
    """One figure of the paper.

    Attributes:
        name: As the command knows it.
        about: What it shows, in one sentence.
        numbers: Returns the table of what is drawn, from the traces of its runs.
        draw: Returns the picture of such a table.
        problems: Whose tables have to be there.
        plan: Returns its runs with given seeds, or those of the quick version.
        n_seeds: As many as the paper has.
        n_quick_seeds: Of the quick version.
        has_hypervolume: Whether a `Measure` other than the first makes a difference.
        is_measured: Whether its numbers are times, measured whenever it is drawn.
    """

    name: str
    about: str
    numbers: Callable[[Sequence[Trace], Measure], Table]
    draw: Callable[[Table], Picture]
    problems: tuple[str, ...] = ()
    plan: Callable[[Iterable[int], bool], tuple[Run, ...]] = _no_runs
    n_seeds: int = 20
    n_quick_seeds: int = 5
    has_hypervolume: bool = False
    is_measured: bool = False

    @property
    def has_runs(self) -> bool:
        """Whether it is drawn from runs, and not from a table or a measurement."""
        return self.plan is not _no_runs

    def runs(self, seeds: Iterable[int] | None = None, *, quick: bool = False) -> tuple[Run, ...]:
        """Return the runs that it is drawn from, also those of methods that are missing here."""
        n_seeds = self.n_quick_seeds if quick else self.n_seeds
        return self.plan(range(n_seeds) if seeds is None else seeds, quick)

    def chosen(self, traces: Iterable[Trace], *, quick: bool = False) -> tuple[Trace, ...]:
        """Return those of the traces that belong to it, of whatever seed, each run once."""
        wanted = {replace(run, seed=0) for run in self.plan([0], quick)}
        found = {t.run: t for t in traces if replace(t.run, seed=0) in wanted}
        return tuple(found.values())


def save(
    figure: Figure,
    traces: Sequence[Trace],
    folder: Path,
    *,
    measure: Measure | None = None,
    quick: bool = False,
) -> tuple[Path, Path]:
    """Draw a figure and return the paths of its picture and of its CSV file.

    Args:
        figure: What to draw.
        traces: Of its runs, as `chosen` returns them.
        folder: Where to.
        measure: Of the hypervolume; left out, that of the authors.
        quick: Whether the files get the name of the quick version.
    """
    measure = measure or Measure()
    table = figure.numbers(traces, measure)
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{figure.name}{'-quick' if quick else ''}{measure.suffix}"
    picture, numbers = folder / f"{stem}.png", folder / f"{stem}.csv"
    with style():
        figure.draw(table).savefig(picture, dpi=200)
    numbers.write_text(to_csv(table), "utf-8")
    return picture, numbers


def to_csv(table: Table) -> str:
    """Return a table as the text of a CSV file."""
    return str(table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
