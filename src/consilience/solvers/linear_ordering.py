"""The best order of one set of items as an integer program, for sets too large for the recursion over subsets."""

from __future__ import annotations

from time import monotonic

import numpy as np

from consilience.arrays import FloatArray, IntArray

__all__ = ["contradicted", "linear_ordering"]

#: A cost this close to its lower bound, relative to the cost, is optimal.
_EQUAL = 1e-9


def contradicted(matrix: FloatArray, order: IntArray) -> float:
    """Return the weight that an order contradicts; ``matrix[i, j]`` is the margin by which i is favoured over j."""
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
        cost = contradicted(matrix, order)
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
