"""The law of trees around a tree: P(tree) proportional to ``exp(strength * heads in common)``.

Over all trees with one root the normalizer is a determinant, and the probability of an edge an entry of an inverse
(the matrix-tree theorem for a single root, Koo et al. 2007).
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import FloatArray, IntArray

__all__ = ["expected_share_right", "strength_for_error"]

#: Strengths beyond these make a vote right, or wrong, with certainty.
WEAKEST, STRONGEST = -12.0, 25.0
STEPS = 30


def expected_share_right(heads: IntArray, strength: FloatArray) -> FloatArray:
    """Return the expected share of heads that a random tree has in common with each of some trees, ``(b,)``.

    Parameters
    ----------
    heads
        ``(b, n)`` trees of equal length.
    strength
        ``(b,)``.

    Examples
    --------
    Two tokens have two trees, with nothing in common: the odds are exp(2 strength) to 1.

    >>> float(expected_share_right(np.array([[0, 1]]), np.array([np.log(3.0) / 2.0]))[0])
    0.75
    """
    batch, n = heads.shape
    if n == 1:
        return np.ones(batch)
    rows, tokens = np.arange(batch)[:, None], np.arange(n)[None, :]
    weight = np.ones((batch, n + 1, n))
    weight[rows, heads, tokens] = np.exp(strength)[:, None]
    root, between = weight[:, 0, :], weight[:, 1:, :]
    between[:, np.arange(n), np.arange(n)] = 0.0
    laplacian = -between
    laplacian[:, np.arange(n), np.arange(n)] = between.sum(axis=1)
    laplacian[:, 0, :] = root
    inverse = np.linalg.inv(laplacian)
    own = inverse[:, np.arange(n), np.arange(n)]
    below_root = root * inverse[:, :, 0]
    edge = np.where(np.arange(n) > 0, own, 0.0)[:, None, :] - np.swapaxes(inverse, 1, 2) * (np.arange(n) > 0)[:, None]
    matched = np.where(
        heads == 0, below_root, (between * edge)[rows, np.maximum(heads, 1) - 1, np.broadcast_to(tokens, heads.shape)]
    )
    return np.clip(matched.mean(axis=1), 0.0, 1.0)


def strength_for_error(heads: IntArray, error: float) -> FloatArray:
    """Return the strength with which each of some trees ``(b, n)`` has this expected share of wrong heads.

    Examples
    --------
    >>> heads = np.array([[0, 1, 1, 3], [2, 0, 2, 3]])
    >>> (1.0 - expected_share_right(heads, strength_for_error(heads, 0.3))).round(3)
    array([0.3, 0.3])
    """
    batch, n = heads.shape
    error = float(np.clip(error, 1e-6, 1.0 - 1e-6))
    target = np.log((1.0 - error) / error)
    strength = np.full(batch, np.clip(target + np.log(max(n - 1, 1)), WEAKEST, STRONGEST))
    for _ in range(STEPS if n > 1 else 0):
        share = np.clip(expected_share_right(heads, strength), 1e-9, 1.0 - 1e-9)
        gap = target - np.log(share / (1.0 - share))
        if np.abs(gap).max() < 1e-4:
            break
        # The log-odds of a right head rise a little faster than the strength, as heads are right or wrong together.
        strength = np.clip(strength + 0.8 * gap, WEAKEST, STRONGEST)
    return strength
