"""Parquet and Arrow files in pieces: a row group, or a record batch, at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from consilience.exceptions import FileFormatError
from consilience.lazy import parquet as pq
from consilience.lazy import pyarrow as pa
from consilience.tables.files import FORMATS, file_format, first_line

#: Rows that are read at once.
ROWS = 1 << 16


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file, or a record batch of an Arrow file; `first_row` counts rows through all files."""

    file: str
    group: int
    n_rows: int
    first_row: int

    @property
    def place(self) -> str:
        """What errors call it."""
        return f"{self.file!r}, row group {self.group}"

    def tables(self, columns: list[str] | None = None) -> Iterator[tuple[int, pa.Table]]:
        """Yield some of the columns, at most `ROWS` rows at a time, each time with the number of the first row."""
        start = 0
        try:
            for batch in self._batches(columns):
                batch.validate(full=True)  # an offset beyond its buffer would take the process along
                if batch.num_rows:
                    yield start, pa.Table.from_batches([batch])
                start += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.place, error) from None

    def _batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        if file_format(self.file) == "parquet":
            with pq.ParquetFile(self.file) as file:
                yield from file.iter_batches(batch_size=ROWS, row_groups=[self.group], columns=columns)
            return
        with pa.memory_map(self.file) as source:
            batch = pa.ipc.open_file(source).get_batch(self.group)
            batch = batch if columns is None else batch.select(columns)
            for start in range(0, batch.num_rows, ROWS):
                yield batch.slice(start, ROWS)


def find_row_groups(path: str | Path) -> tuple[tuple[RowGroup, ...], list[str]]:
    """Return the row groups of a file, or of all files in a folder, and the names of their columns."""
    files, groups, names, first_row = _files(Path(path)), list[RowGroup](), list[str](), 0
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
                groups.append(RowGroup(str(file), group, size, first_row))
            first_row += size
    return tuple(groups), names


def _files(path: Path) -> list[Path]:
    endings = {ending for ending, kind in FORMATS.items() if kind in ("parquet", "arrow")}
    if not os.path.exists(path):
        raise FileFormatError(f"There is no file or folder {str(path)!r}.")
    if not os.path.isdir(path):
        if path.suffix.lower() not in endings:
            raise FileFormatError(
                f"{str(path)!r} cannot be read in pieces. Use Parquet or Arrow ({', '.join(sorted(endings))}), or "
                "read the table whole if it fits into memory."
            )
        return [path]
    found = [
        file
        for file in sorted(path.rglob("*"))
        if file.suffix.lower() in endings and not any(part[:1] in "._" for part in file.relative_to(path).parts)
    ]
    if not found:
        raise FileFormatError(f"The folder {str(path)!r} contains no file that ends in {', '.join(sorted(endings))}.")
    return found


def _described(file: Path) -> tuple[list[str], list[int]]:
    """Return the names of the columns of a file and the numbers of rows of its row groups."""
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
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(repr(str(file)), error) from None


def _unreadable(place: str, error: Exception) -> FileFormatError:
    return FileFormatError(
        f"{place} cannot be read: it is damaged or cut short ({first_line(error)}). Write or download it again."
    )
