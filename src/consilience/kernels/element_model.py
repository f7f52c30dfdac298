"""Matched elements: how probable it is that each is real, where it lies, and what that says about the sources."""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.kernels.element_matching import overlap

__all__ = ["believe_elements", "corner_gaps", "place_elements"]

#: An element nobody marks is at most this probable.
MOST_UNSEEN = 0.98


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
    """Return the middle of the weight; halfway between two values where it falls between them. Both get sorted."""
    half = 0.0
    for i in range(len(values)):
        here, weight, j = values[i], weights[i], i
        half += 0.5 * weight
        while j and values[j - 1] > here:
            values[j], weights[j] = values[j - 1], weights[j - 1]
            j -= 1
        values[j], weights[j] = here, weight
    running = 0.0
    for i in range(len(values)):
        running += weights[i]
        if running >= half * (1.0 - 1e-9):
            if running <= half * (1.0 + 1e-9) and i + 1 < len(values):
                return float(0.5 * (values[i] + values[i + 1]))
            return float(values[i])
    return float(values[-1])
