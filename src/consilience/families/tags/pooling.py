"""Partial pooling: what a source does on one tag is pulled to what it does on all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.arrays import FloatArray

__all__ = ["PooledRates", "pooled_rates"]

#: Before anything is seen a source is right two times out of three, as if it had been seen that often.
RIGHT, SEEN = 2.0, 3.0
#: Votes by which sources that differ no more than by chance are pulled together.
MOST = 200.0
#: Strengths that are tried, and where they are expected: ten pseudo-votes, give or take a factor of 4.5.
STRENGTHS = np.geomspace(1.0, 1000.0, 31)
EXPECTED, SPREAD = 10.0, 1.5


class PooledRates(NamedTuple):
    """Rates ``(m, d)``, and the number of pseudo-votes by which they were pulled to the mean of the source."""

    rate: FloatArray
    strength: float


def pooled_rates(right: FloatArray, total: FloatArray, strength: float | None = None) -> PooledRates:
    """Return how often each source is right on each tag, by empirical Bayes.

    The rates of a source over the tags follow a beta law around its own mean. How narrow it is, the `strength`, is the
    same for all sources and maximises the likelihood of the counts (beta-binomial), unless given. With a single tag
    there is nothing to pool: two right votes and a wrong one are added.

    Parameters
    ----------
    right, total
        ``(m, d)`` numbers of right votes and of votes, not necessarily whole.

    Examples
    --------
    >>> pooled_rates(np.array([[7.0]]), np.array([[7.0]])).rate
    array([[0.9]])
    >>> right = np.array([[80.0, 80.0, 0.0], [60.0, 60.0, 1.0]])  # the third tag is hardly seen
    >>> pooled_rates(right, np.array([[100.0, 100.0, 0.0], [100.0, 100.0, 1.0]])).rate.round(1)
    array([[0.8, 0.8, 0.8],
           [0.6, 0.6, 0.6]])
    """
    if right.shape[1] < 2:
        return PooledRates((right + RIGHT) / (total + SEEN), SEEN)
    if strength is None:
        strength = _likeliest(right, total)
    mean = _means(right, total, strength)[:, None]
    return PooledRates((right + strength * mean) / (total + strength), strength)


def _means(right: FloatArray, total: FloatArray, strength: float) -> FloatArray:
    """Return the rate of each source over all tags; a tag counts by how precisely its own rate is known.

    Sources are pulled to the rate of all of them, by as many votes as their differences beyond chance are worth.
    """
    weight = strength / (total + strength)
    own, seen = (weight * right).sum(axis=1), (weight * total).sum(axis=1)
    common, pull = RIGHT / SEEN, SEEN
    if (seen > 0).sum() >= 3:
        common = float((RIGHT + own.sum()) / (SEEN + seen.sum()))
        pull = _pull(own, seen, common)
    mean: FloatArray = (pull * common + own) / (pull + seen)
    return mean


def _pull(right: FloatArray, seen: FloatArray, common: float) -> float:
    """Return how many votes at the common rate a source is given, by the variance between sources beyond chance."""
    known = seen > 0
    spread = common * (1.0 - common)
    precision = seen[known] / spread
    rate = right[known] / seen[known]
    centre = float(precision @ rate / precision.sum())
    freedom = float(known.sum() - 1)
    scatter = float(precision @ (rate - centre) ** 2)
    # Within the scatter that equal sources show one time in a hundred, they count as equal; beyond it, less and less.
    critical = freedom + 2.6 * np.sqrt(2.0 * freedom)
    excess = (scatter - freedom) * max(0.0, 1.0 - (critical / max(scatter, critical)) ** 2)
    between = excess / float(precision.sum() - (precision**2).sum() / precision.sum())
    return float(np.clip(spread / max(between, 1e-12), SEEN, MOST))


def _likeliest(right: FloatArray, total: FloatArray) -> float:
    from scipy.special import betaln

    best, chosen = -np.inf, EXPECTED
    wrong = np.maximum(total - right, 0.0)
    for strength in STRENGTHS:
        mean = _means(right, total, strength)[:, None]
        ahead, behind = strength * mean, strength * (1.0 - mean)
        likelihood = float((betaln(right + ahead, wrong + behind) - betaln(ahead, behind)).sum())
        likelihood -= 0.5 * (np.log(strength / EXPECTED) / SPREAD) ** 2
        if likelihood > best:
            best, chosen = likelihood, float(strength)
    return chosen
