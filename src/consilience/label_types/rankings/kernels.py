"""Compiled loops over rankings: posteriors and Kemeny orders of many or of long ones.

Pairs and margins are those of `law`, the recursion is that of `orders`. Longer rankings are sampled, and ordered by
moving single items.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from consilience.arrays import FloatArray, IntArray
from consilience.label_types.rankings.orders import TIE

#: Rows that go through a recursion in parallel, one per SIMD lane.
_LANES = 32
#: Exponentials of margins up to this sum do not overflow: exp(600) < 1e261.
_STEEPEST = 600.0
#: The increment of the splitmix64 generator.
_GOLDEN = 0x9E3779B97F4A7C15


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
def sum_orders(margins: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Return P(i before j) from margins ``(n, pairs)``, and the normalizers of the posteriors ``(n,)``."""
    n = len(margins)
    probability, mass = np.empty((n, size * (size - 1) // 2)), np.empty(n)
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
            mass[start + lane] = normalizer[lane]
            pair = 0
            for i in range(size):
                for j in range(i + 1, size):
                    probability[start + lane, pair] = min(before[i, j, lane] / normalizer[lane], 1.0)
                    pair += 1
    return probability, mass


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
        direct = True  # whether products of the ratios neither overflow nor underflow
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
def order_exactly(price: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the orders of least cost ``(n, size)`` and their costs, see `best_orders`.

    ``best[S] = min over the last item i of S of best[S - i] + price of S - i before i``.
    """
    n, size, _ = price.shape
    n_low, full = size // 2, (1 << size) - 1
    mask = (1 << n_low) - 1
    orders, costs = np.empty((n, size), np.int64), np.empty(n)
    for done in range(0, n, _LANES):
        lanes = min(_LANES, n - done)
        side_by_side = np.empty((size, size, lanes))
        for lane in range(lanes):
            side_by_side[:, :, lane] = price[done + lane]
        low, high = _combine(side_by_side, n_low, 0.0)
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
            costs[done + lane] = best[full, lane]
            chosen = full
            for place in range(size - 1, -1, -1):
                for i in range(size - 1, -1, -1):  # the least preferred item among those that can be last
                    before = chosen ^ (1 << i)
                    if (chosen >> i) & 1:
                        cost = best[before, lane] + low[i, before & mask, lane] + high[i, before >> n_low, lane]
                        if cost <= best[chosen, lane] + TIE:
                            break
                orders[done + lane, place] = i
                chosen = before
    return orders, costs


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
                gain, target = -TIE, place
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
