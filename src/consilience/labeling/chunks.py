"""Any data in pieces: tables, lists, generators and Parquet files, their rows and their columns."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from consilience.exceptions import InvalidVotesError, UnknownColumnError, unknown_column
from consilience.lazy import narwhals as nw
from consilience.lazy import pyarrow as pa
from consilience.tables.files import find_row_groups
from consilience.tables.frames import Column, as_frame, column_of_series, is_frame, to_column


@dataclass(frozen=True)
class Task:
    """Some rows: the number of the first one, and what it takes to get at them."""

    first_row: int
    key: Any


@dataclass(frozen=True, eq=False)
class Chunks:
    """Data in pieces: `tasks` returns them in order, `load` the rows of one, `n_rows` is None if it is not known.

    `whole` is what can be cut into other pieces: None for files, and for what comes only once.
    """

    tasks: Callable[[], Iterator[Task]]
    load: Callable[[Task], Any]
    n_rows: int | None = None
    whole: Any = None


def in_memory(data: Any, rows: int) -> Chunks:
    """Return anything with a length in pieces of so many rows."""
    n = length(data)

    def tasks() -> Iterator[Task]:
        return (Task(start, (start, min(n, start + rows))) for start in range(0, n, rows))

    return Chunks(tasks, lambda task: slice_rows(data, *task.key), n, data)


def _stream(data: Iterable[Any], rows: int) -> Iterator[Task]:
    """Yield rows, or Arrow batches, that come one after the other; a task carries its rows."""
    first = 0
    elements = iter(data)
    while piece := list(islice(elements, rows)):
        tables = [pa.Table.from_batches([batch]) for batch in piece] if _is_arrow_batch(piece[0]) else None
        for chunk in tables or [piece]:
            yield Task(first, chunk)
            first += length(chunk)


def as_chunks(data: Any, rows: int) -> Chunks:
    """Return the data cut into pieces of about so many rows."""
    if isinstance(data, (str, Path)):
        groups = find_row_groups(data)[0]
        return Chunks(
            lambda: (Task(group.first_row, group) for group in groups),
            lambda task: pa.concat_tables([table for _, table in task.key.tables()]),
            sum(group.n_rows for group in groups),
        )
    if _is_arrow_batch(data):
        return in_memory(pa.Table.from_batches([data]), rows)
    if is_frame(data):
        if isinstance(nw.from_native(data, pass_through=True), nw.LazyFrame):
            raise InvalidVotesError(f"A lazy frame ({type(data).__name__}) has no rows yet. Call .collect() first.")
        return in_memory(data, rows)
    if isinstance(data, bytes) or not isinstance(data, Iterable):
        raise InvalidVotesError(
            f"The data is {type(data).__name__}, which has no rows. Pass a pandas, polars or Arrow table, a list, a "
            "generator, or the path of a Parquet file or folder."
        )
    if isinstance(data, Mapping):
        lengths = {str(name): len(column) for name, column in data.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name!r} {count}" for name, count in lengths.items())
            raise InvalidVotesError(f"The columns have different lengths: {listed}. Give each one entry per row.")
        return in_memory(data, rows)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return in_memory(data, rows)
    return Chunks(lambda: _stream(data, 1 if hasattr(data, "read_next_batch") else rows), lambda task: task.key)


def slice_rows(chunk: Any, start: int, stop: int) -> Any:
    """Return some rows in the type they are in."""
    if isinstance(chunk, Mapping):
        return {name: column[start:stop] for name, column in chunk.items()}
    rows = chunk.iloc if hasattr(chunk, "iloc") else chunk  # pandas would look for labels
    return rows[start:stop]


def length(chunk: Any) -> int:
    """Return the number of rows."""
    if isinstance(chunk, Mapping):
        return len(next(iter(chunk.values()))) if chunk else 0
    return len(chunk)


def pieces(chunk: Any, rows: int) -> Iterator[tuple[int, Any]]:
    """Yield parts of a chunk that is too large, each with its first row."""
    n = length(chunk)
    for start in range(0, n, rows) if n > rows else (0,):
        yield start, chunk if n <= rows else slice_rows(chunk, start, min(n, start + rows))


def _is_arrow_batch(data: Any) -> bool:
    return type(data).__name__ == "RecordBatch" and type(data).__module__.startswith("pyarrow")


class Record(SimpleNamespace):
    """A row that may be changed and pickled, as the preprocessors of snorkel want it."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(self))


def rows_of(chunk: Any, *, changeable: bool = False) -> list[Any]:
    """Return the rows: cells by name for tables, with nulls as the table has them; else the elements themselves.

    Examples
    --------
    >>> row = rows_of({"text": ["hello"], "number of words": [1]})[0]
    >>> row.text, row["number of words"]
    ('hello', 1)
    """
    if isinstance(chunk, Mapping):
        cells = {name: list(np.asarray(v).tolist() if hasattr(v, "dtype") else v) for name, v in chunk.items()}
    elif is_frame(chunk):
        frame = as_frame(chunk)
        cells = {name: frame.get_column(name).to_list() for name in frame.columns}
    else:
        return list(chunk)
    rows = zip(*cells.values(), strict=True)
    if changeable:
        names = list(map(str, cells))
        return [Record(**dict(zip(names, row, strict=True))) for row in rows]
    return list(map(_row_type(tuple(cells))._make, rows))


@lru_cache(maxsize=64)
def _row_type(names: tuple[Any, ...]) -> Any:
    """Return a tuple type with the cells by attribute, where the name allows it, and by item."""
    texts = list(map(str, names))
    base = namedtuple("Row", texts, rename=True)  # type: ignore[misc]
    place = {name: index for index, name in enumerate(names)} | {name: index for index, name in enumerate(texts)}
    cell = tuple.__getitem__

    def get_item(row: Any, name: Any) -> Any:
        try:
            return cell(row, place[name])
        except (KeyError, TypeError):
            raise unknown_column(name, texts) from None

    def get_attribute(row: Any, name: str) -> Any:
        raise unknown_column(name, texts)

    return type("Row", (base,), {"__slots__": (), "__getitem__": get_item, "__getattr__": get_attribute})


def column_of(chunk: Any, column: str | None) -> Column:
    """Return one column as NumPy values and a mask of nulls; with None the elements themselves.

    The column of a list is the entry of that name of each element (a dict), or its attribute.
    """
    is_table = isinstance(chunk, Mapping) or is_frame(chunk)
    if column is None:
        if is_table:
            raise UnknownColumnError("The data is a table. Name the column to read.")
        return to_column(chunk)
    if not is_table:
        return to_column([_entry(element, column, row) for row, element in enumerate(chunk)])
    if isinstance(chunk, Mapping):
        if column not in chunk:
            raise unknown_column(column, chunk)
        return to_column(chunk[column])

    frame = as_frame(chunk)
    if column not in frame.columns:
        raise unknown_column(column, frame.columns)
    return column_of_series(frame.get_column(column))


def _entry(element: Any, column: str, row: int) -> Any:
    try:
        return element[column] if isinstance(element, Mapping) else getattr(element, column)
    except (KeyError, AttributeError):
        problem = unknown_column(column, element if isinstance(element, Mapping) else getattr(element, "__dict__", ()))
    raise UnknownColumnError(f"Row {row} of this piece of the data: {problem} Write None where there is no value.")
