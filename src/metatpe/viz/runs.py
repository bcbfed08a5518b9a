"""Progress curves and attainment surfaces: what is drawn of the values that runs have reached.

Losses are minimised; what is returned has the units and directions of the studies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from optuna.study import Study

from metatpe.past.task import own_names
from metatpe.space import Floats, Ints, Mask
from metatpe.study.trials import is_counted, losses_of, signs_of, violation_of
from metatpe.tpe.hypervolume import (
    attainment_surface,
    running_hypervolume,
    staircase,
    standard_error,
)
from metatpe.tpe.pareto import ranks
from metatpe.viz.style import Shown, number
from metatpe.viz.ticks import padded, spans_decades

Runs = Study | Sequence[Study] | Mapping[str, Study | Sequence[Study]]
NOTHING = "no finished trial yet"
_MIN_RUNS_OF_BAND = 3


class FinishedTrials(NamedTuple):
    """The finished trials of a study."""

    losses: Floats  # (n, m); a row of inf where a trial was infeasible, pruned, or infinite
    numbers: Ints  # (n,) of the trials

    @property
    def finite(self) -> FinishedTrials:
        """The trials that count."""
        is_finite = np.isfinite(self.losses[:, 0])
        return FinishedTrials(self.losses[is_finite], self.numbers[is_finite])


class Curve(NamedTuple):
    """How far the runs of a label have come."""

    label: str
    n_runs: int
    finished: Ints  # (n,) trials, 1, 2, ...
    mean: Floats  # (n,) NaN where there is nothing yet
    se: Floats  # (n,) NaN for a single run
    numbers: Ints  # (n,) of the trials of a single run


@dataclass(frozen=True, eq=False)
class Progress(Shown):
    """The curves of `plot_hypervolume`."""

    curves: list[Curve]
    y_name: str
    limits: tuple[float, float] | None = None  # of the values; None: they are on a linear scale


class Surface(NamedTuple):
    """What half of a label's runs have reached."""

    label: str
    n_runs: int
    border: Floats  # (k, 2)
    band: Floats  # (l, 2) polygon from 25 to 75 %; empty where there are few runs
    points: Floats  # (p, 2) the front of a single run, otherwise empty
    numbers: Ints  # (p,) of its trials


@dataclass(frozen=True, eq=False)
class Attainment(Shown):
    """The surfaces of `plot_attainment`."""

    surfaces: list[Surface]
    front: Floats  # (k, 2) the border of all runs together; empty where there is one run
    names: tuple[str, ...]
    is_log: tuple[bool, ...]
    limits: Floats  # (2, 2) of the axes, one row each


def labelled(studies: Runs) -> dict[str, list[Study]]:
    """Return label -> runs, whatever form they were given in.

    Raises:
        ValueError: There is something else than studies, or their objectives differ.
    """
    if isinstance(studies, Mapping):
        groups = {str(k): [v] if isinstance(v, Study) else list(v) for k, v in studies.items()}
    else:
        listed = [studies] if isinstance(studies, Study) else list(studies)
        _check_studies(listed)
        names = own_names(study.study_name for study in listed)
        groups = {name: [study] for name, study in zip(names, listed, strict=True)}
    _check_studies([study for group in groups.values() for study in group])
    return groups


def _check_studies(studies: Sequence[Study]) -> None:
    for study in studies:
        if not isinstance(study, Study):
            raise ValueError(
                f"studies must be a Study, a list of them, or a dictionary of labels and studies, "
                f"but there is a {type(study).__name__}."
            )
        if study.directions != studies[0].directions:
            raise ValueError(
                f"studies {studies[0].study_name!r} and {study.study_name!r} have different "
                "objectives; plot them one at a time."
            )


def _objectives(groups: Mapping[str, Sequence[Study]]) -> tuple[tuple[str, ...], Floats]:
    """Return the names of the objectives and signs (m,), -1 where one is maximised."""
    studies = [study for group in groups.values() for study in group]
    if not studies:
        return ("value",), np.ones(1)
    names = next((s.metric_names for s in studies if s.metric_names), None)
    plain = plain_names(len(studies[0].directions))
    return tuple(names or plain), signs_of(studies[0].directions)


def plain_names(n: int) -> list[str]:
    """Return the names of objectives that the user has not named."""
    return ["value"] if n == 1 else [f"objective {i}" for i in range(n)]


def run_of(study: Study) -> FinishedTrials:
    """Return the finished trials of a study."""
    trials = [t for t in study.get_trials(deepcopy=False) if is_counted(t)]
    shape = (len(trials), len(study.directions))
    rows = [losses_of(t, study.directions) for t in trials]
    losses = np.array(rows, dtype=np.float64).reshape(shape)
    is_out = np.array([violation_of(t) > 0 for t in trials], dtype=np.bool_)
    losses[is_out | ~np.isfinite(losses).all(axis=1)] = np.inf
    return FinishedTrials(losses, np.array([t.number for t in trials], dtype=np.int64))


def _finished_runs(
    groups: Mapping[str, Sequence[Study]], read: Callable[[Study], FinishedTrials] = run_of
) -> dict[str, list[FinishedTrials]]:
    """Return the runs with a finished trial, and the labels that have one."""
    runs = {label: [read(study) for study in group] for label, group in groups.items()}
    begun = {label: [run for run in group if len(run.losses)] for label, group in runs.items()}
    return {label: group for label, group in begun.items() if group}


# Progress -------------------------------------------------------------------------------------


def progress_of(studies: Runs, reference_point: Sequence[float] | None) -> Progress:
    """Return the running hypervolume of each label, of one objective the best value so far."""
    groups = labelled(studies)
    (names, signs), runs = _objectives(groups), _finished_runs(groups)
    if len(names) > 1:
        return _hypervolumes(runs, names, signs, reference_point)
    if reference_point is not None:
        raise ValueError("a study with one objective has no hypervolume, and no reference.")
    curves = [_curve(k, group, lambda losses: _best(losses, signs)) for k, group in runs.items()]
    return Progress(
        curves,
        f"best {names[0]} so far",
        _log_limits(curves),
        title="Best value",
        note="" if runs else NOTHING,
    )


def _log_limits(curves: Sequence[Curve]) -> tuple[float, float] | None:
    """Return the ends of a log axis for curves with their bands; None where it is linear."""
    bands = [np.nan_to_num(curve.se) for curve in curves]
    ends = [c.mean + sign * b for c, b in zip(curves, bands, strict=True) for sign in (-1, 1)]
    values = np.concatenate([np.empty(0), *ends])
    values = values[np.isfinite(values)]
    return padded(values, True) if len(values) and spans_decades(values) else None


def _hypervolumes(
    runs: Mapping[str, Sequence[FinishedTrials]],
    names: Sequence[str],
    signs: Floats,
    given: Sequence[float] | None,
) -> Progress:
    """Return the running hypervolume, on the scale on which the values of an objective are spread.

    Where they span decades that is the logarithm: on a linear scale the worst values alone decide,
    and all runs look alike. A reference point that was given is taken as it is, without logs.
    """
    reference = _reference(runs, signs, given)
    if reference is None:
        return Progress([], "hypervolume", title="Hypervolume", note=NOTHING)
    is_log = np.zeros(len(names), dtype=np.bool_)
    if given is None:
        every = np.concatenate([run.finite.losses for group in runs.values() for run in group])
        is_log = np.array([spans_decades(values) for values in (every * signs).T])

    def measure(losses: Floats) -> Floats:
        return running_hypervolume(
            in_logs(losses, signs, is_log), in_logs(reference[None], signs, is_log)[0]
        )

    parts = zip(names, reference * signs, is_log, strict=True)
    worst = [f"{name} = {number(v)}{' (log scale)' if log else ''}" for name, v, log in parts]
    curves = [_curve(label, group, measure) for label, group in runs.items()]
    about = f"reference point: {', '.join(worst)}"
    return Progress(curves, "hypervolume", title="Hypervolume", about=about)


def in_logs(losses: Floats, signs: Floats, is_log: Mask) -> Floats:  # (n, m), (m,), (m,)
    """Return losses with the logarithm to base ten of some objectives; inf stays inf."""
    scaled, is_finite = losses.copy(), np.isfinite(losses).all(axis=1)
    for j in np.flatnonzero(is_log):
        scaled[is_finite, j] = signs[j] * np.log10(losses[is_finite, j] * signs[j])
    return scaled


def _best(losses: Floats, signs: Floats) -> Floats:  # (n, 1), (1,) -> (n,)
    best: Floats = np.minimum.accumulate(losses[:, 0])
    return np.where(np.isfinite(best), signs[0] * best, np.nan)


def _curve(
    label: str, runs: Sequence[FinishedTrials], measure: Callable[[Floats], Floats]
) -> Curve:
    """Return the mean over the runs, as far as all of them go."""
    n = min(len(run.losses) for run in runs)
    curves = np.stack([measure(run.losses)[:n] for run in runs])
    numbers = runs[0].numbers if len(runs) == 1 else np.empty(0, dtype=np.int64)
    mean, se = curves.mean(axis=0), standard_error(curves)
    return Curve(label, len(runs), np.arange(1, n + 1), mean, se, numbers)


def _reference(
    runs: Mapping[str, Sequence[FinishedTrials]], signs: Floats, given: Sequence[float] | None
) -> Floats | None:  # (m,), as losses
    """Return the reference point: the given one, or the worst that any run has seen."""
    if given is not None:
        point = np.asarray(given, dtype=np.float64)
        if point.shape != signs.shape or not np.isfinite(point).all():
            raise ValueError(
                f"reference_point must be {len(signs)} numbers, one per objective, "
                f"but is {given!r}."
            )
        return point * signs if runs else None
    seen = [run.finite.losses for group in runs.values() for run in group]
    losses = np.concatenate([np.empty((0, len(signs))), *seen])
    return losses.max(axis=0) if len(losses) else None


# Attainment -----------------------------------------------------------------------------------


def attainment_of(studies: Runs) -> Attainment:
    """Return the 50 % surface of each label, and the front of all runs."""
    groups = labelled(studies)
    names, signs = _objectives(groups)
    if len(names) != 2 and any(groups.values()):
        raise ValueError(f"attainment is drawn for two objectives, but there are {len(names)}.")
    runs = _finished_runs(groups, lambda study: run_of(study).finite)
    if not runs:
        no, title = np.empty((0, 2)), "Pareto fronts"
        both = (*names, "")[:2]  # without a study, there is one name
        return Attainment([], no, both, (False, False), no, title=title, note=NOTHING)
    return _attained(runs, names, signs)


def _attained(
    runs: Mapping[str, Sequence[FinishedTrials]], names: tuple[str, ...], signs: Floats
) -> Attainment:
    corners = {
        label: {
            q: attainment_surface([run.losses for run in group], q)
            for q in ((25, 50, 75) if len(group) >= _MIN_RUNS_OF_BAND else (50,))
        }
        for label, group in runs.items()
    }
    every = [run for group in runs.values() for run in group]
    front = attainment_surface([np.concatenate([run.losses for run in every])], 50)
    drawn = np.concatenate([front, *(c for by in corners.values() for c in by.values())])
    is_log = tuple(spans_decades(values) for values in (drawn * signs).T)
    limits = np.array([padded(v, log) for v, log in zip((drawn * signs).T, is_log, strict=True)])
    worst = np.where(signs > 0, limits[:, 1], -limits[:, 0])
    surfaces = [_surface(label, runs[label], by, signs, worst) for label, by in corners.items()]
    border = staircase(front, worst) * signs if len(every) > 1 else np.empty((0, 2))
    is_many = any(len(group) > 1 for group in runs.values())
    title = "What half of the runs have reached" if is_many else "Pareto fronts"
    return Attainment(surfaces, border, names, is_log, limits, title=title)


def _surface(
    label: str,
    runs: Sequence[FinishedTrials],
    corners: Mapping[int, Floats],
    signs: Floats,
    worst: Floats,
) -> Surface:
    borders = {q: staircase(c, worst) * signs for q, c in corners.items()}
    band = np.concatenate([borders[25], borders[75][::-1]]) if 25 in borders else np.empty((0, 2))
    points, numbers = np.empty((0, 2)), np.empty(0, dtype=np.int64)
    if len(runs) == 1:
        is_best = ranks(runs[0].losses) == 0
        points, numbers = runs[0].losses[is_best] * signs, runs[0].numbers[is_best]
    return Surface(label, len(runs), borders[50], band, points, numbers)
