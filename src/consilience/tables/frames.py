"""Any dataframe becomes columns: NumPy values and a mask of nulls.

The only place that knows pandas, polars and Arrow, and it knows them through narwhals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, as_object_array
from consilience.exceptions import InvalidVotesError
from consilience.lazy import narwhals as nw
from consilience.tables.cells import blank, null_mask, tighten

# Names of the three columns of a long table in other tools.
ALIASES = {
    "item": {"item_id", "task", "task_id", "example", "id", "index", "row", "question", "query", "prompt"},
    "source": {"worker", "worker_id", "performer", "annotator", "annotator_id", "rater", "judge", "judge_id", "model"}
    | {"labeler", "user", "lf", "by"},
    "label": {"vote", "answer", "response", "rating", "score", "value", "annotation", "output"},
}
# Further names, used if no column has one of the names above.
RARER_ALIASES = {
    "item": {"image", "image_id", "document", "document_id", "doc", "doc_id", "sentence", "sentence_id"},
    "source": set[str](),
    "label": {"labels", "annotations", "boxes", "spans", "entities", "translation", "transcription", "summary"}
    | {"reply", "grade", "verdict", "judgment"},
}
#: Names of these columns in result tables of Amazon Mechanical Turk and Toloka.
_CROWD_COLUMNS = {
    "item": r"hitid|assignment:task_id|input:.+",
    "source": r"workerid|assignment:worker_id",
    "label": r"answer\..+|output:.+",
}
#: Key of the line numbers of a text file in the metadata of its table.
LINES = b"consilience.lines"
_LARGEST_EXACT_FLOAT = 2.0**53


@dataclass(frozen=True, eq=False)
class Column:
    """One column: values (bool, integer, float or object) and where there is none."""

    values: Batch
    null: BoolArray


def is_dataset(data: object) -> bool:
    """Return whether something is a data set of Hugging Face, or a dict of its splits."""
    return type(data).__module__.startswith("datasets.") and hasattr(data, "with_format")


def native_frame(data: Any) -> Any:
    """Return a frame that narwhals knows: of a data set of Hugging Face its Arrow table, else the frame itself."""
    if not is_dataset(data):
        return data
    if isinstance(data, Mapping):
        raise InvalidVotesError(f"The data set has the splits {', '.join(map(repr, data))}. Choose one of them.")
    return data.with_format("arrow")[:]


def is_frame(data: object) -> bool:
    """Return whether something is a dataframe (pandas, polars, Arrow, ...) or a data set of Hugging Face."""
    if data is None or type(data) in (np.ndarray, list, tuple, dict, str, bytes):
        return False  # the usual case needs no narwhals
    if is_dataset(data):
        return True

    native: Any = data
    try:
        wrapped: object = nw.from_native(native, pass_through=True)
    except nw.exceptions.DuplicateError:  # a frame, whose columns `as_frame` asks to rename
        return True
    return isinstance(wrapped, (nw.DataFrame, nw.LazyFrame))


def as_frame(data: Any) -> nw.DataFrame[Any]:
    """Return a dataframe as narwhals sees it; its columns must have names of their own."""
    data = native_frame(data)
    try:
        wrapped: Any = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = getattr(data, "column_names", None) or list(data.columns)  # Arrow keeps data in `columns`
        raise InvalidVotesError(
            f"Two columns have the same name: {', '.join(map(repr, names))}. "
            f"Rename one of them; every source needs its own name."
        ) from None
    if isinstance(wrapped, nw.LazyFrame):
        raise InvalidVotesError(f"A lazy frame ({type(data).__name__}) has no rows yet. Call .collect() on it first.")
    if not isinstance(wrapped, nw.DataFrame):
        raise InvalidVotesError(
            f"{type(data).__name__} is not a table this library knows. Pass a pandas, polars "
            f"or Arrow table; for arrays use Votes.from_matrix or Votes.from_array."
        )
    return wrapped


def columns_of(frame: Any) -> dict[str, Column]:
    """Return the columns of any dataframe, of a dict of columns, or of a list of dicts, by name.

    NaN and null both count as null. Integers, floats and booleans stay typed; text, categories,
    lists and structs become Python objects, with None for null.
    """
    frame = native_frame(frame)
    if isinstance(frame, (list, tuple)) and all(isinstance(record, Mapping) for record in frame):
        keys = dict.fromkeys(key for record in frame for key in record)
        frame = {key: [record.get(key) for record in frame] for key in keys}
    if isinstance(frame, Mapping):
        columns = {str(name): to_column(values) for name, values in frame.items()}
        if len({len(column.null) for column in columns.values()}) > 1:
            listed = ", ".join(f"{name!r} {len(column.null)}" for name, column in columns.items())
            raise InvalidVotesError(f"The columns have different lengths: {listed}. Give each one entry per row.")
        return columns

    wrapped = as_frame(frame)
    names = wrapped.columns
    columns = {str(name): column_of_series(wrapped.get_column(name)) for name in names}
    if len(columns) < len(names):
        raise InvalidVotesError(f"Two column names read the same as text: {', '.join(map(repr, names))}. Rename one.")
    return columns


def n_rows(data: Any) -> int:
    """Return the number of rows of an array, a sparse matrix, a frame or a list."""
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def take_rows(data: Any, rows: npt.NDArray[np.integer[Any]]) -> Any:
    """Return rows of an array, a sparse matrix, a pandas, polars or Arrow frame, or a list, in the same type."""
    if is_frame(data):
        return nw.from_native(data, eager_only=True)[rows.tolist()].to_native()
    return data[rows] if hasattr(data, "shape") else [data[row] for row in rows.tolist()]


def row_name(frame: Any) -> Callable[[int], str]:
    """Return what a message calls a row: the line of the text file it came from, where `read_table` noted it."""
    metadata = getattr(getattr(frame, "schema", None), "metadata", None) or {}
    stored = metadata.get(LINES, b"")
    # A file may contain such metadata, too, and it may be wrong.
    lines = np.frombuffer(stored if len(stored) == 8 * n_rows(frame) else b"", dtype=np.int64)
    return (lambda row: f"line {lines[row]}") if len(lines) else "row {}".format


def to_column(values: Any) -> Column:
    """Return a column from a list, a one-dimensional array or a series."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise InvalidVotesError(f"A column is {values!r}, not a list with one entry per row. Pass lists or arrays.")
    if not isinstance(values, (list, tuple)):
        array = np.asarray(values)
        if array.ndim == 1 and array.dtype.kind in "biuf":
            null = np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), dtype=bool)
            return Column(_signed(array), null)
    objects = as_object_array(values)
    null = null_mask(objects)
    return Column(tighten(objects, null), null)


def column_of_series(series: Any) -> Column:
    """Return the column of a narwhals series."""
    dtype = series.dtype
    null: BoolArray = np.array(series.is_null().to_numpy(), dtype=bool)
    if dtype.is_integer() or dtype == nw.Boolean:
        filled = series.fill_null(False if dtype == nw.Boolean else 0) if null.any() else series
        return Column(_signed(np.asarray(filled.to_numpy())), null)
    if dtype.is_float():
        numbers = np.asarray(series.to_numpy())
        null |= np.isnan(numbers)
        # Nulls turn integers into floats in pandas columns backed by NumPy. Undo that.
        if null.any() and series.implementation.is_pandas_like() and isinstance(series.to_native().dtype, np.dtype):
            present = numbers[~null]
            if ((present == np.floor(present)) & (np.abs(present) <= _LARGEST_EXACT_FLOAT)).all():
                numbers = blank(numbers.shape, np.int64)
                numbers[~null] = present.astype(np.int64)
        return Column(numbers, null)
    if dtype == nw.String:
        objects = np.array(series.to_numpy(), dtype=object)
        objects[null] = None
        return Column(objects, null)
    # Not to_numpy, which turns lists into arrays and loses the nulls of Arrow dictionaries.
    return to_column(series.to_list())


def _signed(array: npt.NDArray[Any]) -> Batch:
    """Return unsigned integers as signed ones, as objects where too large: together they would become floats."""
    if array.dtype.kind != "u":
        return array
    fits = array.dtype.itemsize < 8 or not array.size or array.max() <= np.iinfo(np.int64).max
    return array.astype(np.int64 if fits else object)


def missing_column(wanted: str, role: str, columns: Mapping[str, Column], frame: Any) -> InvalidVotesError:
    """Return the error for a column that is not there, with the ones that may be meant."""
    if wanted in (getattr(getattr(frame, "index", None), "names", None) or ()):
        hint = f"{wanted!r} is the index of this frame: call .reset_index() first."
    else:
        likely = [name for name in columns if name.lower() in ALIASES[role]]
        likely += [name for name in get_close_matches(wanted, columns) if name not in likely]
        meant = " or ".join(f"{role}={name!r}" for name in likely)
        hint = f"Did you mean {meant}?" if likely else f"Name it with {role}=."
    listed = ", ".join(map(repr, columns)) or "none"
    return InvalidVotesError(f"There is no column {wanted!r}; the columns are {listed}. {hint}")


def likely_column(role: str, names: list[str]) -> str | None:
    """Return the only column whose name says that it has this role; the role's own name before all others.

    Of columns that may hold item ids, one that ends in "_id" comes before others.
    """
    others = set().union(*(ALIASES[other] for other in ALIASES if other != role))
    ids = {name for name in map(str.lower, names) if re.fullmatch(r"\w+_id", name) and name not in others}
    groups = [{role}, ALIASES[role], RARER_ALIASES[role]]
    if role == "item":
        groups = [{role}, ALIASES[role] & ids, ids, *groups[1:]]
    for aliases in groups:
        likely = [name for name in names if name.lower() in aliases]
        if len(likely) == 1 or (likely and role not in aliases):
            return likely[0] if len(likely) == 1 or aliases is ids else None
    named = [name for name in names if re.fullmatch(_CROWD_COLUMNS[role], name, re.IGNORECASE)]
    return named[0] if len(named) == 1 or (named and role == "item") else None
