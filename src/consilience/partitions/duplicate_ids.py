"""Whether every item has an id of its own, across files and partitions, in bounded memory.

An id becomes a 64-bit key, and keys that occur more than once are looked at again: only then is the id itself compared.
Where there are many items they are taken in slices of their keys, so that few keys are in one memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import hash_priority
from consilience.exceptions import InvalidVotesError
from consilience.partitions.base import Part

#: Keys in one memory at a time: 128 MB.
KEYS = 1 << 24
#: Repeated keys that are looked at: some may belong to different ids.
LOOKED_AT = 10_000
#: Keys are ticked off rather than sorted where at most so many numbers lie between them for each.
SPREAD = 8
_MIX = np.uint64(0x9E3779B97F4A7C15)

Keys = npt.NDArray[np.int64]
#: An id, what an error calls the piece it is in, and its row there.
Place = tuple[Any, str, int]


def keys_here(ids: npt.NDArray[Any]) -> Keys:
    """Return one key per id that is the same for equal ids, within this process."""
    if ids.dtype.kind in "iu":
        return ids.astype(np.int64, copy=False)
    return np.fromiter(map(hash, ids.tolist()), dtype=np.int64, count=len(ids))


def keys_anywhere(ids: npt.NDArray[Any]) -> Keys:
    """Return one key per id that is the same for equal ids, in every process."""
    return hash_priority(ids).view(np.int64)


def n_slices(n_items: int) -> int:
    """Return in how many slices the keys of so many items are taken."""
    return max(1, -(-n_items // KEYS))


def slice_of(keys: Keys, index: int, count: int) -> Keys:
    """Return the keys of one slice."""
    if count == 1:
        return keys
    with np.errstate(over="ignore"):
        mixed = keys.view(np.uint64) * _MIX
    chosen: Keys = keys[(mixed >> np.uint64(32)) % np.uint64(count) == index]
    return chosen


def repeated(keys: Iterable[Keys]) -> Keys:
    """Return a few keys that occur more than once."""
    parts = [part for part in keys if len(part)]
    if _ascending(parts) or _all_differ(parts):
        return np.zeros(0, dtype=np.int64)
    ordered = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
    ordered.sort()
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.unique(again)[:LOOKED_AT]


def _ascending(parts: list[Keys]) -> bool:
    """Return whether each key is larger than the one before it, as in a table that was numbered or sorted."""
    if any(after[0] <= before[-1] for before, after in pairwise(parts)):
        return False
    return all(bool((part[1:] > part[:-1]).all()) for part in parts)


def _all_differ(parts: list[Keys]) -> bool:
    """Return whether keys that lie close together, as shuffled row numbers do, are all different; False if unknown."""
    count = sum(len(part) for part in parts)
    low, high = (min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)) if parts else (0, -1)
    if high - low >= SPREAD * count:
        return False
    met = np.zeros(high - low + 1, dtype=bool)
    for part in parts:
        met[part - low] = True
    return int(np.count_nonzero(met)) == count


def places_of(suspects: Keys, ids: npt.NDArray[Any], keys: Keys, place: str, first_row: int = 0) -> list[Place]:
    """Return where, in one piece, the ids of some keys stand."""
    rows = np.flatnonzero(np.isin(keys, suspects))
    return [(identity, place, first_row + row) for row, identity in zip(rows.tolist(), ids[rows].tolist(), strict=True)]


def same_id_twice(places: Iterable[Place]) -> InvalidVotesError | None:
    """Return the error for an id that stands in two places, if there is one."""
    first: dict[Any, tuple[str, int]] = {}
    for identity, place, row in places:
        if identity in first:
            before, row_before = first[identity]
            return InvalidVotesError(
                f"Item id {identity!r} occurs twice: in {before}, row {row_before}, and in {place}, row {row}. Give "
                "every item an id of its own, drop one of the rows, or put the votes on one item into one row."
            )
        first[identity] = (place, row)
    return None


class IdCheck:
    """Compares the ids of pieces that this process reads, in the first pass over them.

    Parameters
    ----------
    read
        Yields the ids of all pieces, with what an error calls the piece and the number of the first row in it.
    """

    def __init__(self, n_items: int, read: Callable[[], Iterator[tuple[npt.NDArray[Any], str, int]]]) -> None:
        self.n_slices = n_slices(n_items)
        self.read = read
        self.done = False

    def noting(self, function: Callable[[Part], Any]) -> tuple[Callable[[Part], Any], list[Keys]]:
        """Return a function of parts that also takes down their keys, of the first slice, and where they go."""
        seen: list[Keys] = []

        def run(part: Part) -> Any:
            seen.append(slice_of(keys_here(part.votes.items), 0, self.n_slices))
            return function(part)

        return run, seen

    def settle(self, seen: list[Keys]) -> None:
        """Raise if ids occur twice, given the keys of the first slice."""
        for index in range(self.n_slices):
            if index:
                seen = [slice_of(keys_here(ids), index, self.n_slices) for ids, _, _ in self.read()]
            suspects = repeated(seen)
            error = same_id_twice(self._places(suspects)) if len(suspects) else None
            if error is not None:
                raise error
        self.done = True

    def run(self) -> None:
        """Raise if ids occur twice, in a pass over the ids alone."""
        if not self.done:
            self.settle([slice_of(keys_here(ids), 0, self.n_slices) for ids, _, _ in self.read()])

    def _places(self, suspects: Keys) -> Iterator[Place]:
        for ids, place, start in self.read():
            yield from places_of(suspects, ids, keys_here(ids), place, start)
