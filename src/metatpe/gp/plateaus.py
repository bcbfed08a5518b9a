r"""Plateaus: regions where different configurations have the same losses. Not in the paper.

A Gaussian process expects that losses differ where configurations do. An objective that is
constant in places, as a table that is read at the nearest entry or an accuracy on few examples,
breaks that: the improvement that is expected next to the best configuration never comes, and the
search evaluates the same plateau over and over.

Observations with the same losses in all objectives belong to one plateau. With r(x, x') the
distance of two configurations by the length scales of the models, x is expected to lie on plateau
g, and is no new configuration, where its nearest observation x_i is of g and

    r(x, x_i) < R_g n_g / 4,   R_g = max over i, i' of g of r(x_i, x_i')

with n_g the number of observations on the plateau. An observation next to it that has the same
losses makes R_g and n_g larger, one that has others bounds it. The factor n_g makes the steps
grow: two observations that lie close together say nothing about the size of their plateau, and
with steps in proportion to R_g alone the search would creep along it. So a plateau of any size
takes few evaluations, and without equal losses nothing changes.

Shapes: features (n, p); losses (n, m); scale (p,).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metatpe.gp.process import squared_distances
from metatpe.space import Floats, Mask


@dataclass(frozen=True, eq=False)
class Plateaus:
    """What is known to be flat around the observations."""

    scale: Floats  # (p,), 1 / length scale of each feature
    points: Floats  # (n, p), scaled features of the observations
    squared_radii: Floats  # (n,), (R_g n_g / 4)^2, 0 where an observation is alone

    @classmethod
    def of(cls, features: Floats, losses: Floats, scale: Floats) -> Plateaus:
        """Return the plateaus that some observations show.

        Args:
            features: Of the observations.
            losses: Theirs, as they were told: scores are clipped, which makes them equal.
            scale: 1 / length scale of each feature.
        """
        points = features * scale
        _, plateau, sizes = np.unique(losses, axis=0, return_inverse=True, return_counts=True)
        plateau, squared = plateau.ravel(), np.zeros(len(points))
        for g in np.flatnonzero(sizes > 1):
            own = plateau == g
            largest = squared_distances(points[own], points[own]).max()
            squared[own] = largest * (sizes[g] / 4.0) ** 2
        return cls(scale, points, squared)

    def hold(self, features: Floats) -> Mask:  # (C, p) -> (C,)
        """Return which configurations are expected to lie on a plateau."""
        if not self.squared_radii.any():
            return np.zeros(len(features), dtype=np.bool_)
        squared = squared_distances(features * self.scale, self.points)
        nearest = squared.argmin(axis=1)
        is_near: Mask = squared.min(axis=1) < self.squared_radii[nearest]
        return is_near
