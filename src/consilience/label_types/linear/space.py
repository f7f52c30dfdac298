"""Real-valued labels: scores (ratings, measurements, the scores of judges), and vectors of several numbers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array
from consilience.exceptions import InvalidLabelError
from consilience.label_types.base import LabelSpace, Unit
from consilience.label_types.codes import plain_value
from consilience.label_types.linear.law import LinearLaw
from consilience.label_types.linear.lines import Told

__all__ = ["Scores", "Vectors"]

NUMBER_STEP = "Correct it, or leave the cell empty (NaN or None) where the source abstains."
#: Largest number in a label, whose fifth power is still finite.
LARGEST = 1e61
LARGE_STEP = "Correct it, or divide all votes by a large number."
VECTOR_STEP = "Correct it, or leave the whole vote empty (None, or NaN throughout) where the source abstains."


class _LinearSpace(LabelSpace):
    """Points of R^d with the squared distance as cost."""

    power: ClassVar[float] = 2.0
    continuous: ClassVar[bool] = True

    @property
    @abstractmethod
    def _shape(self) -> tuple[int, ...]:
        """Shape of one label."""

    @abstractmethod
    def _read(self, value: Any, index: int) -> float | FloatArray:
        """Return one label as finite numbers, or raise an error."""

    def as_batch(self, labels: Any) -> Batch:
        array = labels if isinstance(labels, np.ndarray) else as_object_array(labels)
        if array.dtype.kind in "biuf" and array.shape[1:] == self._shape:
            return self._checked(array.astype(np.float64, copy=False), np.ones(len(array), dtype=bool))
        return np.array([self._read(value, index) for index, value in enumerate(array)]).reshape(-1, *self._shape)

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        if labels.dtype != np.float64 or labels.shape[2:] != self._shape:
            return None
        flat = labels.ravel()
        if not np.vdot(flat, flat) <= LARGEST**2:  # the sum of squares is fast, and it is NaN if any number is
            self._checked(labels.reshape(-1, *self._shape), observed.ravel())
        return labels

    def _checked(self, labels: FloatArray, observed: BoolArray) -> FloatArray:
        wrong = ~(np.abs(labels) <= LARGEST).all(axis=tuple(range(1, labels.ndim))) & observed
        for index in np.flatnonzero(wrong)[:1]:
            self._read(labels[index], int(index))
        return labels

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        apart = np.asarray(left, dtype=np.float64) - np.asarray(right, dtype=np.float64)
        return np.asarray(np.sqrt((apart**2).sum(axis=tuple(range(1, apart.ndim)))), dtype=np.float64)

    def unit(self, parameters: Any) -> Unit:
        """Return the error of the best estimate from one source, which is bounded even if the source is pure noise."""
        law: Any = self.law
        variance = law.label_variance(parameters)

        def figure(cost: FloatArray) -> FloatArray:
            return np.asarray(np.sqrt(np.maximum(cost, 0.0) / (np.maximum(cost, 0.0) + variance) * variance))

        return Unit("error", "how far off an estimate from this source alone is, give or take", figure, False)

    def embed(self, batch: Batch) -> FloatArray | None:
        return np.asarray(batch, dtype=np.float64).reshape(len(batch), *(self._shape or (1,)))

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        law: Any = self.law
        spread = np.sqrt(law.expected_cost(np.array([weight]))[0] / law.d)
        return np.asarray(centers, dtype=np.float64) + rng.normal(0.0, spread, size=centers.shape)

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        counted = (weights > 0).reshape(*weights.shape, *[1] * len(self._shape))
        return np.asarray(np.einsum("nm,nm...->n...", share, np.where(counted, votes, 0.0)))


@dataclass(frozen=True)
class Scores(_LinearSpace):
    """Real numbers; the cost is the squared difference. NaN and None abstain.

    Every source may have its own scale, ``vote = offset + slope * y + noise``. Votes do not show the scale of y itself:
    give `mean` and `variance`, or pass a few known labels to ``fit(votes, gold)``. Otherwise it is that of the most
    informative sources.

    Parameters
    ----------
    mean, variance
        Of the true scores, if known.
    range
        Ends of the scale of the true scores, such as ``(1, 5)``. Sources that vote outside of it do not determine the
        scale of y.
    integer
        Whether labels are rounded to whole numbers.
    clip
        Whether labels are clipped to `range`; by default if a range is given.
    gauge
        "linear" uses votes as they are. "quantile" uses the normal quantiles of their ranks, source by source, and maps
        labels back through the quantiles of the sources, which suits scales that are skewed, have a ceiling or differ
        in shape; known labels then set level and unit. "auto" chooses "quantile" if the votes show such scales and
        neither mean nor variance is given.

    Examples
    --------
    >>> from consilience import LabelModel
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(50.0, 10.0, 500)
    >>> votes = truth[:, None] + rng.normal(size=(500, 3)) * [2.0, 5.0, 20.0]
    >>> model = LabelModel(Scores()).fit(votes)
    >>> np.sqrt(model.expected_cost_).round()
    array([ 3.,  4., 17.])
    >>> bool(np.mean((model.predict(votes) - truth) ** 2) < np.mean((votes.mean(axis=1) - truth) ** 2) / 5)
    True
    """

    mean: float | None = None
    variance: float | None = None
    range: tuple[float, float] | None = None
    integer: bool = field(default=False, kw_only=True)
    clip: bool | None = field(default=None, kw_only=True)
    gauge: Literal["auto", "linear", "quantile"] = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        for name in ("mean", "variance"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, float(_numbers(name, getattr(self, name), ())))
        if self.variance is not None and not self.variance > 0:
            raise InvalidLabelError(
                f"variance={self.variance} is not positive. Give the variance of the true scores, or leave it out."
            )
        if self.range is not None:
            try:
                low, high = self.range
            except (TypeError, ValueError):
                raise InvalidLabelError(
                    f"range={self.range!r} is not a pair. Give (low, high), such as (1, 5)."
                ) from None
            ends = (float(_numbers("range[0]", low, ())), float(_numbers("range[1]", high, ())))
            if not ends[0] < ends[1]:
                raise InvalidLabelError(f"range={ends} is empty. Give the lower end first, such as (1, 5).")
            object.__setattr__(self, "range", ends)
        if self.gauge not in ("auto", "linear", "quantile"):
            raise InvalidLabelError(f"gauge={self.gauge!r} is unknown. Use 'auto', 'linear' or 'quantile'.")
        if self.gauge == "quantile" and not (self.mean is None and self.variance is None):
            raise InvalidLabelError(
                "gauge='quantile' uses the scale of the sources, which contradicts mean= and variance=. "
                "Leave out one of the two."
            )
        if self.clip and self.range is None:
            raise InvalidLabelError("clip=True needs the ends of the scale. Give range=(low, high).")

    _shape: ClassVar[tuple[int, ...]] = ()

    @cached_property
    def law(self) -> LinearLaw:
        return LinearLaw(
            1,
            flat=True,
            told=Told(
                None if self.mean is None else np.array([self.mean]),
                None if self.variance is None else np.array([[self.variance]]),
                self.range,
            ),
            clip=self.range is not None and self.clip is not False,
            integer=self.integer,
            scale=self._spread,
            gauge=self.gauge,
        )

    @property
    def _spread(self) -> float:
        """Variance of random labels."""
        if self.variance is not None:
            return self.variance
        return (self.range[1] - self.range[0]) ** 2 / 12.0 if self.range is not None else 1.0

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        if self.range is not None and self.mean is None and self.variance is None:
            drawn = rng.uniform(*self.range, size=n)
        else:
            middle = 0.0 if self.range is None else (self.range[0] + self.range[1]) / 2.0
            drawn = rng.normal(middle if self.mean is None else self.mean, np.sqrt(self._spread), size=n)
        return np.round(drawn) if self.integer else drawn

    def _read(self, value: Any, index: int) -> float:
        if isinstance(value, np.ndarray):
            raise InvalidLabelError(
                f"Labels of shape {value.shape} are not single numbers. Use Vectors for points in R^d."
            )
        number = _number(value)
        if not np.isfinite(number):
            raise InvalidLabelError(f"label {plain_value(value)!r} is not a finite number. {NUMBER_STEP}", index)
        if abs(number) > LARGEST:
            raise InvalidLabelError(f"label {number:g} is beyond {LARGEST:g}. {LARGE_STEP}", index)
        return number

    def contains(self, label: object) -> bool:
        """Return whether a value is a finite number within the range, if there is one.

        Votes outside the range are accepted, because a source may have another scale. But such a value may also stand
        for "abstains", such as -1 on a scale from 1 to 5.
        """
        if not super().contains(label):
            return False
        return self.range is None or self.range[0] <= float(label) <= self.range[1]  # type: ignore[arg-type]

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        whole = like is not None and np.dtype(like).kind in "iu"
        if self.integer and whole and np.isfinite(batch).all():
            return np.asarray(batch).astype(np.int64)
        return batch


@dataclass(frozen=True)
class Vectors(_LinearSpace):
    """Points of R^d; the cost is the squared Euclidean distance. None, or NaN in every coordinate, abstains.

    Every source votes ``y + offset + noise`` with its own noise, which may be larger in some directions than in others.
    A vote with NaN in only some coordinates is refused.

    Parameters
    ----------
    d
        Number of coordinates.
    mean, covariance
        Mean and covariance of the true vectors, if known: d numbers, and a d x d matrix, d variances or one variance.

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

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self.d,)

    @cached_property
    def law(self) -> LinearLaw:
        told = Told(
            None if self.mean is None else np.array(self.mean),
            None if self.covariance is None else np.array(self.covariance),
        )
        scale = 1.0 if told.covariance is None else float(np.trace(told.covariance)) / self.d
        return LinearLaw(self.d, told=told, scale=scale)

    @property
    def _spread(self) -> FloatArray:
        """Covariance of random labels."""
        return np.eye(self.d) if self.covariance is None else np.array(self.covariance)

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        root = np.linalg.cholesky(self._spread)
        middle = np.zeros(self.d) if self.mean is None else np.array(self.mean)
        return np.asarray(middle + rng.normal(size=(n, self.d)) @ root.T)

    def _read(self, value: Any, index: int) -> FloatArray:
        if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
            fault = "it is text" if isinstance(value, (str, bytes)) else "it is a single value"
        elif len(value) != self.d:
            fault = f"it has {len(value)} coordinates"
        else:
            numbers = np.array([_number(one) for one in value])
            if (np.abs(numbers) <= LARGEST).all():
                return numbers
            if np.isfinite(numbers).all():
                raise InvalidLabelError(
                    f"label {numbers.tolist()} has a coordinate beyond {LARGEST:g}. {LARGE_STEP}", index
                )
            place = int(np.argmin(np.isfinite(numbers)))
            wrong = list(value)[place]
            fault = f"coordinate {place} is {np.nan if wrong is None else plain_value(wrong)!r}"
        shown = value.tolist() if isinstance(value, np.ndarray) else plain_value(value)
        raise InvalidLabelError(
            f"label {shown!r} is not a vector of {self.d} finite numbers: {fault}. {VECTOR_STEP}", index
        )


def _number(value: Any) -> float:
    """Return a number, or NaN for anything else, including text."""
    try:
        return float("" if isinstance(value, (str, bytes, np.ndarray)) else value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _numbers(name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return a setting as an array of this shape, or raise an error."""
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        array = as_object_array(value)
    if array.dtype.kind not in "iuf":
        raise InvalidLabelError(f"{name}={value!r} is not a number. Give finite numbers, or leave it out.")
    if array.shape != shape:
        raise InvalidLabelError(f"{name} has the shape {array.shape}, not {shape}. Give one number per coordinate.")
    if not np.isfinite(array).all():
        raise InvalidLabelError(f"{name}={array.tolist()} is not finite. Give finite numbers, or leave it out.")
    return array.astype(np.float64)


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
