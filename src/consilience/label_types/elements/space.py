"""What sets of boxes and sets of spans have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, FloatArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError
from consilience.label_types.base import LabelSpace
from consilience.label_types.elements.law import ElementLaw
from consilience.label_types.elements.overlaps import spread_of_overlap
from consilience.label_types.elements.reader import ElementReader

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ElementSpace"]

#: In simulations: share of the cost of a source that comes from corners drawn inexactly.
SHARE_OF_PLACES = 0.3


class ElementSpace(LabelSpace):
    """Sets of elements with corners, and perhaps classes."""

    classes: Sequence[str] | None

    @property
    @abstractmethod
    def reader(self) -> ElementReader:
        """How labels are written."""

    @property
    @abstractmethod
    def elements(self) -> ElementLaw:
        """How votes scatter."""

    @abstractmethod
    def random_elements(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return random elements as ``(count, corners)``."""

    @property
    def law(self) -> ElementLaw:
        return self.elements

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        """Return one minus F1."""
        return self.elements.cost(left, right)

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        return as_object_array(self.tidy(self._random_set(int(size), rng)) for size in rng.integers(1, 6, n))

    def tidy(self, elements: FloatArray) -> FloatArray:
        """Return a set as labels of this space have it."""
        return elements

    def _random_set(self, size: int, rng: np.random.Generator) -> FloatArray:
        corners = self.random_elements(size, rng)
        if self.classes is None:
            return corners
        return np.column_stack([corners, rng.integers(0, len(self.classes), size)])

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        """Return one vote per centre: elements drawn inexactly, and some replaced by random ones."""
        cost = float(self.elements.expected_cost(np.array([weight]))[0])
        close = 1.0 - SHARE_OF_PLACES * cost
        kept_share = (1.0 - cost) / close
        spread = spread_of_overlap(close, self.elements.dimension)
        votes = []
        for center in centers:
            half = self.elements.dimension
            width = 2 * half
            kept = center[rng.random(len(center)) < kept_share]
            side = (kept[:, half:width] - kept[:, :half]).mean(axis=1, keepdims=True) if len(kept) else kept[:, :1]
            moved = kept.copy()
            moved[:, :width] += spread * side * rng.normal(size=(len(kept), width))
            moved[:, :width] = self.in_order(moved[:, :width])
            votes.append(self.tidy(np.vstack([moved, self._random_set(len(center) - len(kept), rng)])))
        return as_object_array(votes)

    def in_order(self, corners: FloatArray) -> FloatArray:
        """Return elements with lower corners first, and inside of what there is."""
        half = corners.shape[1] // 2
        low = np.minimum(corners[:, :half], corners[:, half:])
        high = np.maximum(corners[:, :half], corners[:, half:])
        limits = self.reader.limits
        if limits is not None:
            low, high = np.clip(low, 0.0, limits), np.clip(high, 0.0, limits)
        return np.hstack([low, high])

    def as_batch(self, labels: Any) -> Batch:
        return as_object_array(self.tidy(cell) for cell in self.reader.read(labels))

    def read_text(self, cells: Batch) -> Batch:
        return as_object_array(_from_json(cell, index) for index, cell in enumerate(cells))

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        """Return one array of corners per set, or with classes a list of tuples that end in the name of the class."""
        return as_object_array(self._written(cell) for cell in batch)

    def _written(self, cell: Any) -> Any:
        if not isinstance(cell, np.ndarray) or cell.dtype == object:  # nobody voted, or written already
            return cell
        whole = self.reader.whole
        corners = np.rint(cell[:, : len(self.reader.corners)]).astype(np.int64) if whole else cell
        if self.classes is None:
            return corners
        codes = cell[:, -1].astype(np.int64).tolist()
        listed = corners[:, : len(self.reader.corners)].tolist()
        return [(*row, self.classes[code]) for row, code in zip(listed, codes, strict=True)]

    def score(self, predicted: Batch, gold: Batch) -> float:
        """Return the mean F1."""
        return 1.0 - float(self.distance(predicted, gold).mean()) if len(gold) else float("nan")

    def to_arrow(self, batch: Batch) -> pa.Array:
        import pyarrow as pa

        number = pa.int64() if self.reader.whole else pa.float64()
        fields = [(name, number) for name in self.reader.corners]
        names = list(self.reader.corners)
        if self.classes is not None:
            fields.append(("label", pa.string()))
            names.append("label")
        rows = [None if is_null(label) else _records(self._written(label), names) for label in batch]
        return pa.array(rows, type=pa.list_(pa.struct(fields)))

    def from_arrow(self, column: pa.Array) -> Batch:
        return as_object_array(
            None if row is None else [tuple(element.values()) for element in row] for row in column.to_pylist()
        )


def _from_json(cell: Any, index: int) -> Any:
    """Return what a cell of text says; other cells as they are."""
    if not isinstance(cell, str) or not cell.strip().startswith("["):
        return cell
    import json

    try:
        return json.loads(cell)
    except ValueError as error:
        raise InvalidLabelError(f"label {cell!r} is no list in JSON: {error}.", index) from None


def _records(label: Iterable[Any], names: list[str]) -> list[dict[str, Any]]:
    rows = label.tolist() if isinstance(label, np.ndarray) else label
    return [dict(zip(names, row, strict=True)) for row in rows]
