"""What votes on rankings look like beside a posterior: expected discordances, bucket sizes."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray, IntArray

__all__ = ["bucket_counts", "expected_discordance", "expected_under_weight", "products_of_few"]


@numba.njit(cache=True, nogil=True)
def expected_discordance(positions: npt.NDArray[np.int16], probability: FloatArray) -> FloatArray:
    """Return ``(n, m)`` expected numbers of pairs that each vote orders against the truth.

    Parameters
    ----------
    positions
        ``(n, m, r)``; negative is unseen, equal positions are ties; neither counts.
    probability
        ``(n, r (r - 1) / 2)`` probability that i comes before j in the truth.
    """
    n, m, r = positions.shape
    result = np.zeros((n, m))
    for t in range(n):
        for a in range(m):
            total = 0.0
            pair = 0
            for i in range(r):
                here = positions[t, a, i]
                for j in range(i + 1, r):
                    there = positions[t, a, j]
                    if here >= 0 and there >= 0:
                        if here < there:
                            total += 1.0 - probability[t, pair]
                        elif there < here:
                            total += probability[t, pair]
                    pair += 1
            result[t, a] = total
    return result


@numba.njit(cache=True, nogil=True, inline="always")
def _fill_buckets(vote: npt.NDArray[np.int16], count: IntArray) -> int:
    """Count the items at each position of a vote, and return how many it ranks."""
    count[:] = 0
    seen = 0
    for i in range(vote.shape[0]):
        if vote[i] >= 0:
            count[vote[i]] += 1
            seen += 1
    return seen


@numba.njit(cache=True, nogil=True)
def bucket_counts(
    positions: npt.NDArray[np.int16], observed: npt.NDArray[np.bool_], who: IntArray, m: int, sizes: int
) -> IntArray:
    """Return ``(m, sizes + 1)``: votes over s items, minus one per bucket of s tied items, per source.

    A bucket order acts like one ranking of all its items minus one ranking per bucket. `who` is the source of every
    cell, ``(n, cells)`` or the same in all rows, ``(1, cells)``.
    """
    n, cells, r = positions.shape
    result = np.zeros((m, sizes + 1), np.int64)
    count = np.zeros(r + 1, np.int64)
    for t in range(n):
        row = t if len(who) > 1 else 0
        for a in range(cells):
            if observed[t, a]:
                source = who[row, a]
                seen = _fill_buckets(positions[t, a], count)
                result[source, seen] += 1
                for position in range(r + 1):
                    if count[position] > 0:
                        result[source, count[position]] -= 1
    return result


@numba.njit(cache=True, nogil=True)
def expected_under_weight(
    positions: npt.NDArray[np.int16], observed: npt.NDArray[np.bool_], who: IntArray, mean: FloatArray
) -> FloatArray:
    """Return ``(n, cells)`` expected discordances of each vote under its source's weight.

    Parameters
    ----------
    who
        As for `bucket_counts`.
    mean
        ``(m, r + 1)`` expected discordances of a ranking of s items by each source.
    """
    n, cells, r = positions.shape
    result = np.zeros((n, cells))
    count = np.zeros(r + 1, np.int64)
    for t in range(n):
        row = t if len(who) > 1 else 0
        for a in range(cells):
            if observed[t, a]:
                source = who[row, a]
                seen = _fill_buckets(positions[t, a], count)
                total = mean[source, seen]
                for position in range(r + 1):
                    if count[position] > 1:
                        total -= mean[source, count[position]]
                result[t, a] = total
    return result


@numba.njit(cache=True, nogil=True)
def products_of_few(cells: FloatArray, observed: npt.NDArray[np.bool_], who: IntArray, m: int) -> FloatArray:
    """Return ``(m, m)``: products of the cells of two sources, summed over the items, from vote to vote.

    Parameters
    ----------
    cells, observed, who
        ``(n, cells)`` values, whether there is a vote, and the source of every cell.
    """
    n, width = cells.shape
    result = np.zeros((m, m))
    for t in range(n):
        for a in range(width):
            if observed[t, a]:
                here = cells[t, a]
                for b in range(width):
                    if observed[t, b]:
                        result[who[t, a], who[t, b]] += here * cells[t, b]
    return result
