"""Counting and scoring of categorical votes, one pass over an ``(n, m)`` table of class codes."""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = [
    "accuracy_scores",
    "agreement_of_rows",
    "count_pairs",
    "expectation_round",
    "pattern_numbers",
    "posterior_rows",
]


@numba.njit(cache=True, nogil=True, inline="always")
def _ones(word: np.uint64) -> np.uint64:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@numba.njit(cache=True, nogil=True)
def count_pairs(codes: IntArray, observed: BoolArray, groups: IntArray, n_groups: int, k: int) -> IntArray:
    """Return how often source a votes v while source b votes w, per group of items.

    The votes are packed into bit sets, 64 items to a word, so that a cell costs one ``and`` and one
    population count per 64 items.

    Parameters
    ----------
    codes
        ``(n, m)`` class codes, meaningful where `observed`.
    groups
        ``(n,)`` group of each item, below `n_groups`.

    Returns
    -------
    array of shape (n_groups, m * k, m * k)
    """
    n, m = codes.shape
    start = np.zeros(n_groups + 1, np.int64)
    for i in range(n):
        start[groups[i] + 1] += 1
    offset = np.zeros(n_groups + 1, np.int64)  # first word of each group; groups never share a word
    for g in range(n_groups):
        offset[g + 1] = offset[g] + (start[g + 1] + 63) // 64
        start[g + 1] += start[g]
    rows = np.empty(n, np.int64)
    filled = start[:-1].copy()
    for i in range(n):
        rows[filled[groups[i]]] = i
        filled[groups[i]] += 1
    bits = np.zeros((m * k, offset[n_groups]), np.uint64)
    votes = np.empty(m, np.int64)
    packed = np.empty((k, m), np.uint64)  # one word of every event
    for g in range(n_groups):
        for word in range(offset[g], offset[g + 1]):
            first = start[g] + 64 * (word - offset[g])
            packed[:] = np.uint64(0)
            for position in range(min(64, start[g + 1] - first)):
                i = rows[first + position]
                for a in range(m):
                    votes[a] = codes[i, a] if observed[i, a] else -1
                for v in range(k):  # without branches, so that it runs on several sources at once
                    for a in range(m):
                        packed[v, a] |= np.uint64(votes[a] == v) << np.uint64(position)
            for a in range(m):
                for v in range(k):
                    bits[a * k + v, word] = packed[v, a]
    counts = np.zeros((n_groups, m * k, m * k), np.int64)
    for x in range(m * k):
        for y in range(x, m * k):
            for g in range(n_groups):
                total = np.uint64(0)
                for word in range(offset[g], offset[g + 1]):
                    total += _ones(bits[x, word] & bits[y, word])
                counts[g, x, y] = total
                counts[g, y, x] = total
    return counts


@numba.njit(cache=True, nogil=True)
def agreement_of_rows(codes: IntArray, observed: BoolArray) -> tuple[float, int]:
    """Return the sum over items of the share of agreeing vote pairs, and the number of items with a pair."""
    n, m = codes.shape
    total = 0.0
    rows = 0
    for i in range(n):
        votes = 0
        same = 0
        for a in range(m):
            if observed[i, a]:
                votes += 1
                for b in range(a):
                    if observed[i, b] and codes[i, a] == codes[i, b]:
                        same += 2
        if votes >= 2:
            total += same / (votes * (votes - 1))
            rows += 1
    return total, rows


@numba.njit(cache=True, nogil=True)
def _before_any_vote(table: FloatArray, offset: FloatArray) -> FloatArray:
    """Return the scores of an item on which every source abstains."""
    scores = offset.copy()
    for a in range(table.shape[0]):
        for c in range(len(offset)):
            scores[c] += table[a, -1, c]
    return scores


@numba.njit(cache=True, nogil=True, inline="always")
def _score(
    codes: IntArray,
    observed: BoolArray,
    i: int,
    table: FloatArray,
    correlation: FloatArray,
    shares: bool,
    voters: IntArray,
    scores: FloatArray,
) -> int:
    """Add what the votes say to `scores`, which hold what abstaining says; fill `voters`, return their number."""
    m = codes.shape[1]
    k = scores.shape[0]
    votes = 0
    for a in range(m):
        if observed[i, a]:
            voters[votes] = a
            votes += 1
    for place in range(votes):
        a = voters[place]
        v = codes[i, a]
        share = 1.0
        if shares:
            for other in range(votes):
                share += correlation[a, voters[other]]
            share = 1.0 / share
        for c in range(k):
            scores[c] += share * table[a, v, c] - table[a, k, c]
    return votes


@numba.njit(cache=True, nogil=True, inline="always")
def _normalise(scores: FloatArray) -> float:
    top = scores[0]
    for c in range(1, scores.shape[0]):
        top = max(top, scores[c])
    total = 0.0
    for c in range(scores.shape[0]):
        scores[c] = np.exp(scores[c] - top)
        total += scores[c]
    for c in range(scores.shape[0]):
        scores[c] /= total
    return float(top + np.log(total))


@numba.njit(cache=True, nogil=True)
def posterior_rows(
    codes: IntArray, observed: BoolArray, table: FloatArray, offset: FloatArray, correlation: FloatArray
) -> FloatArray:
    """Return ``(n, k)`` posterior class probabilities.

    Parameters
    ----------
    table
        ``(m, k + 1, k)``: what a vote v of source a adds to the score of class c; the last row is
        what an abstention adds.
    offset
        ``(k,)`` score before any vote (log prior).
    correlation
        ``(m, m)``; correlated sources that vote on the same item share one vote.
    """
    n = codes.shape[0]
    k = offset.shape[0]
    shares = bool(correlation.any())
    result = np.empty((n, k))
    scores = np.empty(k)
    voters = np.empty(codes.shape[1], np.int64)
    start = _before_any_vote(table, offset)
    for i in range(n):
        scores[:] = start
        _score(codes, observed, i, table, correlation, shares, voters, scores)
        _normalise(scores)
        result[i] = scores
    return result


@numba.njit(cache=True, nogil=True)
def expectation_round(
    codes: IntArray,
    observed: BoolArray,
    table: FloatArray,
    offset: FloatArray,
    correlation: FloatArray,
    known: IntArray,
) -> tuple[FloatArray, FloatArray, float]:
    """Run one E-step and return the expected counts it yields.

    Parameters
    ----------
    known
        ``(n,)`` true class where known, -1 elsewhere; known items keep their label.

    Returns
    -------
    votes
        ``(m, k, k)``: expected number of items of class c on which source a votes v, as ``[a, v, c]``.
    classes
        ``(k,)``: expected number of items per class among the items with a vote.
    log_likelihood
    """
    n, m = codes.shape
    k = offset.shape[0]
    shares = bool(correlation.any())
    votes = np.zeros((m, k, k))
    classes = np.zeros(k)
    likelihood = 0.0
    scores = np.empty(k)
    voters = np.empty(m, np.int64)
    start = _before_any_vote(table, offset)
    for i in range(n):
        scores[:] = start
        cast = _score(codes, observed, i, table, correlation, shares, voters, scores)
        if cast == 0:
            continue
        if known[i] >= 0:
            likelihood += scores[known[i]]
            scores[:] = 0.0
            scores[known[i]] = 1.0
        else:
            likelihood += _normalise(scores)
        for c in range(k):
            classes[c] += scores[c]
        for place in range(cast):
            a = voters[place]
            v = codes[i, a]
            for c in range(k):
                votes[a, v, c] += scores[c]
    return votes, classes, likelihood


@numba.njit(cache=True, nogil=True)
def accuracy_scores(
    codes: IntArray, observed: BoolArray, posterior: FloatArray, accuracy: FloatArray, scores: FloatArray
) -> None:
    """Write the derivative of the log-likelihood by each accuracy into ``(n, m)`` `scores`; 0 where none voted."""
    n, m = codes.shape
    scale = 1.0 / (accuracy * (1.0 - accuracy))
    for i in range(n):
        for a in range(m):
            if observed[i, a]:
                scores[i, a] = (posterior[i, codes[i, a]] - accuracy[a]) * scale[a]
            else:
                scores[i, a] = 0.0


@numba.njit(cache=True, nogil=True)
def pattern_numbers(codes: IntArray, observed: BoolArray, k: int) -> IntArray:
    """Return the number of each row of votes among the ``(k + 1) ** m`` there may be; the first digit is source 0."""
    n, m = codes.shape
    numbers = np.empty(n, np.int64)
    for i in range(n):
        number = 0
        for a in range(m):
            number = number * (k + 1) + (codes[i, a] + 1) * observed[i, a]
        numbers[i] = number
    return numbers
