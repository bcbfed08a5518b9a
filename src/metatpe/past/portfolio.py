r"""Configurations that together serve past tasks, in the order in which to try them.

With M past tasks of m objectives, y_tj(x) what the model of task t predicts for objective j, 0 for
the best loss that the task has seen and 1 for the worst, and L directions lambda_l, spread over
the positive part of the unit sphere, the value of a set S of configurations is

    v_tl(x) = (min_j max(0, 1 - y_tj(x)) / lambda_lj)^m
    V(S)    = 1 / (M L) sum_t sum_l max_{x in S} v_tl(x)

The mean over the directions is, up to a constant, the volume that S dominates in task t, so V is
the mean hypervolume over the past tasks; with one objective it is the mean over the tasks of 1
minus the best scaled loss. The portfolio is chosen one by one,

    x_i = argmax_x V({x_1, ..., x_(i-1), x})

each among the best configurations of every past task: its first front, and at least its best
twentieth. V grows less and less the more S has, so that this greedy choice has at least 1 - 1/e of
the value of the best set. It ends where another one would add less than a hundredth: past tasks
that agree need few configurations.

The models are those of `past.models`. Nothing but the past tasks and the space enters: workers
that have the same sources agree on the portfolio without talking to each other.

While a study runs, the choice is updated after each result. S starts with the candidates that the
study has evaluated or is evaluating. Each pair of their results that a past task orders correctly
makes it e times as probable as one that orders it wrongly:

    s_t = sum over pairs i < i' of evaluated candidates, and over objectives j, of
          sign(y_tj(x_i) - y_tj(x_i')) sign(f_j(x_i) - f_j(x_i'))
    w_t = M exp(s_t / 2) / sum_u exp(s_u / 2)                       takes the place of 1 in V

All past tasks may be wrong. One that says nothing about the study orders as many pairs correctly
as wrongly, s = 0. So the odds that some past task fits, if both are as probable before the first
result, are 1/M sum_t exp(s_t / 2). Below 1/4 the start is over, and the sampler chooses
the next configuration itself (rule `contradicted`).

Shapes: candidates X (C, d), predictions Y (M, C, m), directions (L, m), values (M, L), results
f (n, m), weights w (M,).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study
from scipy.special import ndtri

from metatpe.past.known import Past
from metatpe.past.models import PastModels
from metatpe.past.read.studies import as_tasks
from metatpe.past.task import Task
from metatpe.space import Floats, Ints, Mask, Space
from metatpe.study.trials import joined
from metatpe.tpe.pareto import levels, order

_N_DIRECTIONS = 64
_LEAST_GAIN = 0.01
LEAST_LOG_ODDS = math.log(1 / 4)  # that some past task fits; below them the start ends
# Candidates from each past task. Of others, only the models say that they are good; where an
# objective is rugged, these smooth over what matters.
_BEST_SHARE, _MIN_BEST = 0.05, 5
_N_BEST = 200  # candidates of all past tasks, but at least one of each up to `_MAX_BEST`
_MAX_BEST = 500
_MAX_ENTRIES = 1 << 21  # of (tasks, directions, candidates) at a time


@dataclass(frozen=True)
class Member:
    """A configuration of a portfolio.

    Attributes:
        params: The configuration.
        expected: What it is expected to reach on each past task: a loss per objective, minimised.
        serves: The past tasks it is there for: those that it serves best in its share or more of
            the trade-offs between the objectives.
        alone: What it is expected to reach of what each past task itself has reached: 1 for all of
            it, 0 for no more than its worst evaluation.
        together: The same of this configuration and all before it.
    """

    params: Mapping[str, Any]
    expected: Mapping[str, tuple[float, ...]]
    serves: tuple[str, ...]
    alone: Mapping[str, float] = field(default_factory=dict)
    together: Mapping[str, float] = field(default_factory=dict)


class Tried(NamedTuple):
    """A configuration that the study has tried."""

    params: Mapping[str, Any]
    losses: Sequence[float] | None  # None while it is being evaluated


def portfolio(
    tasks: Sequence[Study | Task],
    k: int = 5,
    *,
    space: Mapping[str, BaseDistribution] | Space | None = None,
) -> list[Member]:
    """Return configurations that together do well on past studies, the most useful one first.

    Args:
        tasks: Past studies or tasks, all with the same number of objectives.
        k: The largest number of configurations. There are fewer if another one adds nothing.
        space: The space of the new study, where it differs from those of the past.

    Raises:
        ValueError: There is no past task, they differ in their objectives, none shares a parameter
            with the space, or k is less than 1.

    Example:
        >>> import optuna
        >>> past = optuna.create_study()
        >>> past.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=10)
        >>> [member.serves for member in portfolio([past], k=1)] == [(past.study_name,)]
        True
    """
    past_tasks = as_tasks(tasks)
    if not past_tasks:
        raise ValueError("there is no past study; give one or more.")
    if len(numbers := {task.n_objectives for task in past_tasks}) > 1:
        found = " and ".join(map(str, sorted(numbers)))
        raise ValueError(f"the past studies have {found} objectives; choose those that agree.")
    if k < 1:
        raise ValueError(f"k must be 1 or more, but is {k!r}.")
    if space is None:
        space = joined_space(past_tasks)
    past = Past(past_tasks, space if isinstance(space, Space) else Space(space))
    if not past.names:
        raise ValueError("no past study has a parameter in common with the space.")
    return choose(past, k)


def joined_space(tasks: Sequence[Task]) -> Space:
    """Return the parameters of all tasks, each with the values of all."""
    found: dict[str, list[BaseDistribution]] = {}
    for task in tasks:
        for name, distribution in task.space.distributions.items():
            found.setdefault(name, []).append(distribution)
    return Space({name: joined(found[name]) for name in sorted(found)})


def choose(past: Past, k: int, objective_names: tuple[str, ...] = ()) -> list[Member]:
    """Return the portfolio of past tasks in one space.

    Args:
        past: The past tasks, one at least.
        k: How many configurations at most.
        objective_names: Those of the study, empty where it has none.
    """
    return Candidates(past, objective_names).members(k)


class Candidates:
    """The configurations that a portfolio is chosen from, and what past tasks expect of them.

    Args:
        past: The past tasks, one at least.
        objective_names: Those of the study, empty where it has none.
    """

    def __init__(self, past: Past, objective_names: tuple[str, ...] = ()) -> None:
        self._past = past
        self._X, self._origins = _candidates(past)
        self._Y, self._losses, self._seen = _predictions(past.models(objective_names), self._X)
        self._directions = spread_directions(self._Y.shape[2], _N_DIRECTIONS)

    def members(self, k: int, tried: Sequence[Tried] = ()) -> list[Member]:
        """Return the next k configurations at most.

        Args:
            k: How many.
            tried: The configurations that the study has tried, and what came of them. Those that
                are no candidates do not count.
        """
        known = self._known(tried)
        before = np.array([row for row, _ in known], dtype=np.int64)
        weights = order_weights(self._agreement(known))
        chosen = greedy(self._Y, self._directions, k, weights=weights, before=before)
        return self._described(before, chosen)

    def log_odds(self, tried: Sequence[Tried]) -> float:
        """Return the log odds that some past task fits, 0 before there are results."""
        s = self._agreement(self._known(tried))
        return float(np.logaddexp.reduce(s / 2)) - math.log(len(s))

    def _known(self, tried: Sequence[Tried]) -> list[tuple[int, Sequence[float] | None]]:
        """Return the candidates among what was tried, and what came of them."""
        rows = self._rows_of([t.params for t in tried])
        return [(row, t.losses) for row, t in zip(rows, tried, strict=True) if row is not None]

    def _agreement(self, known: Sequence[tuple[int, Sequence[float] | None]]) -> Floats:  # (M,)
        """Return s_t of each past task."""
        done = [(row, losses) for row, losses in known if losses is not None]
        if not done:
            return np.zeros(len(self._Y))
        found, results = zip(*done, strict=True)
        return agreement(self._Y[:, list(found)], np.array(results))

    def _rows_of(self, configurations: Sequence[Mapping[str, Any]]) -> list[int | None]:
        """Return which candidate each configuration is."""
        X = self._past.space.encode(configurations)
        rows: list[int | None] = []
        for x in X:
            is_same = (np.abs(self._X - x) < 1e-9) | (np.isnan(self._X) & np.isnan(x))
            found = np.flatnonzero(is_same.all(axis=1))
            rows.append(int(found[0]) if len(found) else None)
        return rows

    def _described(self, before: Ints, chosen: Ints) -> list[Member]:
        """Return the chosen candidates with what they are there for, beside those before them."""
        together = np.concatenate([before, chosen])
        values = np.stack(  # (k, M, L)
            [_values(self._Y[:, [i]], self._directions)[:, :, 0] for i in together]
        )
        is_best = np.argmax(values, axis=0) == np.arange(len(together))[:, None, None]
        reached = np.array(  # (M,)
            [_values(own[None], self._directions).max(axis=2).mean() for own in self._seen]
        )
        alone = _shares(values, reached)  # (k, M)
        so_far = _shares(np.maximum.accumulate(values), reached)
        return [
            self._member(int(together[k]), is_best[k].mean(axis=1), alone[k], so_far[k], together)
            for k in range(len(before), len(together))
        ]

    def _member(
        self, i: int, share: Floats, alone: Floats, so_far: Floats, together: Ints
    ) -> Member:
        task, row = self._origins[i]
        names = self._past.names
        return Member(
            # The stored values, where they fit: decoded ones may differ in the last digit.
            self._past.space.fit(task.configuration(row)),
            dict(zip(names, map(tuple, self._losses[:, i].tolist()), strict=True)),
            _served(names, share, alone, 1.0 / len(together)),
            dict(zip(names, alone.tolist(), strict=True)),
            dict(zip(names, so_far.tolist(), strict=True)),
        )


def _shares(values: Floats, reached: Floats) -> Floats:  # (k, M, L), (M,) -> (k, M)
    """Return values as shares of what the tasks have reached; all of it where that is nothing."""
    mean = values.mean(axis=2)
    # Ends at 1: models may expect a configuration that is better than the whole front of a task.
    return np.where(mean < reached, mean / np.where(reached > 0.0, reached, 1.0), 1.0)


def _predictions(
    models: PastModels, X: Floats
) -> tuple[Floats, Floats, list[Floats]]:  # (M, C, m) twice, (n_t, m) each
    """Return what is predicted on all past tasks, from 0 to 1 and as losses, and what was seen."""
    features, scaled, losses, scaled_seen = models.encoder(X), [], [], []
    for own, y, seen in models.of_all():
        mean = np.stack([model.mean(features) for model in own], axis=1)
        best, span = y.min(axis=0), np.ptp(y, axis=0)
        span = np.where(span > 0.0, span, 1.0)
        scaled.append(np.clip((mean - best) / span, 0.0, 1.0))
        scaled_seen.append((y - best) / span)
        # Scores are monotone in losses.
        sides = zip(mean.T, np.sort(y, axis=0).T, np.sort(seen, axis=0).T, strict=True)
        losses.append(np.stack([np.interp(*side) for side in sides], axis=1))
    return np.stack(scaled), np.stack(losses), scaled_seen


def _served(names: Sequence[str], share: Floats, alone: Floats, fair: float) -> tuple[str, ...]:
    """Return the tasks of which a member serves a fair share or more, or the largest one."""
    served = tuple(name for name, own in zip(names, share, strict=True) if own >= fair)
    # A member that others have overtaken everywhere has no share: then where it reaches most.
    return served or (names[int(np.lexsort((alone, share))[-1])],)


def _candidates(past: Past) -> tuple[Floats, list[tuple[Task, int]]]:  # (C, d)
    """Return the points that are looked at, and where each was evaluated: a task and its row.

    What has lost a value on the way into the space counts only where a task has nothing else.
    """
    n_best = math.ceil(_N_BEST / len(past.names))
    found = [
        (encoded.X[row], task, row)
        for task, encoded in past.rows
        for row in _best_rows(
            task, encoded.is_whole if encoded.is_whole.any() else encoded.is_usable, n_best
        )
    ]
    X = np.stack([x for x, _, _ in found])
    _, first = np.unique(np.nan_to_num(X, nan=-1.0), axis=0, return_index=True)
    some = np.linspace(0, len(first) - 1, min(len(first), _MAX_BEST)).astype(np.int64)
    kept = np.sort(first)[some]
    return X[kept], [found[i][1:] for i in kept]


def _best_rows(task: Task, is_taken: Mask, most: int) -> list[int]:
    """Return the first front of some of a task's rows, and at least the best twentieth."""
    rows = np.flatnonzero(is_taken)
    losses, violation = task.losses[rows], task.violation[rows]
    n_front = int((levels(losses, violation) == 0).sum())
    n = max(n_front, math.ceil(_BEST_SHARE * len(rows)), _MIN_BEST)
    best: list[int] = rows[order(losses, violation, n=min(n, most))].tolist()
    return best


def spread_directions(m: int, n: int) -> Floats:  # (n, m)
    """Return n vectors that are spread over the positive part of the unit sphere; one for m = 1.

    By a Kronecker sequence with the powers of the generalised golden ratio, made normal.
    """
    if m == 1:
        return np.ones((1, 1))
    golden = 2.0
    for _ in range(50):
        golden = (1.0 + golden) ** (1.0 / (m + 1))
    u = (0.5 + np.arange(1, n + 1)[:, None] * golden ** -np.arange(1.0, m + 1)) % 1.0
    normal = ndtri(0.5 + 0.5 * np.clip(u, 1e-3, 1.0 - 1e-3))
    directions: Floats = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return directions


def _values(Y: Floats, directions: Floats) -> Floats:  # (M, C, m), (L, m) -> (M, L, C)
    """Return v_tl of each candidate."""
    left = np.maximum(0.0, 1.0 - Y)
    value = np.full((len(Y), len(directions), Y.shape[1]), np.inf)
    for j, own in enumerate(directions.T):
        np.minimum(value, left[:, None, :, j] / own[:, None], out=value)
    value **= Y.shape[2]
    return value


def greedy(
    Y: Floats,
    directions: Floats,
    k: int,
    *,
    weights: Floats | None = None,
    before: Ints | None = None,
) -> Ints:  # (M, C, m), (L, m), (M,), (b,) -> (k,)
    """Return the candidates with the largest gain in V, one after the other, at most k.

    Args:
        Y: What is predicted of each candidate on each task.
        directions: The trade-offs between the objectives.
        k: How many are chosen.
        weights: Of the tasks; left out, all the same.
        before: Candidates that have been chosen already.
    """
    n_tasks, n_candidates, _ = Y.shape
    w = np.ones(n_tasks) if weights is None else weights
    taken = [] if before is None else before.tolist()
    reached = np.zeros((n_tasks, len(directions)))
    for i in taken:
        np.maximum(reached, _values(Y[:, [i]], directions)[:, :, 0], out=reached)
    size = max(1, _MAX_ENTRIES // (len(directions) * n_candidates))
    chosen: list[int] = []
    for _ in range(min(k, n_candidates - len(set(taken)))):
        gain = np.zeros(n_candidates)
        for start in range(0, n_tasks, size):
            block = slice(start, start + size)
            gained = _values(Y[block], directions) - reached[block, :, None]
            np.maximum(gained, 0.0, out=gained)
            gain += w[block] @ gained.sum(axis=1)
        gain[[*taken, *chosen]] = -1.0
        if gain.max() < _LEAST_GAIN * float(w @ reached.sum(axis=1)):
            break
        chosen.append(int(np.argmax(gain)))
        np.maximum(reached, _values(Y[:, chosen[-1:]], directions)[:, :, 0], out=reached)
    return np.array(chosen, dtype=np.int64)


def agreement(Y: Floats, results: Floats) -> Floats:  # (M, n, m), (n, m) -> (M,)
    """Return of each task how many more pairs of results it orders correctly than wrongly."""
    first, second = np.tril_indices(len(results), -1)
    with np.errstate(invalid="ignore"):  # two infinite results: inf - inf
        observed = np.nan_to_num(np.sign(results[first] - results[second]))
    found: Floats = np.einsum("tpj,pj->t", np.sign(Y[:, first] - Y[:, second]), observed)
    return found


def order_weights(agreement: Floats) -> Floats:  # (M,) -> (M,)
    """Return the weights of the tasks by how they order what was evaluated, of mean 1."""
    weights = np.exp((agreement - agreement.max()) / 2)
    return np.asarray(len(weights) * weights / weights.sum())
