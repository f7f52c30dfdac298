"""Where public data sets lie, and tables that are checked before they are used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import Batch
from consilience.exceptions import FileFormatError, MissingDataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Origin", "Table", "data_folder", "read_table"]

VARIABLE = "CONSILIENCE_DATA"


@dataclass(frozen=True)
class Origin:
    """The folder of a data set, what it is, and where it comes from."""

    name: str
    what: str
    where: str

    def missing(self, path: Path) -> MissingDataError:
        return MissingDataError(
            f"{path} is missing: {self.what}. It is not shipped with the package, as its licence is its owner's. "
            f"Get it from {self.where}, and put it there."
        )

    def path(self, folder: str | Path | None, name: str) -> Path:
        """Return the path of a file of the set, which is there."""
        path = data_folder(folder) / self.name / name
        if not path.is_file():
            raise self.missing(path)
        return path


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file as arrays."""

    columns: dict[str, Batch]
    path: Path

    def __getitem__(self, name: str) -> Batch:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def numbers(self, name: str) -> Any:
        """Return a column as floats, NaN where a value is missing."""
        try:
            return self.columns[name].astype(np.float64)
        except (TypeError, ValueError):
            raise FileFormatError(
                f"{self.path}: the column {name!r} does not hold numbers. Is it the right file?"
            ) from None


def data_folder(folder: str | Path | None = None) -> Path:
    """Return the folder of public data sets: the one given, or the one that CONSILIENCE_DATA names."""
    name = folder if folder is not None else os.environ.get(VARIABLE)
    if not name:
        raise MissingDataError(
            f"{VARIABLE} is not set. Let it name the folder with the data sets, one folder each, or pass folder=."
        )
    path = Path(name)
    if not path.is_dir():
        said = f"folder={str(folder)!r}" if folder is not None else f"{VARIABLE}={name!r}"
        raise MissingDataError(f"{said} is not a folder. Name the one that holds the data sets, one folder each.")
    return path


def read_table(path: Path, columns: Sequence[str] = (), rows: int | None = None) -> Table:
    """Read a Parquet or CSV file (maybe gzipped), and check that it has the columns and as many rows."""
    found = _arrow(path)
    missing = [name for name in columns if name not in found.column_names]
    if missing:
        raise FileFormatError(
            f"{path} has no column {missing[0]!r}. Expected are {', '.join(columns)}; it has "
            f"{', '.join(found.column_names[:20])}{', ...' if len(found.column_names) > 20 else ''}."
        )
    if rows is not None and found.num_rows != rows:
        raise FileFormatError(f"{path} has {found.num_rows} rows, not {rows}. Is it complete? Get it again.")
    arrays = {name: found.column(name).to_numpy(zero_copy_only=False) for name in found.column_names}
    return Table(arrays, path)


def _arrow(path: Path) -> pa.Table:
    import pyarrow as pa

    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            return parquet.read_table(path)
        from pyarrow import csv

        return csv.read_csv(path)
    except (pa.ArrowException, OSError) as error:
        raise FileFormatError(f"{path} cannot be read as a table: {error}") from None
