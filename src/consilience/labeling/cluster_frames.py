"""Labeling functions on Dask and Spark dataframes: the rows stay where they are, and so do the votes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from consilience.exceptions import UnsupportedError
from consilience.io.interpreters import use_this_interpreter
from consilience.labeling.vote_tables import FIRST_ROWS, VoteTables, with_schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["apply_on_cluster", "is_cluster_frame"]

Batches = Iterator["pa.RecordBatch"]


def is_cluster_frame(data: Any) -> bool:
    """Return whether something is a dataframe of Dask or Spark."""
    package = type(data).__module__.split(".")[0]
    return package in ("dask", "dask_expr", "pyspark") and hasattr(data, "columns")


def apply_on_cluster(tables: VoteTables, data: Any) -> Any:
    """Return the votes on the rows of a Dask or Spark dataframe as one of the same kind, which is not computed yet."""
    return _on_spark(tables, data) if hasattr(data, "mapInArrow") else _on_dask(tables, data)


def _on_dask(tables: VoteTables, data: Any) -> Any:
    fixed = with_schema(tables, data.head(FIRST_ROWS, npartitions=-1, compute=True))
    schema: Any = fixed.schema
    return data.map_partitions(_votes_of_partition, fixed, meta=_pandas(schema.empty_table()), enforce_metadata=False)


def _votes_of_partition(frame: Any, tables: VoteTables, partition_info: dict[str, Any] | None = None) -> Any:
    place = "the frame" if partition_info is None else f"partition {partition_info['number']}"
    return _pandas(tables.table(frame, place)[0])


def _pandas(table: Any) -> Any:
    import pandas as pd

    return table.to_pandas(types_mapper=pd.ArrowDtype)


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
