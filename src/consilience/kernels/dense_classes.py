"""Scoring of categorical votes of independent sources that mostly vote: every cell is an event, without a branch.

Event v of a source is a vote for class v, event k an abstention.
"""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray

__all__ = ["dense_posterior", "dense_round"]


@numba.njit(cache=True, nogil=True, inline="always")
def _events(codes: IntArray, observed: BoolArray, i: int, k: int, events: Batch) -> int:
    """Write the row of each source's event in the table of scores; return the number of votes."""
    votes = 0
    for a in range(codes.shape[1]):
        seen = np.int32(observed[i, a])
        events[a] = np.int32(a * (k + 1) + k) + (np.int32(codes[i, a]) - np.int32(k)) * seen
        votes += int(seen)
    return votes


@numba.njit(cache=True, nogil=True, inline="always")
def _add_up(table: FloatArray, events: Batch, offset: FloatArray, scores: FloatArray) -> None:
    if len(offset) == 2:
        first, second = offset[0], offset[1]
        for a in range(len(events)):
            first += table[events[a], 0]
            second += table[events[a], 1]
        scores[0] = first
        scores[1] = second
        return
    scores[:] = offset
    for a in range(len(events)):
        for c in range(len(offset)):
            scores[c] += table[events[a], c]


@numba.njit(cache=True, nogil=True, inline="always")
def _normalise(scores: FloatArray) -> float:
    top = scores[0]
    for c in range(1, len(scores)):
        top = max(top, scores[c])
    total = 0.0
    for c in range(len(scores)):
        scores[c] = np.exp(scores[c] - top)
        total += scores[c]
    for c in range(len(scores)):
        scores[c] /= total
    return float(top + np.log(total))


@numba.njit(cache=True, nogil=True)
def dense_posterior(codes: IntArray, observed: BoolArray, table: FloatArray, offset: FloatArray) -> FloatArray:
    """Return what `posterior_rows` does, with the table as ``(m * (k + 1), k)``."""
    n, m = codes.shape
    k = len(offset)
    result = np.empty((n, k))
    scores = np.empty(k)
    events = np.empty(m, np.int32)
    for i in range(n):
        _events(codes, observed, i, k, events)
        _add_up(table, events, offset, scores)
        _normalise(scores)
        result[i] = scores
    return result


@numba.njit(cache=True, nogil=True)
def dense_round(
    codes: IntArray, observed: BoolArray, table: FloatArray, offset: FloatArray, known: IntArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return what `expectation_round` does, with the table and the expected votes as ``(m * (k + 1), k)``."""
    n, m = codes.shape
    k = len(offset)
    votes = np.zeros((m * (k + 1), k))
    classes = np.zeros(k)
    likelihood = 0.0
    scores = np.empty(k)
    events = np.empty(m, np.int32)
    for i in range(n):
        if _events(codes, observed, i, k, events) == 0:
            continue
        _add_up(table, events, offset, scores)
        if known[i] >= 0:
            likelihood += scores[known[i]]
            scores[:] = 0.0
            scores[known[i]] = 1.0
        else:
            likelihood += _normalise(scores)
        for c in range(k):
            classes[c] += scores[c]
        if k == 2:
            first, second = scores[0], scores[1]
            for a in range(m):
                votes[events[a], 0] += first
                votes[events[a], 1] += second
        else:
            for a in range(m):
                for c in range(k):
                    votes[events[a], c] += scores[c]
    return votes, classes, likelihood
