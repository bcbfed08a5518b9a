"""The figures of the paper, by name. A module holds `FIGURES`; adding one is one entry there."""

from metatpe.bench.figures import attainment, datasets, ellipsoids, hypervolume, task_kernel
from metatpe.bench.figures.figure import Figure, Measure, save
from metatpe.bench.problems import unknown_name

__all__ = ["Figure", "Measure", "figure_names", "get_figure", "save"]

_MODULES = (hypervolume, attainment, ellipsoids, datasets, task_kernel)
_FIGURES: dict[str, Figure] = {
    figure.name: figure for module in _MODULES for figure in module.FIGURES
}


def figure_names() -> tuple[str, ...]:
    """Return the names of all figures."""
    return tuple(_FIGURES)


def get_figure(name: str) -> Figure:
    """Return the figure called `name`.

    Raises:
        ValueError: If there is none of that name; close ones are listed.
    """
    if name not in _FIGURES:
        raise ValueError(unknown_name("figure", name, figure_names()))
    return _FIGURES[name]
