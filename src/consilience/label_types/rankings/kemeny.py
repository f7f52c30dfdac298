"""Kemeny aggregation: the order of items that contradicts the least pair weight, with a certificate.

The input is a table of pair margins: for items i < j the total weight of the sources that put i before j, minus that
of those that put j before i. The weighted Kemeny rule minimizes the summed ``|margin|`` of the pairs that an order
contradicts. Borda and Copeland, which are cheaper and not optimal, stand beside it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic
from typing import Literal

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray

__all__ = ["KemenyResult", "borda", "copeland", "linear_ordering", "minimize_disagreement", "sum_by_item"]

#: A cost this close to its lower bound, relative to the cost, is optimal.
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class KemenyResult:
    """Orders of n rows of up to r items, and how good they are known to be.

    Attributes
    ----------
    positions : array of shape (n, r)
        Place of each item, 0 for the first; -1 for items that do not exist in the row.
    cost : array of shape (n,)
        Summed ``|margin|`` of the pairs that the order contradicts.
    lower_bound : array of shape (n,)
        No order costs less. The gap to `cost` is zero where `optimal`.
    optimal : array of shape (n,)
        Whether the order is proven to be the best.
    """

    positions: IntArray
    cost: FloatArray
    lower_bound: FloatArray
    optimal: BoolArray


def minimize_disagreement(
    margins: npt.ArrayLike,
    r: int,
    sizes: npt.ArrayLike | None = None,
    *,
    max_exact: int = 15,
    starts: int = 8,
    seed: int = 0,
    n_threads: int = 1,
    exact: Literal["dp", "milp"] = "dp",
    time_limit: float | None = None,
    tie_break: npt.ArrayLike | None = None,
    keys: npt.ArrayLike | None = None,
) -> KemenyResult:
    """Return the order of the items of every row that contradicts the least weight.

    The items fall into blocks (strongly connected components of "is favored over") between which nothing has to be
    contradicted; a row without cyclic majorities has blocks of one item and needs no search. Blocks of up to
    `max_exact` items are solved exactly by a recursion over subsets, larger ones by a local search with a lower bound.

    Among equally good orders the choice follows, in this sequence: `tie_break`; the sum of an item's margins (Borda); a
    random number that belongs to the seed, the key of the row and the item. It never follows the index of an item.

    Parameters
    ----------
    margins
        ``(n, r (r - 1) / 2)``; positive favors i before j, pairs i < j in the order of ``numpy.triu_indices(r, 1)``.
    r
        Number of items.
    sizes
        ``(n,)``: only the first ``sizes[t]`` items of row t exist. All of them without it.
    max_exact
        Largest block that is solved by the recursion; memory and time double with every item.
    starts
        Number of starts of the local search in larger blocks.
    n_threads
        Blocks of rows go through as many threads; the result does not depend on it.
    exact
        ``"milp"`` also solves the blocks that the local search leaves unproven, as integer programs.
    time_limit
        Seconds for all integer programs together; rows that are not reached keep the result of the search.
    tie_break
        ``(n, r)`` scores, larger first.
    keys
        ``(n,)`` integers that identify the rows; their index without it. Rows keep their result when they come in
        another order, or in parts, if their keys stay the same.

    Examples
    --------
    A cycle: 0 before 1 by 3, 1 before 2 by 2, and 2 before 0 by 1. The weakest of the three is given up.

    >>> result = minimize_disagreement([[3.0, -1.0, 2.0]], 3)
    >>> result.positions, result.cost, result.optimal
    (array([[0, 1, 2]]), array([1.]), array([ True]))
    """
    rows = _Rows.of(margins, r, sizes, tie_break, keys)

    def solve(part: slice) -> _Solution:
        return _solve(rows.only(part), seed, max_exact, starts)

    parts = _parts(len(rows.margins), n_threads)
    if len(parts) == 1:
        solutions = [solve(parts[0])]
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            solutions = list(pool.map(solve, parts))
    if exact == "milp":
        deadline = np.inf if time_limit is None else monotonic() + time_limit
        for solution in solutions:
            _solve_open_blocks(solution, deadline)
    results = [solution.result() for solution in solutions]
    return KemenyResult(
        positions=np.concatenate([result.positions for result in results]),
        cost=np.concatenate([result.cost for result in results]),
        lower_bound=np.concatenate([result.lower_bound for result in results]),
        optimal=np.concatenate([result.optimal for result in results]),
    )


def borda(
    margins: npt.ArrayLike,
    r: int,
    sizes: npt.ArrayLike | None = None,
    *,
    seed: int = 0,
    tie_break: npt.ArrayLike | None = None,
    keys: npt.ArrayLike | None = None,
) -> IntArray:
    """Return positions ``(n, r)`` by the sum of an item's margins; ties as in `minimize_disagreement`.

    Examples
    --------
    >>> borda([[3.0, -1.0, 2.0]], 3)
    array([[0, 1, 2]])
    """
    rows = _Rows.of(margins, r, sizes, tie_break, keys)
    largest = np.abs(rows.visible).max(axis=1, initial=0.0, keepdims=True)
    # rounded, lest rounding errors decide between equal items
    score = np.rint(sum_by_item(rows.visible, r) / np.where(largest > 0, 1e-9 * largest, 1.0))
    return _sorted_by(score, rows, seed)


def copeland(
    margins: npt.ArrayLike,
    r: int,
    sizes: npt.ArrayLike | None = None,
    *,
    seed: int = 0,
    tie_break: npt.ArrayLike | None = None,
    keys: npt.ArrayLike | None = None,
) -> IntArray:
    """Return positions ``(n, r)`` by the number of pairs an item wins minus those it loses.

    Ties as in `minimize_disagreement`.

    Examples
    --------
    Everyone in the cycle wins once and loses once; item 3 loses to all. Without `tie_break`, Borda decides.

    >>> copeland([[3.0, -1.0, 5.0, 2.0, 5.0, 5.0]], 4)
    array([[0, 1, 2, 3]])
    """
    rows = _Rows.of(margins, r, sizes, tie_break, keys)
    largest = np.abs(rows.visible).max(axis=1, initial=0.0, keepdims=True)
    wins = np.where(np.abs(rows.visible) > 1e-12 * largest, np.sign(rows.visible), 0.0)
    return _sorted_by(sum_by_item(wins, r), rows, seed)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Checked input, in the types the kernels are compiled for."""

    margins: FloatArray
    r: int
    sizes: IntArray
    tie_break: FloatArray
    keys: IntArray

    @classmethod
    def of(
        cls,
        margins: npt.ArrayLike,
        r: int,
        sizes: npt.ArrayLike | None,
        tie_break: npt.ArrayLike | None,
        keys: npt.ArrayLike | None,
    ) -> _Rows:
        table = np.ascontiguousarray(margins, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != r * (r - 1) // 2:
            raise ValueError(f"margins of {r} items need shape (n, {r * (r - 1) // 2}), got {table.shape}.")
        n = len(table)
        numbers = np.full(n, r, dtype=np.int64) if sizes is None else np.ascontiguousarray(sizes, dtype=np.int64)
        if numbers.shape != (n,) or np.any((numbers < 0) | (numbers > r)):
            raise ValueError(f"sizes need shape ({n},) and values from 0 to {r}.")
        scores = np.empty((0, r)) if tie_break is None else np.ascontiguousarray(tie_break, dtype=np.float64)
        if tie_break is not None and scores.shape != (n, r):
            raise ValueError(f"tie_break needs shape ({n}, {r}), got {scores.shape}.")
        for name, values in (("margins", table), ("tie_break", scores)):
            bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if len(bad):
                raise ValueError(f"{name} of row {bad[0]} are not finite ({len(bad)} such row(s)).")
        names = np.arange(n) if keys is None else np.asarray(keys)
        return cls(table, r, numbers, scores, np.ascontiguousarray(names.astype(np.int64)))

    def only(self, chosen: slice | IntArray) -> _Rows:
        scores = self.tie_break[chosen] if len(self.tie_break) else self.tie_break
        return _Rows(self.margins[chosen], self.r, self.sizes[chosen], scores, self.keys[chosen])

    @property
    def visible(self) -> FloatArray:
        """Margins, with 0 for pairs with an item that does not exist."""
        later = np.triu_indices(self.r, 1)[1]
        return np.where(later < self.sizes[:, None], self.margins, 0.0)

    def preference(self, seed: int) -> IntArray:
        from consilience.label_types.rankings.kernels import preference_ranks

        ranks: IntArray = preference_ranks(self.margins, self.r, self.sizes, self.tie_break, self.keys, seed)
        return ranks


@dataclass(frozen=True, slots=True)
class _Solution:
    """Orders of the rows that a Condorcet order did not settle, before ties are put in their final order."""

    settled: IntArray  # (n, r) positions, meaningless for the rows below
    left: IntArray
    rows: _Rows
    preference: IntArray
    orders: IntArray
    bound: FloatArray
    open_blocks: IntArray

    def result(self) -> KemenyResult:
        from consilience.label_types.rankings.kernels import finish_rows

        n = len(self.settled)
        positions, cost, lower, optimal = self.settled, np.zeros(n), np.zeros(n), np.ones(n, dtype=bool)
        found, found_cost = finish_rows(self.rows.margins, self.rows.r, self.rows.sizes, self.preference, self.orders)
        proven = np.ones(len(found), dtype=bool)
        proven[self.open_blocks[:, 0]] = False
        proven |= found_cost - self.bound <= _EQUAL * found_cost
        positions[self.left], cost[self.left], optimal[self.left] = found, found_cost, proven
        lower[self.left] = np.where(proven, found_cost, np.minimum(self.bound, found_cost))
        return KemenyResult(positions, cost, lower, optimal)


def _solve(rows: _Rows, seed: int, max_exact: int, starts: int) -> _Solution:
    from consilience.label_types.rankings.kernels import condorcet_rows, solve_blocks

    positions, settled = condorcet_rows(rows.margins, rows.r, rows.sizes)
    left = np.flatnonzero(~settled)
    rest = rows.only(left)
    preference = rest.preference(seed)
    orders, bound, open_blocks = solve_blocks(
        rest.margins, rest.r, rest.sizes, preference, rest.keys, seed, max_exact, starts
    )
    return _Solution(positions, left, rest, preference, orders, bound, open_blocks)


def _parts(n: int, n_threads: int) -> list[slice]:
    """Cut n rows into one part per thread, at least one."""
    edges = np.linspace(0, n, max(min(n_threads, n), 1) + 1).astype(int)
    return [slice(start, stop) for start, stop in pairwise(edges)]


def sum_by_item(pairs: FloatArray, r: int) -> FloatArray:
    """Return ``(n, r)``: the value of each pair added to its first item and taken from its second."""
    total = np.zeros((len(pairs), r))
    first = 0
    for item in range(r - 1):
        own = pairs[:, first : first + r - 1 - item]
        total[:, item] += own.sum(axis=1)
        total[:, item + 1 :] -= own
        first += r - 1 - item
    return total


def _sorted_by(score: FloatArray, rows: _Rows, seed: int) -> IntArray:
    exists = np.arange(rows.r) < rows.sizes[:, None]
    order = np.lexsort((rows.preference(seed), -score, ~exists), axis=-1)
    positions = np.empty(score.shape, dtype=np.int64)
    np.put_along_axis(positions, order, np.broadcast_to(np.arange(rows.r), score.shape), axis=1)
    return np.where(exists, positions, -1)


def _solve_open_blocks(solution: _Solution, deadline: float) -> None:
    """Replace searched blocks by proven ones where time allows, in place."""
    rows, blocks = solution.rows, solution.open_blocks
    first, second = np.triu_indices(rows.r, 1)
    for row in np.unique(blocks[:, 0]):
        matrix = np.zeros((rows.r, rows.r))
        matrix[first, second] = rows.margins[row]
        matrix -= matrix.T
        order = solution.orders[row, : rows.sizes[row]]
        bound = _contradicted(matrix, order)  # of all blocks; each open one is then replaced by its own bound
        for _, start, stop in blocks[blocks[:, 0] == row]:
            items = order[start:stop].copy()
            inner = matrix[np.ix_(items, items)]
            searched = _contradicted(inner, np.arange(len(items)))
            best, block_bound = linear_ordering(inner, searched, deadline)
            order[start:stop] = items[best]
            bound += block_bound - searched
        solution.bound[row] = max(solution.bound[row], bound)


def _contradicted(matrix: FloatArray, order: IntArray) -> float:
    """Return the weight that an order contradicts; ``matrix[i, j]`` is the margin by which i is favored over j."""
    return float(np.maximum(np.tril(matrix[np.ix_(order, order)]), 0.0).sum())


def linear_ordering(matrix: FloatArray, searched: float, deadline: float) -> tuple[IntArray, float]:
    """Return a best order of one block and a lower bound of its cost, by integer programming.

    ``x_ij = 1`` puts i before j, for i < j; ``0 <= x_ij + x_jk - x_ik <= 1`` forbids cycles. There are too many of
    these constraints to write down, so those that a solution breaks are added until none is; the relaxation comes
    first. The identity is the order already known, at cost `searched`.
    """
    size = len(matrix)
    first, second = np.triu_indices(size, 1)
    column = np.zeros((size, size), dtype=np.int64)
    column[first, second] = np.arange(len(first))
    gain = matrix[first, second]
    base = float(np.maximum(gain, 0.0).sum())  # every x = 0 loses all positive margins; x = 1 loses the negative ones
    triples = np.empty((0, 3), dtype=np.int64)
    best, least, bound, integral = np.arange(size), searched, 0.0, False
    while monotonic() < deadline:
        solution, value = _program(gain, triples, column, integral, deadline)
        bound = max(bound, base + value)
        if solution is None or least - bound <= _EQUAL * least:
            break
        order = _rounded(solution, size)
        cost = _contradicted(matrix, order)
        if cost < least:
            best, least = order, cost
            if least - bound <= _EQUAL * least:
                break
        broken = _broken(solution, size)
        if len(broken):
            triples = np.concatenate([triples, broken])
        elif integral:
            break
        else:
            integral = True
    return best, min(bound, least)


def _program(
    gain: FloatArray, triples: IntArray, column: IntArray, integral: bool, deadline: float
) -> tuple[FloatArray | None, float]:
    """Solve one (relaxed) program; return its solution, if any, and a lower bound of its value."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    remaining = max(deadline - monotonic(), 0.01)
    constraints = []
    if len(triples):
        i, j, k = triples.T
        columns = np.stack([column[i, j], column[j, k], column[i, k]], axis=1).ravel()
        signs = np.tile([1.0, 1.0, -1.0], len(triples))
        matrix = csr_array((signs, columns, np.arange(0, len(columns) + 1, 3)), shape=(len(triples), len(gain)))
        constraints.append(LinearConstraint(matrix, 0.0, 1.0))
    found = milp(
        -gain,
        integrality=np.full(len(gain), int(integral)),
        bounds=Bounds(0.0, 1.0),
        constraints=constraints,
        options={"mip_rel_gap": 0.0, "time_limit": remaining},
    )
    value = found.mip_dual_bound if integral else (found.fun if found.status == 0 else None)
    return found.x, -np.inf if value is None else float(value)


def _rounded(solution: FloatArray, size: int) -> IntArray:
    """Sort items by how much of the solution puts them before others."""
    ahead = np.zeros((size, size))
    ahead[np.triu_indices(size, 1)] = solution - 0.5
    order: IntArray = np.argsort(-(ahead - ahead.T).sum(axis=1), kind="stable")
    return order


def _broken(solution: FloatArray, size: int) -> IntArray:
    """Return the triples i < j < k whose constraint the solution breaks."""
    x = np.zeros((size, size))
    x[np.triu_indices(size, 1)] = solution
    around = x[:, :, None] + x[None, :, :] - x[:, None, :]
    i, j, k = np.ogrid[:size, :size, :size]
    broken = ((around > 1.0 + 1e-6) | (around < -1e-6)) & (i < j) & (j < k)
    return np.argwhere(broken)
