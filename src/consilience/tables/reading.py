"""Votes from files, wide or long, with the column names that other tools use; and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consilience.exceptions import FileFormatError
from consilience.label_types import Preferences
from consilience.label_types.base import LabelSpace
from consilience.lazy import narwhals as nw
from consilience.lazy import pyarrow as pa
from consilience.tables.cells import spelled_out
from consilience.tables.cleaning import cleaned, read_by, refuse_mixed_cells
from consilience.tables.files import read_table, write_table
from consilience.tables.frames import as_frame, is_frame, likely_column, native_frame
from consilience.tables.judges import votes_of_comparisons
from consilience.tables.notation import Declared
from consilience.tables.receipt import Receipt
from consilience.tables.vote_tables import LabelTable, read_long, read_wide, wide_arrow
from consilience.votes import Votes

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
    repeats: str = "identical",
    strict: bool = False,
    fold: bool = False,
    decimal: str | None = None,
    unlisted: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Votes:
    r"""Return the votes in a CSV, JSON, Excel, Parquet or Arrow file, or in a frame.

    *Wide*: one row per item, one column per source, and a column of ids if one is called ``item``, ``id``, ``task``
    or the like. *Long*: one row per vote, with columns for item, source and label, which may be called ``task``,
    ``worker``, ``judge``, ``rating``, ...

    An empty cell abstains, and so does a word such as "N/A", "null" or "-" unless it is a label of `space`; and -1
    where all other cells are codes 0, 1, ... of classes. Numbers inside text ("8/10", "Score: 7", "0,5") are read where
    most cells are numbers; scores outside the range of the space, cells that are not labels, and columns of other texts
    are left out. ``votes.receipt`` counts all of it, and says what was guessed.

    Parameters
    ----------
    path
        A file, a folder of Parquet files, a pandas, polars or Arrow frame, or a `datasets.Dataset`.
    space
        The label type. With it, cells such as ``a>b=c`` or ``[2, 0, 2]`` are read in its notation.
    layout
        "wide", "long", or "auto": long if there is exactly one column for each of the three roles.
    item, source, label
        Names of the columns, if they differ from those above.
    sources
        In a wide table, the columns that hold votes; by default all but the ids and `drop`.
    drop
        Columns to leave out, such as the text that was voted on or the known labels.
    abstain
        A value that means "abstains", in addition to empty cells.
    repeats
        What to do if a source votes on an item more than once, in several rows; see `Votes.from_long`.
        Tables of comparisons are read for `Preferences` as by `read_preferences`.
    strict
        Whether to refuse cells that are not labels, repeated rows, columns of other texts and anything that would have
        to be guessed. Words such as "N/A" are then labels.
    fold
        Whether labels that differ only in case or blanks are merged.
    decimal
        The decimal sign of numbers in text, "." or ","; by default the one with which most cells are numbers.
    unlisted
        Rankings of names: whether items that a source leaves out of a row are ranked "below" its list, or "unseen". By
        default, they are below if the lists look like the top of longer ones.
    delimiter, encoding
        Of a CSV file; by default the delimiter is detected and the encoding is utf-8.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answers.csv"
    >>> _ = file.write_text("task,worker,answer\nq1,ann,cat\nq1,bob,dog\nq2,bob,cat\n")
    >>> read_votes(file)
    Votes(2 items, 2 sources, 75% observed)
    """
    if is_frame(path):
        table, name = native_frame(path), "the table"
    else:
        table, name = read_table(path, delimiter=delimiter, encoding=encoding), str(path)
    if isinstance(space, Preferences) and layout == "auto":
        votes = votes_of_comparisons(table, space.by, judge=source, outcome=label)
        if votes is not None:
            return votes
    chosen = None if sources is None else tuple(sources)
    reading = Reading(layout, item, source, label, chosen, tuple(drop), abstain, repeats, strict, fold, decimal)
    votes = reading.votes(table, name, Declared.by(space))
    if space is None:
        refuse_mixed_cells(votes, name)
        return votes
    return read_by(votes, space, name, strict=strict, unlisted=unlisted)


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
    repeats: str = "identical"
    strict: bool = False
    fold: bool = False
    decimal: str | None = None

    def roles(self, names: list[str]) -> tuple[str, dict[str, str | None]]:
        """Return "wide" or "long" for a table with these columns, and which of them has which role, if any."""
        if self.layout not in LAYOUTS:
            raise FileFormatError(f"layout={self.layout!r} is unknown. Use one of {', '.join(LAYOUTS)}.")
        given = {"item": self.item, "source": self.source, "label": self.label}
        free = [name for name in names if name not in self.drop]
        found = {role: name or likely_column(role, free) for role, name in given.items()}
        if self.layout != "auto":
            return self.layout, found
        long = self.sources is None and all(found.values()) and len(set(found.values())) == 3
        return "long" if long or self.source is not None or self.label is not None else "wide", found

    def votes(self, table: Any, name: str = "the table", declared: Declared = Declared()) -> Votes:  # noqa: B008
        """Return the votes in a frame; cells are not yet read as labels of a type, but what is `declared` is heeded."""
        names = list(map(str, as_frame(table).columns))
        layout, found = self.roles(names)
        repeats = "refuse" if self.strict and self.repeats == "identical" else self.repeats
        settings = {"abstain": self.abstain, "decimal": self.decimal, "fold": self.fold, "strict": self.strict}
        may_leave_out = layout == "wide" and self.sources is None

        def clean(cells: LabelTable, receipt: Receipt) -> tuple[LabelTable, Receipt]:
            votes = cleaned(Votes(*cells, receipt=receipt), declared, may_leave_out=may_leave_out, **settings)
            return LabelTable(votes.labels, votes.observed, votes.sources, votes.items), votes.receipt or receipt

        if layout == "long":
            missing = [role for role, column in found.items() if column is None]
            if missing:
                listed, needed = ", ".join(map(repr, names)), ", ".join(f"{role}=..." for role in missing)
                raise FileFormatError(
                    f"{name!r} has no column for {' and '.join(missing)}; its columns are {listed}. "
                    f"Name them with {needed}, or pass layout='wide'."
                )
            roles = {role: str(column) for role, column in found.items()}
            read, pairs, receipt = read_long(table, **roles, repeats=repeats, clean=clean)
        else:
            sources = self.sources
            ids = found["item"] if self.item is not None or sources is None or found["item"] not in sources else None
            if sources is None:
                ids = ids or _first_column_of_ids(table, self.drop)
                sources = tuple(column for column in names if column not in {ids, *self.drop})
            read, pairs, receipt = read_wide(table, sources, ids, repeats, clean)
        return Votes(*read, repeated_pairs=pairs, receipt=receipt)


def _first_column_of_ids(table: Any, drop: Iterable[str]) -> str | None:
    """Return the first column of a wide table if its texts differ in all rows, and the others hold votes.

    These are numbers, lists, orders such as a > b, or texts that occur in several rows.
    """
    frame = as_frame(table)
    columns = [frame.get_column(name) for name in frame.columns if name not in drop]
    if len(columns) < 3 or len(frame) < 2 or columns[0].dtype != nw.String or columns[0].is_null().any():
        return None

    def holds_votes(column: nw.Series[Any]) -> bool:
        said = column.drop_nulls()
        return said.dtype != nw.String or said.n_unique() < len(said) or bool(said.str.contains(">").all())

    first, *others = map(holds_votes, columns)
    return str(columns[0].name) if all(others) and not first else None


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
    r"""Read votes from a file and write them to another, "wide" or "long", in the format of its name.

    An existing file is replaced only with `force`. `reading` holds further arguments of `read_votes`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> _ = (folder / "long.csv").write_text("item,source,label\nx,ann,cat\nx,bob,dog\n")
    >>> convert_votes(folder / "long.csv", folder / "wide.csv", to="wide")
    Votes(1 item, 2 sources, 100% observed)
    >>> print((folder / "wide.csv").read_text().strip())
    item,ann,bob
    x,cat,dog
    """
    if to not in ("wide", "long"):
        raise FileFormatError(f"to={to!r} is unknown. Use 'wide' or 'long'.")
    votes = read_votes(path, **reading)
    write_table(out, wide_table(votes) if to == "wide" else votes.to_long(), force=force)
    return votes
