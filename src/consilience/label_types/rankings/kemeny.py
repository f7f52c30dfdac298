"""Kemeny aggregation: the order of items that contradicts the least pair weight, with a lower bound.

The input is a table of margins: for items i < j the total weight of the sources that put i before j, minus that of
those that put j before i. The weighted Kemeny rule minimizes the sum of ``|margin|`` over the pairs that an order
contradicts. Borda and Copeland are cheaper and not optimal.

Positive margins form a directed graph. Between its strongly connected components an order can respect every pair, so
only these blocks have to be searched: small ones exactly, by a recursion over subsets, large ones by moving single
items. The search sees items in the order of preference, so that the choice among equally good orders follows the
preference and never the index of an item.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, hash_priority
from consilience.label_types.codes import ABSENT
from consilience.label_types.rankings.labels import UNSEEN, Positions, pair_order, rank_items
from consilience.label_types.rankings.orders import TIE, best_orders
from consilience.partitions.threads import map_in_threads

#: A cost this close to its lower bound, relative to the cost, is optimal.
_EQUAL = 1e-9
#: Scores that differ by less than this share of the largest margin are equal.
_SAME_SCORE = 1e-9
#: Largest block that is solved exactly. Memory and time double with every item.
_EXACT = 15
#: Orders from which the local search starts.
_STARTS = 8
#: Largest block with a lower bound. For larger ones, the bound would take longer than the search.
_BOUNDED = 500
#: Cells of square matrices in memory at a time.
_MAX_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class KemenyRankings:
    """Rankings of n rows of up to r items, with their cost and its lower bound.

    Attributes
    ----------
    positions : array of shape (n, r)
        Position of each item, 0 for the first, without ties; -1 for items that no source ranks in this row.
    cost : array of shape (n,)
        Weighted number of pairs of items in opposite order, summed over the sources.
    lower_bound : array of shape (n,)
        No ranking costs less.
    optimal : array of shape (n,)
        Whether the ranking is proven to be the best.

    Examples
    --------
    >>> from consilience import kemeny
    >>> result = kemeny([[0, 1, 2], [1, 0, 2], [0, 2, 1]])
    >>> result.positions[0].tolist(), result.cost.tolist(), result.optimal.tolist()
    ([0, 1, 2], [2.0], [True])
    """

    positions: IntArray
    cost: FloatArray
    lower_bound: FloatArray
    optimal: BoolArray

    @property
    def gap(self) -> FloatArray:
        """An upper bound of what a better ranking could save; zero if the ranking is optimal."""
        return self.cost - self.lower_bound


def add_up(votes: Batch, weights: FloatArray) -> tuple[FloatArray, IntArray, BoolArray]:
    """Return the margins of votes ``(n, m, r)``, the number of items of each row, and which items any vote sees.

    Votes of weight zero have no effect.
    """
    there = (weights > 0)[:, :, None]
    sizes = ((votes != ABSENT) & there).any(axis=1).sum(axis=1)
    margins = margins_of(votes, weights)
    return margins, sizes, np.asarray(((votes >= 0) & there).any(axis=1))


def among_seen(positions: IntArray, seen: BoolArray) -> IntArray:
    """Return the positions among the items that some vote sees; -1 for the others."""
    return positions if seen.all() else rank_items(positions, seen, UNSEEN).astype(np.int64)


def minimize_disagreement(
    margins: npt.ArrayLike,
    r: int,
    sizes: npt.ArrayLike | None = None,
    *,
    seed: int = 0,
    n_threads: int = 1,
    exact: Literal["dp", "milp"] = "dp",
    time_limit: float | None = None,
    keys: IntArray | None = None,
) -> KemenyRankings:
    """Return the order of the items of every row that contradicts the least weight; costs are sums of ``|margin|``.

    Margins ``(n, r (r - 1) / 2)`` of pairs i < j are in the order of ``numpy.triu_indices(r, 1)``. Only the first
    ``sizes[t]`` of the r items of row t exist. Small blocks are solved exactly; larger ones by a local search, and with
    ``exact="milp"`` as integer programs within the time limit.

    Equally good orders are decided by the sum of an item's margins (Borda), then by a random number that depends on the
    seed, the key of the row (by default its index) and the item. So the result of a row does not depend on other rows
    or on threads.
    """
    table, exists = _cleaned(margins, r, sizes)
    n, count = len(table), exists.sum(axis=1)
    names = np.arange(n) if keys is None else keys
    deadline = None if exact == "dp" else np.inf if time_limit is None else monotonic() + time_limit
    positions, cost, bound = np.full((n, r), UNSEEN), np.zeros(n), np.zeros(n)
    proven = np.ones(n, dtype=bool)
    second = np.triu_indices(r, 1)[1]

    def solve(rows: IntArray) -> None:
        size = int(count[rows[0]])
        some = table[np.ix_(rows, second < size)]
        points = sum_by_item(np.sign(some), size)
        positions[rows, :size] = (size - 1 - points) / 2
        # Without cycles and ties among majorities, wins minus losses have the largest spread, and the order is unique.
        open_rows = np.einsum("ni,ni->n", points, points) < size * (size**2 - 1) // 3
        if not open_rows.any():
            return
        left, some = rows[open_rows], some[open_rows]
        preferred = _preferred([np.zeros((len(left), size))], some, names[left], seed)
        largest = np.abs(some).max(axis=1)
        square = square_margins(some / np.where(largest > 0, largest, 1.0)[:, None], size)
        square = np.take_along_axis(square, preferred[:, :, None], axis=1)
        square = np.take_along_axis(square, preferred[:, None, :], axis=2)
        states = hash_priority(names[left], seed)
        orders, least, proven[left] = _solve_blocks(square, states, deadline)
        bound[left] = least * largest
        found = np.argsort(np.take_along_axis(preferred, orders, axis=1), axis=1)
        one, two = np.triu_indices(size, 1)
        positions[left, :size] = found
        cost[left] = np.maximum(np.where(found[:, one] < found[:, two], -some, some), 0.0).sum(axis=1)

    jobs = []
    for size in np.unique(count).tolist():
        rows = np.flatnonzero(count == size)
        parts = np.array_split(rows, max(n_threads, len(rows) * size**2 // _MAX_CELLS))
        jobs += [part for part in parts if len(part)]
    list(map_in_threads(solve, jobs, n_threads) if n_threads > 1 else map(solve, jobs))
    proven |= cost - bound <= _EQUAL * cost
    return KemenyRankings(positions, cost, np.where(proven, cost, np.minimum(bound, cost)), proven)


def rank_by_score(
    margins: npt.ArrayLike, r: int, sizes: npt.ArrayLike | None = None, *, rule: Literal["borda", "copeland"], seed: int
) -> IntArray:
    """Return positions ``(n, r)`` by the sum of an item's margins (Borda) or by its wins minus losses (Copeland)."""
    table, exists = _cleaned(margins, r, sizes)
    scores = [exists] if rule == "borda" else [exists, sum_by_item(np.sign(table), r)]
    order = _preferred(scores, table, np.arange(len(table)), seed)
    return np.where(exists, np.argsort(order, axis=1), UNSEEN)


def margins_of(votes: Positions, weights: FloatArray) -> FloatArray:
    """Return the margins ``(n, pairs)`` of votes ``(n, m, r)`` with weights ``(n, m)``."""
    n, m, r = votes.shape
    margins = np.zeros((n, r * (r - 1) // 2))
    for a in range(m):
        margins += weights[:, a, None] * pair_order(votes[:, a])
    return margins


def sum_by_item(pairs: FloatArray, r: int) -> FloatArray:
    """Return ``(n, r)``: the value of each pair added to its first item and subtracted from its second."""
    total = np.zeros((len(pairs), r))
    first = 0
    for item in range(r - 1):
        own = pairs[:, first : first + r - 1 - item]
        total[:, item] += own.sum(axis=1)
        total[:, item + 1 :] -= own
        first += r - 1 - item
    return total


def square_margins(margins: FloatArray, size: int) -> FloatArray:
    """Return the margins as antisymmetric matrices ``(n, size, size)``."""
    square = np.zeros((len(margins), size, size))
    square[:, *np.triu_indices(size, 1)] = margins
    return square - square.transpose(0, 2, 1)


def find_blocks(square: FloatArray) -> tuple[IntArray, IntArray]:
    """Sort the items of each row so that strongly connected components follow each other in topological order.

    The key of the sort is the number of items that an item reaches, which is larger in earlier components. Return the
    items ``(n, size)``, best first and by index within a component; and row, first and last place (exclusive) of each
    component of more than one item, ``(n_blocks, 3)``.
    """
    n, size, _ = square.shape
    reaches = (square > 0) | np.eye(size, dtype=bool)
    for through in range(size):
        reaches |= reaches[:, :, through, None] & reaches[:, None, through]
    component = (reaches & reaches.transpose(0, 2, 1)).argmax(axis=2)
    key = (size - reaches.sum(axis=2)) * size + component
    orders = np.argsort(key, axis=1, kind="stable")
    row, start = np.nonzero(np.diff(np.take_along_axis(key, orders, axis=1), axis=1, prepend=-1))
    length = np.diff(row * size + start, append=n * size)
    return orders, np.stack([row, start, start + length], axis=1)[length > 1]


def _cleaned(margins: npt.ArrayLike, r: int, sizes: npt.ArrayLike | None) -> tuple[FloatArray, BoolArray]:
    """Return margins, with 0 for ties and for pairs with a missing item, and which items exist."""
    table = np.array(margins, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != r * (r - 1) // 2 or not np.isfinite(table).all():
        raise ValueError(f"margins of {r} items are finite and of shape (n, {r * (r - 1) // 2}), got {table.shape}.")
    exists = np.ones((len(table), r), dtype=bool)
    if sizes is not None:
        exists = np.arange(r) < np.asarray(sizes)[:, None]
        table[~exists[:, np.triu_indices(r, 1)[1]]] = 0.0
    size = np.abs(table)
    table[size <= TIE * size.max(axis=1, initial=0.0, keepdims=True)] = 0.0
    return table, exists


def _preferred(scores: list[Batch], margins: FloatArray, keys: IntArray, seed: int) -> IntArray:
    """Return ``(n, r)`` items by the scores, larger first; then by Borda, then by chance."""
    r = scores[0].shape[1]
    largest = np.abs(margins).max(axis=1, initial=0.0, keepdims=True)
    borda_score = np.rint(sum_by_item(margins, r) / np.where(largest > 0, largest, 1.0) / _SAME_SCORE)
    row = hash_priority(keys, seed)
    chance = np.array([hash_priority(row, item) for item in range(r)], dtype=np.uint64).reshape(r, len(row)).T
    return np.lexsort((chance, borda_score, *reversed(scores)), axis=-1)[:, ::-1]


def _solve_blocks(
    square: FloatArray, states: npt.NDArray[np.uint64], deadline: float | None
) -> tuple[IntArray, FloatArray, BoolArray]:
    """Return the best orders found, lower bounds of their costs, and in which rows every block was solved exactly.

    With a deadline, integer programs are solved until then.
    """
    orders, blocks = find_blocks(square)
    length = blocks[:, 2] - blocks[:, 1]
    bound, proven = np.zeros(len(square)), np.ones(len(square), dtype=bool)
    for size in np.unique(length[length <= _EXACT]).tolist():
        row, start, _ = blocks[length == size].T[:, :, None]
        places = start + np.arange(size)
        items = orders[row, places]
        found, cost_of_block = best_orders(np.maximum(square[row[:, :, None], items[:, :, None], items[:, None]], 0.0))
        orders[row, places] = np.take_along_axis(items, found, axis=1)
        np.add.at(bound, row[:, 0], cost_of_block)
    for row, start, stop in blocks[length > _EXACT]:
        from consilience.label_types.rankings.kernels import cycle_bound, search_order

        items = orders[row, start:stop].copy()
        inner = square[row][np.ix_(items, items)]
        order, cost = search_order(inner, np.argsort(-inner.sum(axis=1), kind="stable"), _STARTS, states[row])
        least = cycle_bound(inner.copy()) if len(inner) <= _BOUNDED else 0.0
        if deadline is not None:
            better, at_least = linear_ordering(inner[np.ix_(order, order)], cost, deadline)
            order, least = order[better], max(least, at_least)
        orders[row, start:stop] = items[order]
        bound[row] += least
        proven[row] = False
    _put_preferred_first(square, orders)
    return orders, bound, proven


def _put_preferred_first(square: FloatArray, orders: IntArray) -> None:
    """Move each item ahead of tied neighbors that are less preferred, in place."""
    for last in range(1, orders.shape[1]):
        rows = np.arange(len(orders))
        for place in range(last, 0, -1):
            item, ahead = orders[rows, place], orders[rows, place - 1]
            rows = rows[(item < ahead) & (square[rows, item, ahead] == 0)]
            if not len(rows):
                break
            orders[rows, place - 1], orders[rows, place] = orders[rows, place], orders[rows, place - 1]


def linear_ordering(matrix: FloatArray, cost: float, deadline: float) -> tuple[IntArray, float]:
    """Return a best order of one block and a lower bound of its cost, by integer programming.

    ``x_ij = 1`` puts i before j, for i < j; ``0 <= x_ij + x_jk - x_ik <= 1`` forbids cycles. There are too many such
    constraints, so those that a solution violates are added until there are none, first for the relaxation. The
    identity is the known order with the given cost.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    size = len(matrix)
    pairs = np.triu_indices(size, 1)
    column = np.zeros((size, size), dtype=np.int64)
    column[pairs] = np.arange(len(pairs[0]))
    gain = matrix[pairs]
    base = float(np.maximum(gain, 0.0).sum())  # the cost of x = 0, which violates all positive margins
    i, j, k = np.ogrid[:size, :size, :size]
    triples = np.empty((0, 3), dtype=np.int64)
    best, bound, integral = np.arange(size), 0.0, False
    while (remaining := deadline - monotonic()) > 0:
        one, two, three = triples.T
        columns = np.stack([column[one, two], column[two, three], column[one, three]], axis=1).ravel()
        signs = np.tile([1.0, 1.0, -1.0], len(triples))
        rows = csr_array((signs, columns, np.arange(0, len(columns) + 1, 3)), shape=(len(triples), len(gain)))
        found = milp(
            -gain,
            integrality=np.full(len(gain), int(integral)),
            bounds=Bounds(0.0, 1.0),
            constraints=[LinearConstraint(rows, 0.0, 1.0)] if len(triples) else [],
            options={"mip_rel_gap": 0.0, "time_limit": max(remaining, 0.01)},
        )
        value = found.mip_dual_bound if integral else (found.fun if found.status == 0 else None)
        if value is not None:
            bound = max(bound, base + float(value))
        if found.x is None:
            break
        x = np.zeros((size, size))
        x[pairs] = found.x
        ahead = np.triu(x - 0.5, 1)
        order = np.argsort(-(ahead - ahead.T).sum(axis=1), kind="stable")
        new_cost = float(np.maximum(np.tril(matrix[np.ix_(order, order)]), 0.0).sum())
        if new_cost < cost:
            best, cost = order, new_cost
        around = x[:, :, None] + x[None, :, :] - x[:, None, :]
        broken = np.argwhere(((around > 1.0 + 1e-6) | (around < -1e-6)) & (i < j) & (j < k))
        if cost - bound <= _EQUAL * cost or (integral and not len(broken)):
            break
        triples = np.concatenate([triples, broken])
        integral = integral or not len(broken)
    return best, min(bound, cost)
