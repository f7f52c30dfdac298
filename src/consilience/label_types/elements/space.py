"""Sets of boxes, as drawn on images, and sets of spans, as marked in texts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, FloatArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError
from consilience.json_text import parse_json
from consilience.label_types.base import LabelSpace, Unit
from consilience.label_types.codes import checked_names
from consilience.label_types.elements.law import ElementLaw, spread_of_overlap
from consilience.label_types.elements.reader import ElementReader, united
from consilience.lazy import pyarrow as pa

#: Least overlap at which elements of two sources may be the same. Boxes that overlap by .4 are nearly always one
#: object. The ends of spans are less certain.
BOX_THRESHOLD, SPAN_THRESHOLD = 0.4, 0.2
#: How often another source marks the same false element. Votes do not identify this rate. Texts have fewer places.
BOX_COINCIDENCE, SPAN_COINCIDENCE = 0.01, 0.03
#: For simulations: the share of a source's cost that comes from inexact corners, the side of images, and the length of
#: texts.
SHARE_OF_PLACES, USUAL_SIDE, USUAL_LENGTH = 0.3, 1000.0, 1500
OVERLAPS = ("merge", "keep", "forbid")


class ElementSpace(LabelSpace):
    """Sets of elements with corners and perhaps classes."""

    classes: Sequence[str] | None

    @property
    @abstractmethod
    def reader(self) -> ElementReader:
        """How labels are written."""

    @property
    @abstractmethod
    def law(self) -> ElementLaw: ...

    @abstractmethod
    def random_elements(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return random elements as ``(count, corners)``."""

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        """Return one minus F1."""
        return self.law.cost(left, right)

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        return as_object_array(self.tidy(self._random_set(int(size), rng)) for size in rng.integers(1, 6, n))

    def tidy(self, elements: FloatArray) -> FloatArray:
        """Return a set in the form of labels of this space."""
        return elements

    def _random_set(self, size: int, rng: np.random.Generator) -> FloatArray:
        corners = self.random_elements(size, rng)
        kinds = [] if self.classes is None else [rng.integers(0, len(self.classes), size)]
        return np.column_stack([corners, *kinds])

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        """Return one vote per center: elements with inexact corners, and some replaced by random ones."""
        cost = float(self.law.expected_cost(np.array([weight]))[0])
        close = 1.0 - SHARE_OF_PLACES * cost
        half = self.law.dimension
        spread = spread_of_overlap(close, half)
        votes = []
        for center in centers:
            moved = center[rng.random(len(center)) < (1.0 - cost) / close]
            side = (moved[:, half : 2 * half] - moved[:, :half]).mean(axis=1, keepdims=True)
            noise = spread * side * rng.normal(size=(len(moved), 2 * half))
            moved[:, : 2 * half] = self.in_order(moved[:, : 2 * half] + noise)
            votes.append(self.tidy(np.vstack([moved, self._random_set(len(center) - len(moved), rng)])))
        return as_object_array(votes)

    def in_order(self, corners: FloatArray) -> FloatArray:
        """Return elements with lower corners first, and within the limits."""
        ends = np.sort(corners.reshape(-1, 2, corners.shape[1] // 2), axis=1)
        if self.reader.limits is not None:
            ends = np.clip(ends, 0.0, self.reader.limits)
        return ends.reshape(corners.shape)

    def as_batch(self, labels: Any) -> Batch:
        return as_object_array(map(self.tidy, self.reader.read(labels)))

    def read_text(self, cells: Batch) -> Batch:
        read = list(cells)
        for index, cell in enumerate(read):
            if isinstance(cell, str) and cell.strip().startswith("["):
                try:
                    read[index] = parse_json(cell)
                except ValueError as error:
                    raise InvalidLabelError(f"label {cell!r} is not a list in JSON: {error}.", index) from None
        return as_object_array(read)

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        """Return one array of corners per set, or with classes a list of tuples that end with the name of the class."""
        return as_object_array(self._written(cell) for cell in batch)

    def _written(self, cell: Any) -> Any:
        if not isinstance(cell, np.ndarray) or cell.dtype == object:  # no votes, or already written
            return cell
        corners = cell[:, : len(self.reader.corners)]
        if self.reader.whole:
            corners = np.rint(corners).astype(np.int64)
        if self.classes is None:
            return corners
        kinds = [self.classes[code] for code in cell[:, -1].astype(np.int64).tolist()]
        return [(*row, kind) for row, kind in zip(corners.tolist(), kinds, strict=True)]

    def unit(self, parameters: Any) -> Unit:
        return Unit(
            "F1", "the F1 of a vote against the true label, with matches weighted by overlap", lambda cost: 1.0 - cost
        )

    def score(self, predicted: Batch, gold: Batch) -> float:
        """Return the mean F1."""
        return 1.0 - float(self.distance(predicted, gold).mean()) if len(gold) else float("nan")

    def to_arrow(self, batch: Batch) -> pa.Array:
        number = pa.int64() if self.reader.whole else pa.float64()
        fields = [(name, number) for name in self.reader.corners]
        if self.classes is not None:
            fields.append(("label", pa.string()))
        names = [name for name, _ in fields]
        rows = [
            None if is_null(label) else [dict(zip(names, row, strict=True)) for row in self._written(label)]
            for label in batch
        ]
        return pa.array(rows, type=pa.list_(pa.struct(fields)))

    def from_arrow(self, column: pa.Array) -> Batch:
        return as_object_array(
            None if row is None else [tuple(element.values()) for element in row] for row in column.to_pylist()
        )


@dataclass(frozen=True)
class Boxes(ElementSpace):
    """Sets of boxes; the cost is one minus the F1 of boxes matched one to one, with matches weighted by overlap.

    A label is a list of ``(x1, y1, x2, y2)``, or of ``(x1, y1, x2, y2, class)``: two opposite corners with
    ``x1 <= x2`` and ``y1 <= y2``. The empty list means that there are no boxes; None abstains.

    Boxes are matched across sources. Who drew a match and who did not shows how probable it is. The matches with the
    largest expected F1 are kept, with weighted medians of the corners and the class of largest weight.

    Parameters
    ----------
    classes
        Names of the classes, if boxes have classes.
    size
        Width and height of the images, if they are all the same; boxes beyond it are refused.

    Examples
    --------
    >>> from consilience import LabelModel
    >>> votes = [[[(i, 0, i + 9, 9)], [(i, 0, i + 9, 9)], [(i, 0, i + 8, 9), (90, 0, 95, 7)]] for i in range(40)]
    >>> labels = LabelModel(Boxes()).fit(votes).predict([*votes, [[], [], [(3, 3, 9, 9)]]])
    >>> labels[7], labels[40]
    (array([[ 7.,  0., 16.,  9.]]), array([], shape=(0, 4), dtype=float64))
    """

    classes: Sequence[str] | None = None
    size: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", checked_names("classes", self.classes, "Class", "['car', 'person']"))
        if self.size is None:
            return
        try:
            width, height = (float(side) for side in self.size)
            valid = 0.0 < width < np.inf and 0.0 < height < np.inf
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise InvalidLabelError(
                f"size={self.size!r} is not (width, height). Give two positive numbers, such as (640, 480)."
            )
        object.__setattr__(self, "size", (width, height))

    @cached_property
    def reader(self) -> ElementReader:
        return ElementReader("box", ("x1", "y1", "x2", "y2"), self.classes, self.size)

    @cached_property
    def law(self) -> ElementLaw:
        return ElementLaw(2, BOX_THRESHOLD, BOX_COINCIDENCE, len(self.classes or ()))

    def random_elements(self, count: int, rng: np.random.Generator) -> FloatArray:
        width, height = self.size or (USUAL_SIDE, USUAL_SIDE)
        middle = rng.uniform(0.0, 1.0, (count, 2)) * (width, height)
        sides = np.exp(rng.normal(-2.4, 0.4, (count, 2))) * (width, height)
        return self.in_order(np.hstack([middle - sides / 2, middle + sides / 2]))


@dataclass(frozen=True)
class Spans(ElementSpace):
    """Sets of spans of text; the cost is one minus the F1 of the characters that are marked.

    A label is a list of ``(start, end)``, or of ``(start, end, class)``. Positions are counted from 0, and the end is
    exclusive. The empty list means that there are no spans; None abstains. Labels are found as for `Boxes`, with the
    largest expected F1 of characters.

    Parameters
    ----------
    classes
        Names of the classes, if spans have classes.
    length
        Length of the longest text; spans beyond it are refused.
    overlap
        How overlapping spans of one label are treated: "merge" joins spans of the same class that overlap or touch,
        "keep" leaves all as they are, "forbid" refuses them in votes and never predicts them.

    Examples
    --------
    >>> from consilience import LabelModel
    >>> votes = [[[(i, i + 5)], [(i, i + 6)], [(i, i + 5), (90, 94)]] for i in range(40)] + [[[], [], [(3, 9)]]]
    >>> labels = LabelModel(Spans()).fit(votes).predict(votes)
    >>> labels[7], labels[40]
    (array([[ 7, 12]]), array([], shape=(0, 2), dtype=int64))
    """

    classes: Sequence[str] | None = None
    length: int | None = None
    overlap: str = "merge"

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", checked_names("classes", self.classes, "Class", "['car', 'person']"))
        if self.overlap not in OVERLAPS:
            raise InvalidLabelError(f"overlap={self.overlap!r} is unknown. Use one of {', '.join(OVERLAPS)}.")
        length = self.length
        if length is not None and (isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 1):
            raise InvalidLabelError(f"length={length!r} is not the length of a text. Give a positive integer, or None.")

    @cached_property
    def reader(self) -> ElementReader:
        return ElementReader("span", ("start", "end"), self.classes, (float(self.length or np.inf),))

    @cached_property
    def law(self) -> ElementLaw:
        return ElementLaw(1, SPAN_THRESHOLD, SPAN_COINCIDENCE, len(self.classes or ()), self.overlap)

    def tidy(self, elements: FloatArray) -> FloatArray:
        """Merge spans that overlap, keep them, or drop the later ones, by `overlap`."""
        if self.overlap == "keep":
            return elements
        if self.overlap == "merge":
            return united(elements)[0] if len(elements) > 1 else elements
        kept, end = [], 0.0
        for place in np.argsort(elements[:, 0], kind="stable").tolist():
            if elements[place, 0] >= end:
                kept.append(place)
                end = elements[place, 1]
        return elements[np.array(kept, dtype=np.int64)]

    def as_batch(self, labels: Any) -> Batch:
        if self.overlap != "forbid":
            return super().as_batch(labels)
        batch = self.reader.read(labels)
        for index, spans in enumerate(batch):
            ordered = spans[np.argsort(spans[:, 0], kind="stable")]
            overlapping = np.flatnonzero(ordered[1:, 0] < ordered[:-1, 1])
            if len(overlapping):
                shown = [f"({span[0]:g}, {span[1]:g})" for span in ordered[overlapping[0] :][:2]]
                raise InvalidLabelError(
                    f"spans {shown[0]} and {shown[1]} overlap, which overlap='forbid' rules out. Correct them, or use "
                    "Spans(overlap='keep').",
                    index,
                )
        return batch

    def random_elements(self, count: int, rng: np.random.Generator) -> FloatArray:
        length = self.length or USUAL_LENGTH
        start = np.floor(rng.uniform(0.0, length, count))
        size = np.ceil(np.exp(rng.normal(-3.4, 0.5, count)) * length)
        return self.in_order(np.stack([start, start + size], axis=1))

    def in_order(self, corners: FloatArray) -> FloatArray:
        """Return spans of whole positions, none empty."""
        inside = np.rint(super().in_order(corners))
        start = np.minimum(inside[:, 0], (self.length or np.inf) - 1.0)
        return np.stack([start, np.maximum(inside[:, 1], start + 1.0)], axis=1)
