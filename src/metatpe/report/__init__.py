"""A report on one study: what was tuned, what came out, and what came from past studies.

html_report      one HTML file with interactive plots, which needs no network (extra `viz`)
markdown_report  the same text and tables as Markdown
note             the short version that the dashboard shows
"""

from __future__ import annotations

from collections.abc import Sequence

from optuna.study import Study

from metatpe.past.task import Task

# The functions import what they need when they are called: `TransferCallback` is in this package,
# and who imports it need not load plots and reports.

__all__ = ["html_report", "markdown_report", "note"]


def html_report(
    study: Study, past: Sequence[Study | Task] = (), *, without: Sequence[Study] = ()
) -> str:
    """Return a report on a study as one HTML file.

    Args:
        study: The study; of any sampler, finished or not.
        past: The past studies or tasks that the sampler had, and others to compare with.
        without: Runs of the same problem without past studies; with them, the report shows how
            many trials were saved.

    Raises:
        ValueError: A run without past studies has other objectives.

    Example:
        >>> html_report(study, sources)
        '<!doctype html>...'
    """
    from metatpe.report.facts import facts_of
    from metatpe.report.html import page
    from metatpe.report.story import sections_of

    return page(study.study_name, sections_of(facts_of(study, past, without)))


def markdown_report(
    study: Study, past: Sequence[Study | Task] = (), *, without: Sequence[Study] = ()
) -> str:
    """Return the text of a report as Markdown.

    Args:
        study: The study, as in `html_report`.
        past: Past studies or tasks.
        without: Runs without past studies.

    Example:
        >>> print(markdown_report(study, sources))
        # ...
        ## In short
        ...
    """
    from metatpe.report.facts import facts_of
    from metatpe.report.markdown import as_markdown
    from metatpe.report.story import sections_of

    return as_markdown(study.study_name, sections_of(facts_of(study, past, without)))


def note(study: Study, past: Sequence[Study | Task] = ()) -> str:
    """Return a few lines of Markdown about what was transferred.

    Args:
        study: The study, as in `html_report`.
        past: Past studies or tasks.

    Example:
        >>> print(note(study, sources))
        ### What was transferred
        ...
    """
    from metatpe.report.facts import facts_of
    from metatpe.report.markdown import as_markdown
    from metatpe.report.story import summary_of

    return as_markdown("What was transferred", summary_of(facts_of(study, past)), level=3)
