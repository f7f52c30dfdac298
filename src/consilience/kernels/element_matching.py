"""Sets of boxes or spans: overlap of two elements, cost between two sets, and elements matched across sources.

An element is a row of corners, all lower ones first: ``x1, y1, x2, y2`` for boxes, ``start, end`` for spans.
"""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = ["best_total", "match_elements", "overlap", "pair_share_sums", "set_costs"]

#: What is left of the overlap of two elements of different classes when they are matched.
OTHER_CLASS = 0.5


@numba.njit(cache=True, nogil=True)
def overlap(values: FloatArray, left: int, right: int) -> float:
    """Return intersection over union of two elements; 1 for two equal ones without extent."""
    half = values.shape[1] // 2
    inside, one, two = 1.0, 1.0, 1.0
    same = True
    for axis in range(half):
        low = max(values[left, axis], values[right, axis])
        high = min(values[left, half + axis], values[right, half + axis])
        inside *= max(high - low, 0.0)
        one *= values[left, half + axis] - values[left, axis]
        two *= values[right, half + axis] - values[right, axis]
        same &= values[left, axis] == values[right, axis] and values[left, half + axis] == values[right, half + axis]
    if same:
        return 1.0
    union = one + two - inside
    return inside / union if union > 0.0 else 0.0


@numba.njit(cache=True, nogil=True)
def best_total(gain: FloatArray) -> float:
    """Return the largest sum of entries with at most one in each row and column (the assignment problem).

    Shortest augmenting paths with potentials, for non-negative entries and no more rows than columns.
    """
    rows, columns = gain.shape
    row_level, column_level = np.zeros(rows + 1), np.zeros(columns + 1)
    owner, previous = np.zeros(columns + 1, dtype=np.int64), np.zeros(columns + 1, dtype=np.int64)
    for row in range(1, rows + 1):
        owner[0] = row
        at = 0
        least = np.full(columns + 1, np.inf)
        used = np.zeros(columns + 1, dtype=np.bool_)
        while True:
            used[at] = True
            mine, step, following = owner[at], np.inf, 0
            for column in range(1, columns + 1):
                if not used[column]:
                    slack = -gain[mine - 1, column - 1] - row_level[mine] - column_level[column]
                    if slack < least[column]:
                        least[column] = slack
                        previous[column] = at
                    if least[column] < step:
                        step = least[column]
                        following = column
            for column in range(columns + 1):
                if used[column]:
                    row_level[owner[column]] += step
                    column_level[column] -= step
                else:
                    least[column] -= step
            at = following
            if owner[at] == 0:
                break
        while at:
            owner[at] = owner[previous[at]]
            at = previous[at]
    total = 0.0
    for column in range(1, columns + 1):
        if owner[column]:
            total += gain[owner[column] - 1, column - 1]
    return total


@numba.njit(cache=True, nogil=True)
def _matched(values: FloatArray, codes: IntArray, a: int, a_end: int, b: int, b_end: int) -> float:
    """Return the largest sum of overlaps between elements of equal class of two sets, matched one to one."""
    if a_end - a > b_end - b:
        a, a_end, b, b_end = b, b_end, a, a_end
    gain = np.zeros((a_end - a, b_end - b))
    for i in range(a_end - a):
        for j in range(b_end - b):
            if codes[a + i] == codes[b + j]:
                gain[i, j] = overlap(values, a + i, b + j)
    return best_total(gain)


@numba.njit(cache=True, nogil=True)
def _united(values: FloatArray, codes: IntArray, first: int, last: int) -> tuple[FloatArray, IntArray]:
    """Return the stretches that spans of one class cover together, sorted."""
    order = np.arange(first, last)
    for i in range(1, len(order)):
        here, j = order[i], i
        while j and (codes[order[j - 1]], values[order[j - 1], 0]) > (codes[here], values[here, 0]):
            order[j] = order[j - 1]
            j -= 1
        order[j] = here
    ends, kinds = np.empty((len(order), 2)), np.empty(len(order), dtype=np.int64)
    size = 0
    for element in order:
        if size and kinds[size - 1] == codes[element] and values[element, 0] <= ends[size - 1, 1]:
            ends[size - 1, 1] = max(ends[size - 1, 1], values[element, 1])
        else:
            ends[size] = values[element, :2]
            kinds[size] = codes[element]
            size += 1
    return ends[:size], kinds[:size]


@numba.njit(cache=True, nogil=True)
def _common_length(values: FloatArray, codes: IntArray, a: int, a_end: int, b: int, b_end: int) -> tuple[float, float]:
    """Return the length that two sets of spans both cover with the same class, and the sum of both lengths."""
    one, one_codes = _united(values, codes, a, a_end)
    two, two_codes = _united(values, codes, b, b_end)
    common, total = 0.0, 0.0
    for i in range(len(one)):
        total += one[i, 1] - one[i, 0]
        for j in range(len(two)):
            if one_codes[i] == two_codes[j]:
                common += max(min(one[i, 1], two[j, 1]) - max(one[i, 0], two[j, 0]), 0.0)
    for j in range(len(two)):
        total += two[j, 1] - two[j, 0]
    return common, total


@numba.njit(cache=True, nogil=True)
def _set_cost(values: FloatArray, codes: IntArray, a: int, a_end: int, b: int, b_end: int, by_length: bool) -> float:
    if a == a_end and b == b_end:
        return 0.0
    if a == a_end or b == b_end:
        return 1.0
    if by_length:
        common, total = _common_length(values, codes, a, a_end, b, b_end)
        return min(max(1.0 - 2.0 * common / total, 0.0), 1.0) if total > 0.0 else 0.0
    matched = _matched(values, codes, a, a_end, b, b_end)
    return min(max(1.0 - 2.0 * matched / (a_end - a + b_end - b), 0.0), 1.0)


@numba.njit(cache=True, nogil=True)
def set_costs(
    values: FloatArray, codes: IntArray, left: IntArray, right: IntArray, pairs: IntArray, by_length: bool
) -> FloatArray:
    """Return one minus the F1 of pairs of sets: overlaps of matched elements count, or lengths in common.

    Parameters
    ----------
    values, codes : arrays of shape (k, 2 d) and (k,)
        Elements of all sets, one set after the other, and their classes.
    left, right : arrays of shape (sets,)
        First element of each set, and the one behind its last.
    pairs : array of shape (n, 2)
    by_length
        Whether lengths in common count (spans) rather than matched elements.
    """
    costs = np.empty(len(pairs))
    for k in range(len(pairs)):
        one, two = pairs[k]
        costs[k] = _set_cost(values, codes, left[one], right[one], left[two], right[two], by_length)
    return costs


@numba.njit(cache=True, nogil=True)
def pair_share_sums(
    cost: FloatArray, item_start: IntArray, sources: IntArray, groups: IntArray, m: int, n_groups: int
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return sums of the costs between the votes of each item, as they are and as shares of the item's mean cost.

    Parameters
    ----------
    cost
        Costs of all pairs of votes, item by item, in the order (0, 1), (0, 2), ..., (1, 2), ... of its votes.
    item_start : array of shape (n + 1,)
        First vote of each item; `sources` has the source of each vote.

    Returns
    -------
    count : array of shape (groups, m, m)
    total : array of shape (groups, m, m)
    square : array of shape (m, m)
    shares : array of shape (4, m, m)
        Items, weights, weighted shares and squared shares, for items with three votes or more that differ. An item
        weighs one over the number of partners that each vote has there.
    """
    count, total = np.zeros((n_groups, m, m), dtype=np.int64), np.zeros((n_groups, m, m))
    square, shares = np.zeros((m, m)), np.zeros((4, m, m))
    place = 0
    for item in range(len(item_start) - 1):
        first, last = item_start[item], item_start[item + 1]
        size = last - first
        n_pairs = size * (size - 1) // 2
        mean = cost[place : place + n_pairs].mean() if n_pairs else 0.0
        counted = size >= 3 and mean > 1e-12
        for i in range(first, last):
            for j in range(i + 1, last):
                value = cost[place]
                place += 1
                for a, b in ((sources[i], sources[j]), (sources[j], sources[i])):
                    count[groups[item], a, b] += 1
                    total[groups[item], a, b] += value
                    square[a, b] += value * value
                    if counted:
                        share = value / mean
                        shares[0, a, b] += 1.0
                        shares[1, a, b] += 1.0 / (size - 1)
                        shares[2, a, b] += share / (size - 1)
                        shares[3, a, b] += share * share
    return count, total, square, shares


@numba.njit(cache=True, nogil=True)
def match_elements(
    values: FloatArray, codes: IntArray, sources: IntArray, starts: IntArray, threshold: float
) -> tuple[IntArray, IntArray]:
    """Return the group of matched elements that each element belongs to, and the item of each group.

    The element that most sources support, by the sum of its best overlap with each of them, takes the best element of
    every source along; then the next. An element supports another from this overlap on. A group has at most one
    element of each source. Overlaps with elements of another class count half.

    Parameters
    ----------
    sources : array of shape (k,)
    starts : array of shape (n + 1,)
        First element of each item.
    """
    group = np.full(len(values), -1, dtype=np.int64)
    items = np.empty(len(values), dtype=np.int64)
    n_groups = 0
    for item in range(len(starts) - 1):
        first, size = starts[item], starts[item + 1] - starts[item]
        edge_start, edges, strength = _neighbours(values, codes, first, size, threshold)
        alive = np.ones(size, dtype=np.bool_)
        support = np.empty(size)
        best = np.zeros(size, dtype=np.int64)
        for i in range(size):
            support[i] = _support(i, first, edge_start, edges, strength, sources, alive, best)
        left = size
        while left:
            seed = _strongest(values, first, support, alive)
            n_best = int(_gather(seed, first, edge_start, edges, strength, sources, alive, best))
            for k in range(n_best):
                alive[best[k]] = False
                group[first + best[k]] = n_groups
            left -= n_best
            taken = best[:n_best].copy()
            for element in taken:
                for e in range(edge_start[element], edge_start[element + 1]):
                    other = edges[e]
                    if alive[other]:
                        support[other] = _support(other, first, edge_start, edges, strength, sources, alive, best)
            items[n_groups] = item
            n_groups += 1
    return group, items[:n_groups]


@numba.njit(cache=True, nogil=True)
def _neighbours(
    values: FloatArray, codes: IntArray, first: int, size: int, threshold: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return for each element of an item those that overlap it enough, itself included, and how much."""
    table = np.zeros((size, size))
    counts = np.zeros(size + 1, dtype=np.int64)
    for i in range(size):
        for j in range(i, size):
            share = overlap(values, first + i, first + j)
            if i == j or share >= threshold:
                table[i, j] = table[j, i] = share if codes[first + i] == codes[first + j] else OTHER_CLASS * share
                counts[i + 1] += 1
                counts[j + 1] += i != j
    starts = np.cumsum(counts)
    edges, strength = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
    place = 0
    for i in range(size):
        for j in range(size):
            if table[i, j] > 0.0:
                edges[place], strength[place] = j, table[i, j]
                place += 1
    return starts, edges, strength


@numba.njit(cache=True, nogil=True)
def _gather(
    element: int,
    first: int,
    edge_start: IntArray,
    edges: IntArray,
    strength: FloatArray,
    sources: IntArray,
    alive: BoolArray,
    best: IntArray,
) -> float:
    """Write the best living partner of each source into `best`, the element itself for its own; return how many."""
    count = 0
    at = -1
    held = 0.0
    previous = -1
    for e in range(edge_start[element], edge_start[element + 1]):
        other = edges[e]
        if not alive[other]:
            continue
        source = sources[first + other]
        value = strength[e]
        if source == sources[first + element]:
            value = 2.0 if other == element else 0.0
        if source != previous:
            at, held, previous = count, 0.0, source
            best[at] = -1
        if value > held:
            if best[at] == -1:
                count += 1
            best[at], held = other, value
    return count


@numba.njit(cache=True, nogil=True)
def _support(
    element: int,
    first: int,
    edge_start: IntArray,
    edges: IntArray,
    strength: FloatArray,
    sources: IntArray,
    alive: BoolArray,
    best: IntArray,
) -> float:
    """Return the sum over sources of the best overlap of a living element with one of theirs."""
    total, held, previous = 0.0, 0.0, -1
    for e in range(edge_start[element], edge_start[element + 1]):
        other = edges[e]
        if not alive[other]:
            continue
        source = sources[first + other]
        if source != previous:
            total += held
            held, previous = 0.0, source
        value = strength[e]
        if source == sources[first + element]:
            value = 1.0
        held = max(held, value)
    return total + held


@numba.njit(cache=True, nogil=True)
def _strongest(values: FloatArray, first: int, support: FloatArray, alive: BoolArray) -> int:
    """Return the living element of most support; of equal ones that with the smallest corners, whoever drew it."""
    chosen = -1
    for i in range(len(support)):
        if not alive[i]:
            continue
        if chosen < 0 or support[i] > support[chosen] + 1e-12:
            chosen = i
        elif support[i] >= support[chosen] - 1e-12:
            for axis in range(values.shape[1]):
                if values[first + i, axis] != values[first + chosen, axis]:
                    if values[first + i, axis] < values[first + chosen, axis]:
                        chosen = i
                    break
    return chosen
