"""Probability that one item stands before another, given weighted votes on every pair.

The law is ``p(order) ∝ exp(-sum of the weights of the pairs it contradicts)``. Its normaliser is a sum over
orders that the subset recursion of exact Kemeny aggregation turns into ``r 2^r`` terms; running it from both ends
gives every pair probability as well. Above about 14 items, sample.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from consilience.arrays import FloatArray, IntArray

__all__ = ["pair_posterior", "pair_posterior_gibbs"]

#: Rows of equal size go through the recursion side by side, one per lane of the processor's vectors.
_LANES = 32
#: Every factor is at most 1, so above this normaliser nothing that underflowed could have mattered.
_TRUSTED = 1e-200


@numba.njit(cache=True, nogil=True, inline="always")
def _fill(margins: FloatArray, r: int, size: int, matrix: FloatArray) -> None:
    """Write the antisymmetric matrix of the first `size` items of a row."""
    for i in range(size):
        matrix[i, i] = 0.0
        first = i * r - i * (i + 1) // 2 - i - 1
        for j in range(i + 1, size):
            matrix[i, j] = margins[first + j]
            matrix[j, i] = -margins[first + j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _recursion(
    factor: FloatArray,
    size: int,
    lanes: int,
    low: FloatArray,
    high: FloatArray,
    forward: FloatArray,
    backward: FloatArray,
    low_mass: FloatArray,
    high_mass: FloatArray,
) -> None:
    """Run the recursion from both ends, in place, for a block of rows of one size.

    ``forward[S]`` sums over the orders of the items in S, ``backward[S]`` over the ways to go on. Item i after the
    set T has weight ``low[i, lower bits of T] * high[i, upper bits of T]``; the masses collect how much of the total
    passes through (T, i), by either half of T.
    """
    n_low = size // 2
    low_sets = 1 << n_low
    high_sets = 1 << (size - n_low)
    full = (1 << size) - 1
    for i in range(size):
        for lane in range(lanes):
            low[i, 0, lane] = 1.0
            high[i, 0, lane] = 1.0
        for bit in range(n_low):
            for rest in range(1 << bit):
                for lane in range(lanes):
                    low[i, rest | (1 << bit), lane] = low[i, rest, lane] * factor[i, bit, lane]
        for bit in range(size - n_low):
            for rest in range(1 << bit):
                for lane in range(lanes):
                    high[i, rest | (1 << bit), lane] = high[i, rest, lane] * factor[i, bit + n_low, lane]
    total = np.empty(lanes)
    for lane in range(lanes):
        forward[0, lane] = 1.0
        backward[full, lane] = 1.0
    for chosen in range(1, full + 1):
        for lane in range(lanes):
            total[lane] = 0.0
        for i in range(size):
            if (chosen >> i) & 1:
                before = chosen ^ (1 << i)
                lower = before & (low_sets - 1)
                upper = before >> n_low
                for lane in range(lanes):
                    total[lane] += forward[before, lane] * low[i, lower, lane] * high[i, upper, lane]
        for lane in range(lanes):
            forward[chosen, lane] = total[lane]
    for i in range(size):
        for lower in range(low_sets):
            for lane in range(lanes):
                low_mass[i, lower, lane] = 0.0
        for upper in range(high_sets):
            for lane in range(lanes):
                high_mass[i, upper, lane] = 0.0
    for chosen in range(full - 1, -1, -1):
        lower = chosen & (low_sets - 1)
        upper = chosen >> n_low
        for lane in range(lanes):
            total[lane] = 0.0
        for i in range(size):
            if not (chosen >> i) & 1:
                after = chosen | (1 << i)
                for lane in range(lanes):
                    rest = low[i, lower, lane] * high[i, upper, lane] * backward[after, lane]
                    total[lane] += rest
                    mass = rest * forward[chosen, lane]
                    low_mass[i, lower, lane] += mass
                    high_mass[i, upper, lane] += mass
        for lane in range(lanes):
            backward[chosen, lane] = total[lane]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _recursion_in_logs(matrix: FloatArray, size: int, before: FloatArray) -> float:
    """Fill ``before[j, i]`` = P(j before i) for one row of any magnitude; return the log normaliser.

    Sums are kept relative to the cheapest order of each set: the forward ones then lie between 1 and size!, and
    whatever underflows in the backward ones belongs to orders of no weight.
    """
    full = (1 << size) - 1
    cheapest = np.empty(full + 1)
    forward = np.empty(full + 1)
    backward = np.empty(full + 1)
    step = np.zeros((size, full + 1))  # cost of item i after a set, then its weight relative to the cheapest order
    for i in range(size):
        for bit in range(size):
            price = max(matrix[i, bit], 0.0)
            for rest in range(1 << bit):
                step[i, rest | (1 << bit)] = step[i, rest] + price
    cheapest[0] = 0.0
    forward[0] = 1.0
    for chosen in range(1, full + 1):
        least = np.inf
        for i in range(size):
            if (chosen >> i) & 1:
                rest = chosen ^ (1 << i)
                least = min(least, cheapest[rest] + step[i, rest])
        total = 0.0
        for i in range(size):
            if (chosen >> i) & 1:
                rest = chosen ^ (1 << i)
                step[i, rest] = math.exp(least - cheapest[rest] - step[i, rest])
                total += forward[rest] * step[i, rest]
        cheapest[chosen] = least
        forward[chosen] = total
    backward[full] = 1.0 / forward[full]
    before[:size, :size] = 0.0
    for chosen in range(full - 1, -1, -1):
        total = 0.0
        for i in range(size):
            if not (chosen >> i) & 1:
                onward = step[i, chosen] * backward[chosen | (1 << i)]
                total += onward
                mass = onward * forward[chosen]
                if mass > 0.0:
                    for j in range(size):
                        before[j, i] += mass * ((chosen >> j) & 1)
        backward[chosen] = total
    return float(math.log(forward[full]) - cheapest[full])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def pair_posterior(margins: FloatArray, r: int, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return P(i before j) for every pair of items, exactly, and the log normaliser of every row.

    Time and memory grow as ``2^size``; meant for up to 14 items. Margins may be of any magnitude: a row whose
    normaliser underflows is done again relative to its best order.

    Parameters
    ----------
    margins
        ``(n, r (r - 1) / 2)``: total weight of "i before j" minus that of "j before i", pairs i < j in the order of
        ``numpy.triu_indices(r, 1)``.
    sizes
        ``(n,)``: only the first ``sizes[t]`` items of row t exist.

    Returns
    -------
    probability
        ``(n, r (r - 1) / 2)``; 1/2 for pairs with an item that does not exist.
    log_normaliser
        ``(n,)`` log of the sum over orders of ``exp(-total |margin| of the contradicted pairs)``.
    """
    n = margins.shape[0]
    probability = np.full((n, r * (r - 1) // 2), 0.5)
    log_normaliser = np.zeros(n)
    largest = 2
    count = np.zeros(r + 2, np.int64)
    for t in range(n):
        largest = max(largest, sizes[t])
        count[sizes[t] + 1] += 1
    first = np.cumsum(count)
    by_size = np.empty(n, np.int64)
    filled = first.copy()
    for t in range(n):
        by_size[filled[sizes[t]]] = t
        filled[sizes[t]] += 1
    half = 1 << (largest - largest // 2)
    low = np.empty((largest, half, _LANES))
    high = np.empty((largest, half, _LANES))
    low_mass = np.empty((largest, half, _LANES))
    high_mass = np.empty((largest, half, _LANES))
    forward = np.empty((1 << largest, _LANES))
    backward = np.empty((1 << largest, _LANES))
    factor = np.empty((largest, largest, _LANES))
    matrix = np.empty((largest, largest))
    before = np.empty((largest, largest))
    for size in range(2, min(largest, r) + 1):
        n_low = size // 2
        for start in range(first[size], first[size + 1], _LANES):
            lanes = min(_LANES, first[size + 1] - start)
            for lane in range(lanes):
                t = by_size[start + lane]
                for i in range(size):
                    offset = i * r - i * (i + 1) // 2 - i - 1
                    for j in range(i + 1, size):
                        margin = margins[t, offset + j]
                        contradicted = math.exp(-abs(margin))
                        factor[i, j, lane] = contradicted if margin > 0 else 1.0
                        factor[j, i, lane] = contradicted if margin < 0 else 1.0
            _recursion(factor, size, lanes, low, high, forward, backward, low_mass, high_mass)
            for lane in range(lanes):
                t = by_size[start + lane]
                normaliser = forward[(1 << size) - 1, lane]
                trusted = normaliser > _TRUSTED
                if trusted:
                    log_normaliser[t] = math.log(normaliser)
                else:
                    _fill(margins[t], r, size, matrix)
                    log_normaliser[t] = _recursion_in_logs(matrix, size, before)
                for j in range(1, size):
                    for i in range(j):
                        if not trusted:
                            share = before[i, j]
                        else:
                            mass = 0.0
                            if i < n_low:
                                for rest in range(1 << n_low):
                                    if (rest >> i) & 1:
                                        mass += low_mass[j, rest, lane]
                            else:
                                for rest in range(1 << (size - n_low)):
                                    if (rest >> (i - n_low)) & 1:
                                        mass += high_mass[j, rest, lane]
                            share = mass / normaliser
                        probability[t, i * r - i * (i + 1) // 2 + j - i - 1] = min(share, 1.0)
    return probability, log_normaliser


@numba.njit(cache=True, nogil=True, inline="always")
def _next_uniform(state: np.uint64) -> tuple[np.uint64, float]:
    """Advance a splitmix64 generator; each row owns one, so that threads and row blocks cannot interfere."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return state, float(mixed >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def pair_posterior_gibbs(
    margins: FloatArray,
    r: int,
    sizes: IntArray,
    order: IntArray,
    sweeps: int,
    burn: int,
    seed: int,
    keys: IntArray,
) -> FloatArray:
    """Return P(i before j) for every pair of items, estimated by Gibbs sampling.

    A sweep takes out every item in turn and puts it back at a place drawn from its exact conditional law. That law,
    rather than the draw, is averaged (Rao-Blackwell), so the estimates are smooth.

    Parameters
    ----------
    margins, sizes
        As in `pair_posterior`.
    order
        ``(n, r)`` state of the chains: the first ``sizes[t]`` entries of row t are its items, best first. Changed in
        place, so that a later call goes on where this one stopped.
    sweeps, burn
        Number of sweeps, and how many of them are left out of the average at the start.
    seed
        Pass another one for another call.
    keys
        ``(n,)`` integers that identify the rows: row t uses the stream (seed, keys[t]), wherever it stands.

    Returns
    -------
    array of shape (n, r (r - 1) / 2)
        1/2 for pairs with an item that does not exist.
    """
    n = margins.shape[0]
    probability = np.full((n, r * (r - 1) // 2), 0.5)
    matrix = np.empty((r, r))
    ratio = np.empty((r, r))
    ahead = np.empty((r, r))
    weight = np.empty(r)
    rest = np.empty(r, np.int64)
    for t in range(n):
        size = sizes[t]
        if size < 2:
            continue
        _fill(margins[t], r, size, matrix)
        state = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(keys[t]) * np.uint64(0xDA942042E4DD58B5)
        steepest = 0.0
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += abs(matrix[i, j])
            steepest = max(steepest, total)
        direct = steepest < 600.0  # products of the ratios neither overflow nor vanish
        if direct:
            for i in range(size):
                for j in range(size):
                    ratio[i, j] = math.exp(-matrix[i, j])
        ahead[:size, :size] = 0.0
        chain = order[t]
        for sweep in range(sweeps):
            for item in range(size):
                kept = 0
                for place in range(size):
                    rest[kept] = chain[place]
                    kept += chain[place] != item
                weight[0] = 1.0 if direct else 0.0
                if direct:
                    for place in range(size - 1):
                        weight[place + 1] = weight[place] * ratio[item, rest[place]]
                else:
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
                state, uniform = _next_uniform(state)
                uniform *= weight[size - 1]
                target = 0
                while target < size - 1 and weight[target] <= uniform:
                    target += 1
                for place in range(target):
                    chain[place] = rest[place]
                chain[target] = item
                for place in range(target, size - 1):
                    chain[place + 1] = rest[place]
        if sweeps > burn:
            kept = sweeps - burn
            for i in range(size):
                for j in range(i + 1, size):
                    share = 0.5 * (ahead[i, j] - ahead[j, i] + kept) / kept
                    probability[t, i * r - i * (i + 1) // 2 + j - i - 1] = min(max(share, 0.0), 1.0)
    return probability
