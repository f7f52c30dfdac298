"""The contract of a label space: what a label is, and how far two labels are apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array, is_null
from consilience.exceptions import DistanceError, InvalidLabelError, UnsupportedError
from consilience.label_types.codes import Codebook, arrow_column, plain_value
from consilience.lazy import pyarrow as pa

if TYPE_CHECKING:
    from consilience.estimation.protocol import Law

#: Largest distance: its fourth power is still a number. One below its inverse is zero.
FARTHEST = 1e75
#: Size of the pool of random labels from which the default `sample_around` picks.
POOL = 512
#: Standard deviations on either side of a mean that hold 95% of a normal distribution.
NORMAL_95 = 1.96


@dataclass(frozen=True)
class Unit:
    """What the quality of a source is called, and the figure that people read for an expected cost."""

    name: str  # of the column, such as "error_rate"
    meaning: str  # "how often a vote is wrong"
    figure: Callable[[FloatArray], FloatArray] = np.asarray  # (m,) expected costs -> (m,) figures
    is_share: bool = True  # between 0 and 1, shown in percent
    parts: Mapping[str, Unit] = field(default_factory=dict)  # of each field, where labels are records

    def interval(self, cost: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the 95% intervals of the figures, from the standard errors of the costs (delta method)."""
        step = 1e-4 * np.maximum(np.abs(cost), 1e-9)
        slope = (self.figure(cost + step) - self.figure(cost - step)) / (2.0 * step)
        figure, reach = self.figure(cost), NORMAL_95 * np.abs(slope) * error
        top = 1.0 if self.is_share else np.inf
        low, high = np.clip(figure - reach, 0.0, top), np.clip(figure + reach, 0.0, top)
        known = np.isfinite(error)
        return np.where(known, low, np.nan), np.where(known, high, np.nan)


class LabelSpace(ABC):
    """A set of labels with a distance.

    A new label type writes `distance` and `random`; every other method has a default that works from these two, and
    may be sharpened. Subclasses are frozen dataclasses and final. A *batch* is an array whose first axis is the item:
    ``(n, *label_shape)``, or ``(n,)`` objects for labels without a fixed shape.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from consilience import LabelModel
    >>> @dataclass(frozen=True)
    ... class Clock(LabelSpace):
    ...     def distance(self, left, right):
    ...         hours = np.abs(np.asarray(left, float) - np.asarray(right, float))
    ...         return np.minimum(hours, 24 - hours)
    ...     def random(self, n, rng):
    ...         return rng.integers(0, 24, size=n)
    >>> Clock().distance([23], [1])
    array([2.])
    >>> votes = [[23, 0, 22], [5, 5, 6], [12, 11, 12]] * 10
    >>> LabelModel(Clock()).fit(votes).predict(votes)[:3].tolist()
    [23, 5, 12]
    """

    #: ``cost = distance ** power`` is what the model adds up.
    power: ClassVar[float] = 1.0
    #: Whether labels lie on a continuous scale, where a label is never exactly met and never flips.
    continuous: ClassVar[bool] = False
    #: Whether a label is either right or wrong, so that the mean distance is one less the accuracy.
    right_or_wrong: ClassVar[bool] = False
    #: Whether a vote could be the label of its item; comparisons of some pairs could not.
    votes_are_labels: ClassVar[bool] = True

    @abstractmethod
    def distance(self, left: Batch, right: Batch) -> FloatArray:
        """Return the ``(n,)`` distances between the labels of two batches, pair by pair."""

    @abstractmethod
    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return `n` random labels; tests and simulations live on it."""

    def as_batch(self, labels: Any) -> Batch:
        """Return labels in the form the space computes with, or say which one is wrong."""
        return labels if isinstance(labels, np.ndarray) else as_object_array(labels)

    def read_text(self, cells: Batch) -> Batch:
        """Return labels from the cells of a file, texts read where the space has a notation; errors name the cell."""
        return cells

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        """Return a whole ``(n, m)`` table of votes in the form the space computes with, without copying it.

        None where that cannot be done; the cells then go through `as_batch`. Errors carry a position in the flat table.
        """
        return None

    def in_rows(self, labels: Batch, observed: BoolArray) -> Batch:
        """Return an ``(n, m)`` table of votes whose cells know what their row is about, where rows differ in that."""
        return labels

    def in_words_of(self, labels: Batch, votes: Batch, observed: BoolArray) -> Batch:
        """Return one label per row in the words of the votes on that row, where rows have words of their own."""
        return labels

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        """Return a batch as the user writes labels; the inverse of `as_batch`.

        `like` is the type of the labels as they came, where a space knows two spellings (names and codes).
        """
        return batch

    @property
    def n_labels(self) -> int | None:
        """How many labels there are, or None where that is not finite."""
        return None

    @property
    def takes_prior(self) -> bool:
        """Whether there are frequencies of labels, about which a named prior says something."""
        return self.n_labels is not None

    def contains(self, label: object) -> bool:
        """Return whether a single value is a label of this space."""
        try:
            self.as_batch(as_object_array([label]))
        except InvalidLabelError:
            return False
        return True

    def has_opinion(self, batch: Batch) -> BoolArray:
        """Return which labels say something; one without any opinion is not a known label."""
        return np.ones(len(batch), dtype=bool)

    def cost(self, left: Batch, right: Batch) -> FloatArray:
        """Return ``distance ** power``."""
        distance = check_distances(self.distance(left, right), left, right)
        return distance if self.power == 1.0 else distance**self.power

    def embed(self, batch: Batch) -> FloatArray | None:
        """Return ``(n, d)`` coordinates whose squared distances stand for costs (the paper's g), or None.

        Labels of different lengths are padded with zeros: a shorter batch has the first of the coordinates.
        """
        return None

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the label of least weighted cost to the votes ``(n, m, *label_shape)`` of each item.

        Votes of weight zero are not there. By default the best vote is chosen: ties go to the vote of the larger
        weight, then to the first source.
        """
        from consilience.label_types.pair_costs import best_vote

        return best_vote(self.cost, votes, weights)

    @property
    def law(self) -> Law:
        """How votes scatter around the truth; by default the law that needs nothing but a distance."""
        from consilience.label_types.metric.law import MetricLaw  # that file needs this one

        own = type(self)
        return MetricLaw(
            cost=self.cost,
            coordinates=self._coordinates if own.embed is not LabelSpace.embed else None,
            mean=self.weighted_mean,
            pool=self.random,
            sample=self.sample_around if own.sample_around is not LabelSpace.sample_around else None,
        )

    def _coordinates(self, batch: Batch) -> FloatArray:
        coordinates = self.embed(batch)
        if coordinates is None:
            raise UnsupportedError(f"{type(self).__name__}.embed returned None for a batch.")
        return np.asarray(coordinates, dtype=np.float64).reshape(len(batch), -1)

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        """Return one vote per center, drawn with probability proportional to ``exp(-weight * cost)``.

        The default picks from a pool of random labels; write your own where that is too coarse.
        """
        from consilience.label_types.pair_costs import drawn_from

        return drawn_from(self.cost, self.random(POOL, rng), centers, weight, rng)

    def unit(self, parameters: Any) -> Unit:
        """Return how the quality of sources with these parameters reads; by default the mean distance to the truth."""
        if self.power == 1.0:
            return Unit("mean_distance", "the mean distance between a vote and the true label", is_share=False)
        power = 1.0 / self.power
        meaning = "the typical distance between a vote and the true label (root mean square)"
        return Unit("typical_distance", meaning, lambda cost: np.maximum(cost, 0.0) ** power, is_share=False)

    def score(self, predicted: Batch, gold: Batch) -> float:
        """Return how good the labels are, larger is better: minus the mean distance to the truth."""
        return -float(self.distance(predicted, gold).mean()) if len(gold) else float("nan")

    def spec(self) -> dict[str, Any]:
        """Return the constructor's arguments, for saving; dataclass fields by default."""
        return {item.name: getattr(self, item.name) for item in fields(self)} if is_dataclass(self) else {}

    def to_arrow(self, batch: Batch) -> pa.Array:
        """Return labels as an Arrow column; nulls where the label is missing."""
        values = [label.tolist() if isinstance(label, np.ndarray) else plain_value(label) for label in batch]
        return arrow_column([None if is_missing(label) else value for label, value in zip(batch, values, strict=True)])

    def from_arrow(self, column: pa.Array) -> Batch:
        """Return the labels stored by `to_arrow`."""
        values = column.to_pylist()
        plain = all(isinstance(value, (int, float)) for value in values) or isinstance(values[0], list)
        return np.array(values) if plain else as_object_array(values)


class CodedSpace(LabelSpace):
    """A finite list of labels, given by name or by number; batches hold their codes ``0 .. k-1``."""

    @property
    @abstractmethod
    def codebook(self) -> Codebook:
        """Names and codes of the labels."""

    @property
    def n_labels(self) -> int | None:
        return self.codebook.k

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        return rng.integers(self.codebook.k, size=n)

    def as_batch(self, labels: Any) -> Batch:
        return self.codebook.encode(as_numbers(labels))

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        return self.codebook.check_cells(labels, observed)

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        return self.codebook.decode(batch, like)

    def to_arrow(self, batch: Batch) -> pa.Array:
        return self.codebook.to_arrow(batch)

    def from_arrow(self, column: pa.Array) -> Batch:
        return as_numbers(column.to_pylist())


def check_distances(distance: Any, left: Batch, right: Batch) -> FloatArray:
    """Return distances as floats, or name the pair of labels for which they are none."""
    try:
        array = np.asarray(distance, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DistanceError(
            f"The distance function returned {type(distance).__name__}, which is not an array of numbers. "
            "Return one number per pair of labels."
        ) from error
    if array.shape != (len(left),):
        raise DistanceError(
            f"The distance function returned shape {array.shape} for {len(left)} pairs of labels; expected "
            f"({len(left)},). Compare the two batches item by item and return one number per pair."
        )
    bad = ~(array >= 0) | ~(array <= FARTHEST)
    if bad.any():
        index = int(np.flatnonzero(bad)[0])
        raise DistanceError(
            f"The distance function returned {array[index]} between {plain_value(left[index])!r} and "
            f"{plain_value(right[index])!r} (pair {index}). A distance is finite and never negative, and at "
            f"most {FARTHEST:g}."
        )
    tiny = (array < 1.0 / FARTHEST) & (array > 0)
    return np.where(tiny, 0.0, array) if tiny.any() else array


def as_numbers(labels: Any) -> Batch:
    """Return a batch of numbers, or of arrays of one shape, where labels are such; else one of objects."""
    if isinstance(labels, np.ndarray):
        return labels
    items = list(labels)
    if items and all(isinstance(item, (int, float, np.number)) and not isinstance(item, bool) for item in items):
        return np.array(items)
    if items and all(isinstance(item, np.ndarray) and item.shape == items[0].shape for item in items):
        return np.stack(items)
    return as_object_array(items)


def with_missing(labels: Batch, missing: BoolArray, minus_one_is_free: bool = True) -> Batch:
    """Return labels with the value for "no label" put in: NaN, -1 (where that is no label) or None, by type."""
    if not missing.any():
        return labels
    kind: Any = object
    nothing: float | None = None
    if labels.dtype.kind == "f":
        kind, nothing = labels.dtype, np.nan
    elif labels.dtype.kind in "iu" and minus_one_is_free:
        kind, nothing = np.int64, -1
    result = labels.astype(kind)
    result[missing] = nothing
    return result


def is_missing(label: Any) -> bool:
    """Return whether a value stands for "no label": None, NaN, or an array that is NaN throughout."""
    if isinstance(label, np.ndarray):
        return bool(label.dtype.kind == "f" and label.size > 0 and np.isnan(label).all())
    return is_null(label)
