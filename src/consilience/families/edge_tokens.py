"""Trees of sentences as one flat table of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, IntArray, as_object_array
from consilience.exceptions import InvalidVotesError

__all__ = ["TokenTable", "cut"]

Heads = npt.NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class TokenTable:
    """Votes on the tokens of n sentences, one after the other.

    Parameters
    ----------
    heads
        ``(t, m)``, -1 where a source abstains.
    relations
        ``(t, m)`` codes, or None where votes have none.
    starts
        ``(n + 1,)`` first token of each sentence; nobody votes on an empty one.
    """

    heads: Heads
    relations: Heads | None
    starts: IntArray

    @classmethod
    def of(cls, labels: Batch, observed: BoolArray) -> TokenTable:
        """Return the tokens of ``(n, m)`` trees: heads ``(length,)``, or heads and relations ``(length, 2)``."""
        from consilience.kernels.edge_votes import spread_cells

        n, m = observed.shape
        rows, columns = np.nonzero(observed)
        if len(rows) == 0:
            return cls(np.zeros((0, m), dtype=np.int16), None, np.zeros(n + 1, dtype=np.int64))
        cells = labels[rows, columns].tolist()
        sizes = np.fromiter(map(len, cells), dtype=np.int64, count=len(cells))
        lengths = np.zeros(n, dtype=np.int64)
        lengths[rows] = sizes
        if (lengths[rows] != sizes).any():
            cell = int(np.flatnonzero(lengths[rows] != sizes)[0])
            raise InvalidVotesError(
                f"Row {rows[cell]}: one tree has {sizes[cell]} tokens, another {lengths[rows[cell]]}. All sources must "
                "parse the same tokens."
            )
        starts = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.concatenate(cells)
        if flat.ndim == 1:
            return cls(spread_cells(flat, rows, columns, starts, m), None, starts)
        heads, relations = np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])
        return cls(
            spread_cells(heads, rows, columns, starts, m), spread_cells(relations, rows, columns, starts, m), starts
        )

    @property
    def lengths(self) -> IntArray:
        """Tokens of each sentence."""
        return np.diff(self.starts)

    def known(self, truth: Batch, is_known: BoolArray) -> Heads:
        """Return ``(t,)`` the true heads, -1 where they are not known or nobody votes."""
        heads = np.full(len(self.heads), -1, dtype=np.int16)
        for row in np.flatnonzero(is_known & (self.lengths > 0)):
            tree = np.asarray(truth[row])
            length = int(self.lengths[row])
            if len(tree) != length:
                raise InvalidVotesError(
                    f"Row {row}: the known tree has {len(tree)} tokens, the votes have {length}. Give known trees of "
                    "the same tokens."
                )
            heads[self.starts[row] : self.starts[row + 1]] = tree if tree.ndim == 1 else tree[:, 0]
        return heads


def cut(flat: npt.NDArray[np.generic], starts: IntArray) -> Batch:
    """Return one array per sentence."""
    ends = starts.tolist()
    return as_object_array(flat[first:last] for first, last in pairwise(ends))
