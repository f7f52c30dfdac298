"""Spaces of constant curvature: hyperbolic space, the sphere, and rotations as pairs of opposite unit quaternions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import lgamma
from typing import ClassVar

import numpy as np

from consilience.arrays import FloatArray
from consilience.label_types.manifolds.geometry import MAX_STEPS, TOLERANCE, Means, TabulatedGeometry

#: Smallest and largest tabulated scale, in radii. Below it, space is flat; above it, only the scale matters.
SMALLEST, LARGEST = 1e-4, 300.0
#: Share of its precision that a vote on the far side keeps. Such a vote does not locate the truth.
KEPT = 1e-3
#: Number of candidate truths per item, drawn near the label and from the whole space. They determine the mean squared
#: distance to within about a tenth. Only those from the whole space can find a second cluster of votes.
NEAR, ANYWHERE = 32, 96
#: Numbers of angles and cosines at which densities are tabulated, and of turns that wrapped noise may take around the
#: space. Two turns are enough, because scales are below two radii.
ANGLES, COSINES, ROUNDS = 200, 2048, 2
#: The density of wrapped noise is infinite where all paths meet. Within this angle, it is capped.
NARROW = 0.1


class _Curved(TabulatedGeometry):
    """Constant curvature ``-1 / size^2``, or ``1 / size^2`` for closed spaces, in `degree` dimensions.

    The noise of a vote is either "wrapped", ``exp_y(scale * e)`` with standard normal e, or "riemannian", with density
    ``exp(-r^2 / (2 scale^2))`` with respect to volume.
    """

    degree: int
    size: float
    #: In radii: the largest distance, and the root mean squared distance above which votes look unrelated to the truth.
    farthest: ClassVar[float] = np.inf
    widest: ClassVar[float] = np.inf

    @property
    def dimension(self) -> int:
        return self.degree

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.degree + 1,)

    @property
    def curvature(self) -> float:
        return (1.0 if self.is_closed else -1.0) / self.size**2

    @property
    def costs(self) -> tuple[FloatArray, FloatArray]:
        log_scale, log_cost, _ = _tables(self)
        return log_scale + np.log(self.size), log_cost + 2.0 * np.log(self.size)

    @property
    def is_bounded(self) -> bool:
        return self.is_closed

    def reach(self, scale: float, lengths: FloatArray) -> FloatArray:
        if self.noise == "wrapped":
            return scale * lengths
        from scipy.special import gammainc

        # Map each draw to the same quantile of the law with respect to volume. In an open space, volume grows
        # exponentially and shifts the law outward.
        d, scale = self.degree, scale / self.size
        top = scale * (np.sqrt(d) + 8.0)
        top = min(top, self.farthest) if self.is_closed else top + (d - 1) * scale**2
        grid = (np.arange(2000) + 0.5) * top / 2000
        # log(sinh r) = r + log(1 - exp(-2 r)) - log 2, without overflow
        volume = np.log(np.sin(grid)) if self.is_closed else grid + np.log1p(-np.exp(-2.0 * grid))
        height = (d - 1) * volume - grid**2 / (2.0 * scale**2)
        total = np.cumsum(np.exp(height - height.max()))
        return self.size * np.interp(gammainc(d / 2.0, lengths**2 / 2.0), total / total[-1], grid)

    def information(
        self, points: FloatArray, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None
    ) -> FloatArray:
        """Return the second derivative of the negative log density, averaged over directions.

        Along the geodesic to a vote, it is that of ``precision r^2 / 2 + volume log(s / r)`` with ``s = sinh r`` or
        ``sin r``. Across the geodesic, it is the first derivative times ``coth r`` or ``cot r``.
        """
        precision, pull = self._precision(weights, volume)
        there = precision > 0
        r = np.maximum(np.where(there, self.distance(points[:, None], votes) / self.size, 1.0), 1e-4)
        if self.is_closed:
            r = np.minimum(r, np.pi - 1e-4)
            cotangent, bend = 1.0 / np.tan(r), 1.0 / r**2 - 1.0 / np.sin(r) ** 2
        else:
            cotangent, bend = 1.0 / np.tanh(r), 1.0 / r**2 - 1.0 / np.sinh(np.minimum(r, 300.0)) ** 2
        across = (precision * r + pull * (cotangent - 1.0 / r)) * cotangent
        each = (precision + pull * bend + (self.degree - 1) * across) / self.degree
        return np.where(there, np.maximum(each, KEPT * precision), 0.0).sum(axis=1) / self.size**2

    def _precision(self, weights: FloatArray, volume: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return the precisions and the weights of the volume factor, scaled to radius one."""
        precision = 2.0 * self.size**2 * np.maximum(weights, 0.0)
        pull = np.zeros_like(precision) if volume is None else (self.degree - 1.0) * volume
        return np.ascontiguousarray(precision), np.ascontiguousarray(pull)


@lru_cache(maxsize=32)
def _tables(space: _Curved) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return log scales, log mean squared distances (both in radii) and mean closeness; all are monotonic."""
    from scipy.special import gammaincinv

    largest = space.widest / np.sqrt(space.degree) if space.is_closed else LARGEST
    scale = np.exp(np.linspace(np.log(SMALLEST), np.log(largest), 200))
    if not space.is_closed and space.noise == "wrapped":
        return np.log(scale), np.log(space.degree * scale**2), np.zeros(200)
    # Equally spaced quantiles of the length of a standard normal vector.
    lengths = np.sqrt(2.0 * gammaincinv(space.degree / 2.0, (np.arange(8000) + 0.5) / 8000))
    radii = np.stack([space.reach(float(one) * space.size, lengths) for one in scale]) / space.size
    rank, close = np.arange(200), np.zeros(200)
    if space.is_closed:
        close = space.closeness(space.size * radii).mean(axis=1)
        radii = np.abs((radii + np.pi) % (2.0 * np.pi) - np.pi)
        radii = np.where(radii > space.farthest, np.pi - radii, radii)
    cost = np.log((radii**2).mean(axis=1))
    return np.log(scale), np.maximum.accumulate(cost + 1e-9 * rank), np.minimum.accumulate(close - 1e-12 * rank)


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
    def origin(self) -> FloatArray:
        return self.size * np.eye(self.degree + 1)[0]

    def project(self, points: FloatArray) -> FloatArray:
        points = np.array(points, dtype=np.float64)
        points[..., 0] = np.hypot(self.size, np.linalg.norm(points[..., 1:], axis=-1))
        return points

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return (left[..., 1:] * right[..., 1:]).sum(axis=-1) - left[..., 0] * right[..., 0]

    def _chord(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return ``<x - y, x - y>`` on the unit hyperboloid, without cancellation near or far from the origin.

        The difference of two far points lies mostly along their sum, where the metric is almost degenerate. So the
        difference is split into a part along the sum and a part across it.
        """
        cosine = -self.inner(left, left, right)
        between = left[..., 1:] - right[..., 1:]
        middle = left[..., 1:] + right[..., 1:]
        length = np.linalg.norm(middle, axis=-1)
        length = np.where(length > 0, length, 1.0)
        along = (between * middle).sum(axis=-1) / length
        across = between - (along / length)[..., None] * middle
        apart = cosine > np.maximum(0.1 * left[..., 0] * right[..., 0], 2.0)
        slope = np.where(apart, 0.0, along / (left[..., 0] + right[..., 0])) ** 2
        near = ((across**2).sum(axis=-1) + 4.0 * slope) / np.maximum(1.0 - slope, 1e-16)
        return np.where(apart, 2.0 * (cosine - 1.0), near)

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        chord = self._chord(np.asarray(left) / self.size, np.asarray(right) / self.size)
        return 2.0 * self.size * np.arcsinh(0.5 * np.sqrt(chord))

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        length = np.sqrt(np.maximum(self.inner(point, tangent, tangent), 0.0))[..., None] / self.size
        factor = np.where(length > 1e-8, np.sinh(length) / np.maximum(length, 1e-300), 1.0)
        return self.project(np.cosh(length) * point + factor * tangent)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        start, end = np.asarray(point) / self.size, np.asarray(other) / self.size
        chord = self._chord(start, end)
        length, sine = 2.0 * np.arcsinh(0.5 * np.sqrt(chord)), np.sqrt(chord * (1.0 + 0.25 * chord))
        ratio = np.where(length > 1e-8, length / np.maximum(sine, 1e-300), 1.0)
        return self.size * ratio[..., None] * (end - start - 0.5 * chord[..., None] * start)

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        factor = self.inner(start, end, tangent) / (self.size**2 - self.inner(start, start, end))
        return tangent + factor[..., None] * (start + end)

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        flat = np.zeros(np.shape(point))
        flat[..., 1:] = rng.normal(size=flat[..., 1:].shape)
        return self.transport(np.broadcast_to(self.origin, flat.shape), np.asarray(point), flat)

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        from consilience.label_types.manifolds.kernels import hyperbolic_means

        scaled = np.ascontiguousarray(votes, dtype=np.float64) / self.size
        points, converged = hyperbolic_means(scaled, *self._precision(weights, volume), TOLERANCE, MAX_STEPS)
        return Means(self.size * points, converged, np.ones(len(points), dtype=bool))


class _Closed(_Curved):
    """Unit vectors whose distance is `size` times their angle. If `folded`, opposite vectors are the same point."""

    is_closed: ClassVar[bool] = True
    folded: ClassVar[bool] = False

    @property
    def origin(self) -> FloatArray:
        return np.eye(self.degree + 1)[0]

    def closeness(self, distance: FloatArray) -> FloatArray:
        """Return the cosine, or for rotations the character: zonal functions f that multiply for independent votes.

        Since the noise is the same in all directions, ``E f(d_ab) = E f(d_a) E f(d_b)``, whatever its law.
        """
        angle = distance / self.size
        return (1.0 + 2.0 * np.cos(2.0 * angle)) / 3.0 if self.folded else np.cos(angle)

    def scale_of_closeness(self, closeness: FloatArray) -> FloatArray:
        log_scale, _, mean = _tables(self)
        return self.size * np.exp(np.interp(-closeness, -mean, log_scale))

    def cost_of_closeness(self, closeness: FloatArray) -> FloatArray:
        _, log_cost, mean = _tables(self)
        angle = (np.arange(ANGLES) + 0.5) * self.farthest / ANGLES
        unrelated = np.average(angle**2, weights=np.sin(angle) ** (self.degree - 1))  # the cost of random points
        known = mean > 0.0
        cost = np.minimum(np.exp(log_cost[known]), unrelated)
        return self.size**2 * np.interp(-closeness, [*-mean[known], 0.0], [*cost, unrelated])

    def features(self, points: FloatArray) -> FloatArray:
        if not self.folded:
            return points
        products = points[..., :, None] * points[..., None, :] - np.eye(4) / 4.0
        return np.sqrt(4.0 / 3.0) * products.reshape(*points.shape[:-1], 16)

    def _log_density(self, angle: FloatArray, scale: float) -> FloatArray:
        """Return the log density of a vote at these angles from the truth, up to a constant; the scale is in radii."""
        d, far = self.degree, -(angle**2) / (2.0 * scale**2)
        if self.noise == "riemannian":
            middle = (np.arange(ANGLES) + 0.5) * self.farthest / ANGLES
            mass = np.exp(-(middle**2) / (2.0 * scale**2)) * np.sin(middle) ** (d - 1)
            return far - np.log(max(float(mass.mean()), 1e-300))
        paths = angle[:, None] + 2.0 * self.farthest * np.arange(-ROUNDS, ROUNDS + 1)
        wide = (np.abs(paths) + NARROW) / (np.sin(angle)[:, None] + NARROW)
        each = np.exp((angle[:, None] ** 2 - paths**2) / (2.0 * scale**2)) * wide ** (d - 1)
        return np.asarray(far + np.log(each.sum(axis=1)) - d * np.log(scale))

    def expected_cost(
        self, points: FloatArray, votes: FloatArray, counted: FloatArray, scale: FloatArray, variance: FloatArray
    ) -> FloatArray:
        """Average the cost over candidate truths near the label and anywhere, weighted by the density of the votes."""
        d, rng = self.degree, np.random.default_rng(0)
        tangents, anywhere = (rng.normal(size=(count, d + 1)) for count in (NEAR, ANYWHERE))
        anywhere /= np.linalg.norm(anywhere, axis=1, keepdims=True)
        own = np.sqrt(np.clip(variance / d / self.size**2, 1e-12, (self.farthest / 3.0) ** 2))[:, None]
        flat = tangents - (points @ tangents.T)[:, :, None] * points[:, None]
        near = self.exp(points[:, None], own[:, :, None] * flat)

        place = np.empty((len(points), NEAR + ANYWHERE))

        def cosine(to: FloatArray) -> FloatArray:
            place[:, :NEAR] = (near @ to[:, :, None])[:, :, 0]
            np.matmul(to, anywhere.T, out=place[:, NEAR:])
            return np.abs(place, out=place) if self.folded else place

        apart = np.arccos(np.clip(cosine(points), -1.0, 1.0))
        wide = (d - 1) * np.log((apart + NARROW) / (np.sin(apart) + NARROW))
        own_density = wide - apart**2 / (2.0 * own**2) - d / 2.0 * np.log(2.0 * np.pi * own**2)
        volume = np.log(2.0) + (d + 1) / 2.0 * np.log(np.pi) - lgamma((d + 1) / 2.0) - np.log(2.0) * self.folded
        height = -np.logaddexp(own_density + np.log(NEAR), np.log(ANYWHERE) - volume)
        # The table is indexed by the cosine, because log densities are nearly linear in it for votes near the truth.
        angles = np.arccos(np.linspace(-1.0, 1.0, COSINES + 1))
        for source, each in enumerate(scale / self.size):
            rows = np.flatnonzero(counted[:, source] > 0)
            if len(rows) == 0:
                continue
            to = np.zeros_like(points)
            to[rows] = votes[rows, source]
            table = self._log_density(np.minimum(angles, self.farthest), each)
            slope = np.diff(table)
            line = cosine(to)
            line += 1.0
            line *= COSINES / 2.0
            cell = line.astype(np.intp)
            line *= slope.take(cell, mode="clip")
            line += (table[:-1] - slope * np.arange(COSINES)).take(cell, mode="clip")
            line *= counted[:, source, None]
            height += line
        weight = np.exp(height - height.max(axis=1, keepdims=True))
        return self.size**2 * np.asarray((weight * apart**2).sum(axis=1) / weight.sum(axis=1))

    def project(self, points: FloatArray) -> FloatArray:
        # If opposite vectors are the same point, return the one whose first nonzero coordinate is positive.
        points = np.asarray(points, dtype=np.float64)
        points = points / np.linalg.norm(points, axis=-1, keepdims=True)
        first = np.take_along_axis(points, (points != 0.0).argmax(axis=-1)[..., None], axis=-1)
        return np.where(first < 0, -points, points) if self.folded else points

    def _nearest(self, point: FloatArray, other: FloatArray) -> FloatArray:
        """Return `other`, or its opposite if both are the same point and the opposite is nearer."""
        other = np.asarray(other, dtype=np.float64)
        return np.where((point * other).sum(axis=-1, keepdims=True) < 0, -other, other) if self.folded else other

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        right = self._nearest(left, right)
        apart, together = np.linalg.norm(left - right, axis=-1), np.linalg.norm(left + right, axis=-1)
        return self.size * 2.0 * np.arctan2(apart, together)

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.size**2 * (left * right).sum(axis=-1)

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        length = np.linalg.norm(tangent, axis=-1, keepdims=True)
        moved = np.cos(length) * point + np.sinc(length / np.pi) * tangent
        return moved / np.linalg.norm(moved, axis=-1, keepdims=True)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        point, other = np.broadcast_arrays(np.asarray(point, float), self._nearest(point, other))
        angle = self.distance(point, other)[..., None] / self.size
        # This is other - cos(angle) point, without subtracting two numbers near one.
        across = (other - point) + 2.0 * np.sin(angle / 2.0) ** 2 * point
        across = across - (across * point).sum(axis=-1, keepdims=True) * point
        # Every direction leads to the opposite point. Take the axis along which the point has the smallest coordinate.
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
        return Means(*sphere_means(points, *self._precision(weights, volume), self.folded, TOLERANCE, MAX_STEPS))


@dataclass(frozen=True)
class SphereGeometry(_Closed):
    """Unit vectors of ``R^(degree + 1)``; the distance is the angle."""

    degree: int
    noise: str = "wrapped"
    size: ClassVar[float] = 1.0  # type: ignore[misc]
    farthest: ClassVar[float] = np.pi
    widest: ClassVar[float] = 2.2


@dataclass(frozen=True)
class RotationGeometry(_Closed):
    """Rotations in three dimensions as unit quaternions ``(w, x, y, z)``; q and -q are the same rotation.

    The distance is the angle between two rotations. This is a sphere of radius two, with constant curvature 1/4.
    """

    noise: str = "wrapped"
    degree: ClassVar[int] = 3  # type: ignore[misc]
    size: ClassVar[float] = 2.0  # type: ignore[misc]
    folded: ClassVar[bool] = True
    farthest: ClassVar[float] = np.pi / 2.0
    widest: ClassVar[float] = 1.4
