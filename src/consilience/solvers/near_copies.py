"""Which sources are so close to each other that they count as one, whatever the distance.

On each item costs are taken as shares of the mean cost between its votes, so that hard items count like easy ones. If
sources err independently, what two of them cost each other is about the sum of two parts, one for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.arrays import BoolArray, FloatArray

__all__ = ["NearCopies", "find_near_copies"]

#: Copies cost each other less than this share of what independent sources of their quality would.
CLOSE = 0.5
#: A pair must meet on this many items on which votes differ.
MIN_ITEMS = 5
#: One honest pair in any table is taken for copies this often.
FALSE_ALARM = 0.01
#: Pseudo-items that draw the part of a source to the average, and the least that a pair counts as costing, as a share
#: of the average pair.
PSEUDO_ITEMS, LEAST_PAIR = 0.1, 0.3
#: Flagged pairs are left out and the parts fitted again, this often.
ROUNDS = 3


@dataclass(frozen=True)
class NearCopies:
    """Pairs of sources that copy each other.

    Parameters
    ----------
    copied : array of shape (m, m)
    closeness : array of shape (m, m)
        Between 0 for a pair that is as far apart as independent sources and 1 for one that never differs.
    """

    copied: BoolArray
    closeness: FloatArray


def find_near_copies(shares: FloatArray) -> NearCopies:
    """Find pairs that are much closer to each other than both are to the others, and not by chance.

    A pair is flagged if its cost is below half of the two parts' sum, and if independent sources would be as close less
    than once in a hundred tables of this size: near-perfect sources that meet on a few items are close by luck.

    Parameters
    ----------
    shares : array of shape (4, m, m)
        For each pair: common items, their weights, weighted sum of costs as shares of the item's mean cost, and sum
        of their squares.

    Examples
    --------
    Three sources and a copy of the first; every pair meets on 50 items, all shares have the variance 0.1:

    >>> share = np.full((4, 4), 1.2) - 1.2 * np.eye(4)
    >>> share[0, 3] = share[3, 0] = 0.0
    >>> shares = 50.0 * np.stack([np.ones((4, 4)), np.ones((4, 4)), share, share**2 + 0.1])
    >>> np.argwhere(np.triu(find_near_copies(shares).copied)).tolist()
    [[0, 3]]
    """
    items, weight = shares[0].copy(), shares[1].copy()
    m = len(items)
    np.fill_diagonal(items, 0.0)
    np.fill_diagonal(weight, 0.0)
    mean = np.where(weight > 0, shares[2] / np.maximum(weight, 1e-300), 0.0)
    copied = np.zeros((m, m), dtype=bool)
    closeness = np.zeros((m, m))
    met = items >= MIN_ITEMS
    if not met.any():
        return NearCopies(copied, closeness)
    limit = _critical(int(np.triu(met).sum()))
    for _ in range(ROUNDS):
        used = np.where(copied, 0.0, weight)
        part = _parts(used, mean)
        alone = part[:, None] + part[None, :]
        level = float((used * mean).sum() / max(used.sum(), 1e-300))
        # Two sources that hardly err are close for a good reason: their parts are about zero, and so is the gap.
        size = np.maximum(alone, LEAST_PAIR * level)
        spread = _relative_spread(np.where(copied, 0.0, items), shares[3], size)
        own = (spread.min(axis=1) * level) ** 2 / np.maximum(used.sum(axis=1), 1.0) / 4.0
        error = np.sqrt((spread * size) ** 2 / np.maximum(items, 1.0) + own[:, None] + own[None, :])
        closeness = np.where(items > 0, np.clip(1.0 - mean / size, 0.0, 1.0), 0.0)
        copied = met & (mean < CLOSE * alone) & (alone - mean > limit * np.maximum(error, 1e-12))
    return NearCopies(copied, closeness)


def _critical(pairs: int) -> float:
    """Return the normal quantile that one of so many pairs exceeds once in a hundred tables."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(1.0 - FALSE_ALARM / max(pairs, 1))


def _parts(weight: FloatArray, mean: FloatArray) -> FloatArray:
    """Fit ``mean[a, b] = part[a] + part[b]`` by least squares; parts are not below zero."""
    total = weight.sum(axis=1)
    level = float((weight * mean).sum() / max(weight.sum(), 1e-300)) / 2.0
    matrix = np.diag(total + PSEUDO_ITEMS) + weight
    part: FloatArray = np.linalg.solve(matrix, (weight * mean).sum(axis=1) + 2.0 * PSEUDO_ITEMS * level)
    return np.maximum(part, 0.0)


def _relative_spread(items: FloatArray, square: FloatArray, size: FloatArray) -> FloatArray:
    """Return the standard deviation of a pair's shares on single items, relative to their mean if independent.

    The larger one of what the two sources show elsewhere: those that rarely differ from others do so all at once.
    """
    counted = items > 0
    ratio = np.where(counted, square, 0.0).sum(axis=1)
    expected = (items * size**2).sum(axis=1)
    pooled = ratio.sum() / max(expected.sum(), 1e-300)
    met = items.sum(axis=1)
    own = (ratio + 20.0 * pooled * (expected / np.maximum(met, 1.0))) / np.maximum(
        expected + 20.0 * expected / np.maximum(met, 1.0), 1e-300
    )
    variance = np.maximum(np.where(met > 0, own, pooled) - 1.0, 0.05)
    larger: FloatArray = np.maximum(variance[:, None], variance[None, :])
    return np.sqrt(larger)
