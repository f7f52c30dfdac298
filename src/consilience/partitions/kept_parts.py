"""Parts of files that stay in memory between passes, up to a limit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from consilience.arrays import Batch
from consilience.partitions.base import Part

__all__ = ["KeptParts"]

#: Where a part starts within its piece, and the part.
Placed = tuple[int, Part]


class KeptParts:
    """Holds the parts of as many pieces as fit; pieces of a file that has changed since are read again.

    Parameters
    ----------
    limit
        Bytes of votes and ids that are held.
    """

    def __init__(self, limit: float) -> None:
        self.left = limit
        self.held: dict[Hashable, tuple[Any, list[Placed]]] = {}

    def parts(self, key: Hashable, file: str, read: Callable[[], Iterable[Placed]]) -> Iterator[Placed]:
        """Yield the parts of a piece, from memory or else as they are read.

        Parameters
        ----------
        key
            The piece.
        file
            The file it is in.
        """
        if self.left <= 0 and key not in self.held:
            yield from read()
            return
        found = Path(file).stat()
        state = (found.st_mtime_ns, found.st_size)
        if key in self.held:
            before, parts = self.held[key]
            if before == state:
                yield from parts
                return
            del self.held[key]
            self.left += sum(_size(part) for _, part in parts)
        yield from self._keeping(key, state, read)

    def _keeping(self, key: Hashable, state: Any, read: Callable[[], Iterable[Placed]]) -> Iterator[Placed]:
        parts: list[Placed] = []
        size, fits = 0.0, True
        for placed in read():
            size += _size(placed[1])
            fits = fits and size <= self.left
            parts = [*parts, placed] if fits else []
            yield placed
        if fits:  # only here once the piece was read to its end
            self.held[key] = (state, parts)
            self.left -= size


def _size(part: Part) -> float:
    """Return the bytes of a part; objects have a size that nobody knows, so that they are never kept."""
    tables = [part.votes] if part.gold is None else [part.votes, part.gold]
    arrays: list[Batch] = [array for table in tables for array in (table.labels, table.observed, table.items)]
    if any(array.dtype == object for array in arrays):
        return float(np.inf)
    return float(sum(array.nbytes for array in arrays))
