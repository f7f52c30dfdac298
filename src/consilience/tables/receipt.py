"""What became of the cells of a table on their way to votes: used, empty, or not a vote and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from consilience.arrays import is_null
from consilience.tables.display import SourceTable
from consilience.tables.files import SHOWN

#: One cell that is not a vote: its source, item, reason and contents.
Fault = tuple[str, Any, str, Any]
_TITLES = ("source", "reason", "cells", "first_item", "example")


def fault_table(faults: Iterable[Fault]) -> SourceTable:
    """Return one row per source and reason: how many cells are not votes, and the first of them."""
    found: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        found.setdefault((fault[0], fault[2]), []).append(fault)
    listed = []
    for (source, reason), own in sorted(found.items(), key=lambda entry: (entry[0][0], -len(entry[1]))):
        _, item, _, cell = own[0]
        example = "" if is_null(cell) else " ".join(str(cell).split())[:SHOWN]
        listed.append((source, reason, len(own), str(item), example))
    return SourceTable({title: [row[place] for row in listed] for place, title in enumerate(_TITLES)})


@dataclass(frozen=True)
class Receipt:
    """How the cells of a table were read; prints as one line.

    Examples
    --------
    >>> from consilience.tables import read_votes
    >>> import pandas as pd
    >>> votes = read_votes(pd.DataFrame({"id": ["x", "y"], "ann": ["cat", "N/A"], "bob": ["dog", None]}))
    >>> print(votes.receipt.used, votes.receipt.empty, votes.receipt.reasons)
    2 1 {"'N/A'": 1}
    """

    #: Cells of votes, after repeated rows are merged.
    cells: int
    empty: int = 0
    #: One row per source and reason, for cells that are neither empty nor votes.
    faults: SourceTable = field(default_factory=lambda: fault_table(()))
    #: Rows that were merged with an earlier one.
    merged: int = 0
    #: The column of item ids; None if rows are numbered.
    ids: str | None = None
    #: Columns that do not look like votes.
    left_out: tuple[str, ...] = ()
    #: Ends of the scale that cells such as "8/10" name.
    scale: tuple[float, float] | None = None
    #: The value that means an abstention, in addition to empty cells, if one was named or guessed.
    abstain: Any = None
    #: The unit of the counts: "cells", or "comparisons".
    unit: str = "cells"
    #: Further notes for the user, in sentences.
    notes: tuple[str, ...] = ()

    @property
    def used(self) -> int:
        """How many cells are votes."""
        return self.cells - self.empty - sum(self.faults.columns["cells"])

    @property
    def reasons(self) -> dict[str, int]:
        """Why cells are not votes, most frequent first; empty ones are not counted."""
        total: dict[str, int] = {}
        for reason, count in zip(self.faults.columns["reason"], self.faults.columns["cells"], strict=True):
            total[reason] = total.get(reason, 0) + count
        return dict(sorted(total.items(), key=lambda entry: -entry[1]))

    def __add__(self, faults: list[Fault]) -> Receipt:
        """Return the receipt with more cells that are not votes."""
        columns = {title: [*self.faults.columns[title], *more] for title, more in fault_table(faults).columns.items()}
        return replace(self, faults=SourceTable(columns))

    def __str__(self) -> str:
        counts = [f"{self.empty:,} empty"] * bool(self.empty)
        counts += [f"{count:,} {reason}" for reason, count in self.reasons.items()]
        used = f"{self.used:,} of {self.cells:,}" if counts else f"all {self.cells:,}"
        parts = [f"Used {used} {self.unit}{': ' if counts else ''}{', '.join(counts)}"]
        if self.merged:
            parts.append(f"{self.merged:,} duplicate row{'s' * (self.merged != 1)} merged")
        if self.left_out:
            parts.append(f"left out {', '.join(map(repr, self.left_out))} (not votes)")
        if self.unit == "cells":
            parts.append(
                "rows are numbered because no column holds ids" if self.ids is None else f"ids from column {self.ids!r}"
            )
        return " ".join([f"{'; '.join(parts)}.", *self.notes])

    def to_json(self, words: Callable[[str], str] = str) -> dict[str, Any]:
        """Return the receipt as a JSON object; `words` translates the notes for the caller."""
        return {
            "cells": self.cells,
            "used": self.used,
            "empty": self.empty,
            "not_votes": self.reasons,
            "merged": self.merged,
            "ids": self.ids,
            "left_out": list(self.left_out),
            "notes": list(map(words, self.notes)),
            "faults": self.faults.to_arrow().to_pylist(),
        }
