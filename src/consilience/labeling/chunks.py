"""Data in pieces: tables, lists and arrays are cut, generators and Parquet files are read as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from consilience.exceptions import InvalidVotesError
from consilience.tables.frames import is_frame

__all__ = ["InMemory", "ParquetFiles", "Stream", "Task", "as_chunks", "length", "pieces", "slice_rows"]


@dataclass(frozen=True)
class Task:
    """Some rows: the number of the first one, and what it takes to get at them."""

    first_row: int
    key: Any


@dataclass(frozen=True, eq=False)
class InMemory:
    """Anything with a length that can be cut."""

    data: Any
    rows: int

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, None where that is not known before."""
        return length(self.data)

    def tasks(self) -> Iterator[Task]:
        """Yield the pieces, in order."""
        n = length(self.data)
        for start in range(0, n, self.rows):
            yield Task(start, (start, min(n, start + self.rows)))

    def load(self, task: Task) -> Any:
        """Return the rows of a piece."""
        return slice_rows(self.data, *task.key)


@dataclass(frozen=True, eq=False)
class ParquetFiles:
    """Parquet files, one row group at a time."""

    files: tuple[Path, ...]

    @property
    def n_rows(self) -> int | None:
        """How many rows there are."""
        return int(sum(_open(path).metadata.num_rows for path in self.files))

    def tasks(self) -> Iterator[Task]:
        """Yield the row groups, in order."""
        first = 0
        for path in self.files:
            metadata = _open(path).metadata
            for group in range(metadata.num_row_groups):
                yield Task(first, (path, group))
                first += metadata.row_group(group).num_rows

    def load(self, task: Task) -> Any:
        """Return the rows of a row group."""
        path, group = task.key
        return _open(path).read_row_group(group, use_threads=False)


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows, or Arrow batches, that come one after the other and only once."""

    data: Iterable[Any]
    rows: int

    @property
    def n_rows(self) -> int | None:
        """Not known before the end."""
        return None

    def tasks(self) -> Iterator[Task]:
        """Yield the pieces, in order; each carries its rows."""
        first = 0
        elements = iter(self.data)
        while piece := list(islice(elements, self.rows)):
            for chunk in _tables(piece) if _is_arrow_batch(piece[0]) else [piece]:
                yield Task(first, chunk)
                first += length(chunk)

    def load(self, task: Task) -> Any:
        """Return the rows of a piece."""
        return task.key


def as_chunks(data: Any, rows: int) -> InMemory | ParquetFiles | Stream:
    """Return the data cut into pieces of about so many rows."""
    if isinstance(data, (str, Path)):
        return ParquetFiles(_parquet_files(Path(data)))
    if _is_arrow_batch(data):
        return InMemory(next(_tables([data])), rows)
    if is_frame(data):
        _refuse_lazy(data)
        return InMemory(data, rows)
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
        return InMemory(data, rows)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return InMemory(data, rows)
    batches = rows if not hasattr(data, "read_next_batch") else 1
    return Stream(data, batches)


def slice_rows(chunk: Any, start: int, stop: int) -> Any:
    """Return some rows in the type they are in."""
    if isinstance(chunk, Mapping):
        return {name: column[start:stop] for name, column in chunk.items()}
    if isinstance(chunk, (list, tuple)) or not hasattr(chunk, "__array__"):
        return chunk[start:stop]
    import narwhals as nw

    wrapped: Any = nw.from_native(chunk, pass_through=True, allow_series=True)
    part = wrapped[start:stop]
    return part.to_native() if isinstance(part, (nw.DataFrame, nw.Series)) else part


def length(chunk: Any) -> int:
    """Return the number of rows."""
    if isinstance(chunk, Mapping):
        return len(next(iter(chunk.values()))) if chunk else 0
    return len(chunk)


def pieces(chunk: Any, rows: int) -> Iterator[tuple[int, Any]]:
    """Yield parts of a chunk that is too large, each with its first row."""
    n = length(chunk)
    if n <= rows:
        yield 0, chunk
        return
    for start in range(0, n, rows):
        yield start, slice_rows(chunk, start, min(n, start + rows))


def _is_arrow_batch(data: Any) -> bool:
    return type(data).__name__ == "RecordBatch" and type(data).__module__.startswith("pyarrow")


def _tables(batches: list[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        yield pa.Table.from_batches([batch])


def _refuse_lazy(data: Any) -> None:
    import narwhals as nw

    if isinstance(nw.from_native(data, pass_through=True), nw.LazyFrame):
        raise InvalidVotesError(f"A lazy frame ({type(data).__name__}) has no rows yet. Call .collect() on it first.")


def _parquet_files(path: Path) -> tuple[Path, ...]:
    if not path.exists():
        raise InvalidVotesError(f"There is no file or folder {str(path)!r}. Correct the path.")
    files = tuple(sorted(path.rglob("*.parquet"))) if path.is_dir() else (path,)
    if not files:
        raise InvalidVotesError(f"The folder {str(path)!r} holds no file that ends in .parquet.")
    for file in files:
        _open(file)
    return files


def _open(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidVotesError(
            f"{str(path)!r} cannot be read as Parquet ({error}). Read other files yourself, for example with "
            "pandas.read_csv, and pass the table."
        ) from None
