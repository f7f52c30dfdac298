"""Compiled loops over rankings: drawing, comparing and adding up votes; posteriors; Kemeny orders.

A ranking is a position per item, 0 for the first; equal positions are ties and negative ones are items not seen. Pairs
of items i < j are numbered as in ``numpy.triu_indices(r, 1)``; a margin is the weight of "i before j" minus that of "j
before i".

The law of the order of items, given weighted votes on every pair, is ``p(order) ~ exp(-sum of the weights of the pairs
it contradicts)``. Its normalizer is a sum over orders that the recursion over subsets turns into ``r 2^r`` terms;
running it from both ends gives every pair probability as well. Above about 14 items it is sampled.

The order that contradicts the least weight (Kemeny) is found by blocks. The pairs with a positive margin form a
directed graph; between its strongly connected blocks an order can respect every pair, so only blocks have to be
searched: small ones exactly, by the recursion over subsets ``best(S) = min over the last item i of S of best(S - i) +
cost of i after S - i``, large ones by moving single items. These loops see the items in the order of a `preference`,
never in the order of their index, so that the choice among equally good orders follows the preference.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = [
    "bucket_counts",
    "condorcet_rows",
    "expected_discordance",
    "finish_rows",
    "margins_of",
    "pair_agreements",
    "pair_posterior",
    "pair_posterior_gibbs",
    "pair_sums",
    "preference_ranks",
    "sample_mallows",
    "solve_blocks",
]

#: Rows of equal size go through a recursion side by side, one per lane of the processor's vectors.
_LANES = 32
#: Every factor of a posterior is at most 1, so above this normalizer nothing that underflowed could have mattered.
_TRUSTED = 1e-200
#: The lower bound of larger blocks would take longer than the search.
_BOUNDED = 500
#: Margins below this share of the largest one are rounding errors of a tie.
_TIE = 1e-12


# --- votes ------------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True, error_model="numpy")
def sample_mallows(truth: IntArray, seen: BoolArray, weight: float, uniforms: FloatArray) -> IntArray:
    """Return one Mallows vote per row over the items a source sees.

    Repeated insertion: the seen items come in their true order, and each is put v places before the end of the list so
    far with probability proportional to ``exp(-weight * v)``, which is the number of discordances it causes.

    Parameters
    ----------
    truth
        ``(n, r)`` positions without ties; -1 for items that do not exist in this row.
    seen
        ``(n, r)``: which items the source ranks.
    weight
        0 is a random order; negative weights prefer the reversed truth.
    uniforms
        ``(n, r)`` numbers from [0, 1), the only randomness there is.

    Returns
    -------
    array of shape (n, r)
        Positions among the seen items; -1 elsewhere.
    """
    n, r = truth.shape
    size = abs(weight)
    reach = np.array([math.expm1(-size * j) for j in range(r + 1)])
    votes = np.full((n, r), -1, np.int64)
    by_truth = np.empty(r, np.int64)
    order = np.empty(r, np.int64)
    for t in range(n):
        by_truth[:] = -1
        for item in range(r):
            if seen[t, item] and truth[t, item] >= 0:
                by_truth[truth[t, item]] = item
        count = 0
        for place in range(r):
            item = by_truth[place]
            if item < 0:
                continue
            uniform = uniforms[t, count]
            if size == 0.0:
                back = int(uniform * (count + 1))
            else:  # the inverse of the truncated geometric distribution function
                back = int(-math.log1p(uniform * reach[count + 1]) / size)
            back = min(back, count)
            if weight < 0.0:
                back = count - back
            for behind in range(count, count - back, -1):
                order[behind] = order[behind - 1]
            order[count - back] = item
            count += 1
        for place in range(count):
            votes[t, order[place]] = place
    return votes


@numba.njit(cache=True, nogil=True, inline="always")
def _ones(word: np.uint64) -> int:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit(cache=True, nogil=True, inline="always")
def _pack(
    positions: npt.NDArray[np.int16],
    t: int,
    a: int,
    strict: npt.NDArray[np.uint64],
    ahead: npt.NDArray[np.uint64],
) -> None:
    """Write which pairs of items a source orders, and in which of them the first is ahead, 64 pairs to a word."""
    r = positions.shape[2]
    word = 0
    bit = np.uint64(0)
    strict_bits = np.uint64(0)
    ahead_bits = np.uint64(0)
    for i in range(r):
        here = positions[t, a, i]
        for j in range(i + 1, r):
            there = positions[t, a, j]
            strict_bits |= np.uint64((here >= 0) & (there >= 0) & (here != there)) << bit
            ahead_bits |= np.uint64(here < there) << bit
            bit += np.uint64(1)
            if bit == np.uint64(64):
                strict[word] = strict_bits
                ahead[word] = ahead_bits
                word += 1
                bit = np.uint64(0)
                strict_bits = np.uint64(0)
                ahead_bits = np.uint64(0)
    if bit > np.uint64(0):
        strict[word] = strict_bits
        ahead[word] = ahead_bits


@numba.njit(cache=True, nogil=True, inline="always")
def _compare(
    strict: npt.NDArray[np.uint64],
    ahead: npt.NDArray[np.uint64],
    other_strict: npt.NDArray[np.uint64],
    other_ahead: npt.NDArray[np.uint64],
) -> tuple[int, int]:
    """Return on how many pairs of items both have an order, and on how many of these a different one."""
    shared = 0
    different = 0
    for word in range(len(strict)):
        common = strict[word] & other_strict[word]
        shared += _ones(common)
        different += _ones(common & (ahead[word] ^ other_ahead[word]))
    return shared, different


@numba.njit(cache=True, nogil=True)
def pair_agreements(positions: npt.NDArray[np.int16]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return on how many pairs of items each two sources agree, and how many both of them order.

    The order that a source gives to the pairs of items is packed into bit sets, 64 pairs to a word.

    Parameters
    ----------
    positions
        ``(n, m, r)``; -1 is unseen, equal positions are ties. A tie or an unseen item orders nothing.

    Returns
    -------
    agreement
        ``(n, m (m - 1) / 2)``: pairs of items ordered the same way minus pairs ordered differently, for the sources
        a < b in the order of ``numpy.triu_indices(m, 1)``.
    both
        ``(n, m (m - 1) / 2)``: pairs of items that both sources order strictly.
    """
    n, m, r = positions.shape
    words = (r * (r - 1) // 2 + 63) // 64
    strict = np.empty((m, words), np.uint64)
    ahead = np.empty((m, words), np.uint64)
    agreement = np.empty((n, m * (m - 1) // 2), np.int32)
    both = np.empty((n, m * (m - 1) // 2), np.int32)
    for t in range(n):
        for a in range(m):
            _pack(positions, t, a, strict[a], ahead[a])
        pair = 0
        for a in range(m):
            for b in range(a + 1, m):
                shared, different = _compare(strict[a], ahead[a], strict[b], ahead[b])
                both[t, pair] = shared
                agreement[t, pair] = shared - 2 * different
                pair += 1
    return agreement, both


@numba.njit(cache=True, nogil=True)
def pair_sums(positions: npt.NDArray[np.int16], observed: BoolArray, who: IntArray, m: int) -> IntArray:
    """Return what each two sources have in common, summed over the items; the cost follows the pairs of votes.

    With S the pairs of items that two votes order alike minus those they order differently, and C those both order:

    Parameters
    ----------
    positions
        ``(n, cells, r)``.
    who
        ``(n, cells)`` the source of every cell, in increasing order, or ``(1, cells)`` if it is the same in all rows.
    m
        Number of sources.

    Returns
    -------
    array of shape (6, m, m)
        Sums of S, C, S * S, S * C, C * C and of the rows on which both vote.
    """
    n, cells, r = positions.shape
    words = (r * (r - 1) // 2 + 63) // 64
    strict = np.empty((cells, words), np.uint64)
    ahead = np.empty((cells, words), np.uint64)
    sums = np.zeros((6, m, m), np.int64)
    voters = np.empty(cells, np.int64)
    for t in range(n):
        votes = 0
        row = t if len(who) > 1 else 0
        for a in range(cells):
            if observed[t, a]:
                voters[votes] = who[row, a]
                _pack(positions, t, a, strict[votes], ahead[votes])
                votes += 1
        for place in range(votes):
            a = voters[place]
            sums[5, a, a] += 1
            for other in range(place + 1, votes):
                b = voters[other]
                shared, different = _compare(strict[place], ahead[place], strict[other], ahead[other])
                same = shared - 2 * different
                sums[0, a, b] += same
                sums[1, a, b] += shared
                sums[2, a, b] += same * same
                sums[3, a, b] += same * shared
                sums[4, a, b] += shared * shared
                sums[5, a, b] += 1
    for a in range(m):
        for b in range(a + 1, m):
            sums[:, b, a] = sums[:, a, b]
    return sums


@numba.njit(cache=True, nogil=True)
def margins_of(positions: npt.NDArray[np.int16], weights: FloatArray) -> FloatArray:
    """Return by how much weight the sources favor i before j, for every pair of items.

    Parameters
    ----------
    positions
        ``(n, m, r)``; -1 is unseen, equal positions are ties; both add nothing.
    weights
        ``(n, m)``.

    Returns
    -------
    array of shape (n, r (r - 1) / 2)
        Pairs i < j in the order of ``numpy.triu_indices(r, 1)``; positive favors i.
    """
    n, m, r = positions.shape
    margins = np.zeros((n, r * (r - 1) // 2))
    for t in range(n):
        for a in range(m):
            weight = weights[t, a]
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
    """Return ``(n, m)`` expected numbers of pairs that each vote orders against the truth.

    Parameters
    ----------
    positions
        ``(n, m, r)``; negative is unseen, equal positions are ties; neither counts.
    probability
        ``(n, r (r - 1) / 2)`` probability that i comes before j in the truth.
    """
    n, m, r = positions.shape
    result = np.zeros((n, m))
    for t in range(n):
        for a in range(m):
            total = 0.0
            pair = 0
            for i in range(r):
                here = positions[t, a, i]
                for j in range(i + 1, r):
                    there = positions[t, a, j]
                    if here >= 0 and there >= 0:
                        if here < there:
                            total += 1.0 - probability[t, pair]
                        elif there < here:
                            total += probability[t, pair]
                    pair += 1
            result[t, a] = total
    return result


@numba.njit(cache=True, nogil=True, inline="always")
def _fill_buckets(vote: npt.NDArray[np.int16], count: IntArray) -> int:
    """Count the items at each position of a vote, and return how many it ranks."""
    count[:] = 0
    seen = 0
    for i in range(vote.shape[0]):
        if vote[i] >= 0:
            count[vote[i]] += 1
            seen += 1
    return seen


@numba.njit(cache=True, nogil=True)
def bucket_counts(
    positions: npt.NDArray[np.int16], observed: npt.NDArray[np.bool_], who: IntArray, m: int, sizes: int
) -> IntArray:
    """Return ``(m, sizes + 1)``: votes over s items, minus one per bucket of s tied items, per source.

    A bucket order acts like one ranking of all its items minus one ranking per bucket. `who` is the source of every
    cell, ``(n, cells)`` or the same in all rows, ``(1, cells)``.
    """
    n, cells, r = positions.shape
    result = np.zeros((m, sizes + 1), np.int64)
    count = np.zeros(r + 1, np.int64)
    for t in range(n):
        row = t if len(who) > 1 else 0
        for a in range(cells):
            if observed[t, a]:
                source = who[row, a]
                seen = _fill_buckets(positions[t, a], count)
                result[source, seen] += 1
                for position in range(r + 1):
                    if count[position] > 0:
                        result[source, count[position]] -= 1
    return result


# --- posteriors -------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True, inline="always")
def mix(state: np.uint64) -> np.uint64:
    """Return a well-mixed function of a 64-bit number (the last step of splitmix64)."""
    mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


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
def _recursion_in_logs(matrix: FloatArray, size: int, before: FloatArray) -> None:
    """Fill ``before[j, i]`` = P(j before i) for one row of any magnitude.

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


@numba.njit(cache=True, nogil=True, error_model="numpy")
def pair_posterior(margins: FloatArray, r: int, sizes: IntArray) -> FloatArray:
    """Return P(i before j) for every pair of items, exactly.

    Time and memory grow as ``2^size``; meant for up to 14 items. Margins may be of any magnitude: a row whose
    normalizer underflows is done again relative to its best order.

    Parameters
    ----------
    margins
        ``(n, r (r - 1) / 2)``: total weight of "i before j" minus that of "j before i", pairs i < j in the order of
        ``numpy.triu_indices(r, 1)``.
    sizes
        ``(n,)``: only the first ``sizes[t]`` items of row t exist.

    Returns
    -------
    array of shape (n, r (r - 1) / 2)
        1/2 for pairs with an item that does not exist.
    """
    n = margins.shape[0]
    probability = np.full((n, r * (r - 1) // 2), 0.5)
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
                normalizer = forward[(1 << size) - 1, lane]
                trusted = normalizer > _TRUSTED
                if not trusted:
                    _fill(margins[t], r, size, matrix)
                    _recursion_in_logs(matrix, size, before)
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
                            share = mass / normalizer
                        probability[t, i * r - i * (i + 1) // 2 + j - i - 1] = min(share, 1.0)
    return probability


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
                state += np.uint64(0x9E3779B97F4A7C15)  # each row owns a generator, so that threads cannot interfere
                uniform = float(mix(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0) * weight[size - 1]
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


# --- Kemeny orders ----------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def sort_small(numbers: IntArray) -> None:
    """Sort a few numbers in place; numba's own sort takes seconds to compile."""
    for last in range(1, len(numbers)):
        number = numbers[last]
        place = last
        while place > 0 and numbers[place - 1] > number:
            numbers[place] = numbers[place - 1]
            place -= 1
        numbers[place] = number


@numba.njit(cache=True, nogil=True)
def tournament_blocks(matrix: FloatArray, size: int, order: IntArray, ends: IntArray) -> int:
    """Sort items by wins into blocks each of which beats all later ones; return the number of blocks."""
    tally = np.zeros(2 * size, np.int64)
    points = np.empty(size, np.int64)
    for i in range(size):
        won = 0
        for j in range(size):
            won += int(matrix[i, j] > 0) - int(matrix[i, j] < 0)
        points[i] = size - 1 - won  # 0 beats everyone, 2 (size - 1) loses to everyone
        tally[points[i] + 1] += 1
    for value in range(1, 2 * size):
        tally[value] += tally[value - 1]
    for i in range(size):
        order[tally[points[i]]] = i
        tally[points[i]] += 1
    blocks = 0
    lost = 0
    for place in range(size):
        lost += points[order[place]]
        # the first p items beat the others exactly when their points are those of a tournament among themselves
        if lost == place * (place + 1):
            ends[blocks] = place + 1
            blocks += 1
    return blocks


@numba.njit(cache=True, nogil=True)
def strong_components(matrix: FloatArray, order: IntArray, first: int, last: int, ends: IntArray, blocks: int) -> int:
    """Split ``order[first:last]`` into strongly connected components in topological order (Tarjan)."""
    size = last - first
    index = np.full(size, -1, np.int64)
    low = np.zeros(size, np.int64)
    member = np.empty(size, np.int64)
    for place in range(size):
        member[place] = order[first + place]
    on_stack = np.zeros(size, np.bool_)
    stack = np.empty(size, np.int64)
    path = np.empty(size, np.int64)
    following = np.zeros(size, np.int64)
    cuts = np.empty(size, np.int64)
    n_stack, counter, free, n_cuts = 0, 0, last, 0
    for root in range(size):
        if index[root] >= 0:
            continue
        depth = 0
        path[0] = root
        while depth >= 0:
            here = path[depth]
            if following[here] == 0:
                index[here] = counter
                low[here] = counter
                counter += 1
                stack[n_stack] = here
                n_stack += 1
                on_stack[here] = True
            descended = False
            while following[here] < size:
                there = following[here]
                following[here] += 1
                if matrix[member[here], member[there]] > 0:
                    if index[there] < 0:
                        depth += 1
                        path[depth] = there
                        descended = True
                        break
                    if on_stack[there]:
                        low[here] = min(low[here], index[there])
            if descended:
                continue
            depth -= 1
            if depth >= 0:
                low[path[depth]] = min(low[path[depth]], low[here])
            if low[here] == index[here]:  # a component is complete; those after it were found before
                cuts[n_cuts] = free
                n_cuts += 1
                while True:
                    n_stack -= 1
                    there = stack[n_stack]
                    on_stack[there] = False
                    free -= 1
                    order[free] = member[there]
                    if there == here:
                        break
    for cut in range(n_cuts - 1, -1, -1):
        ends[blocks] = cuts[cut]
        blocks += 1
    return blocks


@numba.njit(cache=True, nogil=True)
def cheapest_orders(
    price: FloatArray, size: int, lanes: int, low: FloatArray, high: FloatArray, best: FloatArray
) -> None:
    """Fill ``best[S]``, the least cost of an order of the items in S; ``price[i, j]`` is the cost of j before i."""
    n_low = size // 2
    mask = (1 << n_low) - 1
    for i in range(size):
        for lane in range(lanes):
            low[i, 0, lane] = 0.0
            high[i, 0, lane] = 0.0
        for bit in range(n_low):
            for rest in range(1 << bit):
                for lane in range(lanes):
                    low[i, rest | (1 << bit), lane] = low[i, rest, lane] + price[i, bit, lane]
        for bit in range(size - n_low):
            for rest in range(1 << bit):
                for lane in range(lanes):
                    high[i, rest | (1 << bit), lane] = high[i, rest, lane] + price[i, bit + n_low, lane]
    least = np.empty(lanes)
    for lane in range(lanes):
        best[0, lane] = 0.0
    for chosen in range(1, 1 << size):
        for lane in range(lanes):
            least[lane] = np.inf
        for i in range(size):
            if (chosen >> i) & 1:
                before = chosen ^ (1 << i)
                lower = before & mask
                upper = before >> n_low
                for lane in range(lanes):
                    cost = best[before, lane] + low[i, lower, lane] + high[i, upper, lane]
                    least[lane] = cost if cost < least[lane] else least[lane]
        for lane in range(lanes):
            best[chosen, lane] = least[lane]


@numba.njit(cache=True, nogil=True)
def search_order(matrix: FloatArray, size: int, starts: int, state: np.uint64, best: IntArray) -> float:
    """Improve an order by moving single items, from Borda and from disturbed copies of the best; return its cost."""
    order = np.empty(size, np.int64)
    borda = np.empty(size)
    for i in range(size):
        borda[i] = 0.0
        for j in range(size):
            borda[i] += matrix[i, j]
        place = i
        while place > 0 and borda[order[place - 1]] < borda[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
    least = np.inf
    for start in range(max(starts, 1)):
        if start > 0:
            for place in range(size):
                order[place] = best[place]
            for _ in range(max(3, size // 4)):
                state += np.uint64(0x9E3779B97F4A7C15)
                draw = mix(state)
                one = np.int64((draw >> np.uint64(33)) % np.uint64(size))
                two = np.int64((draw & np.uint64(0x7FFFFFFF)) % np.uint64(size))
                order[one], order[two] = order[two], order[one]
        moved = True
        while moved:
            moved = False
            for place in range(size):
                item = order[place]
                gain, target = -1e-12, place
                change = 0.0
                for other in range(place - 1, -1, -1):
                    change -= matrix[item, order[other]]
                    if change < gain:
                        gain, target = change, other
                change = 0.0
                for other in range(place + 1, size):
                    change += matrix[item, order[other]]
                    if change < gain:
                        gain, target = change, other
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
            for place in range(size):
                best[place] = order[place]
    return least


@numba.njit(cache=True, nogil=True)
def cycle_bound(matrix: FloatArray, size: int) -> float:
    """Return a cost no order avoids: of every 3-cycle one arc is lost. Uses up the matrix."""
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
def _load(margins: FloatArray, r: int, size: int, place: IntArray, matrix: FloatArray) -> tuple[float, int]:
    """Write the margins between the items at their places; return the largest and the number of ties."""
    largest = 0.0
    for i in range(size):
        first = i * r - i * (i + 1) // 2 - i - 1
        for j in range(i + 1, size):
            largest = max(largest, abs(margins[first + j]))
    ties = 0
    for i in range(size):
        first = i * r - i * (i + 1) // 2 - i - 1
        matrix[place[i], place[i]] = 0.0
        for j in range(i + 1, size):
            margin = margins[first + j]
            if abs(margin) <= _TIE * largest:
                margin = 0.0
                ties += 1
            matrix[place[i], place[j]] = margin
            matrix[place[j], place[i]] = -margin
    return largest, ties


@numba.njit(cache=True, nogil=True)
def condorcet_rows(margins: FloatArray, r: int, sizes: IntArray) -> tuple[IntArray, BoolArray]:
    """Settle the rows in which one order respects every pair and no pair is tied: there is nothing to choose.

    Returns
    -------
    positions
        ``(n, r)`` for settled rows; -1 for items that do not exist.
    settled
        ``(n,)``.
    """
    n = margins.shape[0]
    positions = np.full((n, r), -1, np.int64)
    settled = np.zeros(n, np.bool_)
    losses = np.empty(r, np.int64)
    taken = np.full(r, -1, np.int64)
    for t in range(n):
        size = sizes[t]
        for i in range(size):
            losses[i] = 0
        largest, smallest = 0.0, np.inf
        for i in range(size):
            first = i * r - i * (i + 1) // 2 - i - 1
            lost = 0
            for j in range(i + 1, size):
                margin = margins[t, first + j]
                lost += int(margin < 0)
                losses[j] += int(margin > 0)
                largest = max(largest, abs(margin))
                smallest = min(smallest, abs(margin))
            losses[i] += lost
        distinct = smallest > _TIE * largest
        for i in range(size):
            distinct &= taken[losses[i]] != t
            taken[losses[i]] = t
        if distinct:
            settled[t] = True
            for i in range(size):
                positions[t, i] = losses[i]
    return positions, settled


@numba.njit(cache=True, nogil=True)
def preference_ranks(
    margins: FloatArray, r: int, sizes: IntArray, tie_break: FloatArray, keys: IntArray, seed: int
) -> IntArray:
    """Return the place of each item in the order that decides between equally good results.

    By `tie_break` (larger first), then by the sum of the margins (Borda), then by a random number that belongs to the
    seed, the key of the row and the item.

    Parameters
    ----------
    margins, sizes
        ``(n, r (r - 1) / 2)`` and ``(n,)``, as in `solve_blocks`.
    tie_break
        ``(n, r)`` scores, or ``(0, r)`` for none.
    keys
        ``(n,)`` one number per row.
    """
    n = margins.shape[0]
    ranks = np.full((n, r), -1, np.int64)
    itself = np.arange(r)
    matrix = np.empty((r, r))
    borda = np.empty(r)
    order = np.empty(r, np.int64)
    score = np.zeros(r)
    chance = np.empty(r, np.uint64)
    for t in range(n):
        size = sizes[t]
        largest, _ = _load(margins[t], r, size, itself, matrix)
        row_key = mix(np.uint64(keys[t]) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1))
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += matrix[i, j]
            # rounded, lest the order of summation decide
            borda[i] = np.floor(total / (1e-9 * largest) + 0.5) if largest > 0 else 0.0
            chance[i] = mix(row_key + np.uint64(0x9E3779B97F4A7C15) * np.uint64(i + 1))
        if tie_break.shape[0] > 0:
            for i in range(size):
                score[i] = tie_break[t, i]
        for i in range(size):
            place = i
            while place > 0:
                other = order[place - 1]
                if score[other] != score[i]:
                    stays = score[other] > score[i]
                elif borda[other] != borda[i]:
                    stays = borda[other] > borda[i]
                else:
                    stays = chance[other] > chance[i]
                if stays:
                    break
                order[place] = other
                place -= 1
            order[place] = i
        for place in range(size):
            ranks[t, order[place]] = place
    return ranks


@numba.njit(cache=True, nogil=True)
def _by_length(blocks: IntArray, r: int) -> IntArray:
    """Sort blocks (row, start, end) by their length."""
    first = np.zeros(r + 2, np.int64)
    for block in range(len(blocks)):
        first[blocks[block, 2] - blocks[block, 1] + 1] += 1
    for length in range(1, r + 2):
        first[length] += first[length - 1]
    result = np.empty_like(blocks)
    for block in range(len(blocks)):
        length = blocks[block, 2] - blocks[block, 1]
        for column in range(3):
            result[first[length], column] = blocks[block, column]
        first[length] += 1
    return result


@numba.njit(cache=True, nogil=True)
def solve_blocks(
    margins: FloatArray,
    r: int,
    sizes: IntArray,
    preference: IntArray,
    keys: IntArray,
    seed: int,
    max_exact: int,
    starts: int,
) -> tuple[IntArray, FloatArray, IntArray]:
    """Order the items of every row: blocks of up to `max_exact` items exactly, larger ones by local search.

    Parameters
    ----------
    margins
        ``(n, r (r - 1) / 2)``; positive favors i before j, pairs i < j in the order of ``numpy.triu_indices(r, 1)``.
    sizes
        ``(n,)``: only the first ``sizes[t]`` items of row t exist.
    preference
        ``(n, r)`` from `preference_ranks`.

    Returns
    -------
    orders
        ``(n, r)`` items, best first; -1 behind the last.
    lower_bound
        ``(n,)``: no order of the row costs less.
    open_blocks
        ``(n_open, 3)``: row, first and last place (exclusive) of each block that was only searched.
    """
    n = margins.shape[0]
    orders = np.full((n, r), -1, np.int64)
    lower = np.zeros(n)
    blocks = np.empty((n * (r // 3), 3), np.int64)
    n_blocks, longest = 0, 0
    matrix = np.empty((r, r))
    ends = np.empty(r + 1, np.int64)
    fine = np.empty(r + 1, np.int64)
    for t in range(n):
        _, ties = _load(margins[t], r, sizes[t], preference[t], matrix)
        count = tournament_blocks(matrix, sizes[t], orders[t], ends)
        if ties > 0:
            start, parts = 0, 0
            for block in range(count):
                if ends[block] - start > 1:
                    parts = strong_components(matrix, orders[t], start, ends[block], fine, parts)
                else:
                    fine[parts] = ends[block]
                    parts += 1
                start = ends[block]
            count = parts
            for part in range(parts):
                ends[part] = fine[part]
        start = 0
        for block in range(count):
            if ends[block] - start > 1:
                blocks[n_blocks, 0] = t
                blocks[n_blocks, 1] = start
                blocks[n_blocks, 2] = ends[block]
                n_blocks += 1
                if ends[block] - start <= max_exact:
                    longest = max(longest, ends[block] - start)
            start = ends[block]
    blocks = _by_length(blocks[:n_blocks], r)
    half = 1 << (longest - longest // 2)
    lanes = min(_LANES, n_blocks)
    price = np.empty((longest, longest, lanes))
    low = np.empty((longest, half, lanes))
    high = np.empty((longest, half, lanes))
    best = np.empty((1 << longest, lanes))
    scale = np.empty(lanes)
    done = 0
    while done < n_blocks and blocks[done, 2] - blocks[done, 1] <= max_exact:
        size = blocks[done, 2] - blocks[done, 1]
        count = 1
        while count < lanes and done + count < n_blocks and blocks[done + count, 2] - blocks[done + count, 1] == size:
            count += 1
        for lane in range(count):
            t, start, end = blocks[done + lane, 0], blocks[done + lane, 1], blocks[done + lane, 2]
            scale[lane], _ = _load(margins[t], r, sizes[t], preference[t], matrix)
            sort_small(orders[t, start:end])
            for i in range(size):
                for j in range(size):
                    price[i, j, lane] = max(matrix[orders[t, start + i], orders[t, start + j]], 0.0)
        cheapest_orders(price, size, count, low, high, best)
        for lane in range(count):
            t, start, end = blocks[done + lane, 0], blocks[done + lane, 1], blocks[done + lane, 2]
            lower[t] += best[(1 << size) - 1, lane]
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
                        if cost <= best[chosen, lane] + _TIE * scale[lane]:
                            break
                orders[t, place] = member[i]
                chosen = before
        done += count
    inside = np.empty((r, r))
    found = np.empty(r, np.int64)
    for block in range(done, n_blocks):
        t, start, end = blocks[block, 0], blocks[block, 1], blocks[block, 2]
        largest, _ = _load(margins[t], r, sizes[t], preference[t], matrix)
        member = orders[t, start:end].copy()
        sort_small(member)
        for i in range(end - start):
            for j in range(end - start):
                inside[i, j] = matrix[member[i], member[j]] / largest
        search_order(inside, end - start, starts, mix(np.uint64(keys[t]) + np.uint64(seed)), found)
        if end - start <= _BOUNDED:
            lower[t] += cycle_bound(inside, end - start) * largest
        for place in range(start, end):
            orders[t, place] = member[found[place - start]]
    for t in range(n):
        for item in range(sizes[t]):
            found[preference[t, item]] = item
        for place in range(sizes[t]):
            orders[t, place] = found[orders[t, place]]
    return orders, lower, blocks[done:]


@numba.njit(cache=True, nogil=True)
def finish_rows(
    margins: FloatArray, r: int, sizes: IntArray, preference: IntArray, orders: IntArray
) -> tuple[IntArray, FloatArray]:
    """Swap tied neighbors that stand against the preference; return positions ``(n, r)`` and costs ``(n,)``."""
    n = margins.shape[0]
    positions = np.full((n, r), -1, np.int64)
    cost = np.zeros(n)
    itself = np.arange(r)
    matrix = np.empty((r, r))
    for t in range(n):
        _, ties = _load(margins[t], r, sizes[t], itself, matrix)
        order = orders[t]
        for last in range(1, sizes[t] if ties > 0 else 0):
            item = order[last]
            place = last
            while (
                place > 0
                and matrix[item, order[place - 1]] == 0
                and preference[t, item] < preference[t, order[place - 1]]
            ):
                order[place] = order[place - 1]
                place -= 1
            order[place] = item
        for place in range(sizes[t]):
            positions[t, order[place]] = place
            for other in range(place + 1, sizes[t]):
                cost[t] += max(matrix[order[other], order[place]], 0.0)
    return positions, cost
