"""Votes of sources that share errors: a group has a vote or a version of the truth that may be out of sight.

Copies: member a repeats the vote w of its group with probability ``r_a``, and otherwise votes on its own. Its errors
are then correlated with those of member b by ``r_a r_b``, as in the trust engine. The group's vote has the mean table
of its members, ``G``, so that given the class c

    P(votes | c) = sum_w G[w, c] product_a (r_a [v_a = w] + (1 - r_a) P_a(v_a | c))

Schools: members vote around a version w of the truth, which is that itself with probability v and otherwise a class
drawn by the class shares p, ``S[w, c] = v [w = c] + (1 - v) p_w``. The table of a member is ``P_a = M_a S``, and

    P(votes | c) = sum_w S[w, c] product_a M_a[v_a, w]
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray

__all__ = ["groups_of", "joint_likelihood", "product_factor", "repeats_of", "school_likelihood"]

#: Rounds in which the correlations of a group are fitted by products.
ROUNDS = 30
#: Likelihoods are kept above this before a logarithm is taken.
SMALLEST = 1e-12


def groups_of(correlation: FloatArray) -> list[IntArray]:
    """Return the members of each group, from error correlations that are zero outside of groups.

    Examples
    --------
    >>> groups_of(np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.0], [0.5, 0.0, 0.0]]))
    [array([0, 2])]
    """
    together = (correlation > 0.0) | np.eye(len(correlation), dtype=bool)
    return [np.flatnonzero(row) for row in np.unique(together, axis=0) if row.sum() > 1]


def repeats_of(correlation: FloatArray) -> FloatArray:
    """Return how often each source repeats the vote of its group, from the same correlations.

    Examples
    --------
    >>> repeats_of(np.array([[0.0, 0.72, 0.63], [0.72, 0.0, 0.56], [0.63, 0.56, 0.0]])).round(2).tolist()
    [0.9, 0.8, 0.7]
    """
    repeats: FloatArray = np.zeros(len(correlation))
    for members in groups_of(correlation):
        repeats[members] = product_factor(correlation[np.ix_(members, members)])
    return repeats


def product_factor(table: FloatArray) -> FloatArray:
    """Return the numbers ``(m,)`` between 0 and 1 whose products are closest to a table of pairs, off its diagonal."""
    filled = table.copy()
    factor: FloatArray = np.zeros(len(filled))
    for _ in range(ROUNDS):
        np.fill_diagonal(filled, factor**2)
        values, vectors = np.linalg.eigh(filled)
        factor = np.clip(np.abs(vectors[:, -1]) * np.sqrt(max(float(values[-1]), 0.0)), 0.0, 0.99)
    return factor


def joint_likelihood(
    labels: Batch, observed: BoolArray, table: FloatArray, often: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the log probability ``(n, k)`` of the votes of copies given each class, and that of independent votes.

    The votes are those of the members alone, and `table` ``(s, k, k)`` is theirs, as ``[source, vote, class]``.

    Examples
    --------
    Two perfect copies say what one of them says:

    >>> table = np.tile([[0.8, 0.2], [0.2, 0.8]], (2, 1, 1))
    >>> both = np.ones((1, 2), dtype=bool)
    >>> np.exp(joint_likelihood(np.array([[0, 0]]), both, table, np.ones(2))[0]).round(2).tolist()
    [[0.8, 0.2]]
    """
    s, k = table.shape[:2]
    common, seen = table.mean(axis=0), observed.T[:, :, None]
    each = _of_votes(table, labels, observed)
    own = np.where(seen, np.maximum((1.0 - often)[:, None, None] * each, SMALLEST), 1.0)
    total, left = np.zeros(each.shape[1:]), np.ones(each.shape[1:])
    for one in range(s if labels.ndim == 2 and s < k else k):
        if labels.ndim == 3:
            same, chance = labels[:, :, one] * observed, common[one]
        elif s >= k:
            same, chance = observed & (labels == one), common[one]
        else:  # the votes of the members one after the other, each class counted once
            same = observed & observed[:, one : one + 1] & (labels == labels[:, one : one + 1])
            new = observed[:, one] & ~same[:, :one].any(axis=1)
            chance = new[:, None] * common[np.where(observed[:, one], labels[:, one], 0).astype(np.int64)]
        total += chance * (own + (same * often).T[:, :, None]).prod(axis=0)
        left -= chance
    total += np.maximum(left, 0.0) * own.prod(axis=0)
    return np.log(np.maximum(total, 1e-300)), np.log(each).sum(axis=0)


def school_likelihood(
    labels: Batch, observed: BoolArray, table: FloatArray, prior: FloatArray, quality: float
) -> tuple[FloatArray, FloatArray]:
    """Return the same for a school whose version of the truth has this quality, v.

    Examples
    --------
    Two perfect followers of a version that is right in nine of ten cases:

    >>> table = np.tile([[0.9, 0.1], [0.1, 0.9]], (2, 1, 1))
    >>> both = np.ones((1, 2), dtype=bool)
    >>> np.exp(school_likelihood(np.array([[0, 0]]), both, table, np.full(2, 0.5), 0.8)[0]).round(2).tolist()
    [[0.9, 0.1]]
    """
    around = np.maximum((table - (1.0 - quality) * (table @ prior)[:, :, None]) / quality, SMALLEST)
    around = around / around.sum(axis=1, keepdims=True)
    version = quality * np.eye(len(prior)) + (1.0 - quality) * prior[:, None]
    total = _of_votes(around, labels, observed).prod(axis=0) @ version
    return np.log(np.maximum(total, 1e-300)), np.log(_of_votes(table, labels, observed)).sum(axis=0)


def _of_votes(table: FloatArray, labels: Batch, observed: BoolArray) -> FloatArray:
    """Return ``(s, n, k)`` the entries of the members' votes, 1 where there is none."""
    if labels.ndim == 3:
        each = np.einsum("nav,avc->anc", labels, table)
    else:
        each = table[np.arange(len(table))[:, None], np.where(observed, labels, 0).astype(np.int64).T]
    return np.where(observed.T[:, :, None], np.maximum(each, SMALLEST), 1.0)
