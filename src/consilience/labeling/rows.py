"""The rows and the columns of a piece of data, whatever holds it."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from consilience.exceptions import UnknownColumnError
from consilience.tables.frames import Column, column_of_series, is_frame, to_column

__all__ = ["Record", "column_of", "records_of", "rows_of", "unknown_column"]


class Record(SimpleNamespace):
    """A row that may be changed and pickled, as the preprocessors of snorkel want it."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(self))


def rows_of(chunk: Any) -> list[Any]:
    """Return the rows: cells by name for tables, the elements themselves for anything else.

    Examples
    --------
    >>> row = rows_of({"text": ["hello"], "number of words": [1]})[0]
    >>> row.text, row["number of words"]
    ('hello', 1)
    """
    cells = _cells(chunk)
    if cells is None:
        return list(chunk)
    return list(map(_row_type(tuple(cells))._make, zip(*cells.values(), strict=True)))


def records_of(chunk: Any) -> list[Any]:
    """Return the rows as objects that may be changed."""
    cells = _cells(chunk)
    if cells is None:
        return list(chunk)
    names = list(map(str, cells))
    return [Record(**dict(zip(names, row, strict=True))) for row in zip(*cells.values(), strict=True)]


def column_of(chunk: Any, column: str | None) -> Column:
    """Return one column as NumPy values and a mask of nulls; with None the elements themselves.

    The column of a list is the entry of that name of each element (a dict), or its attribute.
    """
    if column is None:
        if is_frame(chunk) or isinstance(chunk, Mapping):
            raise UnknownColumnError("The data is a table. Say which column to read.")
        return to_column(chunk)
    if isinstance(chunk, Mapping):
        if column not in chunk:
            raise unknown_column(column, chunk)
        return to_column(chunk[column])
    if is_frame(chunk):
        import narwhals as nw

        frame = nw.from_native(chunk, eager_only=True)
        if column not in frame.columns:
            raise unknown_column(column, frame.columns)
        return column_of_series(frame.get_column(column))
    return to_column([_entry(element, column, row) for row, element in enumerate(chunk)])


def unknown_column(wanted: Any, columns: Iterable[Any]) -> UnknownColumnError:
    """Return the error for a column that is not there, with the ones that may be meant."""
    names = list(map(str, columns))
    close = get_close_matches(str(wanted), names)
    hint = (
        f"Did you mean {' or '.join(map(repr, close))}?" if close else f"The columns are {', '.join(map(repr, names))}."
    )
    return UnknownColumnError(f"There is no column {wanted!r}. {hint}")


def _entry(element: Any, column: str, row: int) -> Any:
    if isinstance(element, Mapping):
        if column in element:
            return element[column]
        names: Iterable[Any] = element
    else:
        if hasattr(element, column):
            return getattr(element, column)
        names = getattr(element, "__dict__", ())
    problem = unknown_column(column, names)
    raise UnknownColumnError(f"Row {row} of this piece of the data: {problem} Write None where there is no value.")


def _cells(chunk: Any) -> dict[Any, list[Any]] | None:
    """Return the columns of a table as lists, in the table's own spelling of nulls; None for anything else."""
    if isinstance(chunk, Mapping):
        return {name: list(np.asarray(v).tolist() if hasattr(v, "dtype") else v) for name, v in chunk.items()}
    if not is_frame(chunk):
        return None
    import narwhals as nw

    frame = nw.from_native(chunk, eager_only=True)
    return {name: frame.get_column(name).to_list() for name in frame.columns}


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
