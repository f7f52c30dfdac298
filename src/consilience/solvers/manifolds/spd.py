"""Symmetric positive definite matrices, under the affine-invariant or the log-Euclidean metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consilience.arrays import FloatArray
from consilience.solvers.manifolds.base import Geometry, Means, descend
from consilience.solvers.manifolds.two_point import TwoPointLaw, two_point_law

__all__ = ["LogEuclideanGeometry", "SPDGeometry", "matrix_function"]


def matrix_function(matrices: FloatArray, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return a function of symmetric matrices, applied to their eigenvalues."""
    values, vectors = np.linalg.eigh((matrices + np.swapaxes(matrices, -1, -2)) / 2.0)
    result: FloatArray = (vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return result


def _symmetric_noise(shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Return symmetric matrices that are standard normal in the Frobenius norm."""
    noise = np.triu(rng.normal(size=shape))
    off = np.triu(noise, 1) / np.sqrt(2.0)
    diagonal = noise - np.triu(noise, 1)
    symmetric: FloatArray = diagonal + off + np.swapaxes(off, -1, -2)
    return symmetric


@dataclass(frozen=True)
class _Matrices(Geometry):
    """What the two geometries of positive definite matrices have in common."""

    size: int

    @property
    def dimension(self) -> int:
        return self.size * (self.size + 1) // 2

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.size, self.size)

    @property
    def origin(self) -> FloatArray:
        return np.eye(self.size)


@dataclass(frozen=True)
class SPDGeometry(_Matrices):
    """Affine-invariant: ``distance(A, B) = |log(A^-1/2 B A^-1/2)|``, unchanged if both become ``G A G^T``.

    Examples
    --------
    >>> SPDGeometry(2).distance(np.eye(2), np.diag([np.e**3, np.e**4])).round(12)
    np.float64(5.0)
    """

    @property
    def curvature(self) -> float:
        return -0.5 if self.size > 1 else 0.0

    def _roots(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, vectors = np.linalg.eigh((point + np.swapaxes(point, -1, -2)) / 2.0)
        root = np.sqrt(np.maximum(values, 1e-300))[..., None, :]
        turned = np.swapaxes(vectors, -1, -2)
        return (vectors * root) @ turned, (vectors / root) @ turned

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        _, inverse = self._roots(np.asarray(left, dtype=np.float64))
        between = inverse @ right @ inverse
        values = np.linalg.eigvalsh((between + np.swapaxes(between, -1, -2)) / 2.0)
        length: FloatArray = np.linalg.norm(np.log(np.maximum(values, 1e-300)), axis=-1)
        return length

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        _, inverse = self._roots(point)
        product: FloatArray = ((inverse @ left @ inverse) * (inverse @ right @ inverse)).sum(axis=(-1, -2))
        return product

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        root, inverse = self._roots(point)
        moved = root @ matrix_function(inverse @ tangent @ inverse, np.exp) @ root
        return (moved + np.swapaxes(moved, -1, -2)) / 2.0

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        root, inverse = self._roots(point)
        tangent: FloatArray = root @ matrix_function(inverse @ other @ inverse, _log) @ root
        return tangent

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        root, inverse = self._roots(start)
        step = root @ matrix_function(inverse @ end @ inverse, np.sqrt) @ inverse
        moved: FloatArray = step @ tangent @ np.swapaxes(step, -1, -2)
        return moved

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        root, _ = self._roots(point)
        tangent: FloatArray = root @ _symmetric_noise(np.shape(point), rng) @ root
        return tangent

    def curvature_bound(self, distance: FloatArray) -> FloatArray:
        length = np.maximum(distance / np.sqrt(2.0), 1e-6)
        bound: FloatArray = length / np.tanh(length)
        return bound

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        return descend(self, votes, weights)


@dataclass(frozen=True)
class LogEuclideanGeometry(_Matrices):
    """Log-Euclidean: ``distance(A, B) = |log A - log B|``; flat, and the mean has a closed form.

    Tangent vectors are differences of logarithms, at whatever point.
    """

    @cached_property
    def law(self) -> TwoPointLaw:  # type: ignore[override]
        return two_point_law("flat", self.dimension)

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        apart = matrix_function(np.asarray(left), _log) - matrix_function(np.asarray(right), _log)
        length: FloatArray = np.linalg.norm(apart, axis=(-1, -2))
        return length

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        product: FloatArray = (left * right).sum(axis=(-1, -2))
        return product

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        return matrix_function(matrix_function(point, _log) + tangent, np.exp)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        tangent: FloatArray = matrix_function(np.asarray(other), _log) - matrix_function(np.asarray(point), _log)
        return tangent

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        return np.array(tangent, dtype=np.float64)

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        return _symmetric_noise(np.shape(point), rng)

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        n, m = weights.shape
        total = weights.sum(axis=1)
        share = np.maximum(weights, 0.0) / np.where(total > 0, total, 1.0)[:, None]
        there = share > 0
        logs = np.zeros((n, m, self.size, self.size))
        logs[there] = matrix_function(votes[there], _log)
        points = matrix_function((share[..., None, None] * logs).sum(axis=1), np.exp)
        return Means(points, np.ones(n, dtype=bool), np.ones(n, dtype=bool))


def _log(values: FloatArray) -> FloatArray:
    return np.log(np.maximum(values, 1e-300))
