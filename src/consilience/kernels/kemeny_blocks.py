"""What `consilience.kernels.kemeny` does with one row or one block: split it, solve it, search it, bound it.

Everywhere ``matrix[i, j]`` is the margin by which i is favoured over j.
"""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import FloatArray, IntArray

__all__ = [
    "cheapest_orders",
    "cycle_bound",
    "mix",
    "search_order",
    "sort_small",
    "strong_components",
    "tournament_blocks",
]


@numba.njit(cache=True, nogil=True, inline="always")
def mix(state: np.uint64) -> np.uint64:
    """Return a well-mixed function of a 64-bit number (the last step of splitmix64)."""
    mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


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
