"""Votes on rankings as the compiled loops take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, few_votes
from consilience.label_types.rankings.labels import ABSENT, UNSEEN

__all__ = ["Ballots", "of_width"]


@dataclass(frozen=True)
class Ballots:
    """Votes of some items; of few voters among many sources only their own.

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

    @classmethod
    def of(cls, labels: Batch, observed: BoolArray) -> Ballots:
        """Return the votes of a chunk, every abstention as a ranking of nothing."""
        m = observed.shape[1]
        everybody = np.arange(m)[None]
        if labels.ndim == 2:  # nobody votes, so that not even the number of items is known
            return cls(np.full((*observed.shape, 2), UNSEEN, dtype=np.int16), observed, everybody, m)
        if len(observed) < 2 or not few_votes(observed):
            positions = np.ascontiguousarray(labels, dtype=np.int16)
            if not observed.all():
                positions = np.where(observed[:, :, None], positions, np.int16(UNSEEN))
            return cls(positions, observed, everybody, m)
        rows, sources = np.nonzero(observed)
        count = np.bincount(rows, minlength=len(observed))
        place = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
        shape = (len(observed), max(int(count.max(initial=0)), 1))
        positions = np.full((*shape, labels.shape[2]), UNSEEN, dtype=np.int16)
        positions[rows, place] = labels[rows, sources]
        seen, who = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=np.int64)
        seen[rows, place], who[rows, place] = True, sources
        return cls(positions, seen, who, m)

    def __getitem__(self, rows: slice | IntArray) -> Ballots:
        who = self.who[rows] if self.moved else self.who
        return Ballots(self.positions[rows], self.observed[rows], who, self.m)

    @property
    def moved(self) -> bool:
        """Whether the votes of a row were moved together."""
        return len(self.who) > 1

    @property
    def ranked(self) -> BoolArray:
        """``(n, r)`` whether some source ranks the item."""
        return np.asarray((self.positions >= 0).any(axis=1))

    def of_sources(self, values: FloatArray) -> FloatArray:
        """Return values ``(m,)`` of the sources for every cell; zero where there is no vote."""
        return np.where(self.observed, values[self.who], 0.0)

    def by_source(self, cells: FloatArray) -> FloatArray:
        """Return the sums ``(m,)`` of what is in the cells of each source."""
        if not self.moved:
            total: FloatArray = cells.sum(axis=0)
            return total
        return np.bincount(self.who[self.observed], cells[self.observed], minlength=self.m).astype(np.float64)

    def margins(self, loads: FloatArray) -> FloatArray:
        """Return ``(n, r (r - 1) / 2)`` by how much weight the votes favor one item over another."""
        from consilience.label_types.rankings.kernels import margins_of

        return margins_of(self.positions, loads)

    def with_known(self, rows: IntArray, known: Batch) -> Ballots:
        """Return the votes on some items, with the known labels as those of one source more."""
        some = self[rows]
        truth = of_width(known, some.positions.shape[2])[:, None]
        everywhere = np.ones((len(rows), 1), dtype=bool)
        who = np.full((len(some.who), 1), self.m)
        return Ballots(
            np.concatenate([some.positions, truth], axis=1),
            np.concatenate([some.observed, everywhere], axis=1),
            np.concatenate([some.who, who], axis=1),
            self.m + 1,
        )


def of_width(truth: Batch, width: int) -> npt.NDArray[np.int16]:
    """Return known rankings padded, or cut, to the width of the votes."""
    result = np.full((len(truth), width), ABSENT, dtype=np.int16)
    kept = min(width, truth.shape[1])
    result[:, :kept] = truth[:, :kept]
    return result
