"""Compiled loops for linear votes: one belief per score, and sums of votes that are few per item."""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray

__all__ = ["believe_scores", "sums_of_few"]


@numba.njit(cache=True, nogil=True, inline="always")
def _voters(observed: BoolArray, i: int, voters: IntArray) -> int:
    votes = 0
    for a in range(observed.shape[1]):
        if observed[i, a]:
            voters[votes] = a
            votes += 1
    return votes


@numba.njit(cache=True, nogil=True)
def sums_of_few(labels: Batch, observed: BoolArray, center: FloatArray, sums: FloatArray) -> None:
    """Add up moments of votes minus the center of their source, over the items on which two sources vote.

    `sums` is ``(6, m, m)``: of one, of the vote of the first source, of its square, of the product of both votes, of
    the square times the other vote, and of the product of the squares.
    """
    n, m = observed.shape
    voters = np.empty(m, np.int64)
    value = np.empty(m)
    for i in range(n):
        votes = _voters(observed, i, voters)
        for place in range(votes):
            value[place] = labels[i, voters[place]] - center[voters[place]]
        for place in range(votes):
            a = voters[place]
            here = value[place]
            for other in range(votes):
                b = voters[other]
                there = value[other]
                sums[0, a, b] += 1.0
                sums[1, a, b] += here
                sums[2, a, b] += here * here
                sums[3, a, b] += here * there
                sums[4, a, b] += here * here * there
                sums[5, a, b] += here * here * there * there


@numba.njit(cache=True, nogil=True)
def believe_scores(
    labels: Batch,
    observed: BoolArray,
    share: FloatArray,
    expected: FloatArray,
    slope: FloatArray,
    noise: FloatArray,
    prior: float,
    width: float,
    degrees: float,
    rounds: int,
    sums: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return mean, beyond the prior one, and variance of the score of every item, ``(n,)`` each.

    `share` is ``(n, m)``, by how much each vote counts, or ``(1, m)`` if that is the same on every item; `expected`
    ``(m,)`` are the votes of each source where the score is at its mean; `prior` is the precision of a score before any
    vote, and `width` its variance where the votes say nothing. With Student-t noise of these `degrees` of freedom, the
    weights of the votes are renewed `rounds` times at most. Added to `sums` ``(7, m)`` are number, weight, weighted
    truth, truth squared, vote, vote squared and truth times vote of each source, unless it is empty.
    """
    n, m = observed.shape
    means = np.zeros(n)
    variances = np.full(n, width)
    voters = np.empty(m, np.int64)
    residual = np.empty(m)
    weight = np.empty(m)
    steps = rounds if np.isfinite(degrees) else 0
    least = 1e-6 * np.sqrt(width)
    gains = slope / noise
    for i in range(n):
        votes = _voters(observed, i, voters)
        shares = share[i] if len(share) > 1 else share[0]
        for place in range(votes):
            residual[place] = labels[i, voters[place]] - expected[voters[place]]
        weight[:votes] = 1.0
        mean, variance = 0.0, width
        for step in range(steps + 1):
            if step > 0:
                for place in range(votes):
                    a = voters[place]
                    misfit = (residual[place] - mean * slope[a]) ** 2 + variance * slope[a] ** 2
                    weight[place] = (degrees + 1.0) / (degrees + misfit / noise[a])
            precision, evidence = 0.0, 0.0
            for place in range(votes):
                a = voters[place]
                gain = shares[a] * weight[place] * gains[a]
                precision += gain * slope[a]
                evidence += gain * residual[place]
            if precision <= 0.0:
                break
            before = mean
            mean, variance = evidence / (precision + prior), 1.0 / (precision + prior)
            if step > 0 and abs(mean - before) < least:
                break
        means[i], variances[i] = mean, variance
        if sums.shape[1] == 0:
            continue
        for place in range(votes):
            a = voters[place]
            weighted = weight[place] * residual[place]
            sums[0, a] += 1.0
            sums[1, a] += weight[place]
            sums[2, a] += weight[place] * mean
            sums[3, a] += weight[place] * (mean * mean + variance)
            sums[4, a] += weighted
            sums[5, a] += weighted * residual[place]
            sums[6, a] += weighted * mean
    return means, variances
