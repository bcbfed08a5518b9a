"""`metatpe bench reproduce`: the figures of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatpe.bench.compact import read_results
from metatpe.bench.methods import get_method
from metatpe.bench.problems import get_problem
from metatpe.bench.records import Record, Trace, read_finished
from metatpe.cli.bench import (
    ChosenScale,
    Raw,
    print_left_out,
    print_outcome,
    print_rows,
    run_with_bar,
    seeds_of,
    split_names,
)
from metatpe.cli.common import AsJson, need, plain_failures, print_json

if TYPE_CHECKING:
    from metatpe.bench.figures import Figure

_ALL = "all"
From = Annotated[
    Path | None,
    typer.Option(
        "--from", metavar="DIR", help="Draw the figures from these results without new runs."
    ),
]


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A figure, several with commas, or `all`.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Show the figures and stop.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer seeds and methods: a minute or two.")
    ] = False,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Number of seeds, or a range: `20-29`; default: as in the paper."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    out: Annotated[
        Path, typer.Option(help="Folder of the records; figures are in its subfolder figures.")
    ] = Path("results"),
    from_: From = None,
    scale: ChosenScale = "paper",
    raw: Raw = False,
    as_json: AsJson = False,
) -> None:
    """Make the runs for a figure of the paper, draw it, and write its numbers to a CSV file.

    Finished runs are skipped, so the same command continues where it was stopped, and figures
    share their runs. `--from` draws existing records or compact files.

    Example: `metatpe bench reproduce hv-hpolib --quick --jobs 2`

    All figures, with as many seeds as in the paper:
    `metatpe bench reproduce all --jobs 2 --out results`
    """
    from metatpe.bench.figures import Measure, figure_names, get_figure, save

    if list_ or name is None:
        _print_figures([get_figure(known) for known in figure_names()], as_json)
        return
    need("bench", "matplotlib", "pandas")
    with plain_failures():
        measure = Measure(scale, raw)
        chosen_seeds = None if seeds is None else seeds_of(seeds)
        figures = [get_figure(n) for n in (figure_names() if name == _ALL else split_names(name))]
        figures, remarks = _drawable(figures, is_plain=measure == Measure())
        if from_ is None:
            traces, n_failed = _run(figures, chosen_seeds, quick, jobs, out, remarks)
        else:
            traces, n_failed = _read(from_, chosen_seeds), 0
        n_drawn = 0
        for figure in figures:
            own = figure.chosen(traces, quick=quick)
            if reason := _why_not(figure, own, from_):
                remarks.append(f"{figure.name} is left out: {reason}")
                continue
            print(*save(figure, own, out / "figures", measure=measure, quick=quick), sep="\n")
            n_drawn += 1
    for remark in remarks:
        typer.echo(remark, err=True)
    raise typer.Exit(1 if n_failed or not n_drawn else 0)


def _print_figures(figures: Sequence[Figure], as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "name": figure.name,
            "about": figure.about,
            "runs": len(figure.runs()) or None,
            "quick": len(figure.runs(quick=True)) or None,
        }
        for figure in figures
    ]
    if as_json:
        print_json(rows)
    else:
        print_rows("Figures", rows, ("name", "about", "runs", "quick"))


def _drawable(figures: Sequence[Figure], *, is_plain: bool) -> tuple[list[Figure], list[str]]:
    """Return the figures that can be drawn here, and a sentence about each of the others.

    Args:
        figures: That were asked for.
        is_plain: Whether the hypervolume is the authors'.

    Raises:
        ValueError: If none can be drawn.
    """
    reasons = {figure.name: _what_is_missing(figure, is_plain) for figure in figures}
    drawable = [figure for figure in figures if reasons[figure.name] is None]
    if not drawable:
        why = dict.fromkeys(filter(None, reasons.values()))
        raise ValueError("; ".join(why) or "name a figure.")
    return drawable, [f"{name} is left out: {why}" for name, why in reasons.items() if why]


def _what_is_missing(figure: Figure, is_plain: bool) -> str | None:
    """Return why a figure cannot be drawn here; None where it can."""
    if not is_plain and not figure.has_hypervolume:
        return f"{figure.name} shows no hypervolume; leave out --scale and --raw"
    try:
        for problem in figure.problems:
            get_problem(problem)
    except (ImportError, OSError, ValueError) as error:
        return str(error)
    return None


def _why_not(figure: Figure, traces: Sequence[Trace], source: Path | None) -> str | None:
    """Return why a figure cannot be drawn from these traces; None where it can."""
    if figure.has_runs and not traces:
        return f"no finished run of it is in {source}" if source else "none of its runs finished"
    if figure.is_measured and source:
        return "it is measured, not made from results; leave out --from"
    return None


def _run(
    figures: Iterable[Figure],
    seeds: range | None,
    quick: bool,
    jobs: int,
    out: Path,
    remarks: list[str],
) -> tuple[list[Trace], int]:
    """Run what is missing; return the traces, and how many runs failed."""
    runs = list(dict.fromkeys(r for figure in figures for r in figure.runs(seeds, quick=quick)))
    missing = {name: get_method(name).missing for name in dict.fromkeys(r.method for r in runs)}
    remarks += [f"{sentence} (left out)" for sentence in missing.values() if sentence]
    if not runs:
        return [], 0
    outcome = run_with_bar([run for run in runs if not missing[run.method]], out, jobs, None)
    print_outcome(outcome, out, [])
    found = read_finished(out, runs)  # also of methods that could not be run here and now
    return [r.trace for r in found if isinstance(r, Record)], len(outcome.failed)


def _read(folder: Path, seeds: range | None) -> list[Trace]:
    found = read_results(folder)
    print_left_out(found)
    return [trace for trace in found.traces if seeds is None or trace.run.seed in seeds]
