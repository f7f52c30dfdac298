"""Rotations of space: orientations, poses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import InvalidLabelError
from consilience.solvers.manifolds.sphere import RotationGeometry
from consilience.spaces.geometric import GeometricSpace, checked_choice

__all__ = ["SO3"]

#: A vote whose angle to the truth has this root mean square (in radians) tells nothing, in simulations.
UNRELATED = 2.0


@dataclass(frozen=True)
class SO3(GeometricSpace):
    """Rotations as unit quaternions ``(w, x, y, z)``; the cost is the squared angle of the rotation between two.

    A quaternion and its negative are the same rotation, and may be mixed; labels come back with ``w >= 0``.

    Parameters
    ----------
    noise
        "wrapped" (normal rotation vectors; labels are the rotations of largest likelihood) or "riemannian" (density
        ``exp(-weight * cost)`` with respect to volume; labels are weighted Frechet means).

    Examples
    --------
    >>> space = SO3()
    >>> quarter = space.from_matrix([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> quarter.round(4)
    array([0.7071, 0.    , 0.    , 0.7071])
    >>> (space.distance(np.array([[1.0, 0, 0, 0]]), -quarter[None]) / np.pi).round(6)
    array([0.5])
    """

    noise: str = field(default="wrapped", kw_only=True)

    def __post_init__(self) -> None:
        checked_choice("noise", self.noise, ("wrapped", "riemannian"))

    @cached_property
    def geometry(self) -> RotationGeometry:
        return RotationGeometry(self.noise)

    @property
    def wrapped(self) -> bool:
        return self.noise == "wrapped"

    @property
    def chance(self) -> float:
        return 4.0 * float(self.geometry.law.vote_cost(np.array([UNRELATED / 2.0 / np.sqrt(3.0)]))[0])

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return uniform rotations."""
        return self.geometry.project(rng.normal(size=(n, 4)))

    def project(self, quaternions: Any) -> FloatArray:
        """Return quaternions scaled to length one, with the sign that makes the first number positive."""
        quaternions = np.asarray(quaternions, dtype=np.float64)
        if not (np.linalg.norm(quaternions, axis=-1) > 0).all():
            raise InvalidLabelError("A quaternion of length zero is no rotation. Leave it out.")
        return self.geometry.project(quaternions)

    def from_matrix(self, matrices: Any) -> FloatArray:
        """Return the quaternions of rotation matrices, ``(.., 3, 3)``."""
        matrices = np.asarray(matrices, dtype=np.float64)
        gap = np.abs(matrices @ np.swapaxes(matrices, -1, -2) - np.eye(3)).max(axis=(-1, -2))
        if not ((gap < 1e-6) & (np.linalg.det(matrices) > 0)).all():
            raise InvalidLabelError(
                f"A matrix is no rotation: it is off orthogonal by {float(np.max(gap)):.3g}, or a reflection. "
                "Correct it."
            )
        xx, yy, zz = matrices[..., 0, 0], matrices[..., 1, 1], matrices[..., 2, 2]
        squares = np.stack([1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz], axis=-1)
        size = np.sqrt(np.maximum(squares, 0.0)) / 2.0
        # The products with the largest component tell the signs of the others.
        off = {
            (0, 1): matrices[..., 2, 1] - matrices[..., 1, 2],
            (0, 2): matrices[..., 0, 2] - matrices[..., 2, 0],
            (0, 3): matrices[..., 1, 0] - matrices[..., 0, 1],
            (1, 2): matrices[..., 1, 0] + matrices[..., 0, 1],
            (1, 3): matrices[..., 0, 2] + matrices[..., 2, 0],
            (2, 3): matrices[..., 2, 1] + matrices[..., 1, 2],
        }
        products = np.zeros((*size.shape, 4))
        for (one, two), value in off.items():
            products[..., one, two] = products[..., two, one] = value / 4.0
        products[..., range(4), range(4)] = size**2
        largest = size.argmax(axis=-1)[..., None, None]
        row = np.take_along_axis(products, np.broadcast_to(largest, (*size.shape[:-1], 1, 4)), axis=-2)[..., 0, :]
        return self.geometry.project(row)

    def to_matrix(self, quaternions: Any) -> FloatArray:
        """Return the rotation matrices of quaternions, ``(.., 4)``."""
        w, x, y, z = np.moveaxis(self.project(quaternions), -1, 0)
        rows = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
        return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)

    def as_points(self, numbers: FloatArray) -> FloatArray:
        self._check_unit_length(numbers, "is no unit quaternion: its length is {length:.6g}", "quaternions")
        return self.geometry.project(numbers)

    def as_labels(self, batch: Batch, like: Any = None) -> Batch:
        return self.geometry.project(batch) if len(batch) else batch
