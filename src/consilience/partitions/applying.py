"""Labeling functions on data that is larger than memory or on a cluster: the votes stay where the data is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.exceptions import UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.labeling.applying import CHUNK_ROWS, Work, chosen_functions, is_cluster_frame
from consilience.labeling.chunks import ParquetFiles, Task, as_chunks, pieces
from consilience.labeling.functions import LabelingFunction
from consilience.labeling.vote_tables import FIRST_ROWS, VoteTables, with_schema
from consilience.partitions.dask import pandas_frame
from consilience.partitions.label_folder import LabelFolder, Manifest, fingerprint, write_tables
from consilience.partitions.spark import use_this_interpreter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["apply_frame", "apply_to"]

Batches = Iterator["pa.RecordBatch"]


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
    """Write the votes of labeling functions on Parquet files to a folder, one file for each row group.

    `ParquetPartitions` reads the folder: it has the column ``item``, if `item` is given, and one for each function.
    Files appear when they are complete, as those of `predict_to` do.

    Parameters
    ----------
    functions, space, item, on_error, chunk_rows
        As for `consilience.apply`. `n_skipped` counts the votes that are missing because a function failed.
    path
        Of a Parquet file, or of a folder of them.
    destination
        A folder that is new or empty.
    resume
        Continue a run that was stopped. The data and the functions have to be the same.
    force
        Overwrite the votes that an earlier run has written there.

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
            f"{type(path).__name__} is no path of Parquet files. Use consilience.apply, which takes tables and "
            "frames of Dask and Spark."
        )
    chunks: Any = as_chunks(path, chunk_rows)
    tasks = list(chunks.tasks())
    how = [[one.name, one.vectorized, _code(one)] for one in found]
    header = {
        "functions": fingerprint(how, repr(space), item, on_error),
        "data": fingerprint([[task.first_row, Path(task.key[0]).name, task.key[1]] for task in tasks], chunks.n_rows),
        "pieces": len(tasks),
    }
    manifest = Manifest.start(Path(destination), header, resume=resume, force=force)
    left = [index for index in range(len(tasks)) if index not in manifest.done]
    if left:
        work = Work(found, None, space, item, on_error, chunk_rows)
        tables = with_schema(VoteTables(work), chunks.load(tasks[0]))
        for index in left:
            made = _tables(tables, chunks, tasks[index], chunk_rows)
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
    """Return the votes of labeling functions on a Dask or Spark dataframe as one of the same kind.

    It has the column ``item`` and one for each function, and `DaskPartitions` or `SparkPartitions` takes it. It is
    computed when it is asked for; the types of its columns are those of the votes on the first rows, or of the space.

    Parameters
    ----------
    functions, space, item, on_error, chunk_rows
        As for `consilience.apply`. Spark cannot count rows, so it needs `item`.
    """
    if not is_cluster_frame(frame):
        raise UnsupportedError(f"{type(frame).__name__} is no Dask or Spark dataframe. Use consilience.apply.")
    found = chosen_functions(functions, space, on_error, chunk_rows)
    tables = VoteTables(Work(found, None, space, item, on_error, chunk_rows))
    return _on_spark(tables, frame) if hasattr(frame, "mapInArrow") else _on_dask(tables, frame)


def _tables(tables: VoteTables, chunks: ParquetFiles, task: Task, rows: int) -> Iterator[tuple[Any, int]]:
    path, group = task.key
    for start, chunk in pieces(chunks.load(task), rows):
        yield tables.table(chunk, f"{str(path)!r}, row group {group}", start)


def _code(function: LabelingFunction) -> str:
    """Return what changes if the function does, as far as can be seen from here."""
    code = getattr(function.function, "__code__", None)
    if code is None:
        return ""
    constants = [repr(one) for one in code.co_consts if isinstance(one, (str, int, float, tuple))]
    return fingerprint(code.co_code.hex(), constants, list(code.co_names))


def _on_dask(tables: VoteTables, data: Any) -> Any:
    fixed = with_schema(tables, data.head(FIRST_ROWS, npartitions=-1, compute=True))
    schema: Any = fixed.schema
    return data.map_partitions(
        _votes_of_partition, fixed, meta=pandas_frame(schema.empty_table()), enforce_metadata=False
    )


def _votes_of_partition(frame: Any, tables: VoteTables, partition_info: dict[str, Any] | None = None) -> Any:
    place = "the frame" if partition_info is None else f"partition {partition_info['number']}"
    return pandas_frame(tables.table(frame, place)[0])


def _on_spark(tables: VoteTables, data: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    if tables.work.item is None:
        raise UnsupportedError(
            "The rows of a Spark dataframe have no order to number them by. Say which column holds the item ids "
            "with item=."
        )
    use_this_interpreter(data)
    fixed = with_schema(tables, data.limit(FIRST_ROWS).toArrow())
    return data.mapInArrow(_voting(fixed), from_arrow_schema(fixed.schema))


def _voting(tables: VoteTables) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        place = "the frame" if context is None else f"partition {context.partitionId()}"
        start = 0
        for batch in batches:
            yield from tables.table(pa.Table.from_batches([batch]), place, start)[0].to_batches()
            start += batch.num_rows

    return run
