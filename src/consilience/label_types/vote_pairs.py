"""All pairs of votes on the same item."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray, IntArray

__all__ = ["pair_sums", "vote_pairs"]


def vote_pairs(item_start: IntArray) -> IntArray:
    """Return all pairs of votes within items ``(p, 2)``, item by item.

    Parameters
    ----------
    item_start
        ``(n + 1,)`` first vote of each item.

    Examples
    --------
    >>> vote_pairs(np.array([0, 1, 4])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    sizes = np.diff(item_start)
    found = []
    for size in np.unique(sizes[sizes > 1]):
        one, two = np.triu_indices(int(size), 1)
        rows = np.flatnonzero(sizes == size)
        first = item_start[rows][:, None]
        found.append((np.repeat(rows, len(one)), (first + one).ravel(), (first + two).ravel()))
    if not found:
        return np.zeros((0, 2), dtype=np.int64)
    item, left, right = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(item, kind="stable")
    return np.stack([left[order], right[order]], axis=1)


def pair_sums(agreement: FloatArray, left: IntArray, right: IntArray, m: int) -> dict[str, npt.NDArray[Any]]:
    """Return the sums behind a pair table from one agreement per pair of votes and the sources of both."""
    cell = left * m + right

    def summed(weights: FloatArray | None) -> FloatArray:
        one = np.bincount(cell, weights, minlength=m * m).reshape(m, m).astype(np.float64)
        total: FloatArray = one + one.T
        return total

    return {
        "agreement": summed(agreement),
        "agreement_square": summed(agreement**2),
        "agreement_count": summed(None),
    }
