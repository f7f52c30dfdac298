"""Points of hyperbolic space: embeddings of trees and hierarchies."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import InvalidLabelError
from consilience.solvers.manifolds.hyperbolic import HyperbolicGeometry
from consilience.spaces.geometric import GeometricSpace, checked_choice, checked_size

__all__ = ["Hyperbolic"]

#: Time-like coordinates may be off by this share of their size, as after rounding to single precision.
TOLERANCE = 1e-5
#: Largest coordinate, in curvature radii; squares of larger ones overflow.
FARTHEST = 1e130


@dataclass(frozen=True)
class Hyperbolic(GeometricSpace):
    """Points of d-dimensional hyperbolic space; the cost is the squared geodesic distance.

    A label is d + 1 coordinates ``(t, x_1, .. x_d)`` on the hyperboloid ``x_1^2 + .. + x_d^2 - t^2 = 1 / curvature``
    with ``t > 0``; or d coordinates in the Poincare ball of radius ``1 / sqrt(-curvature)``.

    Parameters
    ----------
    d
        Dimension.
    curvature
        Negative. Distances of more than ``1 / sqrt(-curvature)`` are long.
    noise
        How sources err: "wrapped" (normal noise in the tangent space at the truth; labels are the points of largest
        likelihood) or "riemannian" (density ``exp(-weight * cost)`` with respect to volume; labels are weighted Frechet
        means).
    coordinates
        "hyperboloid" or "ball": how labels are written.

    Examples
    --------
    >>> space = Hyperbolic(2)
    >>> points = space.from_poincare([[0.0, 0.0], [0.5, 0.0]])
    >>> points.round(4)
    array([[1.    , 0.    , 0.    ],
           [1.6667, 1.3333, 0.    ]])
    >>> bool(np.isclose(space.distance(points[:1], points[1:])[0], np.log(3)))  # log((1 + .5) / (1 - .5))
    True
    """

    d: int
    curvature: float = -1.0
    noise: str = field(default="wrapped", kw_only=True)
    coordinates: str = field(default="hyperboloid", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", checked_size("d", self.d))
        try:
            curvature = float(self.curvature)
        except (TypeError, ValueError):
            raise InvalidLabelError(f"curvature={self.curvature!r} is not a number. Give one such as -1.0.") from None
        if not (np.isfinite(curvature) and curvature < 0):
            raise InvalidLabelError(
                f"curvature={curvature:g} is not negative. Hyperbolic space has a negative one, such as -1.0; "
                "use Sphere for points on a sphere."
            )
        object.__setattr__(self, "curvature", curvature)
        checked_choice("noise", self.noise, ("wrapped", "riemannian"))
        checked_choice("coordinates", self.coordinates, ("hyperboloid", "ball"))

    @cached_property
    def geometry(self) -> HyperbolicGeometry:
        return HyperbolicGeometry(self.d, self.radius, self.noise)

    @property
    def radius(self) -> float:
        """The curvature radius, ``1 / sqrt(-curvature)``."""
        return 1.0 / float(np.sqrt(-self.curvature))

    @property
    def wrapped(self) -> bool:
        return self.noise == "wrapped"

    @property
    def chance(self) -> float:
        return 2.0 * self.radius**2

    @property
    def label_shape(self) -> tuple[int, ...]:
        return (self.d,) if self.coordinates == "ball" else (self.d + 1,)

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return points around the origin whose mean squared distance to it is the squared curvature radius."""
        flat = np.zeros((n, self.d + 1))
        flat[:, 1:] = rng.normal(scale=self.radius / np.sqrt(self.d), size=(n, self.d))
        return self.geometry.exp(np.broadcast_to(self.geometry.origin, flat.shape), flat)

    def project(self, points: Any) -> FloatArray:
        """Return points on the hyperboloid with these space-like coordinates (all but the first)."""
        return self.geometry.project(np.asarray(points, dtype=np.float64))

    def from_poincare(self, points: Any) -> FloatArray:
        """Return the points of the hyperboloid that belong to points of the Poincare ball, ``(.., d)``."""
        ball = np.asarray(points, dtype=np.float64) / self.radius
        square = (ball**2).sum(axis=-1, keepdims=True)
        outside = ~(square < 1.0)
        if outside.any():
            index = int(np.flatnonzero(outside.ravel())[0])
            length = self.radius * float(np.sqrt(square.ravel()[index]))
            raise InvalidLabelError(
                f"point {index} of the Poincare ball has length {length:.6g}, and the ball the radius "
                f"{self.radius:.6g}. Move it inside.",
                index,
            )
        time = (1.0 + square) / (1.0 - square)
        return self.radius * np.concatenate([time, 2.0 * ball / (1.0 - square)], axis=-1)

    def to_poincare(self, points: Any) -> FloatArray:
        """Return the points of the Poincare ball that belong to points of the hyperboloid, ``(.., d + 1)``."""
        points = np.asarray(points, dtype=np.float64)
        ball: FloatArray = self.radius * points[..., 1:] / (self.radius + points[..., :1])
        return ball

    def as_points(self, numbers: FloatArray) -> FloatArray:
        if self.coordinates == "ball":
            return self.from_poincare(numbers)
        far = ~(np.abs(numbers).max(axis=1) < FARTHEST * self.radius)
        if far.any():
            reason = f"is more than {np.log(2 * FARTHEST):.0f} curvature radii from the origin, where numbers overflow"
            raise self._refusal(numbers, far, reason, "Use a curvature nearer to zero, or move the points.")
        projected = self.project(numbers)
        gap = numbers[:, 0] - projected[:, 0]
        wrong = ~(np.abs(gap) <= TOLERANCE * projected[:, 0])
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            there = float((numbers[index, 1:] ** 2).sum() - numbers[index, 0] ** 2)
            raise self._refusal(
                numbers,
                wrong,
                f"is not on the hyperboloid: <x, x> = {there:.6g} instead of {1.0 / self.curvature:.6g}; its first "
                f"coordinate is {numbers[index, 0]:.6g} and should be {projected[index, 0]:.6g}",
                "Points drift by rounding: space.project(points) puts them back. "
                "For points of the Poincare ball use coordinates='ball'.",
            )
        return projected

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        return self.to_poincare(batch) if self.coordinates == "ball" else batch
