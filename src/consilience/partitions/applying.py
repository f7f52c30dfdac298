"""Labeling functions on data that is larger than memory or on a cluster: the votes stay where the data is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
from consilience.labeling.applying import CHUNK_ROWS, Work, chosen_functions, is_cluster_frame, join_answers, join_ids
from consilience.labeling.chunks import Task, as_chunks, length, pieces, slice_rows
from consilience.lazy import pyarrow as pa
from consilience.partitions.dask import pandas_frame
from consilience.partitions.label_folder import LabelFolder, Manifest, fingerprint, write_tables
from consilience.partitions.spark import over_tables, use_this_interpreter
from consilience.tables.cells import spelled_out
from consilience.tables.vote_tables import LabelTable, storable, wide_arrow

#: Rows from which the types of the columns are taken.
FIRST_ROWS = 1000


def apply_to(
    functions: Any,
    path: str | Path,
    destination: str | Path,
    space: LabelSpace | None = None,
    *,
    item: str | None = None,
    on_error: str = "raise",
    chunk_rows: int = CHUNK_ROWS,
    resume: bool = False,
    force: bool = False,
) -> LabelFolder:
    """Apply labeling functions to Parquet files, and write the votes to a folder, one file per row group.

    The files have one column per function, and the column ``item`` if `item` is given; `ParquetPartitions` reads them.
    `path` is a Parquet file or a folder of them. `destination`, `resume` and `force` are as for `predict_to`, and the
    other arguments as for `consilience.apply`. `n_skipped` counts votes that are missing because a function failed.

    Examples
    --------
    >>> import tempfile, pathlib, pyarrow as pa, pyarrow.parquet as pq
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> pq.write_table(pa.table({"text": ["call 555", "hello", "7 wins"]}), folder / "data.parquet", 2)
    >>> def has_digit(row):
    ...     return "spam" if any(map(str.isdigit, row.text)) else None
    >>> apply_to([has_digit], folder / "data.parquet", folder / "votes").n_files
    2
    >>> pq.read_table(folder / "votes").column("has_digit").to_pylist()
    ['spam', None, 'spam']
    """
    found = chosen_functions(functions, space, on_error, chunk_rows)
    if not isinstance(path, (str, Path)):
        raise UnsupportedError(
            f"{type(path).__name__} is not a path of Parquet files. Use consilience.apply, which takes tables and "
            "frames of Dask and Spark."
        )
    chunks: Any = as_chunks(path, chunk_rows)
    tasks = list(chunks.tasks())
    if not tasks:
        raise InvalidVotesError("There are no items: the data has no rows. Pass at least one row.")
    header = {
        "functions": fingerprint(found, repr(space), item, on_error),
        "data": fingerprint(
            [[task.first_row, Path(task.key.file).name, task.key.group] for task in tasks], chunks.n_rows
        ),
        "pieces": len(tasks),
    }
    manifest = Manifest(Path(destination), header, resume=resume, force=force)
    left = [index for index in range(len(tasks)) if index not in manifest.done]
    if left:
        work = Work(found, None, space, item, on_error, chunk_rows)
        tables = _with_schema(_VoteTables(work), chunks.load(tasks[0]))
        for index in left:
            place, whole = tasks[index].key.place, chunks.load(tasks[index])
            made = (tables.table(chunk, place, start) for start, chunk in pieces(whole, chunk_rows))
            manifest.add(index, write_tables(made, tables.schema, manifest.target(index)))
    return manifest.finish()


def apply_frame(
    functions: Any,
    frame: Any,
    space: LabelSpace | None = None,
    *,
    item: str | None = None,
    on_error: str = "raise",
    chunk_rows: int = CHUNK_ROWS,
) -> Any:
    """Apply labeling functions to a Dask or Spark dataframe, and return the votes as a dataframe of the same kind.

    It is lazy, has the column ``item`` and one column per function, and can be passed to `DaskPartitions` or
    `SparkPartitions`. The types of its columns come from the votes on the first rows, or from the space. The other
    arguments are as for `consilience.apply`. Spark cannot number rows, so it needs `item`.

    Examples
    --------
    >>> votes = apply_frame([has_digit, is_short], frame, Classes(["ham", "spam"]), item="id")  # doctest: +SKIP
    """
    if not is_cluster_frame(frame):
        raise UnsupportedError(f"{type(frame).__name__} is not a Dask or Spark dataframe. Use consilience.apply.")
    found = chosen_functions(functions, space, on_error, chunk_rows)
    tables = _VoteTables(Work(found, None, space, item, on_error, chunk_rows))
    if not hasattr(frame, "mapInArrow"):
        tables = _with_schema(tables, frame.head(FIRST_ROWS, npartitions=-1, compute=True))
        schema: Any = tables.schema
        meta = pandas_frame(schema.empty_table())
        return frame.map_partitions(_votes_of_partition, tables, meta=meta, enforce_metadata=False)
    from pyspark.sql.pandas.types import from_arrow_schema

    if item is None:
        raise UnsupportedError(
            "The rows of a Spark dataframe have no order, so they cannot be numbered. Name the column of item ids with "
            "item=."
        )
    use_this_interpreter(frame)
    tables = _with_schema(tables, frame.limit(FIRST_ROWS).toArrow())
    step = over_tables(lambda table, place, start: tables.table(table, place, start)[0].to_batches())
    return frame.mapInArrow(step, from_arrow_schema(tables.schema))


def _votes_of_partition(frame: Any, tables: _VoteTables, partition_info: dict[str, Any] | None = None) -> Any:
    place = "the frame" if partition_info is None else f"partition {partition_info['number']}"
    return pandas_frame(tables.table(frame, place)[0])


@dataclass(frozen=True, eq=False)
class _VoteTables:
    """Turns chunks of data into tables of votes, of one schema if there is one; it is sent to the workers."""

    work: Work
    schema: pa.Schema | None = None

    def table(self, chunk: Any, place: str, first_row: int = 0) -> tuple[pa.Table, int]:
        """Return the votes on some rows, and how many are missing because a function failed."""
        if length(chunk) == 0 and self.schema is not None:
            return self.schema.empty_table(), 0
        try:
            made, failed = self._made(chunk, first_row)
        except (InvalidLabelError, InvalidVotesError, LabelingFunctionError, UnknownColumnError) as error:
            raise type(error)(f"{place}: {error}") from error
        if self.schema is None:
            return made, failed
        columns, failures = [], {}
        for name, column in zip(made.column_names, made.columns, strict=True):
            try:
                columns.append(column.cast(self.schema.field(name).type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                failures[repr(name)] = error
        if failures:
            raise LabelingFunctionError(
                f"{place}: {', '.join(failures)} votes labels of another type than on the first rows "
                f"({next(iter(failures.values()))}). Pass space=, or let every function return labels of one type."
            )
        return pa.table(columns, schema=self.schema), failed

    def _made(self, chunk: Any, first_row: int) -> tuple[pa.Table, int]:
        work = self.work
        results = replace(work, chunks=None)(Task(first_row, chunk))
        labels, observed, spelling = join_answers([answers for answers, _ in results], work.space)
        labels = spelled_out(labels, observed, work.space, spelling)
        ids = join_ids([column for _, column in results if column is not None], work.item, first_row)
        items = np.arange(len(observed)) if ids is None else ids
        table = wide_arrow(LabelTable(labels, observed, tuple(one.name for one in work.functions), items))
        failed = sum(one.fault.rows for answers, _ in results for one in answers if one.fault is not None)
        return (table.drop_columns(["item"]) if ids is None else table), failed


def _with_schema(tables: _VoteTables, first_rows: Any) -> _VoteTables:
    """Return the same with a schema: the types of the votes on the first rows, and the type of the space for others."""
    if length(first_rows) == 0:
        raise InvalidVotesError("There are no items: the data has no rows. Pass at least one row.")
    lenient = replace(tables, work=replace(tables.work, on_error="abstain"))
    schema = lenient.table(slice_rows(first_rows, 0, FIRST_ROWS), "the first rows")[0].schema
    names = [one.name for one in tables.work.functions]
    seen = {schema.field(name).type for name in names} - {pa.null()}
    space = tables.work.space
    if not seen and space is None:
        raise UnsupportedError(
            "No function votes on the first rows, so the type of the labels is unknown. Pass space=."
        )
    if not seen and space is not None:
        label = space.as_labels(space.as_batch(space.random(1, np.random.default_rng(0))), np.dtype(object))
        seen = {pa.array(storable(as_object_array(label).tolist())).type}
    numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in seen)
    common = next(iter(seen)) if len(seen) == 1 else pa.float64() if numbers else None
    for name in names:
        place = schema.get_field_index(name)
        kind = common or schema.field(name).type
        schema = schema.set(place, pa.field(name, next(iter(seen)) if kind == pa.null() else kind))
    return replace(tables, schema=schema.remove_metadata())
