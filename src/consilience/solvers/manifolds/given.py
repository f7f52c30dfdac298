"""A geometry made of functions that somebody else wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consilience.arrays import FloatArray
from consilience.exceptions import DistanceError
from consilience.solvers.manifolds.base import Geometry, Means, descend

__all__ = ["GivenGeometry"]

#: Random points whose logarithms show the dimension.
PROBES = 48


@dataclass(frozen=True, eq=False)
class GivenGeometry(Geometry):
    """Exponential, logarithm, distance and random points as functions on flat batches ``(k, *point_shape)``."""

    exp_function: Callable[[FloatArray, FloatArray], FloatArray]
    log_function: Callable[[FloatArray, FloatArray], FloatArray]
    distance_function: Callable[[FloatArray, FloatArray], FloatArray]
    random_function: Callable[[int, np.random.Generator], FloatArray]
    inner_function: Callable[[FloatArray, FloatArray, FloatArray], FloatArray] | None = None
    transport_function: Callable[[FloatArray, FloatArray, FloatArray], FloatArray] | None = None
    degree: int | None = None

    @cached_property
    def _probe(self) -> FloatArray:
        return np.asarray(self.random_function(PROBES + 1, np.random.default_rng(0)), dtype=np.float64)

    @property
    def point_shape(self) -> tuple[int, ...]:
        return self._probe.shape[1:]

    @property
    def origin(self) -> FloatArray:
        first: FloatArray = self._probe[0]
        return first

    @cached_property
    def dimension(self) -> int:
        """The dimension given, or the rank of the logarithms of random points at one of them."""
        if self.degree is not None:
            return self.degree
        base = np.broadcast_to(self._probe[:1], self._probe[1:].shape)
        tangents = self._flat(self.log_function, "log", base, self._probe[1:]).reshape(PROBES, -1)
        return max(int(np.linalg.matrix_rank(tangents, tol=1e-6 * float(np.abs(tangents).max(initial=1e-300)))), 1)

    @cached_property
    def spread(self) -> float:
        """Mean squared distance between two random points."""
        left, right = self._probe[:-1], self._probe[1:]
        return float(np.mean(self.distance(left, right) ** 2))

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self._numbers(self.distance_function, "distance", left, right)

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        return self._points(self.exp_function, "exp", point, tangent)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        return self._points(self.log_function, "log", point, other)

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        if self.inner_function is None:
            product: FloatArray = (left * right).sum(axis=self.axes)
            return product
        return self._numbers(self.inner_function, "inner", point, left, right)

    def transport(self, start: FloatArray, end: FloatArray, tangent: FloatArray) -> FloatArray:
        if self.transport_function is None:
            raise DistanceError("This manifold was given no transport function. Pass transport= to Manifold.")
        return self._points(self.transport_function, "transport", start, end, tangent)

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return standard normal tangent vectors, as combinations of the logarithms of random points."""
        point = np.asarray(point, dtype=np.float64)
        count = 2 * self.dimension + 2
        others = np.asarray(self.random_function(len(point) * count, rng)).reshape(len(point), count, *point.shape[1:])
        tangents = self.log(point[:, None], others)
        gram = self.inner(point[:, None, None], tangents[:, :, None], tangents[:, None, :])
        values, vectors = np.linalg.eigh((gram + np.swapaxes(gram, 1, 2)) / 2.0)
        kept = np.arange(count) >= count - self.dimension
        root = np.where(kept, 1.0 / np.sqrt(np.maximum(values, 1e-12)), 0.0)
        mixed = np.einsum("nkc,nc,nc->nk", vectors, root, rng.normal(size=values.shape))
        drawn: FloatArray = (mixed.reshape(*mixed.shape, *[1] * len(self.point_shape)) * tangents).sum(axis=1)
        return drawn

    def means(self, votes: FloatArray, weights: FloatArray, volume: FloatArray | None = None) -> Means:
        return descend(self, votes, weights)

    def _points(self, function: Callable[..., FloatArray], name: str, *arrays: FloatArray) -> FloatArray:
        lead = np.broadcast_shapes(*(np.shape(array) for array in arrays))
        return self._flat(function, name, *arrays).reshape(lead)

    def _numbers(self, function: Callable[..., FloatArray], name: str, *arrays: FloatArray) -> FloatArray:
        shape = np.broadcast_shapes(*(np.shape(array) for array in arrays))
        return self._flat(function, name, *arrays).reshape(shape[: len(shape) - len(self.point_shape)])

    def _flat(self, function: Callable[..., FloatArray], name: str, *arrays: FloatArray) -> FloatArray:
        """Call a function with flat batches and check what comes back."""
        wide = np.broadcast_arrays(*(np.asarray(array, dtype=np.float64) for array in arrays))
        flat = [array.reshape(-1, *self.point_shape) for array in wide]
        try:
            result = np.asarray(function(*flat), dtype=np.float64)
        except Exception as error:
            raise DistanceError(
                f"The function {name!r} of the manifold raised {type(error).__name__}: {error}. It is called with "
                f"batches of shape {flat[0].shape}."
            ) from error
        expected = flat[0].shape[:1] if name in ("distance", "inner") else flat[0].shape
        if result.shape != expected:
            raise DistanceError(
                f"The function {name!r} of the manifold returned shape {result.shape}; expected {expected}, "
                "one result per point of the batch."
            )
        if not np.isfinite(result).all():
            row = int(np.flatnonzero(~np.isfinite(result.reshape(len(result), -1)).all(axis=1))[0])
            given = ", ".join(str(array[row].tolist()) for array in flat)
            raise DistanceError(f"The function {name!r} of the manifold returned NaN or infinity for {given}.")
        return result
