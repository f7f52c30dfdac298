"""Compiled loops over rankings: comparing and adding up votes; posteriors; Kemeny orders.

A ranking is a position per item, 0 for the first; equal positions are ties and negative ones are items not seen. Pairs
of items i < j are numbered as in ``numpy.triu_indices(r, 1)``; a margin is the weight of "i before j" minus that of "j
before i".

Given the margins, an order has the posterior probability ``p(order) ~ exp(-sum of the margins it contradicts)``. The
normalizer is a sum over orders, which a recursion over subsets turns into ``r 2^r`` terms; running it from both ends
gives the probability of every pair. Longer rankings are sampled. The order that contradicts the least weight (Kemeny)
comes from the same recursion, or from moving single items.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray

#: Rows that go through a recursion side by side, one per lane of the processor's vectors.
_LANES = 32
#: Every factor of a posterior is at most 1, so nothing that underflowed matters where the normalizer is larger.
_TRUSTED = 1e-200
#: Margins up to this sum multiply without overflow: exp(600) < 1e261.
_STEEPEST = 600.0
#: Differences below this share of the largest margin are rounding errors.
_TIE = 1e-12
#: The increment of the splitmix64 generator.
_GOLDEN = 0x9E3779B97F4A7C15


# --- votes ------------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True, inline="always")
def _order(one: int, two: int) -> int:
    """Return 1 if the item at the first position comes before the other, -1 if after it, 0 if neither is said."""
    return int((one >= 0) & (one < two)) - int((two >= 0) & (two < one))


@numba.njit(cache=True, nogil=True)
def pair_sums(positions: npt.NDArray[np.int16], observed: BoolArray) -> IntArray:
    """Return what each two sources have in common, summed over the rows of votes ``(n, m, r)``.

    With S the pairs of items that two votes order alike minus those they order differently, and C those both order:
    ``(6, m, m)`` sums of S, C, S * S, S * C, C * C and of the rows on which both vote.
    """
    n, m, r = positions.shape
    sums = np.zeros((6, m, m), np.int64)
    orders = np.empty((m, r * (r - 1) // 2), np.int8)
    voters = np.empty(m, np.int64)
    for t in range(n):
        votes = 0
        for source in range(m):
            if observed[t, source]:
                voters[votes] = source
                pair = 0
                for i in range(r):
                    for j in range(i + 1, r):
                        orders[votes, pair] = _order(positions[t, source, i], positions[t, source, j])
                        pair += 1
                votes += 1
        for place in range(votes):
            a = voters[place]
            sums[5, a, a] += 1
            for other in range(place + 1, votes):
                b = voters[other]
                sign, common = 0, 0
                for pair in range(orders.shape[1]):
                    product = orders[place, pair] * orders[other, pair]
                    sign += product
                    common += product & 1
                sums[0, a, b] += sign
                sums[1, a, b] += common
                sums[2, a, b] += sign * sign
                sums[3, a, b] += sign * common
                sums[4, a, b] += common * common
                sums[5, a, b] += 1
    for number in range(6):
        for a in range(m):
            for b in range(a):
                sums[number, a, b] = sums[number, b, a]
    return sums


@numba.njit(cache=True, nogil=True)
def compare_votes(positions: npt.NDArray[np.int16], values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compare votes ``(n, m, r)`` with one value per row and pair of items, positive where i comes before j.

    Return ``(n, m)`` sums of the values of pairs ordered like that minus those ordered otherwise, and of their sizes.
    """
    n, m, r = positions.shape
    sums, sizes = np.empty((n, m)), np.empty((n, m))
    for t in range(n):
        for a in range(m):
            total, size, pair = 0.0, 0.0, 0
            for i in range(r):
                for j in range(i + 1, r):
                    value = values[t, pair] * _order(positions[t, a, i], positions[t, a, j])
                    total += value
                    size += abs(value)
                    pair += 1
            sums[t, a], sizes[t, a] = total, size
    return sums, sizes


@numba.njit(cache=True, nogil=True)
def margins_of(positions: npt.NDArray[np.int16], weights: FloatArray) -> FloatArray:
    """Return ``(n, pairs)`` by how much of the weight ``(n, m)`` the votes ``(n, m, r)`` favor i before j."""
    n, m, r = positions.shape
    margins = np.zeros((n, r * (r - 1) // 2))
    for t in range(n):
        for a in range(m):
            weight, pair = weights[t, a], 0
            for i in range(r if weight != 0.0 else 0):
                here = positions[t, a, i]
                for j in range(i + 1, r):
                    margins[t, pair + j - i - 1] += weight * _order(here, positions[t, a, j])
                pair += r - i - 1
    return margins


@numba.njit(cache=True, nogil=True)
def bucket_counts(positions: npt.NDArray[np.int16], sizes: int) -> IntArray:
    """Return ``(m, sizes + 1)``: votes over s items, minus one per bucket of s tied items, per source.

    A bucket order acts like one ranking of all its items minus one ranking per bucket.
    """
    n, m, r = positions.shape
    result = np.zeros((m, sizes + 1), np.int64)
    tied = np.empty(r, np.int64)
    for t in range(n):
        for source in range(m):
            tied[:] = 0
            seen = 0
            for i in range(r):
                place = positions[t, source, i]
                if place >= 0:
                    tied[place] += 1
                    seen += 1
            result[source, seen] += int(seen > 0)
            for place in range(r):
                result[source, tied[place]] -= int(tied[place] > 0)
    return result


# --- posteriors -------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def _combine(values: FloatArray, half: int, nothing: float) -> tuple[FloatArray, FloatArray]:
    """Return ``(size, sets, lanes)`` of ``values[i]`` over all sets of the first `half` items, and of the others.

    They are combined by products if `nothing`, the value of the empty set, is one, and otherwise by sums.
    """
    size, _, lanes = values.shape
    low, high = np.full((size, 1 << half, lanes), nothing), np.full((size, 1 << (size - half), lanes), nothing)
    for i in range(size):
        for item in range(size):
            table = low if item < half else high
            bit = 1 << (item if item < half else item - half)
            for rest in range(bit):
                for lane in range(lanes):
                    one, two = table[i, rest, lane], values[i, item, lane]
                    table[i, rest | bit, lane] = one * two if nothing == 1.0 else one + two
    return low, high


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pair_masses(factor: FloatArray, before: FloatArray) -> FloatArray:
    """Return the normalizer of each lane, and fill ``before[j, i]`` with the mass of the orders that put j before i.

    ``forward[S]`` sums over the orders of the items in S, ``backward[S]`` over the ways to go on. Item i after the set
    S has the product of its factors, looked up in two tables by the lower and the upper half of S.
    """
    size, _, lanes = factor.shape
    n_low = size // 2
    low, high = _combine(factor, n_low, 1.0)
    low_mass, high_mass = np.zeros_like(low), np.zeros_like(high)
    mask, full = (1 << n_low) - 1, (1 << size) - 1
    forward, backward = np.zeros((full + 1, lanes)), np.zeros((full + 1, lanes))
    forward[0] = 1.0
    backward[full] = 1.0
    for chosen in range(1, full + 1):
        for i in range(size):
            if (chosen >> i) & 1:
                rest = chosen ^ (1 << i)
                lower, upper = rest & mask, rest >> n_low
                for lane in range(lanes):
                    forward[chosen, lane] += forward[rest, lane] * low[i, lower, lane] * high[i, upper, lane]
    for chosen in range(full - 1, -1, -1):
        lower, upper = chosen & mask, chosen >> n_low
        for i in range(size):
            if not (chosen >> i) & 1:
                after = chosen | (1 << i)
                for lane in range(lanes):
                    onward = low[i, lower, lane] * high[i, upper, lane] * backward[after, lane]
                    backward[chosen, lane] += onward
                    mass = onward * forward[chosen, lane]
                    low_mass[i, lower, lane] += mass
                    high_mass[i, upper, lane] += mass
    before[:] = 0.0
    for i in range(size):
        for j in range(i):
            mass = low_mass if j < n_low else high_mass
            bit = 1 << (j if j < n_low else j - n_low)
            for rest in range(mass.shape[1]):
                if rest & bit:
                    for lane in range(lanes):
                        before[j, i, lane] += mass[i, rest, lane]
    return forward[full]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def pair_posterior(margins: FloatArray, size: int) -> FloatArray:
    """Return P(i before j) from margins ``(n, pairs)``, exactly; NaN where they contradict each other too strongly.

    Time and memory grow as ``2^size``; meant for up to 14 items.
    """
    n = len(margins)
    probability = np.empty((n, size * (size - 1) // 2))
    factor, before = np.ones((size, size, _LANES)), np.empty((size, size, _LANES))
    for start in range(0, n, _LANES):
        lanes = min(_LANES, n - start)
        for lane in range(lanes):
            pair = 0
            for i in range(size):
                for j in range(i + 1, size):
                    margin = margins[start + lane, pair]
                    contradicted = math.exp(-abs(margin))
                    factor[i, j, lane] = contradicted if margin > 0 else 1.0
                    factor[j, i, lane] = contradicted if margin < 0 else 1.0
                    pair += 1
        normalizer = _pair_masses(factor, before)
        for lane in range(lanes):
            scale = 1.0 / normalizer[lane] if normalizer[lane] > _TRUSTED else np.nan
            pair = 0
            for i in range(size):
                for j in range(i + 1, size):
                    probability[start + lane, pair] = min(before[i, j, lane] * scale, 1.0)
                    pair += 1
    return probability


@numba.njit(cache=True, nogil=True, inline="always")
def _mix(state: np.uint64) -> np.uint64:
    """Return a well-mixed function of a 64-bit number (the last step of splitmix64)."""
    mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def pair_posterior_gibbs(
    margins: FloatArray, size: int, order: IntArray, sweeps: int, burn: int, keys: IntArray
) -> FloatArray:
    """Return P(i before j) from margins ``(n, pairs)``, estimated by Gibbs sampling.

    A sweep takes out every item in turn and puts it back at a place drawn from its exact conditional law. That law,
    rather than the draw, is averaged (Rao-Blackwell), so the estimates are smooth. The chains start from `order`
    ``(n, size)``, best item first, which is changed in place. Each row has the random stream of its key, wherever it
    stands, and leaves the first `burn` sweeps out of the average.
    """
    n = len(margins)
    probability = np.empty((n, size * (size - 1) // 2))
    matrix = np.zeros((size, size))
    ratio = np.empty((size, size))
    ahead = np.empty((size, size))
    weight = np.empty(size)
    rest = np.empty(size, np.int64)
    for t in range(n):
        pair = 0
        for i in range(size):
            for j in range(i + 1, size):
                matrix[i, j] = margins[t, pair]
                matrix[j, i] = -margins[t, pair]
                pair += 1
        direct = True  # whether products of the ratios neither overflow nor vanish
        for i in range(size):
            direct &= np.abs(matrix[i]).sum() < _STEEPEST
            for j in range(size):
                ratio[i, j] = math.exp(-matrix[i, j])
        ahead[:] = 0.0
        state = np.uint64(keys[t]) * np.uint64(0xDA942042E4DD58B5)
        chain = order[t]
        for sweep in range(sweeps):
            for item in range(size):
                kept = 0
                for place in range(size):
                    rest[kept] = chain[place]
                    kept += chain[place] != item
                if direct:
                    weight[0] = 1.0
                    for place in range(size - 1):
                        weight[place + 1] = weight[place] * ratio[item, rest[place]]
                else:
                    weight[0] = 0.0
                    top = 0.0
                    for place in range(size - 1):
                        weight[place + 1] = weight[place] - matrix[item, rest[place]]
                        top = max(top, weight[place + 1])
                    for place in range(size):
                        weight[place] = math.exp(weight[place] - top)
                for place in range(1, size):  # cumulative: item stands before rest[place] with share weight[place]
                    weight[place] += weight[place - 1]
                if sweep >= burn:
                    scale = 1.0 / weight[size - 1]
                    for place in range(size - 1):
                        ahead[item, rest[place]] += weight[place] * scale
                state += np.uint64(_GOLDEN)
                uniform = float(_mix(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0) * weight[size - 1]
                target = 0
                while target < size - 1 and weight[target] <= uniform:
                    target += 1
                for place in range(target):
                    chain[place] = rest[place]
                chain[target] = item
                for place in range(target, size - 1):
                    chain[place + 1] = rest[place]
        averaged = sweeps - burn
        pair = 0
        for i in range(size):
            for j in range(i + 1, size):
                share = 0.5 * (ahead[i, j] - ahead[j, i] + averaged) / averaged
                probability[t, pair] = min(max(share, 0.0), 1.0)
                pair += 1
    return probability


# --- Kemeny orders ----------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def order_exactly(square: FloatArray, orders: IntArray, blocks: IntArray, size: int) -> FloatArray:
    """Put blocks of one size (row, first place, last place) into the order of least cost, in place; return the costs.

    ``best[S] = min over the last item i of S of best[S - i] + price of S - i before i``; the largest margin is 1.
    """
    n_low, full = size // 2, (1 << size) - 1
    mask = (1 << n_low) - 1
    costs = np.empty(len(blocks))
    for done in range(0, len(blocks), _LANES):
        lanes = min(_LANES, len(blocks) - done)
        price = np.zeros((size, size, lanes))
        for lane in range(lanes):
            t, start = blocks[done + lane, 0], blocks[done + lane, 1]
            for i in range(size):
                for j in range(size):
                    price[i, j, lane] = max(square[t, orders[t, start + i], orders[t, start + j]], 0.0)
        low, high = _combine(price, n_low, 0.0)
        best = np.full((full + 1, lanes), np.inf)
        best[0] = 0.0
        for chosen in range(1, full + 1):
            for i in range(size):
                if (chosen >> i) & 1:
                    before = chosen ^ (1 << i)
                    lower, upper = before & mask, before >> n_low
                    for lane in range(lanes):
                        cost = best[before, lane] + low[i, lower, lane] + high[i, upper, lane]
                        best[chosen, lane] = min(cost, best[chosen, lane])
        for lane in range(lanes):
            t, start = blocks[done + lane, 0], blocks[done + lane, 1]
            costs[done + lane] = best[full, lane]
            member = orders[t, start : start + size].copy()
            chosen = full
            for place in range(start + size - 1, start - 1, -1):
                for i in range(size - 1, -1, -1):  # the least preferred item that can be last
                    before = chosen ^ (1 << i)
                    if (chosen >> i) & 1:
                        cost = best[before, lane] + low[i, before & mask, lane] + high[i, before >> n_low, lane]
                        if cost <= best[chosen, lane] + _TIE:
                            break
                orders[t, place] = member[i]
                chosen = before
    return costs


@numba.njit(cache=True, nogil=True)
def search_order(matrix: FloatArray, order: IntArray, starts: int, state: np.uint64) -> tuple[IntArray, float]:
    """Improve an order by moving single items, then again from disturbed copies of the best; return it and its cost."""
    size = len(matrix)
    best = order.copy()
    least = np.inf
    for start in range(max(starts, 1)):
        if start > 0:
            order = best.copy()
            for _ in range(max(3, size // 4)):
                state += np.uint64(_GOLDEN)
                draw = _mix(state)
                one = np.int64((draw >> np.uint64(33)) % np.uint64(size))
                two = np.int64((draw & np.uint64(0x7FFFFFFF)) % np.uint64(size))
                order[one], order[two] = order[two], order[one]
        moved = True
        while moved:
            moved = False
            for place in range(size):
                item = order[place]
                gain, target = -_TIE, place
                for step in (-1, 1):
                    change = 0.0
                    other = place + step
                    while 0 <= other < size:
                        change += step * matrix[item, order[other]]
                        if change < gain:
                            gain, target = change, other
                        other += step
                if target != place:
                    moved = True
                    step = 1 if target > place else -1
                    for other in range(place, target, step):
                        order[other] = order[other + step]
                    order[target] = item
        cost = 0.0
        for place in range(size):
            for other in range(place + 1, size):
                cost += max(matrix[order[other], order[place]], 0.0)
        if cost < least:
            least = cost
            best = order.copy()
    return best, least


@numba.njit(cache=True, nogil=True)
def cycle_bound(matrix: FloatArray) -> float:
    """Return a cost no order avoids: of every 3-cycle one arc is lost. Uses up the matrix."""
    size = len(matrix)
    bound = 0.0
    for i in range(size):
        for j in range(size):
            if matrix[i, j] > 0:
                for k in range(size):
                    if matrix[j, k] > 0 and matrix[k, i] > 0:
                        least = min(matrix[i, j], matrix[j, k], matrix[k, i])
                        bound += least
                        matrix[i, j] -= least
                        matrix[j, k] -= least
                        matrix[k, i] -= least
                        if matrix[i, j] <= 0:
                            break
    return bound


@numba.njit(cache=True, nogil=True)
def put_preferred_first(square: FloatArray, orders: IntArray) -> None:
    """Swap tied neighbors that stand against the preference, in place."""
    for t in range(len(orders)):
        order = orders[t]
        for last in range(1, len(order)):
            item = order[last]
            place = last
            while place > 0 and item < order[place - 1] and square[t, item, order[place - 1]] == 0:
                order[place] = order[place - 1]
                place -= 1
            order[place] = item
