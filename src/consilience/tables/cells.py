"""Arrays and nested lists of votes become an array of labels and a mask; several such tables become one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from numbers import Number
from operator import is_
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array, is_null
from consilience.exceptions import InvalidVotesError
from consilience.label_types.base import LabelSpace

# Values of these types are never null, so a column of them need not be checked value by value.
_NEVER_NULL = frozenset({str, bytes, int, bool, list, tuple, dict, set, frozenset, np.ndarray})
#: Dtypes of plain numbers: the types of Python, not their subclasses such as enums, and those of NumPy.
_NUMBERS: tuple[tuple[type, tuple[type, ...], tuple[type, ...]], ...] = (
    (bool, (bool,), (np.bool_,)),
    (np.int64, (int, bool), (np.integer,)),
    (np.float64, (int, bool, float), (np.integer, np.floating)),
)


def blank(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Batch:
    """Return labels nobody gave: NaN, None or zero, whichever the dtype can hold."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        return np.full(shape, np.nan, dtype=dtype)
    return np.empty(shape, dtype=object) if kind == "O" else np.zeros(shape, dtype=dtype)


def null_mask(values: npt.NDArray[np.object_]) -> BoolArray:
    """Return which objects stand for "no label" (None, NaN, NaT, a pandas NA)."""
    listed = values.reshape(-1).tolist()
    only_none = set(map(type, listed)) - _NEVER_NULL <= {type(None)}
    nulls = map(is_, listed, repeat(None)) if only_none else map(is_null, listed)
    return np.fromiter(nulls, dtype=bool, count=len(listed)).reshape(values.shape)


def tighten(values: npt.NDArray[np.object_], null: BoolArray) -> Batch:
    """Return objects as a numeric array where every one of them is a plain number.

    Anything else (text, lists, a mixture) stays an object array, with None for the nulls.
    """
    present = values[~null]
    kinds = set(map(type, present.tolist()))
    for dtype, plain, generic in _NUMBERS if kinds else ():
        if not all(kind in plain or issubclass(kind, generic) for kind in kinds):
            continue
        try:
            typed = blank(values.shape, dtype)
            typed[~null] = present.astype(dtype)
            return typed
        except OverflowError:  # a whole number beyond 64 bits stays a Python integer
            break
    if null.any():
        values = values.copy()
        values[null] = None
    return values


def differs_from(labels: Batch, abstain: Any) -> BoolArray:
    """Return where a label is something else than the abstain value the caller named."""
    if abstain is None:
        return np.ones(labels.shape, dtype=bool)
    kind = labels.dtype.kind
    if kind == "O":
        same = (not isinstance(v, np.ndarray) and bool(v == abstain) for v in labels.flat)
        return ~np.fromiter(same, dtype=bool, count=labels.size).reshape(labels.shape)
    if kind == "U" and not isinstance(abstain, str):
        # np.array([["spam", -1]]) silently converts -1 to "-1", and an abstention would become a class.
        found = np.argwhere(labels == str(abstain))
        if len(found):
            row, column = found[0].tolist()
            raise InvalidVotesError(
                f"The votes are text, and row {row}, column {column} holds {str(abstain)!r}, while "
                f"the abstain value is the number {abstain!r}. Pass abstain={str(abstain)!r}, or "
                f"an object array that keeps numbers as numbers."
            )
        return np.ones(labels.shape, dtype=bool)
    if kind in "biufc" and not isinstance(abstain, (Number, np.bool_)):
        raise InvalidVotesError(
            f"abstain={abstain!r} is not a number, but the votes are ({labels.dtype}). "
            f"Pass the number that stands for an abstention, for example abstain=-1."
        )
    return np.asarray(labels != abstain, dtype=bool)


def read_cells(
    data: Any, sources: Sequence[str] | None = None, *, allow_partial: bool = False
) -> tuple[Batch, BoolArray]:
    """Return labels ``(n, m, *label_shape)`` or ``(n, m)`` objects, and where there is one.

    NaN, None and masked cells are not labels. An array is not copied unless it holds objects.
    """
    if isinstance(data, np.ma.MaskedArray):
        _check_shape(data)
        seen = _whole_cells(np.ma.getmaskarray(data), data, sources, allow_partial)
        array = np.asarray(data.data)
        if array.dtype.kind in "fcO" and not seen.all():  # masked values have no meaning
            array = array.copy()
            array[~seen] = None if array.dtype == object else np.nan
        labels, observed = read_cells(array, sources, allow_partial=allow_partial)
        return labels, observed & seen
    array = _nested(data) if isinstance(data, (list, tuple)) else np.asarray(data)
    if array.dtype == object and array.ndim == 1 and any(map(_is_row, array)):
        array = _nested(array.tolist())
    _check_shape(array, type(data).__name__)
    if array.dtype == object and array.ndim > 2:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            array = _nested(array.tolist())
    observed = np.ones(array.shape[:2], dtype=bool)
    if array.dtype == object:
        observed = ~null_mask(array)
        array = tighten(array, ~observed)
        # An object array is a choice of the caller, nested lists are not.
        if array.dtype == object and not isinstance(data, np.ndarray):
            array = _stack(array, observed)
    if array.dtype.kind in "fc":
        observed = observed & _whole_cells(np.isnan(array), array, sources, allow_partial)
    elif array.dtype.kind in "mM":
        observed = ~np.all(np.isnat(array), axis=tuple(range(2, array.ndim)))
    return array, observed


def _check_shape(array: npt.NDArray[Any], kind: str = "array") -> None:
    if array.ndim == 0:
        raise InvalidVotesError(
            f"A table of votes is needed, but this is a single {kind}. Pass an "
            f"array of shape (items, sources), and call .toarray() on a sparse matrix first."
        )
    for size, what, part in zip(array.shape, ("items", "sources"), ("row", "column"), strict=False):
        if size == 0:
            raise InvalidVotesError(
                f"There are no {what}: the votes have shape {array.shape}. Pass at least one {part}."
            )
    if array.ndim == 1:
        raise InvalidVotesError(
            f"The votes are one-dimensional, shape {array.shape}, but need one row per item and one column per source. "
            "For a single source pass votes.reshape(-1, 1); for an (item, source, label) table use Votes.from_long."
        )


def _whole_cells(missing: BoolArray, array: Batch, sources: Sequence[str] | None, allow_partial: bool) -> BoolArray:
    """Return which cells hold a label, and refuse one that is there only in part."""
    if missing.ndim == 2:
        return ~missing
    axes = tuple(range(2, missing.ndim))
    absent: BoolArray = np.all(missing, axis=axes)
    partly = np.argwhere(missing.any(axis=axes) & ~absent)
    if len(partly) and not allow_partial:
        row, column = partly[0].tolist()
        names = sources if sources and len(sources) == missing.shape[1] else default_names(missing.shape[1])
        raise InvalidVotesError(
            f"Row {row}, source {names[column]!r}: only part of the label is there, {array[row, column].tolist()}. "
            "Give the whole label, make all of it NaN (or masked) where the source abstains, or mark the votes with "
            "observed=."
        )
    return ~absent


def _is_row(value: object) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _nested(data: Sequence[Any]) -> npt.NDArray[np.object_]:
    """Return nested lists as an (n, m) object array; the cells stay what they are."""
    rows = list(data)
    for index, row in enumerate(rows):
        if isinstance(row, dict):
            raise InvalidVotesError(
                f"Row {index} is a dict, not a list with one vote per source. "
                f"For (item, source, label) records use Votes.from_long(records)."
            )
        if not _is_row(row):
            if not any(map(_is_row, rows)):
                return as_object_array(rows)
            raise InvalidVotesError(
                f"Row {index} is {row!r}, not a list with one vote per source. "
                f"Write a row in which all sources abstain as a list of None."
            )
        if len(row) != len(rows[0]):
            raise InvalidVotesError(
                f"Row {index} has {len(row)} votes, but row 0 has {len(rows[0])}. "
                f"Give every item one entry per source, with None where a source abstains."
            )
    width = len(rows[0]) if rows else 0
    return as_object_array([cell for row in rows for cell in row]).reshape(len(rows), width)


def _stack(labels: npt.NDArray[np.object_], observed: BoolArray) -> Batch:
    """Return cells that are number lists of one common shape as one array, others as they are."""
    present = labels[observed].tolist()
    if not present or not all(map(_is_row, present)):
        return labels
    try:
        numbers = np.asarray(present)
    except ValueError:  # ragged
        return labels
    if numbers.dtype.kind not in "biuf" or numbers.size == 0:
        return labels
    stacked = blank(labels.shape + numbers.shape[1:], numbers.dtype)
    stacked[observed] = numbers
    return stacked


def same_labels(left: Batch, right: Batch) -> bool:
    """Return whether two batches hold the same labels, whatever their dtypes."""
    if left.dtype.kind == "O" or right.dtype.kind == "O":
        return all(map(same_label, left.tolist(), right.tolist()))
    return np.array_equal(left, right, equal_nan=left.dtype.kind == right.dtype.kind == "f")


def same_label(left: Any, right: Any) -> bool:
    """Return whether two labels of any type are equal."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.array_equal(left, right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_label(left[key], right[key]) for key in left)
    return bool(left == right)


def common_dtype(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Return a dtype that holds labels of all these dtypes as they are.

    Numbers meet in a number; text and numbers stay themselves, as objects.
    """
    kinds = {dtype.kind for dtype in dtypes}
    if not kinds or (len(kinds) > 1 and not kinds <= set("biuf")):
        return np.dtype(object)
    together = np.result_type(*dtypes)
    # NumPy combines unsigned and signed integers as floats, which would round them.
    return np.dtype(np.int64) if kinds <= set("biu") and together.kind == "f" else together


def stack_labels(
    parts: Sequence[tuple[Batch, BoolArray, npt.NDArray[np.intp]]], n_sources: int
) -> tuple[Batch, BoolArray]:
    """Return several tables below each other: labels, observed mask and the columns of each one's sources."""
    observed = np.zeros((sum(len(seen) for _, seen, _ in parts), n_sources), dtype=bool)
    voting = [labels for labels, seen, _ in parts if seen.any()] or [part[0] for part in parts]
    label_shapes = {labels.shape[2:] for labels in voting}
    if len(label_shapes) == 1:
        labels = blank(observed.shape + label_shapes.pop(), common_dtype([part.dtype for part in voting]))
    elif any(part.ndim == 2 and part.dtype != object for part in voting):
        raise InvalidVotesError(
            f"The parts have labels of different shapes: {' and '.join(map(str, sorted(label_shapes)))}. "
            "Concatenate votes of one label type only."
        )
    else:
        labels = blank(observed.shape, object)
    start = 0
    for part, seen, places in parts:
        observed[start : start + len(seen), places] = seen
        rows, columns = np.nonzero(seen)
        votes = part[rows, columns]
        labels[start + rows, places[columns]] = votes if votes.ndim == labels.ndim - 1 else as_object_array(votes)
        start += len(seen)
    return labels, observed


def spelled_out(labels: Batch, observed: BoolArray, space: LabelSpace | None, spelling: np.dtype[Any] | None) -> Batch:
    """Return the table of labels as they were written; cells that are not observed hold anything."""
    if spelling is None or spelling == labels.dtype or not observed.any():
        return labels
    if space is None:
        if spelling.kind in "biuf" and labels.dtype.kind in "biuf":
            return labels
        raise InvalidVotesError(
            "The labels are stored as codes, and the names behind them are not in the votes. Pass the label type as "
            "space."
        )
    batch = space.as_labels(space.as_batch(labels[observed]), spelling)
    written = np.empty(observed.shape, dtype=object)
    written[observed] = as_object_array(batch.tolist() if batch.dtype != object else batch)
    return written


def default_names(count: int) -> tuple[str, ...]:
    """Return the names that sources get when the caller gives none."""
    return tuple(f"source_{column}" for column in range(count))
