"""Counting and scoring of categorical votes, one pass over an ``(n, m)`` table of class codes.

There are two forms of most functions. Where sources mostly vote, all cells are gone through alike, without a branch:
event v of a source is a vote for class v, event k an abstention. In a crowd, where few vote on each item, the cost
follows the votes, not the cells.
"""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray

__all__ = [
    "beliefs",
    "beliefs_from_few",
    "count_agreements",
    "count_few_pairs",
    "count_pairs",
    "expected_votes",
    "pattern_numbers",
    "threshold_angles",
    "threshold_covariances",
]

#: Gauss-Legendre points on [0, 1], enough for five digits of a tetrachoric correlation.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_NODES, _WEIGHTS = (_NODES + 1.0) / 2.0, _WEIGHTS / 2.0


# --- counting pairs of votes ----------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True, inline="always")
def _ones(word: np.uint64) -> np.uint64:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@numba.njit(cache=True, nogil=True)
def count_pairs(codes: IntArray, observed: BoolArray, k: int) -> IntArray:
    """Return how often source a votes v while source b votes w, ``(m * k, m * k)``.

    The votes are packed into bit sets, 64 items to a word, so that a cell costs one ``and`` and one population count
    per 64 items. Codes matter only where `observed`.
    """
    n, m = codes.shape
    words = (n + 63) // 64
    bits = np.empty((m * k, words), np.uint64)  # every cell is filled, and `zeros` would take longer to compile
    votes = np.empty(m, np.int64)
    packed = np.empty((k, m), np.uint64)  # one word of every event
    for word in range(words):
        packed[:] = np.uint64(0)
        for position in range(min(64, n - 64 * word)):
            i = 64 * word + position
            for a in range(m):
                votes[a] = codes[i, a] if observed[i, a] else -1
            for v in range(k):  # without branches, so that the compiler vectorizes over sources
                for a in range(m):
                    packed[v, a] |= np.uint64(votes[a] == v) << np.uint64(position)
        for a in range(m):
            for v in range(k):
                bits[a * k + v, word] = packed[v, a]
    counts = np.empty((m * k, m * k), np.int64)
    for x in range(m * k):
        for y in range(x, m * k):
            total = np.uint64(0)
            for word in range(words):
                total += _ones(bits[x, word] & bits[y, word])
            counts[x, y] = total
            counts[y, x] = total
    return counts


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
def count_few_pairs(codes: IntArray, observed: BoolArray, k: int) -> IntArray:
    """Return what `count_pairs` does, for votes that are few per item."""
    n, m = codes.shape
    counts = np.zeros((m * k, m * k), np.int64)
    voters = np.empty(m, np.int64)
    events = np.empty(m, np.int64)
    for i in range(n):
        votes = _voters(observed, i, voters)
        for place in range(votes):
            events[place] = voters[place] * k + codes[i, voters[place]]
            for other in range(place + 1):
                counts[events[other], events[place]] += 1
    _mirror(counts)
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


# --- what the votes say about each item -------------------------------------------------------------------


@numba.njit(cache=True, nogil=True, inline="always")
def _normalize(scores: FloatArray) -> None:
    top = scores[0]
    for c in range(1, len(scores)):
        top = max(top, scores[c])
    total = 0.0
    for c in range(len(scores)):
        scores[c] = np.exp(scores[c] - top)
        total += scores[c]
    for c in range(len(scores)):
        scores[c] /= total


@numba.njit(cache=True, nogil=True, inline="always")
def _events(codes: IntArray, observed: BoolArray, i: int, k: int, events: Batch) -> None:
    """Write the row of each source's event in a table of ``m * (k + 1)`` rows."""
    for a in range(codes.shape[1]):
        seen = np.int32(observed[i, a])
        events[a] = np.int32(a * (k + 1) + k) + (np.int32(codes[i, a]) - np.int32(k)) * seen


@numba.njit(cache=True, nogil=True)
def beliefs(
    codes: IntArray, observed: BoolArray, table: FloatArray, offset: FloatArray, shares: FloatArray
) -> FloatArray:
    """Return ``(n, k)`` posterior class probabilities.

    `table` has what each event of each source adds to the score of each class, ``(m * (k + 1), k)``, `offset` the score
    before any vote; ``(n, m)`` `shares` say by how much each vote counts, and are empty where all count one.
    """
    n, m = codes.shape
    k = len(offset)
    shared = len(shares) > 0
    result = np.empty((n, k))
    events = np.empty(m, np.int32)
    for i in range(n):
        _events(codes, observed, i, k, events)
        scores = result[i]
        for c in range(k):
            scores[c] = offset[c]
        if shared:
            for a in range(m):
                share = shares[i, a] if observed[i, a] else 1.0
                for c in range(k):
                    scores[c] += share * table[events[a], c]
        elif k == 2:
            first, second = offset[0], offset[1]
            for a in range(m):
                first += table[events[a], 0]
                second += table[events[a], 1]
            scores[0] = first
            scores[1] = second
        else:
            for a in range(m):
                for c in range(k):
                    scores[c] += table[events[a], c]
        _normalize(scores)
    return result


@numba.njit(cache=True, nogil=True)
def beliefs_from_few(
    codes: IntArray, observed: BoolArray, table: FloatArray, offset: FloatArray, correlation: FloatArray
) -> FloatArray:
    """Return what `beliefs` does, for votes that are few per item; correlated sources share one vote."""
    n, m = codes.shape
    k = len(offset)
    result = np.empty((n, k))
    voters = np.empty(m, np.int64)
    silent = offset.copy()
    for a in range(m):
        for c in range(k):
            silent[c] += table[a * (k + 1) + k, c]
    for i in range(n):
        scores = result[i]
        for c in range(k):
            scores[c] = silent[c]
        votes = _voters(observed, i, voters)
        for place in range(votes):
            a = voters[place]
            share = 1.0
            for other in range(votes):
                share += correlation[a, voters[other]]
            first = a * (k + 1)
            for c in range(k):
                scores[c] += table[first + codes[i, a], c] / share - table[first + k, c]
        _normalize(scores)
    return result


@numba.njit(cache=True, nogil=True)
def expected_votes(codes: IntArray, observed: BoolArray, belief: FloatArray, few: bool) -> FloatArray:
    """Return how often each source votes v on items of class c, ``(m, k, k)`` as ``[source, vote, class]``."""
    n, m = codes.shape
    k = belief.shape[1]
    counts = np.zeros((m * (k + 1), k))
    voters = np.empty(m, np.int64)
    events = np.empty(m, np.int32)
    for i in range(n):
        if few:
            votes = _voters(observed, i, voters)
            for place in range(votes):
                a = voters[place]
                for c in range(k):
                    counts[a * (k + 1) + codes[i, a], c] += belief[i, c]
            continue
        _events(codes, observed, i, k, events)
        if k == 2:
            first, second = belief[i, 0], belief[i, 1]
            for a in range(m):
                counts[events[a], 0] += first
                counts[events[a], 1] += second
        else:
            for a in range(m):
                for c in range(k):
                    counts[events[a], c] += belief[i, c]
    return counts.reshape((m, k + 1, k))[:, :k]


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


# --- two thresholded normal scores ------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True, inline="always")
def _slope(angle: float, first: float, second: float) -> float:
    exponent = (first**2 + second**2 - 2.0 * first * second * np.sin(angle)) / (2.0 * np.cos(angle) ** 2)
    return float(np.exp(-exponent) / (2.0 * np.pi))


@numba.njit(cache=True, nogil=True, inline="always")
def _covariance(angle: float, first: float, second: float) -> float:
    """Return ``1 / (2 pi) * integral from 0 to angle of exp(-(h^2 + k^2 - 2 h k sin t) / (2 cos^2 t)) dt``."""
    total = 0.0
    for point in range(len(_NODES)):
        total += _WEIGHTS[point] * _slope(angle * _NODES[point], first, second)
    return total * angle


@numba.njit(cache=True, nogil=True)
def threshold_covariances(angle: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the covariances of two normal scores of correlation sin(angle), cut at these levels; all ``(n,)``."""
    found = np.empty(len(angle))
    for i in range(len(angle)):
        found[i] = _covariance(angle[i], first[i], second[i])
    return found


@numba.njit(cache=True, nogil=True)
def threshold_angles(
    covariance: FloatArray, first: FloatArray, second: FloatArray, largest: float
) -> tuple[FloatArray, FloatArray]:
    """Return the angles of these covariances, and the slope of the covariance there; all ``(n,)``.

    Newton's steps, kept inside a bracket that ends at `largest`.
    """
    n = len(covariance)
    angles, slopes = np.empty(n), np.empty(n)
    for i in range(n):
        low, high, angle = -largest, largest, 0.0
        for _ in range(30):
            missing = covariance[i] - _covariance(angle, first[i], second[i])
            if missing > 0:
                low = angle
            else:
                high = angle
            newton = angle + missing / max(_slope(angle, first[i], second[i]), 1e-9)
            before = angle
            angle = newton if low < newton < high else (low + high) / 2.0
            if abs(angle - before) < 1e-5:
                break
        angles[i] = angle
        slopes[i] = _slope(angle, first[i], second[i])
    return angles, slopes
