"""Names of sources and ids of items, and checks of what votes are made of and asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, is_null
from consilience.exceptions import InvalidVotesError, TransposedVotesError, UnknownSourceError


def default_names(count: int) -> tuple[str, ...]:
    """Return the names that sources get when the caller gives none.

    Examples
    --------
    >>> default_names(3)
    ('source_0', 'source_1', 'source_2')
    """
    return tuple(f"source_{column}" for column in range(count))


def as_names(sources: str | Iterable[Any]) -> tuple[str, ...]:
    """Return source names as text; a single text is a single name."""
    if isinstance(sources, str):
        return (sources,)
    names = tuple(sources)
    for place, name in enumerate(names):
        if is_null(name):
            raise InvalidVotesError(f"Source {place} has no name: {name!r}. Give every source a name of its own.")
    return tuple(map(str, names))


def check_names(names: Sequence[str], n_items: int, n_sources: int) -> None:
    """Raise unless there is one name per source, each different."""
    if n_sources == 0:
        raise InvalidVotesError("There are no sources. Pass at least one column of votes.")
    if len(names) != n_sources:
        shown = f"There are {n_sources} columns of votes, but {len(names)} source names"
        if len(names) == n_items:
            raise TransposedVotesError(
                f"{shown}, as many as rows: items and sources look swapped. "
                f"Items are rows and sources are columns; pass votes.T."
            )
        raise InvalidVotesError(f"{shown}. Pass one name per column.")
    seen: dict[str, int] = {}
    for column, name in enumerate(names):
        if name in seen:
            raise InvalidVotesError(
                f"The source name {name!r} occurs twice, for columns {seen[name]} and {column}. "
                f"Give every source a name of its own."
            )
        seen[name] = column


def check_known(names: Iterable[str], known: Mapping[str, Any]) -> None:
    """Raise if a source is not among the known ones, with those that may be meant."""
    for name in names:
        if name not in known:
            close = get_close_matches(str(name), known)
            hint = (
                f"Did you mean {' or '.join(map(repr, close))}?"
                if close
                else f"Choose from {', '.join(map(repr, known))}."
            )
            raise UnknownSourceError(f"There is no source {name!r}. {hint}")


def factorize(values: npt.NDArray[Any], what: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return a code per value, in order of first appearance, and the row of that appearance.

    Examples
    --------
    >>> codes, rows = factorize(np.array(["b", "a", "b"], dtype=object), "item id")
    >>> codes.tolist(), rows.tolist()
    ([0, 1, 0], [0, 1])
    """
    if values.dtype.kind in "biuf":
        _, first, codes = np.unique(values, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        return rank[codes.reshape(-1)], first[order].astype(np.intp)
    # Hashing beats sorting for text, and none of these calls runs Python code per row.
    listed = values.tolist()
    try:
        position = {value: code for code, value in enumerate(dict.fromkeys(listed))}
    except TypeError:
        row = next(row for row, value in enumerate(listed) if not _is_hashable(value))
        raise InvalidVotesError(f"Row {row}: {listed[row]!r} cannot be used as {what}. Use numbers or text.") from None
    hashed = np.fromiter(map(position.__getitem__, listed), dtype=np.intp, count=len(listed))
    return hashed, np.unique(hashed, return_index=True)[1].astype(np.intp)


def check_unique_ids(ids: npt.NDArray[Any]) -> None:
    """Raise if two items have the same id, naming it and both rows."""
    if ids.dtype.kind in "iu" and (ids[1:] > ids[:-1]).all():
        return
    codes, first = factorize(ids, "item id")
    if len(first) == len(ids):
        return
    repeated = np.ones(len(ids), dtype=bool)
    repeated[first] = False
    second = int(np.argmax(repeated))
    raise InvalidVotesError(
        f"Item id {ids.tolist()[second]!r} occurs twice, in rows {int(first[codes[second]])} and "
        f"{second}. Give every item an id of its own, or drop one of the rows; several votes of "
        f"one source on one item need different source names. Rows that are really about the same item "
        f"go with Votes.from_matrix(table, items=ids)."
    )


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def check_shapes(labels: Batch, observed: BoolArray, items: npt.NDArray[Any]) -> None:
    """Raise unless labels, observed mask and item ids agree on how many there are."""
    shape = observed.shape
    if len(shape) != 2 or observed.dtype != bool:
        raise InvalidVotesError(
            f"observed must be a boolean array of shape (items, sources), not {observed.dtype} "
            f"of shape {shape}. Pass for example labels != -1."
        )
    if labels.shape[:2] != shape:
        raise InvalidVotesError(
            f"labels have shape {labels.shape}, but observed has {shape}. "
            f"Their first two axes, items and sources, must be the same."
        )
    if items.shape != shape[:1]:
        raise InvalidVotesError(
            f"There are {shape[0]} items, but the item ids have shape {items.shape}. Pass one id per row of votes."
        )


def as_mask(observed: Any, labels: Batch) -> BoolArray:
    """Return what the caller says counts as a vote, as booleans."""
    mask = np.asarray(observed)
    if mask.shape != labels.shape[:2] or not np.isin(mask, (0, 1)).all():
        raise InvalidVotesError(
            f"observed must be True or False for each item and source, shape {labels.shape[:2]}, "
            f"but it is {mask.dtype} of shape {mask.shape}. "
            f"Leave it out to take None and NaN as abstentions."
        )
    return mask.astype(bool)


def item_positions(key: Any, n_items: int) -> slice | npt.NDArray[Any]:
    """Return what to index the first axis with; one position becomes a slice of one row."""
    if isinstance(key, tuple) and len(key) == 2 and _is_everything(key[1]):
        key = key[0]  # scikit-learn writes votes[rows, ...]
    if isinstance(key, slice):
        return key
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        position = int(key) + n_items * int(key < 0)
        if not 0 <= position < n_items:
            raise IndexError(f"There is no item {key}; there are {n_items} items.")
        return slice(position, position + 1)
    positions = None if isinstance(key, tuple) else np.asarray(key)
    if positions is not None and positions.shape == (0,) and positions.dtype.kind == "f":
        return positions.astype(np.intp)  # what an empty list becomes
    if positions is None or positions.ndim != 1 or positions.dtype.kind not in "biu":
        raise InvalidVotesError(
            f"Votes are indexed by item: a slice, positions or a mask, not {key!r}. "
            f"Use votes.select(names) to choose sources."
        )
    return positions


def check_alignable(parts: Sequence[tuple[bool, int]]) -> bool:
    """Raise unless the sources of several votes can be matched; return whether they have names."""
    if not parts:
        raise InvalidVotesError("There is nothing to concatenate. Pass at least one Votes.")
    if len(set(parts)) > 1 and not all(named for named, _ in parts):
        listed = ", ".join(f"{count} {'named' if named else 'unnamed'}" for named, count in parts)
        raise InvalidVotesError(
            f"The parts have {listed} sources, so it is not known which belong together. "
            f"Name them with sources= when making the votes."
        )
    return parts[0][0]


def _is_everything(key: Any) -> bool:
    return key is Ellipsis or (isinstance(key, slice) and key == slice(None))
