"""What was learned about the sources, in the same words for every label type."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import Any

import numpy as np

from consilience.arrays import FloatArray, IntArray
from consilience.exceptions import MissingPackageError
from consilience.families.base import Diagnostic, Parameters, Summary

__all__ = ["SourceModel", "SourceTable"]


@dataclass(frozen=True, eq=False)
class SourceModel:
    """Sources, the family's parameters, and their summary.

    Parameters
    ----------
    sources
        Names, in the order of the columns.
    votes
        ``(m,)`` how many votes each source cast.
    method, reason
        How the parameters were learned, and why in that way.
    dependencies
        Pairs of sources that were not taken as independent.
    """

    sources: tuple[str, ...]
    parameters: Parameters
    summary: Summary
    n_items: int
    votes: IntArray
    method: str
    reason: str
    dependencies: tuple[tuple[str, str], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    names_given: bool = True

    @property
    def expected_cost(self) -> FloatArray:
        """Mean cost of each source to the truth."""
        return self.summary.expected_cost

    @property
    def weight(self) -> FloatArray:
        """How loudly each source counts."""
        return self.summary.weight

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of `weight`."""
        return self.summary.standard_error

    @property
    def correlation(self) -> FloatArray:
        """``(m, m)`` correlation given the truth; zero outside the dependencies."""
        return self.summary.correlation

    def table(self) -> SourceTable:
        """Return one row per source; where labels are records, with the qualities in each field beside."""
        return SourceTable(
            {
                "source": list(self.sources),
                "votes": self.votes.tolist(),
                "coverage": (self.votes / max(self.n_items, 1)).tolist(),
                "expected_cost": self.summary.expected_cost.tolist(),
                "cost_standard_error": self.summary.cost_standard_error.tolist(),
                "weight": self.summary.weight.tolist(),
                "standard_error": self.summary.standard_error.tolist(),
                **_columns_of_parts(self.summary, ""),
            }
        )


@dataclass(frozen=True)
class SourceTable:
    """One row per source; prints well, shows as HTML in a notebook, converts to any frame."""

    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns["source"])

    def __repr__(self) -> str:
        rows = [list(self.columns), *(list(row) for row in zip(*self._shown(), strict=True))]
        width = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = [
            "  ".join(
                cell.ljust(size) if column == 0 else cell.rjust(size)
                for column, (cell, size) in enumerate(zip(row, width, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in zip(*self._shown(), strict=True)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

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


def _columns_of_parts(summary: Summary, prefix: str) -> dict[str, list[Any]]:
    """Return the qualities field by field, where labels are records."""
    columns: dict[str, list[Any]] = {}
    for name, part in summary.parts.items():
        columns[f"{prefix}{name} expected_cost"] = part.expected_cost.tolist()
        columns[f"{prefix}{name} weight"] = part.weight.tolist()
        columns |= _columns_of_parts(part, f"{prefix}{name}/")
    return columns


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingPackageError(f"{name} is not installed. Run: pip install {name}, or use to_arrow().") from None


def _text(name: str, value: Any) -> str:
    if name == "coverage":
        return f"{value:.0%}"
    if isinstance(value, float):
        return "inf" if np.isinf(value) else f"{value:.3f}"
    return str(value)
