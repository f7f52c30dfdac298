"""Compiled loops of dependency trees: best trees, votes on heads by token, beliefs about heads, random trees.

Maximum spanning arborescences follow Chu-Liu and Edmonds. Node 0 is the root of the sentence, tokens are 1 .. n, and
exactly one token hangs on node 0. That constraint is exact, without a large constant: a token takes node 0 for its
head only when nothing else is left. As node 0 never lies on a cycle, this is the limit of subtracting an ever larger
constant from the edges of the root, carried out in the order of comparisons instead of in floating point.
"""

from __future__ import annotations

from math import lgamma, log

import numba
import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray, IntArray

Heads = npt.NDArray[np.int16]


@numba.njit(cache=True, nogil=True)
def maximum_arborescence(score: FloatArray) -> IntArray:
    """Return the heads ``(n,)`` of the tree with one root whose edges have the largest sum of ``score[head, token]``.

    Dense, in O(n^2). Equal scores: the nearer head, of two equally near ones the left; node 0 counts as the farthest.
    Where a cycle has to be broken, equally good ways are decided by the order of the tokens. The same matrix always
    gives the same tree. The diagonal and column 0 are not read.
    """
    n = score.shape[0] - 1
    if n <= 1:
        return np.zeros(n, dtype=np.int64)
    best, alive = np.zeros(n + 1, dtype=np.int64), np.ones(n + 1, dtype=np.bool_)
    for d in range(1, n + 1):
        best[d] = _best_of(score, alive, n, d)
        if score[0, d] > score[best[d], d]:
            best[d] = 0
    roots = np.flatnonzero(best[1:] == 0) + 1
    return best[1:] if len(roots) == 1 and _reaches(best, n, roots[0]) else _contracted(score, n)


@numba.njit(cache=True, nogil=True)
def _reaches(heads: IntArray, n: int, root: int) -> bool:
    """Return whether every token leads to the root, that is, whether there is no cycle."""
    seen = np.zeros(n + 1, dtype=np.int64)
    seen[root] = -1
    for d in range(1, n + 1):
        node = d
        while seen[node] == 0:
            seen[node] = d
            node = heads[node]
        if seen[node] == d:
            return False
        node = d
        while seen[node] == d:
            seen[node] = -1
            node = heads[node]
    return True


@numba.njit(cache=True, nogil=True)
def _contracted(score: FloatArray, n: int) -> IntArray:
    """Return the heads of the best tree by contracting cycles until one node is left, which the root enters.

    Every contraction costs O(n x length of the cycle), and only the new node looks for its best head again.
    """
    total = 2 * n + 1  # contracted nodes get new numbers, so that they can be expanded again
    value = np.full((n + 1, n + 1), -np.inf)  # rows and columns are slots; a contracted node takes over a slot
    source = np.zeros((n + 1, n + 1), dtype=np.int64)  # the token at the tail of an edge between slots
    target = np.zeros((n + 1, n + 1), dtype=np.int64)  # and the one at its head
    for h in range(n + 1):
        for d in range(1, n + 1):
            if h != d:
                value[h, d] = score[h, d]
                source[h, d] = h
                target[h, d] = d
    alive = np.ones(n + 1, dtype=np.bool_)
    node_of = np.arange(n + 1)
    parent = np.full(total + 1, -1)  # the contracted node that contains a node
    edge_source = np.zeros(total + 1, dtype=np.int64)  # the edge that enters each node
    edge_target = np.zeros(total + 1, dtype=np.int64)
    best = np.zeros(n + 1, dtype=np.int64)
    for slot in range(1, n + 1):
        best[slot] = _best_of(value, alive, n, slot)
    path = np.zeros(n + 1, dtype=np.int64)
    mark = np.zeros(n + 1, dtype=np.int64)
    left, fresh, walk, current = n, n + 1, 0, 1
    while left > 1:
        # Walk from any active slot. Each has a best head among the active slots, so the walk ends in a cycle.
        while not alive[current]:
            current += 1
        walk += 1
        node = current
        while mark[node] != walk:
            mark[node] = walk
            node = best[node]
        length, first = 0, node
        while True:
            path[length] = node
            length += 1
            node = best[node]
            if node == first:
                break
        keep = path[0]
        spent = 0.0
        for index in range(length):
            slot = path[index]
            spent += value[best[slot], slot]
            inside = node_of[slot]
            parent[inside] = fresh
            edge_source[inside] = source[best[slot], slot]
            edge_target[inside] = target[best[slot], slot]
            alive[slot] = slot == keep
            mark[slot] = -1
        for other in range(n + 1):
            if not alive[other] or other == keep:
                continue
            enter, leave = -np.inf, -np.inf
            enter_slot, leave_slot = keep, keep
            for index in range(length):
                slot = path[index]
                gain = value[other, slot] - value[best[slot], slot]
                if gain > enter:
                    enter, enter_slot = gain, slot
                if other > 0 and value[slot, other] > leave:
                    leave, leave_slot = value[slot, other], slot
            value[other, keep] = enter + spent
            source[other, keep], target[other, keep] = source[other, enter_slot], target[other, enter_slot]
            if other > 0:
                value[keep, other] = leave
                source[keep, other], target[keep, other] = source[leave_slot, other], target[leave_slot, other]
                if parent[node_of[best[other]]] == fresh:  # its best head is part of the cycle and stays the best one
                    best[other] = keep
        value[keep, keep] = -np.inf
        node_of[keep] = fresh
        fresh += 1
        left -= length - 1
        if left > 1:
            best[keep] = _best_of(value, alive, n, keep)
        current = keep
    last = np.flatnonzero(alive)[1]
    top = node_of[last]
    edge_source[top] = source[0, last]
    edge_target[top] = target[0, last]
    # Expand the contracted nodes, latest first. The edge into a node replaces the cycle's edge at the token it enters.
    for node in range(fresh - 1, n, -1):
        inside = edge_target[node]
        while parent[inside] != node:
            inside = parent[inside]
        edge_source[inside] = edge_source[node]
        edge_target[inside] = edge_target[node]
    return edge_source[1 : n + 1]


@numba.njit(cache=True, nogil=True)
def _best_of(value: FloatArray, alive: npt.NDArray[np.bool_], n: int, slot: int) -> int:
    """Return the best living head of a slot among the tokens, the nearer one of equals; never the root."""
    top, chosen = -np.inf, -1
    for gap in range(1, n):
        for h in (slot - gap, slot + gap):
            if 1 <= h <= n and alive[h] and (chosen < 0 or value[h, slot] > top):
                top, chosen = value[h, slot], h
    return chosen


@numba.njit(cache=True, nogil=True)
def best_trees(votes: Heads, score: FloatArray, starts: IntArray) -> IntArray:
    """Return the heads ``(t,)`` of the trees with the largest sum of scores; edges nobody voted for score 0.

    `score` is that of the head which each source voted for ``(t, m)``, not negative.
    """
    heads = np.zeros(len(votes), dtype=np.int64)
    for sentence in range(len(starts) - 1):
        start, stop = starts[sentence], starts[sentence + 1]
        table = np.zeros((stop - start + 1, stop - start + 1))
        for t in range(start, stop):
            for a in range(votes.shape[1]):
                if votes[t, a] >= 0:
                    table[votes[t, a], t - start + 1] = score[t, a]
        heads[start:stop] = maximum_arborescence(table)
    return heads


@numba.njit(cache=True, nogil=True)
def _log_coincidence(size: float, alpha: float) -> float:
    """Return what a wrong head with this many votes adds to the log probability of how wrong votes coincide.

    ``log(alpha Gamma(size))``; below one vote, where correlated sources share one, linear.
    """
    if size <= 1.0:
        return size * log(alpha)
    return log(alpha) + lgamma(size)


@numba.njit(cache=True, nogil=True)
def _token_joint(
    blocks: Heads, share: FloatArray, log_right: FloatArray, log_wrong: FloatArray, log_prior: FloatArray,
    alpha: float, size: FloatArray, joint: FloatArray,
) -> int:  # fmt: skip
    """Write ``(nodes, found + 1)`` probabilities of difficulty and true head into `joint`; return the heads found.

    The last true head is one that nobody voted for. `size` becomes the votes for each head.
    """
    m, nodes = len(share), log_right.shape[0]
    found, total = 0, 0.0
    for a in range(m):
        if blocks[a] >= 0:
            if blocks[a] >= found:
                found = blocks[a] + 1
                size[blocks[a]] = 0.0
            size[blocks[a]] += share[a]
            total += share[a]
    wrong = 0.0
    for j in range(found):
        wrong += _log_coincidence(size[j], alpha)
    top = -np.inf
    for g in range(nodes):
        base = log_prior[g]
        for j in range(found):
            joint[g, j] = 0.0
        for a in range(m):
            if blocks[a] >= 0:
                base += share[a] * log_wrong[g, a]
                joint[g, blocks[a]] += share[a] * (log_right[g, a] - log_wrong[g, a])
        for j in range(found):
            joint[g, j] += base + wrong - _log_coincidence(size[j], alpha) - lgamma(alpha + total - size[j])
            top = max(top, joint[g, j])
        joint[g, found] = base + wrong - lgamma(alpha + total)
        top = max(top, joint[g, found])
    known = blocks[m]
    norm = 0.0
    for g in range(nodes):
        for j in range(found + 1):
            excluded = known != -1 and j != (known if known >= 0 else found)
            joint[g, j] = 0.0 if excluded else np.exp(joint[g, j] - top)
            norm += joint[g, j]
    for g in range(nodes):
        for j in range(found + 1):
            joint[g, j] /= max(norm, 1e-300)
    return found


@numba.njit(cache=True, nogil=True)
def expected_heads(
    blocks: Heads, count: FloatArray, shares: FloatArray, log_right: FloatArray, log_wrong: FloatArray,
    log_prior: FloatArray, alpha: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """Return what is believed about the heads of tokens, and the expected sums of the E-step.

    ``(nodes, m)`` right and wrong votes by level of difficulty; and ``(patterns, m + 1)`` probabilities, of the head of
    each number and at the end of a head without votes.

    There are `count` tokens of each pattern of `blocks`. Heads are right and wrong with these log probabilities
    ``(nodes, m)`` at each level of difficulty. Two wrong ones coincide with probability ``1 / (1 + alpha)``.
    """
    nodes, m = log_right.shape
    right, wrong = np.zeros((nodes, m)), np.zeros((nodes, m))
    beliefs = np.zeros((len(blocks), m + 1))
    joint = np.zeros((nodes, m + 1))
    size = np.zeros(m + 1)
    for p in range(len(blocks)):
        found = _token_joint(blocks[p], shares[p], log_right, log_wrong, log_prior, alpha, size, joint)
        for j in range(found + 1):
            beliefs[p, j if j < found else m] = joint[:, j].sum()
        for g in range(nodes):
            here = joint[g, : found + 1].sum()
            for a in range(m):
                if blocks[p, a] >= 0:
                    right[g, a] += count[p] * shares[p, a] * joint[g, blocks[p, a]]
                    wrong[g, a] += count[p] * shares[p, a] * (here - joint[g, blocks[p, a]])
    return right, wrong, beliefs


@numba.njit(cache=True, nogil=True)
def tree_faults(heads: IntArray, starts: IntArray) -> IntArray:
    """Return the first tree that is none, what is wrong with it, and the token: ``(tree, fault, token)``.

    Faults are 0 none (tree is -1), 1 a head outside of 0 .. n, 2 a token that is its own head, 3 no root, 4 more
    than one root (token: the second), 5 a cycle (token: the first on it), 6 no tokens.
    """
    for tree in range(len(starts) - 1):
        start, n = starts[tree], starts[tree + 1] - starts[tree]
        if n == 0:
            return np.array([tree, 6, 0])
        shifted = np.zeros(n + 1, dtype=np.int64)
        first = 0
        for d in range(1, n + 1):
            h = heads[start + d - 1]
            if h < 0 or h > n:
                return np.array([tree, 1, d])
            if h == d:
                return np.array([tree, 2, d])
            shifted[d] = h
        for d in range(1, n + 1):
            if shifted[d] == 0:
                if first > 0:
                    return np.array([tree, 4, d])
                first = d
        if first == 0:
            return np.array([tree, 3, 0])
        if not _reaches(shifted, n, first):
            for d in range(1, n + 1):
                node = shifted[d]
                steps = 0
                while node not in (0, d) and steps <= n:
                    node = shifted[node]
                    steps += 1
                if node == d:
                    return np.array([tree, 5, d])
    return np.array([-1, 0, 0])


@numba.njit(cache=True, nogil=True)
def draw_trees(centers: IntArray, starts: IntArray, boosts: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return the heads ``(t,)`` of one tree per sentence, with probability proportional to ``boost ** matches``.

    A match is a head that equals the center's; boost 1 draws uniformly. Trees with several roots are drawn again,
    which is exact; at boost 1 about one in e has a single root.
    """
    heads = np.zeros(starts[-1], dtype=np.int64)
    for sentence in range(len(starts) - 1):
        start, n = starts[sentence], starts[sentence + 1] - starts[sentence]
        boost = boosts[sentence]
        stays = boost / (boost + n - 1.0)
        joined = np.zeros(n + 1, dtype=np.bool_)
        while n > 1:
            joined[:] = False
            joined[0] = True
            for token in range(1, n + 1):
                node = token
                while not joined[node]:  # a later visit overwrites the step taken before, which erases the loop
                    kept = centers[start + node - 1]
                    step = kept
                    if rng.random() >= stays:
                        step = int(rng.random() * (n - 1))  # among n - 1 tokens, without the token and its center
                        step += step >= min(node, kept)
                        step += step >= max(node, kept)
                    heads[start + node - 1] = step
                    node = step
                node = token
                while not joined[node]:
                    joined[node] = True
                    node = heads[start + node - 1]
            if (heads[start : start + n] == 0).sum() == 1:
                break
    return heads
