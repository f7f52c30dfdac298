"""Records: a label has several fields, each with its own label type (the paper's mixed label types)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array
from consilience.exceptions import InvalidLabelError, did_you_mean
from consilience.label_types.base import LabelSpace, Unit, is_missing
from consilience.label_types.codes import plain_value
from consilience.label_types.product.law import (
    Factor,
    ProductLaw,
    any_part,
    is_packed,
    layout,
    of_field,
    pack,
    part_labels,
    part_there,
)
from consilience.lazy import pyarrow as pa

__all__ = ["Product"]


@dataclass(frozen=True, init=False, eq=False)
class Product(LabelSpace):
    """Records with one label per field: a class and a score, a ranking and a confidence.

    A label is a dict. A field that is missing, None or NaN is an abstention in this field. The cost of a record is the
    sum of the costs of its fields, each divided by its chance cost (so that no field dominates) and multiplied by its
    weight. Every field is learned and labeled separately: a source may be good at one field and poor at another.

    Parameters
    ----------
    **factors
        One label space per field, which may be another `Product`.
    weights
        Weights of the fields in the cost and the confidence of a record; 1 by default. Labels do not depend on them.

    Examples
    --------
    >>> from consilience import Classes, LabelModel, Scores
    >>> space = Product(stars=Scores(), topic=Classes(["food", "travel"]))
    >>> space.distance(space.as_batch([{"stars": 5, "topic": "food"}]), space.as_batch([{"stars": 3, "topic": "food"}]))
    array([2.])
    >>> rng = np.random.default_rng(0)
    >>> stars = rng.normal(3.0, 1.0, (400, 1)) + rng.normal(0.0, [0.3, 0.6, 1.2], (400, 3))
    >>> topic = (rng.integers(2, size=(400, 1)) + (rng.random((400, 3)) > [0.7, 0.8, 0.9])) % 2
    >>> votes = space.records(stars=stars, topic=topic)
    >>> model = LabelModel(space).fit(votes)
    >>> sources = model.sources_.columns
    >>> [sources["source"][np.argmin(sources[name])] for name in ("stars error", "topic error_rate")]
    ['source_0', 'source_2']
    >>> sorted(model.predict(votes)[0])
    ['stars', 'topic']
    """

    factors: dict[str, LabelSpace]
    weights: dict[str, float]

    def __init__(self, *, weights: Mapping[str, float] | None = None, **factors: LabelSpace) -> None:
        if isinstance(weights, LabelSpace):
            raise InvalidLabelError(
                "A field cannot be called 'weights': that argument says how much the fields count. Rename the field."
            )
        if not factors:
            raise InvalidLabelError("Product needs at least one field, such as Product(stars=Scores()).")
        for name, space in factors.items():
            if not isinstance(space, LabelSpace):
                raise InvalidLabelError(
                    f"{name}={space!r} is not a label type. Give one per field, such as {name}=Scores()."
                )
            if not name or "/" in name:
                raise InvalidLabelError(f"A field cannot be called {name!r}. Use a name without '/'.")
        given = {} if weights is None else weights
        if not isinstance(given, Mapping):
            raise InvalidLabelError(
                f"weights={weights!r} is not a dict. Give one number per field, such as {{'a': 2.0}}."
            )
        for name, weight in given.items():
            if name not in factors:
                raise _unknown_field(name, factors)
            number = isinstance(weight, (int, float, np.number)) and not isinstance(weight, bool)
            if not (number and np.isfinite(weight) and weight > 0):
                raise InvalidLabelError(f"weights[{name!r}] is {weight!r}. Weights are positive numbers.")
        object.__setattr__(self, "factors", dict(factors))
        object.__setattr__(self, "weights", {name: float(given.get(name, 1.0)) for name in factors})

    def __repr__(self) -> str:
        parts = [f"{name}={space!r}" for name, space in self.factors.items()]
        changed = {name: weight for name, weight in self.weights.items() if weight != 1.0}
        return f"Product({', '.join([*parts, *([f'weights={changed}'] if changed else [])])})"

    @cached_property
    def law(self) -> ProductLaw:
        factors = {
            name: Factor(space.law, space.cost, self.weights[name], space.takes_prior)
            for name, space in self.factors.items()
        }
        return ProductLaw(factors, self._blank)

    @cached_property
    def _blank(self) -> np.dtype[Any]:
        """Type of records without any label."""
        empty = {name: space.as_batch(as_object_array([])) for name, space in self.factors.items()}
        return layout({name: (labels.dtype, labels.shape[1:]) for name, labels in empty.items()})

    @property
    def takes_prior(self) -> bool:
        return any(space.takes_prior for space in self.factors.values())

    def as_batch(self, labels: Any) -> Batch:
        array = labels if isinstance(labels, np.ndarray) else as_object_array(labels)
        names = tuple(self.factors)
        if is_packed(array, names):
            return array
        if array.ndim != 1:
            raise InvalidLabelError(
                f"Labels of shape {array.shape[1:]} are not records. Give dicts with the fields {', '.join(names)}."
            )
        records = [_as_record(value, index, self.factors) for index, value in enumerate(array.tolist())]
        batches, observed = {}, {}
        for name, space in self.factors.items():
            rows = np.flatnonzero([not is_missing(record.get(name)) for record in records])
            found = part_labels(np.zeros(0, dtype=self._blank), name)
            if len(rows):
                try:
                    with of_field(name):
                        found = space.as_batch(_as_column([records[row][name] for row in rows]))
                except InvalidLabelError as error:
                    index = None if error.index is None else int(rows[error.index])
                    raise InvalidLabelError(str(error), index) from None
            batches[name] = _spread(found, rows, len(records))
            observed[name] = _spread(any_part(found), rows, len(records))
        return pack(batches, observed)

    def has_opinion(self, batch: Batch) -> BoolArray:
        return any_part(batch)

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        return labels if is_packed(labels, tuple(self.factors)) else None

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        columns = {}
        for name, space in self.factors.items():
            rows = np.flatnonzero(part_there(batch, name))
            if len(rows):
                columns[name] = rows, space.as_labels(part_labels(batch, name)[rows], np.dtype(object))
        return self._dicts(any_part(batch), columns)

    def _dicts(self, there: BoolArray, columns: Mapping[str, tuple[IntArray, Batch]]) -> Batch:
        """Return dicts with every field, None for missing labels; None for a record without any label."""
        records = as_object_array(dict.fromkeys(self.factors) if one else None for one in there)
        for name, (rows, labels) in columns.items():
            values = labels.tolist() if labels.ndim == 1 else list(labels)  # plain numbers, or one array per label
            for row, label in zip(rows, values, strict=True):
                records[row][name] = label
        return records

    def records(self, **tables: Any) -> npt.NDArray[np.object_]:
        """Return votes as records from one table per field, ``(n, m)`` or ``(n, m, *label_shape)``.

        NaN and None mean that a source abstains, and so does -1 in tables of integers if it is not a label of the
        field. A cell that is empty in every table is None.

        Examples
        --------
        >>> from consilience import Classes, Scores
        >>> space = Product(stars=Scores(), topic=Classes(2))
        >>> space.records(stars=[[4.5, None]], topic=[[1, -1]])
        array([[{'stars': 4.5, 'topic': 1}, None]], dtype=object)
        """
        for name in tables:
            if name not in self.factors:
                raise _unknown_field(name, self.factors)
        if not tables:
            raise InvalidLabelError(f"Give at least one table: {', '.join(f'{name}=...' for name in self.factors)}.")
        cells = {name: _as_cells_of(name, table, self.factors[name].contains(-1)) for name, table in tables.items()}
        shapes = {name: table.shape for name, table in cells.items()}
        if len(set(shapes.values())) > 1:
            listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise InvalidLabelError(f"The tables differ in shape: {listed}. Give the same items and sources in each.")
        columns = zip(*(table.ravel() for table in cells.values()), strict=True)
        made = ({name: label for name, label in zip(cells, row, strict=True) if label is not None} for row in columns)
        return as_object_array(record or None for record in made).reshape(next(iter(shapes.values())))

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        """Return the weighted sum of the costs of the fields; a field that either record lacks costs nothing.

        The cost of a field is divided by its chance cost without votes: for `Scores` twice the `variance`, or that of
        numbers spread over the `range`, or 2.
        """
        total = np.zeros(len(left))
        for rate, (name, space) in zip(self.law.rate, self.factors.items(), strict=True):
            rows = np.flatnonzero(part_there(left, name) & part_there(right, name))
            if len(rows):
                total[rows] += rate * space.cost(part_labels(left, name)[rows], part_labels(right, name)[rows])
        return total

    def unit(self, parameters: Any) -> Unit:
        parts = {name: space.unit(parameters[name]) for name, space in self.factors.items()}
        meaning = "the sum of the costs of the fields, each relative to its chance cost"
        return Unit("relative_cost", meaning, is_share=False, parts=parts)

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        batches = {}
        for name, space in self.factors.items():
            with of_field(name):
                batches[name] = space.random(n, rng)
        return pack(batches, dict.fromkeys(self.factors, np.ones(n, dtype=bool)))

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        drawn = {}
        for rate, (name, space) in zip(self.law.rate, self.factors.items(), strict=True):
            rows = np.flatnonzero(part_there(centers, name))
            found = part_labels(centers, name)[rows]
            if len(rows):
                with of_field(name):
                    found = space.sample_around(found, weight * float(rate), rng)
            drawn[name] = _spread(found, rows, len(centers))
        return pack(drawn, {name: part_there(centers, name) for name in self.factors})

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the best label of each field; a field without votes is empty."""
        found, there = {}, {}
        for name, space in self.factors.items():
            counted = np.where(part_there(votes, name), weights, 0.0)
            there[name] = np.asarray((counted > 0).any(axis=1))
            rows = np.flatnonzero(there[name])
            own = part_labels(votes, name)[rows]
            best = space.weighted_mean(own, counted[rows]) if len(rows) else own[:, 0]
            found[name] = _spread(best, rows, len(votes))
        return pack(found, there)

    def to_arrow(self, batch: Batch) -> pa.Array:
        """Return a struct column with one child per field, with nulls for missing records and fields."""
        if batch.dtype.names is not None:  # encoded
            batch = self.as_labels(batch)
        rows = [None if is_missing(label) else label for label in batch]
        children = []
        for name, space in self.factors.items():
            values = [None if row is None else row.get(name) for row in rows]
            there = np.array([not is_missing(value) for value in values], dtype=bool)
            if not there.any():
                children.append(pa.nulls(len(rows)))
                continue
            stored = space.to_arrow(_as_column([values[row] for row in np.flatnonzero(there)]))
            children.append(stored.take(pa.array(np.cumsum(there) - 1, mask=~there)))
        missing = pa.array([row is None for row in rows], type=pa.bool_())
        return pa.StructArray.from_arrays(children, names=list(self.factors), mask=missing)

    def from_arrow(self, column: pa.Array) -> Batch:
        whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        columns = {}
        for position, child in enumerate(whole.flatten()):
            name = whole.type.field(position).name
            if name not in self.factors:
                raise _unknown_field(name, self.factors)
            rows = np.flatnonzero(np.asarray(child.is_valid().to_pylist(), dtype=bool))
            if len(rows):
                columns[name] = rows, self.factors[name].from_arrow(child.drop_null())
        return self._dicts(np.asarray(whole.is_valid().to_pylist(), dtype=bool), columns)

    def spec(self) -> dict[str, Any]:
        return {"weights": self.weights, **self.factors}


def _spread(found: Batch, rows: npt.NDArray[np.intp], n: int) -> Batch:
    spread = np.zeros((n, *found.shape[1:]), dtype=found.dtype)
    spread[rows] = found
    return spread


def _as_record(value: Any, index: int, names: Collection[str]) -> Mapping[str, Any]:
    """Return a record as a mapping, or raise an error."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {item.name: getattr(value, item.name) for item in fields(value)}
    if not isinstance(value, Mapping):
        raise InvalidLabelError(
            f"label {plain_value(value)!r} is not a record. Give a dict with the fields {', '.join(names)}, without "
            "those in which the source abstains.",
            index,
        )
    for name in value:
        if name not in names:
            raise _unknown_field(name, names, index)
    return value


def _unknown_field(name: Any, names: Collection[str], index: int | None = None) -> InvalidLabelError:
    """Return the error for an unknown field."""
    return InvalidLabelError(
        f"field {name!r} is unknown.{did_you_mean(name, names)} Fields: {', '.join(names)}.", index
    )


def _as_column(values: list[Any]) -> Batch:
    """Return labels as an array of numbers if they are numbers or rows of one length, else of objects."""
    numeric = (bool, int, float, np.number, np.bool_, list, tuple, np.ndarray)
    if all(isinstance(value, numeric) for value in values):
        try:
            array = np.asarray(values)
        except (ValueError, OverflowError):  # different lengths, or too large
            return as_object_array(values)
        if array.dtype.kind in "biuf" and array.size:
            return array
    return as_object_array(values)


def _as_cells_of(name: str, table: Any, minus_one_is_a_label: bool) -> npt.NDArray[np.object_]:
    """Return a table of the labels of one field as ``(n, m)`` objects, None for abstentions."""
    table = table if isinstance(table, (list, tuple)) else np.asarray(table)
    rows = [row.tolist() if isinstance(row, np.ndarray) and row.ndim == 1 else list(row) for row in table]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or 0 in widths:
        raise InvalidLabelError(
            f"The table of {name!r} does not have one row per item and one column per source. "
            "Give every row the same number of cells, None where a source abstains."
        )
    cells = as_object_array(plain_value(cell) for row in rows for cell in row)
    for index, cell in enumerate(cells):
        minus_one = isinstance(cell, int) and cell == -1
        if isinstance(cell, np.ndarray):
            minus_one = cell.dtype.kind in "iu" and cell.size > 0 and bool((cell == -1).all())
        if is_missing(cell) or (minus_one and not minus_one_is_a_label):
            cells[index] = None
    return cells.reshape(len(rows), widths.pop())
