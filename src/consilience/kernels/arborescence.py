"""Maximum spanning arborescences with one root (Chu-Liu, Edmonds), and the consensus tree of weighted votes.

Node 0 is the root of the sentence, tokens are 1 .. n, and exactly one token hangs on node 0. That constraint is
exact, without a large constant: a token takes node 0 for its head only when nothing else is left. As node 0 never
lies on a cycle, this is the limit of subtracting an ever larger constant from the edges of the root, carried out in
the order of comparisons instead of in floating point.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from consilience.arrays import FloatArray, IntArray

__all__ = ["consensus_trees", "maximum_arborescence", "tree_faults"]

Heads = npt.NDArray[np.int16]


@numba.njit(cache=True, nogil=True)
def maximum_arborescence(score: FloatArray) -> IntArray:
    """Return the heads ``(n,)`` of the tree with one root whose edges have the largest sum of scores.

    Dense, in O(n^2). Equal scores: the nearer head, of two equally near ones the left; node 0 counts as the farthest.
    Where a cycle has to be broken, equally good ways are decided by the order of the tokens. The same matrix always
    gives the same tree.

    Parameters
    ----------
    score
        ``(n + 1, n + 1)``, ``score[h, d]`` for head h of token d; the diagonal and column 0 are not read.
    """
    n = score.shape[0] - 1
    heads = np.zeros(n, dtype=np.int64)
    if n <= 1:
        return heads
    best = _nearest_best(score, n)
    root = _only_root(best, n)
    if root > 0 and _reaches(best, n, root):
        heads[:] = best[1:]
        return heads
    return _contracted(score, n)


@numba.njit(cache=True, nogil=True)
def _nearest_best(score: FloatArray, n: int) -> IntArray:
    """Return the best head of each token, the nearer one of equals."""
    best = np.zeros(n + 1, dtype=np.int64)
    for d in range(1, n + 1):
        value, chosen = -np.inf, 0
        for gap in range(1, n):
            for h in (d - gap, d + gap):
                if 1 <= h <= n and score[h, d] > value:
                    value, chosen = score[h, d], h
        if score[0, d] > value:
            chosen = 0
        best[d] = chosen
    return best


@numba.njit(cache=True, nogil=True)
def _only_root(heads: IntArray, n: int) -> int:
    """Return the only token whose head is 0, or -1 where there is none or more than one."""
    root = -1
    for d in range(1, n + 1):
        if heads[d] == 0:
            if root > 0:
                return -1
            root = d
    return root


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
    total = 2 * n + 1  # contracted nodes get numbers of their own, so that they can be opened again
    value = np.full((n + 1, n + 1), -np.inf)  # rows and columns are slots; a contracted node takes over a slot
    source = np.zeros((n + 1, n + 1), dtype=np.int64)  # the token behind the tail of an edge between slots
    target = np.zeros((n + 1, n + 1), dtype=np.int64)  # and the one behind its head
    for h in range(n + 1):
        for d in range(1, n + 1):
            if h != d:
                value[h, d] = score[h, d]
                source[h, d] = h
                target[h, d] = d
    alive = np.ones(n + 1, dtype=np.bool_)
    node_of = np.arange(n + 1)
    parent = np.full(total + 1, -1)  # contracted node that a node is part of
    edge_source = np.zeros(total + 1, dtype=np.int64)  # the edge that enters each node
    edge_target = np.zeros(total + 1, dtype=np.int64)
    best = _best_slots(value, alive, n)
    path = np.zeros(n + 1, dtype=np.int64)
    mark = np.zeros(n + 1, dtype=np.int64)
    left, fresh, walk, current = n, n + 1, 0, 1
    while left > 1:
        # Walk from any living slot; as each has a best head among the living, the walk ends in a cycle.
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
            held_source, held_target = source[other, enter_slot], target[other, enter_slot]
            value[other, keep] = enter + spent
            source[other, keep], target[other, keep] = held_source, held_target
            if other > 0:
                held_source, held_target = source[leave_slot, other], target[leave_slot, other]
                value[keep, other] = leave
                source[keep, other], target[keep, other] = held_source, held_target
                if parent[node_of[best[other]]] == fresh:  # its best head is part of the cycle, and stays the best
                    best[other] = keep
        value[keep, keep] = -np.inf
        node_of[keep] = fresh
        fresh += 1
        left -= length - 1
        if left > 1:
            best[keep] = _best_of(value, alive, n, keep)
        current = keep
    last = 1
    while not alive[last]:
        last += 1
    top = node_of[last]
    edge_source[top] = source[0, last]
    edge_target[top] = target[0, last]
    heads = np.zeros(n, dtype=np.int64)
    # Open the contracted nodes, latest first: the edge that enters one replaces the cycle's edge at the token it hits.
    for node in range(fresh - 1, n, -1):
        inside = edge_target[node]
        while parent[inside] != node:
            inside = parent[inside]
        edge_source[inside] = edge_source[node]
        edge_target[inside] = edge_target[node]
    for d in range(1, n + 1):
        heads[d - 1] = edge_source[d]
    return heads


@numba.njit(cache=True, nogil=True)
def _best_slots(value: FloatArray, alive: npt.NDArray[np.bool_], n: int) -> IntArray:
    best = np.zeros(n + 1, dtype=np.int64)
    for slot in range(1, n + 1):
        best[slot] = _best_of(value, alive, n, slot)
    return best


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
def consensus_trees(
    votes: Heads, weights: FloatArray, starts: IntArray, plausible: float, expected: bool
) -> tuple[Heads, FloatArray]:
    """Return the heads ``(t,)`` of the consensus trees, and the probability of each head.

    Parameters
    ----------
    votes
        ``(t, m)`` heads by token of all sentences one after the other; -1 where a source abstains.
    weights
        ``(n, m)`` weight of each source in each sentence, not negative.
    starts
        ``(n + 1,)`` first token of each sentence.
    plausible
        How many wrong heads are plausible, for the probabilities.
    expected
        Whether to maximise the expected number of right heads instead of the weighted vote.
    """
    count, m = votes.shape
    heads = np.zeros(count, dtype=np.int16)
    probability = np.zeros(count)
    candidate = np.zeros((count, m), dtype=np.int16)
    support = np.zeros((count, m))
    chance = np.zeros((count, m))
    rest = np.zeros(count)
    for sentence in range(len(starts) - 1):
        start, n = starts[sentence], starts[sentence + 1] - starts[sentence]
        best = np.zeros(n + 1, dtype=np.int64)
        for d in range(1, n + 1):
            t = start + d - 1
            found = 0
            for a in range(m):
                h, weight = votes[t, a], weights[sentence, a]
                if h < 0 or weight <= 0.0:
                    continue
                place = 0
                while place < found and candidate[t, place] != h:
                    place += 1
                if place == found:
                    candidate[t, place] = h
                    support[t, place] = 0.0
                    found += 1
                support[t, place] += weight
            if found < m:
                candidate[t, found] = -1
            top = 0.0
            for place in range(found):
                top = max(top, support[t, place])
            unseen = max(min(plausible + 1.0, float(n)) - found, 0.0)
            norm = unseen * np.exp(-top)
            for place in range(found):
                chance[t, place] = np.exp(support[t, place] - top)
                norm += chance[t, place]
            for place in range(found):
                chance[t, place] /= max(norm, 1e-300)
            rest[t] = np.exp(-top) / max(norm, 1e-300) if unseen > 0 else 0.0
            value, chosen, gap = -1.0, -1, 0
            for place in range(found):
                h = candidate[t, place]
                away = n + 1 if h == 0 else abs(h - d)
                here = chance[t, place] if expected else support[t, place]
                if here > value or (here == value and (away < gap or (away == gap and h < d))):
                    value, chosen, gap = here, h, away
            best[d] = chosen
        root = _only_root(best, n)
        voted = True
        for d in range(1, n + 1):
            voted = voted and best[d] >= 0
        if voted and root > 0 and _reaches(best, n, root):
            for d in range(1, n + 1):
                heads[start + d - 1] = best[d]
        elif n > 1:
            score = np.zeros((n + 1, n + 1))
            for d in range(1, n + 1):
                t = start + d - 1
                for place in range(m):
                    if candidate[t, place] < 0:
                        break
                    score[candidate[t, place], d] = chance[t, place] if expected else support[t, place]
            found_heads = maximum_arborescence(score)
            for d in range(n):
                heads[start + d] = found_heads[d]
        for t in range(start, start + n):
            value = rest[t]
            for place in range(m):
                if candidate[t, place] < 0:
                    break
                if candidate[t, place] == heads[t]:
                    value = chance[t, place]
                    break
            probability[t] = 1.0 if n == 1 else value
    return heads, probability


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
