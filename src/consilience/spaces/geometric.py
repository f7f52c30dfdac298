"""What the label types that are points of a manifold share."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, FloatArray, as_object_array
from consilience.exceptions import InvalidLabelError
from consilience.families.base import Family
from consilience.families.wrapped import WrappedNormalFamily
from consilience.label_types.base import LabelSpace
from consilience.label_types.codes import plain_value
from consilience.solvers.manifolds.base import Geometry

__all__ = ["GeometricSpace", "checked_choice", "checked_size"]

#: Lengths may be off one by this much, as after rounding to single precision.
UNIT_TOLERANCE = 1e-4
STEP = "Correct it, or leave the cell empty (None) where the source abstains."


class GeometricSpace(LabelSpace):
    """Points of a manifold; the cost is the squared geodesic distance."""

    power: ClassVar[float] = 2.0
    continuous: ClassVar[bool] = True

    @property
    @abstractmethod
    def geometry(self) -> Geometry:
        """Distances, geodesics and means of the labels."""

    @property
    @abstractmethod
    def chance(self) -> float:
        """Squared distance of a vote that tells nothing, for simulations."""

    @property
    def wrapped(self) -> bool:
        """Whether labels take account of how fast volume grows with distance."""
        return False

    @property
    def label_shape(self) -> tuple[int, ...]:
        """Shape of a label as users write it."""
        return self.geometry.point_shape

    @abstractmethod
    def as_points(self, numbers: FloatArray) -> FloatArray:
        """Return labels, finite and of the right shape, as points; or say which one is none."""

    @cached_property
    def law(self) -> Family:
        return WrappedNormalFamily(self.geometry, wrapped=self.wrapped, chance=self.chance)

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        return self.geometry.distance(np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64))

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the weighted Frechet means: the points of least weighted squared distance to the votes."""
        return self.geometry.means(np.asarray(votes, dtype=np.float64), np.asarray(weights, dtype=np.float64)).points

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        """Return one vote per centre, of the scale that belongs to the weight."""
        geometry = self.geometry
        centers = np.asarray(centers, dtype=np.float64)
        cost = self.law.expected_cost(np.array([weight]))
        scale = float(WrappedNormalFamily(geometry).scale_of_cost(cost)[0])
        tangent = geometry.random_tangent(centers, rng)
        length = np.sqrt(np.maximum(geometry.inner(centers, tangent, tangent), 1e-300))
        reach = scale * length
        if geometry.law is not None and np.isfinite(geometry.radius):
            reach = geometry.radius * geometry.law.radii(np.array([scale / geometry.radius]), length)[0]
        factor = (reach / length).reshape(-1, *[1] * len(geometry.point_shape))
        return geometry.exp(centers, factor * tangent)

    def as_batch(self, labels: Any) -> Batch:
        array = labels if isinstance(labels, np.ndarray) else as_object_array(labels)
        shape = self.label_shape
        if array.dtype.kind in "biuf":
            if array.shape[1:] != shape:
                raise InvalidLabelError(
                    f"Labels of shape {array.shape[1:]} are no points of {self!r}, which have shape {shape}. "
                    "Pass an array with one such point per item and source.",
                    0 if array.ndim == 1 and len(array) else None,
                )
            numbers = array.astype(np.float64)
        else:
            numbers = _stacked(array, shape, repr(self))
        flat = numbers.reshape(len(numbers), int(np.prod(numbers.shape[1:])))
        wrong = np.asarray(~np.isfinite(flat).all(axis=1))
        if wrong.any():
            raise self._refusal(numbers, wrong, "has a number that is not finite")
        return self.as_points(numbers)

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        return batch

    def _check_unit_length(self, numbers: FloatArray, reason: str, what: str) -> None:
        """Refuse a row whose length misses one by more than rounding."""
        length = np.linalg.norm(numbers, axis=1)
        wrong = ~(np.abs(length - 1.0) <= UNIT_TOLERANCE)
        if wrong.any():
            first = float(length[wrong][0])
            told = reason.format(length=first, gap=abs(first - 1.0))
            raise self._refusal(numbers, wrong, told, f"Scale it to length one: space.project({what}).")

    def _refusal(
        self, numbers: FloatArray, wrong: npt.NDArray[np.bool_], reason: str, step: str = STEP
    ) -> InvalidLabelError:
        index = int(np.flatnonzero(wrong)[0])
        shown = np.array2string(numbers[index], precision=6, threshold=12, separator=", ").replace("\n", "")
        return InvalidLabelError(f"label {shown} {reason}. {step}", index)


def checked_size(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number that is large enough, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidLabelError(f"{name}={plain_value(value)!r} is not a whole number of {least} or more.")
    return int(value)


def checked_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return one of the choices, or refuse the value."""
    if value not in choices:
        raise InvalidLabelError(f"{name}={value!r} is unknown. Use {' or '.join(map(repr, choices))}.")
    return str(value)


def _stacked(array: Batch, shape: tuple[int, ...], space: str) -> FloatArray:
    numbers = np.empty((len(array), *shape))
    for index, value in enumerate(array):
        try:
            point = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidLabelError(
                f"label {plain_value(value)!r} is not an array of numbers of shape {shape}. {STEP}", index
            ) from None
        if point.shape != shape:
            raise InvalidLabelError(
                f"label {plain_value(value)!r} has shape {point.shape}, and points of {space} have {shape}. {STEP}",
                index,
            )
        numbers[index] = point
    return numbers
