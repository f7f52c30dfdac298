"""Orders of items that contradict as little pair weight as possible (weighted Kemeny aggregation).

The pairs with a positive margin form a directed graph. Between its strongly connected blocks an order can respect
every pair, so only blocks have to be searched: small ones exactly, by the recursion over subsets
``best(S) = min over the last item i of S of best(S - i) + cost of i after S - i``, large ones by moving single items.

All loops see the items in the order of a `preference`, never in the order of their index, so that the choice among
equally good orders follows the preference.
"""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.kernels.kemeny_blocks import (
    cheapest_orders,
    cycle_bound,
    mix,
    search_order,
    sort_small,
    strong_components,
    tournament_blocks,
)

__all__ = ["condorcet_rows", "finish_rows", "preference_ranks", "solve_blocks"]

#: Margins below this share of the largest one are rounding errors of a tie.
_TIE = 1e-12
#: Blocks of equal size go through the recursion side by side, so that it runs in vector instructions.
_LANES = 32


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
        ``(n, r (r - 1) / 2)``; positive favours i before j, pairs i < j in the order of ``numpy.triu_indices(r, 1)``.
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
    """Swap tied neighbours that stand against the preference; return positions ``(n, r)`` and costs ``(n,)``."""
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
