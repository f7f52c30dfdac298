"""A table with one row per source, to look at and to take elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import Any

import numpy as np

from consilience.exceptions import MissingPackageError
from consilience.tables.html import Cell, table_fragment

__all__ = ["SourceTable"]

#: Columns that are shown in percent.
_SHARES = frozenset({"coverage", "overlaps", "conflicts", "accuracy"})


@dataclass(frozen=True)
class SourceTable:
    """One row per source; prints well, shows as HTML in a notebook, converts to any frame."""

    columns: dict[str, list[Any]]
    #: One line that is shown below the rows.
    note: str = ""

    def __len__(self) -> int:
        return len(self.columns["source"])

    def __repr__(self) -> str:
        rows = [list(self.columns), *(list(row) for row in zip(*self._shown(), strict=True))]
        width = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        is_text = [all(isinstance(value, str) for value in values) for values in self.columns.values()]
        lines = [
            "  ".join(
                cell.ljust(size) if is_text[column] else cell.rjust(size)
                for column, (cell, size) in enumerate(zip(row, width, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *filter(None, [self.note])])

    def _repr_html_(self) -> str:
        shown = zip(self.columns, self._shown(), strict=True)
        table = table_fragment((name, [Cell.text(text) for text in texts]) for name, texts in shown)
        return f"{table}<p>{escape(self.note)}</p>" if self.note else table

    def to_arrow(self) -> Any:
        """Return a pyarrow Table."""
        import pyarrow as pa

        return pa.table(self.columns)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame."""
        return _package("pandas").DataFrame(self.columns)

    def to_polars(self) -> Any:
        """Return a polars DataFrame."""
        return _package("polars").DataFrame(self.columns)

    def _shown(self) -> list[list[str]]:
        return [[_text(name, value) for value in values] for name, values in self.columns.items()]


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingPackageError(f"{name} is not installed. Run: pip install {name}, or use to_arrow().") from None


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in _SHARES:
        return f"{value:.0%}"
    if isinstance(value, float):
        return "inf" if np.isinf(value) else f"{value:.3f}"
    return str(value)
