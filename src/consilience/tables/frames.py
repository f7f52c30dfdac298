"""Any dataframe becomes columns: NumPy values and a mask of nulls.

The only place that knows pandas, polars and Arrow, and it knows them through narwhals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array
from consilience.exceptions import InvalidVotesError
from consilience.tables.cells import blank, null_mask, tighten

# What other tools call the three columns of a long table.
ALIASES = {
    "item": {"item_id", "task", "task_id", "example", "id", "index", "row", "question", "query", "prompt"},
    "source": {"worker", "worker_id", "performer", "annotator", "annotator_id", "rater", "judge", "judge_id", "model"}
    | {"labeler", "user", "lf", "by"},
    "label": {"vote", "answer", "response", "rating", "score", "value", "annotation", "output"},
}
# What they are called where no column has one of the names above.
RARER_ALIASES = {
    "item": {"image", "image_id", "document", "document_id", "doc", "doc_id", "sentence", "sentence_id"},
    "source": set[str](),
    "label": {"labels", "annotations", "boxes", "spans", "entities", "translation", "transcription", "summary"},
}
_LARGEST_EXACT_FLOAT = 2.0**53


@dataclass(frozen=True, eq=False)
class Column:
    """One column: values (bool, integer, float or object) and where there is none."""

    values: Batch
    null: BoolArray


def is_frame(data: object) -> bool:
    """Return whether something is a dataframe (pandas, polars, Arrow, ...)."""
    if data is None or isinstance(data, (np.ndarray, list, tuple, dict, str, bytes)):
        return False  # the usual case needs no narwhals
    import narwhals as nw

    native: Any = data
    try:
        wrapped: object = nw.from_native(native, pass_through=True)
    except nw.exceptions.DuplicateError:  # a frame, whose columns `columns_of` will ask to rename
        return True
    return isinstance(wrapped, (nw.DataFrame, nw.LazyFrame))


def columns_of(frame: Any) -> dict[str, Column]:
    """Return the columns of any dataframe, or of a dict of columns, by name.

    NaN and null both count as null. Integers, floats and booleans stay typed; text, categories,
    lists and structs become Python objects, with None for null.

    Examples
    --------
    >>> column = columns_of({"label": ["cat", None, "NA"]})["label"]
    >>> column.values.tolist(), column.null.tolist()
    (['cat', None, 'NA'], [False, True, False])
    """
    if isinstance(frame, Mapping):
        return _columns_of_mapping(frame)
    import narwhals as nw

    try:
        wrapped: Any = nw.from_native(frame, pass_through=True)
        if isinstance(wrapped, nw.LazyFrame):
            raise InvalidVotesError(
                f"A lazy frame ({type(frame).__name__}) has no rows yet. Call .collect() on it first."
            )
        if not isinstance(wrapped, nw.DataFrame):
            raise InvalidVotesError(
                f"{type(frame).__name__} is not a table this library knows. Pass a pandas, polars "
                f"or Arrow table; for arrays use Votes.from_matrix or Votes.from_array."
            )
        names = wrapped.columns
    except nw.exceptions.DuplicateError:
        raise InvalidVotesError(
            f"Two columns have the same name: {', '.join(map(repr, _names_of(frame)))}. "
            f"Rename one of them; every source needs a name of its own."
        ) from None
    columns = {str(name): column_of_series(wrapped.get_column(name)) for name in names}
    if len(columns) < len(names):
        raise InvalidVotesError(f"Two column names read the same as text: {', '.join(map(repr, names))}. Rename one.")
    return columns


def records_to_columns(records: Sequence[Any], names: Sequence[str]) -> dict[str, Column]:
    """Return the columns of a list of dicts, or of tuples in the order of `names`."""
    if all(isinstance(record, Mapping) for record in records):
        found = dict.fromkeys(key for record in records for key in record)
        return {str(key): to_column([record.get(key) for record in records]) for key in found}
    for row, record in enumerate(records):
        if not isinstance(record, (tuple, list)) or len(record) != len(names):
            raise InvalidVotesError(
                f"Row {row} is {record!r}, but a record has {len(names)} entries: "
                f"({', '.join(names)}). Pass tuples like that, dicts, or a dataframe."
            )
    return {name: to_column([record[place] for record in records]) for place, name in enumerate(names)}


def to_column(values: Any) -> Column:
    """Return a column from a list, a one-dimensional array or a series."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise InvalidVotesError(f"A column is {values!r}, not a list with one entry per row. Pass lists or arrays.")
    array: npt.NDArray[Any] | None = None
    if not isinstance(values, (list, tuple)):
        array = np.asarray(values)
    if array is not None and array.ndim == 1 and array.dtype.kind in "biuf":
        return _column_of_numbers(array)
    return _column_of_objects(values)


def column_of_series(series: Any) -> Column:
    """Return the column of a narwhals series."""
    import narwhals as nw

    dtype = series.dtype
    null: BoolArray = np.array(series.is_null().to_numpy(), dtype=bool)
    if dtype.is_integer() or dtype == nw.Boolean:
        filled = series.fill_null(False if dtype == nw.Boolean else 0) if null.any() else series
        return Column(_column_of_numbers(np.asarray(filled.to_numpy())).values, null)
    if dtype.is_float():
        numbers = np.asarray(series.to_numpy())
        null |= np.isnan(numbers)
        if null.any() and _is_plain_pandas(series):
            numbers = _undo_float(numbers, null)
        return Column(numbers, null)
    if dtype == nw.String:
        objects = np.array(series.to_numpy(), dtype=object)
        objects[null] = None
        return Column(objects, null)
    # Not to_numpy: it makes arrays of lists, and loses the nulls of Arrow dictionaries.
    return _column_of_objects(series.to_list())


def missing_column(wanted: str, role: str, columns: Mapping[str, Column], frame: Any) -> InvalidVotesError:
    """Return the error for a column that is not there, with the ones that may be meant."""
    if wanted in (getattr(getattr(frame, "index", None), "names", None) or ()):
        hint = f"{wanted!r} is the index of this frame: call .reset_index() first."
    else:
        likely = [name for name in columns if name.lower() in ALIASES[role]]
        likely += [name for name in get_close_matches(wanted, columns) if name not in likely]
        meant = " or ".join(f"{role}={name!r}" for name in likely)
        hint = f"Did you mean {meant}?" if likely else f"Say which one it is with {role}=."
    listed = ", ".join(map(repr, columns)) or "none"
    return InvalidVotesError(f"There is no column {wanted!r}; the columns are {listed}. {hint}")


def _names_of(frame: Any) -> Sequence[Any]:
    """Return the column names of a frame that narwhals refuses; Arrow keeps data in `columns`."""
    names: Sequence[Any] = getattr(frame, "column_names", None) or list(frame.columns)
    return names


def _columns_of_mapping(frame: Mapping[Any, Any]) -> dict[str, Column]:
    columns = {str(name): to_column(values) for name, values in frame.items()}
    lengths = {name: len(column.null) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise InvalidVotesError(f"The columns have different lengths: {listed}. Give every column one entry per row.")
    return columns


def _column_of_numbers(array: npt.NDArray[Any]) -> Column:
    if array.dtype.kind == "f":
        return Column(array, np.isnan(array))
    null = np.zeros(len(array), dtype=bool)
    if array.dtype.kind != "u":
        return Column(array, null)
    # Unsigned and signed 64-bit integers only meet in float64, which would round them.
    if array.dtype.itemsize < 8 or not array.size or array.max() <= np.iinfo(np.int64).max:
        return Column(array.astype(np.int64), null)
    return Column(array.astype(object), null)


def _column_of_objects(values: Any) -> Column:
    objects = as_object_array(values)
    null = null_mask(objects)
    return Column(tighten(objects, null), null)


def _is_plain_pandas(series: Any) -> bool:
    """Return whether nulls force integers to floats here: pandas columns backed by NumPy."""
    return series.implementation.is_pandas_like() and isinstance(series.to_native().dtype, np.dtype)


def _undo_float(numbers: npt.NDArray[Any], null: BoolArray) -> npt.NDArray[Any]:
    """Return whole numbers as the integers they were before nulls came in."""
    present = numbers[~null]
    whole = (present == np.floor(present)) & (np.abs(present) <= _LARGEST_EXACT_FLOAT)
    if not whole.all():
        return numbers
    integers = blank(numbers.shape, np.int64)
    integers[~null] = present.astype(np.int64)
    return integers
