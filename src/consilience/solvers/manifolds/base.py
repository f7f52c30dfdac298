"""What a geometry offers, and the mean that needs nothing but its exponential and logarithm maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.solvers.manifolds.two_point import TwoPointLaw

__all__ = ["Geometry", "Means", "descend"]

#: Steps of a mean shorter than this, in curvature radii, end the search.
TOLERANCE, MAX_STEPS = 1e-10, 5000


@dataclass(frozen=True)
class Means:
    """Weighted means of n items.

    Attributes
    ----------
    points : array of shape (n, *point_shape)
    converged : array of shape (n,)
        Whether the search came to rest.
    unique : array of shape (n,)
        Whether the votes are so close together that no other minimum can exist.
    """

    points: FloatArray
    converged: BoolArray
    unique: BoolArray


class Geometry(ABC):
    """A Riemannian manifold whose points and tangent vectors are arrays of one shape.

    All methods take batches: leading axes broadcast, the last ones are those of a point.
    """

    #: How votes scatter; a property of the geometries of constant curvature.
    law: TwoPointLaw | None = None

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of directions at a point."""

    @property
    @abstractmethod
    def point_shape(self) -> tuple[int, ...]:
        """Shape of the array that is one point."""

    @property
    @abstractmethod
    def origin(self) -> FloatArray:
        """Some point."""

    @property
    def curvature(self) -> float:
        """The largest sectional curvature in size, with its sign; 0 where the space is flat, or nothing is known."""
        return 0.0

    @property
    def radius(self) -> float:
        """Distance at which curvature begins to matter, ``1 / sqrt(|curvature|)``; infinite where that is 0."""
        return float("inf") if self.curvature == 0.0 else 1.0 / float(np.sqrt(abs(self.curvature)))

    @abstractmethod
    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the lengths of the shortest paths between points."""

    @abstractmethod
    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        """Return where the geodesics from `point` with these velocities are at time one."""

    @abstractmethod
    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        """Return the velocities with which geodesics reach `other` at time one; the inverse of `exp`."""

    @abstractmethod
    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        """Return tangent vectors at `start` carried to `end` along the geodesic."""

    @abstractmethod
    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the inner products of tangent vectors at `point`."""

    @abstractmethod
    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return standard normal tangent vectors, one per point."""

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        """Return the points of least ``sum_a weights_a distance_a^2`` of each item.

        Parameters
        ----------
        votes : array of shape (n, m, *point_shape)
        weights : array of shape (n, m)
            Zero = not there. An item without any weight gets some point.
        volume : array of shape (n, m), optional
            Weight of the volume factor of each vote where the geometry has one (see `TwoPointLaw`).
        """
        return descend(self, votes, weights)

    def information(
        self, points: FloatArray, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None
    ) -> FloatArray:
        """Return the second derivative of minus the log density at the means, averaged over directions, ``(n,)``.

        Its inverse is the variance of each coordinate of the truth around the mean (Laplace). Arguments are those of
        `means`; here it is that of flat space.
        """
        total: FloatArray = 2.0 * np.maximum(weights, 0.0).sum(axis=1)
        return total

    def curvature_bound(self, distance: FloatArray) -> FloatArray:
        """Return an upper bound on the second derivative of ``distance^2 / 2`` at this distance."""
        return np.ones_like(distance)

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """The last axes of a batch, those of a point."""
        return tuple(range(-len(self.point_shape), 0))


def descend(geometry: Geometry, votes: FloatArray, weights: FloatArray, max_steps: int = 500) -> Means:
    """Return weighted means by gradient steps that are halved wherever the cost would grow.

    Starts at the vote of least cost, so that a mean never costs more than any vote.
    """
    n, m = weights.shape
    weights = np.maximum(weights, 0.0)
    total = weights.sum(axis=1)
    present = total > 0
    share = weights / np.where(present, total, 1.0)[:, None]
    # A vote without weight may be anything: one that is there stands in for it.
    order = share.argmax(axis=1)
    mask = (share > 0).reshape(n, m, *[1] * len(geometry.point_shape))
    votes = np.where(mask, votes, votes[np.arange(n), order][:, None])
    spent = np.stack([_cost(geometry, votes[:, a], votes, share) for a in range(m)], axis=1)
    spent[share <= 0] = np.inf
    best = np.where(present, spent.argmin(axis=1), 0)
    points = votes[np.arange(n), best].copy()
    cost = np.where(present, spent[np.arange(n), best], 0.0)
    converged = ~present
    factor = np.ones(n)
    scale = np.sqrt(np.maximum(cost, 1e-300))
    active = np.flatnonzero(present)
    for _ in range(max_steps):
        if len(active) == 0:
            break
        here, theirs, part = points[active], votes[active], share[active]
        tangents = geometry.log(here[:, None], theirs)
        wide = part.reshape(*part.shape, *[1] * len(geometry.point_shape))
        slope = (wide * tangents).sum(axis=1)
        length = np.sqrt(np.maximum(geometry.inner(here, slope, slope), 0.0))
        distance = geometry.distance(here[:, None], theirs)
        bound = (part * geometry.curvature_bound(distance + length[:, None])).sum(axis=1)
        step = factor[active] / bound
        moved = geometry.exp(here, step.reshape(-1, *[1] * len(geometry.point_shape)) * slope)
        reached = _cost(geometry, moved, theirs, part)
        better = reached <= cost[active] * (1.0 + 1e-13)
        rested = step * length <= np.maximum(TOLERANCE * scale[active], 1e-14)
        accepted = active[better]
        points[accepted], cost[accepted] = moved[better], np.minimum(reached[better], cost[accepted])
        factor[accepted] = np.minimum(2.0 * factor[accepted], 1.0)
        factor[active[~better]] *= 0.5
        stuck = factor[active] < 1e-6
        # At the accuracy of the distances themselves no step lowers the cost any more.
        converged[active[rested | (stuck & (step * length <= 1e-4 * scale[active]))]] = True
        active = active[~(rested | stuck)]
    return Means(points, converged, np.ones(n, dtype=bool))


def _cost(geometry: Geometry, points: FloatArray, votes: FloatArray, share: FloatArray) -> FloatArray:
    cost: FloatArray = (share * geometry.distance(points[:, None], votes) ** 2).sum(axis=1)
    return cost
