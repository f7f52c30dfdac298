"""Votes on rankings as the compiled loops take them; of few voters among many sources only their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, few_votes

__all__ = ["Ballots", "ballots"]


@dataclass(frozen=True)
class Ballots:
    """Votes of some items.

    Parameters
    ----------
    positions
        ``(n, cells, r)``; negative is unseen, everywhere where there is no vote.
    observed
        ``(n, cells)`` whether there is a vote in the cell.
    who
        ``(1, m)``: a cell for each source; or, where few of many sources vote, ``(n, cells)``: the votes of a row
        moved together, with the source of each.
    m
        Number of sources.
    """

    positions: npt.NDArray[np.int16]
    observed: BoolArray
    who: IntArray
    m: int

    def __getitem__(self, rows: IntArray) -> Ballots:
        who = self.who[rows] if self.moved else self.who
        return Ballots(self.positions[rows], self.observed[rows], who, self.m)

    @property
    def moved(self) -> bool:
        """Whether the votes of a row were moved together."""
        return len(self.who) > 1

    def of_sources(self, values: FloatArray) -> FloatArray:
        """Return values ``(m,)`` of the sources for every cell; zero where there is no vote."""
        return np.where(self.observed, values[self.who], 0.0)

    def by_source(self, cells: FloatArray) -> FloatArray:
        """Return the sums ``(m,)`` of what is in the cells of each source."""
        if not self.moved:
            total: FloatArray = cells.sum(axis=0)
            return total
        seen = self.observed
        return np.bincount(self.who[seen], cells[seen], minlength=self.m).astype(np.float64)

    def products(self, cells: FloatArray) -> FloatArray:
        """Return ``(m, m)``: products of the cells of two sources, summed over the items."""
        if not self.moved:
            product: FloatArray = cells.T @ cells
            return product
        from consilience.kernels.ranking_votes import products_of_few

        return products_of_few(cells, self.observed, self.who, self.m)


def ballots(labels: Batch, observed: BoolArray) -> Ballots:
    """Return the votes of a chunk, every abstention as a ranking of nothing."""
    m = observed.shape[1]
    everybody = np.arange(m)[None]
    if labels.ndim == 2:  # nobody votes, so that not even the number of items is known
        return Ballots(np.full((*observed.shape, 2), -1, dtype=np.int16), observed, everybody, m)
    if len(observed) > 1 and few_votes(observed):
        return _moved_together(labels, observed)
    votes: npt.NDArray[np.int16] = np.where(observed[:, :, None], labels, -1).astype(np.int16)
    return Ballots(votes, observed, everybody, m)


def _moved_together(labels: Batch, observed: BoolArray) -> Ballots:
    rows, sources = np.nonzero(observed)
    count = np.bincount(rows, minlength=len(observed))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    shape = (len(observed), max(int(count.max(initial=0)), 1))
    positions = np.full((*shape, labels.shape[2]), -1, dtype=np.int16)
    positions[rows, place] = labels[rows, sources]
    seen, who = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=np.int64)
    seen[rows, place], who[rows, place] = True, sources
    return Ballots(positions, seen, who, observed.shape[1])
