"""Options of `metatpe tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from metatpe.cli.completion import complete_study
from metatpe.tuning.setup import PrunerName, SamplerChoice

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE.py:FUNCTION | -- COMMAND", help="What to tune.", show_default=False
    ),
]
StudyName = Annotated[
    str, typer.Option(help="The study to create or continue.", autocompletion=complete_study)
]
PastNames = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="STUDY",
        help="Past studies of the storage: names or patterns.",
        autocompletion=complete_study,
    ),
]
Sampler = Annotated[
    SamplerChoice,
    typer.Option(
        help="`transfer` (TransferSampler) gets the most out of each trial, `meta-tpe` "
        "(MetaTPESampler) suggests in milliseconds. `auto` is `transfer`, or `meta-tpe` for "
        "more than 1,000 trials or if trials of the study took less than 0.5 s."
    ),
]
Pruner = Annotated[
    PrunerName,
    typer.Option(
        help="The pruner, which stops trials early. `transfer` (TransferPruner) uses the learning "
        "curves of past studies and of the study itself; `median`, `halving` and `hyperband` are "
        "Optuna's."
    ),
]
Report = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN",
        help="How a command prints intermediate values: `epoch {step} loss {value}`.",
    ),
]
Directions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DIRECTION",
        help="minimize or maximize, once per objective; default: as in the past studies, or "
        "minimize if there are none.",
    ),
]
ObjectiveNames = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Name of an objective; may be repeated.")
]
NTrials = Annotated[
    int,
    typer.Option(min=1, help="Number of trials of the study, including those of earlier runs."),
]
NJobs = Annotated[int, typer.Option(min=1, help="Number of processes.")]
Timeout = Annotated[
    float | None, typer.Option(min=0, help="Start no new trials after this many seconds.")
]
Logs = Annotated[Path | None, typer.Option(help="Folder for the output of the trials.")]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Makes suggestions reproducible, with one job.")
]
StoragePatience = Annotated[
    float,
    typer.Option(min=0, help="Seconds to wait for an unavailable storage; results are kept."),
]
KeepGoing = Annotated[
    bool,
    typer.Option("--keep-going", help="Continue if the first three trials fail in the same way."),
]
