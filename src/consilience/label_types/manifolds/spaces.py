"""Points of manifolds: hyperbolic space, directions, rotations and covariance matrices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, as_floats, as_object_array
from consilience.exceptions import InvalidLabelError
from consilience.label_types.base import FARTHEST as LARGEST
from consilience.label_types.base import LabelSpace
from consilience.label_types.codes import plain_value, read_each
from consilience.label_types.manifolds.curved import HyperbolicGeometry, RotationGeometry, SphereGeometry
from consilience.label_types.manifolds.geometry import Geometry, LogEuclideanGeometry, SPDGeometry, matrix_function
from consilience.label_types.manifolds.law import ManifoldLaw

#: Relative tolerances for points that are off the manifold, as after rounding to single precision: for lengths of unit
#: vectors, time-like coordinates, and symmetric entries.
UNIT_TOLERANCE, TIME_TOLERANCE, SKEW_TOLERANCE = 1e-4, 1e-5, 1e-6
#: Largest coordinate of hyperbolic space, in curvature radii: 30 radii from the origin, where points are accurate to a
#: thousandth of a radius. Beyond 36 radii rounding moves them by more than a radius.
FARTHEST = 5e12
STEP = "Correct it, or leave the cell empty (None) where the source abstains."


class GeometricSpace(LabelSpace):
    """Points of a manifold; the cost is the squared geodesic distance."""

    power: ClassVar[float] = 2.0
    continuous: ClassVar[bool] = True

    @property
    @abstractmethod
    def geometry(self) -> Geometry:
        """The geometry of the labels."""

    @property
    @abstractmethod
    def chance(self) -> float:
        """Mean squared distance of a vote at chance, for simulations."""

    @property
    def label_shape(self) -> tuple[int, ...]:
        """Shape of a label as users write it."""
        return self.geometry.point_shape

    def as_points(self, numbers: FloatArray) -> FloatArray:
        """Return points from finite labels of the right shape, or raise an error about the first wrong one."""
        return numbers

    @cached_property
    def law(self) -> ManifoldLaw:
        return ManifoldLaw(self.geometry, self.chance)

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        return self.geometry.distance(np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64))

    def embed(self, batch: Batch) -> FloatArray:
        """Return tangent coordinates at the origin; for spheres and rotations those of the surrounding space."""
        points = np.asarray(batch, dtype=np.float64)
        return self.geometry.log(np.broadcast_to(self.geometry.origin, points.shape), points).reshape(len(points), -1)

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the weighted Frechet means: the points of least weighted squared distance to the votes."""
        return self.geometry.means(np.asarray(votes, dtype=np.float64), np.asarray(weights, dtype=np.float64)).points

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        """Return one vote per center, with the scale of the weight."""
        scale = float(self.geometry.scale_of_cost(self.law.expected_cost(np.array([weight])))[0])
        return self.geometry.noisy(np.asarray(centers, dtype=np.float64), scale, rng)

    def as_batch(self, labels: Any) -> Batch:
        array = labels if isinstance(labels, np.ndarray) else as_object_array(labels)
        if array.dtype.kind not in "biuf":
            array = np.array(read_each(array, self._point)).reshape(len(array), *self.label_shape)
        elif array.shape[1:] != self.label_shape:
            raise InvalidLabelError(
                f"Labels of shape {array.shape[1:]} are not points of {self!r}, which have shape {self.label_shape}. "
                "Pass an array with one such point per item and source.",
                0 if array.ndim == 1 and len(array) else None,
            )
        numbers = array.astype(np.float64)
        finite = np.asarray(np.isfinite(numbers).all(axis=tuple(range(1, numbers.ndim))))
        self._refuse(~finite, numbers, lambda index: "has a number that is not finite")
        return self.as_points(numbers)

    def _point(self, value: Any) -> FloatArray:
        """Return one label as an array, or raise an error."""
        point = as_floats(value)
        if point is None or point.shape != self.label_shape:
            fault = f"is not an array of numbers of shape {self.label_shape}"
            if point is not None:
                fault = f"has shape {point.shape}, and points of {self!r} have {self.label_shape}"
            raise InvalidLabelError(f"label {plain_value(value)!r} {fault}. {STEP}")
        return point

    def _refuse(self, wrong: BoolArray, numbers: FloatArray, reason: Callable[[int], str], step: str = STEP) -> None:
        """Raise an error about the first label that is wrong, if one is."""
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            shown = np.array2string(numbers[index], precision=6, threshold=12, separator=", ").replace("\n", "")
            raise InvalidLabelError(f"label {shown} {reason(index)}. {step}", index)


def checked_size(name: str, value: Any) -> int:
    """Return a positive integer, or raise an error."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidLabelError(f"{name}={plain_value(value)!r} is not a positive whole number.")
    return int(value)


def _check_choice(name: str, value: Any, choices: tuple[str, str] = ("wrapped", "riemannian")) -> None:
    if value not in choices:
        raise InvalidLabelError(f"{name}={value!r} is unknown. Use {' or '.join(map(repr, choices))}.")


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
        A negative number. Curvature matters at distances above ``1 / sqrt(-curvature)``.
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
                f"curvature={curvature:g} is not negative. Give a negative number, such as -1.0, or use Sphere for "
                "points on a sphere."
            )
        object.__setattr__(self, "curvature", curvature)
        _check_choice("noise", self.noise)
        _check_choice("coordinates", self.coordinates, ("hyperboloid", "ball"))

    @cached_property
    def geometry(self) -> HyperbolicGeometry:
        return HyperbolicGeometry(self.d, self.radius, self.noise)

    @property
    def radius(self) -> float:
        """The curvature radius, ``1 / sqrt(-curvature)``."""
        return 1.0 / float(np.sqrt(-self.curvature))

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
        return self.geometry.project(points)

    def from_poincare(self, points: Any) -> FloatArray:
        """Convert points of the Poincare ball ``(.., d)`` to the hyperboloid."""
        ball = np.asarray(points, dtype=np.float64) / self.radius
        square = (ball**2).sum(axis=-1, keepdims=True)
        outside = np.flatnonzero(~(square < 1.0))
        if len(outside):
            length = self.radius * float(np.sqrt(square.ravel()[outside[0]]))
            raise InvalidLabelError(
                f"point {outside[0]} of the Poincare ball has length {length:.6g}, and the ball has the radius "
                f"{self.radius:.6g}. Move the point inside.",
                int(outside[0]),
            )
        return self.radius * np.concatenate([1.0 + square, 2.0 * ball], axis=-1) / (1.0 - square)

    def to_poincare(self, points: Any) -> FloatArray:
        """Convert points of the hyperboloid ``(.., d + 1)`` to the Poincare ball."""
        points = np.asarray(points, dtype=np.float64)
        return self.radius * points[..., 1:] / (self.radius + points[..., :1])

    def as_points(self, numbers: FloatArray) -> FloatArray:
        ball = self.coordinates == "ball"
        points = self.from_poincare(numbers) if ball else numbers
        far = f"is more than {np.log(2 * FARTHEST):.0f} curvature radii from the origin, where floats are too coarse"
        too_far = ~(np.abs(points).max(axis=1) < FARTHEST * self.radius)
        self._refuse(too_far, numbers, lambda _: far, "Use a curvature nearer to zero, or move the points.")
        if ball:
            return points
        time, projected = numbers[:, 0], self.project(numbers)

        def reason(index: int) -> str:
            there = float((numbers[index, 1:] ** 2).sum() - time[index] ** 2)
            return (
                f"is not on the hyperboloid: <x, x> = {there:.6g} instead of {1.0 / self.curvature:.6g}; its first "
                f"coordinate is {time[index]:.6g} and should be {projected[index, 0]:.6g}"
            )

        step = (
            "Correct rounding errors with space.project(points). "
            "For points of the Poincare ball use coordinates='ball'."
        )
        off = ~(np.abs(time - projected[:, 0]) <= TIME_TOLERANCE * projected[:, 0])
        self._refuse(off, numbers, reason, step)
        return projected

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        return self.to_poincare(batch) if self.coordinates == "ball" else batch


class _UnitVectors(GeometricSpace):
    """Directions and rotations: vectors of length one."""

    #: Root mean square angle of votes at chance, in simulations: for uniform directions it is 1.7, for rotations 2.1.
    unrelated: ClassVar[float]

    @property
    def chance(self) -> float:
        return float(self.geometry.cost_of_scale(self.unrelated / np.sqrt(self.geometry.dimension)))

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return uniform points."""
        return self.geometry.project(rng.normal(size=(n, *self.geometry.point_shape)))

    def project(self, points: Any) -> FloatArray:
        """Return vectors scaled to length one; quaternions with a positive first number."""
        points = np.asarray(points, dtype=np.float64)
        if not (np.linalg.norm(points, axis=-1) > 0).all():
            raise InvalidLabelError(f"A vector of length zero is not a point of {self!r}. Leave it out.")
        return self.geometry.project(points)

    def as_points(self, numbers: FloatArray) -> FloatArray:
        length = np.linalg.norm(numbers, axis=1)
        wrong, step = ~(np.abs(length - 1.0) <= UNIT_TOLERANCE), "Scale it to length one: space.project(labels)."
        self._refuse(wrong, numbers, lambda index: f"has length {length[index]:.6g} instead of 1", step)
        return self.geometry.project(numbers)


@dataclass(frozen=True)
class Sphere(_UnitVectors):
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
    unrelated: ClassVar[float] = 1.6

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", checked_size("d", self.d))
        _check_choice("noise", self.noise)

    def embed(self, batch: Batch) -> FloatArray:
        return np.asarray(batch, dtype=np.float64)

    @cached_property
    def geometry(self) -> SphereGeometry:
        return SphereGeometry(self.d, self.noise)


@dataclass(frozen=True)
class SO3(_UnitVectors):
    """Rotations as unit quaternions ``(w, x, y, z)``; the cost is the squared angle of the rotation between two.

    A quaternion and its negative are the same rotation; labels have ``w >= 0``.

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
    unrelated: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        _check_choice("noise", self.noise)

    @cached_property
    def geometry(self) -> RotationGeometry:
        return RotationGeometry(self.noise)

    def from_matrix(self, matrices: Any) -> FloatArray:
        """Return the quaternions of rotation matrices, ``(.., 3, 3)``."""
        from scipy.spatial.transform import Rotation

        matrices = np.asarray(matrices, dtype=np.float64)
        gap = np.abs(matrices @ np.swapaxes(matrices, -1, -2) - np.eye(3)).max(axis=(-1, -2))
        if not ((gap < 1e-6) & (np.linalg.det(matrices) > 0)).all():
            raise InvalidLabelError(
                f"A matrix is not a rotation: it is off orthogonal by {float(np.max(gap)):.3g}, or a reflection. "
                "Correct it."
            )
        scalar_last = Rotation.from_matrix(matrices.reshape(-1, 3, 3)).as_quat().reshape(*matrices.shape[:-2], 4)
        return self.geometry.project(np.roll(scalar_last, 1, axis=-1))

    def to_matrix(self, quaternions: Any) -> FloatArray:
        """Return the rotation matrices of quaternions, ``(.., 4)``."""
        from scipy.spatial.transform import Rotation

        unit = self.project(quaternions)
        scalar_last = np.roll(unit, -1, axis=-1).reshape(-1, 4)
        return np.asarray(Rotation.from_quat(scalar_last).as_matrix()).reshape(*unit.shape[:-1], 3, 3)

    def embed(self, batch: Batch) -> FloatArray:
        return self.to_matrix(batch).reshape(len(batch), 9)

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        return self.geometry.project(batch)


@dataclass(frozen=True)
class SPD(GeometricSpace):
    """Symmetric positive definite n x n matrices; the cost is the squared geodesic distance.

    Parameters
    ----------
    n
        Number of rows.
    metric
        "affine-invariant": distances do not change if all matrices A become ``G A G^T`` (a change of units or axes).
        "log-euclidean": the Frobenius distance of matrix logarithms. It is several times faster, and invariant to
        rotations and to a common factor.

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
        _check_choice("metric", self.metric, ("affine-invariant", "log-euclidean"))

    @cached_property
    def geometry(self) -> Geometry:
        flat = self.metric == "log-euclidean" or self.n == 1
        return LogEuclideanGeometry(self.n) if flat else SPDGeometry(self.n)

    @property
    def chance(self) -> float:
        return 2.0

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return matrices around the identity with a mean squared distance of one."""
        start = np.broadcast_to(np.eye(self.n), (n, self.n, self.n))
        return self.geometry.exp(start, self.geometry.random_tangent(start, rng) / np.sqrt(self.geometry.dimension))

    def project(self, matrices: Any, smallest: float = 1e-6) -> FloatArray:
        """Return the nearest symmetric matrices whose eigenvalues are at least `smallest` times the largest."""

        def lifted(values: FloatArray) -> FloatArray:
            return np.maximum(values, smallest * np.maximum(np.abs(values).max(axis=-1, keepdims=True), 1e-300))

        return matrix_function(np.asarray(matrices, dtype=np.float64), lifted)

    def as_points(self, numbers: FloatArray) -> FloatArray:
        turned = np.swapaxes(numbers, 1, 2)
        skew = np.abs(numbers - turned).max(axis=(1, 2), initial=0.0)
        self._refuse(
            skew > SKEW_TOLERANCE * np.abs(numbers).max(axis=(1, 2), initial=0.0),
            numbers,
            lambda index: f"is not symmetric: two entries that should be equal differ by {skew[index]:.3g}",
            "Take (A + A.T) / 2, or space.project(matrices).",
        )
        symmetric = (numbers + turned) / 2.0
        values = np.linalg.eigvalsh(symmetric)
        self._refuse(
            ~(values[:, 0] > 1e-14 * np.abs(values[:, -1])),
            numbers,
            lambda index: f"is not positive definite: its smallest eigenvalue is {values[index, 0]:.6g}",
            "Add a small multiple of the identity, or use space.project(matrices).",
        )
        # The ratio of any two eigenvalues and its square are finite.
        self._refuse(
            (values[:, -1] > LARGEST) | (values[:, 0] < 1.0 / LARGEST),
            numbers,
            lambda index: f"has eigenvalues from {values[index, 0]:.3g} to {values[index, -1]:.3g}",
            f"Choose a unit in which they are between {1.0 / LARGEST:g} and {LARGEST:g}.",
        )
        return symmetric
