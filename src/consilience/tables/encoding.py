"""From labels as users write them to labels as spaces compute with them, with errors that name the cell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from consilience.arrays import Batch, as_object_array, few_votes
from consilience.exceptions import InvalidLabelError, InvalidVotesError, SourceMismatchError
from consilience.label_types.base import LabelSpace
from consilience.votes import Votes, as_votes

#: Rows converted at a time, so that no second copy of a large table is made.
ROWS = 1 << 16


def encode(votes: Votes, space: LabelSpace) -> Votes:
    """Return the same votes with labels in the form of the space; unobserved cells hold anything.

    A vote without any opinion, such as a record whose fields are all empty, abstains.
    """
    encoded = _encoded(votes, space)
    if type(space).has_opinion is LabelSpace.has_opinion or not encoded.observed.any():
        return encoded
    has_opinion = encoded.observed.copy()
    has_opinion[has_opinion] = space.has_opinion(encoded.labels[has_opinion])
    return encoded if np.array_equal(has_opinion, encoded.observed) else replace(encoded, observed=has_opinion)


def _encoded(votes: Votes, space: LabelSpace) -> Votes:
    if votes.abstain is not None and space.contains(votes.abstain):
        raise InvalidVotesError(
            f"abstain={votes.abstain!r} is also a label of the space, so votes for it would be lost. "
            "Recode the abstentions to a value outside the space, or declare that no source abstains "
            "(Votes.from_matrix(..., abstain=None))."
        )
    if not votes.observed.any():
        if space.n_labels is None:  # nothing to encode; unchanged cells keep the type of a missing label
            return votes
        return replace(votes, labels=np.zeros(votes.observed.shape, dtype=np.int8))
    if votes.labels.dtype == object:
        votes = replace(votes, labels=space.in_rows(votes.labels, votes.observed))
    step = len(votes) if votes.labels.dtype == object else ROWS
    starts = [start for start in range(0, len(votes), step) if votes.observed[start : start + step].any()]
    parts = [_encode_rows(votes, space, start, start + step) for start in starts]
    if all(part.dtype == votes.labels.dtype and np.may_share_memory(part, votes.labels) for part in parts):
        return votes  # already in the form of the space
    if len(parts[0]) == len(votes):
        return replace(votes, labels=parts[0])
    labels = np.zeros((len(votes), *parts[0].shape[1:]), dtype=np.result_type(*(part.dtype for part in parts)))
    for start, part in zip(starts, parts, strict=True):
        labels[start : start + step] = part
    return replace(votes, labels=labels)


def _encode_rows(votes: Votes, space: LabelSpace, start: int, stop: int) -> Batch:
    labels, observed = votes.labels[start:stop], votes.observed[start:stop]
    n, m = observed.shape
    position = None
    try:
        cells = space.as_cells(labels, observed)
        if cells is not None:
            return cells
        cast = labels.reshape(n * m, *labels.shape[2:])
        if observed.all():
            batch = space.as_batch(cast)
            return batch.reshape(n, m, *batch.shape[1:])
        position = np.flatnonzero(observed)
        cast = cast[position]
        batch = space.as_batch(cast)
        if {labels.dtype.kind, batch.dtype.kind} <= {"i", "u"} and few_votes(observed) and np.array_equal(batch, cast):
            return labels  # numbers already in the form of the space: a copy would be mostly empty cells
        encoded = np.zeros((n * m, *batch.shape[1:]), dtype=batch.dtype)
        if batch.dtype.kind == "f":
            encoded[:] = batch[0]  # a valid point, also in empty cells
        encoded[position] = batch
        return encoded.reshape(n, m, *batch.shape[1:])
    except InvalidLabelError as error:
        if error.index is None:
            raise
        row, source = divmod(error.index if position is None else int(position[error.index]), m)
        item = votes.items[start + row : start + row + 1].tolist()[0]
        place = f"Row {start + row}" if item == start + row else f"Row {start + row} (item {item!r})"
        raise InvalidLabelError(f"{place}, source {votes.sources[source]!r}: {error}", error.index) from None


def wrong_labels(cells: Batch, space: LabelSpace) -> dict[int, str]:
    """Return which cells are not labels, as text or as the space takes them, and why.

    They are found by halving: few checks where few are wrong.
    """
    found: dict[int, str] = {}

    def look(start: int, stop: int) -> None:
        try:
            if start < stop:
                _check(cells[start:stop], space)
        except ValueError as error:
            if stop - start == 1:
                found[start] = str(error)
            else:
                look(start, (start + stop) // 2)
                look((start + stop) // 2, stop)

    look(0, len(cells))
    return found


def _check(cells: Batch, space: LabelSpace) -> None:
    if cells.dtype == object and any(isinstance(cell, str) for cell in cells.tolist()):
        cells = as_object_array(space.read_text(cells))
    column = Votes.from_array(cells.reshape(len(cells), 1, *cells.shape[1:]), sources=["cell"])
    try:
        encode(column, space)
    except InvalidLabelError as error:  # the position in this column of cells is meaningless to the user
        raise InvalidLabelError(str(error).split("source 'cell': ", 1)[-1], error.index) from None


def read_gold(gold: Any, space: LabelSpace, n_items: int, votes: Votes | None = None) -> Votes | None:
    """Return known labels as the votes of one infallible source, or None if there are none.

    They are about what the `votes` on their item are about, where items differ in that.

    Known labels come one per item, with NaN, None or -1 where unknown; or as a pair ``(labels, known)``.
    """
    if gold is None:
        return None
    known = None
    if isinstance(gold, tuple) and len(gold) == 2 and np.asarray(gold[1]).dtype == bool:
        gold, known = gold
    array = None if isinstance(gold, (list, tuple)) else np.asanyarray(gold)
    if array is not None and array.ndim == 0:
        raise InvalidVotesError(f"gold={gold!r} is not a list of labels. Give one per item, None where it is unknown.")
    if array is None or array.dtype == object:
        items = list(gold)
        integers = all(isinstance(item, (int, np.integer)) and not isinstance(item, bool) for item in items)
        array = np.array(items) if items and integers else as_object_array(items)
    if len(array) != n_items:
        raise InvalidVotesError(
            f"gold has {len(array)} labels for {n_items} items. Give one per item, None where it is unknown."
        )
    mask = None if known is None else np.asarray(known).reshape(-1, 1)
    if mask is not None and len(mask) != n_items:
        raise InvalidVotesError(
            f"gold=(labels, known) says of {len(mask)} items whether their label is known; there are {n_items}. "
            "Give one True or False per item."
        )
    if votes is not None:
        array = space.in_words_of(array, votes.labels, votes.observed)
    labels = Votes.from_array(array[:, None], observed=mask, sources=["gold"])
    if mask is None and labels.labels.ndim == 2 and labels.labels.dtype.kind in "iu" and not space.contains(-1):
        labels = replace(labels, observed=labels.observed & (labels.labels != -1))
    if not labels.observed.any():
        return None
    known_labels = encode(labels, space)
    return known_labels if known_labels.observed.any() else None


def align_sources(votes: Any, space: LabelSpace, sources: tuple[str, ...], names_given: bool) -> Votes:
    """Return votes whose columns are the fitted sources in order, or say what differs."""
    table = as_votes(votes, space)
    if table.sources == sources:
        return table
    if table.names_given and names_given:
        missing = [name for name in sources if name not in table.sources]
        extra = [name for name in table.sources if name not in sources]
        if missing or extra:
            parts = [
                f"{', '.join(map(repr, names))} {'is' if len(names) == 1 else 'are'} {state}"
                for names, state in ((missing, "missing"), (extra, "unknown"))
                if names
            ]
            steps = ["leave unknown ones out with votes.select([...])"] * bool(extra)
            steps += ["add an empty column for a source that does not vote here"] * bool(missing)
            raise SourceMismatchError(
                f"The sources of the votes differ from those of the model: {'; '.join(parts)}. "
                f"{', '.join([*steps, 'or fit again']).capitalize()}."
            )
        return table.select(sources)
    if table.n_sources != len(sources):
        swapped = " The table looks transposed: pass it with one row per item." * (table.n_items == len(sources))
        raise SourceMismatchError(
            f"The votes have {table.n_sources} sources, the model was fitted on {len(sources)}.{swapped} "
            "Pass one column per fitted source."
        )
    return replace(table, sources=sources)
