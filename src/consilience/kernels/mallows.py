"""Drawing rankings, comparing them pair by pair, and adding them up into pair margins.

A ranking is a position per item, 0 for the first; equal positions are ties and -1 is an item not seen.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = ["margins_of", "pair_agreements", "sample_mallows"]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def sample_mallows(truth: IntArray, seen: BoolArray, weight: float, uniforms: FloatArray) -> IntArray:
    """Return one Mallows vote per row over the items a source sees.

    Repeated insertion: the seen items come in their true order, and each is put v places before the end of the list so
    far with probability proportional to ``exp(-weight * v)``, which is the number of discordances it causes.

    Parameters
    ----------
    truth
        ``(n, r)`` positions without ties; -1 for items that do not exist in this row.
    seen
        ``(n, r)``: which items the source ranks.
    weight
        0 is a random order; negative weights prefer the reversed truth.
    uniforms
        ``(n, r)`` numbers from [0, 1), the only randomness there is.

    Returns
    -------
    array of shape (n, r)
        Positions among the seen items; -1 elsewhere.
    """
    n, r = truth.shape
    size = abs(weight)
    reach = np.array([math.expm1(-size * j) for j in range(r + 1)])
    votes = np.full((n, r), -1, np.int64)
    by_truth = np.empty(r, np.int64)
    order = np.empty(r, np.int64)
    for t in range(n):
        by_truth[:] = -1
        for item in range(r):
            if seen[t, item] and truth[t, item] >= 0:
                by_truth[truth[t, item]] = item
        count = 0
        for place in range(r):
            item = by_truth[place]
            if item < 0:
                continue
            uniform = uniforms[t, count]
            if size == 0.0:
                back = int(uniform * (count + 1))
            else:  # the inverse of the truncated geometric distribution function
                back = int(-math.log1p(uniform * reach[count + 1]) / size)
            back = min(back, count)
            if weight < 0.0:
                back = count - back
            for behind in range(count, count - back, -1):
                order[behind] = order[behind - 1]
            order[count - back] = item
            count += 1
        for place in range(count):
            votes[t, order[place]] = place
    return votes


@numba.njit(cache=True, nogil=True, inline="always")
def _ones(word: np.uint64) -> int:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit(cache=True, nogil=True)
def pair_agreements(positions: npt.NDArray[np.int16]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return on how many pairs of items each two sources agree, and how many both of them order.

    The order that a source gives to the pairs of items is packed into bit sets, 64 pairs to a word.

    Parameters
    ----------
    positions
        ``(n, m, r)``; -1 is unseen, equal positions are ties. A tie or an unseen item orders nothing.

    Returns
    -------
    agreement
        ``(n, m (m - 1) / 2)``: pairs of items ordered the same way minus pairs ordered differently, for the sources
        a < b in the order of ``numpy.triu_indices(m, 1)``.
    both
        ``(n, m (m - 1) / 2)``: pairs of items that both sources order strictly.
    """
    n, m, r = positions.shape
    words = (r * (r - 1) // 2 + 63) // 64
    strict = np.empty((m, words), np.uint64)
    ahead = np.empty((m, words), np.uint64)
    agreement = np.empty((n, m * (m - 1) // 2), np.int32)
    both = np.empty((n, m * (m - 1) // 2), np.int32)
    for t in range(n):
        for a in range(m):
            word = 0
            bit = np.uint64(0)
            strict_bits = np.uint64(0)
            ahead_bits = np.uint64(0)
            for i in range(r):
                here = positions[t, a, i]
                for j in range(i + 1, r):
                    there = positions[t, a, j]
                    strict_bits |= np.uint64((here >= 0) & (there >= 0) & (here != there)) << bit
                    ahead_bits |= np.uint64(here < there) << bit
                    bit += np.uint64(1)
                    if bit == np.uint64(64):
                        strict[a, word] = strict_bits
                        ahead[a, word] = ahead_bits
                        word += 1
                        bit = np.uint64(0)
                        strict_bits = np.uint64(0)
                        ahead_bits = np.uint64(0)
            if bit > np.uint64(0):
                strict[a, word] = strict_bits
                ahead[a, word] = ahead_bits
        pair = 0
        for a in range(m):
            for b in range(a + 1, m):
                shared = 0
                different = 0
                for word in range(words):
                    common = strict[a, word] & strict[b, word]
                    shared += _ones(common)
                    different += _ones(common & (ahead[a, word] ^ ahead[b, word]))
                both[t, pair] = shared
                agreement[t, pair] = shared - 2 * different
                pair += 1
    return agreement, both


@numba.njit(cache=True, nogil=True)
def margins_of(positions: npt.NDArray[np.int16], weights: FloatArray) -> FloatArray:
    """Return by how much weight the sources favour i before j, for every pair of items.

    Parameters
    ----------
    positions
        ``(n, m, r)``; -1 is unseen, equal positions are ties; both add nothing.
    weights
        ``(n, m)``.

    Returns
    -------
    array of shape (n, r (r - 1) / 2)
        Pairs i < j in the order of ``numpy.triu_indices(r, 1)``; positive favours i.
    """
    n, m, r = positions.shape
    margins = np.zeros((n, r * (r - 1) // 2))
    for t in range(n):
        for a in range(m):
            weight = weights[t, a]
            first = 0
            for i in range(r):
                here = positions[t, a, i]
                if here >= 0:
                    for j in range(i + 1, r):
                        there = positions[t, a, j]
                        favour = np.int64(here < there) - np.int64((there >= 0) & (there < here))
                        margins[t, first + j - i - 1] += weight * favour
                first += r - i - 1
    return margins
