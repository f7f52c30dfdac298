"""Votes in a Spark dataframe: parts stay with the executors, which return sums of a few kilobytes."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import sys
import weakref
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, Unpack

import numpy as np

import consilience.exceptions as exceptions
import consilience.partitions.duplicate_ids as duplicate_ids
from consilience.exceptions import InvalidLabelError, InvalidVotesError, MissingPackageError, UnsupportedError, needed
from consilience.label_types.base import LabelSpace
from consilience.lazy import pyarrow as pa
from consilience.partitions.base import A, Part
from consilience.partitions.label_folder import Labeler, LabelFolder
from consilience.partitions.reading import ReadOptions, ReadPartitions, part_reader

T = TypeVar("T")
Batches = Iterator["pa.RecordBatch"]

#: One pickled object per row.
SCHEMA = "content binary"
#: Rows of a part.
ROWS = 1 << 16
_ITEM = re.compile(r"\(item (.+?)\), source ")
_OUR_ERROR = re.compile(r"consilience\.exceptions\.(\w+): (.*)")


def spark_session(master: str | None = None, name: str = "consilience", **settings: Any) -> Any:
    """Return a Spark session whose workers run this Python interpreter.

    Parameters
    ----------
    master
        Where to run: ``"local[4]"``, ``"spark://host:7077"``, ``"yarn"``; None for the default of Spark.
    settings
        Further settings, with ``_`` for ``.``: ``spark_executor_memory="4g"``.

    Examples
    --------
    >>> session = spark_session("local[4]", spark_executor_memory="4g")  # doctest: +SKIP
    """
    sql = needed("pyspark.sql", "spark_session", "spark")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise MissingPackageError(
            "Spark needs Java, and java is not on the path. Install a JDK (17 or later), or set JAVA_HOME."
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key.replace("_", "."), value)
    return builder.getOrCreate()


def use_this_interpreter(frame: Any) -> None:
    """Let the workers of a Spark dataframe run this interpreter, unless the session has chosen one."""
    if "PYSPARK_PYTHON" in os.environ:
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    context = getattr(frame.sparkSession, "sparkContext", None)
    if context is not None and getattr(context, "pythonExec", None) == "python3":
        context.pythonExec = sys.executable


class SparkPartitions(ReadPartitions):
    """Votes in a Spark dataframe, one row per item and one column per source.

    The executors read the votes once and cache them until `close`. The parts of a lost executor are computed again.

    Parameters
    ----------
    frame
        A Spark dataframe with a column of ids, because its rows have no order.
    space, item, sources, drop, gold, abstain, on_error, check_ids
        As for `ParquetPartitions`. Ids are compared by Spark.

    Examples
    --------
    >>> session = spark_session("local[4]")  # doctest: +SKIP
    >>> votes = SparkPartitions(session.read.parquet("votes"), Classes(2), item="item")  # doctest: +SKIP
    >>> model = LabelModel(Classes(2)).fit(votes)  # doctest: +SKIP
    """

    remote, in_pieces = True, False

    def __init__(
        self,
        frame: Any,
        space: LabelSpace | None = None,
        *,
        check_ids: bool = True,
        **options: Unpack[ReadOptions],
    ) -> None:
        needed("pyspark.sql", "SparkPartitions", "spark")
        if not hasattr(frame, "mapInArrow") or not hasattr(frame, "columns"):
            raise UnsupportedError(
                f"{type(frame).__name__} is not a Spark dataframe. Read one: session.read.parquet(path)."
            )
        self.reader = part_reader(frame.columns, space, **options, where="the frame")
        if self.reader.item is None:
            raise UnsupportedError(
                "The rows of a Spark dataframe have no order, so they cannot be numbered. Name the column of item ids "
                "with item=, or add one before you save the frame (monotonically_increasing_id)."
            )
        use_this_interpreter(frame)
        self._frame = frame
        columns, read = [frame[f"`{name}`"] for name in self.reader.columns], self.reader.part
        step = over_tables(lambda table, place, start: [_batch(read(table, place, start))])
        self.content = frame.select(*columns).mapInArrow(step, SCHEMA).persist()
        self.shared = SimpleNamespace(ids_differ=not check_ids)

    @cached_property
    def n_items(self) -> int:
        total = self._total(len)
        return int(pickle.loads(total)) if total else 0

    def _file_of(self, message: str) -> str | None:
        """Return the file of the item that an error names, if the frame is read from files."""
        from urllib.parse import unquote

        named = _ITEM.search(message)
        if named is None:
            return None
        with suppress(Exception):  # Spark knows the file only of rows that come straight from one
            import pyspark.sql.functions as functions

            same = self._frame[f"`{self.reader.item}`"].cast("string") == str(literal_eval(named.group(1)))
            row = self._frame.where(same).select(functions.input_file_name()).first()
            if row is not None and row[0]:
                return unquote(row[0]).removeprefix("file://")
        return None

    def _compare_ids(self) -> None:
        def keys_in(part: Part, place: str, start: int) -> list[pa.RecordBatch]:
            return [pa.RecordBatch.from_arrays([pa.array(duplicate_ids.keys_of(part.votes.items))], ["key"])]

        def places(part: Part, place: str, start: int) -> list[pa.RecordBatch]:
            return [_batch(duplicate_ids.places_of(np.array(suspects), part.votes.items, place, start))]

        with _our_errors(self._file_of):
            # Exchanging keys between executors is slow, and not needed if ids are sorted.
            if duplicate_ids.are_apart(
                pickle.loads(row[0])
                for row in self._mapped(lambda part: duplicate_ids.spans_of(part.votes.items)).collect()
            ):
                return
            keys = self.content.mapInArrow(_each(keys_in), "key bigint").groupBy("key").count()
            suspects = [row[0] for row in keys.where("count > 1").limit(duplicate_ids.LOOKED_AT).collect()]
            if suspects:
                found = self.content.mapInArrow(_each(places), SCHEMA).collect()
                duplicate_ids.refuse_same_ids(place for row in found for place in pickle.loads(row[0]))

    def map(self, function: Callable[[Part], T]) -> Iterator[T]:
        self.check_ids()
        with _our_errors(self._file_of):
            for row in self._mapped(function).toLocalIterator():
                yield pickle.loads(row[0])

    def reduce(self, function: Callable[[Part], A]) -> A:
        """Apply a function to every chunk and add up what it returns, on the executors, as a tree."""
        total = self._total(function)
        if not total:
            raise InvalidVotesError("There are no votes: all partitions are empty.")
        return pickle.loads(total)

    def _total(self, function: Callable[[Part], Any]) -> bytes:
        """Return the pickled sum; empty if there are no chunks."""
        self.check_ids()
        with _our_errors(self._file_of):
            found: bytes = self._mapped(function).rdd.map(lambda row: bytes(row[0])).treeAggregate(b"", _add, _add)
        return found

    def transform(self, function: Callable[[Part], Part]) -> SparkPartitions:
        """Return partitions whose chunks are the results of `function`, cached by the executors."""
        changed = self._with(content=self._mapped(function).persist())
        weakref.finalize(changed, _forget, changed.content).atexit = False
        return changed

    def _mapped(self, function: Callable[[Part], Any]) -> Any:
        """Return a dataframe of what a function returns for each chunk."""
        run = self.reader.run
        step = _each(lambda part, place, start: [_batch(run(function, part, place, start))])
        return self.content.mapInArrow(step, SCHEMA)

    def label_frame(self, labeler: Labeler) -> Any:
        """Return a Spark dataframe of labels."""
        from pyspark.sql.pandas.types import from_arrow_schema

        run, schema = self.reader.run, from_arrow_schema(labeler.schema)
        step = _each(lambda part, place, start: run(labeler.table, part, place, start).to_batches())
        return self.content.mapInArrow(step, schema)

    def write_folder(self, labeler: Labeler, destination: str | Path, *, force: bool) -> LabelFolder:
        """Let the executors write the labels to a folder."""
        # Spark may have been started in another folder.
        target = str(destination) if "://" in str(destination) else str(Path(destination).resolve())
        frame = self.label_frame(labeler)
        frame.write.mode("overwrite" if force else "errorifexists").parquet(target)
        written = frame.sparkSession.read.parquet(target)
        return LabelFolder(destination, written.count(), len(written.inputFiles()), self.n_skipped)

    def close(self) -> None:
        """Remove the votes from the cache of the executors."""
        self.content.unpersist()

    def __repr__(self) -> str:
        return f"SparkPartitions({len(self.sources)} sources)"


@contextmanager
def _our_errors(file_of: Callable[[str], str | None]) -> Iterator[None]:
    """Raise an error of this library that occurred on an executor as the same error here, with the file of the item."""
    try:
        yield
    except exceptions.ConsilienceError:
        raise
    except Exception as error:
        found = _OUR_ERROR.search(str(error))
        kind = getattr(exceptions, found.group(1), None) if found is not None else None
        if found is None or kind is None:
            raise
        message = found.group(2)
        file = file_of(message) if kind is InvalidLabelError else None
        raise kind(message if file is None else f"{file!r}, {message}") from None


def _forget(content: Any) -> None:
    with suppress(Exception):  # the session may have ended before
        content.unpersist()


# Runs on the executors, from batches to batches.


def over_tables(step: Callable[[pa.Table, str, int], Iterable[pa.RecordBatch]]) -> Callable[[Batches], Batches]:
    """Return a function of batches that applies `step` to each table of rows, its place, and its first row there."""

    def run(batches: Batches) -> Batches:
        start, gathered = 0, []
        for batch in chain(batches, [None]):
            gathered += [] if batch is None else [batch]
            rows = sum(one.num_rows for one in gathered)
            # Spark passes ten thousand rows at a time, and every part has a fixed cost.
            if rows >= ROWS or (batch is None and rows):
                yield from step(pa.Table.from_batches(gathered), _place(), start)
                start, gathered = start + rows, []

    return run


def _each(step: Callable[[Part, str, int], Iterable[pa.RecordBatch]]) -> Callable[[Batches], Batches]:
    """Return a function of batches that applies `step` to each part, its place, and its first row there."""

    def run(batches: Batches) -> Batches:
        start = 0
        for batch in batches:
            for cell in batch.column(0):
                part = pickle.loads(cell.as_py())
                yield from step(part, _place(), start)
                start += len(part)

    return run


def _place() -> str:
    from pyspark import TaskContext

    context = TaskContext.get()
    return "the frame" if context is None else f"partition {context.partitionId()}"


def _batch(content: Any) -> pa.RecordBatch:
    data = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    return pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], ["content"])


def _add(left: bytes, right: bytes) -> bytes:
    if not left or not right:
        return left or right
    return pickle.dumps(pickle.loads(left) + pickle.loads(right), protocol=pickle.HIGHEST_PROTOCOL)
