"""How far two votes around one truth are apart in a space of constant curvature, and around the truth itself.

A vote lies at a random distance from the truth in a random direction. Two of them and the truth make a triangle whose
third side follows from the law of cosines, so that the mean squared distance between two sources is exact for given
scales, whatever the size of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import FloatArray

if TYPE_CHECKING:
    from scipy.interpolate import RectBivariateSpline

__all__ = ["TwoPointLaw", "two_point_law"]

#: Draws of two radii and an angle behind every mean; the same for all scales.
DRAWS = 1000
#: Scales tabulated, in radii.
SMALLEST, LARGEST, KNOTS = 1e-4, 300.0, 48
#: Random points further than this from the truth, in radii, are not told from unrelated ones on a sphere.
WIDEST = {"sphere": 2.2, "rotations": 1.4}


@dataclass(frozen=True)
class TwoPointLaw:
    """Votes at random distances in random directions, in units of the curvature radius.

    Parameters
    ----------
    kind
        "flat", "hyperbolic", "sphere", or "rotations" (a sphere whose opposite points are one).
    dimension
        Of the space.
    noise
        "wrapped": ``exp_y(scale * e)`` with standard normal e. "riemannian": density ``exp(-r^2 / (2 scale^2))`` with
        respect to volume.

    Examples
    --------
    >>> flat, curved = TwoPointLaw("flat", 2), TwoPointLaw("hyperbolic", 2)
    >>> flat.pair_cost(np.array([1.0]), np.array([2.0]))
    array([10.])
    >>> bool(curved.pair_cost(np.array([1.0]), np.array([2.0]))[0] > 10.5)
    True
    """

    kind: str
    dimension: int
    noise: str = "wrapped"

    @property
    def largest(self) -> float:
        """The largest scale that can be told from unrelated votes."""
        return WIDEST[self.kind] / float(np.sqrt(self.dimension)) if self.kind in WIDEST else LARGEST

    @cached_property
    def _draws(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lengths of two standard normal vectors, and a quarter of the squared chord between their directions."""
        rng = np.random.default_rng(20220401)
        one, two = rng.normal(size=(2, DRAWS // 2, self.dimension))
        left, right = np.linalg.norm(one, axis=1), np.linalg.norm(two, axis=1)
        cosine = (one * two).sum(axis=1) / (left * right)
        # Every angle comes with its opposite and lengths have the exact mean square: exact in flat space.
        left *= np.sqrt(self.dimension / np.mean(left**2))
        right *= np.sqrt(self.dimension / np.mean(right**2))
        half = np.clip((1.0 - cosine) / 2.0, 0.0, 1.0)
        return np.tile(left, 2), np.tile(right, 2), np.concatenate([half, 1.0 - half])

    def radii(self, scale: FloatArray, lengths: FloatArray | None = None) -> FloatArray:
        """Return ``(k, DRAWS)`` distances from the truth at each of k scales."""
        lengths = self._draws[0] if lengths is None else lengths
        if self.noise == "wrapped" or self.kind == "flat":
            return scale[:, None] * lengths
        return np.stack([self._quantiles(float(one), lengths) for one in scale])

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
        if self.kind == "flat":
            return precision
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
        if self.kind == "flat" or (self.kind == "hyperbolic" and self.noise == "wrapped"):
            return np.log(scale), np.log(self.dimension * scale**2)
        radii = self.radii(scale, self._long_draws)
        if self.kind in WIDEST:
            radii = _folded(radii, self.kind == "rotations")
        cost = np.log((radii**2).mean(axis=1))
        return np.log(scale), np.maximum.accumulate(cost + 1e-9 * np.arange(len(cost)))

    @cached_property
    def _long_draws(self) -> FloatArray:
        """Equally spaced quantiles of the length of a standard normal vector."""
        from scipy.special import gammaincinv

        lengths: FloatArray = np.sqrt(2.0 * gammaincinv(self.dimension / 2.0, (np.arange(8000) + 0.5) / 8000))
        return lengths

    def pair_cost(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the mean squared distance between votes of these two scales, drawn independently."""
        left, right = np.atleast_1d(np.asarray(left, float)), np.atleast_1d(np.asarray(right, float))
        if self.kind == "flat":
            return self.dimension * (left**2 + right**2)
        return self._mean_square(self.radii(left, self._draws[0]), self.radii(right, self._draws[1]))

    def _mean_square(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the mean squared third sides of triangles with these two, and the drawn angles."""
        half = self._draws[2]
        if self.kind == "hyperbolic":
            apart = _third_side_hyperbolic(left, right, half)
        else:
            apart = _third_side_sphere(left, right, half)
            if self.kind == "rotations":
                apart = np.minimum(apart, np.pi - apart)
        cost: FloatArray = (apart**2).mean(axis=1)
        return cost

    def log_pair_cost(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ``log pair_cost`` at logarithms of scales, and its derivatives by both of them."""
        bend = self._bend
        low, high = np.log(SMALLEST), np.log(self.largest)
        x, y = np.clip(left, low, high), np.clip(right, low, high)
        one, two = np.exp(2.0 * x), np.exp(2.0 * y)
        total = one + two
        level = np.log(self.dimension * total)
        by_left, by_right = 2.0 * one / total, 2.0 * two / total
        if bend is None:
            return level, by_left, by_right
        return (
            level + bend(x, y, grid=False),
            by_left + bend(x, y, dx=1, grid=False),
            by_right + bend(x, y, dy=1, grid=False),
        )

    @cached_property
    def _bend(self) -> RectBivariateSpline | None:
        """Logarithm of how much larger squared distances between votes are than in flat space, over log scales."""
        from scipy.interpolate import RectBivariateSpline

        if self.kind == "flat":
            return None
        knots = np.linspace(np.log(SMALLEST), np.log(self.largest), KNOTS)
        scale = np.exp(knots)
        one, two = self.radii(scale, self._draws[0]), self.radii(scale, self._draws[1])
        table = np.array([self._mean_square(np.broadcast_to(row, two.shape), two) for row in one])
        flat = self.dimension * np.add.outer(scale**2, scale**2)
        return RectBivariateSpline(knots, knots, np.log(0.5 * (table + table.T) / flat), kx=3, ky=3)


@lru_cache(maxsize=32)
def two_point_law(kind: str, dimension: int, noise: str = "wrapped") -> TwoPointLaw:
    """Return the law, whose tables are made once."""
    return TwoPointLaw(kind, dimension, noise)


def _folded(radii: FloatArray, opposite: bool) -> FloatArray:
    """Return the distances that geodesics of these lengths lead to on a closed sphere."""
    turned = np.abs((radii + np.pi) % (2.0 * np.pi) - np.pi)
    return np.minimum(turned, np.pi - turned) if opposite else turned


def _log_sinh(value: FloatArray) -> FloatArray:
    """Return ``log(sinh(value))`` for positive values, without overflow."""
    size = np.maximum(value, 1e-300)
    result: FloatArray = np.where(size > 20.0, size - np.log(2.0), np.log(np.sinh(np.minimum(size, 20.0))))
    return result


def _third_side_hyperbolic(left: FloatArray, right: FloatArray, half: FloatArray) -> FloatArray:
    """Return sides of hyperbolic triangles: ``sinh^2(c / 2) = sinh^2((a - b) / 2) + sinh a sinh b sin^2(angle / 2)``.

    In logarithms, so that sides of hundreds of curvature radii do not overflow.
    """
    radial = 2.0 * _log_sinh(np.abs(left - right) / 2.0)
    across = _log_sinh(left) + _log_sinh(right) + np.log(np.maximum(half, 1e-300))
    root = 0.5 * np.logaddexp(radial, across)
    side: FloatArray = 2.0 * np.where(root > 20.0, root + np.log(2.0), np.arcsinh(np.exp(np.minimum(root, 20.0))))
    return side


def _third_side_sphere(left: FloatArray, right: FloatArray, half: FloatArray) -> FloatArray:
    square = np.sin((left - right) / 2.0) ** 2 + np.sin(left) * np.sin(right) * half
    side: FloatArray = 2.0 * np.arcsin(np.sqrt(np.clip(square, 0.0, 1.0)))
    return side
