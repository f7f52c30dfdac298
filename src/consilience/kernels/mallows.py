"""Drawing rankings, comparing them pair by pair, and adding them up into pair margins.

A ranking is a position per item, 0 for the first; equal positions are ties and -1 is an item not seen.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = ["margins_of", "pair_agreements", "pair_sums", "sample_mallows"]


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


@numba.njit(cache=True, nogil=True, inline="always")
def _pack(
    positions: npt.NDArray[np.int16],
    t: int,
    a: int,
    strict: npt.NDArray[np.uint64],
    ahead: npt.NDArray[np.uint64],
) -> None:
    """Write which pairs of items a source orders, and in which of them the first is ahead, 64 pairs to a word."""
    r = positions.shape[2]
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
                strict[word] = strict_bits
                ahead[word] = ahead_bits
                word += 1
                bit = np.uint64(0)
                strict_bits = np.uint64(0)
                ahead_bits = np.uint64(0)
    if bit > np.uint64(0):
        strict[word] = strict_bits
        ahead[word] = ahead_bits


@numba.njit(cache=True, nogil=True, inline="always")
def _compare(
    strict: npt.NDArray[np.uint64],
    ahead: npt.NDArray[np.uint64],
    other_strict: npt.NDArray[np.uint64],
    other_ahead: npt.NDArray[np.uint64],
) -> tuple[int, int]:
    """Return on how many pairs of items both have an order, and on how many of these a different one."""
    shared = 0
    different = 0
    for word in range(len(strict)):
        common = strict[word] & other_strict[word]
        shared += _ones(common)
        different += _ones(common & (ahead[word] ^ other_ahead[word]))
    return shared, different


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
            _pack(positions, t, a, strict[a], ahead[a])
        pair = 0
        for a in range(m):
            for b in range(a + 1, m):
                shared, different = _compare(strict[a], ahead[a], strict[b], ahead[b])
                both[t, pair] = shared
                agreement[t, pair] = shared - 2 * different
                pair += 1
    return agreement, both


@numba.njit(cache=True, nogil=True)
def pair_sums(
    positions: npt.NDArray[np.int16],
    observed: BoolArray,
    who: IntArray,
    m: int,
    groups: IntArray,
    n_groups: int,
    width: int,
    by_both: bool,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return sums over items of what `pair_agreements` returns, from vote to vote: the cost follows the pairs of votes.

    Parameters
    ----------
    who
        ``(n, cells)`` the source of every cell, in increasing order, or ``(1, cells)`` if it is the same in all rows.
    m
        Number of sources.
    groups
        ``(n,)`` group of each item, below `n_groups`.
    width
        One more than the largest number of items that a source ranks.
    by_both
        Count sizes by the numbers of items that both sources rank, not only by the larger one.

    Returns
    -------
    agreement, both
        ``(n_groups, m, m)`` sums.
    squares
        ``(3, m, m)`` sums of agreement squared, of agreement times both, and of both squared.
    sizes
        ``(m (m - 1) / 2, width ** 2)``, or ``(m (m - 1) / 2, width)``: pairs of items that both order, by how many
        items the sources rank.
    """
    n, cells, r = positions.shape
    words = (r * (r - 1) // 2 + 63) // 64
    strict = np.empty((cells, words), np.uint64)
    ahead = np.empty((cells, words), np.uint64)
    agreement = np.zeros((n_groups, m, m), np.int64)
    both = np.zeros((n_groups, m, m), np.int64)
    squares = np.zeros((3, m, m), np.int64)
    sizes = np.zeros((m * (m - 1) // 2, width * width if by_both else width), np.int64)
    voters = np.empty(cells, np.int64)
    ranked = np.empty(cells, np.int64)
    for t in range(n):
        votes = 0
        row = t if len(who) > 1 else 0
        for a in range(cells):
            if observed[t, a]:
                voters[votes] = who[row, a]
                ranked[votes] = 0
                for i in range(r):
                    ranked[votes] += positions[t, a, i] >= 0
                _pack(positions, t, a, strict[votes], ahead[votes])
                votes += 1
        g = groups[t]
        for place in range(votes):
            a = voters[place]
            for other in range(place + 1, votes):
                b = voters[other]
                shared, different = _compare(strict[place], ahead[place], strict[other], ahead[other])
                if shared == 0:
                    continue
                same = shared - 2 * different
                agreement[g, a, b] += same
                both[g, a, b] += shared
                squares[0, a, b] += same * same
                squares[1, a, b] += same * shared
                squares[2, a, b] += shared * shared
                size = ranked[place] * width + ranked[other] if by_both else max(ranked[place], ranked[other])
                sizes[a * m - a * (a + 1) // 2 + b - a - 1, size] += shared
    for a in range(m):
        for b in range(a + 1, m):
            agreement[:, b, a] = agreement[:, a, b]
            both[:, b, a] = both[:, a, b]
            squares[:, b, a] = squares[:, a, b]
    return agreement, both, squares, sizes


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
