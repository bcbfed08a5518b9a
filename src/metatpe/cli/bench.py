"""`metatpe bench`: list, run, table and compact; `reproduce` has the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from metatpe.bench.compact import Results, read_results, write_compact
from metatpe.bench.methods import get_method, method_names
from metatpe.bench.metrics import Scale
from metatpe.bench.plan import AT, N_EVALUATIONS, N_PAST, N_START, Run, plan
from metatpe.bench.problems import expand, get_problem, problem_names, suite_of
from metatpe.bench.pruners import check_pruner
from metatpe.bench.records import Record, Trace
from metatpe.bench.run import Outcome, run_all
from metatpe.cli.common import (
    AsJson,
    Terminal,
    console,
    fail,
    need,
    plain_failures,
    print_json,
    progress_bar,
    say,
    table_of,
)
from metatpe.words import counted

if TYPE_CHECKING:
    from metatpe.bench.summary import Entry

_WINDOW = 900.0  # seconds that the time left is estimated from: some runs take a minute

Problems = Annotated[
    str, typer.Option(metavar="NAMES", help="Problems and suites, such as `hpolib,nmt/so-en`.")
]
Methods = Annotated[
    str, typer.Option(metavar="NAMES", help="Methods, such as `meta-tpe,mo-tpe`, or `all`.")
]
Seeds = Annotated[str, typer.Option(metavar="N", help="Number of seeds, or a range: `20-29`.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the sampler: `eta=2`."),
]
Pruners = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Pruners, for problems with learning curves. Numbers are settings: `transfer-75` has "
        "the threshold 0.75; `median-10` and `percentile-25-10` wait for ten steps; `halving-4-3` "
        "starts at step 4 and keeps a third.",
    ),
]
ChosenScale = Annotated[
    Scale, typer.Option(help="Scale of the hypervolume: as in the paper, or logarithms only.")
]
Raw = Annotated[
    bool, typer.Option("--raw", help="Scale by best and worst values, not by the true front.")
]
Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Folder of records or compact files.")
]


# list -----------------------------------------------------------------------------------------


def list_(as_json: AsJson = False) -> None:
    """List the problems and methods, and which of them are not available here.

    Example: `metatpe bench list`
    """
    problems = [_describe_problem(name) for name in problem_names()]
    methods = [_describe_method(name) for name in method_names()]
    if as_json:
        print_json({"problems": problems, "methods": methods})
        return
    print_rows("Problems", problems, ("name", "space", "objectives", "missing"))
    print_rows("Methods", methods, ("name", "about", "first", "missing"))


def _describe_problem(name: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "suite": suite_of(name)}
    try:
        problem = get_problem(name)
    except (ImportError, OSError, ValueError) as error:
        return {**entry, "missing": str(error)}
    size = "" if problem.table is None else f", {len(problem.table):,} configurations"
    space = f"{counted(len(problem.space), 'parameter')}{size}"
    objectives = dict(zip(problem.objective_names, problem.directions, strict=True))
    return {**entry, "space": space, "objectives": objectives, "missing": None}


def _describe_method(name: str) -> dict[str, Any]:
    method = get_method(name)
    first = "random" if method.first == "random" else "warm starts"
    about = {"about": method.about, "first": first, "settings": sorted(method.settings)}
    return {"name": name, **about, "missing": method.missing}


def print_rows(title: str, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    shown = [c for c in columns if any(row.get(c) for row in rows)]
    cells = [[_cell(row.get(column)) for column in shown] for row in rows]
    _wide().print(table_of(shown, cells, title))


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} ({how})" for name, how in value.items())
    return "" if value is None else str(value)


def _wide() -> Console:
    """Return the console; a file or a pipe has lines that are long enough."""
    return console if console.is_terminal else Terminal(width=200)


# run ------------------------------------------------------------------------------------------


def run(
    problem: Problems,
    method: Methods,
    seeds: Seeds = "20",
    evaluations: Annotated[int, typer.Option(min=1, help="Evaluations per run.")] = N_EVALUATIONS,
    start: Annotated[int, typer.Option(min=0, help="Start-up configurations per run.")] = N_START,
    past: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Past problems; default: the rest of the suite."),
    ] = None,
    n_past: Annotated[int, typer.Option(min=2, help="Observations per past task.")] = N_PAST,
    setting: Settings = None,
    pruner: Pruners = None,
    batch: Annotated[
        int, typer.Option(min=1, help="Configurations asked for before results are told.")
    ] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Use a Ray cluster; `local` starts one."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("results"),
) -> None:
    """Run methods on problems, and keep a record of each run.

    The past tasks of a problem are the other problems of its suite, with 100 random
    configurations each. They are the same for every method with the same seed. Finished runs are
    skipped, so the same command continues where it was stopped.

    Example: `metatpe bench run --problem hpolib --method meta-tpe,mo-tpe --seeds 20 --jobs 2
    --out results/`

    With a past task whose optimum is elsewhere:
    `metatpe bench run --problem ellipsoid4 --past ellipsoid4-c2 --method meta-tpe,naive-meta-tpe`
    """
    if ray is not None:
        need("ray", "ray")
    with plain_failures():
        methods, missing = _available(method)
        runs = plan(
            split_names(problem),
            methods,
            seeds_of(seeds),
            n_evaluations=evaluations,
            n_start=start,
            n_past=n_past,
            past=None if past is None else split_names(past),
            settings=dict(map(_setting, setting or ())),
            pruners=_pruners(pruner, problem),
            batch=batch,
        )
        involved = ((run.problem, *(task.problem for task in run.past)) for run in runs)
        for name in dict.fromkeys(chain.from_iterable(involved)):
            get_problem(name)  # its table is there, before anything is written
        outcome = run_with_bar(runs, out, jobs, ray)
    print_outcome(outcome, out, missing)
    raise typer.Exit(1 if outcome.failed else 0)


def _pruners(names: str | None, problems: str) -> list[str]:
    """Return the names of pruners; an empty one where none were asked for."""
    found = split_names(names or "")
    for name in found:
        check_pruner(name)
    members = [member for name in split_names(problems) for member in expand(name)]
    if flat := [m for m in members if found and get_problem(m).curve is None]:
        raise ValueError(f"problem {flat[0]!r} has no learning curves; leave out --pruner.")
    return found or [""]


def run_with_bar(runs: Sequence[Run], out: Path, jobs: int, ray: str | None) -> Outcome:
    with progress_bar(Terminal(stderr=True), window=_WINDOW) as progress:
        bar = progress.add_task("starting", total=len(runs))

        def tell(n_done: int, n_runs: int, record: Record | None) -> None:
            what = f"{record.run.problem} {record.run.method}" if record else "running"
            progress.update(bar, description=what[-42:], completed=n_done, total=n_runs)

        try:
            return run_all(runs, out, jobs=jobs, ray=ray, on_progress=tell)
        except KeyboardInterrupt:
            progress.stop()
            say(f"stopped; finished runs are in {out}, and the same command continues.")
            raise typer.Exit(130) from None
        except (RuntimeError, ConnectionError) as error:
            progress.stop()
            fail(str(error))


def print_outcome(outcome: Outcome, out: Path, missing: Sequence[str]) -> None:
    finished = counted(outcome.n_finished, "run")
    print(f"{finished} finished, {outcome.n_skipped} existed already: {out}")
    for sentence in [*missing, *(f"{entry}; it was run again" for entry in outcome.corrupt)]:
        say(sentence, err=True)
    for record in outcome.failed:
        run = record.run
        say(f"{run.problem} {run.label}, seed {run.seed}: {record.error}", err=True)


def _available(names: str) -> tuple[list[str], list[str]]:
    """Return the methods that can be run, and a sentence about each of the others."""
    wanted = list(method_names()) if names == "all" else split_names(names)
    missing = {name: get_method(name).missing for name in wanted}
    sentences = [f"{sentence} (left out)" for sentence in missing.values() if sentence]
    if len(sentences) == len(wanted):
        raise ValueError("; ".join(s for s in missing.values() if s) or "name a method.")
    return [name for name in wanted if not missing[name]], sentences


def split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def seeds_of(text: str) -> range:
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise ValueError(
            f"seeds must be a number such as 20 or a range such as 20-29, not {text!r}."
        )
    seeds = range(int(first), int(last) + 1) if dash else range(int(first))
    if not seeds:
        raise ValueError(f"there is no seed in {text!r}; 1 is one seed, and 3-3 is seed 3 alone.")
    return seeds


def _setting(text: str) -> tuple[str, float | int]:
    name, _, value = text.partition("=")
    try:
        return name, int(value) if value.isdecimal() else float(value)
    except ValueError:
        raise ValueError(f"a setting must be as in eta=2.5, but is {text!r}.") from None


# table ----------------------------------------------------------------------------------------


def table(
    results: Folder,
    at: Annotated[str, typer.Option(metavar="N,N,...", help="Numbers of evaluations.")] = ",".join(
        map(str, AT)
    ),
    against: Annotated[
        str | None, typer.Option(metavar="METHOD", help="Compare all methods with this one.")
    ] = None,
    problem: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Problems; all if none.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Methods; all if none.")
    ] = None,
    scale: ChosenScale = "paper",
    raw: Raw = False,
    as_json: AsJson = False,
) -> None:
    """Summarise results: means with standard errors, ranks, paired tests and speed-ups.

    The measure is the normalised hypervolume (1 is the true front), or the best value for one
    objective. After the last number of evaluations the table also shows the mean rank, the paired
    difference from the method given by `--against`, the p-value of Wilcoxon's signed-rank test,
    and how many evaluations a method needs to become as good as that method.

    Example: `metatpe bench table results/ --at 10,50,100 --against mo-tpe`
    """
    from metatpe.bench.summary import chosen_method, curves_of, summarise  # loads scipy.stats

    with plain_failures():
        found = read_results(results)
        traces, missing = _readable(_chosen(found, problem, method))
        curves = curves_of(traces, scale=scale, raw=raw)
        against = chosen_method(curves, against)
        entries = summarise(curves, at=budgets_of(at), against=against)
    if as_json:
        print_json({"against": against, "entries": [asdict(entry) for entry in entries]})
    else:
        for name in dict.fromkeys(entry.problem for entry in entries):
            _print_table([entry for entry in entries if entry.problem == name], against)
    for sentence in missing:
        typer.echo(sentence, err=True)
    print_left_out(found)


def _chosen(found: Results, problem: str | None, method: str | None) -> list[Trace]:
    problems = {member for name in split_names(problem or "") for member in expand(name)}
    methods = set(split_names(method or ""))
    for name in methods:
        get_method(name)
    traces = [
        trace
        for trace in found.traces
        if (not problems or trace.run.problem in problems)
        and (not methods or trace.run.method in methods)
    ]
    if not traces:
        raise ValueError("there is no finished run to summarise.")
    return traces


def _readable(traces: Sequence[Trace]) -> tuple[list[Trace], list[str]]:
    """Return the runs whose tables are here, and a sentence about the problems of the others.

    A hypervolume is relative to the true front, so that it takes the table of the problem.

    Raises:
        ValueError: No table is here.
    """
    missing: dict[str, str] = {}
    for name in dict.fromkeys(trace.run.problem for trace in traces):
        try:
            get_problem(name)
        except (ImportError, OSError) as error:
            missing[name] = str(error)
    sentences = []
    for suite in dict.fromkeys(map(suite_of, missing)):  # the tables of a suite come together
        names = [name for name in missing if suite_of(name) == suite]
        verb = "is" if len(names) == 1 else "are"
        sentences.append(f"{', '.join(names)} {verb} left out: {missing[names[0]]}")
    readable = [trace for trace in traces if trace.run.problem not in missing]
    if not readable:
        raise ValueError(f"the data of none of these problems are installed; {sentences[0]}")
    return readable, sentences


def budgets_of(text: str) -> list[int]:
    numbers = split_names(text)
    if not numbers or not all(n.isdecimal() and int(n) for n in numbers):
        raise ValueError(f"--at must be numbers of evaluations such as 10,100, but is {text!r}.")
    return sorted({int(n) for n in numbers})


def _print_table(entries: Sequence[Entry], against: str) -> None:
    numbers = sorted({entry.n for entry in entries})
    table = Table(title=entries[0].problem, title_justify="left")
    table.add_column("method", no_wrap=True)
    for title in ("seeds", *map(str, numbers), "rank", f"− {against}", "p", "needs"):
        table.add_column(title, justify="right", no_wrap=True)
    for name in dict.fromkeys(entry.method for entry in entries):
        by_n = {entry.n: entry for entry in entries if entry.method == name}
        means = [f"{by_n[n].mean:.4g}{_error(by_n[n].se)}" if n in by_n else "" for n in numbers]
        n_seeds = max(entry.n_seeds for entry in by_n.values())
        table.add_row(name, str(n_seeds), *means, *_last(by_n[max(by_n)]))
    _wide().print(table)


def _error(se: float | None) -> str:
    return "" if se is None else f" ±{se:.1g}"


def _last(entry: Entry) -> tuple[str, str, str, str]:
    rank = "" if entry.rank is None else f"{entry.rank:.2f}"
    if (versus := entry.versus) is None:
        return rank, "", "", ""
    needs = "more" if versus.n_needed is None else str(versus.n_needed)
    return rank, f"{versus.difference:+.3g}{_error(versus.se)}", f"{versus.p:.2g}", needs


def print_left_out(found: Results) -> None:
    for entry in found.corrupt:
        say(str(entry), err=True)
    for record in found.failed:
        run = record.run
        say(f"{run.problem} {run.label}, seed {run.seed} failed: {record.error}", err=True)


# compact --------------------------------------------------------------------------------------


def compact(
    results: Folder,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the compact files.")],
) -> None:
    """Write the objective values of all runs to small files, one per problem, to share them.

    `metatpe bench table OUT` reads these files in the same way as records.

    Example: `metatpe bench compact results/ docs/results/`
    """
    with plain_failures():
        found = read_results(results)
        paths = write_compact(found.traces, out)
    for path in paths:
        print(f"{path}  {path.stat().st_size / 1024:,.0f} KiB")
    print_left_out(found)
