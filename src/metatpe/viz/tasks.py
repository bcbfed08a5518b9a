"""What is drawn of tasks: importances of their parameters, and similarities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from optuna.study import Study

from metatpe.past.read.studies import as_tasks
from metatpe.past.similarity import gamma_similarity, importance, similarity_matrix
from metatpe.past.task import Task
from metatpe.space import Floats
from metatpe.study.record import TransferRecord, transfer_history
from metatpe.study.trials import n_usable
from metatpe.viz.style import MAX_SHOWN, Shown, number, shortened
from metatpe.words import counted

_MEANING = "1: the same best region, 0: no overlap"
MAX_PARAMETERS = 30
MAX_COMPARED = 50  # tasks; comparing each with each takes some ms a pair


@dataclass(frozen=True, eq=False)
class Importances(Shown):
    """Importances of p parameters, the most important first."""

    parameters: tuple[str, ...]  # (p,)
    target: Floats  # (p,) shares; NaN where the study does not have it, or nothing is known
    sources: dict[str, Floats]  # (p,) each
    others: Floats  # (p,) the mean of the sources that are not shown
    n_others: int
    kept: dict[str, list[int]]  # parameter -> trials whose similarity was measured on it
    n_compared: int  # trials for which a similarity was measured

    @property
    def others_name(self) -> str:
        """What the mean of the sources that are not shown is called."""
        return f"mean of {counted(self.n_others, 'other')}"


@dataclass(frozen=True, eq=False)
class Similarities(Shown):
    """Similarities of all pairs of tasks; similar tasks are neighbours."""

    names: list[str]
    matrix: Floats  # (n, n), a row compares with the others


def importances_of(study: Study, sources: Sequence[Study | Task]) -> Importances:
    """Return the importances of a study's parameters, beside those in its sources."""
    history = [record for record in transfer_history(study) if record.kept]
    past = {task.name: shares_of(importance(task)) for task in as_tasks(sources)}
    own = shares_of(importance(Task.from_study(study))) if n_usable(study) else {}
    parameters = _most_important(own, past, history)[:MAX_PARAMETERS]
    rows = {name: _row(values, parameters) for name, values in past.items()}
    shown = _weightiest(list(rows), transfer_history(study))
    others = [row for name, row in rows.items() if name not in shown]
    right = "; right: the trials at which past studies were compared on it" if history else ""
    return Importances(
        title="Importance for being among the best tenth",
        about=f"{shortened(study.study_name)}{right}",
        parameters=tuple(parameters),
        target=_row(own, parameters),
        sources={name: rows[name] for name in shown},
        others=_mean(others, len(parameters)),
        n_others=len(others),
        kept={p: [r.number for r in history if p in r.kept] for p in parameters},
        n_compared=len(history),
        note="" if parameters else "no finished trial yet",
    )


def shares_of(importances: Mapping[str, float]) -> dict[str, float]:
    """Return importances as parts of their sum, so that studies can be compared."""
    whole = sum(importances.values()) or 1.0
    return {name: value / whole for name, value in importances.items()}


def _most_important(
    own: Mapping[str, float],
    past: Mapping[str, Mapping[str, float]],
    history: Sequence[TransferRecord],
) -> list[str]:
    """Return the parameters of the study; of one without a trial, those of its sources."""
    kept = {name: 0.0 for record in history for name in record.kept}
    known = {**kept, **own}
    if not known:
        for values in past.values():
            for name, value in values.items():
                known[name] = max(value, known.get(name, 0.0))
    return sorted(known, key=lambda name: -known[name])


def _row(values: Mapping[str, float], parameters: Sequence[str]) -> Floats:
    return np.array([values.get(name, np.nan) for name in parameters])


def _mean(rows: Sequence[Floats], n: int) -> Floats:
    """Return the mean over the rows that have a number."""
    stacked = np.stack(rows) if rows else np.empty((0, n))
    counts = (~np.isnan(stacked)).sum(axis=0)
    total = np.nansum(stacked, axis=0)
    return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)


def _weightiest(names: Sequence[str], history: Sequence[TransferRecord]) -> list[str]:
    """Return the sources with the largest weights, as many as are shown; ties as given."""
    total = {name: sum(r.weights.get(name, 0.0) for r in history) for name in names}
    return sorted(names, key=lambda name: -total[name])[:MAX_SHOWN]


def similarities_of(tasks: Sequence[Study | Task]) -> Similarities:
    """Return the similarity of each pair of tasks.

    Raises:
        ValueError: There is no task.
    """
    found = as_tasks(tasks)
    if not found:
        raise ValueError("there is no task with a finished trial to compare.")
    shown, about = _most_alike(found)
    matrix = similarity_matrix(shown)
    order = _side_by_side(matrix)
    names, title = [shown[i].name for i in order], "Similarity of the tasks"
    return Similarities(names, matrix[np.ix_(order, order)], title=title, about=about)


def _most_alike(tasks: Sequence[Task]) -> tuple[list[Task], str]:
    """Return the tasks that are shown, at most those most similar to the first, and a caption."""
    if len(tasks) <= MAX_COMPARED:
        return list(tasks), _MEANING
    alike = np.array([gamma_similarity(tasks[0], task) for task in tasks[1:]])
    order = np.argsort(-alike, kind="stable")
    shown, others = order[: MAX_COMPARED - 1], order[MAX_COMPARED - 1 :]
    about = (
        f"{_MEANING}. {shortened(tasks[0].name)} and the {len(shown)} most similar ones; the mean "
        f"similarity of the other {len(others)} is {number(float(alike[others].mean()))}."
    )
    return [tasks[0], *(tasks[1 + i] for i in sorted(shown.tolist()))], about


def _side_by_side(matrix: Floats) -> list[int]:
    """Return an order in which similar tasks are neighbours."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(matrix) < 3:
        return list(range(len(matrix)))
    distance = 1.0 - (matrix + matrix.T) / 2
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return [int(i) for i in leaves_list(tree)]
