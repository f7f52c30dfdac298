"""Spaces of constant curvature: hyperbolic space, the sphere, and rotations as pairs of opposite unit quaternions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from consilience.arrays import FloatArray
from consilience.label_types.manifolds.geometry import MAX_STEPS, TOLERANCE, Geometry, Means

__all__ = ["HyperbolicGeometry", "RadialLaw", "RotationGeometry", "SphereGeometry", "minkowski", "radial_law"]

#: Scales tabulated, in radii.
SMALLEST, LARGEST = 1e-4, 300.0
#: Random points further than this from the truth, in radii, are not told from unrelated ones on a sphere.
WIDEST = {"sphere": 2.2, "rotations": 1.4}


@dataclass(frozen=True)
class RadialLaw:
    """How far votes lie from the truth, in units of the curvature radius.

    Parameters
    ----------
    kind
        "hyperbolic", "sphere", or "rotations" (a sphere whose opposite points are one).
    dimension
        Of the space.
    noise
        "wrapped": ``exp_y(scale * e)`` with standard normal e. "riemannian": density ``exp(-r^2 / (2 scale^2))`` with
        respect to volume.

    Examples
    --------
    >>> RadialLaw("hyperbolic", 2).vote_cost(np.array([0.5]))
    array([0.5])
    >>> bool(RadialLaw("sphere", 2).vote_cost(np.array([1.0]))[0] < 2.0)  # long ways lead back
    True
    """

    kind: str
    dimension: int
    noise: str = "wrapped"

    @property
    def largest(self) -> float:
        """The largest scale that can be told from unrelated votes."""
        return WIDEST[self.kind] / float(np.sqrt(self.dimension)) if self.kind in WIDEST else LARGEST

    def radii(self, scale: float, lengths: FloatArray) -> FloatArray:
        """Return distances from the truth, for the lengths of standard normal vectors."""
        if self.noise == "wrapped":
            return scale * lengths
        return self._quantiles(scale, lengths)

    def _quantiles(self, scale: float, lengths: FloatArray) -> FloatArray:
        """Return the draws carried to the law with respect to volume, rank by rank."""
        from scipy.special import gammainc

        d = self.dimension
        top = scale * (np.sqrt(d) + 8.0)
        if self.kind == "hyperbolic":
            top += (d - 1) * scale**2  # volume grows exponentially and moves the law outwards
        else:
            top = min(top, np.pi if self.kind == "sphere" else np.pi / 2.0)
        grid = (np.arange(2000) + 0.5) * top / 2000
        height = (d - 1) * (_log_sinh(grid) if self.kind == "hyperbolic" else np.log(np.sin(grid)))
        height -= grid**2 / (2.0 * scale**2)
        total = np.cumsum(np.exp(height - height.max()))
        found: FloatArray = np.interp(gammainc(d / 2.0, lengths**2 / 2.0), total / total[-1], grid)
        return found

    def information(self, radii: FloatArray, precision: FloatArray, volume: FloatArray) -> FloatArray:
        """Return the second derivatives of minus the log density of votes at these distances, over directions.

        Along the geodesic to a vote it is that of ``precision r^2 / 2 + volume log(s / r)`` with ``s = sinh r`` or
        ``sin r``; across, the first derivative times ``coth r`` or ``cot r``.
        """
        r = np.maximum(radii, 1e-4)
        if self.kind == "hyperbolic":
            cotangent, bend = 1.0 / np.tanh(r), 1.0 / r**2 - 1.0 / np.sinh(np.minimum(r, 300.0)) ** 2
        else:
            r = np.minimum(r, np.pi - 1e-4)
            cotangent, bend = 1.0 / np.tan(r), 1.0 / r**2 - 1.0 / np.sin(r) ** 2
        first = precision * r + volume * (cotangent - 1.0 / r)
        second: FloatArray = (precision + volume * bend + (self.dimension - 1) * first * cotangent) / self.dimension
        return second

    def vote_cost(self, scale: FloatArray) -> FloatArray:
        """Return the mean squared distance of votes to the truth, by scale."""
        log_scale, log_cost = self._curve
        inside = np.clip(np.log(np.maximum(scale, 1e-300)), log_scale[0], log_scale[-1])
        cost: FloatArray = np.exp(np.interp(inside, log_scale, log_cost))
        if self.kind in WIDEST:
            return cost
        # Beyond the table votes scatter as in flat space; on the far side nothing but the scale counts.
        beyond: FloatArray = cost * (np.asarray(scale) / np.exp(inside)) ** 2
        return beyond

    def scale_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return the scale of this mean squared distance; the inverse of `vote_cost`."""
        log_scale, log_cost = self._curve
        wanted = np.log(np.maximum(cost, 1e-300))
        inside = np.clip(wanted, log_cost[0], log_cost[-1])
        scale = np.exp(np.interp(inside, log_cost, log_scale))
        found: FloatArray = scale * np.exp((wanted - inside) / 2.0)
        # On a sphere costs have a maximum, and so have the scales that can be told from it.
        return np.minimum(found, scale) if self.kind in WIDEST else found

    @cached_property
    def _curve(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of scales and of the mean squared distances; increasing, so that it can be inverted."""
        scale = np.exp(np.linspace(np.log(SMALLEST), np.log(self.largest), 200))
        if self.kind == "hyperbolic" and self.noise == "wrapped":
            return np.log(scale), np.log(self.dimension * scale**2)
        radii = np.stack([self.radii(float(one), self._long_draws) for one in scale])
        if self.kind in WIDEST:
            radii = _folded(radii, self.kind == "rotations")
        cost = np.log((radii**2).mean(axis=1))
        return np.log(scale), np.maximum.accumulate(cost + 1e-9 * np.arange(len(cost)))

    def closeness(self, distance: FloatArray) -> FloatArray:
        """Return the zonal function of a sphere that independent votes multiply: a cosine, or a character of rotations.

        Noise is the same in all directions, so that ``E f(d_ab) = E f(d_a) E f(d_b)`` whatever its law.
        """
        if self.kind == "sphere":
            return np.cos(distance)
        character: FloatArray = (1.0 + 2.0 * np.cos(2.0 * distance)) / 3.0
        return character

    def scale_from_closeness(self, closeness: FloatArray) -> FloatArray:
        """Return the scale of this mean closeness to the truth."""
        log_scale, mean = self._closeness_curve
        scale: FloatArray = np.exp(np.interp(-closeness, -mean, log_scale))
        return scale

    @cached_property
    def _closeness_curve(self) -> tuple[FloatArray, FloatArray]:
        scale = np.exp(np.linspace(np.log(SMALLEST), np.log(self.largest), 200))
        mean = np.array([self.closeness(self.radii(float(one), self._long_draws)).mean() for one in scale])
        return np.log(scale), np.minimum.accumulate(mean - 1e-12 * np.arange(len(mean)))

    @cached_property
    def _long_draws(self) -> FloatArray:
        """Equally spaced quantiles of the length of a standard normal vector."""
        from scipy.special import gammaincinv

        lengths: FloatArray = np.sqrt(2.0 * gammaincinv(self.dimension / 2.0, (np.arange(8000) + 0.5) / 8000))
        return lengths


@lru_cache(maxsize=32)
def radial_law(kind: str, dimension: int, noise: str = "wrapped") -> RadialLaw:
    """Return the law, whose tables are made once."""
    return RadialLaw(kind, dimension, noise)


def _folded(radii: FloatArray, opposite: bool) -> FloatArray:
    """Return the distances that geodesics of these lengths lead to on a closed sphere."""
    turned = np.abs((radii + np.pi) % (2.0 * np.pi) - np.pi)
    return np.minimum(turned, np.pi - turned) if opposite else turned


def _log_sinh(value: FloatArray) -> FloatArray:
    """Return ``log(sinh(value))`` for positive values, without overflow."""
    size = np.maximum(value, 1e-300)
    result: FloatArray = np.where(size > 20.0, size - np.log(2.0), np.log(np.sinh(np.minimum(size, 20.0))))
    return result


def minkowski(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ``sum_i left_i right_i - left_0 right_0`` (i from 1 on)."""
    product: FloatArray = (left[..., 1:] * right[..., 1:]).sum(axis=-1) - left[..., 0] * right[..., 0]
    return product


class _Curved(Geometry):
    """What the geometries of constant curvature have in common."""

    law: RadialLaw

    def cost_of_scale(self, scale: FloatArray) -> FloatArray:
        return self.radius**2 * self.law.vote_cost(np.asarray(scale) / self.radius)

    def scale_of_cost(self, cost: FloatArray) -> FloatArray:
        return self.radius * self.law.scale_from_cost(np.asarray(cost) / self.radius**2)

    def reach(self, scale: float, lengths: FloatArray) -> FloatArray:
        return self.radius * self.law.radii(scale / self.radius, lengths)


@dataclass(frozen=True)
class HyperbolicGeometry(_Curved):
    """Hyperbolic space of constant curvature ``-1 / size^2``.

    Examples
    --------
    >>> plane = HyperbolicGeometry(2)
    >>> origin = np.array([1.0, 0.0, 0.0])
    >>> there = plane.exp(origin, np.array([0.0, 3.0, 4.0]))
    >>> round(float(plane.distance(origin, there)), 12)
    5.0
    """

    degree: int
    size: float = 1.0
    noise: str = "wrapped"

    @property
    def dimension(self) -> int:
        return self.degree

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.degree + 1,)

    @property
    def origin(self) -> FloatArray:
        point = np.zeros(self.degree + 1)
        point[0] = self.size
        return point

    @property
    def curvature(self) -> float:
        return -1.0 / self.size**2

    @cached_property
    def law(self) -> RadialLaw:  # type: ignore[override]
        return radial_law("hyperbolic", self.degree, self.noise)

    def project(self, points: FloatArray) -> FloatArray:
        """Return points with the time-like coordinate that puts them on the hyperboloid."""
        points = np.array(points, dtype=np.float64)
        points[..., 0] = np.hypot(self.size, _norm(points[..., 1:]))
        return points

    def _chord(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return ``<x - y, x - y>`` of points on the unit hyperboloid without cancellation near or far out.

        The difference of two far points is mostly along their sum, where the metric is almost degenerate. It is split
        into the parts along and across.
        """
        cosine = -minkowski(left, right)
        between = left[..., 1:] - right[..., 1:]
        middle = left[..., 1:] + right[..., 1:]
        length = _norm(middle)
        along = (between * middle).sum(axis=-1) / np.where(length > 0, length, 1.0)
        across = between - (along / np.where(length > 0, length, 1.0))[..., None] * middle
        apart = cosine > np.maximum(0.1 * left[..., 0] * right[..., 0], 2.0)
        slope = np.where(apart, 0.0, along / (left[..., 0] + right[..., 0])) ** 2
        near = ((across**2).sum(axis=-1) + 4.0 * slope) / np.maximum(1.0 - slope, 1e-16)
        return np.where(apart, 2.0 * (cosine - 1.0), near)

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        chord = self._chord(np.asarray(left) / self.size, np.asarray(right) / self.size)
        distance: FloatArray = 2.0 * self.size * np.arcsinh(0.5 * np.sqrt(chord))
        return distance

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return minkowski(left, right)

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        length = np.sqrt(np.maximum(minkowski(tangent, tangent), 0.0))[..., None] / self.size
        factor = np.where(length > 1e-8, np.sinh(length) / np.maximum(length, 1e-300), 1.0)
        return self.project(np.cosh(length) * point + factor * tangent)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        start, end = np.asarray(point) / self.size, np.asarray(other) / self.size
        chord = self._chord(start, end)
        length = 2.0 * np.arcsinh(0.5 * np.sqrt(chord))
        sine = np.sqrt(chord * (1.0 + 0.25 * chord))
        ratio = np.where(length > 1e-8, length / np.maximum(sine, 1e-300), 1.0)
        tangent: FloatArray = self.size * ratio[..., None] * (end - start - 0.5 * chord[..., None] * start)
        return tangent

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        factor = minkowski(end, tangent) / (self.size**2 - minkowski(start, end))
        moved: FloatArray = tangent + factor[..., None] * (start + end)
        return moved

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        flat = np.zeros(np.shape(point))
        flat[..., 1:] = rng.normal(size=flat[..., 1:].shape)
        return self.transport(np.broadcast_to(self.origin, flat.shape), np.asarray(point), flat)

    def curvature_bound(self, distance: FloatArray) -> FloatArray:
        length = np.maximum(distance / self.size, 1e-6)
        bound: FloatArray = length / np.tanh(length)
        return bound

    def information(
        self, points: FloatArray, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None
    ) -> FloatArray:
        precision = 2.0 * self.size**2 * np.maximum(weights, 0.0)
        pull = np.zeros_like(precision) if volume is None else (self.degree - 1.0) * volume
        there = precision > 0
        radii = np.where(there, self.distance(points[:, None], votes) / self.size, 1.0)
        total: FloatArray = np.where(there, self.law.information(radii, precision, pull), 0.0).sum(axis=1)
        return total / self.size**2

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        from consilience.label_types.manifolds.kernels import hyperbolic_means

        scaled = np.ascontiguousarray(votes, dtype=np.float64) / self.size
        precision = np.ascontiguousarray(2.0 * self.size**2 * weights)
        pull = np.zeros_like(precision) if volume is None else np.ascontiguousarray((self.degree - 1.0) * volume)
        points, converged = hyperbolic_means(scaled, precision, pull, TOLERANCE, MAX_STEPS)
        return Means(self.size * points, converged, np.ones(len(points), dtype=bool))


def _norm(vectors: FloatArray) -> FloatArray:
    length: FloatArray = np.linalg.norm(vectors, axis=-1)
    return length


class _Closed(_Curved):
    """What spheres and rotations have in common."""

    def closeness(self, distance: FloatArray) -> FloatArray:
        return self.law.closeness(distance / self.radius)

    def scale_of_closeness(self, closeness: FloatArray) -> FloatArray:
        return self.radius * self.law.scale_from_closeness(closeness)


@dataclass(frozen=True)
class SphereGeometry(_Closed):
    """Unit vectors of ``R^(degree + 1)``; the distance is the angle.

    Examples
    --------
    >>> earth = SphereGeometry(2)
    >>> pole, equator = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    >>> round(float(earth.distance(pole, equator)) / np.pi, 12)
    0.5
    """

    degree: int
    noise: str = "wrapped"

    @property
    def dimension(self) -> int:
        return self.degree

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.degree + 1,)

    @property
    def origin(self) -> FloatArray:
        first: FloatArray = np.eye(self.degree + 1)[0]
        return first

    @property
    def curvature(self) -> float:
        return 1.0

    @cached_property
    def law(self) -> RadialLaw:  # type: ignore[override]
        return radial_law("sphere", self.degree, self.noise)

    def project(self, points: FloatArray) -> FloatArray:
        """Return points scaled to length one."""
        points = np.asarray(points, dtype=np.float64)
        scaled: FloatArray = points / np.linalg.norm(points, axis=-1, keepdims=True)
        return scaled

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        apart = np.linalg.norm(np.asarray(left) - right, axis=-1)
        together = np.linalg.norm(np.asarray(left) + right, axis=-1)
        angle: FloatArray = 2.0 * np.arctan2(apart, together)
        return angle

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        product: FloatArray = (left * right).sum(axis=-1)
        return product

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        length = np.linalg.norm(tangent, axis=-1, keepdims=True)
        return self.project(np.cos(length) * point + np.sinc(length / np.pi) * tangent)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        point, other = np.broadcast_arrays(np.asarray(point, float), np.asarray(other, float))
        angle = self.distance(point, other)[..., None]
        # As other - cos(angle) point, without the difference of two numbers near one.
        across = (other - point) + 2.0 * np.sin(angle / 2.0) ** 2 * point
        across = across - (across * point).sum(axis=-1, keepdims=True) * point
        length = np.linalg.norm(across, axis=-1, keepdims=True)
        opposite = (np.pi - angle < 1e-7)[..., 0]
        if opposite.any():  # every direction leads there: the one towards the axis the point is least along
            least = np.abs(point[opposite]).argmin(axis=-1)
            made_up = -np.take_along_axis(point[opposite], least[:, None], axis=-1) * point[opposite]
            made_up[np.arange(len(least)), least] += 1.0
            across, length = across.copy(), length.copy()
            across[opposite] = made_up
            length[opposite] = np.linalg.norm(made_up, axis=-1, keepdims=True)
        tangent: FloatArray = np.where(length > 0, angle / np.where(length > 0, length, 1.0), 1.0) * across
        return tangent

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        factor = (np.asarray(end) * tangent).sum(axis=-1) / np.maximum(1.0 + (start * end).sum(axis=-1), 1e-15)
        moved: FloatArray = tangent - factor[..., None] * (start + end)
        return moved

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        flat = rng.normal(size=np.shape(point))
        tangent: FloatArray = flat - (flat * point).sum(axis=-1, keepdims=True) * point
        return tangent

    def information(
        self, points: FloatArray, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None
    ) -> FloatArray:
        radii = self.distance(points[:, None], votes)
        return _information(self.law, radii, 2.0 * weights, volume)

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        return _means(votes, 2.0 * weights, volume, self.degree - 1.0, folded=False)


@dataclass(frozen=True)
class RotationGeometry(_Closed):
    """Rotations of space as unit quaternions ``(w, x, y, z)``; q and -q are one. The distance is the angle between.

    The sphere of quaternions of radius two: constant curvature 1/4.

    Examples
    --------
    >>> turns = RotationGeometry()
    >>> none, quarter = np.array([1.0, 0, 0, 0]), np.array([-np.sqrt(0.5), 0, 0, -np.sqrt(0.5)])
    >>> round(float(turns.distance(none, quarter)) / np.pi, 12)
    0.5
    """

    noise: str = "wrapped"

    @property
    def dimension(self) -> int:
        return 3

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (4,)

    @property
    def origin(self) -> FloatArray:
        first: FloatArray = np.eye(4)[0]
        return first

    @property
    def curvature(self) -> float:
        return 0.25

    @cached_property
    def law(self) -> RadialLaw:  # type: ignore[override]
        return radial_law("rotations", 3, self.noise)

    @cached_property
    def _sphere(self) -> SphereGeometry:
        return SphereGeometry(3)

    def project(self, points: FloatArray) -> FloatArray:
        """Return quaternions of length one whose first number other than zero is positive."""
        points = self._sphere.project(points)
        first = np.take_along_axis(points, (points != 0.0).argmax(axis=-1)[..., None], axis=-1)
        return np.where(first < 0, -points, points)

    def _nearest(self, point: FloatArray, other: FloatArray) -> FloatArray:
        other = np.asarray(other, dtype=np.float64)
        flipped: FloatArray = np.where((point * other).sum(axis=-1, keepdims=True) < 0, -other, other)
        return flipped

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return 2.0 * self._sphere.distance(left, self._nearest(left, right))

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return 4.0 * self._sphere.inner(point, left, right)

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        return self._sphere.exp(point, tangent)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        return self._sphere.log(point, self._nearest(point, other))

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        return self._sphere.transport(start, self._nearest(start, end), tangent)

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        return 0.5 * self._sphere.random_tangent(point, rng)

    def information(
        self, points: FloatArray, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None
    ) -> FloatArray:
        radii = self.distance(points[:, None], votes) / 2.0
        return _information(self.law, radii, 8.0 * weights, volume) / 4.0

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        return _means(votes, 8.0 * weights, volume, 2.0, folded=True)


def _means(
    votes: FloatArray, precision: FloatArray, volume: FloatArray | None, degrees: float, *, folded: bool
) -> Means:
    from consilience.label_types.manifolds.kernels import sphere_means

    points = np.ascontiguousarray(votes, dtype=np.float64)
    pull = np.zeros_like(precision) if volume is None else np.ascontiguousarray(degrees * volume)
    found = sphere_means(points, np.ascontiguousarray(precision), pull, folded, TOLERANCE, MAX_STEPS)
    return Means(*found)


def _information(law: RadialLaw, radii: FloatArray, precision: FloatArray, volume: FloatArray | None) -> FloatArray:
    pull = np.zeros_like(precision) if volume is None else (law.dimension - 1.0) * volume
    each = law.information(radii, precision, pull)
    # Votes on the far side say nothing about where the truth is.
    total: FloatArray = np.where(precision > 0, np.maximum(each, 1e-3 * precision), 0.0).sum(axis=1)
    return total
