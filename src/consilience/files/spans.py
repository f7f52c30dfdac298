"""Spans checked against the texts that they were marked in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from consilience.exceptions import FileFormatError
from consilience.votes import Votes

__all__ = ["check_spans"]


def check_spans(votes: Votes, texts: Sequence[str]) -> None:
    """Refuse spans that end beyond the text of their item, and name the first one.

    Examples
    --------
    >>> check_spans(Votes.from_array([[[(0, 3)], [(4, 9)]]], sources=["ann", "bob"]), ["a text"])
    Traceback (most recent call last):
    consilience.exceptions.FileFormatError: Row 0, source 'bob': span (4, 9) ends beyond the text of 6 characters...
    """
    if len(texts) != len(votes):
        raise FileFormatError(f"There are {len(votes)} items and {len(texts)} texts. Give one text per item.")
    for row, column in np.argwhere(votes.observed):
        for span in votes.labels[row, column]:
            start, end = (span["start"], span["end"]) if isinstance(span, Mapping) else (span[0], span[1])
            if end > len(texts[row]):
                raise FileFormatError(
                    f"Row {row}, source {votes.sources[column]!r}: span ({start}, {end}) ends beyond the text of "
                    f"{len(texts[row])} characters. Count in characters of this text, not in bytes or tokens."
                )
