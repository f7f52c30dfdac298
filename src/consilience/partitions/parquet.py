"""Votes in Parquet or Arrow files, read one row group at a time, so that they may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, Unpack

import numpy as np
import numpy.typing as npt

import consilience.partitions.duplicate_ids as duplicate_ids
from consilience.label_types.base import LabelSpace
from consilience.partitions.base import InMemoryPartitions, Part
from consilience.partitions.reading import PartReader, ReadOptions, ReadPartitions, part_reader
from consilience.progress import working
from consilience.tables.files import RowGroup, find_row_groups
from consilience.tables.frames import columns_of

T = TypeVar("T")

#: Megabytes of votes that stay in memory between passes.
KEEP = 512.0


class ParquetPartitions(ReadPartitions):
    """Votes in a Parquet or Arrow file, or in a folder of them, one row per item and one column per source.

    Only the needed columns are read, one row group at a time. Rows without a column of ids are numbered through all
    files, in the order of the file names. Ids must be unique across all files; the first pass checks it, with 8 bytes
    per item.

    Parameters
    ----------
    path
        A file, or a folder whose Parquet and Arrow files are all read.
    space
        The label type. It is needed for cells of text with a notation (``a > b``), for `gold`, for
        ``on_error="abstain"``, and for errors that name the row.
    item, sources, drop, gold
        The column of ids, the columns of votes (by default all others), columns to leave out, and the column of
        known labels, which may be null.
    abstain
        A value that stands for an abstention, in addition to null.
    on_error
        "raise" stops at a cell that is not a label, and names file, row group, row and source; "abstain" counts it as
        an abstention. `n_skipped` is the number of such cells.
    check_ids
        False if ids are known to be unique; they are not compared then.
    keep
        Megabytes of votes that stay in memory for the next pass; the rest is read again, and so are text and files
        that have changed.

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
        self.groups, names = find_row_groups(path)
        self.reader = part_reader(names, space, **options, where=repr(str(path)))
        self.steps: tuple[Callable[[Part], Part], ...] = ()
        # Parts of pieces, with the state of their file and their size. `shared.free` is the number of bytes left.
        self.kept: dict[RowGroup, tuple[Any, float, list[tuple[int, Part]]]] = {}
        self.shared = SimpleNamespace(free=keep * 1e6, ids_differ=not check_ids or self.reader.item is None)

    @cached_property
    def n_items(self) -> int:
        return sum(piece.n_rows for piece in self.groups)

    def map(self, function: Callable[[Part], T]) -> Iterator[T]:
        def whole(part: Part) -> T:
            return function(self.transformed(part))

        checked, slices, keys = self.shared.ids_differ, duplicate_ids.n_slices(self.n_items), list[duplicate_ids.Keys]()
        with working(total=self.n_items) as bar:
            for piece in self.groups:
                for start, part in self.parts(piece):
                    if not checked:
                        keys.append(duplicate_ids.slice_of(duplicate_ids.keys_of(part.votes.items), 0, slices))
                    yield self.reader.run(whole, part, piece.place, start)
                    bar.advance(len(part))
        if not checked:
            self._compare_ids(keys)
            self.shared.ids_differ = True

    def transform(self, function: Callable[[Part], Part]) -> ParquetPartitions:
        """Return partitions whose chunks go through `function` each time they are read."""
        return self._with(steps=(*self.steps, function))

    def transformed(self, part: Part) -> Part:
        """Return a part after all functions that were given to `transform`."""
        for step in self.steps:
            part = step(part)
        return part

    def pieces(self) -> list[Any]:
        sizes = {group.file: Path(group.file).stat().st_size for group in self.groups}
        reader = self.reader
        how = [reader.sources, reader.item, reader.abstain, reader.on_error, self.steps]
        return [[Path(one.file).name, sizes[one.file], one.group, one.n_rows, how] for one in self.groups]

    def piece(self, index: int) -> Iterator[Part]:
        yield from (self.transformed(part) for _, part in self.parts(self.groups[index]))

    def write_labels(self, labeler: Any, targets: dict[int, Path]) -> Iterator[tuple[int, dict[str, int]]]:
        self.check_ids()
        return super().write_labels(labeler, targets)

    def parts(self, piece: RowGroup) -> Iterator[tuple[int, Part]]:
        """Yield the parts of a piece, each with its first row, from memory or from the file."""
        found = Path(piece.file).stat()
        state = (found.st_mtime_ns, found.st_size)
        before, size, parts = self.kept.get(piece, (None, 0.0, []))
        if before == state:
            yield from parts
            return
        if self.kept.pop(piece, None):
            self.shared.free += size
        size, parts = 0.0, []
        for start, part in parts_of(piece, self.reader):
            size += _size(part)
            parts = [*parts, (start, part)] if size <= self.shared.free else []
            yield start, part
        if size <= self.shared.free:  # the piece was read to its end
            self.kept[piece] = (state, size, parts)
            self.shared.free -= size

    def _compare_ids(self, keys: list[duplicate_ids.Keys] | None = None) -> None:
        """Read the ids alone and compare them, slice by slice; `keys` are those of the first slice, if known."""
        slices = duplicate_ids.n_slices(self.n_items)
        for index in range(slices):
            if index or keys is None:
                keys = [duplicate_ids.slice_of(duplicate_ids.keys_of(ids), index, slices) for ids, _, _ in self._ids()]
            suspects = duplicate_ids.repeated(keys)
            if len(suspects):
                duplicate_ids.refuse_same_ids(
                    place
                    for ids, name, start in self._ids()
                    for place in duplicate_ids.places_of(suspects, ids, name, start)
                )

    def _ids(self) -> Iterator[tuple[npt.NDArray[Any], str, int]]:
        item = str(self.reader.item)
        for piece in self.groups:
            for start, table in piece.tables([item]):
                yield columns_of(table)[item].values, piece.place, start

    def __repr__(self) -> str:
        return (
            f"ParquetPartitions({self.n_items} items, {len(self.sources)} sources, {len(self.groups)} row "
            f"group{'s' * (len(self.groups) != 1)})"
        )


def _size(part: Part) -> float:
    """Return the bytes of a part; infinite for objects, whose size is unknown."""
    tables = [part.votes] if part.gold is None else [part.votes, part.gold]
    arrays: list[npt.NDArray[Any]] = [array for one in tables for array in (one.labels, one.observed, one.items)]
    return float(np.inf) if any(array.dtype == object for array in arrays) else sum(array.nbytes for array in arrays)


def parts_of(piece: RowGroup, reader: PartReader) -> Iterator[tuple[int, Part]]:
    """Yield the rows of a row group as parts, each with the number of its first row there."""
    for start, table in piece.tables(reader.columns):
        yield start, reader.part(table, piece.place, start, piece.first_row + start)


def part_of(piece: RowGroup, reader: PartReader) -> Part:
    """Return all rows of a row group as one part."""
    return InMemoryPartitions.of_parts([part for _, part in parts_of(piece, reader)]).whole
