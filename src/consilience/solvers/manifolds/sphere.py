"""The unit sphere, and rotations as pairs of opposite points of the sphere of unit quaternions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consilience.arrays import FloatArray
from consilience.solvers.manifolds.base import MAX_STEPS, TOLERANCE, Geometry, Means
from consilience.solvers.manifolds.two_point import TwoPointLaw, two_point_law

__all__ = ["RotationGeometry", "SphereGeometry"]


@dataclass(frozen=True)
class SphereGeometry(Geometry):
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
    def law(self) -> TwoPointLaw:  # type: ignore[override]
        return two_point_law("sphere", self.degree, self.noise)

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
class RotationGeometry(Geometry):
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
    def law(self) -> TwoPointLaw:  # type: ignore[override]
        return two_point_law("rotations", 3, self.noise)

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
    from consilience.kernels.sphere import sphere_means

    points = np.ascontiguousarray(votes, dtype=np.float64)
    pull = np.zeros_like(precision) if volume is None else np.ascontiguousarray(degrees * volume)
    found = sphere_means(points, np.ascontiguousarray(precision), pull, folded, TOLERANCE, MAX_STEPS)
    return Means(*found)


def _information(law: TwoPointLaw, radii: FloatArray, precision: FloatArray, volume: FloatArray | None) -> FloatArray:
    pull = np.zeros_like(precision) if volume is None else (law.dimension - 1.0) * volume
    each = law.information(radii, precision, pull)
    # Votes on the far side say nothing about where the truth is.
    total: FloatArray = np.where(precision > 0, np.maximum(each, 1e-3 * precision), 0.0).sum(axis=1)
    return total
