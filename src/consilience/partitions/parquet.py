"""Votes in Parquet or Arrow files, read a row group at a time; the data never is in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np

import consilience.partitions.duplicate_ids as duplicate_ids
from consilience.exceptions import FileFormatError
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import ROWS, InMemoryPartitions, Part
from consilience.partitions.reading import PartReader, ReadOptions, ReadPartitions, part_reader
from consilience.tables.files import FORMATS, file_format
from consilience.tables.frames import columns_of

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["ParquetPartitions", "Piece", "find_pieces"]

T = TypeVar("T")

#: Megabytes of votes that stay in memory between passes.
KEEP = 512.0


@dataclass(frozen=True)
class Piece:
    """A row group of a Parquet file, or a record batch of an Arrow file; `first_id` counts rows through all files."""

    file: str
    group: int
    n_rows: int
    first_id: int

    @property
    def place(self) -> str:
        """What errors call it."""
        return f"{self.file!r}, row group {self.group}"

    def tables(self, columns: list[str]) -> Iterator[tuple[int, pa.Table]]:
        """Yield a few of the columns, at most `ROWS` rows at a time, each time with the number of the first row."""
        import pyarrow as pa

        start = 0
        try:
            for batch in self._batches(columns):
                if batch.num_rows:
                    yield start, pa.Table.from_batches([batch])
                start += batch.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable(self.place, error) from None

    def parts(self, reader: PartReader) -> Iterator[tuple[int, Part]]:
        """Yield the rows as parts, each with the number of its first row in the piece."""
        for start, table in self.tables(reader.columns):
            yield start, reader.part(table, self.place, start, self.first_id + start)

    def part(self, reader: PartReader) -> Part:
        """Return all rows as one part."""
        return InMemoryPartitions.of_parts([part for _, part in self.parts(reader)]).whole

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if file_format(self.file) == "parquet":
            with pq.ParquetFile(self.file) as file:
                yield from file.iter_batches(batch_size=ROWS, row_groups=[self.group], columns=columns)
            return
        with pa.memory_map(self.file) as source:
            batch = pa.ipc.open_file(source).get_batch(self.group).select(columns)
            for start in range(0, batch.num_rows, ROWS):
                yield batch.slice(start, ROWS)


class ParquetPartitions(ReadPartitions):
    """Votes in a Parquet or Arrow file, or in a folder of them, one row per item and one column per source.

    Only the columns that are needed are read, one row group at a time. Rows without a column of
    ids are numbered through all files, in the order of the files' names. Ids have to differ, also between the files:
    the first pass compares them, at 8 bytes per item.

    Parameters
    ----------
    path
        Of a file, or of a folder, of which every such file is read.
    space
        What a label is: needed for cells of text with a notation (``a > b``), for `gold`, for
        ``on_error="abstain"``, and for errors that name the row.
    item, sources, drop, gold
        The column of ids, the columns of votes (by default all others), columns to leave out, and the column of
        known labels, which may be null.
    abstain
        A value that stands for an abstention, beside null.
    on_error
        "raise" stops at a cell that is no label, and names file, row group, row and source; "abstain" takes it
        for an abstention. `n_skipped` counts those.
    check_ids
        False for ids that are known to differ, which are then not compared.
    keep
        Megabytes of votes that stay in memory for the next pass; the rest is read again. Those of a file that has
        changed meanwhile are read again, too, and so is text, always.

    Examples
    --------
    >>> import tempfile, pathlib, pyarrow as pa, pyarrow.parquet as pq
    >>> from consilience import Classes, LabelModel
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "votes.parquet"
    >>> cells = {"id": ["x", "y", "z"] * 9, "ann": [0, 1, 1] * 9, "bob": [0, 1, None] * 9, "cleo": [0, 0, 1] * 9}
    >>> cells["id"] = [f"{name}{row}" for row, name in enumerate(cells["id"])]
    >>> pq.write_table(pa.table(cells), file, row_group_size=10)
    >>> votes = ParquetPartitions(file, Classes(2))
    >>> votes
    ParquetPartitions(27 items, 3 sources, 3 row groups)
    >>> LabelModel(Classes(2)).fit(votes).predict(votes)[:3].tolist()
    [0, 1, 1]
    """

    def __init__(
        self,
        path: str | Path,
        space: LabelSpace | None = None,
        *,
        check_ids: bool = True,
        keep: float = KEEP,
        **options: Unpack[ReadOptions],
    ) -> None:
        self.pieces, names = find_pieces(path)
        self.reader = part_reader(names, space, **options, where=repr(str(path)))
        self.steps: tuple[Callable[[Part], Part], ...] = ()
        # Parts of pieces, with the state of their file and their size, and how many bytes may yet be kept.
        self.kept: dict[Piece, tuple[Any, float, list[tuple[int, Part]]]] = {}
        self.shared = SimpleNamespace(free=keep * 1e6, ids_differ=not check_ids or self.reader.item is None)

    @cached_property
    def n_items(self) -> int:
        return sum(piece.n_rows for piece in self.pieces)

    def map(self, function: Callable[[Part], T]) -> Iterator[T]:
        def whole(part: Part) -> T:
            for step in self.steps:
                part = step(part)
            return function(part)

        checked, slices, keys = self.shared.ids_differ, duplicate_ids.n_slices(self.n_items), list[duplicate_ids.Keys]()
        for piece in self.pieces:
            for start, part in self.parts(piece):
                if not checked:
                    keys.append(duplicate_ids.slice_of(duplicate_ids.keys_here(part.votes.items), 0, slices))
                yield self.reader.run(whole, part, piece.place, start)
        if not checked:
            self._compare_ids(keys)
            self.shared.ids_differ = True

    def transform(self, function: Callable[[Part], Part]) -> ParquetPartitions:
        """Return partitions whose chunks go through `function` each time they are read: nothing is stored."""
        return self._with(steps=(*self.steps, function))

    def parts(self, piece: Piece) -> Iterator[tuple[int, Part]]:
        """Yield the parts of a piece with their first rows, from memory or else as they are read."""
        found = Path(piece.file).stat()
        state = (found.st_mtime_ns, found.st_size)
        before, size, parts = self.kept.get(piece, (None, 0.0, []))
        if before == state:
            yield from parts
            return
        if self.kept.pop(piece, None):
            self.shared.free += size
        size, parts = 0.0, []
        for start, part in piece.parts(self.reader):
            size += _size(part)
            parts = [*parts, (start, part)] if size <= self.shared.free else []
            yield start, part
        if size <= self.shared.free:  # only here once the piece was read to its end
            self.kept[piece] = (state, size, parts)
            self.shared.free -= size

    def _compare_ids(self, keys: list[duplicate_ids.Keys] | None = None) -> None:
        """Compare the ids alone, slice by slice; `keys` are those of the first one, if they are known."""
        slices = duplicate_ids.n_slices(self.n_items)
        for index in range(slices):
            if index or keys is None:
                keys = [
                    duplicate_ids.slice_of(duplicate_ids.keys_here(ids), index, slices) for ids, _, _ in self._ids()
                ]
            suspects = duplicate_ids.repeated(keys)
            if len(suspects):
                duplicate_ids.refuse_same_ids(
                    place
                    for ids, name, start in self._ids()
                    for place in duplicate_ids.places_of(suspects, ids, duplicate_ids.keys_here(ids), name, start)
                )

    def _ids(self) -> Iterator[tuple[npt.NDArray[Any], str, int]]:
        item = str(self.reader.item)
        for piece in self.pieces:
            for start, table in piece.tables([item]):
                yield columns_of(table)[item].values, piece.place, start

    def __repr__(self) -> str:
        return (
            f"ParquetPartitions({self.n_items} items, {len(self.sources)} sources, {len(self.pieces)} row "
            f"group{'s' * (len(self.pieces) != 1)})"
        )


def _size(part: Part) -> float:
    """Return the bytes of a part; objects have a size that nobody knows, so that they are never kept."""
    tables = [part.votes] if part.gold is None else [part.votes, part.gold]
    arrays: list[npt.NDArray[Any]] = [array for one in tables for array in (one.labels, one.observed, one.items)]
    return float(np.inf) if any(array.dtype == object for array in arrays) else sum(array.nbytes for array in arrays)


def find_pieces(path: str | Path) -> tuple[tuple[Piece, ...], list[str]]:
    """Return the row groups of a file, or of all files in a folder, and the names of their columns."""
    files, pieces, names, first_id = _files(Path(path)), list[Piece](), list[str](), 0
    for file in files:
        columns, sizes = _described(file)
        names = names or columns
        if set(columns) != set(names):
            odd = sorted(set(columns) ^ set(names))
            raise FileFormatError(
                f"{str(files[0])!r} and {str(file)!r} do not have the same columns: only one of them has "
                f"{', '.join(map(repr, odd[:5]))}. Write the missing column with nulls, or move the file elsewhere."
            )
        for group, size in enumerate(sizes):
            if size:
                pieces.append(Piece(str(file), group, size, first_id))
            first_id += size
    return tuple(pieces), names


def _files(path: Path) -> list[Path]:
    endings = {ending for ending, kind in FORMATS.items() if kind in ("parquet", "arrow")}
    if not path.exists():
        raise FileFormatError(f"There is no file or folder {str(path)!r}.")
    if not path.is_dir():
        if path.suffix.lower() not in endings:
            raise FileFormatError(
                f"{str(path)!r} cannot be read in pieces. Use Parquet or Arrow ({', '.join(sorted(endings))}), or "
                "read_votes(path) if it fits into memory."
            )
        return [path]
    found = [
        file
        for file in sorted(path.rglob("*"))
        if file.suffix.lower() in endings and not any(part[:1] in "._" for part in file.relative_to(path).parts)
    ]
    if not found:
        raise FileFormatError(f"The folder {str(path)!r} holds no file that ends in {', '.join(sorted(endings))}.")
    return found


def _described(file: Path) -> tuple[list[str], list[int]]:
    """Return the names of the columns of a file and the numbers of rows of its row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if file_format(file) == "parquet":
            with pq.ParquetFile(file) as parquet:
                known = parquet.metadata
                sizes = [known.row_group(group).num_rows for group in range(known.num_row_groups)]
                return list(parquet.schema_arrow.names), sizes
        with pa.memory_map(str(file)) as source:
            stream = pa.ipc.open_file(source)
            sizes = [stream.get_batch(group).num_rows for group in range(stream.num_record_batches)]
            return list(stream.schema.names), sizes
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(repr(str(file)), error) from None


def _unreadable(place: str, error: Exception) -> FileFormatError:
    return FileFormatError(
        f"{place} cannot be read: it is damaged or cut short ({str(error).splitlines()[0]}). Write or download it "
        "again."
    )
