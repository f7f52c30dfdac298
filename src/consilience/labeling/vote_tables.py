"""Votes of labeling functions as tables, one row per item, that all have the same columns wherever they are made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import as_object_array
from consilience.exceptions import (
    InvalidLabelError,
    InvalidVotesError,
    LabelingFunctionError,
    UnknownColumnError,
    UnsupportedError,
)
from consilience.label_types.base import LabelSpace
from consilience.labeling.answers import join_answers
from consilience.labeling.applying import Work
from consilience.labeling.chunks import Task, length, slice_rows
from consilience.tables.cells import spelled_out
from consilience.tables.vote_tables import LabelTable, storable, wide_arrow

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FIRST_ROWS", "VoteTables", "with_schema"]

#: Rows whose votes show the types of the columns.
FIRST_ROWS = 1000


@dataclass(frozen=True, eq=False)
class VoteTables:
    """From chunks of data to tables of votes; it travels to the workers.

    Parameters
    ----------
    work
        Which functions are applied, and how.
    schema
        Of the tables: ``item``, if a column holds the ids, and one column per function. None to leave the types as
        they come.
    """

    work: Work
    schema: pa.Schema | None = None

    def table(self, chunk: Any, place: str, first_row: int = 0) -> tuple[pa.Table, int]:
        """Return the votes on some rows, and how many of them are missing because a function failed.

        Parameters
        ----------
        place
            What an error calls the chunk.
        """
        import pyarrow as pa

        if length(chunk) == 0 and self.schema is not None:
            return self.schema.empty_table(), 0
        try:
            made, failed = self._made(chunk, first_row)
        except (InvalidLabelError, InvalidVotesError, LabelingFunctionError, UnknownColumnError) as error:
            raise type(error)(f"{place}: {error}") from error
        if self.schema is None:
            return made, failed
        try:
            return made.cast(self.schema), failed
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            odd = [name for name in made.column_names if not _fits(made.column(name), self.schema.field(name).type)]
            raise LabelingFunctionError(
                f"{place}: {', '.join(map(repr, odd)) or 'a function'} votes labels of another type than the functions "
                f"do on the first rows ({error}). Pass space=, or let every function return labels of one type."
            ) from None

    def _made(self, chunk: Any, first_row: int) -> tuple[pa.Table, int]:
        work = self.work
        results = replace(work, chunks=None)(Task(first_row, chunk))
        labels, observed, spelling = join_answers([answers for answers, _ in results], work.space)
        labels = spelled_out(labels, observed, work.space, spelling)
        ids = [column for _, column in results if column is not None]
        if any(column.null.any() for column in ids):
            row = int(np.argmax(np.concatenate([column.null for column in ids])))
            raise InvalidVotesError(f"Row {first_row + row} has no item id in column {work.item!r}. Fill it in.")
        items = np.concatenate([column.values for column in ids]) if ids else np.arange(len(observed))
        table = wide_arrow(LabelTable(labels, observed, tuple(one.name for one in work.functions), items))
        failed = sum(one.fault.rows for answers, _ in results for one in answers if one.fault is not None)
        return (table if ids else table.drop_columns(["item"])), failed


def with_schema(tables: VoteTables, first_rows: Any) -> VoteTables:
    """Return the same with the types that the votes on the first rows have; the space tells those of the others."""
    import pyarrow as pa

    if length(first_rows) == 0:
        raise InvalidVotesError("There are no items: the data has no rows. Pass at least one row.")
    lenient = replace(tables, work=replace(tables.work, on_error="abstain"))
    schema = lenient.table(slice_rows(first_rows, 0, FIRST_ROWS), "the first rows")[0].schema
    names = [one.name for one in tables.work.functions]
    seen = {schema.field(name).type for name in names} - {pa.null()}
    if not seen:
        seen = {_type_of(tables.work.space)}
    numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in seen)
    common = next(iter(seen)) if len(seen) == 1 else pa.float64() if numbers else None
    for name in names:
        place = schema.get_field_index(name)
        kind = common or schema.field(name).type
        schema = schema.set(place, pa.field(name, next(iter(seen)) if kind == pa.null() else kind))
    return replace(tables, schema=schema.remove_metadata())


def _type_of(space: LabelSpace | None) -> pa.DataType:
    """Return the type that labels of a space have in a table."""
    import pyarrow as pa

    if space is None:
        raise UnsupportedError(
            "No function votes on the first rows, so that the type of the labels is unknown. Pass space=."
        )
    label = space.as_labels(space.as_batch(space.random(1, np.random.default_rng(0))), np.dtype(object))
    return pa.array(storable(as_object_array(label).tolist())).type


def _fits(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    import pyarrow as pa

    try:
        column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True
