"""Sets of elements: their costs, marks matched across sources, and where each match lies."""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

#: Factor on the overlap of two elements of different classes when they are matched. With 1, neighbors of different
#: classes would be merged. With 0, a wrong class would create a second element.
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
        if high < low:
            return 0.0
        inside *= high - low
        one *= values[left, half + axis] - values[left, axis]
        two *= values[right, half + axis] - values[right, axis]
        same &= values[left, axis] == values[right, axis] and values[left, half + axis] == values[right, half + axis]
    if same:
        return 1.0
    union = one + two - inside
    return inside / union if union > 0.0 else 0.0


@numba.njit(cache=True, nogil=True)
def overlaps(values: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """Return the overlaps of pairs of elements."""
    found = np.empty(len(left))
    for pair in range(len(left)):
        found[pair] = overlap(values, left[pair], right[pair])
    return found


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
def _covered(values: FloatArray, codes: IntArray, spans: IntArray) -> float:
    """Return how many characters these spans cover, each counted once per class."""
    ends = np.full(codes[spans].max() + 1, -np.inf)
    total = 0.0
    for span in spans[np.argsort(values[spans, 0])]:
        start, end, kind = values[span, 0], values[span, 1], codes[span]
        total += max(end - max(start, ends[kind]), 0.0)
        ends[kind] = max(end, ends[kind])
    return total


@numba.njit(cache=True, nogil=True)
def length_costs(values: FloatArray, codes: IntArray, starts: IntArray, pairs: IntArray) -> FloatArray:
    """Return what `set_costs` does, where lengths in common count instead of overlaps of matched elements."""
    costs = np.zeros(len(pairs))
    for k in range(len(pairs)):
        one = np.arange(starts[pairs[k, 0]], starts[pairs[k, 0] + 1])
        two = np.arange(starts[pairs[k, 1]], starts[pairs[k, 1] + 1])
        if len(one) == 0 or len(two) == 0:
            costs[k] = 0.0 if len(one) == len(two) else 1.0
            continue
        size = _covered(values, codes, one) + _covered(values, codes, two)
        common = size - _covered(values, codes, np.append(one, two))
        costs[k] = min(max(1.0 - 2.0 * common / size, 0.0), 1.0)
    return costs


@numba.njit(cache=True, nogil=True)
def set_costs(values: FloatArray, codes: IntArray, starts: IntArray, pairs: IntArray) -> FloatArray:
    """Return one minus the F1 of ``(n, 2)`` pairs of sets, where overlaps of matched elements count.

    `values` and `codes` are the elements of all sets, one set after the other, and their classes.
    """
    costs = np.zeros(len(pairs))
    for k in range(len(pairs)):
        a, a_end = starts[pairs[k, 0]], starts[pairs[k, 0] + 1]
        b, b_end = starts[pairs[k, 1]], starts[pairs[k, 1] + 1]
        if a == a_end or b == b_end:
            costs[k] = 0.0 if a == a_end and b == b_end else 1.0
            continue
        size = float(a_end - a + b_end - b)
        if a_end - a > b_end - b:
            a, a_end, b, b_end = b, b_end, a, a_end
        gain = np.zeros((a_end - a, b_end - b))
        total, met, alone = 0.0, np.zeros(b_end - b, dtype=np.bool_), True
        for i in range(a_end - a):
            once = False
            for j in range(b_end - b):
                if codes[a + i] == codes[b + j]:
                    gain[i, j] = overlap(values, a + i, b + j)
                    if gain[i, j] > 0.0:
                        alone = alone and not once and not met[j]
                        once = met[j] = True
                        total += gain[i, j]
        if not alone:  # there is a choice
            total = best_total(gain)
        costs[k] = min(max(1.0 - 2.0 * total / size, 0.0), 1.0)
    return costs


@numba.njit(cache=True, nogil=True)
def match_elements(
    values: FloatArray, codes: IntArray, sources: IntArray, starts: IntArray, threshold: float
) -> tuple[IntArray, IntArray]:
    """Return the group of matched elements that each element belongs to, and the item of each group.

    The element that most sources support, by the sum of its best overlap with each of them, takes the best element of
    every source along; then the next. An element supports another from this overlap on. A group has at most one
    element of each source. Overlaps with elements of another class count half. Sources are in order within each item.
    """
    group = np.full(len(values), -1, dtype=np.int64)
    items = np.empty(len(values), dtype=np.int64)
    n_groups = 0
    for item in range(len(starts) - 1):
        first, size = starts[item], starts[item + 1] - starts[item]
        own = sources[first : first + size]
        strength = np.zeros((size, size))
        low = values[first : first + size, 0].copy()
        high = values[first : first + size, values.shape[1] // 2].copy()
        for i in range(size):
            for j in range(i + 1):
                if high[j] < low[i] or high[i] < low[j] or (i != j and own[i] == own[j]):
                    continue
                share = overlap(values, first + i, first + j)
                if share >= threshold:
                    same = codes[first + i] == codes[first + j]
                    strength[i, j] = strength[j, i] = share if same else OTHER_CLASS * share
        living, support = np.arange(size), np.empty(size)
        best = np.zeros(size, dtype=np.int64)
        for i in range(size):
            support[i] = _gather(strength[i], own, living, best)[1]
        while len(living):
            count, _ = _gather(strength[_strongest(values, first, support, living)], own, living, best)
            for k in range(count):
                group[first + best[k]] = n_groups
            left = 0
            for other in living:
                if group[first + other] < 0:
                    living[left] = other
                    left += 1
            taken, living = best[:count].copy(), living[:left]
            for other in living:
                for element in taken:
                    if strength[other, element] > 0.0:
                        support[other] = _gather(strength[other], own, living, best)[1]
                        break
            items[n_groups] = item
            n_groups += 1
    return group, items[:n_groups]


@numba.njit(cache=True, nogil=True)
def _gather(strength: FloatArray, sources: IntArray, living: IntArray, best: IntArray) -> tuple[int, float]:
    """Write the best living partner of each source into `best`; return how many there are, and their total overlap."""
    count, previous = 0, -1
    for other in living:
        if strength[other] <= 0.0:
            continue
        if sources[other] != previous:
            previous = sources[other]
            best[count] = other
            count += 1
        elif strength[other] > strength[best[count - 1]]:
            best[count - 1] = other
    total = 0.0
    for k in range(count):
        total += strength[best[k]]
    return count, total


@numba.njit(cache=True, nogil=True)
def _strongest(values: FloatArray, first: int, support: FloatArray, living: IntArray) -> int:
    """Return the living element of most support; of equal ones that with the smallest corners, whoever drew it."""
    chosen = living[0]
    for i in living[1:]:
        if support[i] > support[chosen] + 1e-12:
            chosen = i
        elif support[i] >= support[chosen] - 1e-12:
            for axis in range(values.shape[1]):
                if values[first + i, axis] != values[first + chosen, axis]:
                    if values[first + i, axis] < values[first + chosen, axis]:
                        chosen = i
                    break
    return int(chosen)


@numba.njit(cache=True, nogil=True)
def place_elements(
    values: FloatArray,
    codes: IntArray,
    starts: IntArray,
    source: IntArray,
    item: IntArray,
    shares: FloatArray,
    precision: FloatArray,
    class_weight: FloatArray,
    n_classes: int,
) -> tuple[FloatArray, IntArray, FloatArray, BoolArray]:
    """Return where each group of marks lies: the weighted medians of the corners, and the class of most votes.

    Returned are `places`, `kinds`, `common` and `judged` of `Belief`, those of the truth where it is known. A class is
    judged by three votes, or the truth. `precision` and `class_weight` say how much a source counts.
    """
    width, m = values.shape[1], len(precision)
    n_groups = len(starts) - 1
    places, kinds = np.zeros((n_groups, width)), np.zeros(n_groups, dtype=np.int64)
    common, judged = np.zeros(len(values)), np.zeros(n_groups, dtype=np.bool_)
    both, votes = np.empty((2, width)), np.empty(max(n_classes, 1))
    weight, column, weights = np.empty(len(values)), np.empty(len(values)), np.empty(len(values))
    for g in range(n_groups):
        first, last = starts[g], starts[g + 1]
        for kind in range(len(votes)):
            votes[kind] = 0.0
        truth, counted = -1, 0.0
        for k in range(first, last):
            if source[k] >= m:
                truth = k
            else:
                share = shares[item[g], source[k]]
                weight[k - first] = share * precision[source[k]]
                votes[codes[k]] += share * class_weight[source[k]]
                counted += share
        kinds[g] = codes[truth] if truth >= 0 else votes.argmax()
        for axis in range(width):
            if truth >= 0:
                places[g, axis] = values[truth, axis]
            else:
                for k in range(last - first):
                    column[k], weights[k] = values[first + k, axis], weight[k]
                places[g, axis] = _weighted_median(column[: last - first], weights[: last - first])
            both[0, axis] = places[g, axis]
        judged[g] = truth >= 0 or (last - first >= 3 and counted > 2.5)
        for k in range(first, last):
            for axis in range(width):
                both[1, axis] = values[k, axis]
            common[k] = overlap(both, 0, 1)
    return places, kinds, common, judged


@numba.njit(cache=True, nogil=True)
def corner_gaps(
    values: FloatArray, starts: IntArray, source: IntArray, probability: FloatArray, places: FloatArray, m: int
) -> FloatArray:
    """Return ``(2, m + 1, m + 1)`` how often matched marks of two sources meet, and how far their corners are apart.

    Both are weighted by the probability that the element is real. Distances are means over the corners, as shares
    of the element's mean side and at most 1; the last source is the truth.
    """
    sums = np.zeros((2, m + 1, m + 1))
    half = values.shape[1] // 2
    for g in range(len(starts) - 1):
        size = 0.0
        for axis in range(half):
            size += (places[g, half + axis] - places[g, axis]) / half
        if size <= 0.0:
            continue
        for i in range(starts[g], starts[g + 1]):
            for j in range(i + 1, starts[g + 1]):
                apart, a, b = 0.0, source[i], source[j]
                for corner in range(2 * half):
                    apart += abs(values[i, corner] - values[j, corner]) / (2 * half)
                sums[0, a, b] += probability[g]
                sums[1, a, b] += probability[g] * min(apart / size, 1.0)
    for a in range(m + 1):  # a source has at most one mark in a group
        for b in range(a):
            for number in range(2):
                sums[number, a, b] += sums[number, b, a]
                sums[number, b, a] = sums[number, a, b]
    return sums


@numba.njit(cache=True, nogil=True)
def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the weighted median, between values as the middle of the weight lies between theirs. Both get sorted.

    Without that interpolation weights that hardly differ would decide between the two middle values. A value counts
    from half a weight after its first vote to half a weight before its last one; the mean weight of its votes, so that
    it does not matter which of them comes first.
    """
    half = 0.0
    for i in range(len(values)):
        here, weight, j = values[i], weights[i], i
        half += 0.5 * weight
        while j and values[j - 1] > here:
            values[j], weights[j] = values[j - 1], weights[j - 1]
            j -= 1
        values[j], weights[j] = here, weight
    first, running, left = 0, 0.0, 0.0
    while first < len(values):
        last, total = first, 0.0
        while last < len(values) and values[last] == values[first]:
            total += weights[last]
            last += 1
        margin = 0.5 * total / (last - first)
        reached = running + margin
        if half <= running + total - margin:
            if first == 0 or half >= reached:
                return float(values[first])
            share = (half - left) / max(reached - left, 1e-300)
            return float(values[first - 1] + share * (values[first] - values[first - 1]))
        first, running, left = last, running + total, running + total - margin
    return float(values[-1])
