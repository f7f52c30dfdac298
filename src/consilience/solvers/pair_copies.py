"""Groups of judges who share more than a taste: what is left of their votes goes together.

Each judge is fitted alone, and everything that a taste could explain is projected out of its residuals. Of independent
judges nothing in common is left, however much they agree: correlations are normal around zero. A group of copies shows
in the sum of the correlations between its members, long before any pair of them stands out alone.
"""

from __future__ import annotations

from math import comb
from statistics import NormalDist

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.solvers.pair_judges import JudgeTraits, PairTable, outcome_moments, totals

__all__ = ["copied_groups", "unexplained"]

#: Chance that a group is found where every judge answers on its own.
FALSE_ALARM = 0.01
#: Standard deviations of correlations come out larger than by theory by this factor, as fitted chances are too sure.
OVERDISPERSION = 1.1
#: Outcomes are never taken as surer than by this variance; the largest one is 1.
LEAST_VARIANCE = 0.2
#: Mean correlation of the members of a group, beyond that of other judges; smaller ones come from a law that is not
#: exactly true.
LEAST_CORRELATION = 0.1
RIDGE = 1e-6
#: Newton steps towards the scores that explain most, how weakly these are held, and how far a step may go.
STEPS, WEAK, LONGEST = 4, 4.0, 2.0
LEAST_SLOPE = 0.5


def unexplained(pairs: PairTable, judges: JudgeTraits, gap: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return standardised residuals that no other scores and biases could explain, and how large they should be.

    Parameters
    ----------
    pairs
        One group of comparisons per judge, and the number of the group is that of the judge.
    gap
        Differences of the scores that were fitted to each judge.

    Returns
    -------
    arrays of shape (comparisons,), (comparisons,) and (m,)
        The residuals; their variances, below one where the outcome is nearly certain; the share of each judge's
        residuals that is left, as of few comparisons scores explain much by chance.
    """
    who = pairs.judge
    eta = judges.slope[who] * gap + judges.bias[who] * pairs.shown
    held = WEAK / np.maximum(np.abs(judges.slope), LEAST_SLOPE) ** 2
    for _ in range(STEPS):  # a shrunken fit leaves some of the taste behind, which judges who agree would share
        mean, variance = outcome_moments(eta, judges.tie[who])
        moved, _ = _regressed(pairs, pairs.outcome - mean, variance, held)
        eta = eta + np.clip(2.0 * moved, -LONGEST, LONGEST)
    mean, variance = outcome_moments(eta, judges.tie[who])
    size = np.maximum(variance, LEAST_VARIANCE)
    explained, used = _regressed(pairs, pairs.outcome - mean, size, np.full(pairs.n_judges, RIDGE))
    left = (pairs.outcome - mean - size * explained) / np.sqrt(size)
    return left, variance / size, np.clip(1.0 - used, 0.0, 1.0)


def _regressed(
    pairs: PairTable, residual: FloatArray, weight: FloatArray, ridge: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what scores and a bias of each judge explain of its residuals over weights, and their mean leverage."""
    who, m, width = pairs.judge, pairs.n_judges, pairs.width
    at, shown = who * width, pairs.shown
    cell = (at + pairs.first) * width + pairs.second
    between = totals(cell, weight, m * width * width).reshape(m, width, width)
    between = between + between.transpose(0, 2, 1)
    normal = np.zeros((m, width + 1, width + 1))
    normal[:, :width, :width] = -between
    place = np.arange(width)
    normal[:, place, place] += between.sum(axis=2)

    def pulled(values: FloatArray) -> FloatArray:
        toward = totals(at + pairs.first, values, m * width) - totals(at + pairs.second, values, m * width)
        return np.asarray(toward.reshape(m, width))

    normal[:, :width, width] = normal[:, width, :width] = pulled(weight * shown)
    normal[:, width, width] = totals(who, weight * shown**2, m)
    target = np.concatenate([pulled(residual), totals(who, residual * shown, m)[:, None]], axis=1)
    inverse = np.linalg.inv(normal + ridge[:, None, None] * np.eye(width + 1))
    step = np.einsum("mij,mj->mi", inverse, target)
    used = np.einsum("mij,mji->m", inverse, normal) / np.maximum(totals(who, None, m), 1.0)
    return step[who, pairs.first] - step[who, pairs.second] + step[who, width] * shown, used


def copied_groups(correlation: FloatArray, error: FloatArray, usable: BoolArray) -> BoolArray:
    """Return which pairs of judges belong to one group of copies.

    Groups grow from every pair by the judge who fits best. One of k judges is believed if its members go together
    beyond `FALSE_ALARM` over all groups of that size, and all sizes.

    Parameters
    ----------
    correlation, error
        ``(m, m)`` of what is left of the votes, and its standard error under independence.
    usable
        ``(m, m)`` pairs that share enough comparisons; the members of a group all do.

    Examples
    --------
    >>> together = np.full((5, 5), 0.02)
    >>> together[2:, 2:] = 0.22
    >>> copied_groups(together, np.full((5, 5), 0.07), np.ones((5, 5), dtype=bool)).astype(int)
    array([[0, 0, 0, 0, 0],
           [0, 0, 0, 0, 0],
           [0, 0, 0, 1, 1],
           [0, 0, 1, 0, 1],
           [0, 0, 1, 1, 0]])
    """
    m = len(correlation)
    copied = np.zeros((m, m), dtype=bool)
    free = np.ones(m, dtype=bool)
    apart = ~np.eye(m, dtype=bool)
    upper = np.triu(usable & apart, 1)
    if m < 2 or not upper.any():
        return copied
    # What all judges share is no copying, but a law that does not hold exactly; and nobody shares less than nothing.
    common = max(float(np.quantile(correlation[upper], 0.25)), 0.0) if upper.sum() > 1 else 0.0
    excess = np.where(usable & apart, (correlation - common) / np.maximum(error, 1e-12), 0.0)
    while True:
        group = _strongest(excess, correlation - common, usable & free & free[:, None], m)
        if group is None:
            return copied
        copied[np.ix_(group, group)] = True
        np.fill_diagonal(copied, False)
        free[group] = False


def _strongest(excess: FloatArray, correlation: FloatArray, usable: BoolArray, m: int) -> list[int] | None:
    """Return the group that stands out most, or None."""
    best, found = 0.0, None
    for one, two in np.argwhere(np.triu(usable & (excess > 0), 1)):
        group = [int(one), int(two)]
        inner, close = float(excess[one, two]), float(correlation[one, two])
        while True:
            pairs = len(group) * (len(group) - 1) / 2.0
            beyond = inner / np.sqrt(pairs) - _critical(m, len(group))
            if beyond > best and close / pairs > LEAST_CORRELATION:
                best, found = beyond, list(group)
            candidates = np.asarray(usable[group].all(axis=0))
            candidates[group] = False
            if not candidates.any():
                break
            gain = np.where(candidates, excess[group].sum(axis=0), -np.inf)
            joins = int(gain.argmax())
            inner += float(gain[joins])
            close += float(correlation[group, joins].sum())
            group.append(joins)
    return found


def _critical(m: int, size: int) -> float:
    """Return what chance hardly reaches in the best of all groups of a size."""
    chance = FALSE_ALARM / (m - 1) / comb(m, size)
    return -NormalDist().inv_cdf(max(chance, 1e-300))
