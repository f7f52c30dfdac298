"""Real-valued labels: ratings, measurements, the scores of judges."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array
from consilience.exceptions import InvalidLabelError
from consilience.label_types.base import LabelSpace
from consilience.label_types.codes import locate, plain_value
from consilience.label_types.linear.gauge import Told
from consilience.label_types.linear.law import LinearLaw

__all__ = ["Scores"]

EXPECTED = "a finite number"
STEP = "Correct it, or leave the cell empty (NaN or None) where the source abstains."


@dataclass(frozen=True)
class Scores(LabelSpace):
    """Real numbers; the cost is the squared difference. NaN and None abstain.

    Every source may speak on a scale of its own, ``vote = offset + slope * y + noise``. On which scale y itself
    lies is not in the votes: give `mean` and `variance`, or pass a few known labels to ``fit(votes, gold)``; else
    the most informative sources are followed.

    Parameters
    ----------
    mean, variance
        Of the true scores, where known.
    range
        Ends of the scale of the true scores, such as ``(1, 5)``. Sources may vote outside of it, and then have no
        say in where y lies.
    integer
        Whether labels are rounded to whole numbers.
    clip
        Whether labels are moved into `range`; by default they are where a range is given.
    gauge
        "linear" takes votes as they are. "quantile" takes the normal quantiles of their ranks, source by source, and
        leads labels back through the quantiles of the sources, which suits scales that are skewed, have a ceiling or
        differ in shape. "auto" does so where that is visible in the votes and nothing is known about y.

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
    power: ClassVar[float] = 2.0
    continuous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.mean is not None:
            object.__setattr__(self, "mean", _number("mean", self.mean))
        if self.variance is not None:
            variance = _number("variance", self.variance)
            if not variance > 0:
                raise InvalidLabelError(
                    f"variance={plain_value(self.variance)!r} is not positive. Give the variance of the true scores, "
                    "or leave it out."
                )
            object.__setattr__(self, "variance", variance)
        if self.range is not None:
            object.__setattr__(self, "range", _ends(self.range))
        if self.gauge not in ("auto", "linear", "quantile"):
            raise InvalidLabelError(f"gauge={self.gauge!r} is unknown. Use 'auto', 'linear' or 'quantile'.")
        if self.gauge == "quantile" and not (self.mean is None and self.variance is None):
            raise InvalidLabelError(
                "gauge='quantile' takes the scale of the sources, which contradicts mean= and variance=. Leave one out."
            )
        if self.clip and self.range is None:
            raise InvalidLabelError("clip=True needs the ends of the scale. Give range=(low, high).")

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

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        return np.abs(np.asarray(left, dtype=np.float64) - np.asarray(right, dtype=np.float64))

    def embed(self, batch: Batch) -> FloatArray | None:
        return np.asarray(batch, dtype=np.float64).reshape(len(batch), 1)

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        if self.range is not None and self.mean is None and self.variance is None:
            drawn = rng.uniform(*self.range, size=n)
        else:
            middle = 0.0 if self.range is None else (self.range[0] + self.range[1]) / 2.0
            drawn = rng.normal(middle if self.mean is None else self.mean, np.sqrt(self._spread), size=n)
        return np.round(drawn) if self.integer else drawn

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        spread = np.sqrt(self.law.expected_cost(np.array([weight]))[0])
        return np.asarray(centers, dtype=np.float64) + rng.normal(0.0, spread, size=len(centers))

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        total = weights.sum(axis=1)
        told = np.where(weights > 0, votes, 0.0)
        mean: FloatArray = (weights * told).sum(axis=1) / np.where(total > 0, total, 1.0)
        return mean

    def as_batch(self, labels: Any) -> Batch:
        array = labels if isinstance(labels, np.ndarray) else as_object_array(labels)
        if array.ndim != 1:
            raise InvalidLabelError(
                f"Labels of shape {array.shape[1:]} are not single numbers. Use Vectors for points in R^d."
            )
        if array.dtype.kind not in "biuf":
            array = _numbers(array)
        numbers = array.astype(np.float64, copy=False)
        wrong = ~np.isfinite(numbers)
        if wrong.any():
            raise locate(numbers, wrong, EXPECTED, STEP)
        return numbers

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        if labels.ndim != 2 or labels.dtype != np.float64:
            return None
        if np.isfinite(labels.sum()):  # one sum tells that no cell is infinite or NaN
            return labels
        wrong = ~np.isfinite(labels) & observed
        if wrong.any():
            raise locate(labels.ravel(), wrong.ravel(), EXPECTED, STEP)
        return labels

    def contains(self, label: object) -> bool:
        """Return whether a value is a finite number, and in the range where there is one.

        Votes outside of the range are taken, as those of a source on another scale; but a value out there may
        also stand for "abstains", such as -1 on a scale from 1 to 5.
        """
        if not super().contains(label):
            return False
        return self.range is None or self.range[0] <= float(label) <= self.range[1]  # type: ignore[arg-type]

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        whole = like is not None and np.dtype(like).kind in "iu"
        if self.integer and whole and np.isfinite(batch).all():
            return np.asarray(batch).astype(np.int64)
        return batch


def _number(name: str, value: Any) -> float:
    if isinstance(value, (str, bytes, bool)) or value is None:
        raise InvalidLabelError(f"{name}={value!r} is not a number. Give a finite number, or leave it out.")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidLabelError(f"{name}={value!r} is not a number. Give a finite number, or leave it out.") from None
    if not np.isfinite(number):
        raise InvalidLabelError(f"{name}={number} is not finite. Give a finite number, or leave it out.")
    return number


def _ends(value: Any) -> tuple[float, float]:
    try:
        low, high = value
    except (TypeError, ValueError):
        raise InvalidLabelError(f"range={value!r} is not a pair. Give (low, high), such as (1, 5).") from None
    ends = (_number("range[0]", low), _number("range[1]", high))
    if not ends[0] < ends[1]:
        raise InvalidLabelError(f"range={ends} is empty. Give the lower end first, such as (1, 5).")
    return ends


def _numbers(array: Batch) -> Batch:
    numbers = np.empty(len(array))
    for index, value in enumerate(array.tolist()):
        if isinstance(value, (str, bytes)) or not np.isscalar(value):
            raise InvalidLabelError(f"label {plain_value(value)!r} is not {EXPECTED}. {STEP}", index)
        try:
            numbers[index] = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            raise InvalidLabelError(f"label {plain_value(value)!r} is not {EXPECTED}. {STEP}", index) from None
    return numbers
