r"""Weights of past tasks from how well they rank the study's observations.

The models of a task give joint samples of all objectives at the study's n observations. The order
of a sample, and that of the observations, is the one of `tpe.pareto`: non-domination rank, then
crowding distance. With D(s, y) the number of pairs that sample s and observations y put in
opposite order, and s_m1, ..., s_mS the samples of task m (leave-one-out ones of the study itself):

    RGPE     w_m = (1/S) #{k: D(s_mk, y) is the smallest of all tasks'}      ties share it
             past task m has no part where median_k D(s_mk, y) is more than the 95 % quantile of
             the study's own D(s_0k, y): many poor tasks must not dilute the good ones
    TST-R    w_m ~ 3/4 (1 - (d_m / rho)^2) for d_m < rho, otherwise 0;   d_0 = 0
             d_m = mean_k D(s_mk, y) / (number of pairs that y does not tie)

    RGPE     mean = sum_m w_m mean_m,   variance = sum_m w_m^2 variance_m
    TST-R    mean = sum_m w_m mean_m,   variance = variance_0

Task 0 is the study itself. A task has one weight for all of its objectives.

Shapes: scores (n, m) of the observations; samples (S, n, m) of one task; weights (T,).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metatpe.gp.models import Models
from metatpe.space import Floats, Ints
from metatpe.tpe.pareto import crowding_distance, ranks
from metatpe.tpe.ranking import dense_ranks

N_SAMPLES = 128
_BANDWIDTH = 0.4  # rho: a task that orders by chance has d = 0.5


def positions(samples: Floats) -> Ints:  # (S, n, m) -> (S, n)
    """Return the place of each point in the order of its sample, the same for ties."""
    n_samples, n, m = samples.shape
    if m == 1:
        return dense_ranks(samples[:, :, 0])
    rank = np.stack([ranks(sample) for sample in samples])
    front = (np.arange(n_samples)[:, None] * n + rank).ravel()  # a number for each of all samples
    crowding = crowding_distance(samples.reshape(-1, m), front)
    order = np.lexsort((-crowding, front))
    key = np.stack([front, crowding])[:, order]
    is_next = (key[:, 1:] != key[:, :-1]).any(axis=0)
    place = np.empty(rank.size, dtype=np.int64)
    place[order] = np.concatenate([[0], np.cumsum(is_next)])
    return place.reshape(rank.shape)


def discordant(samples: Floats, scores: Floats) -> Ints:  # (S, n, m), (n, m) -> (S,)
    """Return how many pairs of points each sample puts in the opposite order."""
    place, observed = positions(samples), positions(scores[None])[0]
    first, second = np.triu_indices(len(scores), k=1)
    is_before = observed[first] < observed[second]
    # Each pair with the one that was observed to be better first.
    better, worse = np.where(is_before, first, second), np.where(is_before, second, first)
    tied = observed[first] == observed[second]
    counts: Ints = (place[:, better[~tied]] > place[:, worse[~tied]]).sum(axis=1)
    return counts


def n_pairs(scores: Floats) -> int:  # (n, m)
    """Return how many pairs of points are no tie."""
    place = positions(scores[None])[0]
    return int((place[:, None] < place[None, :]).sum())


def rgpe_weights(losses: Ints) -> Floats:  # (T, S) -> (T,)
    """Return how often each task has the fewest pairs in the opposite order.

    Args:
        losses: Such pairs of each sample of each task, the study itself first.
    """
    is_kept = np.median(losses, axis=1) <= np.quantile(losses[0], 0.95)
    is_kept[0] = True
    kept = np.where(is_kept[:, None], losses, np.iinfo(np.int64).max)
    is_best = kept == kept.min(axis=0)
    weights: Floats = (is_best / is_best.sum(axis=0)).mean(axis=1)
    return weights


def tstr_weights(losses: Ints, n_pairs: int) -> Floats:  # (T, S) -> (T,)
    """Return the Epanechnikov weight of each task.

    Args:
        losses: Pairs in the opposite order of each sample of each task, the study itself first.
        n_pairs: Pairs that are no tie among the observations.
    """
    distance = losses.mean(axis=1) / max(n_pairs, 1)
    distance[0] = 0.0
    kernel = np.maximum(1.0 - (distance / _BANDWIDTH) ** 2, 0.0)
    weights: Floats = kernel / kernel.sum()
    return weights


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The tasks' predictions together."""

    tasks: Sequence[Models]  # the study itself first
    weights: Floats  # (T,), of the means
    variance_weights: Floats  # (T,)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:  # (C, p) -> (C, m), (C, m)
        """Return the means and the standard deviations of the objectives."""
        mean, variance = np.zeros((2, len(features), len(self.tasks[0])))
        for task, w, v in zip(self.tasks, self.weights, self.variance_weights, strict=True):
            if w == 0.0 and v == 0.0:
                continue
            for j, model in enumerate(task):
                own_mean, own_variance = model.predict(features)
                mean[:, j] += w * own_mean
                variance[:, j] += v * own_variance
        return mean, np.sqrt(variance)


def sampled(task: Models, features: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Return joint samples (n, C, m) of a past task's objectives at some points (C, p)."""
    joint = [model.joint(features) for model in task]
    normal = rng.normal(size=(len(task), n, len(features)))
    return np.stack([mean + z @ root.T for (mean, root), z in zip(joint, normal, strict=True)], 2)


def sampled_left_out(task: Models, n: int, rng: np.random.Generator) -> Floats:  # (n, C, m)
    """Return samples of each of a task's own observations given the others."""
    left_out = [model.left_out() for model in task]
    normal = rng.normal(size=(len(task), n, len(left_out[0][0])))
    pairs = zip(left_out, normal, strict=True)
    return np.stack([mean + z * np.sqrt(variance) for (mean, variance), z in pairs], axis=2)
