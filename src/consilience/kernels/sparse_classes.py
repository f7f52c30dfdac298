"""Counting of categorical votes that are few per item, as in a crowd: the cost follows the votes, not the cells."""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = ["count_agreements", "count_few_pairs", "score_products_of_few"]


@numba.njit(cache=True, nogil=True, inline="always")
def _voters(observed: BoolArray, i: int, voters: IntArray) -> int:
    votes = 0
    for a in range(observed.shape[1]):
        if observed[i, a]:
            voters[votes] = a
            votes += 1
    return votes


@numba.njit(cache=True, nogil=True)
def _mirror(upper: IntArray) -> None:
    for x in range(upper.shape[0]):
        for y in range(x + 1, upper.shape[0]):
            upper[y, x] = upper[x, y]


@numba.njit(cache=True, nogil=True)
def count_few_pairs(codes: IntArray, observed: BoolArray, groups: IntArray, n_groups: int, k: int) -> IntArray:
    """Return what `count_pairs` does, ``(n_groups, m * k, m * k)``."""
    n, m = codes.shape
    counts = np.zeros((n_groups, m * k, m * k), np.int64)
    voters = np.empty(m, np.int64)
    events = np.empty(m, np.int64)
    for i in range(n):
        votes = _voters(observed, i, voters)
        for place in range(votes):
            events[place] = voters[place] * k + codes[i, voters[place]]
            for other in range(place + 1):
                counts[groups[i], events[other], events[place]] += 1
    for g in range(n_groups):
        _mirror(counts[g])
    return counts


@numba.njit(cache=True, nogil=True)
def count_agreements(codes: IntArray, observed: BoolArray, k: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return votes by class ``(m, k)``, and how often two sources agree and how often both vote, ``(m, m)``."""
    n, m = codes.shape
    cast = np.zeros((m, k), np.int64)
    agree = np.zeros((m, m), np.int64)
    both = np.zeros((m, m), np.int64)
    voters = np.empty(m, np.int64)
    for i in range(n):
        votes = _voters(observed, i, voters)
        for place in range(votes):
            b = voters[place]
            cast[b, codes[i, b]] += 1
            for other in range(place + 1):
                a = voters[other]
                both[a, b] += 1
                agree[a, b] += codes[i, a] == codes[i, b]
    _mirror(agree)
    _mirror(both)
    return cast, agree, both


@numba.njit(cache=True, nogil=True)
def score_products_of_few(
    codes: IntArray, observed: BoolArray, posterior: FloatArray, accuracy: FloatArray
) -> FloatArray:
    """Return the sum over items of the outer product of `accuracy_scores`, ``(m, m)``."""
    n, m = codes.shape
    scale = 1.0 / (accuracy * (1.0 - accuracy))
    total = np.zeros((m, m))
    voters = np.empty(m, np.int64)
    score = np.empty(m)
    for i in range(n):
        votes = _voters(observed, i, voters)
        for place in range(votes):
            a = voters[place]
            score[place] = (posterior[i, codes[i, a]] - accuracy[a]) * scale[a]
            for other in range(place + 1):
                total[voters[other], a] += score[other] * score[place]
    for a in range(m):
        for b in range(a + 1, m):
            total[b, a] = total[a, b]
    return total
