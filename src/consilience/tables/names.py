"""Names of sources and ids of items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import is_null
from consilience.exceptions import InvalidVotesError, TransposedVotesError, UnknownSourceError, did_you_mean


def default_names(count: int) -> tuple[str, ...]:
    """Return the names that sources get when the caller gives none."""
    return tuple(f"source_{column}" for column in range(count))


def as_names(sources: str | Iterable[Any]) -> tuple[str, ...]:
    """Return source names as text; a single text is a single name."""
    names = (sources,) if isinstance(sources, str) else tuple(sources)
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
                "Items are rows and sources are columns; pass votes.T."
            )
        raise InvalidVotesError(f"{shown}. Pass one name per column.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        columns = " and ".join(str(column) for column, name in enumerate(names) if name == twice)
        raise InvalidVotesError(
            f"The source name {twice!r} occurs twice, for columns {columns}. Give every source a name of its own."
        )


def check_known(names: Iterable[str], known: Mapping[str, Any]) -> None:
    """Raise if a source is not among the known ones, with those that may be meant."""
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, most=3) or f" Choose from {', '.join(map(repr, known))}."
            raise UnknownSourceError(f"There is no source {name!r}.{hint}")


def factorize(values: npt.NDArray[Any], what: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return a code per value, in order of first appearance, and the row of that appearance."""
    if values.dtype.kind in "biuf":
        _, first, codes = np.unique(values, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        return rank[codes.reshape(-1)], np.sort(first).astype(np.intp)
    # Hashing beats sorting for text, and none of these calls runs Python code per row.
    listed = values.tolist()
    try:
        position = {value: code for code, value in enumerate(dict.fromkeys(listed))}
    except TypeError:
        row = next(row for row, value in enumerate(listed) if not _is_hashable(value))
        raise InvalidVotesError(f"Row {row}: {listed[row]!r} cannot be used as {what}. Use numbers or text.") from None
    hashed = np.fromiter(map(position.__getitem__, listed), dtype=np.intp, count=len(listed))
    return hashed, np.unique(hashed, return_index=True)[1].astype(np.intp)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def check_unique_ids(ids: npt.NDArray[Any]) -> None:
    """Raise if two items have the same id, naming it and both rows."""
    if ids.dtype.kind in "iu" and (ids[1:] > ids[:-1]).all():
        return
    codes, first = factorize(ids, "item id")
    if len(first) == len(ids):
        return
    second = int(np.argmax(np.isin(np.arange(len(ids)), first, invert=True)))
    raise InvalidVotesError(
        f"Item id {ids.tolist()[second]!r} occurs twice, in rows {int(first[codes[second]])} and "
        f"{second}. Give every item an id of its own, or drop one of the rows; several votes of "
        f"one source on one item need different source names. Rows that are really about the same item "
        f"go with Votes.from_matrix(table, items=ids)."
    )
