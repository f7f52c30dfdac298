"""The interface of a geometry, means by its exponential and logarithm maps, and geometries of SPD matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

#: The search for a mean ends with a step shorter than this, in curvature radii.
TOLERANCE, MAX_STEPS = 1e-10, 5000
#: Scales (root mean squared distances in curvature radii) at which pairs of votes are simulated, from nearly flat to a
#: hundred times the squared distance at which curvature matters; and the number of pairs: 1000 are accurate to 1.5%.
SIMULATED_REACH, SIMULATED_PAIRS = np.geomspace(0.1, 12.0, 14), 1000


@dataclass(frozen=True)
class Means:
    """Weighted means of n items."""

    points: FloatArray  # (n, *point_shape)
    converged: BoolArray  # (n,)
    unique: BoolArray  # (n,) whether the votes are so close together that there is only one minimum


class Geometry(ABC):
    """A Riemannian manifold whose points and tangent vectors are arrays of one shape.

    All methods take batches: leading axes broadcast, the last ones are those of a point.
    """

    #: Whether it calls functions of the user, which run in one thread only.
    is_given: ClassVar[bool] = False
    #: Whether squared distances of independent errors add up exactly.
    is_flat: ClassVar[bool] = False
    #: Whether long geodesics return, as on a sphere.
    is_closed: ClassVar[bool] = False
    #: How votes scatter: "riemannian" has the density ``exp(-weight * cost)``, so that labels are weighted means;
    #: "wrapped" is normal in the tangent space at the truth, and labels have the largest likelihood.
    noise: str = "riemannian"

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
        """The sectional curvature of largest absolute value; 0 if the space is flat or its curvature is unknown."""
        return 0.0

    @property
    def radius(self) -> float:
        """Distance at which curvature matters, ``1 / sqrt(|curvature|)``; infinite for curvature 0."""
        return float("inf") if self.curvature == 0.0 else 1.0 / float(np.sqrt(abs(self.curvature)))

    @property
    def unit(self) -> float:
        """Unit of simulated distances: the radius, if it is finite."""
        return self.radius if np.isfinite(self.radius) else 1.0

    def project(self, points: FloatArray) -> FloatArray:
        """Return points on the manifold from numbers that are slightly off, if that is known."""
        return points

    @abstractmethod
    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the lengths of the shortest paths between points."""

    @abstractmethod
    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        """Return the points at time one of the geodesics from `point` with these velocities."""

    @abstractmethod
    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        """Return the velocities with which geodesics reach `other` at time one; the inverse of `exp`."""

    @abstractmethod
    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the inner products of tangent vectors at `point`."""

    @abstractmethod
    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return standard normal tangent vectors, one per point."""

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        """Return tangent vectors at `start` transported to `end` along the geodesic, if that is known."""
        raise NotImplementedError

    def curvature_bound(self, distance: FloatArray) -> FloatArray:
        """Return an upper bound on the second derivative of ``distance^2 / 2`` at this distance."""
        length = np.maximum(distance / self.radius, 1e-6)
        return length / np.tanh(length) if self.curvature < 0 else np.ones_like(distance)

    def widen(self, values: FloatArray) -> FloatArray:
        """Return numbers with the axes of a point appended."""
        return np.reshape(values, (*np.shape(values), *[1] * len(self.point_shape)))

    # --- noise --------------------------------------------------------------------------------------------

    def cost_of_scale(self, scale: FloatArray) -> FloatArray:
        """Return the mean squared distance to the truth of votes of this scale."""
        return self.dimension * np.asarray(scale) ** 2

    def scale_of_cost(self, cost: FloatArray) -> FloatArray:
        """Return the scale of votes of this mean squared distance; the inverse of `cost_of_scale`."""
        return np.sqrt(np.asarray(cost) / self.dimension)

    def closeness(self, distance: FloatArray) -> FloatArray:
        """Return a function of the distance whose mean is a product over independent sources, for closed spaces."""
        raise NotImplementedError

    def features(self, points: FloatArray) -> FloatArray:
        """Return vectors whose inner products are the closeness of two points, for closed spaces."""
        raise NotImplementedError

    def scale_of_closeness(self, closeness: FloatArray) -> FloatArray:
        """Return the scale of votes of this mean closeness to the truth, for closed spaces."""
        raise NotImplementedError

    def cost_of_closeness(self, closeness: FloatArray) -> FloatArray:
        """Return the mean squared distance of points of this mean closeness, for closed spaces."""
        raise NotImplementedError

    def reach(self, scale: float, lengths: FloatArray) -> FloatArray:
        """Return the distances of votes of this scale to the truth, from lengths of standard normal tangent vectors."""
        return scale * lengths

    def noisy(
        self, points: FloatArray, scale: float, rng: np.random.Generator, tangents: FloatArray | None = None
    ) -> FloatArray:
        """Return one vote of this scale around each point, in the directions of standard normal `tangents`."""
        tangents = self.random_tangent(points, rng) if tangents is None else tangents
        length = np.sqrt(np.maximum(self.inner(points, tangents, tangents), 1e-300))
        return self.exp(points, self.widen(self.reach(scale, length) / length) * tangents)

    def probes(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return points around which votes are simulated; one is enough for a homogeneous space."""
        return np.broadcast_to(self.origin, (count, *self.point_shape))

    def stretch(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the cost between independent votes of these scales, relative to the sum of their costs to the truth.

        The ``(len(left), len(right))`` numbers are interpolated in a table that is constant beyond its ends.
        """
        if self.is_flat:
            return np.ones((len(left), len(right)))
        from scipy.ndimage import map_coordinates

        scales, _, table = self.simulated
        knots = np.arange(len(scales))
        places = [np.interp(np.log(np.maximum(each, 1e-300)), np.log(scales), knots) for each in (left, right)]
        return np.asarray(map_coordinates(table, np.meshgrid(*places, indexing="ij"), order=1))

    @cached_property
    def simulated(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scales, the cost of each, and the stretch of each two; simulated around `probes`."""
        rng = np.random.default_rng(0)
        points = np.array(self.probes(SIMULATED_PAIRS, rng))
        one, two = self.random_tangent(points, rng), self.random_tangent(points, rng)
        scales = self._simulated_scales
        first, second, opposite = (
            np.stack([self.noisy(points, float(scale), rng, tangents) for scale in scales])
            for tangents in (one, two, -two)
        )
        # Required by the triangle inequality, which rounding errors violate for far points.
        reach, other = (
            np.stack([self.reach(float(scale), np.sqrt(self.inner(points, each, each))) for scale in scales])
            for each in (one, two)
        )

        def cost(left: FloatArray, longest: FloatArray) -> FloatArray:
            """Return costs to second votes; with opposite directions they are exact in a flat space."""
            with np.errstate(all="ignore"):
                ways = [np.fmin(self.distance(left, right), longest) for right in (second, opposite)]
            return np.mean([(way**2).mean(axis=-1) for way in ways], axis=0)

        with np.errstate(all="ignore"):
            own = (np.fmin(self.distance(points, first), reach) ** 2).mean(axis=-1)
        known = cost(points, other)
        table = np.stack([cost(*vote) for vote in zip(first, reach[:, None] + other, strict=True)])
        table /= np.add.outer(own, known)
        lengths = self.inner(points, two, two).mean()  # random, so not exactly the dimension
        return scales, known * self.dimension / lengths, (table + table.T) / 2.0

    @property
    def _simulated_scales(self) -> FloatArray:
        return self.scale_of_cost((SIMULATED_REACH * self.unit) ** 2)

    # --- means --------------------------------------------------------------------------------------------

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        """Return the points of least ``sum_a weights_a distance_a^2`` to the votes ``(n, m, *point_shape)``.

        Votes of weight zero have no effect, and an item without weights gets some point. `volume` ``(n, m)`` is the
        weight of the volume factor of each vote, in spaces of constant curvature. By default, gradient steps start at
        the vote of least cost and are halved if the cost would grow, so that a mean never costs more than any vote.
        """
        n, m = weights.shape
        items = np.arange(n)
        weights = np.maximum(weights, 0.0)
        total = weights.sum(axis=1)
        present = total > 0
        share = weights / np.where(present, total, 1.0)[:, None]
        # A vote of weight zero may hold anything, so another vote replaces it.
        votes = np.where(self.widen(share) > 0, votes, votes[items, share.argmax(axis=1)][:, None])

        def spent(points: FloatArray, rows: IntArray) -> FloatArray:
            return (share[rows] * self.distance(points[:, None], votes[rows]) ** 2).sum(axis=1)

        costs = np.stack([spent(votes[:, a], items) for a in range(m)], axis=1)
        costs[share <= 0] = np.inf
        best = np.where(present, costs.argmin(axis=1), 0)
        points = votes[items, best].copy()
        cost = np.where(present, costs[items, best], 0.0)
        converged, factor = ~present, np.ones(n)
        scale = np.sqrt(np.maximum(cost, 1e-300))
        active = np.flatnonzero(present)
        for _ in range(500):
            if len(active) == 0:
                break
            here, theirs, part = points[active], votes[active], share[active]
            slope = (self.widen(part) * self.log(here[:, None], theirs)).sum(axis=1)
            length = np.sqrt(np.maximum(self.inner(here, slope, slope), 0.0))
            distance = self.distance(here[:, None], theirs)
            bound = (part * self.curvature_bound(distance + length[:, None])).sum(axis=1)
            step = factor[active] / bound
            moved = self.exp(here, self.widen(step) * slope)
            reached = spent(moved, active)
            better = reached <= cost[active] * (1.0 + 1e-13)
            rested = step * length <= np.maximum(TOLERANCE * scale[active], 1e-14)
            accepted = active[better]
            points[accepted], cost[accepted] = moved[better], np.minimum(reached[better], cost[accepted])
            factor[accepted] = np.minimum(2.0 * factor[accepted], 1.0)
            factor[active[~better]] *= 0.5
            stuck = factor[active] < 1e-6
            # No step lowers the cost, given the accuracy of the distances.
            converged[active[rested | (stuck & (step * length <= 1e-4 * scale[active]))]] = True
            active = active[~(rested | stuck)]
        return Means(points, converged, np.ones(n, dtype=bool))

    def information(
        self, points: FloatArray, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None
    ) -> FloatArray:
        """Return the second derivative of minus the log density at the means, averaged over directions, ``(n,)``.

        Its inverse is the variance of each coordinate of the truth around the mean (Laplace). Arguments are those of
        `means`; the default is that of flat space.
        """
        return 2.0 * np.maximum(weights, 0.0).sum(axis=1)

    def expected_cost(
        self, points: FloatArray, votes: FloatArray, counted: FloatArray, scale: FloatArray, variance: FloatArray
    ) -> FloatArray:
        """Return the mean squared distance of the truth to the means ``(n,)``, given their variance in all directions.

        Votes of these scales ``(m,)`` are `counted` ``(n, m)`` times.
        """
        return self.cost_of_scale(np.sqrt(variance / self.dimension))


class TabulatedGeometry(Geometry):
    """A geometry with a table of costs of some scales. Below them space is flat."""

    @property
    @abstractmethod
    def costs(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of rising scales, and of their costs."""

    @property
    def is_bounded(self) -> bool:
        """Whether costs stay as they are beyond the table; otherwise they grow with the squared scale."""
        return True

    def cost_of_scale(self, scale: FloatArray) -> FloatArray:
        return self._follow(scale, *self.costs, 2.0)

    def scale_of_cost(self, cost: FloatArray) -> FloatArray:
        scales, costs = self.costs
        return self._follow(cost, costs, scales, 0.5)

    def _follow(self, wanted: FloatArray, knots: FloatArray, values: FloatArray, power: float) -> FloatArray:
        place = np.log(np.maximum(wanted, 1e-300))
        beyond = np.minimum(place - knots[0], 0.0)
        if not self.is_bounded:
            beyond = beyond + np.maximum(place - knots[-1], 0.0)
        return np.exp(np.interp(place, knots, values) + power * beyond)


# --- positive definite matrices ------------------------------------------------------------------------


def matrix_function(matrices: FloatArray, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return a function of symmetric matrices, applied to their eigenvalues."""
    values, vectors = np.linalg.eigh(_symmetric(matrices))
    return (vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def _symmetric(matrices: FloatArray) -> FloatArray:
    return (matrices + np.swapaxes(matrices, -1, -2)) / 2.0


def _log(matrices: FloatArray) -> FloatArray:
    return matrix_function(matrices, lambda values: np.log(np.maximum(values, 1e-300)))


@dataclass(frozen=True)
class _Matrices(Geometry):
    """The common part of the two geometries of positive definite matrices."""

    size: int

    @property
    def dimension(self) -> int:
        return self.size * (self.size + 1) // 2

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.size, self.size)

    @property
    def origin(self) -> FloatArray:
        return np.eye(self.size)

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return symmetric matrices that are standard normal in the Frobenius norm."""
        noise = np.triu(rng.normal(size=np.shape(point)))
        off = np.triu(noise, 1)
        return noise - off + (off + np.swapaxes(off, -1, -2)) / np.sqrt(2.0)


@dataclass(frozen=True)
class SPDGeometry(_Matrices):
    """Affine-invariant: ``distance(A, B) = |log(A^-1/2 B A^-1/2)|``, unchanged if both become ``G A G^T``.

    Examples
    --------
    >>> SPDGeometry(2).distance(np.eye(2), np.diag([np.e**3, np.e**4])).round(12)
    np.float64(5.0)
    """

    @property
    def curvature(self) -> float:
        return -0.5

    def _roots(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the square roots of matrices, and the inverses of these."""
        values, vectors = np.linalg.eigh(_symmetric(point))
        root = np.sqrt(np.maximum(values, 1e-300))[..., None, :]
        turned = np.swapaxes(vectors, -1, -2)
        return (vectors * root) @ turned, (vectors / root) @ turned

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        _, inverse = self._roots(np.asarray(left, dtype=np.float64))
        values = np.linalg.eigvalsh(_symmetric(inverse @ right @ inverse))
        return np.linalg.norm(np.log(np.maximum(values, 1e-300)), axis=-1)

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        _, inverse = self._roots(point)
        return ((inverse @ left @ inverse) * (inverse @ right @ inverse)).sum(axis=(-1, -2))

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        root, inverse = self._roots(point)
        return _symmetric(root @ matrix_function(inverse @ tangent @ inverse, np.exp) @ root)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        root, inverse = self._roots(point)
        return root @ _log(inverse @ other @ inverse) @ root

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        root, _ = self._roots(point)
        return root @ super().random_tangent(point, rng) @ root


@dataclass(frozen=True)
class LogEuclideanGeometry(_Matrices):
    """Log-Euclidean: ``distance(A, B) = |log A - log B|``; flat, and the mean has a closed form.

    Tangent vectors are differences of logarithms at every point.
    """

    is_flat: ClassVar[bool] = True

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.linalg.norm(self.log(left, right), axis=(-1, -2))

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return (left * right).sum(axis=(-1, -2))

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        return matrix_function(_log(point) + tangent, np.exp)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        return _log(np.asarray(other)) - _log(np.asarray(point))

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        total = weights.sum(axis=1)
        share = np.maximum(weights, 0.0) / np.where(total > 0, total, 1.0)[:, None]
        logs = np.zeros((*share.shape, *self.point_shape))
        logs[share > 0] = _log(votes[share > 0])
        points = matrix_function((self.widen(share) * logs).sum(axis=1), np.exp)
        return Means(points, np.ones(len(points), dtype=bool), np.ones(len(points), dtype=bool))
