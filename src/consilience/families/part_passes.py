"""Passes over some of the items, so that what was learned from the others can be put to the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from consilience.arrays import BoolArray
from consilience.families.base import Chunk, Passes, Sums

__all__ = ["PartPasses", "rows_of"]


def rows_of(chunk: Chunk, rows: BoolArray) -> Chunk:
    """Return the chosen rows of a chunk."""
    known = None if chunk.known is None else chunk.known[rows]
    is_known = None if chunk.is_known is None else chunk.is_known[rows]
    items = None if chunk.items is None else chunk.items[rows]
    return Chunk(chunk.labels[rows], chunk.observed[rows], chunk.groups[rows], known, is_known, items)


@dataclass(frozen=True)
class PartPasses:
    """The sampled items of some groups, as if there were no others.

    Parameters
    ----------
    whole
        Passes over all items.
    kept
        ``(GROUPS,)`` groups of items that take part.
    """

    whole: Passes
    kept: BoolArray

    @property
    def n_items(self) -> int:
        return round(self.whole.n_sampled * float(self.kept.mean()))

    @property
    def n_sampled(self) -> int:
        return self.n_items

    @property
    def complete(self) -> bool:
        return True

    def over_all(self, function: Callable[[Chunk], Sums]) -> Sums:
        """Sum `function` over the chunks of the sample, without the items left out."""

        def part(chunk: Chunk) -> Sums:
            return function(rows_of(chunk, np.asarray(self.kept[chunk.groups])))

        return self.whole.over_sample(part)

    def over_sample(self, function: Callable[[Chunk], Sums]) -> Sums:
        """Do the same: the sample is all there is."""
        return self.over_all(function)
