"""Tables to look at: one row per source as text or HTML, and the pieces of HTML that the report shares.

Every text is escaped here; only `Cell.html` is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from consilience.estimation.protocol import Diagnostic
from consilience.exceptions import needed

#: Columns that are shown in percent.
_SHARES = frozenset({"coverage", "overlaps", "conflicts", "accuracy"})


@dataclass(frozen=True)
class Cell:
    """One cell of a table: what is shown, already safe, and the number or text that its column is sorted by."""

    html: str
    key: float | str = ""

    @classmethod
    def text(cls, text: str, key: float | str | None = None) -> Cell:
        """Return a cell that shows this text, whatever it contains."""
        return cls(escape(text), text if key is None else key)


def table_fragment(columns: Iterable[tuple[str, Sequence[Cell]]], *, name: str = "", marked: Iterable[int] = ()) -> str:
    """Return a table; one with a name can be sorted, and its numbers stand on the right."""
    head, body = [], []
    for title, cells in columns:
        is_number = bool(cells) and all(isinstance(cell.key, (int, float)) for cell in cells)
        side = ' class="number"' if is_number and name else ""
        button = f'<button type="button">{escape(title)}</button>' if name else escape(title)
        head.append(f"<th{side}>{button}</th>")
        column = []
        for cell in cells:
            sorts_as_shown = not name or cell == Cell.text(str(cell.key))
            key = "" if sorts_as_shown else f' data-key="{escape(str(cell.key))}"'
            column.append(f"<td{side}{key}>{cell.html}</td>")
        body.append(column)
    chosen = set(marked)
    rows = [
        f"<tr{' class=marked' if index in chosen else ''}>{''.join(row)}</tr>"
        for index, row in enumerate(zip(*body, strict=True))
    ]
    identity = f' id="{escape(name)}" class="sortable"' if name else ""
    return f"<table{identity}><thead><tr>{''.join(head)}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def findings_fragment(findings: Iterable[Diagnostic], next_steps: Mapping[str, str] | None = None) -> str:
    """Return a list of findings, each with its severity, its code and what to do about it."""
    lines = []
    for finding in findings:
        step = (next_steps or {}).get(finding.code, "")
        shown = f' <span class="step">{escape(step)}</span>' if step else ""
        lines.append(
            f'<li class="{escape(finding.severity)}"><b>{escape(finding.severity)}</b> '
            f"<code>{escape(finding.code)}</code> {escape(finding.message)}{shown}</li>"
        )
    return f'<ul class="findings">{"".join(lines)}</ul>' if lines else ""


@dataclass(frozen=True)
class SourceTable:
    """One row per source; prints well, shows as HTML in a notebook, converts to any frame."""

    columns: dict[str, list[Any]]
    #: One line that is shown below the rows.
    note: str = ""

    def __len__(self) -> int:
        return len(self.columns["source"])

    def __repr__(self) -> str:
        return "\n".join([*aligned(self._shown(), self.columns), *filter(None, [self.note])])

    def _repr_html_(self) -> str:
        table = table_fragment((name, list(map(Cell.text, texts))) for name, texts in self._shown().items())
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

    def _shown(self) -> dict[str, list[str]]:
        return {name: [_text(name, value) for value in values] for name, values in self.columns.items()}


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in _SHARES:
        return f"{value:.0%}"
    if isinstance(value, float):
        return "inf" if np.isinf(value) else f"{value:.3f}"
    return str(value)


def aligned(shown: Mapping[str, Sequence[str]], columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the lines of a table: texts on the left of their column, other values on the right."""
    padded = []
    for (name, texts), values in zip(shown.items(), columns.values(), strict=True):
        width = max(map(len, [name, *texts]))
        pad = str.ljust if all(isinstance(value, str) for value in values) else str.rjust
        padded.append([pad(text, width) for text in [name, *texts]])
    return ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
