"""Spaces of constant curvature: hyperbolic space, the sphere, and rotations as pairs of opposite unit quaternions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from consilience.arrays import FloatArray
from consilience.label_types.manifolds.geometry import MAX_STEPS, TOLERANCE, Geometry, Means

__all__ = ["HyperbolicGeometry", "RadialLaw", "RotationGeometry", "SphereGeometry", "minkowski", "radial_law"]

#: Scales tabulated, in radii: below the first space is flat, beyond the last only the scale counts.
SMALLEST, LARGEST = 1e-4, 300.0
#: Random points further than this from the truth, in radii, are not told from unrelated ones on a sphere.
WIDEST = {"sphere": 2.2, "rotations": 1.4}
#: Share of its precision that a vote keeps on the far side, where it says nothing about where the truth is.
KEPT = 1e-3


@dataclass(frozen=True)
class RadialLaw:
    """How far votes lie from the truth, in units of the curvature radius.

    Examples
    --------
    >>> RadialLaw("hyperbolic", 2).vote_cost(np.array([0.5]))
    array([0.5])
    >>> bool(RadialLaw("sphere", 2).vote_cost(np.array([1.0]))[0] < 2.0)  # long ways lead back
    True
    """

    kind: str  # "hyperbolic", "sphere", or "rotations" (a sphere whose opposite points are one)
    dimension: int  # of the space
    # "wrapped": exp_y(scale * e) with standard normal e. "riemannian": density exp(-r^2 / (2 scale^2)) with respect to
    # volume.
    noise: str = "wrapped"

    @property
    def is_closed(self) -> bool:
        """Whether long ways lead back."""
        return self.kind != "hyperbolic"

    def radii(self, scale: float, lengths: FloatArray) -> FloatArray:
        """Return distances from the truth, for the lengths of standard normal vectors."""
        if self.noise == "wrapped":
            return scale * lengths
        from scipy.special import gammainc

        # The draws are carried to the law with respect to volume, rank by rank.
        d = self.dimension
        top = scale * (np.sqrt(d) + 8.0)
        if self.is_closed:
            top = min(top, np.pi if self.kind == "sphere" else np.pi / 2.0)
        else:
            top += (d - 1) * scale**2  # volume grows exponentially and moves the law outwards
        grid = (np.arange(2000) + 0.5) * top / 2000
        # log(sinh r) = r + log(1 - exp(-2 r)) - log 2, without overflow
        volume = np.log(np.sin(grid)) if self.is_closed else grid + np.log1p(-np.exp(-2.0 * grid))
        height = (d - 1) * volume - grid**2 / (2.0 * scale**2)
        total = np.cumsum(np.exp(height - height.max()))
        return np.interp(gammainc(d / 2.0, lengths**2 / 2.0), total / total[-1], grid)

    def information(self, radii: FloatArray, precision: FloatArray, volume: FloatArray) -> FloatArray:
        """Return the second derivatives of minus the log density of votes at these distances, over directions.

        Along the geodesic to a vote it is that of ``precision r^2 / 2 + volume log(s / r)`` with ``s = sinh r`` or
        ``sin r``; across, the first derivative times ``coth r`` or ``cot r``.
        """
        r = np.maximum(radii, 1e-4)
        if self.is_closed:
            r = np.minimum(r, np.pi - 1e-4)
            cotangent, bend = 1.0 / np.tan(r), 1.0 / r**2 - 1.0 / np.sin(r) ** 2
        else:
            cotangent, bend = 1.0 / np.tanh(r), 1.0 / r**2 - 1.0 / np.sinh(np.minimum(r, 300.0)) ** 2
        first = precision * r + volume * (cotangent - 1.0 / r)
        return (precision + volume * bend + (self.dimension - 1) * first * cotangent) / self.dimension

    def vote_cost(self, scale: FloatArray) -> FloatArray:
        """Return the mean squared distance of votes to the truth, by scale."""
        log_scale, log_cost, _ = self._curves
        wanted = np.log(np.maximum(scale, 1e-300))
        inside = np.clip(wanted, log_scale[0], log_scale[-1])
        # Beyond the table votes scatter as in flat space; on the far side nothing but the scale counts.
        beyond = 0.0 if self.is_closed else 2.0 * (wanted - inside)
        return np.exp(np.interp(inside, log_scale, log_cost) + beyond)

    def scale_from_cost(self, cost: FloatArray) -> FloatArray:
        """Return the scale of this mean squared distance; the inverse of `vote_cost`."""
        log_scale, log_cost, _ = self._curves
        wanted = np.log(np.maximum(cost, 1e-300))
        inside = np.clip(wanted, log_cost[0], log_cost[-1])
        beyond = (wanted - inside) / 2.0
        # On a sphere costs have a maximum, and so have the scales that can be told from it.
        return np.exp(np.interp(inside, log_cost, log_scale) + (np.minimum(beyond, 0.0) if self.is_closed else beyond))

    @cached_property
    def _curves(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logarithms of scales and of mean squared distances, and mean closeness; monotonic, to be inverted."""
        from scipy.special import gammaincinv

        largest = WIDEST[self.kind] / np.sqrt(self.dimension) if self.is_closed else LARGEST
        scale = np.exp(np.linspace(np.log(SMALLEST), np.log(largest), 200))
        if not self.is_closed and self.noise == "wrapped":
            return np.log(scale), np.log(self.dimension * scale**2), np.zeros(200)
        # equally spaced quantiles of the length of a standard normal vector
        lengths = np.sqrt(2.0 * gammaincinv(self.dimension / 2.0, (np.arange(8000) + 0.5) / 8000))
        radii = np.stack([self.radii(float(one), lengths) for one in scale])
        close = self.closeness(radii).mean(axis=1)
        if self.is_closed:
            radii = np.abs((radii + np.pi) % (2.0 * np.pi) - np.pi)
        if self.kind == "rotations":
            radii = np.minimum(radii, np.pi - radii)
        cost, rank = np.log((radii**2).mean(axis=1)), np.arange(200)
        return np.log(scale), np.maximum.accumulate(cost + 1e-9 * rank), np.minimum.accumulate(close - 1e-12 * rank)

    def closeness(self, distance: FloatArray) -> FloatArray:
        """Return the zonal function of a sphere that independent votes multiply: a cosine, or a character of rotations.

        Noise is the same in all directions, so that ``E f(d_ab) = E f(d_a) E f(d_b)`` whatever its law.
        """
        return np.cos(distance) if self.kind == "sphere" else (1.0 + 2.0 * np.cos(2.0 * distance)) / 3.0

    def scale_from_closeness(self, closeness: FloatArray) -> FloatArray:
        """Return the scale of this mean closeness to the truth."""
        log_scale, _, mean = self._curves
        return np.exp(np.interp(-closeness, -mean, log_scale))


@lru_cache(maxsize=32)
def radial_law(kind: str, dimension: int, noise: str = "wrapped") -> RadialLaw:
    """Return the law, whose tables are made once."""
    return RadialLaw(kind, dimension, noise)


def minkowski(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ``sum_i left_i right_i - left_0 right_0`` (i from 1 on)."""
    return (left[..., 1:] * right[..., 1:]).sum(axis=-1) - left[..., 0] * right[..., 0]


class _Curved(Geometry):
    """Constant curvature ``-1 / size^2``, or ``1 / size^2`` for closed spaces, in `degree` dimensions."""

    degree: int
    size: float
    noise: str
    kind: ClassVar[str]

    @property
    def dimension(self) -> int:
        return self.degree

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.degree + 1,)

    @property
    def curvature(self) -> float:
        return (1.0 if self.is_closed else -1.0) / self.size**2

    @cached_property
    def law(self) -> RadialLaw:
        """How far votes lie from the truth."""
        return radial_law(self.kind, self.degree, self.noise)

    def cost_of_scale(self, scale: FloatArray) -> FloatArray:
        return self.size**2 * self.law.vote_cost(np.asarray(scale) / self.size)

    def scale_of_cost(self, cost: FloatArray) -> FloatArray:
        return self.size * self.law.scale_from_cost(np.asarray(cost) / self.size**2)

    def reach(self, scale: float, lengths: FloatArray) -> FloatArray:
        return self.size * self.law.radii(scale / self.size, lengths)

    def information(
        self, points: FloatArray, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None
    ) -> FloatArray:
        precision, pull = self._precision(weights, volume)
        there = precision > 0
        radii = np.where(there, self.distance(points[:, None], votes) / self.size, 1.0)
        each = np.maximum(self.law.information(radii, precision, pull), KEPT * precision)
        return np.where(there, each, 0.0).sum(axis=1) / self.size**2

    def _precision(self, weights: FloatArray, volume: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return precisions and weights of the volume factor on the space of radius one."""
        precision = 2.0 * self.size**2 * np.maximum(weights, 0.0)
        pull = np.zeros_like(precision) if volume is None else (self.degree - 1.0) * volume
        return np.ascontiguousarray(precision), np.ascontiguousarray(pull)


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
    kind: ClassVar[str] = "hyperbolic"

    @property
    def origin(self) -> FloatArray:
        return self.size * np.eye(self.degree + 1)[0]

    def project(self, points: FloatArray) -> FloatArray:
        """Return points with the time-like coordinate that puts them on the hyperboloid."""
        points = np.array(points, dtype=np.float64)
        points[..., 0] = np.hypot(self.size, np.linalg.norm(points[..., 1:], axis=-1))
        return points

    def _chord(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return ``<x - y, x - y>`` of points on the unit hyperboloid without cancellation near or far out.

        The difference of two far points is mostly along their sum, where the metric is almost degenerate. It is split
        into the parts along and across.
        """
        cosine = -minkowski(left, right)
        between = left[..., 1:] - right[..., 1:]
        middle = left[..., 1:] + right[..., 1:]
        length = np.linalg.norm(middle, axis=-1)
        along = (between * middle).sum(axis=-1) / np.where(length > 0, length, 1.0)
        across = between - (along / np.where(length > 0, length, 1.0))[..., None] * middle
        apart = cosine > np.maximum(0.1 * left[..., 0] * right[..., 0], 2.0)
        slope = np.where(apart, 0.0, along / (left[..., 0] + right[..., 0])) ** 2
        near = ((across**2).sum(axis=-1) + 4.0 * slope) / np.maximum(1.0 - slope, 1e-16)
        return np.where(apart, 2.0 * (cosine - 1.0), near)

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        chord = self._chord(np.asarray(left) / self.size, np.asarray(right) / self.size)
        return 2.0 * self.size * np.arcsinh(0.5 * np.sqrt(chord))

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
        return self.size * ratio[..., None] * (end - start - 0.5 * chord[..., None] * start)

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        factor = minkowski(end, tangent) / (self.size**2 - minkowski(start, end))
        return tangent + factor[..., None] * (start + end)

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        flat = np.zeros(np.shape(point))
        flat[..., 1:] = rng.normal(size=flat[..., 1:].shape)
        return self.transport(np.broadcast_to(self.origin, flat.shape), np.asarray(point), flat)

    def curvature_bound(self, distance: FloatArray) -> FloatArray:
        length = np.maximum(distance / self.size, 1e-6)
        return length / np.tanh(length)

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        from consilience.label_types.manifolds.kernels import hyperbolic_means

        scaled = np.ascontiguousarray(votes, dtype=np.float64) / self.size
        points, converged = hyperbolic_means(scaled, *self._precision(weights, volume), TOLERANCE, MAX_STEPS)
        return Means(self.size * points, converged, np.ones(len(points), dtype=bool))


class _Closed(_Curved):
    """Unit vectors at a distance of `size` times their angle; opposite ones may be the same point."""

    folded: ClassVar[bool] = False
    is_closed: ClassVar[bool] = True

    @property
    def origin(self) -> FloatArray:
        return np.eye(self.degree + 1)[0]

    def closeness(self, distance: FloatArray) -> FloatArray:
        return self.law.closeness(distance / self.size)

    def scale_of_closeness(self, closeness: FloatArray) -> FloatArray:
        return self.size * self.law.scale_from_closeness(closeness)

    def project(self, points: FloatArray) -> FloatArray:
        """Return points scaled to length one."""
        points = np.asarray(points, dtype=np.float64)
        return points / np.linalg.norm(points, axis=-1, keepdims=True)

    def _nearest(self, point: FloatArray, other: FloatArray) -> FloatArray:
        """Return the nearer one of two opposite points that are the same."""
        other = np.asarray(other, dtype=np.float64)
        return np.where((point * other).sum(axis=-1, keepdims=True) < 0, -other, other) if self.folded else other

    def _angle(self, left: FloatArray, right: FloatArray) -> FloatArray:
        apart, together = np.linalg.norm(left - right, axis=-1), np.linalg.norm(left + right, axis=-1)
        return 2.0 * np.arctan2(apart, together)

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.size * self._angle(np.asarray(left), self._nearest(left, right))

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.size**2 * (left * right).sum(axis=-1)

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        length = np.linalg.norm(tangent, axis=-1, keepdims=True)
        return _Closed.project(self, np.cos(length) * point + np.sinc(length / np.pi) * tangent)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        point, other = np.broadcast_arrays(np.asarray(point, float), self._nearest(point, other))
        angle = self._angle(point, other)[..., None]
        # As other - cos(angle) point, without the difference of two numbers near one.
        across = (other - point) + 2.0 * np.sin(angle / 2.0) ** 2 * point
        across = across - (across * point).sum(axis=-1, keepdims=True) * point
        # Every direction leads to the opposite point: take that of the axis the point is least along.
        least = np.eye(point.shape[-1])[np.abs(point).argmin(axis=-1)]
        made_up = least - (least * point).sum(axis=-1, keepdims=True) * point
        across = np.where(np.pi - angle < 1e-7, made_up, across)
        length = np.linalg.norm(across, axis=-1, keepdims=True)
        return np.where(length > 0, angle / np.where(length > 0, length, 1.0), 1.0) * across

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        end = self._nearest(start, end)
        factor = (end * tangent).sum(axis=-1) / np.maximum(1.0 + (start * end).sum(axis=-1), 1e-15)
        return tangent - factor[..., None] * (start + end)

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        flat = rng.normal(size=np.shape(point))
        return (flat - (flat * point).sum(axis=-1, keepdims=True) * point) / self.size

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        from consilience.label_types.manifolds.kernels import sphere_means

        points = np.ascontiguousarray(votes, dtype=np.float64)
        found = sphere_means(points, *self._precision(weights, volume), self.folded, TOLERANCE, MAX_STEPS)
        return Means(*found)


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
    kind: ClassVar[str] = "sphere"
    size: ClassVar[float] = 1.0  # type: ignore[misc]


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
    kind: ClassVar[str] = "rotations"
    degree: ClassVar[int] = 3  # type: ignore[misc]
    size: ClassVar[float] = 2.0  # type: ignore[misc]
    folded: ClassVar[bool] = True

    def project(self, points: FloatArray) -> FloatArray:
        """Return quaternions of length one whose first number other than zero is positive."""
        points = super().project(points)
        first = np.take_along_axis(points, (points != 0.0).argmax(axis=-1)[..., None], axis=-1)
        return np.where(first < 0, -points, points)
