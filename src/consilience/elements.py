"""Spans checked against their texts, and turned into BIO tags and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from consilience.exceptions import FileFormatError
from consilience.label_types.elements.reader import SPAN_FORMS, corners_and_class
from consilience.label_types.tags.bio import bio_to_spans, spans_to_bio
from consilience.votes import Votes

__all__ = ["bio_to_spans", "check_spans", "spans_to_bio"]


def check_spans(votes: Votes, texts: Sequence[str]) -> None:
    """Raise an error for the first span that ends beyond the text of its item.

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
            place = f"Row {row}, source {votes.sources[column]!r}"
            start, end = _ends(span, place)
            if end > len(texts[row]):
                raise FileFormatError(
                    f"{place}: span ({start}, {end}) ends beyond the text of {len(texts[row])} characters. Count in "
                    "characters of this text, not in bytes or tokens."
                )


def _ends(span: Any, place: str) -> tuple[Any, Any]:
    found = corners_and_class(span, SPAN_FORMS) if isinstance(span, Mapping) else (list(span), None)
    ends = [] if found is None else found[0]
    if ends and isinstance(ends[0], (list, tuple)):  # the ends, then the class
        ends = list(ends[0])
    if len(ends) < 2:
        raise FileFormatError(f"{place}: {span!r} is not a span. Give start and end.")
    return ends[0], ends[1]
