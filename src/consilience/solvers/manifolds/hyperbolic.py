"""Hyperbolic space as one sheet of the hyperboloid ``<x, x> = -radius^2``, the first coordinate time-like."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consilience.arrays import FloatArray
from consilience.solvers.manifolds.base import MAX_STEPS, TOLERANCE, Geometry, Means
from consilience.solvers.manifolds.two_point import TwoPointLaw, two_point_law

__all__ = ["HyperbolicGeometry", "minkowski"]


def minkowski(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ``sum_i left_i right_i - left_0 right_0`` (i from 1 on)."""
    product: FloatArray = (left[..., 1:] * right[..., 1:]).sum(axis=-1) - left[..., 0] * right[..., 0]
    return product


@dataclass(frozen=True)
class HyperbolicGeometry(Geometry):
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
    def law(self) -> TwoPointLaw:  # type: ignore[override]
        return two_point_law("hyperbolic", self.degree, self.noise)

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
        from consilience.kernels.hyperbolic import hyperbolic_means

        scaled = np.ascontiguousarray(votes, dtype=np.float64) / self.size
        precision = np.ascontiguousarray(2.0 * self.size**2 * weights)
        pull = np.zeros_like(precision) if volume is None else np.ascontiguousarray((self.degree - 1.0) * volume)
        points, converged = hyperbolic_means(scaled, precision, pull, TOLERANCE, MAX_STEPS)
        return Means(self.size * points, converged, np.ones(len(points), dtype=bool))


def _norm(vectors: FloatArray) -> FloatArray:
    length: FloatArray = np.linalg.norm(vectors, axis=-1)
    return length
