"""Plots of the transfer. As in Optuna, each function takes a study and returns a plotly figure.

`metatpe.viz.matplotlib` has the same functions for print. Both need the extra `viz`.

Figures are transparent, with grey text and colours that colour-blind readers can tell apart, so
that they are readable on light and on dark pages. All of this is in the template of the figure;
``figure.update_layout(template="plotly_white")`` (or "plotly_dark") replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from optuna.distributions import BaseDistribution
from optuna.study import Study

from metatpe.past.task import Task
from metatpe.space import Space
from metatpe.viz import matplotlib
from metatpe.viz.curves import learning_curves_of
from metatpe.viz.portfolio import coverage_of
from metatpe.viz.regions import gamma_sets
from metatpe.viz.runs import Runs, attainment_of, progress_of
from metatpe.viz.tasks import importances_of, similarities_of
from metatpe.viz.weights import weights_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "matplotlib",
    "plot_attainment",
    "plot_curves",
    "plot_gamma_sets",
    "plot_hypervolume",
    "plot_importances",
    "plot_portfolio",
    "plot_similarity",
    "plot_task_weights",
]


def plot_task_weights(study: Study) -> Figure:
    """Plot the weight of each past task over the trials of a study, and how trials were chosen.

    The upper panel has one line for each of the past tasks with the largest weights. The middle
    panel shows how the whole weight is divided among them, all other past tasks, and the study
    itself. The lower panel has one mark per trial, in the row of its `TransferRecord.reason`.

    Args:
        study: A study that a sampler of metatpe has tuned; of another one, the plot is empty.

    Example:
        >>> figure = plot_task_weights(study)  # figure.show() opens it
    """
    from metatpe.viz import plotly

    return plotly.draw_task_weights(weights_of(study))


def plot_hypervolume(studies: Runs, *, reference_point: Sequence[float] | None = None) -> Figure:
    """Plot the hypervolume of studies over their finished trials.

    With one objective, the best value so far. Infeasible trials and infinite values do not count.
    If the values of an objective span more than a factor of ten, its logarithm is used, unless a
    reference point is given: on a linear scale, the worst values would dominate.

    Args:
        studies: A study; several, one line each; or a dictionary of labels and studies, where a
            list of studies (of several seeds) is drawn as its mean with a band of one standard
            error, as far as all of them go.
        reference_point: One value per objective, which bounds the volume; by default the worst
            value of any of the studies in each objective.

    Raises:
        ValueError: The studies have different objectives, or the reference point does not fit.

    Example:
        >>> figure = plot_hypervolume({"with past studies": study, "without": alone})
    """
    from metatpe.viz import plotly

    return plotly.draw_progress(progress_of(studies, reference_point))


def plot_attainment(studies: Runs) -> Figure:
    """Plot the median attainment surface of two objectives, and the front of all runs.

    The 50 % attainment surface bounds the values that half of the runs of a label dominate. With
    three runs or more, a band shows the 25 % and 75 % surfaces. For a single run, the surface is
    its Pareto front, with the trials on it.

    Args:
        studies: As for `plot_hypervolume`.

    Raises:
        ValueError: The studies do not have the same two objectives.

    Example:
        >>> figure = plot_attainment({"with past studies": study, "without": alone})
    """
    from metatpe.viz import plotly

    return plotly.draw_attainment(attainment_of(studies))


def plot_curves(study: Study, sources: Sequence[Study | Task] = ()) -> Figure:
    """Plot the learning curves of a study, and where trials were pruned.

    Curves of past studies are grey, over the steps of the study by the share of their length. A
    cross marks where a trial was pruned; from there a dotted line leads to the value that it was
    expected to reach, if `TransferPruner` has stopped it. The axis is logarithmic where values
    span decades, and leaves out what diverges. There is a panel for each objective.

    Args:
        study: A study whose trials report intermediate values (`trial.report`, `report_values`).
        sources: Past studies or tasks whose curves are shown, too; some of many.

    Example:
        >>> figure = plot_curves(study, sources)
    """
    from metatpe.viz import curves_plotly

    return curves_plotly.draw_learning_curves(learning_curves_of(study, sources))


def plot_importances(study: Study, sources: Sequence[Study | Task] = ()) -> Figure:
    """Plot how important each parameter is, in a study and in its sources.

    The importance is PED-ANOVA's, as `importance` returns it, divided by the sum over all
    parameters: for the study, for the sources with the largest weights, and for the mean of the
    others. It is about the best tenth of the configurations. Optuna's default importance is about
    the spread of all values, and may differ. A second panel shows on which parameters the
    similarity was measured at each trial, if `MetaTPESampler` has tuned the study.

    Args:
        study: The study.
        sources: Past studies or tasks to compare it with.

    Example:
        >>> figure = plot_importances(study, sources)
    """
    from metatpe.viz import plotly

    return plotly.draw_importances(importances_of(study, sources))


def plot_similarity(tasks: Sequence[Study | Task]) -> Figure:
    """Plot a heat map of the similarity of each pair of tasks, see `gamma_similarity`.

    Each row compares a task with the others on its own most important parameters. Similar tasks
    are neighbours.

    Args:
        tasks: Studies or tasks.

    Example:
        >>> figure = plot_similarity([study, *sources])
    """
    from metatpe.viz import plotly

    return plotly.draw_similarity(similarities_of(tasks))


def plot_gamma_sets(
    a: Study | Task, b: Study | Task, params: str | Sequence[str] | None = None
) -> Figure:
    """Plot the regions of the best configurations of two tasks, and their overlap.

    With one parameter, the plot shows the densities of the good observations; the area below both,
    divided by the area below either, is the similarity on this parameter. With two parameters, it
    shows the smallest regions that contain 80 % of each density.

    Args:
        a: A study or task; the axes are those of its space.
        b: Another one.
        params: One or two parameters that both have; by default the two most important ones.

    Raises:
        ValueError: A task lacks a parameter, or they have none in common.

    Example:
        >>> figure = plot_gamma_sets(study, sources[0], ["lr", "depth"])
    """
    from metatpe.viz import plotly

    return plotly.draw_gamma_sets(gamma_sets(a, b, params))


def plot_portfolio(
    tasks: Sequence[Study | Task],
    k: int = 5,
    *,
    space: Mapping[str, BaseDistribution] | Space | None = None,
) -> Figure:
    """Plot what each configuration of a portfolio covers, see `portfolio`.

    The heat map has a row per past study and a column per configuration, in the order in which to
    try them. Its colour is `Member.alone`, the share of the study's own result that the
    configuration is expected to reach. A cell is outlined if the configuration was chosen for the
    study (`Member.serves`). The bars above are the mean of `Member.together`, the share that the
    configurations reach together. The table below has their parameters.

    Args:
        tasks: Past studies or tasks, all with the same number of objectives. Of many, some are
            shown, and the mean of the others.
        k: How many configurations.
        space: The space of the new study, where it differs from those of the past.

    Raises:
        ValueError: There is no portfolio, see `portfolio`.

    Example:
        >>> figure = plot_portfolio(sources, k=3)
    """
    from metatpe.viz import plotly

    return plotly.draw_coverage(coverage_of(tasks, k, space))
