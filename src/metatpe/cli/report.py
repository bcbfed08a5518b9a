"""`metatpe report`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import optuna
import typer
from optuna.study import Study

from metatpe.cli.common import Storage, load_stored, load_study, need, plain_failures
from metatpe.cli.completion import complete_study
from metatpe.past.read.storage import open_storage, plain_errors
from metatpe.past.read.studies import study_names
from metatpe.report import html_report, markdown_report
from metatpe.report.pdf import browser, print_pdf
from metatpe.study.record import REST, TARGET, transfer_history


class Format(Enum):
    """What a report is written as."""

    HTML = "html"
    MD = "md"


def report(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help="The study to report on.", autocompletion=complete_study
        ),
    ],
    storage: Storage,
    out: Annotated[
        Path | None,
        typer.Option(help="Output file; default: `report.html`. Markdown is printed."),
    ] = None,
    past: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="STUDY",
            help="More past studies to compare with, as names or patterns. The past studies of "
            "the sampler are included anyway if the storage has them.",
            autocompletion=complete_study,
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STUDY",
            help="Studies of the same problem without past studies, to measure the trials saved.",
            autocompletion=complete_study,
        ),
    ] = None,
    as_: Annotated[
        Format, typer.Option("--format", help="A page with plots, or text only.")
    ] = Format.HTML,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Also print the page to a PDF file: report.pdf.")
    ] = False,
) -> None:
    """Write a report on a study: its results, and what the past studies contributed.

    The report is one HTML file that needs no network, so you can send it by email. `--pdf`
    prints it with Chromium, Chrome or Edge. HTML needs the extra `viz`.

    Examples:

    `metatpe report new --storage sqlite:///studies.db --out report.html`

    `metatpe report new --storage sqlite:///studies.db --from 'resnet-*' --format md`
    """
    is_page = as_ is Format.HTML
    with plain_failures():
        if is_page:
            need("viz", "plotly")
        elif pdf:
            raise ValueError("--pdf prints the page; leave --format md out.")
        program = browser() if pdf else ""
        found, sources, runs = _read(study, storage, past or (), without or ())
        text = (html_report if is_page else markdown_report)(found, sources, without=runs)
        if out is None and not is_page:
            typer.echo(text, nl=False)
            return
        page = out or Path("report.html")
        _write(page, text)
        if pdf:
            print_pdf(page, page.with_suffix(".pdf"), program)
            _say_written(page.with_suffix(".pdf"))


def _read(
    name: str, storage: str, past: Sequence[str], without: Sequence[str]
) -> tuple[Study, list[Study], list[Study]]:
    """Return the study, the past studies on record or asked for, and runs without past studies."""
    opened = open_storage(storage)
    study = load_study(opened, name)
    with plain_errors(opened):
        stored = {*optuna.study.get_all_study_names(opened)} - {TARGET, REST}
    records = transfer_history(study)
    used = {n for r in records for n in (*r.weights, *r.sources) if n in stored}
    asked = study_names(opened, past) if past else []
    runs = study_names(opened, without) if without else []
    wanted = dict.fromkeys([*sorted(used), *asked])
    names = [n for n in wanted if n != study.study_name and n not in runs]
    sources, others = ([load_stored(opened, n) for n in group] for group in (names, runs))
    for other in others:
        if any({*r.weights, *r.sources} - {TARGET} for r in transfer_history(other)):
            raise ValueError(
                f"study {other.study_name!r} was tuned with past studies; --without needs "
                "studies of the same problem that were tuned without them."
            )
    return study, sources, others


def _write(out: Path, text: str) -> None:
    if not out.parent.is_dir():
        raise ValueError(f"there is no folder {out.parent}.")
    out.write_text(text, "utf-8")
    _say_written(out)


def _say_written(path: Path) -> None:
    typer.echo(f"{path}, {max(1, round(path.stat().st_size / 1e3)):,} kB", err=True)
