"""What a geometry offers, the mean that needs nothing but its exponential and logarithm maps, and SPD matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consilience.arrays import BoolArray, FloatArray

__all__ = ["Geometry", "LogEuclideanGeometry", "Means", "SPDGeometry", "descend", "matrix_function"]

#: Steps of a mean shorter than this, in curvature radii, end the search.
TOLERANCE, MAX_STEPS = 1e-10, 5000
#: Scales, root mean squared distances in curvature radii, at which pairs of votes are simulated, and how many of them.
SIMULATED_REACH, SIMULATED_PAIRS = np.geomspace(0.1, 12.0, 14), 300


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

    def cost_of_scale(self, scale: FloatArray) -> FloatArray:
        """Return the mean squared distance to the truth of votes of this scale."""
        cost: FloatArray = self.dimension * np.asarray(scale) ** 2
        return cost

    def scale_of_cost(self, cost: FloatArray) -> FloatArray:
        """Return the scale of votes of this mean squared distance; the inverse of `cost_of_scale`."""
        return np.sqrt(np.asarray(cost) / self.dimension)

    def closeness(self, distance: FloatArray) -> FloatArray | None:
        """Return a function of the distance whose mean is a product over independent sources; None for open spaces."""
        return None

    def scale_of_closeness(self, closeness: FloatArray) -> FloatArray:
        """Return the scale of votes of this mean closeness to the truth, for closed spaces."""
        raise NotImplementedError

    def reach(self, scale: float, lengths: FloatArray) -> FloatArray:
        """Return how far votes of this scale lie from the truth, for lengths of standard normal tangent vectors."""
        return scale * lengths

    def noisy(self, points: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
        """Return one vote of this scale around each point."""
        return self._moved(points, self.random_tangent(points, rng), scale)

    def _moved(self, points: FloatArray, tangents: FloatArray, scale: float) -> FloatArray:
        length = np.sqrt(np.maximum(self.inner(points, tangents, tangents), 1e-300))
        factor = self.reach(scale, length) / length
        return self.exp(points, factor.reshape(-1, *[1] * len(self.point_shape)) * tangents)

    @property
    def is_given(self) -> bool:
        """Whether it is made of functions of the user, which threads may not call side by side."""
        return False

    @property
    def is_flat(self) -> bool:
        """Whether squared distances of independent errors add up exactly."""
        return False

    def probes(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return points around which votes are simulated; all are alike in a homogeneous space."""
        return np.broadcast_to(self.origin, (count, *self.point_shape))

    def stretch(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return how many times the sum of two costs independent votes cost each other, ``(len(left), len(right))``.

        Simulated around `probes` and interpolated; the second vote goes in opposite directions in turn, so that
        nothing is left of chance in a flat space.

        Parameters
        ----------
        left, right
            Scales.
        """
        scales, table = self._stretches
        low, high = (_interpolation(np.log(scales), np.log(np.maximum(one, 1e-300))) for one in (left, right))
        return low @ table @ high.T

    @cached_property
    def _stretches(self) -> tuple[FloatArray, FloatArray]:
        rng = np.random.default_rng(0)
        points = np.array(self.probes(SIMULATED_PAIRS, rng))
        one, two = self.random_tangent(points, rng), self.random_tangent(points, rng)
        unit = self.radius if np.isfinite(self.radius) else self.size_of_space
        reach = SIMULATED_REACH * unit
        scales = self.scale_of_cost(reach**2)
        votes = [self._moved(points, one, float(scale)) for scale in scales]
        others = [[self._moved(points, sign * two, float(scale)) for sign in (1.0, -1.0)] for scale in scales]
        own = np.array([float((self.distance(points, vote) ** 2).mean()) for vote in votes])
        their = np.array([float(np.mean([self.distance(points, vote) ** 2 for vote in pair])) for pair in others])
        apart = np.array(
            [[np.mean([self.distance(vote, other) ** 2 for other in pair]) for pair in others] for vote in votes]
        )
        table = apart / np.add.outer(own, their)
        return scales, (table + table.T) / 2.0

    @property
    def size_of_space(self) -> float:
        """Length that scales are simulated around where no curvature is known."""
        return 1.0

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


def _interpolation(knots: FloatArray, values: FloatArray) -> FloatArray:
    """Return the matrix ``(len(values), len(knots))`` that interpolates what is given at the knots, flat beyond."""
    place = np.clip(np.interp(values, knots, np.arange(len(knots))), 0, len(knots) - 1)
    weights: FloatArray = np.maximum(1.0 - np.abs(place[:, None] - np.arange(len(knots))), 0.0)
    return weights


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


# --- positive definite matrices ------------------------------------------------------------------------


def matrix_function(matrices: FloatArray, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return a function of symmetric matrices, applied to their eigenvalues."""
    values, vectors = np.linalg.eigh((matrices + np.swapaxes(matrices, -1, -2)) / 2.0)
    result: FloatArray = (vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return result


def _symmetric_noise(shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Return symmetric matrices that are standard normal in the Frobenius norm."""
    noise = np.triu(rng.normal(size=shape))
    off = np.triu(noise, 1) / np.sqrt(2.0)
    diagonal = noise - np.triu(noise, 1)
    symmetric: FloatArray = diagonal + off + np.swapaxes(off, -1, -2)
    return symmetric


@dataclass(frozen=True)
class _Matrices(Geometry):
    """What the two geometries of positive definite matrices have in common."""

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
        return -0.5 if self.size > 1 else 0.0

    def _roots(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, vectors = np.linalg.eigh((point + np.swapaxes(point, -1, -2)) / 2.0)
        root = np.sqrt(np.maximum(values, 1e-300))[..., None, :]
        turned = np.swapaxes(vectors, -1, -2)
        return (vectors * root) @ turned, (vectors / root) @ turned

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        _, inverse = self._roots(np.asarray(left, dtype=np.float64))
        between = inverse @ right @ inverse
        values = np.linalg.eigvalsh((between + np.swapaxes(between, -1, -2)) / 2.0)
        length: FloatArray = np.linalg.norm(np.log(np.maximum(values, 1e-300)), axis=-1)
        return length

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        _, inverse = self._roots(point)
        product: FloatArray = ((inverse @ left @ inverse) * (inverse @ right @ inverse)).sum(axis=(-1, -2))
        return product

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        root, inverse = self._roots(point)
        moved = root @ matrix_function(inverse @ tangent @ inverse, np.exp) @ root
        return (moved + np.swapaxes(moved, -1, -2)) / 2.0

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        root, inverse = self._roots(point)
        tangent: FloatArray = root @ matrix_function(inverse @ other @ inverse, _log) @ root
        return tangent

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        root, inverse = self._roots(start)
        step = root @ matrix_function(inverse @ end @ inverse, np.sqrt) @ inverse
        moved: FloatArray = step @ tangent @ np.swapaxes(step, -1, -2)
        return moved

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        root, _ = self._roots(point)
        tangent: FloatArray = root @ _symmetric_noise(np.shape(point), rng) @ root
        return tangent

    def curvature_bound(self, distance: FloatArray) -> FloatArray:
        length = np.maximum(distance / np.sqrt(2.0), 1e-6)
        bound: FloatArray = length / np.tanh(length)
        return bound

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        return descend(self, votes, weights)


@dataclass(frozen=True)
class LogEuclideanGeometry(_Matrices):
    """Log-Euclidean: ``distance(A, B) = |log A - log B|``; flat, and the mean has a closed form.

    Tangent vectors are differences of logarithms, at whatever point.
    """

    @property
    def is_flat(self) -> bool:
        return True

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        apart = matrix_function(np.asarray(left), _log) - matrix_function(np.asarray(right), _log)
        length: FloatArray = np.linalg.norm(apart, axis=(-1, -2))
        return length

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        product: FloatArray = (left * right).sum(axis=(-1, -2))
        return product

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        return matrix_function(matrix_function(point, _log) + tangent, np.exp)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        tangent: FloatArray = matrix_function(np.asarray(other), _log) - matrix_function(np.asarray(point), _log)
        return tangent

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        return np.array(tangent, dtype=np.float64)

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        return _symmetric_noise(np.shape(point), rng)

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        n, m = weights.shape
        total = weights.sum(axis=1)
        share = np.maximum(weights, 0.0) / np.where(total > 0, total, 1.0)[:, None]
        there = share > 0
        logs = np.zeros((n, m, self.size, self.size))
        logs[there] = matrix_function(votes[there], _log)
        points = matrix_function((share[..., None, None] * logs).sum(axis=1), np.exp)
        return Means(points, np.ones(n, dtype=bool), np.ones(n, dtype=bool))


def _log(values: FloatArray) -> FloatArray:
    return np.log(np.maximum(values, 1e-300))
