"""Sets of elements: their costs, marks matched across sources, and what is believed about each match."""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = [
    "believe_elements",
    "best_total",
    "corner_gaps",
    "match_elements",
    "overlap",
    "place_elements",
    "set_costs",
]

#: An element nobody marks is at most this probable.
MOST_UNSEEN = 0.98

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


@numba.njit(cache=True, nogil=True)
def believe_elements(
    group_start: IntArray,
    member_source: IntArray,
    item_groups: IntArray,
    voter_start: IntArray,
    voters: IntArray,
    shares: FloatArray,
    told: IntArray,
    logit: FloatArray,
    false_rate: FloatArray,
    real_share: float,
    coincidence: float,
    visibility: FloatArray,
    log_weight: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how probable it is that each group of marks is a real element, and what each source did about them.

    A real element has a visibility h, and source s marks it with the probability ``sigmoid(logit_s + h)``; only those
    that somebody marks are seen. A false element belongs to one source, drawn by the false rates, and every other
    source happens to mark it with the probability `coincidence`.

    Parameters
    ----------
    group_start : array of shape (groups + 1,)
        First mark of each group; `member_source` has the source of each mark. Sources from ``len(logit)`` on are not
        counted: they are the truth.
    item_groups : array of shape (n + 1,)
        First group of each item.
    voter_start, voters
        Sources that saw each item.
    shares : array of shape (n, m)
        How much each vote counts.
    told : array of shape (groups,)
        1 for an element known to be real, 0 for one known to be false, -1 where nothing is known.
    visibility, log_weight : arrays of shape (h,)

    Returns
    -------
    probability : array of shape (groups,)
    unseen : array of shape (n,)
        Expected number of real elements that nobody marked.
    exposure : array of shape (m, h)
        Expected number of real elements of each visibility that a source could have marked, seen or not.
    """
    m, nodes = len(logit), len(visibility)
    hit, miss = np.empty((m, nodes)), np.empty((m, nodes))
    for s in range(m):
        for h in range(nodes):
            level = logit[s] + visibility[h]
            hit[s, h] = -np.log1p(np.exp(-level)) if level > -30.0 else level
            miss[s, h] = hit[s, h] - level
    probability = np.empty(len(group_start) - 1)
    unseen, exposure = np.zeros(len(voter_start) - 1), np.zeros((m, nodes))
    prior = np.log(real_share) - np.log1p(-real_share)
    log_same, log_apart = np.log(coincidence), np.log1p(-coincidence)
    silent, terms, seen_real = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    for item in range(len(voter_start) - 1):
        present, rate = 0.0, 0.0
        silent[:] = log_weight
        for v in range(voter_start[item], voter_start[item + 1]):
            s = voters[v]
            present += shares[item, s]
            rate += shares[item, s] * false_rate[s]
            for h in range(nodes):
                silent[h] += shares[item, s] * miss[s, h]
        nobody = min(np.exp(silent).sum(), MOST_UNSEEN)
        seen_real[:] = 0.0
        real = 0.0
        known = False
        for g in range(item_groups[item], item_groups[item + 1]):
            terms[:] = silent
            marks, own_rate = 0.0, 0.0
            for k in range(group_start[g], group_start[g + 1]):
                s = member_source[k]
                if s < m:
                    marks += shares[item, s]
                    own_rate += shares[item, s] * false_rate[s]
                    for h in range(nodes):
                        terms[h] += shares[item, s] * (hit[s, h] - miss[s, h])
            top = terms.max()
            terms[:] = np.exp(terms - top)
            total = terms.sum()
            if told[g] >= 0:
                known = True
                q = float(told[g])
            else:
                by_truth = top + np.log(total) - np.log1p(-nobody)
                by_chance = np.log(own_rate / rate) + max(marks - 1.0, 0.0) * log_same
                by_chance += (present - max(marks, 1.0)) * log_apart
                odds = min(max(prior + by_truth - by_chance, -30.0), 30.0)
                q = 1.0 / (1.0 + np.exp(-odds))
            probability[g] = q
            real += q
            seen_real += q / total * terms
        if known:  # the truth of this item is told, so that nothing real is unseen
            terms[:] = 0.0
        else:
            unseen[item] = real * nobody / (1.0 - nobody)
            terms[:] = real / (1.0 - nobody) * np.exp(silent)
        for v in range(voter_start[item], voter_start[item + 1]):
            exposure[voters[v]] += seen_real + terms
    return probability, unseen, exposure


@numba.njit(cache=True, nogil=True)
def place_elements(
    values: FloatArray,
    codes: IntArray,
    group_start: IntArray,
    members: IntArray,
    member_source: IntArray,
    group_item: IntArray,
    shares: FloatArray,
    precision: FloatArray,
    class_weight: FloatArray,
    n_classes: int,
) -> tuple[FloatArray, IntArray, FloatArray, BoolArray]:
    """Return where each group of marks lies: the weighted medians of the corners, and the class of most votes.

    Parameters
    ----------
    members : array of shape (marks,)
        Element behind each mark, group by group.
    precision, class_weight : arrays of shape (m,)
        How much the corners and the class of a source count.

    Returns
    -------
    places : array of shape (groups, 2 d)
        Those of the truth where a member is from a source beyond the others.
    kinds : array of shape (groups,)
    common : array of shape (marks,)
        Overlap with the place.
    judged : array of shape (groups,)
        Whether there are enough votes on the class to judge a source by it: three, or the truth.
    """
    width, m = values.shape[1], len(precision)
    n_groups = len(group_start) - 1
    places, kinds = np.zeros((n_groups, width)), np.zeros(n_groups, dtype=np.int64)
    common = np.zeros(len(members))
    judged = np.zeros(n_groups, dtype=np.bool_)
    votes = np.zeros(max(n_classes, 1))
    both = np.empty((2, width))
    for g in range(n_groups):
        first, last = group_start[g], group_start[g + 1]
        weight, corner, sorted_weight = np.empty(last - first), np.empty(last - first), np.empty(last - first)
        votes[:] = 0.0
        truth, counted = -1, 0.0
        for k in range(first, last):
            s = member_source[k]
            if s >= m:
                truth = members[k]
                weight[k - first] = 1.0
            else:
                weight[k - first] = shares[group_item[g], s] * precision[s]
                counted += shares[group_item[g], s]
                votes[codes[members[k]]] += shares[group_item[g], s] * class_weight[s]
        if truth >= 0:
            places[g] = values[truth]
            kinds[g] = codes[truth]
        else:
            for axis in range(width):
                for k in range(first, last):
                    corner[k - first] = values[members[k], axis]
                    sorted_weight[k - first] = weight[k - first]
                places[g, axis] = _weighted_median(corner, sorted_weight)
            kinds[g] = votes.argmax()
        judged[g] = truth >= 0 or (last - first >= 3 and counted > 2.5)
        both[0] = places[g]
        for k in range(first, last):
            both[1] = values[members[k]]
            common[k] = overlap(both, 0, 1)
    return places, kinds, common, judged


@numba.njit(cache=True, nogil=True)
def corner_gaps(
    values: FloatArray,
    group_start: IntArray,
    members: IntArray,
    member_source: IntArray,
    probability: FloatArray,
    places: FloatArray,
    m: int,
) -> FloatArray:
    """Return sums over matched marks of two sources: how often they meet, and how far their corners are apart.

    Returns
    -------
    array of shape (2, m + 1, m + 1)
        Both are weighted by the probability that the element is real. Distances are means over the corners, as shares
        of the element's mean side and at most 1; the last source is the truth.
    """
    sums = np.zeros((2, m + 1, m + 1))
    width = values.shape[1]
    half = width // 2
    for g in range(len(group_start) - 1):
        size = 0.0
        for axis in range(half):
            size += (places[g, half + axis] - places[g, axis]) / half
        if size <= 0.0:
            continue
        for i in range(group_start[g], group_start[g + 1]):
            for j in range(i + 1, group_start[g + 1]):
                gap = 0.0
                for axis in range(width):
                    gap += abs(values[members[i], axis] - values[members[j], axis]) / width
                gap = probability[g] * min(gap / size, 1.0)
                for a, b in ((member_source[i], member_source[j]), (member_source[j], member_source[i])):
                    sums[0, a, b] += probability[g]
                    sums[1, a, b] += gap
    return sums


@numba.njit(cache=True, nogil=True)
def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the weighted median, between values as the middle of the weight lies between theirs. Both get sorted.

    Without that interpolation weights that hardly differ would decide between the two middle values.
    """
    half = 0.0
    for i in range(len(values)):
        here, weight, j = values[i], weights[i], i
        half += 0.5 * weight
        while j and values[j - 1] > here:
            values[j], weights[j] = values[j - 1], weights[j - 1]
            j -= 1
        values[j], weights[j] = here, weight
    middle, running = 0.5 * weights[0], weights[0]
    if half <= middle:
        return float(values[0])
    for i in range(1, len(values)):
        before, middle = middle, running + 0.5 * weights[i]
        running += weights[i]
        if middle >= half:
            share = (half - before) / max(middle - before, 1e-300)
            return float(values[i - 1] + share * (values[i] - values[i - 1]))
    return float(values[-1])
