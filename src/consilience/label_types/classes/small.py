"""The sums of `consilience.label_types.classes.kernels` for small tables, which are not worth a compilation."""

from __future__ import annotations

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray

__all__ = ["beliefs", "count_pairs", "expected_votes", "is_small"]

#: Votes times classes up to which NumPy is as quick; beyond, its products of matrices start threads.
CELLS = 12_000


def is_small(labels: Batch, k: int) -> bool:
    """Return whether a table of class codes is small."""
    return labels.ndim == 2 and labels.size * k <= CELLS


def _one_hot(codes: Batch, observed: BoolArray, k: int) -> FloatArray:
    """Return 1 where a source votes a class, ``(n, m * k)``."""
    votes = (codes[:, :, None] == np.arange(k)) & observed[:, :, None]
    return votes.reshape(len(codes), codes.shape[1] * k).astype(np.float64)


def count_pairs(codes: Batch, observed: BoolArray, k: int) -> IntArray:
    """Return how often source a votes v while source b votes w, ``(m * k, m * k)``."""
    votes = _one_hot(codes, observed, k)
    return np.rint(votes.T @ votes).astype(np.int64)


def beliefs(codes: Batch, observed: BoolArray, table: FloatArray, offset: FloatArray, shares: FloatArray) -> FloatArray:
    """Return ``(n, k)`` posterior class probabilities from what each event adds to each class, ``(m * (k + 1), k)``."""
    m, k = codes.shape[1], len(offset)
    added = table[np.arange(m) * (k + 1) + np.where(observed, codes, k)]
    if len(shares):
        added = added * np.where(observed, shares, 1.0)[:, :, None]
    scores = offset + added.sum(axis=1)
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: FloatArray = scores / scores.sum(axis=1, keepdims=True)
    return found


def expected_votes(codes: Batch, observed: BoolArray, belief: FloatArray) -> FloatArray:
    """Return how often each source votes v on items of class c, ``(m, k, k)`` as ``[source, vote, class]``."""
    k = belief.shape[1]
    counts: FloatArray = (_one_hot(codes, observed, k).T @ belief).reshape(codes.shape[1], k, k)
    return counts
