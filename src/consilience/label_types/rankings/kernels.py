"""Compiled loops over rankings: comparing and adding up votes; posteriors; Kemeny orders.

A ranking is a position per item, 0 for the first; equal positions are ties and negative ones are items not seen. Pairs
of items i < j are numbered as in ``numpy.triu_indices(r, 1)``; a margin is the weight of "i before j" minus that of "j
before i".

Given the margins, an order has the posterior probability ``p(order) ~ exp(-sum of the margins it contradicts)``. The
normalizer is a sum over orders, which a recursion over subsets turns into ``r 2^r`` terms; running it from both ends
gives the probability of every pair. Longer rankings are sampled.

The order that contradicts the least weight (Kemeny) is found block by block. The positive margins form a directed
graph; between its strongly connected components an order can respect every pair, so only the components have to be
searched: small ones exactly, by a recursion over subsets, large ones by moving single items. These loops see square
matrices whose items stand in the order of preference, so that the choice among equally good orders follows the
preference and never the index of an item.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = [
    "bucket_counts",
    "compare_votes",
    "cycle_bound",
    "expected_discordance",
    "find_blocks",
    "margins_of",
    "order_exactly",
    "pair_posterior",
    "pair_posterior_gibbs",
    "pair_sums",
    "put_preferred_first",
    "search_order",
]

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
def _ones(word: np.uint64) -> int:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit(cache=True, nogil=True, inline="always")
def _pack(vote: npt.NDArray[np.int16], strict: npt.NDArray[np.uint64], ahead: npt.NDArray[np.uint64]) -> None:
    """Write which pairs of items a vote orders, and in which of them the first is ahead, 64 pairs to a word."""
    strict[:] = 0
    ahead[:] = 0
    pair = 0
    for i in range(len(vote)):
        for j in range(i + 1, len(vote)):
            bit = np.uint64(pair & 63)
            strict[pair >> 6] |= np.uint64((vote[i] >= 0) & (vote[j] >= 0) & (vote[i] != vote[j])) << bit
            ahead[pair >> 6] |= np.uint64(vote[i] < vote[j]) << bit
            pair += 1


@numba.njit(cache=True, nogil=True)
def pair_sums(positions: npt.NDArray[np.int16], observed: BoolArray) -> IntArray:
    """Return what each two sources have in common, summed over the rows of votes ``(n, m, r)``.

    With S the pairs of items that two votes order alike minus those they order differently, and C those both order:
    ``(6, m, m)`` sums of S, C, S * S, S * C, C * C and of the rows on which both vote.
    """
    n, m, r = positions.shape
    words = (r * (r - 1) // 2 + 63) // 64
    strict = np.empty((m, words), np.uint64)
    ahead = np.empty((m, words), np.uint64)
    sums = np.zeros((6, m, m), np.int64)
    voters = np.empty(m, np.int64)
    for t in range(n):
        votes = 0
        for source in range(m):
            if observed[t, source]:
                voters[votes] = source
                _pack(positions[t, source], strict[votes], ahead[votes])
                votes += 1
        for place in range(votes):
            a = voters[place]
            sums[5, a, a] += 1
            for other in range(place + 1, votes):
                b = voters[other]
                common, different = 0, 0
                for word in range(words):
                    both = strict[place, word] & strict[other, word]
                    common += _ones(both)
                    different += _ones(both & (ahead[place, word] ^ ahead[other, word]))
                sign = common - 2 * different
                sums[0, a, b] += sign
                sums[1, a, b] += common
                sums[2, a, b] += sign * sign
                sums[3, a, b] += sign * common
                sums[4, a, b] += common * common
                sums[5, a, b] += 1
    for a in range(m):
        for b in range(a + 1, m):
            sums[:, b, a] = sums[:, a, b]
    return sums


@numba.njit(cache=True, nogil=True)
def compare_votes(positions: npt.NDArray[np.int16], truth: npt.NDArray[np.int16]) -> tuple[IntArray, IntArray]:
    """Compare votes ``(n, m, r)`` with one ranking ``(n, r)`` per row.

    Return ``(n, m)`` pairs of items ordered alike minus those ordered differently, and pairs that both order strictly.
    """
    n, m, r = positions.shape
    sign = np.zeros((n, m), np.int64)
    common = np.zeros((n, m), np.int64)
    for t in range(n):
        for a in range(m):
            vote = positions[t, a]
            for i in range(r):
                for j in range(i + 1, r):
                    if min(vote[i], vote[j], truth[t, i], truth[t, j]) >= 0:
                        product = np.sign(vote[j] - vote[i]) * np.sign(truth[t, j] - truth[t, i])
                        sign[t, a] += product
                        common[t, a] += abs(product)
    return sign, common


@numba.njit(cache=True, nogil=True)
def margins_of(positions: npt.NDArray[np.int16], weights: FloatArray) -> FloatArray:
    """Return ``(n, pairs)`` by how much of the weight ``(n, m)`` the votes ``(n, m, r)`` favor i before j."""
    n, m, r = positions.shape
    margins = np.zeros((n, r * (r - 1) // 2))
    for t in range(n):
        for a in range(m):
            weight = weights[t, a]
            if weight == 0.0:
                continue
            first = 0
            for i in range(r):
                here = positions[t, a, i]
                if here >= 0:
                    for j in range(i + 1, r):
                        there = positions[t, a, j]
                        favor = np.int64(here < there) - np.int64((there >= 0) & (there < here))
                        margins[t, first + j - i - 1] += weight * favor
                first += r - i - 1
    return margins


@numba.njit(cache=True, nogil=True)
def expected_discordance(positions: npt.NDArray[np.int16], probability: FloatArray) -> FloatArray:
    """Return ``(n, m)`` expected numbers of pairs that votes ``(n, m, r)`` order against the truth.

    `probability` ``(n, pairs)`` is that i comes before j in the truth.
    """
    n, m, r = positions.shape
    result = np.zeros((n, m))
    for t in range(n):
        for a in range(m):
            pair = 0
            for i in range(r):
                here = positions[t, a, i]
                for j in range(i + 1, r):
                    there = positions[t, a, j]
                    if here >= 0 and there >= 0 and here != there:
                        result[t, a] += 1.0 - probability[t, pair] if here < there else probability[t, pair]
                    pair += 1
    return result


@numba.njit(cache=True, nogil=True)
def bucket_counts(positions: npt.NDArray[np.int16], observed: BoolArray, sizes: int) -> IntArray:
    """Return ``(m, sizes + 1)``: votes over s items, minus one per bucket of s tied items, per source.

    A bucket order acts like one ranking of all its items minus one ranking per bucket.
    """
    n, m, r = positions.shape
    result = np.zeros((m, sizes + 1), np.int64)
    tied = np.empty(r + 1, np.int64)
    for t in range(n):
        for source in range(m):
            if observed[t, source]:
                tied[:] = 0
                seen = 0
                for i in range(r):
                    place = positions[t, source, i]
                    if place >= 0:
                        tied[place] += 1
                        seen += 1
                result[source, seen] += 1
                for place in range(r + 1):
                    if tied[place] > 0:
                        result[source, tied[place]] -= 1
    return result


# --- posteriors -------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _recursion(
    factor: FloatArray,
    lanes: int,
    low: FloatArray,
    high: FloatArray,
    forward: FloatArray,
    backward: FloatArray,
    low_mass: FloatArray,
    high_mass: FloatArray,
) -> None:
    """Run the recursion from both ends, in place, for a block of rows.

    ``forward[S]`` sums over the orders of the items in S, ``backward[S]`` over the ways to go on. Item i after the
    set T has weight ``low[i, lower bits of T] * high[i, upper bits of T]``; the masses collect how much of the total
    passes through (T, i), by either half of T.
    """
    size = len(factor)
    n_low = size // 2
    mask = (1 << n_low) - 1
    full = (1 << size) - 1
    low[:, 0] = 1.0
    high[:, 0] = 1.0
    for i in range(size):
        for bit in range(n_low):
            for rest in range(1 << bit):
                for lane in range(lanes):
                    low[i, rest | (1 << bit), lane] = low[i, rest, lane] * factor[i, bit, lane]
        for bit in range(size - n_low):
            for rest in range(1 << bit):
                for lane in range(lanes):
                    high[i, rest | (1 << bit), lane] = high[i, rest, lane] * factor[i, bit + n_low, lane]
    low_mass[:] = 0.0
    high_mass[:] = 0.0
    forward[0] = 1.0
    backward[full] = 1.0
    total = np.empty(lanes)
    for chosen in range(1, full + 1):
        total[:] = 0.0
        for i in range(size):
            if (chosen >> i) & 1:
                before = chosen ^ (1 << i)
                lower, upper = before & mask, before >> n_low
                for lane in range(lanes):
                    total[lane] += forward[before, lane] * low[i, lower, lane] * high[i, upper, lane]
        for lane in range(lanes):
            forward[chosen, lane] = total[lane]
    for chosen in range(full - 1, -1, -1):
        lower, upper = chosen & mask, chosen >> n_low
        total[:] = 0.0
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
def _pair_posterior_in_logs(margins: FloatArray, size: int, probability: FloatArray) -> None:
    """Fill the pair probabilities of one row of any magnitude, by the same recursion in logarithms."""
    full = (1 << size) - 1
    step = np.zeros((size, full + 1))  # log weight of item i after a set
    first = 0
    for i in range(size):
        for j in range(size):
            if j < i:
                price = max(-margins[j * size - j * (j + 1) // 2 + i - j - 1], 0.0)
            else:
                price = max(margins[first + j - i - 1], 0.0) if j > i else 0.0
            for rest in range(1 << j):
                step[i, rest | (1 << j)] = step[i, rest] - price
        first += size - i - 1
    forward = np.full(full + 1, -np.inf)
    backward = np.full(full + 1, -np.inf)
    forward[0] = 0.0
    backward[full] = 0.0
    for chosen in range(full):
        for i in range(size):
            if not (chosen >> i) & 1:
                after = chosen | (1 << i)
                forward[after] = np.logaddexp(forward[after], forward[chosen] + step[i, chosen])
    before = np.zeros((size, size))
    for chosen in range(full - 1, -1, -1):
        for i in range(size):
            if not (chosen >> i) & 1:
                onward = step[i, chosen] + backward[chosen | (1 << i)]
                backward[chosen] = np.logaddexp(backward[chosen], onward)
                mass = math.exp(onward + forward[chosen] - forward[full])
                for j in range(size):
                    before[j, i] += mass * ((chosen >> j) & 1)
    pair = 0
    for i in range(size):
        for j in range(i + 1, size):
            probability[pair] = before[i, j] / (before[i, j] + before[j, i])
            pair += 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def pair_posterior(margins: FloatArray, size: int) -> FloatArray:
    """Return P(i before j) from margins of any magnitude ``(n, pairs)``, exactly.

    Time and memory grow as ``2^size``; meant for up to 14 items.
    """
    n = len(margins)
    probability = np.empty((n, size * (size - 1) // 2))
    n_low = size // 2
    half = 1 << (size - n_low)
    factor = np.ones((size, size, _LANES))
    low, high = np.empty((size, half, _LANES)), np.empty((size, half, _LANES))
    low_mass, high_mass = np.empty((size, half, _LANES)), np.empty((size, half, _LANES))
    forward, backward = np.empty((1 << size, _LANES)), np.empty((1 << size, _LANES))
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
        _recursion(factor, lanes, low, high, forward, backward, low_mass, high_mass)
        for lane in range(lanes):
            normalizer = forward[(1 << size) - 1, lane]
            if normalizer <= _TRUSTED:
                _pair_posterior_in_logs(margins[start + lane], size, probability[start + lane])
                continue
            pair = 0
            for i in range(size):
                for j in range(i + 1, size):
                    mass = 0.0
                    if i < n_low:
                        for rest in range(1 << n_low):
                            if (rest >> i) & 1:
                                mass += low_mass[j, rest, lane]
                    else:
                        for rest in range(half):
                            if (rest >> (i - n_low)) & 1:
                                mass += high_mass[j, rest, lane]
                    probability[start + lane, pair] = min(mass / normalizer, 1.0)
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
def find_blocks(square: FloatArray) -> tuple[IntArray, IntArray]:
    """Sort the items of each row so that strongly connected components follow each other in topological order.

    An item reaches more items than any item of a later component, so their number is the key of the sort. Return the
    items ``(n, size)``, best first and by index within a component; and row, first and last place (exclusive) of each
    component of more than one item, ``(n_blocks, 3)``.
    """
    n, size = square.shape[:2]
    orders = np.empty((n, size), np.int64)
    blocks = np.empty((n * (size // 3), 3), np.int64)  # two items never form a cycle
    count = 0
    reaches = np.empty((size, size), np.bool_)
    key = np.empty(size, np.int64)
    for t in range(n):
        for i in range(size):
            for j in range(size):
                reaches[i, j] = i == j or square[t, i, j] > 0
        for through in range(size):
            for i in range(size):
                if reaches[i, through]:
                    for j in range(size):
                        reaches[i, j] |= reaches[through, j]
        order = orders[t]
        for i in range(size):
            reached, first = 0, size
            for j in range(size):
                reached += int(reaches[i, j])
                if first == size and reaches[i, j] and reaches[j, i]:
                    first = j
            key[i] = (size - reached) * size + first
            place = i
            while place > 0 and key[order[place - 1]] > key[i]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = i
        start = 0
        for place in range(1, size + 1):
            if place == size or key[order[place]] != key[order[start]]:
                if place - start > 1:
                    blocks[count, 0] = t
                    blocks[count, 1] = start
                    blocks[count, 2] = place
                    count += 1
                start = place
    return orders, blocks[:count]


@numba.njit(cache=True, nogil=True)
def _least_costs(price: FloatArray, lanes: int, low: FloatArray, high: FloatArray, best: FloatArray) -> None:
    """Fill ``best[S]``, the least cost of an order of the items in S; ``price[i, j]`` is the cost of j before i.

    ``best(S) = min over the last item i of S of best(S - i) + cost of i after S - i``.
    """
    size = len(price)
    n_low = size // 2
    mask = (1 << n_low) - 1
    low[:, 0] = 0.0
    high[:, 0] = 0.0
    for i in range(size):
        for bit in range(n_low):
            for rest in range(1 << bit):
                for lane in range(lanes):
                    low[i, rest | (1 << bit), lane] = low[i, rest, lane] + price[i, bit, lane]
        for bit in range(size - n_low):
            for rest in range(1 << bit):
                for lane in range(lanes):
                    high[i, rest | (1 << bit), lane] = high[i, rest, lane] + price[i, bit + n_low, lane]
    best[0] = 0.0
    least = np.empty(lanes)
    for chosen in range(1, 1 << size):
        least[:] = np.inf
        for i in range(size):
            if (chosen >> i) & 1:
                before = chosen ^ (1 << i)
                lower, upper = before & mask, before >> n_low
                for lane in range(lanes):
                    cost = best[before, lane] + low[i, lower, lane] + high[i, upper, lane]
                    least[lane] = cost if cost < least[lane] else least[lane]
        for lane in range(lanes):
            best[chosen, lane] = least[lane]


@numba.njit(cache=True, nogil=True)
def order_exactly(square: FloatArray, orders: IntArray, blocks: IntArray, size: int) -> FloatArray:
    """Put blocks of one size from `find_blocks` into the order of least cost, in place; return the costs.

    The largest margin of each row is 1.
    """
    half = 1 << (size - size // 2)
    lanes = min(_LANES, len(blocks))
    price = np.empty((size, size, lanes))
    low, high = np.empty((size, half, lanes)), np.empty((size, half, lanes))
    best = np.empty((1 << size, lanes))
    costs = np.empty(len(blocks))
    for done in range(0, len(blocks), _LANES):
        count = min(_LANES, len(blocks) - done)
        for lane in range(count):
            t, start = blocks[done + lane, 0], blocks[done + lane, 1]
            for i in range(size):
                for j in range(size):
                    price[i, j, lane] = max(square[t, orders[t, start + i], orders[t, start + j]], 0.0)
        _least_costs(price, count, low, high, best)
        for lane in range(count):
            t, start, end = blocks[done + lane, 0], blocks[done + lane, 1], blocks[done + lane, 2]
            costs[done + lane] = best[(1 << size) - 1, lane]
            member = orders[t, start:end].copy()
            chosen = (1 << size) - 1
            for place in range(end - 1, start - 1, -1):
                for i in range(size - 1, -1, -1):  # the least preferred item that can be last
                    before = chosen ^ (1 << i)
                    if (chosen >> i) & 1:
                        cost = best[before, lane]
                        for j in range(size):
                            if (before >> j) & 1:
                                cost += price[i, j, lane]
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
            order[:] = best
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
            best[:] = order
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
