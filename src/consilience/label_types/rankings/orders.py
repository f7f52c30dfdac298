"""Sums and least costs over all orders of a few items, by a recursion over the sets of items that can come first.

The cost or probability of an order is composed of steps: item i after the set S of the items before it, which is
composed of one value for each item of S. So sums over all ``r!`` orders have ``r 2^r`` terms. NumPy does few rows, in
logarithms if necessary; compiled loops, which take time to load, do many.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from consilience.arrays import FloatArray, IntArray

#: For fewer terms NumPy is faster than loading the compiled loops.
FEW_TERMS = 1 << 19
#: Every factor of a posterior is at most 1, so terms that underflow are negligible if the normalizer exceeds this.
TRUSTED = 1e-200
#: Differences below this share of the largest margin are rounding errors.
TIE = 1e-12


def pair_posterior(margins: FloatArray, size: int) -> FloatArray:
    """Return P(i before j) from margins ``(n, pairs)``, if ``p(order) ~ exp(-sum of the margins it contradicts)``.

    Time and memory grow as ``2^size``; meant for up to 14 items.
    """
    if len(margins) * size << size <= FEW_TERMS:
        probability, mass = _sum_orders(margins, size, in_logs=False)
    else:
        from consilience.label_types.rankings.kernels import sum_orders

        probability, mass = sum_orders(margins, size)
    tiny = np.flatnonzero(mass <= TRUSTED)
    for rows in np.array_split(tiny, 1 + (len(tiny) * size << size) // FEW_TERMS) if len(tiny) else ():
        probability[rows] = _sum_orders(margins[rows], size, in_logs=True)[0]
    return probability


def best_orders(price: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the orders of least cost ``(n, size)``, best item first, and their costs, by ``price[t, i, j]`` of j < i.

    The largest price is about 1. Among equally good orders, larger numbers come last.
    """
    n, size, _ = price.shape
    if n * size << size > FEW_TERMS:
        from consilience.label_types.rankings.kernels import order_exactly

        return order_exactly(price)
    step = _steps(price.transpose(1, 2, 0), np.add, 0.0)
    best = _totals(step, np.minimum.reduce, np.add, 0.0)
    orders, rows, items = np.empty((n, size), dtype=np.int64), np.arange(n), np.arange(size)
    chosen = np.full(n, (1 << size) - 1)
    for place in range(size - 1, -1, -1):
        before = chosen[:, None] & ~(1 << items)
        cost = best[before, rows[:, None]] + step[before, items, rows[:, None]]
        fits = (cost <= best[chosen, rows][:, None] + TIE) & (before != chosen[:, None])
        orders[:, place] = size - 1 - fits[:, ::-1].argmax(axis=1)
        chosen = before[rows, orders[:, place]]
    return orders, best[-1]


def _sum_orders(margins: FloatArray, size: int, *, in_logs: bool) -> tuple[FloatArray, FloatArray]:
    """Return P(i before j) and the normalizer, or its logarithm, by sums from both ends."""
    one, two = np.triu_indices(size, 1)
    value = np.zeros((size, size, len(margins)))  # [i, j]: the cost of j before i
    value[one, two], value[two, one] = -np.maximum(margins.T, 0.0), np.minimum(margins.T, 0.0)
    algebra: Any = (np.logaddexp.reduce, np.add, 0.0) if in_logs else (np.add.reduce, np.multiply, 1.0)
    plus, times, nothing = algebra
    step = _steps(value if in_logs else np.exp(value), times, nothing)
    forward, backward = (_totals(step, plus, times, nothing, from_end) for from_end in (False, True))
    sets, items = np.arange(1 << size)[:, None], np.arange(size)
    through = times(times(forward[:, None], step), backward[sets | (1 << items)])
    if in_logs:
        through = np.exp(through - forward[-1])
    inside = (sets >> items) & 1
    through[inside == 1] = 0.0
    before = np.tensordot(inside.T.astype(float), through, 1)
    # The two add up to the normalizer.
    return (before[one, two] / np.maximum(before[one, two] + before[two, one], 1e-300)).T, forward[-1]


@lru_cache(maxsize=16)
def _ways(size: int) -> list[tuple[IntArray, IntArray, IntArray]]:
    """Return, for each size, the sets of this size, their members, and the sets without each member."""
    inside = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1
    found = []
    for count in range(1, size + 1):
        sets = np.flatnonzero(inside.sum(axis=1) == count)
        members = np.nonzero(inside[sets])[1].reshape(-1, count)
        found.append((sets, members, sets[:, None] ^ (1 << members)))
    return found


def _steps(value: FloatArray, times: Callable[..., FloatArray], nothing: float) -> FloatArray:
    """Return the step values ``(sets, size, n)`` of item i after each set, from values ``(i, j, n)``."""
    size, _, n = value.shape
    step = np.full((1 << size, size, n), nothing)
    for item in range(size):
        times(step[: 1 << item], value[:, item], out=step[1 << item : 2 << item])
    return step


def _totals(
    step: FloatArray,
    plus: Callable[..., FloatArray],
    times: Callable[..., FloatArray],
    nothing: float,
    from_end: bool = False,
) -> FloatArray:
    """Return ``(sets, n)`` totals over the orders of each set, or of its complement."""
    sets, size, n = step.shape
    total = np.full((sets, n), nothing)
    flip = sets - 1 if from_end else 0  # counted from the end, a set represents its complement
    for here, members, without in _ways(size):
        known = without ^ flip
        before = (here ^ flip)[:, None] if from_end else known
        total[here ^ flip] = plus(times(total[known], step[before, members]), axis=1)
    return total
