"""Sums of real-valued votes that are few per item, as in a crowd: the cost follows the votes, not the cells."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray

__all__ = ["beliefs_of_few", "round_of_few", "score_sums_of_few"]


@numba.njit(cache=True, nogil=True, inline="always")
def _voters(observed: BoolArray, i: int, voters: IntArray) -> int:
    votes = 0
    for a in range(observed.shape[1]):
        if observed[i, a]:
            voters[votes] = a
            votes += 1
    return votes


@numba.njit(cache=True, nogil=True)
def score_sums_of_few(
    labels: Batch, observed: BoolArray, centre: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Return sums over the items on which two sources vote, of votes minus the centre of their source.

    Returns
    -------
    product, total, square, both
        ``(m, m)``: of the product of both votes, of the vote of the first source, of its square, and of one.
    """
    n, m = observed.shape
    product = np.zeros((m, m))
    total = np.zeros((m, m))
    square = np.zeros((m, m))
    both = np.zeros((m, m), np.int64)
    voters = np.empty(m, np.int64)
    value = np.empty(m)
    for i in range(n):
        votes = _voters(observed, i, voters)
        for place in range(votes):
            value[place] = labels[i, voters[place]] - centre[voters[place]]
        for place in range(votes):
            a = voters[place]
            here = value[place]
            for other in range(votes):
                b = voters[other]
                product[a, b] += here * value[other]
                total[a, b] += here
                square[a, b] += here * here
                both[a, b] += 1
    return product, total, square, both


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
) -> tuple[FloatArray, FloatArray, float]:
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
        Of freedom of Student-t noise; infinite for Gaussian noise.
    rounds, least
        Weights of votes are renewed at most so often, until the mean of the item moves by less than `least`.

    Returns
    -------
    by_source
        ``(7, m)``: weight, truth, truth squared, vote, vote squared, truth times vote, and number of votes.
    overall
        ``(3,)``: truth, truth squared and number of items with a vote.
    log_likelihood
    """
    n, m = observed.shape
    by_source = np.zeros((7, m))
    overall = np.zeros(3)
    likelihood = 0.0
    voters = np.empty(m, np.int64)
    residual = np.empty(m)
    weight = np.empty(m)
    log_noise = np.log(noise)
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
        precision = 0.0
        evidence = 0.0
        fit = 0.0
        spread = 0.0
        for place in range(votes):
            a = voters[place]
            weighted = weight[place] * residual[place]
            precision += weight[place] * slope[a] ** 2 / noise[a]
            evidence += weighted * slope[a] / noise[a]
            fit += weighted * residual[place] / noise[a]
            spread += log_noise[a]
            by_source[0, a] += weight[place]
            by_source[1, a] += mean * weight[place]
            by_source[2, a] += second * weight[place]
            by_source[3, a] += weighted
            by_source[4, a] += weighted * residual[place]
            by_source[5, a] += mean * weighted
            by_source[6, a] += 1.0
        likelihood -= 0.5 * (fit - evidence * mean + spread + np.log1p(precision))
    return by_source, overall, likelihood


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
    voters: npt.NDArray[np.int64],
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
