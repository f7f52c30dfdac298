"""Tables to look at: one row per source as text or HTML, and the pieces of HTML that the report shares.

Every text is escaped here; only `Cell.html` is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from consilience.arrays import Batch, BoolArray
from consilience.estimation.protocol import Diagnostic
from consilience.exceptions import needed

__all__ = ["Cell", "SourceTable", "findings_fragment", "table_fragment", "votes_fragment"]


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Parameters
    ----------
    html
        What is shown; already safe.
    key
        What the column is sorted by: a number, or text.
    """

    html: str
    key: float | str = ""

    @classmethod
    def text(cls, text: str, key: float | str | None = None) -> Cell:
        """Return a cell that shows this text, whatever it contains."""
        return cls(escape(text), text if key is None else key)


def table_fragment(columns: Iterable[tuple[str, Sequence[Cell]]], *, name: str = "", marked: Iterable[int] = ()) -> str:
    """Return a table with one column per name, in which numbers stand on the right.

    Examples
    --------
    >>> table_fragment([("source", [Cell.text("<ann>")])])
    '<table><thead><tr><th>source</th></tr></thead><tbody><tr><td>&lt;ann&gt;</td></tr></tbody></table>'
    """
    names, cells = zip(*columns, strict=True)
    numeric = [bool(column) and all(isinstance(cell.key, (int, float)) for cell in column) for column in cells]
    right = [' class="number"' if flag and name else "" for flag in numeric]
    headings = [f'<button type="button">{escape(text)}</button>' if name else escape(text) for text in names]
    head = "".join(f"<th{side}>{text}</th>" for side, text in zip(right, headings, strict=True))
    chosen = set(marked)
    rows = []
    for index, row in enumerate(zip(*cells, strict=True)):
        shown = [
            f"<td{side}{_key(cell) if name else ''}>{cell.html}</td>" for side, cell in zip(right, row, strict=True)
        ]
        rows.append(f"<tr{' class=marked' if index in chosen else ''}>{''.join(shown)}</tr>")
    identity = f' id="{escape(name)}" class="sortable"' if name else ""
    return f"<table{identity}><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def findings_fragment(findings: Iterable[Diagnostic], next_steps: Mapping[str, str] | None = None) -> str:
    """Return a list of findings, each with its severity, its code and what to do about it.

    Examples
    --------
    >>> findings_fragment([Diagnostic("no-signal", "warning", (), "Chance.")])
    '<ul class="findings"><li class="warning"><b>warning</b> <code>no-signal</code> Chance.</li></ul>'
    """
    steps = {} if next_steps is None else next_steps
    lines = []
    for finding in findings:
        step = steps.get(finding.code, "")
        shown = f' <span class="step">{escape(step)}</span>' if step else ""
        lines.append(
            f'<li class="{escape(finding.severity)}"><b>{escape(finding.severity)}</b> '
            f"<code>{escape(finding.code)}</code> {escape(finding.message)}{shown}</li>"
        )
    return f'<ul class="findings">{"".join(lines)}</ul>' if lines else ""


def votes_fragment(
    labels: Batch, observed: BoolArray, sources: Sequence[str], items: Batch, *, more: bool = False
) -> str:
    """Return a few votes as a table, one row per item and one column per source; an abstention is an empty cell.

    `more` says that there are sources beside these.
    """
    columns = [("item", [Cell.text(str(item)) for item in items.tolist()])]
    for index, source in enumerate(sources):
        cells = [
            _short(label) if seen else "" for label, seen in zip(labels[:, index], observed[:, index], strict=True)
        ]
        columns.append((source, [Cell.text(cell) for cell in cells]))
    if more:
        columns.append(("…", [Cell.text("…")] * len(items)))
    return table_fragment(columns)


def _short(label: object, size: int = 40) -> str:
    text = str(label.tolist() if hasattr(label, "tolist") else label)
    return text if len(text) <= size else text[: size - 1] + "…"


def _key(cell: Cell) -> str:
    return "" if isinstance(cell.key, str) and escape(cell.key) == cell.html else f' data-key="{escape(str(cell.key))}"'


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
        lines = aligned(dict(zip(self.columns, self._shown(), strict=True)), self.columns)
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
        return needed("pandas", "to_pandas").DataFrame(self.columns)

    def to_polars(self) -> Any:
        """Return a polars DataFrame."""
        return needed("polars", "to_polars").DataFrame(self.columns)

    def _shown(self) -> list[list[str]]:
        return [[_text(name, value) for value in values] for name, values in self.columns.items()]


def aligned(shown: Mapping[str, Sequence[str]], columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the lines of a table: texts on the left of their column, other values on the right."""
    rows = [list(shown), *map(list, zip(*shown.values(), strict=True))]
    width = [max(len(row[place]) for row in rows) for place in range(len(shown))]
    is_text = [all(isinstance(value, str) for value in values) for values in columns.values()]
    lines = []
    for row in rows:
        cells = zip(row, width, is_text, strict=True)
        line = "  ".join(cell.ljust(size) if left else cell.rjust(size) for cell, size, left in cells)
        lines.append(line.rstrip())
    return lines


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in _SHARES:
        return f"{value:.0%}"
    if isinstance(value, float):
        return "inf" if np.isinf(value) else f"{value:.3f}"
    return str(value)
