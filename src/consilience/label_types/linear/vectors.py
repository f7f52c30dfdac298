"""Points of R^d: positions, embeddings, several scores at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array
from consilience.exceptions import InvalidLabelError
from consilience.label_types.base import LabelSpace
from consilience.label_types.codes import plain_value
from consilience.label_types.linear.gauge import Told
from consilience.label_types.linear.law import LinearLaw

__all__ = ["Vectors"]

STEP = "Correct it, or leave the whole vote empty (None, or NaN throughout) where the source abstains."


@dataclass(frozen=True)
class Vectors(LabelSpace):
    """Points of R^d; the cost is the squared Euclidean distance. None, or NaN in every coordinate, abstains.

    Every source votes ``y + offset + noise`` with a noise of its own, which may be larger in some directions than in
    others. A vote with NaN in some coordinates only is refused.

    Parameters
    ----------
    d
        Number of coordinates.
    mean, covariance
        Of the true vectors, where known: d numbers, and a d x d matrix, d variances or one variance.

    Examples
    --------
    >>> from consilience import LabelModel
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(500, 2)) * 3.0
    >>> votes = truth[:, None] + rng.normal(size=(500, 3, 2)) * [[[0.5, 0.5], [2.0, 0.5], [0.5, 2.0]]]
    >>> model = LabelModel(Vectors(2)).fit(votes)
    >>> model.expected_cost_.round(1)
    array([0.5, 4.1, 4.4])
    >>> model.posterior(votes).details["covariance"].shape
    (500, 2, 2)
    """

    d: int
    mean: Any = None
    covariance: Any = None
    power: ClassVar[float] = 2.0
    continuous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        size = self.d
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise InvalidLabelError(f"d={plain_value(size)!r} is not a number of coordinates. Give 1, 2, 3 ...")
        object.__setattr__(self, "d", int(size))
        if self.mean is not None:
            object.__setattr__(self, "mean", tuple(_numbers("mean", self.mean, (self.d,)).tolist()))
        if self.covariance is not None:
            matrix = _covariance(self.covariance, self.d)
            object.__setattr__(self, "covariance", tuple(map(tuple, matrix.tolist())))

    @cached_property
    def law(self) -> LinearLaw:
        told = Told(
            None if self.mean is None else np.array(self.mean),
            None if self.covariance is None else np.array(self.covariance),
        )
        return LinearLaw(self.d, told=told, scale=float(np.trace(self._spread)) / self.d)

    @property
    def _spread(self) -> FloatArray:
        """Covariance of random labels."""
        return np.eye(self.d) if self.covariance is None else np.array(self.covariance)

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        apart = np.asarray(left, dtype=np.float64) - np.asarray(right, dtype=np.float64)
        return np.asarray(np.linalg.norm(apart, axis=1), dtype=np.float64)

    def cost(self, left: Batch, right: Batch) -> FloatArray:
        apart = np.asarray(left, dtype=np.float64) - np.asarray(right, dtype=np.float64)
        return np.asarray(np.einsum("nd,nd->n", apart, apart), dtype=np.float64)

    def embed(self, batch: Batch) -> FloatArray | None:
        return np.asarray(batch, dtype=np.float64)

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        root = np.linalg.cholesky(self._spread)
        middle = np.zeros(self.d) if self.mean is None else np.array(self.mean)
        return np.asarray(middle + rng.normal(size=(n, self.d)) @ root.T)

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        spread = np.sqrt(self.law.expected_cost(np.array([weight]))[0] / self.d)
        return np.asarray(centers, dtype=np.float64) + rng.normal(0.0, spread, size=(len(centers), self.d))

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        total = weights.sum(axis=1)
        told = np.where((weights > 0)[..., None], votes, 0.0)
        summed = np.einsum("nm,nmd->nd", weights, told)
        mean: FloatArray = summed / np.where(total > 0, total, 1.0)[:, None]
        return mean

    def as_batch(self, labels: Any) -> Batch:
        array = labels if isinstance(labels, np.ndarray) else as_object_array(labels)
        if array.dtype.kind in "biuf" and array.ndim == 2 and array.shape[1] == self.d:
            numbers = array.astype(np.float64, copy=False)
        elif array.dtype.kind in "biuf" and array.ndim > 1:
            raise InvalidLabelError(
                f"label {array[0].tolist()} is not {self._expected}: it has the shape {array.shape[1:]}. "
                f"Give {self.d} numbers per vote, or another d.", 0
            )  # fmt: skip
        else:
            numbers = np.empty((len(array), self.d))
            for index, value in enumerate(array):
                numbers[index] = self._vector(value, index)
        self._check(numbers, np.ones(len(numbers), dtype=bool))
        return numbers

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        if labels.ndim != 3 or labels.dtype != np.float64 or labels.shape[2] != self.d:
            return None
        if not np.isfinite(labels.sum()):  # one sum tells that no number is infinite or NaN
            self._check(labels.reshape(-1, self.d), observed.ravel())
        return labels

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        return batch

    def score(self, predicted: Batch, gold: Batch) -> float:
        """Return minus the mean distance to the truth."""
        return super().score(predicted, gold)

    @property
    def _expected(self) -> str:
        return f"a vector of {self.d} finite numbers"

    def _check(self, numbers: FloatArray, observed: BoolArray) -> None:
        wrong = ~np.isfinite(numbers).all(axis=1) & observed
        if not wrong.any():
            return
        index = int(np.flatnonzero(wrong)[0])
        place = int(np.flatnonzero(~np.isfinite(numbers[index]))[0])
        raise InvalidLabelError(
            f"label {numbers[index].tolist()} is not {self._expected}: coordinate {place} is {numbers[index, place]}. "
            f"{STEP}",
            index,
        )

    def _vector(self, value: Any, index: int) -> FloatArray:
        """Return one label as numbers, or say what is wrong with it."""
        shown = plain_value(value) if not isinstance(value, np.ndarray) else value.tolist()
        fault = ""
        if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
            fault = f"it is a {type(value).__name__}"
        elif len(value) != self.d:
            fault = f"it has {len(value)} coordinates"
        else:
            for place, number in enumerate(value):
                if isinstance(number, (str, bytes)) or np.ndim(number) != 0:
                    fault = f"coordinate {place} is {plain_value(number)!r}"
                    break
        if not fault:
            try:
                return np.array([np.nan if number is None else float(number) for number in value])
            except (TypeError, ValueError, OverflowError):
                fault = "a coordinate is no number"
        raise InvalidLabelError(f"label {shown!r} is not {self._expected}: {fault}. {STEP}", index)


def _numbers(name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidLabelError(f"{name}={value!r} does not consist of numbers. Give finite ones.") from None
    if array.shape != shape:
        raise InvalidLabelError(f"{name} has the shape {array.shape}, not {shape}. Give one number per coordinate.")
    if not np.isfinite(array).all():
        raise InvalidLabelError(f"{name}={array.tolist()} is not finite. Give finite numbers, or leave it out.")
    return array


def _covariance(value: Any, d: int) -> FloatArray:
    try:
        size = np.ndim(value)
    except ValueError:
        size = 2  # ragged; refused below
    given = _numbers("covariance", value, ((), (d,), (d, d))[min(size, 2)])
    matrix = given if given.ndim == 2 else np.broadcast_to(given, (d,))[:, None] * np.eye(d)
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * np.abs(matrix).max()):
        raise InvalidLabelError("covariance is not symmetric. Give a symmetric d x d matrix, or d variances.")
    matrix = 0.5 * (matrix + matrix.T)
    values = np.linalg.eigvalsh(matrix)
    if not values[0] > 1e-12 * max(values[-1], 0.0):
        raise InvalidLabelError(
            f"covariance is not positive definite: its smallest eigenvalue is {values[0]:.3g}. Give the covariance of "
            "the true vectors, or leave it out."
        )
    return matrix
