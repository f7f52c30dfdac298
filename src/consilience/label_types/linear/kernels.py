"""Compiled loops for linear votes: sums of votes that are few per item, as in a crowd, and identical votes."""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray

__all__ = ["beliefs_of_few", "count_identical", "round_of_few", "sums_of_few"]


@numba.njit(cache=True, nogil=True, inline="always")
def _voters(observed: BoolArray, i: int, voters: IntArray) -> int:
    votes = 0
    for a in range(observed.shape[1]):
        if observed[i, a]:
            voters[votes] = a
            votes += 1
    return votes


@numba.njit(cache=True, nogil=True)
def count_identical(labels: Batch, observed: BoolArray) -> IntArray:
    """Return how often each two sources cast the same vote on an item, ``(m, m)``.

    Parameters
    ----------
    labels
        ``(n, m, d)``.
    """
    n, m, d = labels.shape
    same = np.zeros((m, m), np.int64)
    voters = np.empty(m, np.int64)
    for i in range(n):
        votes = _voters(observed, i, voters)
        for place in range(votes):
            a = voters[place]
            for other in range(place):
                b = voters[other]
                k = 0
                while k < d and labels[i, a, k] == labels[i, b, k]:
                    k += 1
                if k == d:
                    same[a, b] += 1
                    same[b, a] += 1
    return same


@numba.njit(cache=True, nogil=True)
def sums_of_few(
    labels: Batch, observed: BoolArray, center: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, IntArray]:
    """Return sums over the items on which two sources vote, of votes minus the center of their source.

    Returns
    -------
    product, total, square, skew, fourth, both
        ``(m, m)``: of the product of both votes, of the vote of the first source, of its square, of that square times
        the other vote, of the product of the squares, and of one.
    """
    n, m = observed.shape
    product = np.zeros((m, m))
    total = np.zeros((m, m))
    square = np.zeros((m, m))
    skew = np.zeros((m, m))
    fourth = np.zeros((m, m))
    both = np.zeros((m, m), np.int64)
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
                product[a, b] += here * there
                total[a, b] += here
                square[a, b] += here * here
                skew[a, b] += here * here * there
                fourth[a, b] += here * here * there * there
                both[a, b] += 1
    return product, total, square, skew, fourth, both


@numba.njit(cache=True, nogil=True)
def _settled(
    residual: FloatArray,
    weight: FloatArray,
    voters: IntArray,
    votes: int,
    slope: FloatArray,
    noise: FloatArray,
    prior: float,
    width: float,
    degrees: float,
    rounds: int,
    least: float,
) -> tuple[float, float]:
    """Fill in the weights of the votes on an item, and return mean and variance of its y under them."""
    weight[:votes] = 1.0
    mean, variance = _belief(residual, weight, voters, votes, slope, noise, prior, width)
    if np.isfinite(degrees):
        for _ in range(rounds):
            for place in range(votes):
                a = voters[place]
                misfit = (residual[place] - mean * slope[a]) ** 2 + variance * slope[a] ** 2
                weight[place] = (degrees + 1.0) / (degrees + misfit / noise[a])
            before = mean
            mean, variance = _belief(residual, weight, voters, votes, slope, noise, prior, width)
            if abs(mean - before) < least:
                break
    return mean, variance


@numba.njit(cache=True, nogil=True)
def round_of_few(
    labels: Batch,
    observed: BoolArray,
    expected: FloatArray,
    slope: FloatArray,
    noise: FloatArray,
    prior: float,
    width: float,
    degrees: float,
    rounds: int,
    least: float,
) -> tuple[FloatArray, FloatArray]:
    """Run one E-step of independent sources and return the sums that it yields.

    Parameters
    ----------
    expected
        ``(m,)`` votes of each source where y is at its mean.
    prior
        Precision of y before any vote.
    width
        Variance of y where the votes say nothing.
    degrees
        Of freedom of Student-t noise; infinite for normal noise.
    rounds, least
        Weights of votes are renewed at most so often, until the mean of the item moves by less than `least`.

    Returns
    -------
    by_source
        ``(7, m)``: weight, truth, truth squared, vote, vote squared, truth times vote, and number of votes.
    overall
        ``(3,)``: truth, truth squared and number of items with a vote.
    """
    n, m = observed.shape
    by_source = np.zeros((7, m))
    overall = np.zeros(3)
    voters = np.empty(m, np.int64)
    residual = np.empty(m)
    weight = np.empty(m)
    for i in range(n):
        votes = _voters(observed, i, voters)
        if votes == 0:
            continue
        for place in range(votes):
            residual[place] = labels[i, voters[place]] - expected[voters[place]]
        mean, variance = _settled(residual, weight, voters, votes, slope, noise, prior, width, degrees, rounds, least)
        second = mean * mean + variance
        overall[0] += mean
        overall[1] += second
        overall[2] += 1.0
        for place in range(votes):
            a = voters[place]
            weighted = weight[place] * residual[place]
            by_source[0, a] += weight[place]
            by_source[1, a] += mean * weight[place]
            by_source[2, a] += second * weight[place]
            by_source[3, a] += weighted
            by_source[4, a] += weighted * residual[place]
            by_source[5, a] += mean * weighted
            by_source[6, a] += 1.0
    return by_source, overall


@numba.njit(cache=True, nogil=True)
def beliefs_of_few(
    labels: Batch,
    observed: BoolArray,
    expected: FloatArray,
    slope: FloatArray,
    noise: FloatArray,
    prior: float,
    width: float,
    degrees: float,
    rounds: int,
    least: float,
) -> tuple[FloatArray, FloatArray]:
    """Return mean, beyond the prior one, and variance of y of every item, ``(n,)`` each; for independent sources.

    Parameters are those of `round_of_few`.
    """
    n, m = observed.shape
    means = np.zeros(n)
    variances = np.full(n, width)
    voters = np.empty(m, np.int64)
    residual = np.empty(m)
    weight = np.empty(m)
    for i in range(n):
        votes = _voters(observed, i, voters)
        if votes == 0:
            continue
        for place in range(votes):
            residual[place] = labels[i, voters[place]] - expected[voters[place]]
        mean, variance = _settled(residual, weight, voters, votes, slope, noise, prior, width, degrees, rounds, least)
        means[i] = mean
        variances[i] = variance
    return means, variances


@numba.njit(cache=True, nogil=True, inline="always")
def _belief(
    residual: FloatArray,
    weight: FloatArray,
    voters: IntArray,
    votes: int,
    slope: FloatArray,
    noise: FloatArray,
    prior: float,
    width: float,
) -> tuple[float, float]:
    """Return the mean of y beyond the prior one, and its variance."""
    precision = 0.0
    evidence = 0.0
    for place in range(votes):
        a = voters[place]
        precision += weight[place] * slope[a] ** 2 / noise[a]
        evidence += weight[place] * residual[place] * slope[a] / noise[a]
    if precision <= 0.0:
        return 0.0, width
    return evidence / (precision + prior), 1.0 / (precision + prior)
