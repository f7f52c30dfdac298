"""The contract of a label space: what a label is, and how far two labels are apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, as_object_array, is_null
from consilience.exceptions import DistanceError, InvalidLabelError, UnsupportedError
from consilience.label_types.codes import arrow_column, first_few, plain_value
from consilience.lazy import pyarrow as pa

if TYPE_CHECKING:
    from consilience.estimation.protocol import Law

#: Whole numbers from here on are not codes, because floats cannot represent all of them.
BEYOND = 2**53
#: Largest distance, whose fourth power is still finite. Distances below its inverse count as zero.
FARTHEST = 1e75
#: Size of the pool of random labels from which the default `sample_around` picks.
POOL = 512
#: Standard deviations on either side of a mean that hold 95% of a normal distribution.
NORMAL_95 = 1.96


@dataclass(frozen=True)
class Unit:
    """The unit in which the quality of a source is shown."""

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

    A new label type implements `distance` and `random`. Every other method has a default based on these two, and can
    be overridden. Subclasses are frozen dataclasses and final. A *batch* is an array whose first axis is the item:
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

    def __repr__(self) -> str:
        """Return the call that makes the space, without arguments that have their defaults."""
        given, shown = self.spec(), []
        for place, (name, parameter) in enumerate(signature(type(self)).parameters.items()):
            if name in given and given[name] != parameter.default:
                value = list(given[name]) if isinstance(given[name], tuple) else given[name]
                shown.append(f"{name}={value!r}" if place else repr(value))
        return f"{type(self).__name__}({', '.join(shown)})"

    #: ``cost = distance ** power``; the model adds up costs.
    power: ClassVar[float] = 1.0
    #: Whether labels lie on a continuous scale, where two labels are hardly ever the same.
    continuous: ClassVar[bool] = False
    #: Whether a label is either right or wrong, so that the mean distance is one minus the accuracy.
    right_or_wrong: ClassVar[bool] = False
    #: Whether a vote could be the label of its item; comparisons of some pairs could not.
    votes_are_labels: ClassVar[bool] = True

    @abstractmethod
    def distance(self, left: Batch, right: Batch) -> FloatArray:
        """Return the ``(n,)`` distances between the labels of two batches, pair by pair."""

    @abstractmethod
    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return `n` random labels, for simulations and tests."""

    def as_batch(self, labels: Any) -> Batch:
        """Return labels in the form in which the space computes, or raise an error about the first wrong one."""
        return labels if isinstance(labels, np.ndarray) else as_object_array(labels)

    def read_text(self, cells: Batch) -> Batch:
        """Return the labels in cells of a file, for types with a text notation; errors name the cell."""
        return cells

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        """Return an ``(n, m)`` table of votes in the form in which the space computes, without copying it.

        None if that is not possible; the cells then go through `as_batch`. Errors carry a position in the flat table.
        """
        return None

    def in_rows(self, labels: Batch, observed: BoolArray) -> Batch:
        """Return an ``(n, m)`` table of votes whose cells know the names of their row, if rows have their own names."""
        return labels

    def in_words_of(self, labels: Batch, votes: Batch, observed: BoolArray) -> Batch:
        """Return one label per row in the names of the votes on that row, if each row has its own names."""
        return labels

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        """Return a batch as the user writes labels; the inverse of `as_batch`.

        `like` is the type of the votes, for spaces with two spellings of labels (names and codes).
        """
        return batch

    @property
    def n_labels(self) -> int | None:
        """The number of labels, or None if it is not finite."""
        return None

    @property
    def takes_prior(self) -> bool:
        """Whether a prior over labels can be named, such as "uniform"."""
        return self.n_labels is not None

    def contains(self, label: object) -> bool:
        """Return whether a single value is a label of this space."""
        try:
            self.as_batch(as_object_array([label]))
        except InvalidLabelError:
            return False
        return True

    def has_opinion(self, batch: Batch) -> BoolArray:
        """Return which labels hold an opinion; the others count as abstentions."""
        return np.ones(len(batch), dtype=bool)

    def cost(self, left: Batch, right: Batch) -> FloatArray:
        """Return ``distance ** power``."""
        distance = check_distances(self.distance(left, right), left, right)
        return distance if self.power == 1.0 else distance**self.power

    def embed(self, batch: Batch) -> FloatArray | None:
        """Return ``(n, d)`` coordinates whose squared distances approximate costs (the paper's g), or None.

        Labels of different lengths are padded with zeros: a batch of shorter labels has fewer coordinates.
        """
        return None

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the label of least weighted cost to the votes ``(n, m, *label_shape)`` of each item.

        Votes of weight zero have no effect. By default the best vote is chosen; ties go to the vote of larger weight,
        then to the first source.
        """
        from consilience.label_types.pair_costs import best_vote

        return best_vote(self.cost, votes, weights)

    @property
    def law(self) -> Law:
        """How votes scatter around the truth; by default a law that needs only a distance."""
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

        The default picks from a pool of random labels. Override it if that is too coarse.
        """
        from consilience.label_types.pair_costs import drawn_from

        return drawn_from(self.cost, self.random(POOL, rng), centers, weight, rng)

    def unit(self, parameters: Any) -> Unit:
        """Return the unit of quality for sources with these parameters; by default the mean distance to the truth."""
        if self.power == 1.0:
            return Unit("mean_distance", "the mean distance between a vote and the true label", is_share=False)
        power = 1.0 / self.power
        meaning = "the typical distance between a vote and the true label (root mean square)"
        return Unit("typical_distance", meaning, lambda cost: np.maximum(cost, 0.0) ** power, is_share=False)

    def score(self, predicted: Batch, gold: Batch) -> float:
        """Return how good the labels are (larger is better): minus the mean distance to the truth."""
        return -float(self.distance(predicted, gold).mean()) if len(gold) else float("nan")

    def spec(self) -> dict[str, Any]:
        """Return the arguments of the constructor, for saving; dataclass fields by default."""
        return {item.name: getattr(self, item.name) for item in fields(self)} if is_dataclass(self) else {}

    def to_arrow(self, batch: Batch) -> pa.Array:
        """Return labels as an Arrow column, with nulls for missing labels."""
        values = [label.tolist() if isinstance(label, np.ndarray) else plain_value(label) for label in batch]
        return arrow_column([None if is_missing(label) else value for label, value in zip(batch, values, strict=True)])

    def from_arrow(self, column: pa.Array) -> Batch:
        """Return the labels stored by `to_arrow`."""
        values = column.to_pylist()
        plain = all(isinstance(value, (int, float)) for value in values) or isinstance(values[0], list)
        return np.array(values) if plain else as_object_array(values)


class CodedSpace(LabelSpace):
    """A finite list of labels, given by name or by number; batches hold their codes ``0 .. k-1``."""

    #: For messages: what a label is called, and how to name the labels.
    noun: ClassVar[str]
    naming: ClassVar[str]

    names: tuple[Any, ...] | None  # one per code, or None where labels are just 0 .. k-1
    k: int

    @property
    def n_labels(self) -> int | None:
        return self.k

    @property
    def _numeric_names(self) -> bool:
        """Whether numbers among the votes are names rather than codes."""
        return self.names is not None and any(isinstance(name, (int, float)) for name in self.names)

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        return rng.integers(self.k, size=n)

    def as_batch(self, labels: Any) -> Batch:
        """Return the codes of labels given as codes, whole floats or names."""
        array = as_numbers(labels)
        if array.ndim > 1:  # names that are tuples
            array = as_object_array(map(tuple, array.tolist()))
        kind, numeric_names = array.dtype.kind, self._numeric_names
        if kind in "biu" and not numeric_names:
            return self._in_range(array)
        if kind == "f" and not numeric_names:
            wrong = ~(np.abs(array) < BEYOND) | (array != np.round(array))
            self._refuse(array, wrong, "Round it. Real-valued labels need another label type, such as Scores.")
            return self._in_range(array.astype(np.int64))
        known = {name: code for code, name in enumerate(self.names or ())}
        below = BEYOND if self.names is None else 0 if numeric_names else self.k  # numbers that are taken for codes
        codes = np.empty(len(array), dtype=np.int64)
        for position, value in enumerate(array.tolist()):
            try:
                code = known.get(value)
            except TypeError:
                raise InvalidLabelError(
                    f"label {value!r} is a {type(value).__name__}, which cannot name one label.", position
                ) from None
            if code is None:
                number = plain_value(value)  # numbers from NumPy count like any others
                is_code = isinstance(number, (int, float)) and 0 <= number < below and number == int(number)
                code = known[value] = int(number) if is_code else -1
            codes[position] = code
        step = f"Correct the spelling, add it to {self.naming}, or leave the cell empty to abstain."
        self._refuse(array, codes < 0, f"To use names, say {self.naming}." if self.names is None else step)
        return self._in_range(codes)

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        if labels.ndim != 2 or labels.dtype.kind not in "iu" or self._numeric_names:
            return None
        return self._in_range(labels, observed)

    def _in_range(self, codes: Batch, observed: BoolArray | None = None) -> Batch:
        """Return integer codes in the smallest type, or name the first that is out of range."""
        wrong = (codes < 0) | (codes >= self.k)
        if observed is not None:
            wrong &= observed
        step = "Correct it, or name the value that means 'abstains' (Votes.from_matrix(..., abstain=...))."
        self._refuse(codes, wrong, step)
        return codes.astype(np.int8 if self.k <= 127 else np.int32, copy=False)

    def _refuse(self, labels: Batch, wrong: BoolArray, step: str) -> None:
        """Raise an error about the first label that is wrong, if one is."""
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            expected = f"a {self.noun} 0 .. {self.k - 1} of the {self.k} there are"
            if self.names is not None:
                expected = f"a known {self.noun} ({first_few(self.names)})"
            raise InvalidLabelError(f"label {plain_value(labels.flat[index])!r} is not {expected}. {step}", index)

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        """Return names, or the codes where the votes came as codes."""
        if self.names is None or (like is not None and np.dtype(like).kind in "biuf" and not self._numeric_names):
            return batch.astype(np.int64)
        names: Batch = np.array(self.names)
        if names.dtype.kind not in "biuf" or self.names != tuple(names.tolist()):
            names = as_object_array(self.names)
        return np.asarray(names[batch.astype(np.int64)])

    def to_arrow(self, batch: Batch) -> pa.Array:
        """Return labels as an Arrow column, with nulls for missing labels. Names of several types become text."""
        if batch.dtype.kind in "iu":
            if self._numeric_names:  # -1 means "no label" unless it is the name of a label
                return pa.array(batch, type=pa.int64(), mask=(batch == -1) & (-1 not in (self.names or ())))
            return pa.array(batch, type=pa.int32(), mask=batch < 0)
        return arrow_column([None if is_null(label) else label for label in batch.tolist()])

    def from_arrow(self, column: pa.Array) -> Batch:
        return as_numbers(column.to_pylist())


def check_distances(distance: Any, left: Batch, right: Batch) -> FloatArray:
    """Return distances as floats, or raise an error that names the pair of labels."""
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
            f"{plain_value(right[index])!r} (pair {index}). A distance is finite and never negative, and at most "
            f"{FARTHEST:g}."
        )
    tiny = (array < 1.0 / FARTHEST) & (array > 0)
    return np.where(tiny, 0.0, array) if tiny.any() else array


def as_numbers(labels: Any) -> Batch:
    """Return an array of numbers if all labels are numbers or arrays of one shape, else an array of objects."""
    if isinstance(labels, np.ndarray):
        return labels
    items = list(labels)
    if items and all(isinstance(item, (int, float, np.number)) and not isinstance(item, bool) for item in items):
        return np.array(items)
    if items and all(isinstance(item, np.ndarray) and item.shape == items[0].shape for item in items):
        return np.stack(items)
    return as_object_array(items)


def is_missing(label: Any) -> bool:
    """Return whether a value stands for "no label": None, NaN, or an array of NaN."""
    if isinstance(label, np.ndarray):
        return bool(label.dtype.kind == "f" and label.size > 0 and np.isnan(label).all())
    return is_null(label)
