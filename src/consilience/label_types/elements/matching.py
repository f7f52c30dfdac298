"""Sets of elements of many items as flat tables, and elements matched across sources."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray

__all__ = ["ElementTable", "Groups", "Sets", "flat_sets"]


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of elements, one after the other.

    Parameters
    ----------
    values
        ``(k, 2 d)`` corners.
    codes
        ``(k,)`` classes, 0 where there are none.
    starts
        ``(sets + 1,)`` first element of each set.
    """

    values: FloatArray
    codes: IntArray
    starts: IntArray

    def costs(self, pairs: IntArray, by_length: bool) -> FloatArray:
        """Return the costs between pairs of sets ``(n, 2)``."""
        from consilience.label_types.elements.kernels import set_costs

        if len(pairs) == 0:
            return np.zeros(0)
        return set_costs(self.values, self.codes, self.starts[:-1], self.starts[1:], pairs, by_length)


def flat_sets(cells: Batch, width: int) -> Sets:
    """Return encoded labels as one table; `width` is the number of corners, a column beyond it holds the class."""
    listed = cells.tolist()
    sizes = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if starts[-1] == 0:
        return Sets(np.zeros((0, width)), np.zeros(0, dtype=np.int64), starts)
    flat = np.concatenate(listed)
    codes = flat[:, width].astype(np.int64) if flat.shape[1] > width else np.zeros(len(flat), dtype=np.int64)
    return Sets(np.ascontiguousarray(flat[:, :width], dtype=np.float64), codes, starts)


@dataclass(frozen=True, eq=False)
class Groups:
    """Marks that are taken to mean the same element.

    Parameters
    ----------
    starts
        ``(groups + 1,)`` first mark of each group.
    members, member_source
        Element and source of each mark, group by group.
    item
        ``(groups,)``, in order.
    item_starts
        ``(n + 1,)`` first group of each item.
    """

    starts: IntArray
    members: IntArray
    member_source: IntArray
    item: IntArray
    item_starts: IntArray

    @cached_property
    def member_group(self) -> IntArray:
        """Group of each mark."""
        return np.repeat(np.arange(len(self.item)), np.diff(self.starts))


@dataclass(frozen=True, eq=False)
class ElementTable:
    """Votes on n items: who saw which, and what they marked there.

    Parameters
    ----------
    sets
        Votes of all cells, item by item, and within an item source by source.
    rows, columns
        Item and source of each cell; the source ``m`` is the truth.
    observed
        ``(n, m)``.
    """

    sets: Sets
    rows: IntArray
    columns: IntArray
    observed: BoolArray

    @classmethod
    def of(
        cls,
        labels: Batch,
        observed: BoolArray,
        width: int,
        known: Batch | None = None,
        is_known: BoolArray | None = None,
    ) -> ElementTable:
        """Return the table of encoded labels ``(n, m)``, with the truth beside the votes where it is known."""
        rows, columns = np.nonzero(observed)
        cells = labels[rows, columns]
        if known is not None and is_known is not None and is_known.any():
            told = np.flatnonzero(is_known & observed.any(axis=1))
            rows, columns = np.append(rows, told), np.append(columns, np.full(len(told), observed.shape[1]))
            order = np.argsort(rows, kind="stable")
            cells = np.concatenate([cells, known[told]])[order]
            rows, columns = rows[order], columns[order]
        return cls(flat_sets(cells, width), rows, columns, observed)

    @cached_property
    def sources(self) -> IntArray:
        """Source of each element."""
        return np.repeat(self.columns, np.diff(self.sets.starts))

    @cached_property
    def element_starts(self) -> IntArray:
        """First element of each item."""
        first = np.searchsorted(self.rows, np.arange(len(self.observed) + 1))
        starts: IntArray = self.sets.starts[first]
        return starts

    @cached_property
    def voters(self) -> tuple[IntArray, IntArray]:
        """Sources that saw each item: where they start, and which they are."""
        rows, columns = np.nonzero(self.observed)
        return np.searchsorted(rows, np.arange(len(self.observed) + 1)).astype(np.int64), columns

    def groups(self, threshold: float) -> Groups:
        """Match elements across sources."""
        from consilience.label_types.elements.kernels import match_elements

        group, item = match_elements(self.sets.values, self.sets.codes, self.sources, self.element_starts, threshold)
        members = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[members], np.arange(len(item) + 1)).astype(np.int64)
        item_starts = np.searchsorted(item, np.arange(len(self.observed) + 1)).astype(np.int64)
        return Groups(starts, members, self.sources[members], item, item_starts)

    def told(self, groups: Groups, is_known: BoolArray | None) -> IntArray:
        """Return for each group 1 if it is known to be real, 0 if known to be false, -1 if nothing is known."""
        told = np.full(len(groups.item), -1, dtype=np.int64)
        if is_known is not None and is_known.any():
            told[is_known[groups.item]] = 0
            told[groups.member_group[groups.member_source == self.observed.shape[1]]] = 1
        return told
