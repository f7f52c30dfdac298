"""Votes on the heads of tokens: flattening, pair agreement, one round of EM, relations of chosen edges."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray, IntArray

__all__ = ["count_pairs", "expected_rights", "relation_votes", "spread_cells"]

Heads = npt.NDArray[np.int16]


@numba.njit(cache=True, nogil=True)
def spread_cells(flat: IntArray, rows: IntArray, columns: IntArray, starts: IntArray, m: int) -> Heads:
    """Return ``(t, m)`` votes by token, -1 where a source abstains, from the votes of all cells one after the other.

    Parameters
    ----------
    rows, columns
        Item and source of each cell.
    starts
        ``(n + 1,)`` first token of each item.
    """
    votes = np.full((starts[-1], m), -1, dtype=np.int16)
    place = 0
    for cell in range(len(rows)):
        for t in range(starts[rows[cell]], starts[rows[cell] + 1]):
            votes[t, columns[cell]] = flat[place]
            place += 1
    return votes


@numba.njit(cache=True, nogil=True)
def count_pairs(votes: Heads, starts: IntArray, groups: IntArray, n_groups: int) -> tuple[IntArray, IntArray]:
    """Return ``(groups, m, m)``: tokens on which two sources vote, and on which they differ.

    Sentences of one token are left out, as they have one tree.
    """
    m = votes.shape[1]
    both = np.zeros((n_groups, m, m), dtype=np.int64)
    differ = np.zeros((n_groups, m, m), dtype=np.int64)
    for item in range(len(starts) - 1):
        if starts[item + 1] - starts[item] < 2:
            continue
        group = groups[item]
        for t in range(starts[item], starts[item + 1]):
            for a in range(m):
                if votes[t, a] < 0:
                    continue
                for b in range(m):
                    if votes[t, b] >= 0:
                        both[group, a, b] += 1
                        differ[group, a, b] += votes[t, a] != votes[t, b]
    return both, differ


@numba.njit(cache=True, nogil=True)
def expected_rights(
    votes: Heads, starts: IntArray, groups: IntArray, skipped: npt.NDArray[np.bool_], right: FloatArray,
    shares: FloatArray, n_groups: int,
) -> tuple[FloatArray, FloatArray, float]:  # fmt: skip
    """Return ``(groups, m)`` expected numbers of right heads and tokens voted on by source, and the log likelihood.

    The E-step for sources that are right with a probability each and otherwise pick any of the n - 1 wrong heads of
    a sentence of n tokens.

    Parameters
    ----------
    skipped
        ``(n,)`` items that do not count.
    right
        ``(m,)`` probability of a right head.
    shares
        ``(n, m)`` how much the vote of each source counts as evidence.
    """
    m = votes.shape[1]
    rights = np.zeros((n_groups, m))
    tokens = np.zeros((n_groups, m))
    odds = np.log(right / (1.0 - right))
    likelihood = 0.0
    candidate = np.zeros(m, dtype=np.int64)
    score = np.zeros(m)
    for item in range(len(starts) - 1):
        n = starts[item + 1] - starts[item]
        if n < 2 or skipped[item]:
            continue
        group = groups[item]
        spread = np.log(float(n - 1))
        for t in range(starts[item], starts[item + 1]):
            found = 0
            for a in range(m):
                h = votes[t, a]
                if h < 0:
                    continue
                place = 0
                while place < found and candidate[place] != h:
                    place += 1
                if place == found:
                    candidate[place] = h
                    score[place] = 0.0
                    found += 1
                score[place] += shares[item, a] * (odds[a] + spread)
                likelihood += shares[item, a] * (np.log(1.0 - right[a]) - spread)
            if found == 0:
                continue
            top = 0.0
            for place in range(found):
                top = max(top, score[place])
            norm = max(n - found, 0) * np.exp(-top)
            for place in range(found):
                score[place] = np.exp(score[place] - top)
                norm += score[place]
            likelihood += top + np.log(norm / n)
            for a in range(m):
                h = votes[t, a]
                if h < 0:
                    continue
                place = 0
                while candidate[place] != h:
                    place += 1
                rights[group, a] += score[place] / norm
                tokens[group, a] += 1.0
    return rights, tokens, likelihood


@numba.njit(cache=True, nogil=True)
def relation_votes(
    votes: Heads, relations: Heads, weights: FloatArray, starts: IntArray, heads: Heads, n_relations: int
) -> Heads:
    """Return ``(t,)`` the relation of each chosen edge: the weighted vote of the sources that have this edge.

    Where nobody has it, all sources of the token vote. Equal votes: the relation of the smaller code.
    """
    count, m = votes.shape
    chosen = np.zeros(count, dtype=np.int16)
    support = np.zeros(n_relations)
    for item in range(len(starts) - 1):
        for t in range(starts[item], starts[item + 1]):
            support[:] = 0.0
            shared = False
            for a in range(m):
                if votes[t, a] >= 0 and votes[t, a] == heads[t] and weights[item, a] > 0:
                    support[relations[t, a]] += weights[item, a]
                    shared = True
            if not shared:
                for a in range(m):
                    if votes[t, a] >= 0:
                        support[relations[t, a]] += weights[item, a]
            chosen[t] = np.argmax(support)
    return chosen
