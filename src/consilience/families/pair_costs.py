"""Pair moments from distances: what two sources cost each other, and the covariance behind it.

A cost of negative type is a squared Euclidean distance in some (hidden) space, so that the product of
two votes around a reference point is ``(reach(a) + reach(b) - cost(a, b) - spread) / 2`` with
``reach(x)`` the mean cost from x to the references. For independent sources its mean is rank one,
whereas the costs themselves add up only for isotropic noise (the paper's simplification).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.families.base import GROUPS, Sums

__all__ = [
    "PairCosts",
    "blend",
    "excess_correlation",
    "gold_costs",
    "gold_sums",
    "pair_costs",
    "pair_sums",
    "shrunk_costs",
]

#: A pair needs this many items on which both vote.
MIN_CO_VOTES = 5

#: cost(rows, a, b) -> (len(rows),)
PairCost = Callable[[IntArray, int, int], FloatArray]


@dataclass(frozen=True)
class PairCosts:
    """Pair quantities ``(m, m)``, with the influence ``(groups, m, m)`` of each group of items on them.

    `product` is the mean product around the references; `count` says on how many items a pair rests.
    """

    count: FloatArray
    cost: FloatArray
    cost_error: FloatArray
    cost_influence: FloatArray
    product: FloatArray
    product_error: FloatArray
    product_influence: FloatArray

    def usable(self, dependent: BoolArray) -> BoolArray:
        """Return the pairs that may be used as independent."""
        usable: BoolArray = (self.count >= MIN_CO_VOTES) & ~dependent
        np.fill_diagonal(usable, False)
        return usable


def pair_sums(
    cost: PairCost, reach: FloatArray, spread: float, observed: BoolArray, groups: IntArray
) -> dict[str, npt.NDArray[Any]]:
    """Return the additive sums behind `PairCosts`.

    Parameters
    ----------
    reach
        ``(n, m)`` mean cost from each vote to the references.
    spread
        Mean cost between two references.
    """
    m = observed.shape[1]
    count = np.zeros((GROUPS, m, m), dtype=np.int64)
    total, product = np.zeros((GROUPS, m, m)), np.zeros((GROUPS, m, m))
    square, product_square = np.zeros((m, m)), np.zeros((m, m))
    for a in range(m):
        for b in range(a + 1, m):
            rows = np.flatnonzero(observed[:, a] & observed[:, b])
            if len(rows) == 0:
                continue
            between = cost(rows, a, b)
            inner = (reach[rows, a] + reach[rows, b] - between - spread) / 2.0
            where = groups[rows]
            count[:, a, b] = np.bincount(where, minlength=GROUPS)
            total[:, a, b] = np.bincount(where, between, minlength=GROUPS)
            product[:, a, b] = np.bincount(where, inner, minlength=GROUPS)
            square[a, b] = between @ between
            product_square[a, b] = inner @ inner
    parts: dict[str, npt.NDArray[Any]] = {
        "pair_count": count,
        "pair_cost": total,
        "pair_product": product,
        "pair_cost_square": square,
        "pair_product_square": product_square,
    }
    return {name: part + np.swapaxes(part, -1, -2) for name, part in parts.items()}


def pair_costs(sums: Sums) -> PairCosts:
    """Return the pair moments held in the sums."""
    by_group = sums["pair_count"].astype(np.float64)
    cost = _moment(sums["pair_cost"], sums["pair_cost_square"], by_group)
    product = (np.zeros_like(cost[0]), np.zeros_like(cost[1]), np.zeros_like(cost[2]))
    if "pair_product" in sums:
        counted = sums["product_count"].astype(np.float64) if "product_count" in sums else by_group
        product = _moment(sums["pair_product"], sums["pair_product_square"], counted)
    return PairCosts(by_group.sum(axis=0), *cost, *product)


def excess_correlation(
    pairs: PairCosts,
    pair_cost: Callable[[FloatArray, FloatArray], FloatArray],
    weight: FloatArray,
    dependent: BoolArray,
) -> FloatArray:
    """Return how far dependent sources repeat each other: 0 if as close as independent ones, 1 for copies."""
    correlation = np.zeros_like(pairs.cost)
    left, right = np.nonzero(np.triu(dependent & (pairs.count > 0)))
    if len(left):
        independent = np.maximum(pair_cost(weight[left], weight[right]), 1e-12)
        excess = np.clip(1.0 - pairs.cost[left, right] / independent, 0.0, 1.0)
        correlation[left, right] = correlation[right, left] = excess
    return correlation


def gold_sums(cost: FloatArray, observed: BoolArray) -> dict[str, npt.NDArray[Any]]:
    """Return the sums of the cost of each source's votes to known labels, both ``(n, m)``."""
    cost = np.where(observed, cost, 0.0)
    return {
        "gold_count": observed.sum(axis=0).astype(np.int64),
        "gold_cost": cost.sum(axis=0),
        "gold_cost_square": (cost**2).sum(axis=0),
    }


def gold_costs(sums: Sums) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return count, mean cost and its standard error from known labels, each ``(m,)``."""
    count = sums["gold_count"].astype(np.float64)
    mean = sums["gold_cost"] / np.maximum(count, 1.0)
    spread = np.maximum(sums["gold_cost_square"] / np.maximum(count, 1.0) - mean**2, 0.0)
    pooled = np.average(spread, weights=count) if count.sum() > 0 else 1.0
    # A handful of known labels can agree by luck: their variance is pooled over the sources.
    variance = (spread * count + pooled * 2.0) / (count + 2.0)
    error = np.where(count > 0, np.sqrt(variance / np.maximum(count, 1.0)), np.inf)
    return count, mean, error


def blend(
    value: FloatArray, error: FloatArray, told: FloatArray, told_error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Combine two estimates by their precisions; infinite errors carry no weight."""
    own = np.where(np.isfinite(error), 1.0 / np.maximum(error, 1e-9) ** 2, 0.0)
    other = np.where(np.isfinite(told_error), 1.0 / np.maximum(told_error, 1e-9) ** 2, 0.0)
    total = own + other
    known = total > 0
    safe = np.where(known, total, 1.0)
    mixed = np.where(known, (value * own + told * other) / safe, value)
    return mixed, np.where(known, 1.0 / np.sqrt(safe), np.inf)


def shrunk_costs(cost: FloatArray, error: FloatArray, used: BoolArray) -> FloatArray:
    """Pull costs towards their mean as far as their errors explain why they differ.

    Empirical Bayes with the between-source variance of DerSimonian and Laird: sources that are all alike
    come out alike, however few votes there are.
    """
    known = used & np.isfinite(error)
    if known.sum() < 3:
        return cost
    level, spread = cost[known], np.maximum(error[known], 1e-6 * cost[known].mean()) ** 2
    weight = 1.0 / spread
    mean = np.average(level, weights=weight)
    freedom = int(known.sum()) - 1
    heterogeneity = (weight * (level - mean) ** 2).sum()
    # Within the scatter that equal sources show one time in a hundred, they count as equal.
    excess = 0.0 if heterogeneity < freedom + 2.6 * np.sqrt(2.0 * freedom) else heterogeneity - freedom
    between = excess / (weight.sum() - (weight**2).sum() / weight.sum())
    centre = np.average(level, weights=1.0 / (spread + between))
    shrunk = cost.copy()
    shrunk[known] = centre + (level - centre) * between / (between + spread)
    return shrunk


def _moment(total: FloatArray, square: FloatArray, by_group: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    count = np.maximum(by_group.sum(axis=0), 1.0)
    mean = total.sum(axis=0) / count
    variance = np.maximum(square / count - mean**2, 0.0) / count
    influence = (total - by_group * mean) / count
    return mean, np.sqrt(variance), influence
