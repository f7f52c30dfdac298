"""Votes from files, wide or long, with the column names that other tools use; and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.arrays import Batch, as_object_array
from consilience.exceptions import FileFormatError, InvalidLabelError
from consilience.label_types import Preferences
from consilience.label_types.base import LabelSpace
from consilience.tables.cells import spelled_out, tighten
from consilience.tables.files import read_table, typed_cells, write_table
from consilience.tables.frames import ALIASES, RARER_ALIASES, is_frame
from consilience.tables.judges import votes_of_comparisons
from consilience.tables.vote_tables import LabelTable, wide_arrow
from consilience.votes import Votes

if TYPE_CHECKING:
    import pyarrow as pa


LAYOUTS = ("auto", "wide", "long")


def read_votes(
    path: Any,
    space: LabelSpace | None = None,
    *,
    layout: str = "auto",
    item: str | None = None,
    source: str | None = None,
    label: str | None = None,
    sources: Iterable[str] | None = None,
    drop: Iterable[str] = (),
    abstain: Any = None,
    repeats: str = "refuse",
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Votes:
    r"""Return the votes in a CSV, JSON Lines, Parquet or Arrow file, or in a frame.

    *Wide*: one row per item, one column per source, and a column of ids if one is called ``item``, ``id``, ``task``
    or the like. *Long*: one row per vote, with columns for item, source and label, which may be called ``task``,
    ``worker``, ``judge``, ``rating``, ... An empty cell or null abstains; the words "NA" and "None" do not.

    Parameters
    ----------
    path
        Of a file, or of a folder of Parquet files; or a pandas, polars or Arrow frame.
    space
        What a label is. With it, cells such as ``a>b=c`` or ``[2, 0, 2]`` are read as this space has them.
    layout
        "wide", "long", or "auto": long if there is exactly one column for each of the three roles.
    item, source, label
        Names of the columns, where they are not called as above.
    sources
        In a wide table, the columns that hold votes; by default all but the ids and `drop`.
    drop
        Columns that are neither: the text that was voted on, the known labels.
    abstain
        A value that stands for an abstention, beside empty cells.
    repeats
        In a long table, what to do if a source votes on an item more than once; see `Votes.from_long`.
        Tables of comparisons are read for `Preferences` as by `read_preferences`.
    delimiter, encoding
        Of a CSV file; found out, and utf-8, by default.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answers.csv"
    >>> _ = file.write_text("task,worker,answer\nq1,ann,cat\nq1,bob,dog\nq2,bob,cat\n")
    >>> read_votes(file)
    Votes(2 items, 2 sources, 75% observed)
    """
    if is_frame(path):
        table, name = path, "the table"
    else:
        table, name = read_table(path, delimiter=delimiter, encoding=encoding), str(path)
    if isinstance(space, Preferences) and layout == "auto":
        votes = votes_of_comparisons(table, space.by, judge=source, outcome=label)
        if votes is not None:
            return votes
    chosen = None if sources is None else tuple(sources)
    reading = Reading(layout, item, source, label, chosen, tuple(drop), abstain, repeats)
    return as_the_space_reads(reading.votes(table, name), space, name)


@dataclass(frozen=True)
class Reading:
    """Which columns of a table hold what; see `read_votes`."""

    layout: str = "auto"
    item: str | None = None
    source: str | None = None
    label: str | None = None
    sources: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    abstain: Any = None
    repeats: str = "refuse"

    def roles(self, names: list[str]) -> tuple[str, dict[str, str | None]]:
        """Return "wide" or "long" for a table with these columns, and which of them has which role, if any."""
        if self.layout not in LAYOUTS:
            raise FileFormatError(f"layout={self.layout!r} is unknown. Use one of {', '.join(LAYOUTS)}.")
        given = {"item": self.item, "source": self.source, "label": self.label}
        found = {role: name or _alias(role, names) for role, name in given.items()}
        if self.layout != "auto":
            return self.layout, found
        long = self.sources is None and all(found.values()) and len(set(found.values())) == 3
        return "long" if long or self.source is not None or self.label is not None else "wide", found

    def votes(self, table: Any, name: str = "the table") -> Votes:
        """Return the votes in a frame, cells of text as they are: for who does not know the label type yet."""
        import narwhals as nw

        names = list(map(str, nw.from_native(table).columns))
        layout, found = self.roles(names)
        if layout == "long":
            missing = [role for role, column in found.items() if column is None]
            if missing:
                listed, needed = ", ".join(map(repr, names)), ", ".join(f"{role}=..." for role in missing)
                raise FileFormatError(
                    f"{name!r} has no column for {' and '.join(missing)}; its columns are {listed}. "
                    f"Say which it is: {needed}, or layout='wide'."
                )
            roles = {role: str(column) for role, column in found.items()}
            return _without(Votes.from_long(table, **roles, repeats=self.repeats), self.abstain)
        sources = self.sources
        ids = found["item"] if self.item is not None or sources is None or found["item"] not in sources else None
        if sources is None:
            sources = tuple(column for column in names if column not in {ids, *self.drop})
        return _without(Votes.from_frame(table, sources=sources, item=ids), self.abstain)


def as_the_space_reads(votes: Votes, space: LabelSpace | None, name: str) -> Votes:
    """Return votes whose cells of text are read by the space, or by what they look like."""
    if votes.labels.dtype != object:
        return votes
    rows, columns = np.nonzero(votes.observed)
    cells = votes.labels[rows, columns]
    if space is None:
        is_number = np.array([_as_number(cell) is not None for cell in cells.tolist()], dtype=bool)
        for column, source in enumerate(votes.sources):
            mine = columns == column
            if mine.any() and 0.5 < is_number[mine].mean() < 1.0:  # a few that are no numbers are mistakes
                odd = int(np.flatnonzero(mine & ~is_number)[0])
                raise FileFormatError(
                    f"{name!r}: source {source!r} mixes numbers and text: {cells[odd]!r} for item "
                    f"{votes.items.tolist()[rows[odd]]!r}. Correct the cell, leave it empty, or pass "
                    f"abstain={cells[odd]!r} if it means that the source abstains."
                )
        return votes
    if not any(isinstance(cell, str) for cell in cells.tolist()):
        return votes
    try:
        read = space.read_text(cells)
    except InvalidLabelError as error:
        if error.index is None:
            raise
        item, source = votes.items.tolist()[rows[error.index]], votes.sources[columns[error.index]]
        raise FileFormatError(f"{name!r}, item {item!r}, source {source!r}: {error}") from None
    labels: Batch = np.empty(votes.labels.shape, dtype=object)
    labels[rows, columns] = as_object_array(read)
    return replace(votes, labels=tighten(labels, ~votes.observed))


def _without(votes: Votes, abstain: Any) -> Votes:
    """Return votes in which a value, written as a number or as text, means that the source abstains."""
    if abstain is None:
        return votes
    cells = votes.labels
    if cells.dtype != object:
        return replace(votes, observed=votes.observed & (cells != _as_number(abstain)))
    wanted = {abstain, str(abstain)}
    listed = cells.reshape(-1).tolist()
    same = np.array([isinstance(cell, (str, int, float)) and cell in wanted for cell in listed])
    observed = votes.observed & ~same.reshape(cells.shape)
    left = [cell if seen else None for cell, seen in zip(listed, observed.reshape(-1), strict=True)]
    if all(cell is None or isinstance(cell, str) for cell in left):  # perhaps numbers, but for the sign of abstention
        left = typed_cells(left)
    return replace(votes, labels=tighten(as_object_array(left).reshape(cells.shape), ~observed), observed=observed)


def _as_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _alias(role: str, names: list[str]) -> str | None:
    """Return the only column whose name says that it has this role; the role's own name before all others."""
    for aliases in ({role}, ALIASES[role], RARER_ALIASES[role]):
        likely = [name for name in names if name.lower() in aliases]
        if len(likely) == 1 or (likely and role not in aliases):
            return likely[0] if len(likely) == 1 else None
    return None


def wide_table(votes: Votes, space: LabelSpace | None = None, *, item: str = "item") -> pa.Table:
    """Return an Arrow table with a column of ids, called `item`, and one column per source; null abstains.

    The label type is needed where names are stored as codes.

    Examples
    --------
    >>> wide_table(Votes.from_matrix([["cat", None]], sources=["ann", "bob"], items=["x1"])).to_pylist()
    [{'item': 'x1', 'ann': 'cat', 'bob': None}]
    """
    labels = spelled_out(votes.labels, votes.observed, space, votes.spelling)
    return wide_arrow(LabelTable(labels, votes.observed, votes.sources, votes.items), item)


def convert_votes(path: str | Path, out: str | Path, *, to: str, force: bool = False, **reading: Any) -> Votes:
    """Read votes from a file and write them to another, "wide" or "long", in the format of its name.

    A file that is there is replaced only with `force`; `reading` is what `read_votes` takes.
    """
    if to not in ("wide", "long"):
        raise FileFormatError(f"to={to!r} is unknown. Use 'wide' or 'long'.")
    votes = read_votes(path, **reading)
    write_table(out, wide_table(votes) if to == "wide" else votes.to_long(), force=force)
    return votes
