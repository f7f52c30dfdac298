"""Tables of votes, wide or long, with labels as their users write them; and files from one layout to the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.exceptions import FileFormatError
from consilience.label_types.base import LabelSpace
from consilience.tables.files import write_table
from consilience.tables.reading import read_votes
from consilience.tables.spelling import spelled_out
from consilience.tables.vote_tables import LabelTable, wide_arrow
from consilience.votes import Votes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["convert_votes", "long_table", "wide_table"]


def wide_table(votes: Votes, space: LabelSpace | None = None, *, item: str = "item") -> pa.Table:
    """Return an Arrow table with one row per item and one column per source; null abstains.

    Parameters
    ----------
    space
        What a label is; needed where names are stored as codes.
    item
        Name of the column of ids.

    Examples
    --------
    >>> wide_table(Votes.from_matrix([["cat", None]], sources=["ann", "bob"], items=["x1"])).to_pylist()
    [{'item': 'x1', 'ann': 'cat', 'bob': None}]
    """
    labels = spelled_out(votes.labels, votes.observed, space, votes.spelling)
    return wide_arrow(LabelTable(labels, votes.observed, votes.sources, votes.items), item)


def long_table(votes: Votes, space: LabelSpace | None = None) -> pa.Table:
    """Return an Arrow table with one row (item, source, label) per vote; as `Votes.to_long`."""
    return votes.to_long(space)


def convert_votes(path: str | Path, out: str | Path, *, to: str, force: bool = False, **reading: Any) -> Votes:
    """Read votes from one file and write them to another, wide or long, in the format of the other's name.

    Parameters
    ----------
    to
        "wide" or "long".
    force
        Whether a file that is there is replaced.
    reading
        What `read_votes` takes: layout, item, source, label, sources, drop, abstain, delimiter, encoding.
    """
    if to not in ("wide", "long"):
        raise FileFormatError(f"to={to!r} is unknown. Use 'wide' or 'long'.")
    votes = read_votes(path, **reading)
    write_table(out, wide_table(votes) if to == "wide" else long_table(votes), force=force)
    return votes
