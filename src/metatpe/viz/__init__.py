"""Plots of what was transferred, in Optuna's manner: a study in, a plotly figure back.

`metatpe.viz.matplotlib` has the same functions for print. Both need the extra `viz`.

Figures are transparent, with grey text and colours that the colour-blind tell apart, so that they
can be read on a light page and on a dark one. All of that is in the figure's template: another one
takes its place with ``figure.update_layout(template="plotly_white")`` (or "plotly_dark").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from optuna.study import Study

from metatpe.past.task import Task
from metatpe.viz import matplotlib
from metatpe.viz.regions import gamma_sets
from metatpe.viz.runs import Runs, attainment_of, progress_of
from metatpe.viz.tasks import importances_of, similarities_of
from metatpe.viz.weights import weights_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "matplotlib",
    "plot_attainment",
    "plot_gamma_sets",
    "plot_hypervolume",
    "plot_importances",
    "plot_similarity",
    "plot_task_weights",
]


def plot_task_weights(study: Study) -> Figure:
    """Plot what every past task weighed while a study ran, and where its trials came from.

    Above, the past tasks with the largest weights, one line each. In the middle, how the whole
    weight is divided between them, all other past tasks, and the study itself. Below, one mark a
    trial: warm start, random, ε (the random part of the choice), the past's turn or the study's
    own; of samplers without turns, acquisition.

    Args:
        study: A study that a sampler of metatpe has tuned; of another one, the plot is empty.

    Example:
        >>> plot_task_weights(study).show()  # doctest: +SKIP
    """
    from metatpe.viz import plotly

    return plotly.draw_task_weights(weights_of(study))


def plot_hypervolume(studies: Runs, *, reference_point: Sequence[float] | None = None) -> Figure:
    """Plot the hypervolume that studies have reached, over their finished trials.

    With one objective, the best value so far. Infeasible trials, and infinite values, add nothing.

    Args:
        studies: A study; several, one line each; or a dictionary of labels and studies, where a
            list of studies (of several seeds) is drawn as its mean with a band of one standard
            error, as far as all of them go.
        reference_point: The values, one an objective, within which the volume is taken; left out,
            the worst that any of the studies has seen in each objective.

    Raises:
        ValueError: The studies have different objectives, or the reference point does not fit.

    Example:
        >>> plot_hypervolume({"with the past": [a0, a1], "without": [b0, b1]})  # doctest: +SKIP
    """
    from metatpe.viz import plotly

    return plotly.draw_progress(progress_of(studies, reference_point))


def plot_attainment(studies: Runs) -> Figure:
    """Plot which values of two objectives half of the runs have reached, and the front of all.

    The 50 % attainment surface borders what half of a label's runs dominate; a band reaches from
    25 to 75 % where there are three runs or more. Of a single run it is the front, with its
    trials.

    Args:
        studies: As for `plot_hypervolume`.

    Raises:
        ValueError: The studies do not have the same two objectives.

    Example:
        >>> plot_attainment({"with the past": [a0, a1], "without": [b0, b1]})  # doctest: +SKIP
    """
    from metatpe.viz import plotly

    return plotly.draw_attainment(attainment_of(studies))


def plot_importances(study: Study, sources: Sequence[Study | Task] = ()) -> Figure:
    """Plot how much each parameter matters for being among the best, in a study and its sources.

    PED-ANOVA's importance as `importance` returns it, the study first; of many sources those that
    weighed most, and the mean of the others. Beside it, in which trials the similarity was
    measured on the parameter, if `MetaTPESampler` has tuned the study.

    Args:
        study: The study.
        sources: Past studies or tasks to compare it with.

    Example:
        >>> plot_importances(study, load_tasks("sqlite:///studies.db"))  # doctest: +SKIP
    """
    from metatpe.viz import plotly

    return plotly.draw_importances(importances_of(study, sources))


def plot_similarity(tasks: Sequence[Study | Task]) -> Figure:
    """Plot how alike tasks are, each to each: a heat map of `gamma_similarity`.

    A row compares a task with the others on its own most important parameters. Tasks that are
    alike stand side by side.

    Args:
        tasks: Studies or tasks.

    Example:
        >>> plot_similarity([study, *sources])  # doctest: +SKIP
    """
    from metatpe.viz import plotly

    return plotly.draw_similarity(similarities_of(tasks))


def plot_gamma_sets(
    a: Study | Task, b: Study | Task, params: str | Sequence[str] | None = None
) -> Figure:
    """Plot where the best configurations of two tasks are, and where they overlap.

    One parameter: the densities of the good observations; the area below both of them, over the
    area below either, is the similarity on this parameter. Two parameters: the smallest regions
    that hold 80 % of each density.

    Args:
        a: A study or task; its space is the one drawn.
        b: Another one.
        params: One parameter or two that both have; left out, the two that matter most.

    Raises:
        ValueError: A task lacks a parameter, or they have none in common.

    Example:
        >>> plot_gamma_sets(study, sources[0], ["lr", "depth"])  # doctest: +SKIP
    """
    from metatpe.viz import plotly

    return plotly.draw_gamma_sets(gamma_sets(a, b, params))
