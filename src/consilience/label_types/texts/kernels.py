"""Texts as sequences of words: distances, the weighted vote on aligned words, and a search for a better text."""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import FloatArray, IntArray

__all__ = ["edit_distance", "gleu_distance", "neighbours", "text_costs", "vote_on_words", "write_texts"]

#: Kinds of distance.
WORDS, GLEU = 0, 1
#: Longest sequence of words that GLEU compares.
LONGEST = 4
#: A word is proposed in a place if this share of the weight has it there; so many words are changed at most.
ENOUGH, MOST_STEPS = 0.2, 6


@numba.njit(cache=True, nogil=True)
def edit_distance(left: IntArray, right: IntArray) -> int:
    """Return how many words must be put in, left out or replaced to turn one text into the other."""
    if len(left) < len(right):
        left, right = right, left
    row = np.arange(len(right) + 1)
    for i in range(len(left)):
        corner = row[0]
        row[0] = i + 1
        for j in range(len(right)):
            above = row[j + 1]
            row[j + 1] = min(above + 1, row[j] + 1, corner + (left[i] != right[j]))
            corner = above
    return int(row[-1])


@numba.njit(cache=True, nogil=True)
def gleu_distance(left: IntArray, right: IntArray) -> float:
    """Return one minus GLEU: the share of sequences of one to four words that two texts have in common."""
    total_left = total_right = common = 0
    used = np.zeros(len(right), dtype=np.bool_)
    for size in range(1, LONGEST + 1):
        here, there = max(len(left) - size + 1, 0), max(len(right) - size + 1, 0)
        total_left += here
        total_right += there
        used[:] = False
        for i in range(here):
            for j in range(there):
                if used[j]:
                    continue
                same = True
                for k in range(size):
                    if left[i + k] != right[j + k]:
                        same = False
                        break
                if same:
                    used[j] = True
                    common += 1
                    break
    longest = max(total_left, total_right)
    return 1.0 - common / longest if longest else 0.0


@numba.njit(cache=True, nogil=True)
def text_costs(words: IntArray, starts: IntArray, pairs: IntArray, kind: int) -> FloatArray:
    """Return the distances between pairs of texts, between 0 and 1: edits by the longer text, or one minus GLEU."""
    costs = np.empty(len(pairs))
    for k in range(len(pairs)):
        one = words[starts[pairs[k, 0]] : starts[pairs[k, 0] + 1]]
        two = words[starts[pairs[k, 1]] : starts[pairs[k, 1] + 1]]
        if kind == GLEU:
            costs[k] = gleu_distance(one, two)
        else:
            costs[k] = edit_distance(one, two) / max(len(one), len(two), 1)
    return costs


@numba.njit(cache=True, nogil=True)
def _aligned(
    votes: FloatArray, base: IntArray, total: float, text: IntArray, weight: float
) -> tuple[FloatArray, IntArray]:
    """Align one more text to slots of weighted words, at the least cost, and add its weight.

    Parameters
    ----------
    votes : array of shape (slots, words + 1)
        Weight of each word in each slot; the last column is "nothing".
    base : array of shape (slots,)
        What the first text has in each slot; ``words`` is nothing.
    """
    slots, nothing = votes.shape[0], votes.shape[1] - 1
    n = len(text)
    cost = np.empty((slots + 1, n + 1))
    cost[0] = np.arange(n + 1)
    for i in range(slots):
        skip = 1.0 - votes[i, nothing] / total
        cost[i + 1, 0] = cost[i, 0] + skip
        for j in range(n):
            replace = cost[i, j] + 1.0 - votes[i, text[j]] / total
            cost[i + 1, j + 1] = min(replace, cost[i, j + 1] + skip, cost[i + 1, j] + 1.0)
    grown, ground = np.zeros((slots + n, nothing + 1)), np.full(slots + n, nothing)
    place, i, j = slots + n, slots, n
    while i or j:
        place -= 1
        if i and j and abs(cost[i, j] - (cost[i - 1, j - 1] + 1.0 - votes[i - 1, text[j - 1]] / total)) < 1e-9:
            i -= 1
            j -= 1
            grown[place], ground[place] = votes[i], base[i]
            grown[place, text[j]] += weight
        elif i and abs(cost[i, j] - (cost[i - 1, j] + 1.0 - votes[i - 1, nothing] / total)) < 1e-9:
            i -= 1
            grown[place], ground[place] = votes[i], base[i]
            grown[place, nothing] += weight
        else:
            j -= 1
            grown[place, text[j]] = weight
            grown[place, nothing] = total
    return grown[place:], ground[place:]


@numba.njit(cache=True, nogil=True)
def _network(
    first: IntArray,
    first_weight: float,
    words: IntArray,
    starts: IntArray,
    order: IntArray,
    weights: FloatArray,
    n: int,
) -> tuple[FloatArray, IntArray]:
    """Return slots of weighted words: the texts aligned one after the other to the first one."""
    votes, base = np.zeros((len(first), n + 1)), first.copy()
    for slot in range(len(first)):
        votes[slot, first[slot]] = first_weight
    total = first_weight
    for k in order:
        votes, base = _aligned(votes, base, total, words[starts[k] : starts[k + 1]], weights[k])
        total += weights[k]
    return votes, base


@numba.njit(cache=True, nogil=True)
def vote_on_words(words: IntArray, starts: IntArray, order: IntArray, weights: FloatArray, n_words: int) -> IntArray:
    """Return the heaviest word of every slot, the texts aligned in this order."""
    head = order[0]
    first = words[starts[head] : starts[head + 1]]
    votes, _ = _network(first, weights[head], words, starts, order[1:], weights, n_words)
    chosen = np.empty(len(votes), dtype=np.int64)
    size = 0
    for slot in range(len(votes)):
        best = int(np.argmax(votes[slot, :n_words])) if n_words else 0
        if n_words and votes[slot, best] >= votes[slot, n_words] - 1e-12:
            chosen[size] = best
            size += 1
    return chosen[:size]


@numba.njit(cache=True, nogil=True)
def neighbours(
    text: IntArray, words: IntArray, starts: IntArray, weights: FloatArray, n_words: int
) -> tuple[IntArray, IntArray]:
    """Return texts that differ from one in a single place, by what enough of the weight has there; flat, with starts.

    Parameters
    ----------
    weights
        They add up to 1.
    """
    order = np.arange(len(starts) - 1)
    votes, base = _network(text, 1e-6, words, starts, order, weights, n_words)
    flat, ends = [0], [0]
    flat.pop()
    for slot in range(len(votes)):
        for word in range(n_words + 1):
            if word == base[slot] or votes[slot, word] <= ENOUGH:
                continue
            for other in range(len(votes)):
                here = word if other == slot else base[other]
                if here != n_words:
                    flat.append(here)
            ends.append(len(flat))
    return np.array(flat, dtype=np.int64), np.array(ends, dtype=np.int64)


@numba.njit(cache=True, nogil=True)
def _spent(text: IntArray, words: IntArray, starts: IntArray, weights: FloatArray, kind: int) -> float:
    total = 0.0
    for k in range(len(starts) - 1):
        vote = words[starts[k] : starts[k + 1]]
        total += weights[k] * (gleu_distance(text, vote) if kind == GLEU else float(edit_distance(text, vote)))
    return total


@numba.njit(cache=True, nogil=True)
def _improved(
    text: IntArray, words: IntArray, starts: IntArray, weights: FloatArray, n_words: int, kind: int
) -> IntArray:
    """Change single places of a text while that brings it closer to the votes."""
    best = _spent(text, words, starts, weights, kind)
    for _ in range(MOST_STEPS):
        flat, ends = neighbours(text, words, starts, weights, n_words)
        chosen = -1
        for k in range(len(ends) - 1):
            spent = _spent(flat[ends[k] : ends[k + 1]], words, starts, weights, kind)
            if spent < best - 1e-9:
                best, chosen = spent, k
        if chosen < 0:
            break
        text = flat[ends[chosen] : ends[chosen + 1]].copy()
    return text


@numba.njit(cache=True, nogil=True)
def write_texts(
    words: IntArray,
    starts: IntArray,
    item_start: IntArray,
    weights: FloatArray,
    cost: FloatArray,
    kind: int,
    write: bool,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the best vote of every item and, if asked for, a text that is closer to the votes than it.

    Parameters
    ----------
    words, starts
        Votes one after the other, item by item.
    item_start : array of shape (n + 1,)
        First vote of each item.
    weights : array of shape (votes,)
    cost
        Costs of all pairs of votes within items, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Returns
    -------
    flat, ends
        The texts one after the other, and where they end.
    picked : array of shape (n,)
        The vote of least weighted cost, -1 where there is none.
    """
    n = len(item_start) - 1
    picked = np.full(n, -1, dtype=np.int64)
    flat, ends = [0], [0]
    flat.pop()
    local = np.full(words.max() + 1 if len(words) else 1, -1, dtype=np.int64)
    place = 0
    for item in range(n):
        first, last = item_start[item], item_start[item + 1]
        size = last - first
        totals = np.zeros(size)
        for i in range(size):
            for j in range(i + 1, size):
                totals[i] += weights[first + j] * cost[place]
                totals[j] += weights[first + i] * cost[place]
                place += 1
        if size == 0:
            ends.append(len(flat))
            continue
        best = 0
        for i in range(1, size):
            gap = totals[i] - totals[best]
            if gap < -1e-12 or (abs(gap) <= 1e-12 and weights[first + i] > weights[first + best] + 1e-12):
                best = i
        picked[item] = first + best
        begin, end = starts[first], starts[last]
        known = np.empty(end - begin, dtype=np.int64)
        mine = np.empty(end - begin, dtype=np.int64)
        n_words = 0
        for k in range(begin, end):
            if local[words[k]] < 0:
                local[words[k]] = n_words
                known[n_words] = words[k]
                n_words += 1
            mine[k - begin] = local[words[k]]
        own_starts = starts[first : last + 1] - begin
        text = mine[own_starts[best] : own_starts[best + 1]].copy()
        if write and size > 2:
            share = weights[first:last] / weights[first:last].sum()
            if kind == WORDS:
                text = vote_on_words(mine, own_starts, np.argsort(totals, kind="mergesort"), share, n_words)
            text = _improved(text, mine, own_starts, share, n_words, kind)
        for word in text:
            flat.append(known[word])
        ends.append(len(flat))
        for k in range(begin, end):
            local[words[k]] = -1
    return np.array(flat, dtype=np.int64), np.array(ends, dtype=np.int64), picked
