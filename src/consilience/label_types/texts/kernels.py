"""Texts as sequences of words: distances, the weighted vote on aligned words, and a search for a better text."""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import FloatArray, IntArray

#: Code of the distance one minus GLEU. The other distance counts edits.
GLEU = 1
#: Longest n-grams of words that GLEU compares, by its definition.
LONGEST = 4
#: A word is tried in a place if it has more than this share of the weight there. A budget of time, because every word
#: must lower the distance.
ENOUGH = 0.2


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
                for k in range(size):
                    if left[i + k] != right[j + k]:
                        break
                else:
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

    `votes` has the weight of each word in each slot, in the last column of "nothing"; `base` what the first text has.
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
        replaced = i and j and abs(cost[i, j] - (cost[i - 1, j - 1] + 1.0 - votes[i - 1, text[j - 1]] / total)) < 1e-9
        skipped = i and (not j or abs(cost[i, j] - (cost[i - 1, j] + 1.0 - votes[i - 1, nothing] / total)) < 1e-9)
        if replaced or skipped:
            i -= 1
            grown[place], ground[place] = votes[i], base[i]
        else:
            replaced = True
            grown[place, nothing] = total
        j -= replaced
        grown[place, text[j] if replaced else nothing] += weight
    return grown[place:], ground[place:]


@numba.njit(cache=True, nogil=True)
def network(
    first: IntArray, total: float, words: IntArray, starts: IntArray, order: IntArray, weights: FloatArray, n: int
) -> tuple[FloatArray, IntArray]:
    """Return slots of weighted words: the texts aligned one after the other to the first one, of weight `total`."""
    votes, base = np.zeros((len(first), n + 1)), first.copy()
    for slot in range(len(first)):
        votes[slot, first[slot]] = total
    for k in order:
        votes, base = _aligned(votes, base, total, words[starts[k] : starts[k + 1]], weights[k])
        total += weights[k]
    return votes, base


@numba.njit(cache=True, nogil=True)
def heaviest_words(votes: FloatArray) -> IntArray:
    """Return the heaviest word of every slot of a network."""
    nothing = votes.shape[1] - 1
    chosen = np.full(len(votes), -1)
    for slot in range(len(votes)):  # no slots without words
        best = np.argmax(votes[slot, :nothing])
        if votes[slot, best] >= votes[slot, nothing] - 1e-12:
            chosen[slot] = best
    return chosen[chosen >= 0]


@numba.njit(cache=True, nogil=True)
def neighbors(votes: FloatArray, base: IntArray) -> tuple[IntArray, IntArray]:
    """Return texts that differ from the base in a single place, by what enough of the weight of 1 has there; starts."""
    slots, nothing = len(votes), votes.shape[1] - 1
    most = (votes > ENOUGH).sum()
    flat, ends, count = np.empty(most * slots, np.int64), np.zeros(most + 1, np.int64), 0
    for slot in range(slots):
        for word in range(nothing + 1):
            if word == base[slot] or votes[slot, word] <= ENOUGH:
                continue
            count += 1
            ends[count] = ends[count - 1]
            for other in range(slots):
                here = word if other == slot else base[other]
                if here != nothing:
                    flat[ends[count]] = here
                    ends[count] += 1
    return flat[: ends[count]], ends[: count + 1]


@numba.njit(cache=True, nogil=True)
def spent(text: IntArray, words: IntArray, starts: IntArray, weights: FloatArray, kind: int) -> float:
    """Return how far a text is from weighted votes; edits are counted, whatever the length of the vote."""
    total = 0.0
    for k in range(len(starts) - 1):
        vote = words[starts[k] : starts[k + 1]]
        total += weights[k] * (gleu_distance(text, vote) if kind == GLEU else float(edit_distance(text, vote)))
    return total


@numba.njit(cache=True, nogil=True)
def write_texts(
    words: IntArray,
    starts: IntArray,
    items: IntArray,
    order: IntArray,
    weights: FloatArray,
    n_words: int,
    kind: int,
    most_steps: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the words of the label of every item, one after the other; its start; and the vote it is, or -1.

    The votes of item i are the texts from ``items[i]`` to ``items[i + 1]``, and `order` has them best first. The first
    of them, or the vote on words, is changed word by word while that brings it closer to the votes. Of several votes
    that are the label the best counts, and else the heaviest.
    """
    n = len(items) - 1
    flat, ends, same = np.empty(len(words) + n * most_steps, np.int64), np.zeros(n + 1, np.int64), np.full(n, -1)
    last_item, number = np.full(n_words, -1), np.empty(n_words, np.int64)
    own, name, every = np.empty(len(words), np.int64), np.empty(len(words), np.int64), np.arange(len(starts))
    for i in range(n):
        first, last, ends[i + 1] = items[i], items[i + 1], ends[i]
        if first == last:
            continue
        begin, known = starts[first], 0
        for k in range(begin, starts[last]):  # renumber the words in order of appearance
            word = words[k]
            if last_item[word] != i:
                last_item[word], number[word], name[known] = i, known, word
                known += 1
            own[k - begin] = number[word]
        places, rank, share = starts[first : last + 1] - begin, order[first:last] - first, weights[first:last]
        share = share / share.sum()
        text = own[places[rank[0]] : places[rank[0] + 1]].copy()
        least = np.inf
        for step in range(most_steps + 1 if last - first >= 3 else 0):
            if step > 0 or kind != GLEU:
                aligned, total = (rank[1:], share[rank[0]]) if step == 0 else (every[: last - first], 1e-6)
                slots, base = network(text, total, own, places, aligned, share, known)
                if step == 0:
                    text = heaviest_words(slots)
                else:
                    options, stops = neighbors(slots, base)
                    cost, best = np.inf, 0
                    for option in range(len(stops) - 1):
                        found = spent(options[stops[option] : stops[option + 1]], own, places, share, kind)
                        if found < cost:
                            cost, best = found, option
                    if cost >= least - 1e-9:
                        break
                    text, least = options[stops[best] : stops[best + 1]].copy(), cost
            if step == 0:
                least = spent(text, own, places, share, kind)
        heaviest = -1.0
        for vote in range(last - first):
            weight = np.inf if vote == rank[0] else share[vote]
            if weight > heaviest and np.array_equal(own[places[vote] : places[vote + 1]], text):
                heaviest, same[i] = weight, first + vote
        for word in text:
            flat[ends[i + 1]] = name[word]
            ends[i + 1] += 1
    return flat[: ends[n]], ends, same
