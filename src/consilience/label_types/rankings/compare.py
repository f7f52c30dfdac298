"""Sums over pairs of items in votes on rankings.

A ranking has a position per item, 0 for the first; equal positions are ties, negative ones are items not seen. Pairs of
items i < j are numbered as in ``numpy.triu_indices(r, 1)``. A margin is the weight of "i before j" minus that of "j
before i".
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.label_types.rankings.labels import UNSEEN, Positions, pair_order

#: The number of signs whose sum fits into one byte.
_IN_A_BYTE = 127
#: The number of signs in memory at a time.
_MAX_SIGNS = 1 << 25


def pair_sums(votes: Positions, observed: BoolArray) -> IntArray:
    """Return what each two sources have in common, summed over the rows of votes ``(n, m, r)``.

    Let S be the number of pairs that two votes order alike minus those they order differently, and C the number that
    both order: ``(5, m, m)`` sums of S, C, S * S, S * C and C * C.
    """
    n, m, r = votes.shape
    sums = np.zeros((5, m, m))
    votes = votes if observed.all() else np.where(observed[:, :, None], votes, np.int16(UNSEEN))
    step = max(_MAX_SIGNS // max(m * r * r // 2, 1), 1)
    for first in range(0, n, step):
        signs = np.ascontiguousarray(pair_order(votes[first : first + step]).transpose(2, 1, 0))
        for a in range(m - 1):
            sign, common = np.zeros((2, m - 1 - a, signs.shape[2]))
            for start in range(0, len(signs), _IN_A_BYTE):
                some = signs[start : start + _IN_A_BYTE]
                product = some[:, a : a + 1] * some[:, a + 1 :]
                sign += product.sum(axis=0, dtype=np.int8)
                common += np.abs(product, out=product).sum(axis=0, dtype=np.int8)
            products = [np.einsum("bn,bn->b", *both) for both in ((sign, sign), (sign, common), (common, common))]
            sums[:, a, a + 1 :] += sign.sum(axis=1), common.sum(axis=1), *products
    return (sums + sums.transpose(0, 2, 1)).astype(np.int64)


def compare_votes(votes: Positions, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compare votes ``(n, m, r)`` with one value per row and pair of items, positive where i comes before j.

    Return ``(n, m)`` sums of the values, negative for pairs in opposite order, and of their sizes.
    """
    sums, sizes = np.empty((2, *votes.shape[:2]))
    for a in range(votes.shape[1]):
        product = values * pair_order(votes[:, a])
        sums[:, a], sizes[:, a] = product.sum(axis=1), np.abs(product).sum(axis=1)
    return sums, sizes


def margins_of(votes: Positions, weights: FloatArray) -> FloatArray:
    """Return the margins ``(n, pairs)`` of votes ``(n, m, r)`` with weights ``(n, m)``."""
    n, m, r = votes.shape
    margins = np.zeros((n, r * (r - 1) // 2))
    for a in range(m):
        margins += weights[:, a, None] * pair_order(votes[:, a])
    return margins


def bucket_counts(votes: Positions, sizes: int) -> IntArray:
    """Return ``(m, sizes + 1)``: votes over s items, minus one per bucket of s tied items, per source.

    A bucket order acts like one ranking of all its items minus one ranking per bucket.
    """
    n, m, r = votes.shape
    seen = votes >= 0
    tied = np.bincount((np.arange(n * m).reshape(n, m, 1) * r + votes)[seen], minlength=n * m * r).reshape(n, m, r)
    own = np.arange(m)[:, None] * (sizes + 1)
    whole, buckets = (
        np.bincount((count + own).ravel(), minlength=m * (sizes + 1)).reshape(m, sizes + 1)
        for count in (seen.sum(axis=2, keepdims=True), tied)
    )
    result = whole - buckets
    result[:, 0] = 0
    return result
