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
from consilience.lazy import pyarrow as pa

#: Columns that are always shown in percent.
SHARES = frozenset({"coverage", "overlaps", "conflicts", "accuracy", "agreement", "right", "precision", "recall"})
SHARES |= {"other_labels", "class_accuracy", "picks_first", "tie_rate", "cycles", "order_flips"}


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
            titled = f' data-title="{escape(title)}"' if name else ""
            column.append(f"<td{side}{key}{titled}>{cell.html}</td>")
        body.append(column)
    chosen = set(marked)
    rows = [
        f"<tr{' class=marked' if index in chosen else ''}>{''.join(row)}</tr>"
        for index, row in enumerate(zip(*body, strict=True))
    ]
    identity = f' id="{escape(name)}" class="sortable"' if name else ""
    return f"<table{identity}><thead><tr>{''.join(head)}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def findings_fragment(findings: Iterable[Diagnostic]) -> str:
    """Return a list of findings, each with its severity and its code."""
    lines = [
        f'<li class="{escape(finding.severity)}"><b>{escape(finding.severity)}</b> '
        f"<code>{escape(finding.code)}</code> {escape(finding.message)}</li>"
        for finding in findings
    ]
    return f'<ul class="findings">{"".join(lines)}</ul>' if lines else ""


@dataclass(frozen=True)
class SourceTable:
    """One row per source; prints well, shows as HTML in a notebook, converts to any frame."""

    columns: dict[str, list[Any]]
    #: Lines that are shown below the rows.
    note: str = ""
    #: Additional columns in percent, and columns that are only shown if their values differ.
    shares: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.columns["source"])

    def __repr__(self) -> str:
        return "\n".join([*aligned(self.shown()), *filter(None, [self.note])])

    def _repr_html_(self) -> str:
        table = table_fragment((name, list(map(Cell.text, texts))) for name, texts in self.shown().items())
        return table + "".join(f"<p>{escape(line)}</p>" for line in self.note.splitlines())

    def to_arrow(self) -> Any:
        """Return a pyarrow Table."""
        return pa.table(self.columns)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame."""
        return needed("pandas", "to_pandas").DataFrame(self.columns)

    def to_polars(self) -> Any:
        """Return a polars DataFrame."""
        return needed("polars", "to_polars").DataFrame(self.columns)

    def shown(self) -> dict[str, list[str]]:
        """Return what people read: a figure with its interval in one column, and no error of a weight."""
        texts: dict[str, list[str]] = {}
        for name, values in self.columns.items():
            base = name.removesuffix("_low").removesuffix("_high")
            if name.endswith("weight_standard_error") or (name != base and base in self.columns):
                continue
            digits = any(isinstance(value, float) and 0.1 <= abs(value) < np.inf for value in values)
            cells = [figure(name, value, self.shares, hundredths=digits) for value in values]
            if f"{base}_low" in self.columns:
                ends = [self.columns[f"{base}{end}"] for end in ("_low", "_high")]
                texts[name] = [
                    f"{cell} ({between(base, low, high, self.shares)})"
                    for cell, low, high in zip(cells, *ends, strict=True)
                ]
            elif name not in self.optional or len(set(cells)) > 1:
                texts[name] = cells
        return texts


def figure(name: str, value: Any, shares: frozenset[str] = frozenset(), *, hundredths: bool = False) -> str:
    """Return a number as people read it: percent for shares, three digits otherwise; a dash where there is none.

    Small numbers have two digits of their own, unless `hundredths` are enough, as among larger ones.
    """
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "-"
    if name in SHARES or name in shares:
        return f"{value:.1%}" if name in ("accuracy", "right") else f"{value:.0%}"
    if isinstance(value, float):
        if np.isinf(value):
            return "inf"
        if 0 < abs(value) < 0.01 and not hundredths:
            return f"{value:.2g}"
        return f"{round(value, 2) + 0.0:.2f}"
    return str(value)


def between(name: str, low: float, high: float, shares: frozenset[str] = frozenset()) -> str:
    """Return an interval, such as "9-21%" or "0.52-0.71"."""
    ends = [figure(name, end, shares) for end in (low, high)]
    if "-" in ends:
        return "?"
    return f"{ends[0].removesuffix('%')}-{ends[1]}" if ends[1].endswith("%") else "-".join(ends)


def is_numeric(name: str, texts: Sequence[str]) -> bool:
    """Return whether a column holds numbers, to judge by how they are written."""
    return name != "source" and all(text[:1].isdigit() or text[:1] in "-+" or text == "inf" for text in texts)


def aligned(shown: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the lines of a table: numbers on the right of their column, texts on the left."""
    padded = []
    for name, texts in shown.items():
        width = max(map(len, [name, *texts]))
        pad = str.rjust if is_numeric(name, texts) else str.ljust
        padded.append([pad(text, width) for text in [name, *texts]])
    return ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
