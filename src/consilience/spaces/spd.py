"""Symmetric positive definite matrices: covariances, diffusion tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.solvers.manifolds.base import Geometry
from consilience.solvers.manifolds.spd import LogEuclideanGeometry, SPDGeometry, matrix_function
from consilience.spaces.geometric import GeometricSpace, checked_choice, checked_size

__all__ = ["SPD"]

#: Matrices may be off symmetric by this share of their largest entry.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class SPD(GeometricSpace):
    """Symmetric positive definite n x n matrices; the cost is the squared geodesic distance.

    Parameters
    ----------
    n
        Number of rows.
    metric
        "affine-invariant": distances do not change when all matrices A become ``G A G^T`` (a change of units or axes).
        "log-euclidean": the Frobenius distance of matrix logarithms; several times faster, and invariant to rotations
        and to a common factor only.

    Examples
    --------
    >>> space = SPD(2)
    >>> space.distance(np.eye(2)[None], np.diag([np.exp(3.0), np.exp(4.0)])[None]).round(6)
    array([5.])
    """

    n: int
    metric: str = field(default="affine-invariant", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checked_size("n", self.n))
        checked_choice("metric", self.metric, ("affine-invariant", "log-euclidean"))

    @cached_property
    def geometry(self) -> Geometry:
        if self.metric == "log-euclidean" or self.n == 1:
            return LogEuclideanGeometry(self.n)
        return SPDGeometry(self.n)

    @property
    def chance(self) -> float:
        return 2.0

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return matrices around the identity, at a mean squared distance of one."""
        start = np.broadcast_to(np.eye(self.n), (n, self.n, self.n))
        return self.geometry.exp(start, self.geometry.random_tangent(start, rng) / np.sqrt(self.geometry.dimension))

    def project(self, matrices: Any, smallest: float = 1e-6) -> FloatArray:
        """Return the nearest symmetric matrices whose eigenvalues are at least `smallest` times the largest."""
        matrices = np.asarray(matrices, dtype=np.float64)

        def lifted(values: FloatArray) -> FloatArray:
            top = np.maximum(np.abs(values).max(axis=-1, keepdims=True), 1e-300)
            high: FloatArray = np.maximum(values, smallest * top)
            return high

        return matrix_function(matrices, lifted)

    def as_points(self, numbers: FloatArray) -> FloatArray:
        turned = np.swapaxes(numbers, 1, 2)
        skew = np.abs(numbers - turned).max(axis=(1, 2), initial=0.0)
        wrong = skew > TOLERANCE * np.abs(numbers).max(axis=(1, 2), initial=0.0)
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            raise self._refusal(
                numbers,
                wrong,
                f"is not symmetric: two entries that should be equal differ by {skew[index]:.3g}",
                "Take (A + A.T) / 2, or space.project(matrices).",
            )
        symmetric = (numbers + turned) / 2.0
        values = np.linalg.eigvalsh(symmetric)
        wrong = ~(values[:, 0] > 1e-14 * np.abs(values[:, -1]))
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            raise self._refusal(
                numbers,
                wrong,
                f"is not positive definite: its smallest eigenvalue is {values[index, 0]:.6g}",
                "Add a small multiple of the identity, or use space.project(matrices).",
            )
        return symmetric
