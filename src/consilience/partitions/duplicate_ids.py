"""Whether item ids are unique across files and partitions, in bounded memory.

Every id has a 64-bit key, and ids are compared only if their keys are equal. If there are many items, their keys are
compared slice by slice, to limit the memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import hash_priority
from consilience.exceptions import InvalidVotesError

#: Keys in memory at a time: 128 MB.
KEYS = 1 << 24
#: Repeated keys whose ids are compared.
LOOKED_AT = 10_000
#: Runs of rising ids in a piece, which may have rows of several files.
RUNS = 8
_MIX = np.uint64(0x9E3779B97F4A7C15)

Keys = npt.NDArray[np.int64]
#: The first and the last id of a run.
Span = tuple[int, int]
#: An id, the name of its piece in error messages, and its row there.
Place = tuple[Any, str, int]


def keys_of(ids: npt.NDArray[Any]) -> Keys:
    """Return one key per id, which is the same for equal ids in every process."""
    return ids.astype(np.int64, copy=False) if ids.dtype.kind in "iu" else hash_priority(ids).view(np.int64)


def n_slices(n_items: int) -> int:
    """Return the number of slices for so many items."""
    return max(1, -(-n_items // KEYS))


def slice_of(keys: Keys, index: int, count: int) -> Keys:
    """Return the keys of one slice."""
    if count == 1:
        return keys
    with np.errstate(over="ignore"):
        mixed = keys.view(np.uint64) * _MIX
    return keys[(mixed >> np.uint64(32)) % np.uint64(count) == index]


def repeated(keys: Iterable[Keys]) -> Keys:
    """Return a few keys that occur more than once."""
    parts = [part for part in keys if len(part)]
    rising = all(one[-1] < two[0] for one, two in pairwise(parts))
    if rising and all((part[1:] > part[:-1]).all() for part in parts):  # the table is numbered or sorted
        return np.zeros(0, dtype=np.int64)
    ordered = np.concatenate(parts)
    ordered.sort()
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.unique(again)[:LOOKED_AT]


def spans_of(ids: npt.NDArray[Any]) -> list[Span] | None:
    """Return the first and last id of each run of rising ids in a piece; None if there are many.

    A piece may have the end of one file and the beginning of another, so runs also end at the widest steps.
    """
    if ids.dtype.kind not in "iu" or not len(ids) or ids.max() > np.iinfo(np.int64).max:
        return None
    step = np.diff(ids.astype(np.float64))
    wide = np.argsort(step, kind="stable")[-RUNS:] if len(step) > RUNS else np.arange(len(step))
    ends = np.union1d(np.flatnonzero(ids[1:] <= ids[:-1]), wide)
    if len(ends) > 2 * RUNS:
        return None
    first, last = np.append(0, ends + 1), np.append(ends, len(ids) - 1)
    return list(zip(ids[first].tolist(), ids[last].tolist(), strict=True))


def are_apart(pieces: Iterable[list[Span] | None]) -> bool:
    """Return whether no two runs of rising ids overlap, so that no id can occur twice."""
    known = list(pieces)
    ordered = sorted(span for spans in known for span in spans or ())
    return None not in known and all(one[1] < two[0] for one, two in pairwise(ordered))


def places_of(suspects: Keys, ids: npt.NDArray[Any], place: str, first_row: int = 0) -> list[Place]:
    """Return the ids of a piece that have one of these keys, with their places."""
    rows = np.flatnonzero(np.isin(keys_of(ids), suspects))
    return [(identity, place, first_row + row) for row, identity in zip(rows.tolist(), ids[rows].tolist(), strict=True)]


def refuse_same_ids(places: Iterable[Place]) -> None:
    """Raise an error if an id occurs in two places."""
    first: dict[Any, tuple[str, int]] = {}
    for identity, place, row in places:
        if identity in first:
            before, row_before = first[identity]
            raise InvalidVotesError(
                f"Item id {identity!r} occurs twice: in {before}, row {row_before}, and in {place}, row {row}. Give "
                "every item its own id, drop one of the rows, or join the votes on one item in one row."
            )
        first[identity] = (place, row)
