"""Records: structured arrays that also say which fields are there, and what users write for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array, is_null
from consilience.estimation.protocol import Chunk
from consilience.exceptions import ConsilienceError, InvalidLabelError
from consilience.label_types.codes import plain_value

__all__ = [
    "any_part",
    "as_cells_of",
    "as_column",
    "as_record",
    "is_missing",
    "is_packed",
    "layout",
    "of_field",
    "pack",
    "part_labels",
    "part_observed",
    "part_of",
    "unknown_field",
]

LABELS, OBSERVED = "labels", "observed"


def layout(parts: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> np.dtype[Any]:
    """Return the type of records whose parts have these types and label shapes."""
    labels = np.dtype([(name, dtype, shape) for name, (dtype, shape) in parts.items()])
    return np.dtype([(LABELS, labels), (OBSERVED, np.dtype([(name, np.bool_) for name in parts]))])


def pack(labels: Mapping[str, Batch], observed: Mapping[str, BoolArray]) -> Batch:
    """Return records from one array of labels per part, and from where the part is there."""
    shape = next(iter(observed.values())).shape
    dtype = layout({name: (array.dtype, array.shape[len(shape) :]) for name, array in labels.items()})
    packed = np.zeros(shape, dtype=dtype)
    for name, array in labels.items():
        packed[LABELS][name] = array
        packed[OBSERVED][name] = observed[name]
    return packed


def is_packed(array: Batch, names: tuple[str, ...]) -> bool:
    """Return whether an array holds records with these parts."""
    return array.dtype.names == (LABELS, OBSERVED) and array.dtype[LABELS].names == names


def part_labels(records: Batch, name: str) -> Batch:
    """Return the labels of one part, in an array of their own."""
    return np.ascontiguousarray(records[LABELS][name])


def part_observed(records: Batch, name: str) -> BoolArray:
    """Return where one part is there."""
    return np.ascontiguousarray(records[OBSERVED][name])


def any_part(records: Batch) -> BoolArray:
    """Return which labels hold anything at all; all of them where they are no records."""
    if records.dtype.names != (LABELS, OBSERVED):
        return np.ones(records.shape[:1], dtype=bool)
    found = np.zeros(records.shape, dtype=bool)
    for name in records.dtype[LABELS].names or ():
        found |= records[OBSERVED][name]
    return found


def part_of(chunk: Chunk, name: str) -> Chunk:
    """Return the votes on one part: a source that leaves it out abstains there."""
    observed = chunk.observed & part_observed(chunk.labels, name)
    if chunk.known is None or chunk.is_known is None:
        return Chunk(part_labels(chunk.labels, name), observed, chunk.groups)
    is_known = chunk.is_known & part_observed(chunk.known, name)
    return Chunk(part_labels(chunk.labels, name), observed, chunk.groups, part_labels(chunk.known, name), is_known)


@contextmanager
def of_field(name: str) -> Iterator[None]:
    """Say in an error of the library which field it is about."""
    try:
        yield
    except ConsilienceError as error:
        error.args = (f"field {name!r}: {error}",)
        raise


def as_record(value: Any, index: int, names: Collection[str]) -> Mapping[str, Any]:
    """Return a record as a mapping, or say what is wrong with it."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {item.name: getattr(value, item.name) for item in fields(value)}
    if not isinstance(value, Mapping):
        raise InvalidLabelError(
            f"label {plain_value(value)!r} is not a record. Give a dict with the fields {', '.join(names)}; leave out "
            "those in which the source abstains.",
            index,
        )
    for name in value:
        if name not in names:
            raise unknown_field(name, names, index)
    return value


def unknown_field(name: Any, names: Collection[str], index: int | None = None) -> InvalidLabelError:
    """Return the error for a field that there is not."""
    close = get_close_matches(str(name), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InvalidLabelError(f"field {name!r} is unknown.{hint} Fields: {', '.join(names)}.", index)


def is_missing(value: Any) -> bool:
    """Return whether a source abstains here: None, NaN, or an array that is NaN throughout."""
    if isinstance(value, np.ndarray):
        return bool(value.dtype.kind == "f" and value.size > 0 and np.isnan(value).all())
    return is_null(value)


def as_column(values: list[Any]) -> Batch:
    """Return labels as an array of numbers where they are numbers, or rows of numbers of one shape."""
    if all(isinstance(value, (bool, int, float, np.number, np.bool_)) for value in values):
        return _numbers(values)
    if all(isinstance(value, (list, tuple, np.ndarray)) for value in values):
        try:
            rows = np.asarray(values)
        except ValueError:  # of different lengths
            return as_object_array(values)
        if rows.dtype.kind in "biuf" and rows.size:
            return rows
    return as_object_array(values)


def _numbers(values: list[Any]) -> Batch:
    try:
        numbers = np.array(values)
    except OverflowError:
        return as_object_array(values)
    return numbers if numbers.dtype.kind in "biuf" else as_object_array(values)


def as_cells_of(name: str, table: Any, minus_one_is_a_label: bool) -> npt.NDArray[np.object_]:
    """Return a table of the labels of one field as ``(n, m)`` objects, None where a source abstains."""
    if isinstance(table, np.ndarray) and table.ndim == 2 and table.dtype.kind in "iuf" and table.size:
        missing = np.isnan(table) if table.dtype.kind == "f" else (table == -1) & (not minus_one_is_a_label)
        numbers = table.astype(object)
        numbers[missing] = None
        return numbers
    rows = [list(row) for row in (table if isinstance(table, (list, tuple)) else np.asarray(table))]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or 0 in widths:
        raise InvalidLabelError(
            f"The table of {name!r} is no table with one row per item and one column per source. "
            "Give every row the same number of cells, None where a source abstains."
        )
    cells = as_object_array(plain_value(cell) for row in rows for cell in row)
    for index, cell in enumerate(cells):
        if is_missing(cell) or (not minus_one_is_a_label and _is_minus_one(cell)):
            cells[index] = None
    return cells.reshape(len(rows), widths.pop())


def _is_minus_one(cell: Any) -> bool:
    if isinstance(cell, np.ndarray):
        return bool(cell.dtype.kind in "iu" and cell.size > 0 and (cell == -1).all())
    return isinstance(cell, int) and cell == -1
