"""Manifolds given by functions, with adapters for geomstats and pymanopt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from consilience.arrays import Batch, FloatArray
from consilience.exceptions import DistanceError
from consilience.label_types.manifolds.geometry import SIMULATED_REACH, TabulatedGeometry
from consilience.label_types.manifolds.spaces import GeometricSpace, checked_size

#: Tolerance of exp(log(point)), relative to the distance.
TOLERANCE = 1e-4
#: Numbers of random points from which the dimension is found, and with which the functions are checked.
PROBES, CHECKED = 48, 8


@dataclass(frozen=True, eq=False)
class GivenGeometry(TabulatedGeometry):
    """Exponential, logarithm, distance and random points as functions on flat batches ``(k, *point_shape)``."""

    exp_function: Callable[[FloatArray, FloatArray], FloatArray]
    log_function: Callable[[FloatArray, FloatArray], FloatArray]
    distance_function: Callable[[FloatArray, FloatArray], FloatArray]
    random_function: Callable[[int, np.random.Generator], FloatArray]
    inner_function: Callable[[FloatArray, FloatArray, FloatArray], FloatArray] | None = None
    degree: int | None = None
    is_given: ClassVar[bool] = True

    @cached_property
    def _probe(self) -> FloatArray:
        return self.probes(PROBES + 1, np.random.default_rng(0))

    @property
    def point_shape(self) -> tuple[int, ...]:
        return self._probe.shape[1:]

    @property
    def origin(self) -> FloatArray:
        return self._probe[0]

    def probes(self, count: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(self.random_function(count, rng), dtype=np.float64)

    @cached_property
    def dimension(self) -> int:
        """The dimension given, or the rank of the logarithms of random points at one of them."""
        if self.degree is not None:
            return self.degree
        tangents = self.log(self._probe[:1], self._probe[1:]).reshape(PROBES, -1)
        return max(int(np.linalg.matrix_rank(tangents, tol=1e-6 * float(np.abs(tangents).max(initial=1e-300)))), 1)

    @cached_property
    def unit(self) -> float:
        """Root mean squared distance between two random points."""
        return float(np.sqrt(np.mean(self.distance(self._probe[:-1], self._probe[1:]) ** 2)))

    @property
    def _simulated_scales(self) -> FloatArray:
        return SIMULATED_REACH * self.unit / np.sqrt(self.dimension)

    @cached_property
    def costs(self) -> tuple[FloatArray, FloatArray]:
        scales, cost, _ = self.simulated
        return np.log(scales), np.maximum.accumulate(np.log(cost) + 1e-9 * np.arange(len(cost)))

    def distance(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self._call(self.distance_function, "distance", left, right)

    def exp(self, point: FloatArray, tangent: FloatArray) -> FloatArray:
        return self._call(self.exp_function, "exp", point, tangent)

    def log(self, point: FloatArray, other: FloatArray) -> FloatArray:
        return self._call(self.log_function, "log", point, other)

    def inner(self, point: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        if self.inner_function is None:
            return (left * right).sum(axis=tuple(range(-len(self.point_shape), 0)))
        return self._call(self.inner_function, "inner", point, left, right)

    def random_tangent(self, point: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return standard normal tangent vectors as combinations of logarithms of random points."""
        point = np.asarray(point, dtype=np.float64)
        count = 2 * self.dimension + 2
        others = self.probes(len(point) * count, rng).reshape(len(point), count, *point.shape[1:])
        tangents = self.log(point[:, None], others)
        gram = self.inner(point[:, None, None], tangents[:, :, None], tangents[:, None, :])
        values, vectors = np.linalg.eigh((gram + np.swapaxes(gram, 1, 2)) / 2.0)
        kept = np.arange(count) >= count - self.dimension
        root = np.where(kept, 1.0 / np.sqrt(np.maximum(values, 1e-12)), 0.0)
        mixed = np.einsum("nkc,nc,nc->nk", vectors, root, rng.normal(size=values.shape))
        return (self.widen(mixed) * tangents).sum(axis=1)

    def _call(self, function: Callable[..., FloatArray], name: str, *arrays: FloatArray) -> FloatArray:
        """Call a function with flat batches, check the result, and restore the shape of the batches."""
        wide = np.broadcast_arrays(*(np.asarray(array, dtype=np.float64) for array in arrays))
        lead = wide[0].shape
        flat = [array.reshape(-1, *self.point_shape) for array in wide]
        try:
            result = np.asarray(function(*flat), dtype=np.float64)
        except Exception as error:
            raise DistanceError(
                f"The function {name!r} of the manifold raised {type(error).__name__}: {error}. It is called with "
                f"batches of shape {flat[0].shape}."
            ) from error
        numbers = name in ("distance", "inner")
        expected = flat[0].shape[:1] if numbers else flat[0].shape
        if result.shape != expected:
            raise DistanceError(
                f"The function {name!r} of the manifold returned shape {result.shape}; expected {expected}, "
                "one result per point of the batch."
            )
        if not np.isfinite(result).all():
            row = int(np.argwhere(~np.isfinite(result))[0, 0])
            given = ", ".join(str(array[row].tolist()) for array in flat)
            raise DistanceError(f"The function {name!r} of the manifold returned NaN or infinity for {given}.")
        return result.reshape(lead[: len(lead) - len(self.point_shape)] if numbers else lead)


@dataclass(frozen=True, eq=False, init=False)
class Manifold(GeometricSpace):
    """Points of a manifold given by functions; the cost is the squared distance.

    All functions take batches, ``(k, *point_shape)`` per argument, and return one result per row. Models are saved
    without them: pass the space to ``LabelModel.load(path, space=...)``.

    Parameters
    ----------
    exp
        ``exp(points, tangents) -> points``.
    log
        ``log(points, others) -> tangents``; the inverse of `exp`.
    distance
        ``distance(left, right) -> (k,)``.
    random
        ``random(k, rng) -> points``.
    inner
        ``inner(points, left, right) -> (k,)`` inner products of tangent vectors. Left out, it is the sum of the
        products of their numbers, as for a manifold that lies in Euclidean space.
    dimension
        By default, it is derived from the logarithms of random points.
    name
        Shown in messages.

    Examples
    --------
    Angles on a circle; the mean of two on either side of the cut lies at the cut:

    >>> def wrap(angle):
    ...     return (angle + np.pi) % (2 * np.pi) - np.pi
    >>> circle = Manifold(
    ...     exp=lambda points, tangents: wrap(points + tangents),
    ...     log=lambda points, others: wrap(others - points),
    ...     distance=lambda left, right: np.abs(wrap(left - right))[:, 0],
    ...     random=lambda k, rng: rng.uniform(-np.pi, np.pi, (k, 1)),
    ... )
    >>> votes, weights = np.array([[[3.1], [-3.1], [0.0]]]), np.array([[1.0, 1.0, 0.0]])
    >>> bool(abs(wrap(circle.weighted_mean(votes, weights)[0, 0] - np.pi)) < 1e-9)
    True
    """

    functions: GivenGeometry
    name: str

    def __init__(
        self,
        exp: Callable[[FloatArray, FloatArray], FloatArray],
        log: Callable[[FloatArray, FloatArray], FloatArray],
        distance: Callable[[FloatArray, FloatArray], FloatArray],
        random: Callable[[int, np.random.Generator], FloatArray],
        *,
        inner: Callable[[FloatArray, FloatArray, FloatArray], FloatArray] | None = None,
        dimension: int | None = None,
        name: str = "manifold",
    ) -> None:
        for role, function in {"exp": exp, "log": log, "distance": distance, "random": random}.items():
            if not callable(function):
                raise DistanceError(f"Manifold needs a function for {role}, got {type(function).__name__}.")
        if dimension is not None:
            dimension = checked_size("dimension", dimension)
        geometry = GivenGeometry(exp, log, distance, random, inner, dimension)
        object.__setattr__(self, "functions", geometry)
        object.__setattr__(self, "name", name)
        _check(geometry, name)

    def __repr__(self) -> str:
        return f"Manifold({self.name})"

    @classmethod
    def from_geomstats(cls, space: Any, *, name: str | None = None) -> Manifold:
        """Return the manifold of a geomstats space with a metric, such as ``SpecialOrthogonal(3)``.

        Uses ``space.dim``, ``space.random_point`` and the ``exp``, ``log``, ``dist`` and ``inner_product`` of
        ``space.metric``; geomstats itself is not imported.
        """
        _check_parts(space, "geomstats space", "metric", "random_point", "dim")
        metric, draw = space.metric, space.random_point
        return cls(
            exp=lambda points, tangents: metric.exp(tangents, points),
            log=lambda points, others: metric.log(others, points),
            distance=lambda left, right: np.atleast_1d(metric.dist(left, right)),
            random=_seeded(lambda count: np.asarray(draw(count)).reshape(count, *np.shape(draw(1)))),
            inner=lambda points, left, right: np.atleast_1d(metric.inner_product(left, right, points)),
            dimension=int(space.dim),
            name=name or type(space).__name__,
        )

    @classmethod
    def from_pymanopt(cls, manifold: Any, *, name: str | None = None) -> Manifold:
        """Return a pymanopt manifold, such as ``Grassmann(5, 2)``.

        Uses its ``exp``, ``log``, ``dist``, ``inner_product``, ``random_point`` and ``dim``, one point at a time;
        pymanopt itself is not imported.
        """
        _check_parts(manifold, "pymanopt manifold", "exp", "log", "dist", "inner_product", "random_point", "dim")

        def each(function: Callable[..., Any]) -> Callable[..., FloatArray]:
            return lambda *arrays: np.array([function(*rows) for rows in zip(*arrays, strict=True)], dtype=np.float64)

        return cls(
            exp=each(manifold.exp),
            log=each(manifold.log),
            distance=each(manifold.dist),
            random=_seeded(lambda count: np.array([manifold.random_point() for _ in range(count)])),
            inner=each(manifold.inner_product),
            dimension=int(manifold.dim),
            name=name or type(manifold).__name__,
        )

    @property
    def geometry(self) -> GivenGeometry:
        return self.functions

    @property
    def chance(self) -> float:
        return self.geometry.unit**2 / 2.0

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        return self.geometry.probes(n, rng)

    def spec(self) -> dict[str, Any]:
        return {}


def _check_parts(owner: Any, kind: str, *names: str) -> None:
    for name in names:
        if not hasattr(owner, name):
            raise DistanceError(
                f"{type(owner).__name__} has no {name!r}, so it is not a {kind}. Pass functions to Manifold(...)."
            )


def _seeded(draw: Callable[[int], FloatArray]) -> Callable[[int, np.random.Generator], FloatArray]:
    """Make a function that uses numpy's global random state use a generator, and restore the global state."""

    def drawn(count: int, rng: np.random.Generator) -> FloatArray:
        before = np.random.get_state()  # noqa: NPY002  both packages use it
        np.random.seed(int(rng.integers(2**32)))  # noqa: NPY002
        try:
            return draw(count)
        finally:
            np.random.set_state(before)  # noqa: NPY002

    return drawn


def _check(geometry: GivenGeometry, name: str) -> None:
    """Refuse inconsistent functions: exp must be the inverse of log, and distance the length of log."""
    points = geometry.probes(CHECKED + 1, np.random.default_rng(1))
    if len(points) != CHECKED + 1 or points.ndim < 2:
        raise DistanceError(
            f"random({CHECKED + 1}, rng) of {name} returned shape {points.shape}; expected {CHECKED + 1} points, one "
            "per row. Give even numbers a last axis of length one."
        )
    # Half-way to another random point, where geodesics are still shortest paths.
    start, tangents = points[:-1], 0.5 * geometry.log(points[:-1], points[1:])
    others = geometry.exp(start, tangents)
    apart = geometry.distance(start, others)
    back = geometry.distance(geometry.exp(start, geometry.log(start, others)), others)
    if not (back <= TOLERANCE * (1.0 + apart)).all():
        raise DistanceError(
            f"exp and log of {name} do not fit together: exp(p, log(p, q)) is {float(back.max()):.3g} away from q. "
            "Both take the base point first."
        )
    length = np.sqrt(np.maximum(geometry.inner(start, tangents, tangents), 0.0))
    if not np.allclose(length, apart, rtol=1e-3, atol=1e-6):
        row = int(np.abs(length - apart).argmax())
        raise DistanceError(
            f"distance and log of {name} do not fit together: two points are {apart[row]:.6g} apart, and the tangent "
            f"vector between them has length {length[row]:.6g}. Pass inner= with the inner product of tangent vectors."
        )
