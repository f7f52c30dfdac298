"""Directions: unit vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import InvalidLabelError
from consilience.solvers.manifolds.sphere import SphereGeometry
from consilience.spaces.geometric import GeometricSpace, checked_choice, checked_size

__all__ = ["Sphere"]

#: A vote whose angle to the truth has this root mean square (in radians) tells nothing, in simulations.
UNRELATED = 1.6


@dataclass(frozen=True)
class Sphere(GeometricSpace):
    """Unit vectors of d + 1 coordinates; the cost is the squared angle.

    Parameters
    ----------
    d
        Dimension: 1 for the circle, 2 for directions in space.
    noise
        "wrapped" (normal noise in the tangent space at the truth; labels are the points of largest likelihood) or
        "riemannian" (density ``exp(-weight * cost)`` with respect to area; labels are weighted Frechet means).

    Examples
    --------
    >>> space = Sphere(2)
    >>> pole, equator = np.array([[0.0, 0.0, 1.0]]), np.array([[0.0, 1.0, 0.0]])
    >>> (space.distance(pole, equator) / np.pi).round(6)
    array([0.5])
    """

    d: int
    noise: str = field(default="wrapped", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", checked_size("d", self.d))
        checked_choice("noise", self.noise, ("wrapped", "riemannian"))

    @cached_property
    def geometry(self) -> SphereGeometry:
        return SphereGeometry(self.d, self.noise)

    @property
    def wrapped(self) -> bool:
        return self.noise == "wrapped"

    @property
    def chance(self) -> float:
        return float(self.geometry.law.vote_cost(np.array([UNRELATED / np.sqrt(self.d)]))[0])

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return uniform directions."""
        return self.geometry.project(rng.normal(size=(n, self.d + 1)))

    def project(self, points: Any) -> FloatArray:
        """Return vectors scaled to length one."""
        points = np.asarray(points, dtype=np.float64)
        if not (np.linalg.norm(points, axis=-1) > 0).all():
            raise InvalidLabelError("A vector of length zero has no direction. Leave it out.")
        return self.geometry.project(points)

    def as_points(self, numbers: FloatArray) -> FloatArray:
        self._check_unit_length(numbers, "has length {length:.6g}, off the unit sphere by {gap:.3g}", "points")
        return self.geometry.project(numbers)
